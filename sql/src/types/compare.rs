//! The sort order of values: PostgreSQL's under the C collation.

use std::cmp::Ordering;

use super::Datum;

/// Orders two non-NULL values of one type; `None` for values of two types. NaN equals itself and is greater than every
/// other float. Text and bytea compare by bytes. False is before true.
pub fn compare_same(a: &Datum, b: &Datum) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Int(a), Datum::Int(b)) | (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        _ => return None,
    })
}

/// A total order for sorts. Their values come from one column; a defect must not become a panic there.
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_same(a, b).unwrap_or_else(|| rank(a).cmp(&rank(b)))
}

/// Orders floats: -0 equals 0, NaN is the greatest.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Float(_) => 2,
        Datum::Text(_) => 3,
        Datum::Bytes(_) => 4,
        Datum::Timestamp(_) => 5,
        Datum::Null => 6,
    }
}
