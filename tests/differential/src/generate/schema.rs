//! The tables of a run: columns of all types, keys, indexes, rows with NULL and extremes.
//!
//! Values that are equal have one text, so that a query may group by them: numerics have a fixed scale, and there is no
//! negative zero.

use rand::Rng;
use rand::rngs::StdRng;

use crate::catalog::{Catalog, TypeOid};
use crate::generate::literal::{self, oids};

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: TypeOid,
    /// Its type as CREATE TABLE writes it.
    pub declared: String,
}

/// A table. Its first column, `id`, is its key: an integer that counts from 1.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<TableColumn>,
}

/// The types of columns: OID, name in CREATE TABLE.
const COLUMN_TYPES: [(TypeOid, &str); 24] = [
    (oids::INT4, "integer"),
    (oids::INT4, "integer"),
    (oids::INT8, "bigint"),
    (oids::INT2, "smallint"),
    (oids::TEXT, "text"),
    (oids::TEXT, "text"),
    (oids::VARCHAR, "varchar(20)"),
    (oids::BPCHAR, "char(5)"),
    (oids::NUMERIC, "numeric(12,3)"),
    (oids::NUMERIC, "numeric(12,3)"),
    (oids::FLOAT8, "double precision"),
    (oids::FLOAT4, "real"),
    (oids::BOOL, "boolean"),
    (oids::DATE, "date"),
    (oids::TIME, "time"),
    (oids::TIMESTAMP, "timestamp"),
    (oids::TIMESTAMPTZ, "timestamptz"),
    (oids::INTERVAL, "interval"),
    (oids::UUID, "uuid"),
    (oids::BYTEA, "bytea"),
    (oids::JSONB, "jsonb"),
    (oids::NAME, "name"),
    (1007, "integer[]"),
    (1009, "text[]"),
];

/// Types whose equal values have one text.
pub const GROUPABLE: [TypeOid; 13] = [
    oids::INT4,
    oids::INT8,
    oids::INT2,
    oids::TEXT,
    oids::VARCHAR,
    oids::BPCHAR,
    oids::BOOL,
    oids::DATE,
    oids::TIME,
    oids::TIMESTAMP,
    oids::UUID,
    oids::BYTEA,
    oids::NUMERIC,
];

const ROWS: i32 = 25;

/// The tables, and the statements that make and fill them.
pub fn tables(rng: &mut StdRng, catalog: &Catalog, count: usize) -> (Vec<Table>, Vec<String>) {
    let (mut tables, mut statements) = (Vec::new(), Vec::new());
    for number in 0..count {
        let mut columns = vec![TableColumn { name: "id".to_string(), of: oids::INT4, declared: "integer".to_string() }];
        for at in 0..rng.random_range(4..9) {
            let (of, declared) = COLUMN_TYPES[rng.random_range(0..COLUMN_TYPES.len())];
            columns.push(TableColumn { name: format!("c{at}"), of, declared: declared.to_string() });
        }
        let table = Table { name: format!("t{number}"), columns };
        statements.push(create(rng, &table));
        statements.extend(indexes(rng, &table));
        statements.push(fill(rng, catalog, &table));
        tables.push(table);
    }
    (tables, statements)
}

fn create(rng: &mut StdRng, table: &Table) -> String {
    let columns = table.columns.iter().map(|column| {
        let suffix = match &*column.name {
            "id" => " PRIMARY KEY",
            _ if column.of == oids::INT4 && rng.random_ratio(1, 4) => " DEFAULT 7 CHECK (TRUE)",
            _ => "",
        };
        format!("{} {}{suffix}", column.name, column.declared)
    });
    format!("CREATE TABLE {} ({})", table.name, columns.collect::<Vec<_>>().join(", "))
}

fn indexes(rng: &mut StdRng, table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (at, column) in table.columns.iter().enumerate().skip(1) {
        if GROUPABLE.contains(&column.of) && rng.random_ratio(1, 3) {
            let order = ["", " DESC", " NULLS FIRST"][rng.random_range(0..3)];
            let filter =
                if rng.random_ratio(1, 4) { format!(" WHERE {} IS NOT NULL", column.name) } else { String::new() };
            let name = format!("{}_i{at}", table.name);
            found.push(format!("CREATE INDEX {name} ON {} ({}{order}){filter}", table.name, column.name));
        }
    }
    found
}

fn fill(rng: &mut StdRng, catalog: &Catalog, table: &Table) -> String {
    let rows = (1..=ROWS).map(|id| {
        let rest = table.columns[1..].iter().map(|column| value(rng, catalog, column));
        let values: Vec<String> = std::iter::once(id.to_string()).chain(rest).collect();
        format!("({})", values.join(", "))
    });
    format!("INSERT INTO {} VALUES {}", table.name, rows.collect::<Vec<_>>().join(", "))
}

/// A value of a column as an expression.
pub fn value(rng: &mut StdRng, catalog: &Catalog, column: &TableColumn) -> String {
    if rng.random_ratio(1, 8) {
        return "NULL".to_string();
    }
    let text = match column.of {
        // Small values: many are equal, and foreign keys can be met.
        oids::INT2 | oids::INT4 | oids::INT8 if rng.random_ratio(7, 8) => rng.random_range(-3..30).to_string(),
        oids::NUMERIC => format!("{}.{}", rng.random_range(-50..200), rng.random_range(0..3) * 5),
        oids::FLOAT4 | oids::FLOAT8 => {
            let special = ["NaN", "Infinity", "-Infinity", "1e20"];
            let usual = f64::from(rng.random_range(-40..40)) / 4.0 + 0.125;
            if rng.random_ratio(1, 8) { special[rng.random_range(0..4)].to_string() } else { usual.to_string() }
        }
        oids::TEXT | oids::VARCHAR if rng.random_ratio(1, 2) => {
            ["a", "b", "abc", "", "B"][rng.random_range(0..5)].to_string()
        }
        of => literal::valid(rng, catalog, of),
    };
    let declared = if column.of == oids::VARCHAR { "varchar(20)" } else { &column.declared };
    format!("({}::text)::{declared}", literal::constant(&text))
}
