//! Templates of `to_char`, `to_date` and `to_timestamp`: patterns with their modifiers, and text between them.
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 1. `patterns`: the patterns
//! 2. `parse`: templates
//! 3. `write`: `to_char`
//! 4. `scan`: the fields of a text
//! 5. `assemble`: `to_date` and `to_timestamp`

mod assemble;
mod parse;
mod patterns;
mod scan;
mod write;
