//! The names that WITH gives to queries.

use super::node::ResultColumn;

/// A name of WITH.
#[derive(Clone, Debug)]
pub(super) struct WithName {
    pub(super) name: String,
    pub(super) columns: Vec<ResultColumn>,
    /// The place of its query.
    pub(super) query: usize,
    /// Whether the query is being bound: a reference is the recursion.
    pub(super) is_recursion: bool,
}
