//! Binding of UPDATE and DELETE.

use std::sync::Arc;

use sqlparser::ast::{Delete, Expr as Ast, Spanned, TableFactor, TableWithJoins, Update, UpdateTableFromKind};
use sqlparser::tokenizer::Location;

use super::access::{TableAccess, whole_rows};
use super::binder::{Binder, Scope};
use super::bound_index::TableWrite;
use super::conditions::{conjunction, conjuncts};
use super::from::From;
use super::index::bind_indexes;
use super::joins::{join, push, rel_width, table_scan};
use super::node::{DeletePlan, Joined, ResultColumn, UpdatePlan};
use super::references::changed_keys;
use super::rel::{JoinKind, Rel, SelectPlan, Source};
use crate::error::{SqlError, SqlState};
use crate::expr::{Expr, fold};
use crate::table::Table;

/// The tables beside the target, as a node.
type Others = Rel;

impl Binder<'_> {
    /// Binds UPDATE.
    pub(super) fn update(&mut self, update: &Update) -> Result<(UpdatePlan, Option<Vec<ResultColumn>>), SqlError> {
        let at = update.table.span().start;
        if update.or.is_some() || update.output.is_some() || update.limit.is_some() || !update.order_by.is_empty() {
            return Err(self.unsupported("this form of UPDATE is", at));
        }
        let from = match &update.from {
            None => None,
            Some(UpdateTableFromKind::AfterSet(from)) => Some(from),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(self.unsupported("this form of UPDATE is", at)),
        };
        let (table, mut scope) = self.changed_table(std::slice::from_ref(&update.table), at)?;
        let others = from.map(|from| self.other_tables(&table, &mut scope, from)).transpose()?;
        // The clauses are bound in PostgreSQL's order: parameters get their types, and errors come, in it.
        let filter = self.where_clause(update.selection.as_ref(), &scope)?;
        let (returning, columns) = self.returning(update.returning.as_deref(), &scope)?;
        self.clause = "UPDATE";
        let mut assignments = Vec::new();
        for assignment in &update.assignments {
            self.assignment(assignment, &table, &scope, &mut assignments)?;
        }
        let (changes_key, changes_unique) = changed_keys(&table, &assignments);
        let write = self.table_write(table)?;
        let (access, filter, joined) = self.target(&write, others, filter, &scope)?;
        let plan = UpdatePlan { access, filter, assignments, write, changes_key, changes_unique, returning, joined };
        Ok((plan, columns))
    }

    fn changed_table(&mut self, from: &[TableWithJoins], at: Location) -> Result<(Arc<Table>, Scope), SqlError> {
        if let [TableWithJoins { relation: TableFactor::Table { name, .. }, .. }] = from
            && self.find_view(name)?.is_some()
        {
            return Err(self.unsupported("UPDATE and DELETE of a view are", at));
        }
        // The target is a table, even if WITH gives its name to a query.
        let names = std::mem::take(&mut self.with_names);
        let target = self.from(from);
        self.with_names = names;
        match target? {
            (From::Table(table), scope) => {
                self.check_changeable(&table)?;
                Ok((table, scope))
            }
            _ => Err(self.unsupported("this target is", at)),
        }
    }

    fn where_clause(&mut self, selection: Option<&Ast>, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        self.clause = "WHERE";
        let condition = selection.map(|ast| self.condition(ast, scope, "WHERE")).transpose()?;
        Ok(condition.map(fold::filter))
    }

    /// Binds DELETE.
    pub(super) fn delete(
        &mut self,
        delete: &Delete,
        from: &[TableWithJoins],
    ) -> Result<(DeletePlan, Option<Vec<ResultColumn>>), SqlError> {
        let at = delete.delete_token.0.span.start;
        let unsupported = delete.output.is_some() || delete.limit.is_some() || !delete.order_by.is_empty();
        if unsupported || !delete.tables.is_empty() {
            return Err(self.unsupported("this form of DELETE is", at));
        }
        let (table, mut scope) = self.changed_table(from, at)?;
        let others = delete.using.as_ref().map(|using| self.other_tables(&table, &mut scope, using)).transpose()?;
        let filter = self.where_clause(delete.selection.as_ref(), &scope)?;
        let (returning, columns) = self.returning(delete.returning.as_deref(), &scope)?;
        let write = self.table_write(table)?;
        let (access, filter, joined) = self.target(&write, others, filter, &scope)?;
        Ok((DeletePlan { access, filter, write, returning, joined }, columns))
    }

    /// Binds FROM of UPDATE, or USING of DELETE. Their columns follow those of the target and the key of its row.
    fn other_tables(&mut self, target: &Table, scope: &mut Scope, from: &[TableWithJoins]) -> Result<Others, SqlError> {
        let (from, columns) = self.from(from)?;
        for table in &columns.tables {
            if scope.tables.iter().any(|other| other.name == table.name) {
                let message = format!("table name \"{}\" specified more than once", table.name);
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
        let rel = match from {
            From::Rel(rel) => rel,
            From::Table(table) => {
                let indexes = bind_indexes(&table, self.catalog)?;
                table_scan((table, indexes, columns.alias()), columns.names(), false)
            }
            From::Nothing => return Err(SqlError::internal("an empty FROM")),
        };
        scope.extend_at(target.columns.len() + 1, columns);
        Ok(rel)
    }

    /// How the rows of the target are found.
    #[expect(clippy::type_complexity, reason = "the three ways in which a plan says what it reads")]
    fn target(
        &self,
        write: &TableWrite,
        others: Option<Others>,
        filter: Option<Expr>,
        scope: &Scope,
    ) -> Result<(TableAccess, Option<Expr>, Option<Box<Joined>>), SqlError> {
        let Some(others) = others else {
            let (access, filter) = whole_rows(write, filter, &self.known);
            return Ok((TableAccess { alias: scope.alias(), ..access }, filter, None));
        };
        let (access, _) = whole_rows(write, None, &self.known);
        let access = TableAccess { alias: scope.alias(), ..access };
        Ok((access, None, Some(Box::new(joined(write, others, filter, scope)))))
    }
}

/// Joins the target with the other tables. Those that have few rows come first: the target's are then looked up.
fn joined(write: &TableWrite, others: Others, condition: Option<Expr>, scope: &Scope) -> Joined {
    let table = &write.table;
    let (width, more) = (table.columns.len() + 1, rel_width(&others));
    let access = TableAccess::whole(table.clone(), write.indexes.clone());
    let access = TableAccess { with_key: true, alias: scope.alias(), ..access };
    let mut names = scope.names();
    names.insert(names.len().min(width - 1), "ctid".to_owned());
    let own_names = names.iter().take(width).cloned().collect();
    let target = Rel::Query(Box::new(SelectPlan::of(Source::Table(access), width, own_names)));
    let is_first = !is_small(&others);
    let place = |at: usize| match (is_first, at < width) {
        (true, _) => at,
        (false, true) => at + more,
        (false, false) => at - width,
    };
    let (left, right) = match is_first {
        true => ((target, width), (others, more)),
        false => ((others, more), (target, width)),
    };
    let mut rel = Rel::Join(Box::new(join(JoinKind::Inner, left, right, Vec::new(), None)));
    let mut parts = Vec::new();
    condition.clone().into_iter().for_each(|condition| conjuncts(condition, &mut parts));
    for part in &mut parts {
        part.replace_with(&mut |part| match part {
            Expr::Column(at) => Some(Expr::Column(place(*at))),
            _ => None,
        });
    }
    let filter = conjunction(push(&mut rel, parts));
    let mut placed = vec![String::new(); width + more];
    for (at, name) in names.into_iter().enumerate() {
        if let Some(slot) = placed.get_mut(place(at)) {
            *slot = name;
        }
    }
    let mut source = SelectPlan::of(Source::Rel(Box::new(rel)), width + more, placed);
    source.output = (0..width + more).map(|at| Expr::Column(place(at))).collect();
    source.filter = filter;
    Joined { source, condition }
}

/// Whether a node has few rows whatever tables hold.
fn is_small(rel: &Rel) -> bool {
    match rel {
        Rel::Query(plan) => match &plan.source {
            Source::Single | Source::Values(_) => true,
            Source::Table(_) | Source::System(_) => plan.limit.is_some(),
            Source::Rel(rel) => plan.limit.is_some() || is_small(rel),
        },
        Rel::Function(_) | Rel::With(_) => true,
        Rel::Join(_) => false,
        Rel::Set(set) => is_small(&set.left) && is_small(&set.right),
        Rel::SetValues(values) => is_small(&values.input),
        Rel::Windows(windows) => is_small(&windows.input),
    }
}
