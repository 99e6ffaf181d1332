//! POSIX regular expressions, in PostgreSQL's advanced (ARE), extended (ERE) and basic (BRE) syntax.
//!
//! A match is the leftmost one, and of those the longest, or the shortest if the first quantifier with a preference is
//! not greedy. Groups divide it as PostgreSQL does; see `tree`. The `regex` crate only finds where a match starts.
//! Back references try choices as PostgreSQL does, up to a bound.
//!
//! Otherwise time is bounded by the length of the text times the size of the pattern, for each match and each group.
//! Compiling is much slower than matching, so callers keep compiled patterns.
//!
//! # Layers
//!
//! 1. `options`, `set`: options, sets of characters
//! 2. `ast`: the syntax tree
//! 3. `scanner`: the state of the parser
//! 4. `escape`: escapes
//! 5. `bracket`, `quantifier`: parts of the syntax
//! 6. `parser`: the syntax
//! 7. `accelerate`, `program`: what is run
//! 8. `tree`: the parts of a match
//! 9. `matcher`: the division of a match
//! 10. `search`: the search
//! 11. `functions`: the functions of SQL

mod accelerate;
mod ast;
mod bracket;
mod escape;
mod functions;
mod matcher;
mod options;
mod parser;
mod program;
mod quantifier;
mod scanner;
mod search;
mod set;
mod tree;

pub use functions::{MatchPlace, ReplacePlace};
pub use options::RegexOptions;
pub use search::Regex;

#[cfg(test)]
mod golden_tests;
