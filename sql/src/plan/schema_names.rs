//! ALTER SCHEMA ... RENAME TO for the texts of views, which name the schema.
//!
//! A text names a schema before a dot, and in literals that are read as names of relations or types. The text with the
//! new name must have the same plan in the catalog with the new name. So what only looks like the schema, such as an
//! alias, keeps its name, and what cannot be told is refused.

use std::collections::HashSet;

use super::binder::{Binder, Replacement};
use super::fixed_names::replaced;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token};
use crate::object::{Object, ObjectId, Schema, View};
use crate::parse;
use crate::table::quote_identifier;
use pgtypes::{Names, SqlType};

impl Binder<'_> {
    /// The views whose texts name a schema, each as it was and as it is to be.
    pub(super) fn views_of_schema(&self, old: &Schema, new: &Schema) -> Result<Vec<(Object, Object)>, SqlError> {
        let mut catalog = self.catalog.with_renamed(Object::Schema(new.clone()));
        let mut waiting: Vec<View> = Vec::new();
        for object in self.catalog.relations() {
            if let Object::View(view) = &*object
                && self.shown_query(view, self.catalog).is_some()
            {
                waiting.push(view.clone());
            }
        }
        let mut changed = Vec::new();
        // A view comes after those that it reads: they have their new texts then.
        while !waiting.is_empty() {
            let ids: HashSet<ObjectId> = waiting.iter().map(|view| view.id).collect();
            let reads_waiting = |view: &View| view.uses.iter().any(|id| ids.contains(id));
            let (later, next): (Vec<View>, Vec<View>) = waiting.into_iter().partition(reads_waiting);
            if next.is_empty() {
                break;
            }
            for view in next {
                let query = self.with_schema(&view, old, &new.name, &catalog);
                let query = query.ok_or_else(|| self.untold_schema(&view))?;
                if query != view.query {
                    let new = Object::View(View { query, ..view.clone() });
                    self.look_up(Some(view.schema), &view.name);
                    catalog = catalog.with_renamed(new.clone());
                    changed.push((Object::View(view), new));
                }
            }
            waiting = later;
        }
        Ok(changed)
    }

    /// 0A000 for a view that names a schema in a way that cannot be told from others.
    fn untold_schema(&self, view: &View) -> SqlError {
        let message = "a new name for a schema that a view names in this way is not supported yet";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        error.detail(format!("The view {} names it.", self.catalog.relation_text(view.schema, &view.name)))
    }

    /// The text of a view with the new name of a schema, for a catalog that has it; `None` if it cannot be told.
    fn with_schema(&self, view: &View, schema: &Schema, to: &str, catalog: &Catalog) -> Option<String> {
        let (before, from) = (self.shown_query(view, self.catalog)?, &schema.name);
        let (early, late) = self.named_in(view, (from, to), catalog)?;
        let is_member = |name: &str| {
            let relation = self.catalog.relation_in(schema.id, name);
            relation.is_some() || self.catalog.user_type(Some(schema.id), name).is_some()
        };
        let (members, all) = (words(&view.query, (from, to), is_member), words(&view.query, (from, to), |_| true));
        let with = |words: &[Replacement]| replaced(view.query.clone(), [words, &early].concat());
        let is_same = |words: &&[Replacement]| {
            let new = View { query: with(words), ..view.clone() };
            self.shown_query(&new, catalog).as_ref() == Some(&before)
        };
        let words = [&*members, &*all].into_iter().find(is_same)?;
        let query = replaced(view.query.clone(), [words, &early, &late].concat());
        let new = View { query, ..view.clone() };
        self.shown_query(&new, catalog).map(|_| new.query)
    }

    /// The literals in the text of a view that name something in a schema: those that are read when the view is bound,
    /// and those that are read when it runs, which the plan has as they are. `None` if one would mean something else.
    fn named_in(
        &self,
        view: &View,
        (from, to): (&str, &str),
        catalog: &Catalog,
    ) -> Option<(Vec<Replacement>, Vec<Replacement>)> {
        let parsed = parse::parse(&view.query).ok()?;
        let statement = parsed.first()?;
        let mut binder = Binder::new(statement, None, self.catalog);
        binder.view_query(view).ok()?;
        let (mut early, mut late) = (Vec::new(), Vec::new());
        let is_name = |ty: SqlType| [SqlType::REGCLASS, SqlType::REGTYPE].contains(&ty.base());
        for (ty, location) in binder.literals.take().into_iter().filter(|(ty, _)| is_name(*ty)) {
            let mut lexer = Lexer::new(&view.query);
            lexer.skip_to(statement.text.offset(location)?);
            let Some(Spanned { token: Token::Text(old), start, end }) = lexer.next() else { continue };
            let named = self.catalog.find(ty, &old).ok();
            if named.is_none() || named == catalog.find(ty, &old).ok() {
                continue;
            }
            let first = words(&old, (from, to), |_| true).into_iter().take(1).collect();
            let new = replaced(old, first);
            if catalog.find(ty, &new).ok() != named {
                return None;
            }
            let pieces = if ty.base() == SqlType::REGCLASS { &mut late } else { &mut early };
            pieces.push((start..end, format!("'{}'", new.replace('\'', "''"))));
        }
        Some((early, late))
    }
}

/// The words of a text that name a schema before a dot and a name that may be one of the schema's.
fn words(text: &str, (from, to): (&str, &str), is_member: impl Fn(&str) -> bool) -> Vec<Replacement> {
    let mut lexer = Lexer::new(text);
    let mut pieces = Vec::new();
    while let Some(token) = lexer.next() {
        let mut ahead = lexer.clone();
        if folded(&token.token).as_deref() == Some(from)
            && ahead.next().is_some_and(|next| next.token == Token::Symbol('.'))
            && ahead.next().and_then(|next| folded(&next.token)).is_some_and(|name| is_member(&name))
        {
            pieces.push((token.start..token.end, quote_identifier(to)));
        }
    }
    pieces
}

/// The name that a token is.
fn folded(token: &Token<'_>) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_ascii_lowercase()),
        Token::Quoted(word) => Some(word.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_named_before_a_dot() {
        let renamed = |text: &str, member: &str| {
            replaced(text.to_owned(), words(text, ("s", "New"), |name| member.is_empty() || name == member))
        };
        let text = "select s.s, S . t, 's.x' from \"s\".t s";
        assert_eq!(renamed(text, ""), "select \"New\".s, \"New\" . t, 's.x' from \"New\".t s");
        assert_eq!(renamed(text, "t"), "select s.s, \"New\" . t, 's.x' from \"New\".t s");
        assert_eq!(renamed("s.t", "t"), "\"New\".t");
    }
}
