//! The rows about schemas, tables, columns, indexes and constraints: from the catalog of the transaction and from the
//! descriptors of the system's own relations.
//!
//! The row types of tables have an OID and a row in `pg_type`, and nothing else. The system's own relations have no row
//! types and no indexes. There are no TOAST tables, and no column has a number below 1.

use std::collections::HashMap;
use std::sync::Arc;

use super::describe::index_definition;
use super::env::{Rows, SystemEnv, int, number, oid, rows_of, text};
use super::facts;
use super::names::shown_default;
use super::objects::{
    BTREE, HEAP, IndexView, default_oid, indexes, owner_of_schema, row_type, schema_of, schemas, sequences, views,
};
use super::producer::Producer;
use super::relations::{self, Relation};
use crate::catalog::Catalog;
use crate::table::{Identity, Table};
use pgtypes::{Datum, Oid, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_namespace",
        constants: &[],
        columns: &["oid", "nspname", "nspowner"],
        rows: |env| {
            let row = |(number, name)| vec![oid(number), text(name), oid(owner_of_schema(name).0)];
            rows_of(schemas(env.catalog()).into_iter().map(row).collect())
        },
    },
    Producer {
        relation: "pg_class",
        constants: &[
            ("reloftype", "0"),
            ("relowner", "10"),
            ("reltablespace", "0"),
            ("relpages", "0"),
            ("relallvisible", "0"),
            ("reltoastrelid", "0"),
            ("relhasrules", "f"),
            ("relhassubclass", "f"),
            ("relrowsecurity", "f"),
            ("relforcerowsecurity", "f"),
            ("relispopulated", "t"),
            ("relispartition", "f"),
            ("relrewrite", "0"),
            ("relfrozenxid", "0"),
            ("relminmxid", "0"),
        ],
        columns: &[
            "oid",
            "relname",
            "relnamespace",
            "relam",
            "relfilenode",
            "relhasindex",
            "relisshared",
            "relkind",
            "relnatts",
            "relreplident",
            "relchecks",
            "relhastriggers",
            "relpersistence",
            "reltuples",
            "reltype",
        ],
        rows: classes,
    },
    Producer {
        relation: "pg_attribute",
        constants: &[
            ("attstattarget", "-1"),
            ("attcacheoff", "-1"),
            ("attcompression", ""),
            ("atthasmissing", "f"),
            ("attisdropped", "f"),
            ("attislocal", "t"),
            ("attinhcount", "0"),
        ],
        columns: &[
            "attrelid",
            "attname",
            "atttypid",
            "attlen",
            "attnum",
            "attndims",
            "atttypmod",
            "attbyval",
            "attalign",
            "attstorage",
            "attnotnull",
            "atthasdef",
            "attcollation",
            "attgenerated",
            "attidentity",
        ],
        rows: attributes,
    },
    Producer {
        relation: "pg_attrdef",
        constants: &[],
        columns: &["oid", "adrelid", "adnum", "adbin"],
        rows: |env| {
            let catalog = env.catalog();
            rows_of(tables(env).flat_map(|table| defaults(&table, catalog)).collect())
        },
    },
    Producer {
        relation: "pg_tables",
        constants: &[("tableowner", "postgres"), ("hasrules", "f"), ("hastriggers", "f"), ("rowsecurity", "f")],
        columns: &["schemaname", "tablename", "hasindexes"],
        rows: |env| {
            let system = relations::all().iter().filter(|relation| !relation.is_view);
            let system = system.map(|relation| named(relation.schema.1, &relation.table));
            Box::new(system.chain(named_tables(env).map(|(schema, table)| named(&schema, &table))))
        },
    },
    Producer {
        relation: "pg_views",
        constants: &[("viewowner", "postgres")],
        columns: &["schemaname", "viewname", "definition"],
        rows: |env| {
            let system = relations::all().iter().filter(|relation| relation.is_view);
            let system = system.map(|relation| vec![text(relation.schema.1), text(&relation.table.name), Datum::Null]);
            let views = views(env.catalog()).into_iter();
            Box::new(
                system.chain(views.map(|view| vec![text(view.schema), text(view.table.name), text(view.definition)])),
            )
        },
    },
    Producer {
        relation: "pg_indexes",
        constants: &[],
        columns: &["schemaname", "tablename", "indexname", "indexdef"],
        rows: |env| {
            let catalog = Arc::clone(env.catalog());
            let row = move |(schema, table): (String, Arc<Table>)| {
                let row = |index: &IndexView| {
                    let definition = index_definition(&table, index, Some(&schema));
                    vec![text(&schema), text(&table.name), text(&index.name), text(definition)]
                };
                indexes(&table, &catalog).iter().map(row).collect::<Vec<_>>()
            };
            Box::new(named_tables(env).flat_map(row))
        },
    },
];

/// The users' tables by their ids.
pub(super) fn tables(env: &SystemEnv<'_>) -> impl Iterator<Item = Arc<Table>> + Send + Sync + use<> {
    env.catalog().tables().into_iter()
}

/// The users' tables with the names of their schemas.
pub(super) fn named_tables(env: &SystemEnv<'_>) -> impl Iterator<Item = (String, Arc<Table>)> + Send + Sync + use<> {
    let catalog = env.catalog();
    let named: Vec<(String, Arc<Table>)> =
        tables(env).map(|table| (schema_of(catalog, &table).to_owned(), table)).collect();
    named.into_iter()
}

/// The rows that each of the users' tables gives.
pub(super) fn each_table(
    env: &SystemEnv<'_>,
    rows: impl Fn(Arc<Table>) -> Vec<Vec<Datum>> + Send + Sync + 'static,
) -> Rows {
    Box::new(tables(env).flat_map(rows))
}

/// The rows that each index of the users' tables gives.
pub(super) fn each_index(env: &SystemEnv<'_>, row: fn(&Table, &IndexView) -> Vec<Datum>) -> Rows {
    let catalog = Arc::clone(env.catalog());
    each_table(env, move |table| indexes(&table, &catalog).iter().map(|index| row(&table, index)).collect())
}

fn named(schema: &str, table: &Table) -> Vec<Datum> {
    vec![text(schema), text(&table.name), Datum::Bool(!(table.key_name.is_empty() && table.indexes.is_empty()))]
}

fn classes(env: &SystemEnv<'_>) -> Rows {
    let system = relations::all().iter().map(system_class);
    let views = views(env.catalog()).into_iter().map(|view| object_class(&view.table, "v"));
    let sequences = sequences(env.catalog());
    let sequences = sequences.into_iter().map(|sequence| {
        let mut row = class_row((sequence.id.0, &sequence.name, sequence.schema.0), ("S", "n"), 3);
        row[4] = int(sequence.id.0);
        row
    });
    let catalog = Arc::clone(env.catalog());
    let tables = tables(env).flat_map(move |table| {
        let indexes = indexes(&table, &catalog);
        let of_table = class(&table, !indexes.is_empty());
        std::iter::once(of_table)
            .chain(indexes.into_iter().map(|index| index_class(&table, &index)))
            .collect::<Vec<_>>()
    });
    let catalog = env.catalog();
    let temporary: Vec<Datum> =
        catalog.schemas().filter(|schema| schema.session_node.is_some()).map(|schema| int(schema.id.0)).collect();
    let all = system.chain(sequences).chain(tables).chain(views);
    let counted = counted_rows(env);
    Box::new(all.map(move |mut row| {
        row.push(text(if row.get(2).is_some_and(|schema| temporary.contains(schema)) { "t" } else { "p" }));
        let rows = match row.first() {
            Some(Datum::Int(id)) => counted.get(id).copied(),
            _ => None,
        };
        // Of type `real`.
        row.push(Datum::Float(rows.map_or(-1.0, |rows| f64::from(rows as f32))));
        let has_rows = [text("r"), text("v")].iter().any(|kind| row.get(7) == Some(kind));
        let row_type = row.first().filter(|_| has_rows).map_or(Oid::NONE, |id| row_type(number(&[id], 0)));
        row.push(oid(row_type));
        row
    }))
}

/// The rows that ANALYZE has counted, by the OIDs of tables and of their indexes. Partial indexes have fewer.
fn counted_rows(env: &SystemEnv<'_>) -> HashMap<i64, f64> {
    let statistics = env.catalog().statistics();
    let mut counted = HashMap::new();
    for table in tables(env) {
        let Some(rows) = statistics.get(table.id).and_then(|found| found.rows_of(&table)) else { continue };
        let whole = indexes(&table, env.catalog()).into_iter().filter(|index| index.predicate.is_none());
        counted.insert(i64::from(table.id.0), rows);
        counted.extend(whole.map(|index| (i64::from(index.oid.0), rows)));
    }
    counted
}

fn object_class(shown: &Table, kind: &str) -> Vec<Datum> {
    class_row((shown.id.0, &shown.name, shown.schema.0), (kind, "n"), shown.columns.len())
}

/// A row of `pg_class` without storage.
fn class_row((id, name, schema): (u32, &str, u32), (kind, replica_identity): (&str, &str), width: usize) -> Vec<Datum> {
    vec![
        int(id),
        text(name),
        int(schema),
        int(0),
        int(0),
        Datum::Bool(false),
        Datum::Bool(false),
        text(kind),
        int(width),
        text(replica_identity),
        int(0),
        Datum::Bool(false),
    ]
}

fn system_class(relation: &'static Relation) -> Vec<Datum> {
    vec![
        oid(relation.oid()),
        text(&relation.table.name),
        oid(relation.schema.0),
        oid(if relation.is_view { Oid::NONE } else { HEAP }),
        int(0),
        Datum::Bool(false),
        Datum::Bool(relation.is_shared),
        text(if relation.is_view { "v" } else { "r" }),
        int(relation.table.columns.len()),
        text("n"),
        int(0),
        Datum::Bool(false),
    ]
}

fn class(table: &Table, has_index: bool) -> Vec<Datum> {
    vec![
        int(table.id.0),
        text(&table.name),
        int(table.schema.0),
        oid(HEAP),
        int(table.storage.0),
        Datum::Bool(has_index),
        Datum::Bool(false),
        text("r"),
        int(table.columns.len()),
        text("d"),
        int(table.checks.len()),
        // As in PostgreSQL, where triggers check them.
        Datum::Bool(!table.foreign_keys.is_empty() || !table.referenced_by.is_empty()),
    ]
}

fn index_class(table: &Table, index: &IndexView) -> Vec<Datum> {
    vec![
        oid(index.oid),
        text(&index.name),
        int(table.schema.0),
        oid(BTREE),
        oid(index.oid),
        Datum::Bool(false),
        Datum::Bool(false),
        text("i"),
        int(index.keys.len() + index.included.len()),
        text("n"),
        int(0),
        Datum::Bool(false),
    ]
}

fn attributes(env: &SystemEnv<'_>) -> Rows {
    let system = relations::all().iter().flat_map(|relation| {
        let declared = relation.table.columns.iter().zip(&relation.declared);
        declared.enumerate().map(move |(at, (column, (ty, collation)))| {
            let attribute = Attribute { relation: relation.oid(), name: &column.name, number: at + 1, ty: column.ty };
            let flags = Flags { not_null: column.not_null, ..Flags::default() };
            let mut row = attribute.row(flags, Some(*collation));
            // The modifier of a domain is that of the domain, not of its columns.
            if *ty != column.ty.oid {
                set(&mut row, 2, oid(*ty));
                set(&mut row, 6, int(-1));
            }
            row
        })
    });
    let views = views(env.catalog()).into_iter().map(|view| Arc::new(view.table));
    let catalog = Arc::clone(env.catalog());
    Box::new(system.chain(tables(env).chain(views).flat_map(move |table| {
        let relation = Oid(table.id.0);
        let mut rows = Vec::with_capacity(table.columns.len() + table.primary_key.len());
        for column in &table.columns {
            let number = usize::from(column.id.0);
            let attribute = Attribute { relation, name: &column.name, number, ty: column.ty };
            let is_generated = column.generated.is_some();
            let has_default = is_generated || column.default.is_some() && column.identity.is_none();
            let identity = match column.identity {
                None => "",
                Some(Identity::Always) => "a",
                Some(Identity::ByDefault) => "d",
            };
            let flags = Flags { not_null: column.not_null, has_default, is_generated, identity };
            let mut row = attribute.row(flags, None);
            if let Some(domain) = column.domain {
                set(&mut row, 2, int(domain.0));
                set(&mut row, 6, int(-1));
            }
            rows.push(row);
        }
        for index in indexes(&table, &catalog) {
            for (at, (name, ty)) in index.attributes(&table).iter().enumerate() {
                let attribute = Attribute { relation: index.oid, name, number: at + 1, ty: *ty };
                rows.push(attribute.row(Flags::default(), None));
            }
        }
        rows
    })))
}

fn set(row: &mut [Datum], at: usize, value: Datum) {
    if let Some(slot) = row.get_mut(at) {
        *slot = value;
    }
}

/// What a row of `pg_attribute` is about.
struct Attribute<'a> {
    relation: Oid,
    name: &'a str,
    number: usize,
    ty: SqlType,
}

#[derive(Default)]
struct Flags {
    not_null: bool,
    has_default: bool,
    is_generated: bool,
    identity: &'static str,
}

impl Attribute<'_> {
    /// The row. Without a collation it is that of the type.
    fn row(&self, flags: Flags, collation: Option<Oid>) -> Vec<Datum> {
        let facts = facts::of_type(self.ty);
        let own = facts.map_or(Oid::NONE, |facts| facts.collation);
        vec![
            oid(self.relation),
            text(self.name),
            oid(self.ty.oid),
            int(self.ty.row().len),
            int(self.number),
            int(u8::from(self.ty.is_array())),
            int(self.ty.typmod),
            Datum::Bool(facts.is_some_and(|facts| facts.by_value)),
            text(facts.map_or("i", |facts| facts.align)),
            text(facts.map_or("p", |facts| facts.storage)),
            Datum::Bool(flags.not_null),
            Datum::Bool(flags.has_default),
            oid(collation.unwrap_or(own)),
            text(if flags.is_generated { "s" } else { "" }),
            text(flags.identity),
        ]
    }
}

fn defaults(table: &Table, catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |column: &crate::table::Column| {
        let shown = shown_default(column, catalog);
        let generated = || Some(catalog.shown_text(column.generated.as_deref()?).into_owned());
        let text_of_default = shown.or_else(generated)?;
        let number = default_oid(table.id, column.id);
        Some(vec![oid(number), int(table.id.0), int(column.id.0), text(text_of_default)])
    };
    table.columns.iter().filter_map(row).collect()
}
