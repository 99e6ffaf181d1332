//! The sort order of values, and their hashes: equal values have equal hashes.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::value::{Array, Datum, Record};

/// A text without the blanks at its end.
pub fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Orders two non-NULL values of one kind; `None` for values of two kinds. NaN equals itself and is greater than every
/// other float. Text and bytea compare by bytes. False is before true.
pub fn compare_same(a: &Datum, b: &Datum) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Padded(a), Datum::Padded(b)) => unpadded(a).as_bytes().cmp(unpadded(b).as_bytes()),
        (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
        (Datum::Interval(a), Datum::Interval(b)) => a.cmp(b),
        (Datum::TimeTz(a), Datum::TimeTz(b)) => a.cmp(b),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Jsonb(a), Datum::Jsonb(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => a.compare(b),
        (Datum::Record(a), Datum::Record(b)) => a.compare(b),
        _ => return None,
    })
}

/// A total order for sorts, NULL last. Their values come from one column; a defect must not become a panic there.
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_same(a, b).unwrap_or_else(|| rank(a).cmp(&rank(b)))
}

/// Orders floats: -0 equals 0, NaN is the greatest.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Array {
    /// PostgreSQL's order: element by element with NULL last, then by their number, then by the number of dimensions,
    /// then by their lengths, then by their lower bounds.
    pub fn compare(&self, other: &Array) -> Ordering {
        let mut pairs = self.elements.iter().zip(&other.elements);
        let unequal = pairs.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()));
        let shape = |array: &Array| {
            let lengths: Vec<i32> = array.dimensions.iter().map(|dimension| dimension.length).collect();
            let lowers: Vec<i32> = array.dimensions.iter().map(|dimension| dimension.lower).collect();
            (array.dimensions.len(), lengths, lowers)
        };
        let by_shape = || shape(self).cmp(&shape(other));
        unequal.unwrap_or_else(|| self.elements.len().cmp(&other.elements.len()).then_with(by_shape))
    }
}

impl Record {
    /// Field by field, NULL last.
    pub fn compare(&self, other: &Record) -> Ordering {
        let mut pairs = self.fields().iter().zip(other.fields());
        let unequal = pairs.find_map(|((_, a), (_, b))| Some(compare(a, b)).filter(|order| order.is_ne()));
        unequal.unwrap_or_else(|| self.fields().len().cmp(&other.fields().len()))
    }
}

fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Float(_) => 2,
        Datum::Text(_) => 3,
        Datum::Bytes(_) => 4,
        Datum::Padded(_) => 5,
        Datum::Numeric(_) => 6,
        Datum::Interval(_) => 7,
        Datum::TimeTz(_) => 8,
        Datum::Uuid(_) => 9,
        Datum::Jsonb(_) => 10,
        Datum::Array(_) => 11,
        Datum::Record(_) => 12,
        Datum::Null => u8::MAX,
    }
}

/// A value as grouping and DISTINCT see it: NULL equals NULL, and equal values have equal hashes.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Datum);

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        compare(&self.0, &other.0).is_eq()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(&self.0, state);
    }
}

fn hash_value<H: Hasher>(value: &Datum, state: &mut H) {
    rank(value).hash(state);
    match value {
        Datum::Null => {}
        Datum::Bool(value) => value.hash(state),
        Datum::Int(value) => value.hash(state),
        Datum::Float(value) => float_key(*value).hash(state),
        Datum::Text(text) => text.hash(state),
        Datum::Padded(text) => unpadded(text).hash(state),
        Datum::Bytes(bytes) => bytes.hash(state),
        Datum::Numeric(number) => number.hash(state),
        Datum::Interval(interval) => interval.hash(state),
        Datum::TimeTz(time) => time.hash(state),
        Datum::Uuid(uuid) => uuid.hash(state),
        Datum::Jsonb(json) => json.hash(state),
        Datum::Array(array) => hash_array(array, state),
        Datum::Record(record) => {
            for (_, field) in record.fields() {
                hash_value(field, state);
            }
        }
    }
}

fn hash_array<H: Hasher>(array: &Array, state: &mut H) {
    array.dimensions.hash(state);
    for element in &array.elements {
        hash_value(element, state);
    }
}

/// Bits that are equal for equal floats.
fn float_key(value: f64) -> u64 {
    match value {
        value if value.is_nan() => f64::NAN.to_bits(),
        // Also -0.
        0.0 => 0,
        value => value.to_bits(),
    }
}
