//! The btree order of `jsonb`, and keys whose bytes have the same order.
//!
//! null < string < number < boolean < array < object. Arrays and objects compare their counts first. A top-level scalar
//! counts as an array of one element, and precedes a real one: the empty array precedes every scalar.

use std::cmp::Ordering;

use super::value::Jsonb;

/// Tags of key parts. They are in the order of the types.
mod tag {
    pub(super) const NULL: u8 = 1;
    pub(super) const STRING: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    pub(super) const BOOL: u8 = 4;
    pub(super) const ARRAY: u8 = 5;
    pub(super) const OBJECT: u8 = 6;
}

fn rank(value: &Jsonb) -> u8 {
    match value {
        Jsonb::Null => tag::NULL,
        Jsonb::String(_) => tag::STRING,
        Jsonb::Number(_) => tag::NUMBER,
        Jsonb::Bool(_) => tag::BOOL,
        Jsonb::Array(_) => tag::ARRAY,
        Jsonb::Object(_) => tag::OBJECT,
    }
}

/// The order of elements and member values.
fn nested(a: &Jsonb, b: &Jsonb) -> Ordering {
    match (a, b) {
        (Jsonb::String(a), Jsonb::String(b)) => a.cmp(b),
        (Jsonb::Number(a), Jsonb::Number(b)) => a.cmp(b),
        (Jsonb::Bool(a), Jsonb::Bool(b)) => a.cmp(b),
        (Jsonb::Array(a), Jsonb::Array(b)) => {
            let mut pairs = a.iter().zip(b).map(|(a, b)| nested(a, b));
            a.len().cmp(&b.len()).then_with(|| pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
        }
        (Jsonb::Object(a), Jsonb::Object(b)) => {
            let mut pairs = a.iter().zip(b.iter()).map(|(a, b)| a.0.cmp(b.0).then_with(|| nested(a.1, b.1)));
            a.len().cmp(&b.len()).then_with(|| pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

impl Ord for Jsonb {
    fn cmp(&self, other: &Jsonb) -> Ordering {
        match (self, other) {
            (Jsonb::Array(elements), scalar) if scalar.is_scalar() => elements.len().cmp(&1).then(Ordering::Greater),
            (scalar, Jsonb::Array(elements)) if scalar.is_scalar() => 1.cmp(&elements.len()).then(Ordering::Less),
            _ => nested(self, other),
        }
    }
}

impl PartialOrd for Jsonb {
    fn partial_cmp(&self, other: &Jsonb) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Jsonb {
    /// Appends a key: the bytes of two keys compare as their values do, and equal values have the same key. No key is
    /// the start of another. A key cannot be turned back into the value: it has no scales.
    pub fn write_order_key(&self, out: &mut Vec<u8>) {
        match self {
            Jsonb::Object(_) => write_nested(self, out),
            Jsonb::Array(elements) => {
                out.push(tag::ARRAY);
                write_count(elements.len(), out);
                out.push(1);
                elements.iter().for_each(|element| write_nested(element, out));
            }
            scalar => {
                out.push(tag::ARRAY);
                write_count(1, out);
                out.push(0);
                write_nested(scalar, out);
            }
        }
    }
}

fn write_nested(value: &Jsonb, out: &mut Vec<u8>) {
    out.push(rank(value));
    match value {
        Jsonb::Null => {}
        Jsonb::Bool(value) => out.push(u8::from(*value)),
        Jsonb::String(text) => write_text(text, out),
        Jsonb::Number(number) => number.write_key(out),
        Jsonb::Array(elements) => {
            write_count(elements.len(), out);
            elements.iter().for_each(|element| write_nested(element, out));
        }
        Jsonb::Object(members) => {
            write_count(members.len(), out);
            for (key, value) in members.iter() {
                write_text(key, out);
                write_nested(value, out);
            }
        }
    }
}

fn write_count(count: usize, out: &mut Vec<u8>) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

/// A zero byte ends the text. Bytes 0 and 1 inside of it have a 1 before them.
fn write_text(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if byte <= 1 {
            out.push(1);
        }
        out.push(byte);
    }
    out.push(0);
}
