//! Views: CREATE VIEW, and the query of a view where a statement reads it.
//!
//! A view keeps the text of its query, with the names in it made exact ([`super::view_text`]), and the ids of the
//! relations that it reads. Where it is read, a binder of its own binds the text. It finds a name in the schemas of the
//! view's search path, and only those relations there that the view uses. So neither the reader's search path nor later
//! relations change what the view means. Its look-ups become those of the statement: a plan is valid as long as the
//! view and all below it are the same.

use std::sync::Arc;

use sqlparser::ast::{CreateTableOptions, CreateView, Ident, ObjectName, Spanned, Statement};
use sqlparser::tokenizer::Location;

use super::binder::Binder;
use super::fixed_names::replaced;
use super::names::fold_ident;
use super::node::{Body, NewObject, Notice, ResultColumn};
use super::rel::SelectPlan;
use super::type_name::check_column_type;
use super::view_text::{Edit, Rewrite, rewritten};
use crate::catalog::{Catalog, Relation, Sight};
use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, View};
use crate::parse::{self, Parsed, query_start};
use pgtypes::SqlType;

/// How deep views may read views.
const MAX_NESTED: usize = 32;
/// How many queries of views one statement may hold.
const MAX_EXPANDED: usize = 1000;

impl Binder<'_> {
    /// The view that a name means, if it means one.
    pub(super) fn find_view(&self, name: &ObjectName) -> Result<Option<Arc<Object>>, SqlError> {
        let parts = self.name_parts(name)?;
        if self.of_system(&parts).is_some() {
            return Ok(None);
        }
        self.check_database(&parts, name)?;
        Ok(match self.find_by_parts(&parts)? {
            Some(Relation::Object(object)) if matches!(*object, Object::View(_)) => Some(object),
            _ => None,
        })
    }

    /// Binds the query of a view. Errors have no position: the text is not the client's.
    pub(super) fn view_query(&mut self, view: &View) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        if self.views.contains(&view.id) {
            let message = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        self.expanded += 1;
        if self.views.len() >= MAX_NESTED || self.expanded > MAX_EXPANDED {
            let error = SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "views nest too deep");
            return Err(error.detail(format!(
                "Views read views up to {MAX_NESTED} levels deep, and one statement reads up to {MAX_EXPANDED}."
            )));
        }
        let parsed = parse::parse(&view.query)?;
        let [statement] = parsed.as_slice() else { return Err(SqlError::internal("a view has no query")) };
        let path = view.path.clone().into();
        let sight = Sight { database: self.catalog.sight().database, path, temporary: None };
        let catalog = self.catalog.seen_from(&sight);
        // A view in a view: each level adds to the stack.
        let is_deep = statement.is_deep() || self.views.len() == 1;
        let bound = deep_stack::run(is_deep, || self.stored_query(view, statement, &catalog));
        let (plan, mut columns) = bound.map_err(|error| SqlError { position: None, ..error })?;
        for (at, (column, (name, _))) in columns.iter_mut().zip(&view.columns).enumerate() {
            column.name.clone_from(name);
            column.origin = (view.id.0, i16::try_from(at + 1).unwrap_or(0));
        }
        Ok((plan, columns))
    }

    /// Binds the text of a view with a binder of its own, which adds to the sub-queries of the statement.
    fn stored_query(
        &mut self,
        view: &View,
        statement: &Parsed,
        catalog: &Catalog,
    ) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let Statement::Query(query) = &statement.tree else { return Err(SqlError::internal("a view is no query")) };
        let mut inner = Binder::new(statement, None, catalog);
        (inner.is_stored, inner.depth, inner.expanded) = (true, self.depth, self.expanded);
        inner.only = Some(view.uses.clone());
        inner.views = std::mem::take(&mut self.views);
        inner.views.push(view.id);
        inner.subplans = std::mem::take(&mut self.subplans);
        inner.with = std::mem::take(&mut self.with);
        // What is asked for are the names in the text of the outermost view itself.
        if inner.views.len() == 1 {
            inner.columns_used = std::mem::take(&mut self.columns_used);
            inner.names_read = std::mem::take(&mut self.names_read);
        }
        let bound = inner.query(query);
        inner.views.pop();
        let lookups = inner.take_lookups();
        if inner.views.is_empty() {
            (self.columns_used, self.names_read) = (inner.columns_used, inner.names_read);
            self.literals.borrow_mut().append(inner.literals.get_mut());
        }
        self.views = inner.views;
        (self.subplans, self.with, self.expanded) = (inner.subplans, inner.with, inner.expanded);
        self.lookups.borrow_mut().extend(lookups);
        bound
    }

    /// Binds CREATE VIEW.
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<Body, SqlError> {
        const TAG: &str = "CREATE VIEW";
        let at = create.name.span().start;
        self.refuse_view_options(create, at)?;
        let (mut schema, name) = self.new_relation(&create.name, create.temporary)?;
        self.allows_params = false;
        if !create.query.locks.is_empty() {
            return Err(self.unsupported("a row lock in a view is", query_start(&create.query)));
        }
        self.uses.take();
        self.rewrites = Some(Vec::new());
        let (_, columns) = self.query(&create.query)?;
        let rewrites = self.rewrites.take().unwrap_or_default();
        let uses = self.uses.take();
        if !self.is_temporary(schema) && uses.iter().any(|id| self.is_temporary_relation(*id)) {
            schema = self.catalog.sight().temporary.unwrap_or(schema);
            let message = format!("view \"{name}\" will be a temporary view");
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        let columns = self.view_columns(columns, create)?;
        let path = self.catalog.sight().searched().collect();
        let mut view = View { id: ObjectId(0), schema, name, columns, query: String::new(), path, uses };
        self.give_text(&mut view, &rewrites, at)?;
        // The view is not read: its queries are no part of the plan.
        self.subplans.clear();
        self.with.clear();
        match self.look_up(Some(schema), &view.name) {
            None => Ok(Body::CreateObject(TAG, Some(NewObject::Relation(Object::View(view))))),
            Some(_) if !create.or_replace => {
                let message = format!("relation \"{}\" already exists", view.name);
                Err(SqlError::new(SqlState::DUPLICATE_TABLE, message))
            }
            Some(Relation::Object(old)) if matches!(*old, Object::View(_)) => {
                let Object::View(before) = &*old else { return Err(SqlError::internal("a view is no view")) };
                check_replaced(&before.columns, &view.columns)?;
                let new = Object::View(View { id: before.id, ..view });
                let what = format!("view {}", before.name);
                self.check_readers((before.id, &what), &self.catalog.with_renamed(new.clone()), &[])?;
                Ok(Body::AlterObject(TAG, (*old).clone(), new))
            }
            Some(_) => {
                let message = format!("\"{}\" is not a view", view.name);
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    fn refuse_view_options(&self, create: &CreateView, at: Location) -> Result<(), SqlError> {
        if create.materialized {
            return Err(self.unsupported("CREATE MATERIALIZED VIEW is", at));
        }
        if !matches!(create.options, CreateTableOptions::None) {
            return Err(self.unsupported("an option of a view is", at));
        }
        let has_unsupported_clause = create.or_alter
            || create.secure
            || create.if_not_exists
            || create.with_no_schema_binding
            || create.copy_grants
            || create.comment.is_some()
            || create.to.is_some()
            || create.params.is_some()
            || !create.cluster_by.is_empty()
            || create.columns.iter().any(|column| column.data_type.is_some() || column.options.is_some());
        if has_unsupported_clause { Err(self.unsupported("this form of CREATE VIEW is", at)) } else { Ok(()) }
    }

    /// Names and types of a view's columns.
    fn view_columns(
        &self,
        columns: Vec<ResultColumn>,
        create: &CreateView,
    ) -> Result<Vec<(String, SqlType)>, SqlError> {
        if create.columns.len() > columns.len() {
            let message = "CREATE VIEW specifies more column names than columns";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut named: Vec<(String, SqlType)> = columns.into_iter().map(|column| (column.name, column.ty)).collect();
        for (column, given) in named.iter_mut().zip(&create.columns) {
            self.check_new_name(&given.name)?;
            column.0 = fold_ident(&given.name);
        }
        for (name, ty) in &named {
            check_column_type(name, *ty)?;
        }
        let mut seen = std::collections::HashSet::new();
        match named.iter().find(|(name, _)| !seen.insert(name)) {
            Some((name, _)) => {
                let message = format!("column \"{name}\" specified more than once");
                Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
            }
            None => Ok(named),
        }
    }

    /// Gives a view its text: the one with most of the changes that means the same. 0A000 if none does.
    fn give_text(&mut self, view: &mut View, rewrites: &[Rewrite], at: Location) -> Result<(), SqlError> {
        const KEPT: [fn(&Edit) -> bool; 3] =
            [|edit| matches!(edit, Edit::Star(_)), |_| true, |edit| !matches!(edit, Edit::Row { .. })];
        let statement = self.statement;
        let range = statement.query_after_as();
        let mut texts = KEPT.iter().map(|is_kept| {
            let kept = rewrites.iter().filter(|(_, edit)| is_kept(edit));
            range.and_then(|range| rewritten(&statement.text, range, kept))
        });
        let plain = texts.next().flatten();
        view.query = plain.ok_or_else(|| SqlError::internal("the text of a view's query is not found"))?;
        self.check_stored(view, at)?;
        let plan = self.shown_query(view, self.catalog);
        for query in texts.flatten() {
            let other = View { query, ..view.clone() };
            let is_same = plan.is_some() && self.shown_query(&other, self.catalog) == plan;
            if is_same || other.query == view.query {
                *view = other;
                break;
            }
        }
        self.fix_names(view, at)
    }

    /// Puts ids in the place of the types, and of relations in constants, that the text of a view names
    /// ([`super::fixed_names`]).
    fn fix_names(&mut self, view: &mut View, at: Location) -> Result<(), SqlError> {
        let mut binder = Binder::new(self.statement, None, self.catalog);
        binder.names_read = Some(Vec::new()).into();
        binder.view_query(view)?;
        let names = binder.names_read.take().unwrap_or_default();
        if !names.is_empty() {
            view.query = replaced(std::mem::take(&mut view.query), names);
            self.check_stored(view, at)?;
        }
        Ok(())
    }

    /// The plan of a view's query in a catalog, to be compared; `None` if it has no meaning there.
    pub(super) fn shown_query(&self, view: &View, catalog: &Catalog) -> Option<String> {
        let mut binder = Binder::new(self.statement, None, catalog);
        let (plan, _) = binder.view_query(view).ok()?;
        let whole = (plan, binder.subplans, binder.with);
        // The plan may be deep.
        deep_stack::run(true, || Ok(format!("{whole:?}"))).ok()
    }

    /// Whether the views that name an object mean the same in another catalog, which has another name for it.
    pub(super) fn views_stay(&self, id: ObjectId, catalog: &Catalog) -> bool {
        self.views_of(id).iter().all(|object| match &**object {
            Object::View(view) => {
                let now = self.shown_query(view, self.catalog);
                now.is_some() && now == self.shown_query(view, catalog)
            }
            _ => true,
        })
    }

    /// 0A000 unless the stored text means what the client's does.
    fn check_stored(&mut self, view: &View, at: Location) -> Result<(), SqlError> {
        let is_same = self.view_query(view).is_ok_and(|(_, columns)| {
            columns.iter().map(|column| column.ty).eq(view.columns.iter().map(|(_, ty)| *ty))
        });
        if is_same { Ok(()) } else { Err(self.unsupported("a view of this query is", at)) }
    }

    /// Whether the query of a view has a meaning now and none in another catalog.
    pub(super) fn has_unbound_view(&self, catalog: &Catalog) -> bool {
        let is_bound = |view: &View, catalog| Binder::new(self.statement, None, catalog).view_query(view).is_ok();
        let was_bound = |id| match self.catalog.object(id).map(|object| &**object) {
            Some(Object::View(view)) => is_bound(view, self.catalog),
            _ => false,
        };
        catalog.relations().iter().any(|object| match &**object {
            Object::View(view) => !is_bound(view, catalog) && was_bound(view.id),
            _ => false,
        })
    }

    /// Binds ALTER VIEW ... RENAME TO, or ALTER TABLE of a view. Other actions are 42809.
    pub(super) fn rename_view(
        &mut self,
        (tag, old): (&'static str, &Object),
        to: &ObjectName,
    ) -> Result<Body, SqlError> {
        let Object::View(view) = old else { return Err(SqlError::internal("a view is no view")) };
        let at = to.span().start;
        let mut parts = self.name_parts(to)?;
        let name = match (parts.pop(), parts.is_empty()) {
            (Some(name), true) => name,
            _ => return Err(self.unsupported("this form of ALTER VIEW is", at)),
        };
        if self.look_up(Some(view.schema), &name).is_some() {
            let message = format!("relation \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        // The text of a view names what it reads.
        if self.is_used(view.id) {
            return Err(self.unsupported("a new name for a view that other views read is", at));
        }
        Ok(Body::AlterObject(tag, old.clone(), Object::View(View { name, ..view.clone() })))
    }

    /// Binds ALTER VIEW ... RENAME COLUMN, or ALTER TABLE of a view.
    pub(super) fn rename_view_column(
        &mut self,
        (tag, old): (&'static str, &Object),
        from: &Ident,
        to: &Ident,
    ) -> Result<Body, SqlError> {
        let Object::View(view) = old else { return Err(SqlError::internal("a view is no view")) };
        self.check_new_name(to)?;
        let (from, to) = (fold_ident(from), fold_ident(to));
        let place = |wanted: &str| view.columns.iter().position(|(name, _)| name == wanted);
        let Some(at) = place(&from) else {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist")));
        };
        if place(&to).is_some() {
            let message = format!("column \"{to}\" of relation \"{}\" already exists", view.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let number = u16::try_from(at + 1).unwrap_or(0);
        self.refuse_read_name("column", &self.views_of_number(view.id, number)?)?;
        let mut new = view.clone();
        new.columns[at].0 = to;
        let new = Object::View(new);
        let what = format!("view {}", view.name);
        self.check_readers((view.id, &what), &self.catalog.with_renamed(new.clone()), &[])?;
        Ok(Body::AlterObject(tag, old.clone(), new))
    }
}

/// 42P16 unless the new columns begin with the old ones.
fn check_replaced(old: &[(String, SqlType)], new: &[(String, SqlType)]) -> Result<(), SqlError> {
    let error = |message: String| SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if new.len() < old.len() {
        return Err(error("cannot drop columns from view".to_owned()));
    }
    for ((old_name, old_type), (new_name, new_type)) in old.iter().zip(new) {
        if old_name != new_name {
            let message = format!("cannot change name of view column \"{old_name}\" to \"{new_name}\"");
            let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
            return Err(error(message).hint(hint));
        }
        if old_type != new_type {
            let (old_type, new_type) = (old_type.name(), new_type.name());
            let message =
                format!("cannot change data type of view column \"{old_name}\" from {old_type} to {new_type}");
            return Err(error(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_only_be_added() {
        let (int, text) = (SqlType::INT4, SqlType::TEXT);
        let columns = |list: &[(&str, SqlType)]| -> Vec<(String, SqlType)> {
            list.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect()
        };
        let old = columns(&[("a", int), ("b", text)]);
        assert_eq!(check_replaced(&old, &columns(&[("a", int), ("b", text), ("c", int)])), Ok(()));
        for new in [&[("a", int)][..], &[("a", int), ("c", text)], &[("a", int), ("b", int)]] {
            let refused = check_replaced(&old, &columns(new)).expect_err("refused");
            assert_eq!(refused.code, SqlState::INVALID_TABLE_DEFINITION);
        }
    }
}
