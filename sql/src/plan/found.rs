//! What the binder has found so far of the query that it is binding: its aggregates and window functions.

use sqlparser::tokenizer::Location;

use super::aggregation::{AggregateCall, AggregateOrder};
use super::window::Frame;
use crate::expr::Expr;
use pgtypes::SqlType;
use pgtypes::functions::WindowFn;

/// The aggregates and window functions of the current query.
#[derive(Debug, Default)]
pub(super) struct AggregateState {
    /// Whether the current clause allows aggregates.
    pub(super) allowed: bool,
    /// Whether an aggregate's argument is being bound.
    pub(super) inside: bool,
    /// The aggregates found so far.
    pub(super) calls: Vec<AggregateCall>,
    /// Where the first of them stands.
    pub(super) first: Option<Location>,
    /// The window functions.
    pub(super) windows: WindowState,
    /// The references to columns outside of aggregates: places, names, locations.
    pub(super) references: Vec<(usize, String, Location)>,
    /// Those of its sub-queries.
    pub(super) inner_references: Vec<(usize, String, Location)>,
}

/// The window functions of the current query.
#[derive(Debug, Default)]
pub(super) struct WindowState {
    /// Whether the current clause allows them.
    pub(super) allowed: bool,
    /// Whether an argument of one is being bound.
    pub(super) inside: bool,
    /// Whether a window is being bound.
    pub(super) in_definition: bool,
    /// The windows of WINDOW.
    pub(super) named: Vec<NamedWindow>,
    /// The windows of the calls.
    pub(super) found: Vec<FoundWindow>,
    /// The calls.
    pub(super) calls: Vec<FoundCall>,
}

/// A window of WINDOW.
#[derive(Debug)]
pub(super) struct NamedWindow {
    pub(super) name: String,
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<AggregateOrder>,
    /// The types of the keys of the order.
    pub(super) types: Vec<SqlType>,
    /// Its frame, if it says one.
    pub(super) frame: Option<Frame>,
}

/// A window of calls, over the source's row.
#[derive(Debug)]
pub(super) struct FoundWindow {
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<AggregateOrder>,
}

/// A call, over the source's row.
#[derive(Debug)]
pub(super) struct FoundCall {
    /// The place of its window.
    pub(super) window: usize,
    pub(super) function: FoundFunction,
    pub(super) frame: Frame,
}

/// What a call computes.
#[derive(Debug)]
pub(super) enum FoundFunction {
    Aggregate(AggregateCall),
    Own(WindowFn, Vec<Expr>),
}

impl WindowState {
    /// The expressions of all windows and calls.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let windows = self
            .found
            .iter_mut()
            .flat_map(|window| window.partition.iter_mut().chain(window.order.iter_mut().map(|key| &mut key.expr)));
        let calls = self.calls.iter_mut().flat_map(|call| match &mut call.function {
            FoundFunction::Own(_, args) => args.iter_mut().chain(None),
            FoundFunction::Aggregate(call) => call.args.iter_mut().chain(call.filter.as_mut()),
        });
        windows.chain(calls)
    }
}
