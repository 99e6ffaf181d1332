//! SQL types and values, with their text and binary wire forms.
//!
//! [`Datum::decode`] and [`DatumRef::encode`] convert between the wire and [`Datum`]s. There are fewer variants than
//! types: the three integers share one, and so do text and varchar. Each type accepts and prints what PostgreSQL 15
//! accepts and prints.
//!
//! # Layers
//!
//! 1. `datum`, `letters`, `sql_type`, `timestamp`: values and their sort order, case of letters, types, times
//! 2. `input`, `output`: text forms
//! 3. `cast`, `wire`: conversions between types, wire forms

pub mod cast;
pub mod datum;
pub mod input;
pub mod letters;
pub mod output;
mod sql_type;
pub mod timestamp;
mod wire;

pub use datum::{Datum, DatumRef};
pub use sql_type::{MAX_VARCHAR, SqlType};
pub use timestamp::{DateFormat, DateStyle, TimeZone};
pub use wire::Format;

#[cfg(test)]
mod tests;
