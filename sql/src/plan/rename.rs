//! Binding of RENAME: of columns, tables and indexes. Texts that the catalog stores get the new name too.
//!
//! A name in a text is found word by word. The result must be the same expression as before, so nothing else is renamed
//! by mistake: what cannot be told apart is refused.

use sqlparser::ast::{AlterIndexOperation, Ident, ObjectName, Spanned};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::binder::Binder;
use super::index::{bind_indexes, stored_condition, stored_generated};
use super::names::fold_ident;
use super::node::{Alteration, Body};
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::table::{IndexedValue, Table, quote_identifier};

/// What is renamed in a text.
#[derive(Clone, Copy)]
enum Renamed<'n> {
    /// A column of the table.
    Column { table: &'n str, from: &'n str, to: &'n str },
    /// The table itself, where it qualifies columns.
    Table { from: &'n str, to: &'n str },
}

impl Binder<'_> {
    /// ALTER TABLE ... RENAME COLUMN.
    pub(super) fn rename_column(&self, old: &Ident, new: &Ident, change: &mut Alteration) -> Result<(), SqlError> {
        self.check_new_name(new)?;
        let (from, to) = (fold_ident(old), fold_ident(new));
        let before = change.new.clone();
        let table = &mut change.new;
        let Some(at) = table.column(&from) else {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist")));
        };
        if table.column(&to).is_some() {
            let message = format!("column \"{to}\" of relation \"{}\" already exists", table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        table.columns[at].name.clone_from(&to);
        let name = table.name.clone();
        self.rewrite(&before, table, Renamed::Column { table: &name, from: &from, to: &to })
    }

    /// ALTER TABLE ... RENAME TO.
    pub(super) fn rename_table(&self, to: &str, table: &mut Table) -> Result<(), SqlError> {
        let before = table.clone();
        to.clone_into(&mut table.name);
        self.rewrite(&before, table, Renamed::Table { from: &before.name, to })
    }

    /// Renames in all texts of a table.
    fn rewrite(&self, before: &Table, table: &mut Table, renamed: Renamed<'_>) -> Result<(), SqlError> {
        for column in &mut table.columns {
            if let Some(text) = &mut column.generated {
                *text = rewritten(text, renamed);
            }
        }
        table.checks.iter_mut().for_each(|check| check.text = rewritten(&check.text, renamed));
        for index in &mut table.indexes {
            for column in &mut index.columns {
                if let IndexedValue::Expression { text, .. } = &mut column.value {
                    *text = rewritten(text, renamed);
                }
            }
            if let Some(text) = &mut index.predicate {
                *text = rewritten(text, renamed);
            }
        }
        if self.are_same(before, table)? {
            return Ok(());
        }
        let message = "an expression of the table cannot be told from another one with the new name";
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }

    /// Whether the expressions of two descriptors are the same.
    fn are_same(&self, before: &Table, after: &Table) -> Result<bool, SqlError> {
        let catalog = self.catalog;
        for (old, new) in before.columns.iter().zip(&after.columns) {
            if let (Some(old_text), Some(new_text)) = (&old.generated, &new.generated) {
                let same = stored_generated(new_text, after, new, catalog);
                if same.ok() != Some(stored_generated(old_text, before, old, catalog)?) {
                    return Ok(false);
                }
            }
        }
        for (old, new) in before.checks.iter().zip(&after.checks) {
            let same = stored_condition(&new.text, after, catalog);
            if same.ok() != Some(stored_condition(&old.text, before, catalog)?) {
                return Ok(false);
            }
        }
        Ok(bind_indexes(after, catalog).ok() == Some(bind_indexes(before, catalog)?))
    }

    /// ALTER INDEX.
    pub(super) fn alter_index(&mut self, name: &ObjectName, operation: &AlterIndexOperation) -> Result<Body, SqlError> {
        let AlterIndexOperation::RenameIndex { index_name } = operation;
        self.rename_index(name, index_name, "ALTER INDEX")
    }

    /// Renames an index, and the constraint that it belongs to.
    pub(super) fn rename_index(
        &mut self,
        name: &ObjectName,
        to: &ObjectName,
        tag: &'static str,
    ) -> Result<Body, SqlError> {
        let found = self.find_relation(name)?;
        let parts = self.name_parts(to)?;
        let [to] = parts.as_slice() else { return Err(self.unsupported("this name is", to.span().start)) };
        let (table, from) = match found {
            Some((Relation::Table(table) | Relation::Index(table), from)) => (table, from),
            Some((Relation::Object(_), from)) => {
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{from}\" is not an index"));
                return Err(error);
            }
            None => {
                let from = self.name_parts(name)?.join(".");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{from}\" does not exist")));
            }
        };
        self.target = table.schema;
        self.check_free_relation(to)?;
        let mut change = Alteration::of(table);
        let table = &mut change.new;
        if table.name == from {
            // PostgreSQL renames the table.
            self.rename_table(to, table)?;
        } else if table.key_name == from {
            to.clone_into(&mut table.key_name);
        }
        for index in table.indexes.iter_mut().filter(|index| index.name == from) {
            to.clone_into(&mut index.name);
        }
        Ok(Body::AlterTables(tag, vec![change]))
    }
}

/// A text with a new name in it.
fn rewritten(text: &str, renamed: Renamed<'_>) -> String {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else { return text.to_owned() };
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at], Token::Whitespace(_))).collect();
    let mut out = String::with_capacity(text.len());
    for (at, token) in tokens.iter().enumerate() {
        let place = words.iter().position(|word| *word == at);
        let near = |by: isize| {
            let place = place?.checked_add_signed(by)?;
            tokens.get(*words.get(place)?)
        };
        match new_name(token, near, renamed) {
            Some(name) => out.push_str(&quote_identifier(name)),
            None => out.push_str(&token.to_string()),
        }
    }
    out
}

fn folded(token: Option<&Token>) -> Option<String> {
    match token {
        Some(Token::Word(word)) => Some(fold_ident(&Ident {
            value: word.value.clone(),
            quote_style: word.quote_style,
            span: sqlparser::tokenizer::Span::empty(),
        })),
        _ => None,
    }
}

/// The new name of a token, if it is what is renamed. `near`: the tokens around it.
fn new_name<'n, 't>(
    token: &'t Token,
    near: impl Fn(isize) -> Option<&'t Token>,
    renamed: Renamed<'n>,
) -> Option<&'n str> {
    let word = folded(Some(token))?;
    let is_call = near(1) == Some(&Token::LParen);
    let is_type = near(-1) == Some(&Token::DoubleColon);
    let qualifier = if near(-1) == Some(&Token::Period) { folded(near(-2)) } else { None };
    match renamed {
        Renamed::Column { table, from, to } => {
            let is_its = near(-1) != Some(&Token::Period) || qualifier.as_deref() == Some(table);
            let is_qualifier = near(1) == Some(&Token::Period);
            (word == from && is_its && !is_call && !is_type && !is_qualifier).then_some(to)
        }
        Renamed::Table { from, to } => (word == from && near(1) == Some(&Token::Period)).then_some(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_word_by_word() {
        let column = |text| rewritten(text, Renamed::Column { table: "t", from: "a", to: "New" });
        assert_eq!(column("a > 1 AND t.a < b"), "\"New\" > 1 AND t.\"New\" < b");
        assert_eq!(column("a(a) || 'a' || x.a || A || \"A\""), "a(\"New\") || 'a' || x.a || \"New\" || \"A\"");
        let table = |text| rewritten(text, Renamed::Table { from: "t", to: "u" });
        assert_eq!(table("t.a > t AND T.b"), "u.a > t AND u.b");
    }
}
