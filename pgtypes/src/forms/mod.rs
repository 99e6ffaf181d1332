//! The forms of each type: its text and its bytes on the wire. A file for each kind of type, for the table of types.
//!
//! # Layers
//!
//! 1. `array`, `boolean`, `bytea`, `enums`, `float`, `integer`, `numeric`, `record`, `string`, `times`, `uuid`: types
//! 2. `json`, `reg`: types with forms of others

pub(crate) mod array;
pub(crate) mod boolean;
pub(crate) mod bytea;
pub(crate) mod enums;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod json;
pub(crate) mod numeric;
pub(crate) mod record;
pub(crate) mod reg;
pub(crate) mod string;
pub(crate) mod times;
pub(crate) mod uuid;
