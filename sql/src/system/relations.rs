//! The descriptors of the relations of `pg_catalog` and `information_schema`, all that PostgreSQL 15 has: their OIDs,
//! and their columns in its order.
//!
//! To the binder such a relation is a [`Table`] like any other. It has no storage: its rows are computed.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::facts::{self, number};
use crate::object::SchemaId;
use crate::table::{Column, ColumnId, IndexId, StorageId, Table, TableId};
use pgtypes::{Oid, SqlType};

/// The schema of built-in objects.
pub(crate) const PG_CATALOG: (Oid, &str) = (Oid(11), "pg_catalog");
/// The schema of the views of the SQL standard.
pub(crate) const INFORMATION_SCHEMA: (Oid, &str) = (Oid(13207), "information_schema");

/// A relation of the system.
#[derive(Debug, PartialEq)]
pub(crate) struct Relation {
    /// As the binder sees it.
    pub(crate) table: Arc<Table>,
    /// Its schema: OID and name.
    pub(super) schema: (Oid, &'static str),
    /// Whether it is a view.
    pub(crate) is_view: bool,
    /// Whether all databases share it.
    pub(super) is_shared: bool,
    /// The types that its columns are declared with, which may be domains, and their collations.
    pub(super) declared: Vec<(Oid, Oid)>,
}

struct Index {
    all: Vec<Relation>,
    by_oid: HashMap<Oid, usize>,
    by_name: HashMap<(&'static str, String), usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let all: Vec<Relation> = facts::lines(include_str!("data/relations.txt")).filter_map(|line| read(&line)).collect();
    let by_oid = all.iter().enumerate().map(|(at, relation)| (relation.oid(), at)).collect();
    let name = |relation: &Relation| (relation.schema.1, relation.table.name.clone());
    let by_name = all.iter().enumerate().map(|(at, relation)| (name(relation), at)).collect();
    Index { all, by_oid, by_name }
});

/// A line of the text: OID, schema, name, kind, columns.
fn read(fields: &[&'static str]) -> Option<Relation> {
    let [oid, schema, name, kind, columns @ ..] = fields else { return None };
    let schema = if *schema == PG_CATALOG.1 { PG_CATALOG } else { INFORMATION_SCHEMA };
    let mut declared = Vec::with_capacity(columns.len());
    let mut described = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let (name, ty) = column.split_once(':')?;
        let (ty, collation) = ty.split_once('@').map_or((ty, None), |(ty, collation)| (ty, Some(number(collation))));
        let oid = number(ty.trim_end_matches('!'));
        let domain = facts::domains().iter().find(|domain| domain.oid == oid);
        let ty_of_values = domain.map_or(SqlType::new(oid), |domain| domain.base);
        let own = domain.map(|domain| domain.collation);
        let own = own.or_else(|| facts::of_type(ty_of_values).map(|facts| facts.collation));
        declared.push((oid, collation.or(own).unwrap_or(Oid::NONE)));
        described.push(Column {
            id: ColumnId(u16::try_from(at + 1).ok()?),
            name: name.to_owned(),
            ty: ty_of_values,
            not_null: ty.ends_with('!'),
            default: None,
            generated: None,
            identity: None,
            domain: None,
        });
    }
    let table = Table {
        id: TableId(number(oid).0),
        schema: SchemaId(schema.0.0),
        storage: StorageId(0),
        name: (*name).to_owned(),
        columns: described,
        primary_key: Vec::new(),
        key_name: String::new(),
        key_id: IndexId(0),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(0),
    };
    let (is_view, is_shared) = (*kind == "v", *kind == "R");
    Some(Relation { table: Arc::new(table), schema, is_view, is_shared, declared })
}

impl Relation {
    /// Its OID.
    pub(crate) fn oid(&self) -> Oid {
        Oid(self.table.id.0)
    }

    /// The name of its schema.
    pub(crate) fn schema_name(&self) -> &'static str {
        self.schema.1
    }

    /// Its name with that of its schema.
    pub(crate) fn full_name(&self) -> String {
        format!("{}.{}", self.schema.1, self.table.name)
    }
}

/// All relations of the system, by their OIDs.
pub(super) fn all() -> &'static [Relation] {
    &INDEX.all
}

/// The relation of a folded name. Without a schema it is one of `pg_catalog`, which comes before all others in each
/// search path.
pub(crate) fn find(schema: Option<&str>, name: &str) -> Option<&'static Relation> {
    let schema = match schema {
        None => PG_CATALOG.1,
        Some(schema) if schema == PG_CATALOG.1 => PG_CATALOG.1,
        Some(schema) if schema == INFORMATION_SCHEMA.1 => INFORMATION_SCHEMA.1,
        Some(_) => return None,
    };
    INDEX.by_name.get(&(schema, name.to_owned())).and_then(|at| INDEX.all.get(*at))
}

/// The relation that a table is, if it is one of the system.
pub(crate) fn of_table(table: &Table) -> Option<&'static Relation> {
    by_oid(Oid(table.id.0))
}

/// The relation of an OID.
pub(super) fn by_oid(oid: Oid) -> Option<&'static Relation> {
    INDEX.by_oid.get(&oid).and_then(|at| INDEX.all.get(*at))
}
