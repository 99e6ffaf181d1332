//! What depends on a column, a key or a sequence: generated columns, foreign keys of other tables, defaults. And what
//! goes with a column by itself: indexes and constraints over it.

use std::sync::Arc;

use super::index::{bind_indexes, stored_condition, stored_generated};
use super::node::Alteration;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::object::Object;
use crate::table::{ColumnId, ForeignKey, IndexedValue, Table, TableId};

/// Of dependent objects, each with what it depends on: 2BP01 if there are any. With CASCADE, the notice about them.
/// `what` is dropped; more than one object is `desired object(s)`.
pub(super) fn check_dependents(
    described: &[(String, String)],
    what: &str,
    cascade: bool,
) -> Result<Option<String>, SqlError> {
    if !cascade && !described.is_empty() {
        let lines: Vec<String> = described.iter().map(|(it, on)| format!("{it} depends on {on}")).collect();
        let it = if what.starts_with("desired") { "them" } else { "it" };
        let message = format!("cannot drop {what} because other objects depend on {it}");
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .detail(lines.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    Ok(match described {
        [] => None,
        [(only, _)] => Some(format!("drop cascades to {only}")),
        several => Some(format!("drop cascades to {} other objects", several.len())),
    })
}

/// Objects that cannot stay without another one.
#[derive(Default)]
pub(super) struct Dependents {
    /// Generated columns of the table.
    pub(super) columns: Vec<ColumnId>,
    /// Foreign keys, by their tables and names.
    foreign_keys: Vec<(TableId, String)>,
    /// Columns that lose their defaults.
    defaults: Vec<(TableId, ColumnId)>,
    /// Views, and sequences that a dropped column owns.
    objects: Vec<Arc<Object>>,
    /// Each with what it depends on: `constraint c on table t`, `table p`.
    described: Vec<(String, String)>,
}

impl Dependents {
    fn add_key(&mut self, table: &Table, key: &ForeignKey, on: String) {
        self.described.push((format!("constraint {} on table {}", key.name, table.name), on));
        self.foreign_keys.push((table.id, key.name.clone()));
    }

    /// Adds foreign keys that it does not have yet: `others` has nothing else. They come first, as in PostgreSQL.
    pub(super) fn add_keys(&mut self, others: Dependents) {
        let all = others.foreign_keys.into_iter().zip(others.described);
        let new = all.filter(|(key, _)| !self.foreign_keys.contains(key));
        let (mut keys, mut described): (Vec<_>, Vec<_>) = new.unzip();
        keys.append(&mut self.foreign_keys);
        described.append(&mut self.described);
        (self.foreign_keys, self.described) = (keys, described);
    }

    /// Adds the default of a column. `described`: the default, and what it depends on.
    pub(super) fn add_default(&mut self, table: TableId, column: ColumnId, described: (String, String)) {
        self.described.push(described);
        self.defaults.push((table, column));
    }

    /// Adds a view or sequence. `described`: it, and what it depends on; `None` if it goes without a word.
    pub(super) fn add_object(&mut self, object: Arc<Object>, described: Option<(String, String)>) {
        if !self.objects.iter().any(|known| known.id() == object.id()) {
            self.described.extend(described);
            self.objects.push(object);
        }
    }

    /// The views and sequences.
    pub(super) fn objects(&self) -> &[Arc<Object>] {
        &self.objects
    }

    /// Each with what it depends on.
    pub(super) fn described(&self) -> &[(String, String)] {
        &self.described
    }

    /// 2BP01 if there are any. With CASCADE, the notice about them.
    pub(super) fn check(&self, what: &str, cascade: bool) -> Result<Option<String>, SqlError> {
        check_dependents(&self.described, what, cascade)
    }

    /// Adds others. Those of `table` itself go at once.
    pub(super) fn add(&mut self, others: Dependents, table: &mut Table) {
        others.objects.into_iter().for_each(|object| self.add_object(object, None));
        for (id, column) in others.defaults {
            if id == table.id {
                lose_default(table, column);
            } else {
                self.defaults.push((id, column));
            }
        }
        for (id, name) in others.foreign_keys {
            if id == table.id {
                table.foreign_keys.retain(|key| key.name != name);
            } else {
                self.foreign_keys.push((id, name));
            }
        }
    }

    /// The changes of other tables that lose foreign keys or defaults.
    pub(super) fn alterations(self, catalog: &Catalog) -> Result<Vec<Alteration>, SqlError> {
        let mut changes: Vec<Alteration> = Vec::new();
        for (id, name) in self.foreign_keys {
            changed(&mut changes, id, catalog)?.foreign_keys.retain(|key| key.name != name);
        }
        for (id, column) in self.defaults {
            lose_default(changed(&mut changes, id, catalog)?, column);
        }
        Ok(changes)
    }
}

fn lose_default(table: &mut Table, column: ColumnId) {
    table.columns.iter_mut().filter(|known| known.id == column).for_each(|column| column.default = None);
}

/// The new descriptor of a table among changes; its change is added if there is none yet.
fn changed<'a>(changes: &'a mut Vec<Alteration>, id: TableId, catalog: &Catalog) -> Result<&'a mut Table, SqlError> {
    let at = match changes.iter().position(|change| change.old.id == id) {
        Some(at) => at,
        None => {
            let table = catalog.by_id(id).ok_or_else(|| SqlError::internal("a table is missing"))?;
            changes.push(Alteration::of(Arc::clone(table)));
            changes.len() - 1
        }
    };
    let change = changes.get_mut(at).ok_or_else(|| SqlError::internal("a change is missing"))?;
    Ok(&mut change.new)
}

/// The tables with foreign keys to a table, itself included.
fn referring<'c>(table: &'c Table, catalog: &'c Catalog) -> impl Iterator<Item = (&'c Table, &'c ForeignKey)> {
    let others = table.referenced_by.iter().filter_map(|id| catalog.by_id(*id)).map(|child| &**child);
    let id = table.id;
    let tables = std::iter::once(table).chain(others);
    tables.flat_map(move |child| {
        child.foreign_keys.iter().filter(move |key| key.parent == id).map(move |key| (child, key))
    })
}

/// What depends on a column, beside what goes with it.
pub(super) fn of_column(table: &Table, at: usize, catalog: &Catalog) -> Result<Dependents, SqlError> {
    let mut found = Dependents::default();
    let Some(column) = table.columns.get(at) else { return Ok(found) };
    for other in &table.columns {
        let Some(text) = &other.generated else { continue };
        if columns_of(&stored_generated(text, table, other, catalog)?, table).contains(&at) {
            let on = format!("column {} of table {}", column.name, table.name);
            found.described.push((format!("column {} of table {}", other.name, table.name), on));
            found.columns.push(other.id);
        }
    }
    for (child, key) in referring(table, catalog) {
        let goes_with_it = child.id == table.id && key.columns.contains(&at);
        if key.parent_columns.contains(&column.id) && !goes_with_it {
            found.add_key(child, key, format!("column {} of table {}", column.name, table.name));
        }
    }
    Ok(found)
}

/// The foreign keys that have lost the key `name` of a table, as it is without it.
pub(super) fn of_key(table: &Table, name: &str, catalog: &Catalog) -> Dependents {
    let mut found = Dependents::default();
    for (child, key) in referring(table, catalog) {
        let columns: Vec<usize> = key.parent_columns.iter().filter_map(|id| table.position_of(*id)).collect();
        if table.key_of(&columns).is_none() {
            found.add_key(child, key, format!("index {name}"));
        }
    }
    found
}

/// The foreign keys of other tables to tables that are dropped together.
pub(super) fn of_tables(tables: &[Arc<Table>], catalog: &Catalog) -> Dependents {
    let mut found = Dependents::default();
    for table in tables {
        for (child, key) in referring(table, catalog) {
            if !tables.iter().any(|dropped| dropped.id == child.id) {
                found.add_key(child, key, format!("table {}", table.name));
            }
        }
    }
    found
}

/// Removes a column, and the indexes, keys and constraints over it.
pub(super) fn without_column(table: &mut Table, at: usize, catalog: &Catalog) -> Result<(), SqlError> {
    let indexes = bind_indexes(table, catalog)?;
    let mut uses_it = indexes.iter().map(|bound| {
        let exprs = bound.columns.iter().chain(&bound.predicate);
        exprs.into_iter().any(|expr| columns_of(expr, table).contains(&at))
    });
    let uses_it: Vec<bool> = uses_it.by_ref().collect();
    let mut checks = Vec::new();
    for check in &table.checks {
        let condition = stored_condition(&check.text, table, catalog)?;
        if !columns_of(&condition, table).contains(&at) {
            checks.push(check.clone());
        }
    }
    table.checks = checks;
    let kept = table.indexes.iter().zip(uses_it).filter(|(index, uses)| !uses && !index.included.contains(&at));
    table.indexes = kept.map(|(index, _)| index.clone()).collect();
    if table.primary_key.contains(&at) {
        (table.primary_key, table.key_name) = (Vec::new(), String::new());
        table.key_id = crate::table::IndexId(0);
    }
    table.foreign_keys.retain(|key| !key.columns.contains(&at));
    let moved = |place: &mut usize| *place -= usize::from(*place > at);
    table.primary_key.iter_mut().for_each(moved);
    for index in &mut table.indexes {
        index.included.iter_mut().for_each(moved);
        for column in &mut index.columns {
            if let IndexedValue::Column(place) = &mut column.value {
                moved(place);
            }
        }
    }
    table.foreign_keys.iter_mut().for_each(|key| key.columns.iter_mut().for_each(moved));
    if at < table.columns.len() {
        table.columns.remove(at);
    }
    Ok(())
}

/// The columns that an expression reads.
fn columns_of(expr: &Expr, table: &Table) -> Vec<usize> {
    let mut used = vec![false; table.columns.len()];
    expr.mark_columns(&mut used);
    used.iter().enumerate().filter(|(_, used)| **used).map(|(at, _)| at).collect()
}
