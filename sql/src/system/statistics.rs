//! The rows about statistics: `pg_stats`. What ANALYZE has found, as far as the table still has the column.
//!
//! `pg_statistic` has no rows: it is for superusers of PostgreSQL alone. Correlations and elements of arrays are not
//! counted, so their columns are NULL.

use super::env::{SystemEnv, array, int, rows_of, text};
use super::producer::Producer;
use super::tables::named_tables;
use crate::catalog::ColumnStatistics;
use pgtypes::{Array, Datum, SqlType, wire};

pub(super) static PRODUCERS: &[Producer] = &[Producer {
    relation: "pg_stats",
    constants: &[("inherited", "f")],
    columns: &[
        "schemaname",
        "tablename",
        "attname",
        "null_frac",
        "avg_width",
        "n_distinct",
        "most_common_vals",
        "most_common_freqs",
        "histogram_bounds",
    ],
    rows: |env| {
        let statistics = env.catalog().statistics();
        let rows = named_tables(env).flat_map(|(schema, table)| {
            let found = statistics.get(table.id);
            let row = |at: usize| {
                let column = found.as_ref()?.column(&table, at)?;
                let name = &table.columns.get(at)?.name;
                let mut row = vec![text(&schema), text(&table.name), text(name)];
                row.extend(values(column, env));
                Some(row)
            };
            (0..table.columns.len()).filter_map(row).collect::<Vec<_>>()
        });
        rows_of(rows.collect())
    },
}];

fn values(column: &ColumnStatistics, env: &SystemEnv<'_>) -> Vec<Datum> {
    let common = column.common.iter().map(|common| common.value.clone()).collect();
    let frequencies: Vec<Datum> = column.common.iter().map(|common| real(common.frequency)).collect();
    let frequencies = if frequencies.is_empty() { Datum::Null } else { array(SqlType::FLOAT4, frequencies) };
    vec![
        real(column.null_fraction),
        int(column.width),
        real(column.distinct),
        shown(common, column.ty, env),
        frequencies,
        shown(column.histogram.clone(), column.ty, env),
    ]
}

/// A number of type `real`.
fn real(value: f64) -> Datum {
    Datum::Float(f64::from(value as f32))
}

/// Values of a column as the text of an array, for a column of type `anyarray`; NULL of none.
fn shown(values: Vec<Datum>, ty: SqlType, env: &SystemEnv<'_>) -> Datum {
    match ty.array() {
        Some(array) if !values.is_empty() => {
            text(wire::show(&Datum::Array(Box::new(Array::of(ty.oid, values))), array, &env.io))
        }
        _ => Datum::Null,
    }
}
