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
//! 1. `oid`, `sqlstate`: names of objects, the SQLSTATE codes
//! 2. `error`, `letters`: errors of values, case of letters
//! 3. `datum`, `form`, `sql_type`, `timestamp`, `utf8`: values and their sort order; errors of forms; types; times;
//!    text from outside
//! 4. `row`: what a row of the table of types has
//! 5. `boolean`, `bytea`, `float`, `integer`, `string`, `times`: the forms of the types
//! 6. `rows`: the table
//! 7. `lookup`: the type of an OID or a name
//! 8. `codec`, `wire`: values in keys and rows; on the wire
//! 9. `cast`: conversions between types

mod boolean;
mod bytea;
pub mod cast;
pub mod codec;
pub mod datum;
mod error;
pub mod float;
mod form;
pub mod integer;
pub mod letters;
mod lookup;
mod oid;
mod row;
mod rows;
mod sql_type;
mod sqlstate;
pub mod string;
mod times;
pub mod timestamp;
mod utf8;
pub mod wire;

pub use datum::{Datum, DatumRef, Repr};
pub use error::ValueError;
pub use lookup::{all, find, find_name};
pub use oid::Oid;
pub use row::{Category, IoEnv, TypeIo, TypeRow};
pub use sql_type::{MAX_VARCHAR, SqlType};
pub use sqlstate::SqlState;
pub use timestamp::{DateFormat, DateStyle, TimeZone};
pub use utf8::utf8;
pub use wire::Format;

#[cfg(test)]
mod tests;
