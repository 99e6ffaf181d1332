//! The functions and operators of `json` and `jsonb`, but jsonpath, comparisons and aggregates.
//!
//! # Layers
//!
//! 1. `convert`, `values`: values of any type as JSON; what the functions take and return
//! 2. `build`, `edit`, `text`, `tree`: JSON from other values; changed copies of `jsonb`; parts of `json`, of `jsonb`

mod build;
pub(in crate::functions) mod convert;
mod edit;
mod text;
mod tree;
mod values;

pub(super) use build::ROWS as BUILD;
pub(super) use edit::ROWS as EDIT;
pub(super) use text::ROWS as TEXT;
pub(super) use tree::ROWS as TREE;

#[cfg(test)]
mod tests;
