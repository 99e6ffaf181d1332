//! The forms of each type: its text and its bytes on the wire. A file for each kind of type, for the table of types.
//!
//! # Layers
//!
//! 1. `array`, `boolean`, `bytea`, `float`, `integer`, `json`, `numeric`, `string`, `times`, `uuid`: the types

pub(crate) mod array;
pub(crate) mod boolean;
pub(crate) mod bytea;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod json;
pub(crate) mod numeric;
pub(crate) mod string;
pub(crate) mod times;
pub(crate) mod uuid;
