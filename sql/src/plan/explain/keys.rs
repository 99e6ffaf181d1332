//! The conditions of access paths, as EXPLAIN shows them. Pure.

use crate::expr::Expr;
use crate::plan::conditions::KeyBound;
use crate::plan::index_path::{IndexScan, PrefixValue};
use crate::plan::show::show;
use crate::table::{Index, Table};

/// Those of point gets.
pub(super) fn points(table: &Table, keys: &[Vec<Expr>], names: &[String]) -> String {
    let columns: Vec<&str> = table.primary_key.iter().map(|at| names[*at].as_str()).collect();
    let key = |values: &Vec<Expr>| {
        let values: Vec<String> = values.iter().map(|value| show(value, names)).collect();
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
    let mut parts: Vec<String> =
        prefix.iter().enumerate().map(|(at, value)| format!("({} = {})", name(at), show(value, names))).collect();
    parts.extend(bound_texts(name(prefix.len()), lower, upper, names));
    if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(" AND ")) }
}

/// The conditions of a scan of an index; `None` without one.
pub(super) fn index_conditions(table: &Table, index: &Index, scan: &IndexScan, names: &[String]) -> Option<String> {
    let columns = index.column_names(table);
    let column = |at: usize| columns.get(at).map_or("", String::as_str);
    let value = |value: &PrefixValue| value.as_ref().map_or_else(|| "NULL".to_owned(), |value| show(value, names));
    let mut parts: Vec<String> = Vec::new();
    match scan.prefixes.as_slice() {
        [only] => parts.extend(only.iter().enumerate().map(|(at, found)| match found {
            Some(found) => format!("({} = {})", column(at), show(found, names)),
            None => format!("({} IS NULL)", column(at)),
        })),
        several => {
            let width = several.first().map_or(0, Vec::len);
            let key = |prefix: &Vec<PrefixValue>| {
                let values: Vec<String> = prefix.iter().map(value).collect();
                if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
            };
            let left: Vec<&str> = (0..width).map(column).collect();
            let left = if width == 1 { left.concat() } else { format!("({})", left.join(", ")) };
            parts.push(format!("({left} IN ({}))", listed(several, key)));
        }
    }
    let next = column(scan.prefixes.first().map_or(0, Vec::len));
    parts.extend(bound_texts(next, &scan.lower, &scan.upper, names));
    parts.extend(scan.skips_null.then(|| format!("({next} IS NOT NULL)")));
    match parts.len() {
        0 => None,
        1 => Some(parts.concat()),
        _ => Some(format!("({})", parts.join(" AND "))),
    }
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
fn bound_texts(name: &str, lower: &[KeyBound], upper: &[KeyBound], names: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for (bounds, symbol) in [(lower, ">"), (upper, "<")] {
        for bound in bounds {
            let equal = if bound.inclusive { "=" } else { "" };
            parts.push(format!("({name} {symbol}{equal} {})", show(&bound.value, names)));
        }
    }
    parts
}
