//! The rows about sequences: `pg_sequence`, `pg_sequences`, `information_schema.sequences`.
//!
//! The values of a sequence are in the store and not in the catalog: `last_value` of `pg_sequences` is NULL.

use super::env::{Rows, SystemEnv, int, rows_of, text};
use super::objects::{schema_name, sequences};
use super::producer::Producer;
use crate::object::Sequence;
use pgtypes::{Datum, Oid, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_sequence",
        constants: &[],
        columns: &["seqrelid", "seqtypid", "seqstart", "seqincrement", "seqmax", "seqmin", "seqcache", "seqcycle"],
        rows: |env| {
            each(env, |sequence, _| {
                vec![
                    int(sequence.id.0),
                    int(sequence.ty.oid.0),
                    int(sequence.start),
                    int(sequence.increment),
                    int(sequence.max),
                    int(sequence.min),
                    int(sequence.cache),
                    Datum::Bool(sequence.cycles),
                ]
            })
        },
    },
    Producer {
        relation: "pg_depend",
        constants: &[("classid", "1259"), ("objsubid", "0"), ("refclassid", "1259")],
        columns: &["objid", "refobjid", "refobjsubid", "deptype"],
        rows: |env| {
            // A column has its sequence; of nothing else it is known what depends on it.
            let row = |sequence: Sequence| {
                let (table, column) = sequence.owner?;
                let kind = if is_identity(env, &sequence) { "i" } else { "a" };
                Some(vec![int(sequence.id.0), int(table.0), int(column), text(kind)])
            };
            rows_of(sequences(env.catalog()).into_iter().filter_map(row).collect())
        },
    },
    Producer {
        relation: "pg_sequences",
        constants: &[("sequenceowner", "postgres")],
        columns: &[
            "schemaname",
            "sequencename",
            "data_type",
            "start_value",
            "min_value",
            "max_value",
            "increment_by",
            "cycle",
            "cache_size",
        ],
        rows: |env| {
            each(env, |sequence, schema| {
                vec![
                    text(schema),
                    text(&sequence.name),
                    int(sequence.ty.oid.0),
                    int(sequence.start),
                    int(sequence.min),
                    int(sequence.max),
                    int(sequence.increment),
                    Datum::Bool(sequence.cycles),
                    int(sequence.cache),
                ]
            })
        },
    },
    Producer {
        relation: "information_schema.sequences",
        constants: &[("numeric_precision_radix", "2"), ("numeric_scale", "0")],
        columns: &[
            "sequence_catalog",
            "sequence_schema",
            "sequence_name",
            "data_type",
            "numeric_precision",
            "start_value",
            "minimum_value",
            "maximum_value",
            "increment",
            "cycle_option",
        ],
        rows: |env| {
            let database = env.session.database();
            // The sequences of identity columns are no objects of the standard.
            let row = |sequence: &Sequence, schema: &str| {
                vec![
                    text(database),
                    text(schema),
                    text(&sequence.name),
                    text(sequence.ty.row().sql_name),
                    int(bits(sequence.ty)),
                    text(sequence.start.to_string()),
                    text(sequence.min.to_string()),
                    text(sequence.max.to_string()),
                    text(sequence.increment.to_string()),
                    text(if sequence.cycles { "YES" } else { "NO" }),
                ]
            };
            let shown = sequences(env.catalog()).into_iter().filter(|sequence| !is_identity(env, sequence));
            rows_of(shown.map(|sequence| row(&sequence, schema_of(env, &sequence))).collect())
        },
    },
];

fn each(env: &SystemEnv<'_>, row: fn(&Sequence, &str) -> Vec<Datum>) -> Rows {
    let rows = sequences(env.catalog()).into_iter().map(|sequence| row(&sequence, schema_of(env, &sequence)));
    rows_of(rows.collect())
}

fn schema_of<'e>(env: &SystemEnv<'e>, sequence: &Sequence) -> &'e str {
    schema_name(env.catalog(), Oid(sequence.schema.0)).unwrap_or_default()
}

/// Whether a sequence belongs to an identity column.
fn is_identity(env: &SystemEnv<'_>, sequence: &Sequence) -> bool {
    let Some((table, number)) = sequence.owner else { return false };
    let table = env.catalog().by_id(crate::table::TableId(table.0));
    let column = table.and_then(|table| table.columns.iter().find(|column| column.id.0 == number));
    column.is_some_and(|column| column.identity.is_some())
}

fn bits(ty: SqlType) -> u32 {
    match ty {
        SqlType::INT2 => 16,
        SqlType::INT4 => 32,
        _ => 64,
    }
}

/// The row of `pg_sequence_parameters`.
pub(super) fn parameters(sequence: &Sequence) -> Vec<Datum> {
    vec![
        int(sequence.start),
        int(sequence.min),
        int(sequence.max),
        int(sequence.increment),
        Datum::Bool(sequence.cycles),
        int(sequence.cache),
        int(sequence.ty.oid.0),
    ]
}
