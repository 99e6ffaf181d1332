//! PostgreSQL's data types: values, and what each type accepts, prints, sends and compares. Pure: no clock, no storage.
//!
//! [`Datum::decode`] and [`DatumRef::encode`] convert between the wire and [`Datum`]s. There are fewer variants than
//! types: the three integers share one, and so do text and varchar. Each type accepts and prints what PostgreSQL 15
//! accepts and prints. Errors are [`ValueError`]s with PostgreSQL's SQLSTATE and wording.
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 1. `sqlstate`: the SQLSTATE codes
//! 2. `error`, `letters`: errors of values, case of letters
//! 3. `datum`, `sql_type`, `timestamp`: values and their sort order, types, times
//! 4. `input`, `output`: text forms
//! 5. `cast`, `wire`: conversions between types, wire forms
//! 6. `json`, `text`, `uuid`: documents, functions of text, identifiers
//! 7. `bytea`: functions of bytes

pub mod bytea;
pub mod cast;
pub mod datum;
mod error;
pub mod input;
pub mod json;
pub mod letters;
pub mod output;
mod sql_type;
mod sqlstate;
pub mod text;
pub mod timestamp;
pub mod uuid;
mod wire;

pub use datum::{Datum, DatumRef};
pub use error::ValueError;
pub use sql_type::{MAX_VARCHAR, SqlType};
pub use sqlstate::SqlState;
pub use timestamp::{DateFormat, DateStyle, TimeZone};
pub use wire::Format;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
