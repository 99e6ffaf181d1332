//! The conditions of access paths, as EXPLAIN shows them. Pure.

use crate::expr::Expr;
use crate::plan::conditions::KeyBound;
use crate::plan::index_path::{IndexScan, PrefixValue};
use crate::plan::show::operand;
use crate::table::{Index, Table};
use pgtypes::SqlType;

/// Those of point gets.
pub(super) fn points(table: &Table, keys: &[Vec<Expr>], names: &[String]) -> String {
    let columns: Vec<&str> = table.primary_key.iter().map(|at| names[*at].as_str()).collect();
    let key = |values: &Vec<Expr>| {
        let values = values.iter().enumerate().map(|(at, value)| operand(value, key_type(table, at), names));
        let values: Vec<String> = values.collect();
        if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
    };
    let columns = if columns.len() == 1 { columns.concat() } else { format!("({})", columns.join(", ")) };
    match keys {
        [single] => format!("({columns} = {})", key(single)),
        several => format!("({columns} IN ({}))", listed(several, key)),
    }
}

/// Those of a range of the primary key.
pub(super) fn range(
    table: &Table,
    prefix: &[Expr],
    lower: &[KeyBound],
    upper: &[KeyBound],
    names: &[String],
) -> String {
    let name = |at: usize| table.primary_key.get(at).map_or("", |column| names[*column].as_str());
    let value = |at: usize, value: &Expr| operand(value, key_type(table, at), names);
    let mut parts: Vec<String> =
        prefix.iter().enumerate().map(|(at, found)| format!("({} = {})", name(at), value(at, found))).collect();
    parts.extend(bound_texts((name(prefix.len()), key_type(table, prefix.len())), lower, upper, names));
    if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(" AND ")) }
}

/// The conditions of a scan of an index; `None` without one.
pub(super) fn index_conditions(table: &Table, index: &Index, scan: &IndexScan, names: &[String]) -> Option<String> {
    let columns = index.column_names(table);
    let column = |at: usize| columns.get(at).map_or("", String::as_str);
    let type_of = |at: usize| index.type_of(table, at).unwrap_or(SqlType::UNKNOWN);
    let value = |(at, value): (usize, &PrefixValue)| {
        value.as_ref().map_or_else(|| "NULL".to_owned(), |value| operand(value, type_of(at), names))
    };
    let mut parts: Vec<String> = Vec::new();
    match scan.prefixes.as_slice() {
        [only] => parts.extend(only.iter().enumerate().map(|(at, found)| match found {
            Some(found) => format!("({} = {})", column(at), operand(found, type_of(at), names)),
            None => format!("({} IS NULL)", column(at)),
        })),
        several => {
            let width = several.first().map_or(0, Vec::len);
            let key = |prefix: &Vec<PrefixValue>| {
                let values: Vec<String> = prefix.iter().enumerate().map(value).collect();
                if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
            };
            let left: Vec<&str> = (0..width).map(column).collect();
            let left = if width == 1 { left.concat() } else { format!("({})", left.join(", ")) };
            parts.push(format!("({left} IN ({}))", listed(several, key)));
        }
    }
    let width = scan.prefixes.first().map_or(0, Vec::len);
    let next = column(width);
    parts.extend(bound_texts((next, type_of(width)), &scan.lower, &scan.upper, names));
    parts.extend(scan.skips_null.then(|| format!("({next} IS NOT NULL)")));
    match parts.len() {
        0 => None,
        1 => Some(parts.concat()),
        _ => Some(format!("({})", parts.join(" AND "))),
    }
}

/// The type of a column of the primary key.
fn key_type(table: &Table, at: usize) -> SqlType {
    let column = table.primary_key.get(at).and_then(|column| table.columns.get(*column));
    column.map_or(SqlType::UNKNOWN, |column| column.ty)
}

/// The first keys of a list.
fn listed<K>(keys: &[K], key: impl Fn(&K) -> String) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = keys.iter().take(SHOWN).map(key).collect();
    if keys.len() > SHOWN {
        shown.push(format!("... {} keys", keys.len()));
    }
    shown.join(", ")
}

/// The bounds of a column: `(a > 1)`, `(a <= 5)`.
fn bound_texts((name, ty): (&str, SqlType), lower: &[KeyBound], upper: &[KeyBound], names: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for (bounds, symbol) in [(lower, ">"), (upper, "<")] {
        for bound in bounds {
            let equal = if bound.inclusive { "=" } else { "" };
            parts.push(format!("({name} {symbol}{equal} {})", operand(&bound.value, ty, names)));
        }
    }
    parts
}
