//! Aggregates to `json` and `jsonb`. NULL is `null`, but no key.

use std::borrow::Cow;

use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::functions::json::convert::{key, to_json, to_jsonb};
use crate::json::{Jsonb, escape};
use crate::sqlstate::SqlState;
use crate::text::limit::check_growth;

/// The bytes of the values of a `jsonb` array or object.
const MAX_SIZE: usize = 0x0fff_ffff;
/// The bytes of a value in `jsonb` beside its own ones.
const HEADER: usize = 4;
/// More than a part of an array or object occupies here, by what it occupies in `jsonb`.
const EXPANSION: usize = 8;

fn key_of(args: &Args<'_>) -> Result<String, ValueError> {
    if args.is_null(0) {
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "field name must not be null"));
    }
    key(args.get(0), args.ty(0), args.env())
}

/// A text in the making.
#[derive(Debug, Default)]
struct Growing(String);

impl Growing {
    fn push(&mut self, text: &str) -> Result<(), ValueError> {
        check_growth(self.0.len(), text.len())?;
        self.0.push_str(text);
        Ok(())
    }

    fn finish(&mut self, end: &str) -> Result<Datum, ValueError> {
        if self.0.is_empty() {
            return Ok(Datum::Null);
        }
        self.push(end)?;
        Ok(Datum::text(std::mem::take(&mut self.0)))
    }
}

/// `json_agg`: arrays and rows are on lines of their own.
#[derive(Debug, Default)]
pub(super) struct JsonElements(Growing);

impl Aggregate for JsonElements {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let separator = match args.get(0) {
            _ if self.0.0.is_empty() => "[",
            Datum::Array(_) | Datum::Record(_) => ", \n ",
            _ => ", ",
        };
        let value = to_json(args.get(0), args.ty(0), args.env())?;
        self.0.push(separator)?;
        self.0.push(&value)
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        self.0.finish("]")
    }

    fn memory(&self) -> usize {
        self.0.0.capacity()
    }
}

/// `json_object_agg`, with duplicate keys.
#[derive(Debug, Default)]
pub(super) struct JsonMembers(Growing);

impl Aggregate for JsonMembers {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let key = key_of(args)?;
        let value = to_json(args.get(1), args.ty(1), args.env())?;
        self.0.push(if self.0.0.is_empty() { "{ " } else { ", " })?;
        self.0.push(&escape(&key))?;
        self.0.push(" : ")?;
        self.0.push(&value)
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        self.0.finish(" }")
    }

    fn memory(&self) -> usize {
        self.0.0.capacity()
    }
}

/// The bytes of values, here and at least in `jsonb`.
#[derive(Debug, Default)]
struct Sizes {
    memory: usize,
    stored: usize,
}

impl Sizes {
    fn add(&mut self, bytes: usize, value: &Jsonb, what: &str) -> Result<(), ValueError> {
        let memory = value.memory();
        self.memory += bytes + memory;
        self.stored += HEADER + bytes + if value.is_scalar() { memory } else { memory / EXPANSION };
        if self.stored <= MAX_SIZE {
            return Ok(());
        }
        let message = format!("total size of jsonb {what} elements exceeds the maximum of {MAX_SIZE} bytes");
        Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
    }
}

/// `jsonb_agg`
#[derive(Debug, Default)]
pub(super) struct JsonbElements {
    values: Vec<Jsonb>,
    sizes: Sizes,
}

impl Aggregate for JsonbElements {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let value = to_jsonb(args.get(0), args.ty(0), args.env())?;
        self.sizes.add(0, &value, "array")?;
        self.values.push(value);
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        let values = std::mem::take(&mut self.values);
        if values.is_empty() {
            return Ok(Datum::Null);
        }
        Jsonb::from_elements(values).map(|value| Datum::Jsonb(Box::new(value)))
    }

    fn memory(&self) -> usize {
        self.sizes.memory + self.values.capacity() * size_of::<Jsonb>()
    }
}

/// `jsonb_object_agg`: the last value of a key wins.
#[derive(Debug, Default)]
pub(super) struct JsonbMembers {
    members: Vec<(String, Jsonb)>,
    sizes: Sizes,
}

impl Aggregate for JsonbMembers {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let key = key_of(args)?;
        let value = to_jsonb(args.get(1), args.ty(1), args.env())?;
        self.sizes.add(key.len(), &value, "object")?;
        self.members.push((key, value));
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        let members = std::mem::take(&mut self.members);
        if members.is_empty() {
            return Ok(Datum::Null);
        }
        let members = members.into_iter().map(|(key, value)| (Cow::Owned(key), value));
        Jsonb::from_pairs(members).map(|value| Datum::Jsonb(Box::new(value)))
    }

    fn memory(&self) -> usize {
        self.sizes.memory + self.members.capacity() * size_of::<(String, Jsonb)>()
    }
}
