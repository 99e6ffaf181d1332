//! The rows about schemas, tables, columns, indexes and constraints: from the catalog of the transaction and from the
//! descriptors of the system's own relations.
//!
//! Tables have no row type and no TOAST table, and no column has a number below 1. The relations of the system have no
//! indexes.

use std::sync::Arc;

use super::describe::{constraint_definition, index_definition};
use super::env::{Rows, SystemEnv, array, int, oid, rows_of, text, vector};
use super::facts;
use super::names::shown_default;
use super::objects::{BTREE, HEAP, IndexView, Part, derived, indexes, schema_of, schemas, sequences};
use super::producer::Producer;
use super::relations::{self, Relation};
use crate::catalog::Catalog;
use crate::table::{Identity, Table};
use pgtypes::{Datum, Oid, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_namespace",
        constants: &[("nspowner", "10")],
        columns: &["oid", "nspname"],
        rows: |env| {
            rows_of(schemas(env.catalog()).into_iter().map(|(number, name)| vec![oid(number), text(name)]).collect())
        },
    },
    Producer {
        relation: "pg_class",
        constants: &[
            ("reltype", "0"),
            ("reloftype", "0"),
            ("relowner", "10"),
            ("reltablespace", "0"),
            ("relpages", "0"),
            ("reltuples", "-1"),
            ("relallvisible", "0"),
            ("reltoastrelid", "0"),
            ("relpersistence", "p"),
            ("relchecks", "0"),
            ("relhasrules", "f"),
            ("relhastriggers", "f"),
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
            ("attgenerated", ""),
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
        relation: "pg_index",
        constants: &[
            ("indnullsnotdistinct", "f"),
            ("indisexclusion", "f"),
            ("indimmediate", "t"),
            ("indisclustered", "f"),
            ("indisvalid", "t"),
            ("indcheckxmin", "f"),
            ("indisready", "t"),
            ("indislive", "t"),
            ("indisreplident", "f"),
        ],
        columns: &[
            "indexrelid",
            "indrelid",
            "indnatts",
            "indnkeyatts",
            "indisunique",
            "indisprimary",
            "indkey",
            "indcollation",
            "indclass",
            "indoption",
        ],
        rows: |env| each_index(env, index),
    },
    Producer {
        relation: "pg_constraint",
        constants: &[
            ("connamespace", "2200"),
            ("condeferrable", "f"),
            ("condeferred", "f"),
            ("convalidated", "t"),
            ("contypid", "0"),
            ("conparentid", "0"),
            ("confrelid", "0"),
            ("confupdtype", " "),
            ("confdeltype", " "),
            ("confmatchtype", " "),
            ("conislocal", "t"),
            ("coninhcount", "0"),
            ("connoinherit", "t"),
        ],
        columns: &["oid", "conname", "contype", "conrelid", "conindid", "conkey"],
        rows: |env| each_table(env, |table| indexes(&table).iter().filter_map(|index| key(&table, index)).collect()),
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
        columns: &["schemaname", "viewname"],
        rows: |_| {
            let views = relations::all().iter().filter(|relation| relation.is_view);
            Box::new(views.map(|relation| vec![text(relation.schema.1), text(&relation.table.name)]))
        },
    },
    Producer {
        relation: "pg_indexes",
        constants: &[("schemaname", "public")],
        columns: &["tablename", "indexname", "indexdef"],
        rows: |env| {
            each_index(env, |table, index| {
                vec![text(&table.name), text(&index.name), text(index_definition(table, index, true))]
            })
        },
    },
    Producer {
        relation: "information_schema.table_constraints",
        constants: &[
            ("is_deferrable", "NO"),
            ("initially_deferred", "NO"),
            ("enforced", "YES"),
            ("constraint_schema", "public"),
            ("table_schema", "public"),
        ],
        columns: &[
            "constraint_catalog",
            "table_catalog",
            "constraint_name",
            "table_name",
            "constraint_type",
            "nulls_distinct",
        ],
        rows: |env| {
            let database = text(env.session.database());
            each_table(env, move |table| constraints(&table, &database))
        },
    },
    Producer {
        relation: "information_schema.check_constraints",
        constants: &[("constraint_schema", "public")],
        columns: &["constraint_catalog", "constraint_name", "check_clause"],
        rows: |env| {
            let database = text(env.session.database());
            each_table(env, move |table| {
                let required = table.columns.iter().filter(|column| column.not_null);
                let clause = |column: &crate::table::Column| text(format!("{} IS NOT NULL", column.name));
                let row = |column| vec![database.clone(), text(not_null_name(&table, column)), clause(column)];
                required.map(row).collect()
            })
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
    each_table(env, move |table| indexes(&table).iter().map(|index| row(&table, index)).collect())
}

fn named(schema: &str, table: &Table) -> Vec<Datum> {
    vec![text(schema), text(&table.name), Datum::Bool(!indexes(table).is_empty())]
}

fn classes(env: &SystemEnv<'_>) -> Rows {
    let system = relations::all().iter().map(system_class);
    let sequences = sequences(env.catalog());
    let sequences = sequences.into_iter().map(|sequence| {
        vec![
            int(sequence.id.0),
            text(&sequence.name),
            int(sequence.schema.0),
            int(0),
            int(sequence.id.0),
            Datum::Bool(false),
            Datum::Bool(false),
            text("S"),
            int(3),
            text("n"),
        ]
    });
    Box::new(system.chain(sequences).chain(tables(env).flat_map(|table| {
        let indexes = indexes(&table);
        let of_table = class(&table, !indexes.is_empty());
        std::iter::once(of_table)
            .chain(indexes.into_iter().map(|index| index_class(&table, &index)))
            .collect::<Vec<_>>()
    })))
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
        int(index.columns.len()),
        text("n"),
    ]
}

fn attributes(env: &SystemEnv<'_>) -> Rows {
    let system = relations::all().iter().flat_map(|relation| {
        let declared = relation.table.columns.iter().zip(&relation.declared);
        declared.enumerate().map(move |(at, (column, (ty, collation)))| {
            let attribute = Attribute { relation: relation.oid(), name: &column.name, number: at + 1, ty: column.ty };
            let flags = Flags { not_null: column.not_null, has_default: false, identity: "" };
            let mut row = attribute.row(flags, Some(*collation));
            // The modifier of a domain is that of the domain, not of its columns.
            if *ty != column.ty.oid {
                set(&mut row, 2, oid(*ty));
                set(&mut row, 6, int(-1));
            }
            row
        })
    });
    Box::new(system.chain(tables(env).flat_map(|table| {
        let relation = Oid(table.id.0);
        let mut rows = Vec::with_capacity(table.columns.len() + table.primary_key.len());
        for column in &table.columns {
            let number = usize::from(column.id.0);
            let attribute = Attribute { relation, name: &column.name, number, ty: column.ty };
            let has_default = column.default.is_some() && column.identity.is_none();
            let identity = match column.identity {
                None => "",
                Some(Identity::Always) => "a",
                Some(Identity::ByDefault) => "d",
            };
            rows.push(attribute.row(Flags { not_null: column.not_null, has_default, identity }, None));
        }
        for index in indexes(&table) {
            for (at, column) in index.columns(&table).enumerate() {
                let attribute = Attribute { relation: index.oid, name: &column.name, number: at + 1, ty: column.ty };
                rows.push(attribute.row(Flags { not_null: false, has_default: false, identity: "" }, None));
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

struct Flags {
    not_null: bool,
    has_default: bool,
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
            text(flags.identity),
        ]
    }
}

fn defaults(table: &Table, catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |column: &crate::table::Column| {
        let text_of_default = shown_default(column, catalog)?;
        let number = derived(table.id, Part::Default(column.id.0));
        Some(vec![oid(number), int(table.id.0), int(column.id.0), text(text_of_default)])
    };
    table.columns.iter().filter_map(row).collect()
}

fn index(table: &Table, index: &IndexView) -> Vec<Datum> {
    let collation = |ty| facts::of_type(ty).map_or(Oid::NONE, |facts| facts.collation);
    let each = |value: &dyn Fn(&crate::table::Column) -> Datum| index.columns(table).map(value).collect::<Vec<_>>();
    vec![
        oid(index.oid),
        int(table.id.0),
        int(index.columns.len()),
        int(index.columns.len()),
        Datum::Bool(index.is_unique),
        Datum::Bool(index.is_primary),
        vector(SqlType::INT2, each(&|column| int(column.id.0))),
        vector(SqlType::OID, each(&|column| oid(collation(column.ty)))),
        vector(SqlType::OID, each(&|column| oid(facts::operator_class(column.ty)))),
        vector(SqlType::INT2, each(&|_| int(0))),
    ]
}

fn key(table: &Table, index: &IndexView) -> Option<Vec<Datum>> {
    let columns = index.columns(table).map(|column| int(column.id.0)).collect();
    let kind = if index.is_primary { "p" } else { "u" };
    Some(vec![
        oid(index.constraint?),
        text(&index.name),
        text(kind),
        int(table.id.0),
        oid(index.oid),
        array(SqlType::INT2, columns),
    ])
}

/// The name by which `information_schema` knows that a column is not NULL.
fn not_null_name(table: &Table, column: &crate::table::Column) -> String {
    format!("{}_{}_{}_not_null", table.schema.0, table.id, column.id.0)
}

fn constraints(table: &Table, database: &Datum) -> Vec<Vec<Datum>> {
    let row = |name: String, kind: &str, distinct: Datum| {
        vec![database.clone(), database.clone(), text(name), text(&table.name), text(kind), distinct]
    };
    let keys = indexes(table).into_iter().filter(|index| index.constraint.is_some()).map(|index| {
        let (kind, distinct) = if index.is_primary { ("PRIMARY KEY", Datum::Null) } else { ("UNIQUE", text("YES")) };
        row(index.name, kind, distinct)
    });
    let required = table.columns.iter().filter(|column| column.not_null);
    keys.chain(required.map(|column| row(not_null_name(table, column), "CHECK", Datum::Null))).collect()
}

/// The definition of a constraint by its OID.
pub(super) fn constraint_by_oid(catalog: &Catalog, number: Oid) -> Option<String> {
    let (table, _) = super::objects::part_of(catalog, number)?;
    let index = indexes(&table).into_iter().find(|index| index.constraint == Some(number))?;
    Some(constraint_definition(&table, &index))
}
