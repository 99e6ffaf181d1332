//! PostgreSQL's data types: values, and what each type accepts, prints, sends and compares. Pure: no clock, no storage.
//!
//! A type is a row of a static table ([`TypeRow`]); a column, parameter or expression has a type and a modifier
//! ([`SqlType`]). [`Datum::decode`] and [`DatumRef::encode`] convert between the wire and [`Datum`]s. Each type accepts
//! and prints what PostgreSQL 15 accepts and prints. Errors are [`ValueError`]s with PostgreSQL's SQLSTATE and wording.
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 1. `hash`, `oid`, `sqlstate`: hashes of bytes, names of objects, the SQLSTATE codes
//! 2. `error`, `letters`: errors of values, case of letters
//! 3. `datetime`, `form`, `hex_float`, `numeric`, `shortest`, `sql_type`, `utf8`, `uuid`: dates and times; errors of
//!    forms; hexadecimal floats; decimal numbers; digits of floats; types; text from outside; UUIDs
//! 4. `boolean`, `bytea_text`, `float`, `integer`, `timestamp`: values in texts
//! 5. `text`: functions of texts
//! 6. `bytea`, `json`: functions of bytes; JSON
//! 7. `datum`: values and their sort order
//! 8. `row`, `string`: what a row of the table of types has; lengths of texts
//! 9. `forms`: the forms of the types
//! 10. `rows`: the table
//! 11. `lookup`: the type of an OID or a name
//! 12. `codec`, `wire`: values in keys and rows; on the wire
//! 13. `cast`: conversions between types
//! 14. `functions`: functions, operators, aggregates

mod boolean;
pub mod bytea;
mod bytea_text;
pub mod cast;
pub mod codec;
pub mod datetime;
pub mod datum;
mod error;
pub mod float;
mod form;
mod forms;
pub mod functions;
mod hash;
mod hex_float;
pub mod integer;
pub mod json;
pub mod letters;
mod lookup;
pub mod numeric;
mod oid;
mod row;
mod rows;
mod shortest;
mod sql_type;
mod sqlstate;
pub mod string;
pub mod text;
pub mod timestamp;
mod utf8;
pub mod uuid;
pub mod wire;

pub use datum::{Array, Datum, DatumRef, Dimension, Record, Repr};
pub use error::ValueError;
pub use lookup::{all, find, find_name};
pub use oid::Oid;
pub use row::{Category, IoEnv, Label, Modifier, Names, NoNames, OutputStyle, TypeIo, TypeRow};
pub use sql_type::{MAX_VARCHAR, SqlType};
pub use sqlstate::SqlState;
pub use timestamp::{DateFormat, DateStyle, TimeZone};
pub use utf8::utf8;
pub use wire::Format;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
