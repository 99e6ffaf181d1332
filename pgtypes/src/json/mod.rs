//! `json` and `jsonb`: [`Json`] keeps the text it was given, [`Jsonb`] is a tree in PostgreSQL's canonical form.
//!
//! Both accept the same texts, with the errors of PostgreSQL's parser. The functions and operators of SQL are methods:
//! those of `json` read the text again and return slices of it, those of `jsonb` walk the tree. NULL is `None`.
//! jsonpath is not part of this module.
//!
//! # Layers
//!
//! 1. `escape`, `lexer`, `path`: strings, tokens, elements of paths
//! 2. `parser`: the grammar, over a builder of values
//! 3. `value`: `Jsonb` and its forms
//! 4. `access`, `build`, `contain`, `convert`, `edit`, `order`, `text`: functions of `Jsonb`, JSON from rendered parts,
//!    `Json` and its functions

mod access;
mod build;
mod contain;
mod convert;
mod edit;
mod escape;
mod lexer;
mod order;
mod parser;
mod path;
mod text;
mod value;

pub use build::{
    Layout, array, array_to_json, build_array, build_object, json_agg, json_object, json_object_agg, jsonb_object,
    jsonb_object_agg, object, row_to_json,
};
pub use escape::escape;
pub use parser::MAX_DEPTH;
pub use path::Path;
pub use text::Json;
pub use value::Jsonb;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod property_tests;
