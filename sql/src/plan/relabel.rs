//! ALTER TYPE ... RENAME VALUE. The catalog keeps expressions as text, so all texts that name the label get its new
//! name.
//!
//! A text names a label by a literal that the binder reads as the enum, or as an array of it. So each text is bound,
//! and these literals are written anew. A literal of another type that an evaluation casts to the enum keeps the old
//! label, as in PostgreSQL.

use sqlparser::ast::Expr as Ast;
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope};
use super::domains::value_scope;
use super::fixed_names::replaced;
use super::node::{Alteration, Body};
use super::stored::bind_stored;
use crate::catalog::Catalog;
use crate::error::SqlError;
use crate::lexer::{Lexer, Spanned, Token};
use crate::object::{Domain, EnumType, Object, View};
use crate::parse;
use crate::table::{Column, IndexedValue, Table};
use pgtypes::timestamp::Now;
use pgtypes::{IoEnv, SqlType, TimeZone, wire};

/// What stands before the stored text of an expression when it is bound.
const SELECT: &str = "SELECT ";

impl Binder<'_> {
    /// Binds RENAME VALUE: the enum as it was and as it is to be. 0A000 if a text would lose its meaning.
    pub(super) fn relabel(
        &self,
        tag: &'static str,
        (old, new): (EnumType, EnumType),
        at: Location,
    ) -> Result<Body, SqlError> {
        let (ty, old, new) = (old.ty(), Object::Enum(old), Object::Enum(new));
        let mut catalog = self.catalog.with_renamed(new.clone());
        let relabelling = Relabelling { ty, before: self.catalog, after: catalog.clone() };
        let (mut objects, mut tables) = (vec![(old, new)], Vec::new());
        for object in self.catalog.relations() {
            let Some(relabelled) = relabelling.object(&object) else { continue };
            self.note_relabelled(&object);
            catalog = catalog.with_renamed(relabelled.clone());
            objects.push(((*object).clone(), relabelled));
        }
        for table in self.catalog.tables() {
            let mut change = Alteration::of(table);
            relabelling.table(&mut change.new);
            if change.new != *change.old {
                self.look_up(Some(change.new.schema), &change.new.name);
                catalog = catalog.with_table(change.new.clone());
                tables.push(change);
            }
        }
        if self.unbound(&catalog, &[]).is_some() || self.has_unbound_view(&catalog) {
            let what = "a new name for a label that a view, a default or a constraint names in this way is";
            return Err(self.unsupported(what, at));
        }
        Ok(Body::AlterObjects(tag, objects, tables))
    }

    /// The statement depends on an object that it changes.
    fn note_relabelled(&self, object: &Object) {
        match object.is_type() {
            true => drop(self.look_up_type(object.schema(), object.name())),
            false => drop(self.look_up(object.schema(), object.name())),
        }
    }
}

/// A label with a new name.
struct Relabelling<'r> {
    /// The enum.
    ty: SqlType,
    before: &'r Catalog,
    /// The catalog with the new name.
    after: Catalog,
}

impl Relabelling<'_> {
    /// A view or a domain with the new label; `None` if it does not name the label.
    fn object(&self, object: &Object) -> Option<Object> {
        match object {
            Object::View(view) => self.view(view).map(Object::View),
            Object::Domain(domain) => Some(self.domain(domain)).filter(|new| new != domain).map(Object::Domain),
            _ => None,
        }
    }

    fn view(&self, view: &View) -> Option<View> {
        let parsed = parse::parse(&view.query).ok()?;
        let mut binder = Binder::new(parsed.first()?, None, self.before);
        binder.view_query(view).ok()?;
        let query = self.renamed(&binder)?;
        Some(View { query, ..view.clone() })
    }

    fn domain(&self, domain: &Domain) -> Domain {
        let (mut new, scope) = (domain.clone(), value_scope(domain));
        new.checks.iter_mut().for_each(|check| self.condition(&mut check.text, &scope));
        new.default.iter_mut().for_each(|text| self.value(text, &domain.as_column(), &Scope::default()));
        new
    }

    fn table(&self, table: &mut Table) {
        let scope = Scope::of_columns(table);
        for column in &mut table.columns {
            let known = column.clone();
            column.default.iter_mut().for_each(|text| self.value(text, &known, &Scope::default()));
            column.generated.iter_mut().for_each(|text| self.value(text, &known, &scope));
        }
        table.checks.iter_mut().for_each(|check| self.condition(&mut check.text, &scope));
        for index in &mut table.indexes {
            for column in &mut index.columns {
                if let IndexedValue::Expression { text, .. } = &mut column.value {
                    self.text(text, |binder, ast| {
                        let value = binder.expr(ast, &scope)?;
                        binder.resolve_unknown(value).map(drop)
                    });
                }
            }
            index.predicate.iter_mut().for_each(|text| self.condition(text, &scope));
        }
    }

    fn condition(&self, text: &mut String, scope: &Scope) {
        self.text(text, |binder, ast| binder.condition(ast, scope, "CHECK").map(drop));
    }

    /// The text of a column's value.
    fn value(&self, text: &mut String, column: &Column, scope: &Scope) {
        self.text(text, |binder, ast| {
            let value = binder.expr(ast, scope)?;
            binder.assign_default(value, column).map(drop)
        });
    }

    /// Gives a text the new label. A text without a meaning stays as it is.
    fn text(&self, text: &mut String, bind: impl FnOnce(&mut Binder<'_>, &Ast) -> Result<(), SqlError>) {
        let renamed = bind_stored(text, self.before, |binder, ast| {
            bind(binder, ast)?;
            Ok(self.renamed(binder))
        });
        if let Ok(Some(renamed)) = renamed
            && let Some(renamed) = renamed.strip_prefix(SELECT)
        {
            renamed.clone_into(text);
        }
    }

    /// The text that a binder has bound, with the new label; `None` if it does not name the label.
    fn renamed(&self, binder: &Binder<'_>) -> Option<String> {
        let source = &binder.statement.text;
        let literals = binder.literals.borrow();
        let of_enum = literals.iter().filter(|(ty, _)| ty.scalar().oid == self.ty.oid);
        let mut places: Vec<(usize, SqlType)> =
            of_enum.filter_map(|(ty, at)| Some((source.offset(*at)?, *ty))).collect();
        // A literal may have been bound twice.
        places.sort_by_key(|(place, _)| *place);
        places.dedup_by_key(|(place, _)| *place);
        let mut renamed = Vec::new();
        for (place, ty) in places {
            let mut lexer = Lexer::new(source.as_str());
            lexer.skip_to(place);
            let Some(Spanned { token: Token::Text(literal), start, end }) = lexer.next() else { continue };
            if let Some(literal) = self.literal(&literal, ty) {
                renamed.push((start..end, literal));
            }
        }
        (!renamed.is_empty()).then(|| replaced(source.as_str().to_owned(), renamed))
    }

    /// A literal with the new label, in quotes; `None` if it does not name the label.
    fn literal(&self, text: &str, ty: SqlType) -> Option<String> {
        let zone = TimeZone::utc();
        let before = IoEnv { names: self.before, ..IoEnv::new(&zone, Now(0)) };
        let after = IoEnv { names: &self.after, ..IoEnv::new(&zone, Now(0)) };
        let value = wire::parse(ty, text, &before).ok()?;
        let shown = wire::show(&value, ty, &after);
        (shown != wire::show(&value, ty, &before)).then(|| format!("'{}'", shown.replace('\'', "''")))
    }
}
