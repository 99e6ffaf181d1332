//! What the binder has found so far of the query that it is binding: its aggregates, window functions and functions
//! that return sets.

use sqlparser::tokenizer::Location;

use super::aggregation::{AggregateCall, AggregateOrder};
use super::set_call::SetCall;
use super::window::Frame;
use crate::expr::Expr;
use pgtypes::SqlType;
use pgtypes::functions::WindowFn;

/// The aggregates, window functions and functions that return sets of the current query.
#[derive(Debug, Default)]
pub(super) struct AggregateState {
    /// Whether the current clause allows aggregates.
    pub(super) allowed: bool,
    /// Whether an aggregate's argument is being bound.
    pub(super) inside: bool,
    /// Whether it is a direct one, whose columns are to be grouped.
    pub(super) in_direct: bool,
    /// The aggregates found so far.
    pub(super) calls: Vec<AggregateCall>,
    /// Where the first of them stands.
    pub(super) first: Option<Location>,
    /// The window functions.
    pub(super) windows: WindowState,
    /// The functions that return sets.
    pub(super) sets: SetState,
    /// The references to columns outside of aggregates, in the order of binding. The flag is that of those in
    /// sub-queries.
    pub(super) references: Vec<(ColumnRead, bool)>,
}

/// A reference to a column: the place of the column, and where the reference is.
pub(super) type ColumnRead = (usize, Location);

impl AggregateState {
    /// That of a query before its clauses are bound.
    pub(super) fn of_query() -> AggregateState {
        let sets = SetState { allowed: true, ..Default::default() };
        AggregateState { allowed: true, sets, ..Default::default() }
    }

    /// Whether the columns that are being bound are to be grouped.
    pub(super) fn notes_references(&self) -> bool {
        !self.inside || self.in_direct
    }
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
    /// Where the first of them stands.
    pub(super) first: Option<Location>,
}

/// The functions that return sets, of the current query.
#[derive(Debug, Default)]
pub(super) struct SetState {
    /// Whether the current clause allows them.
    pub(super) allowed: bool,
    /// The calls. Equal ones are one.
    pub(super) calls: Vec<SetCall>,
    /// How many have been bound, each of the equal ones too.
    pub(super) bound: usize,
    /// Where the last one stands.
    pub(super) last: Option<Location>,
}

impl SetState {
    /// Adds a call. `is_target`: it stands in the select list, where volatile calls are never one.
    pub(super) fn add(&mut self, call: SetCall, is_target: bool, at: Location) -> Expr {
        self.bound += 1;
        self.last = Some(at);
        let can_share = !is_target || !call.is_volatile();
        let known = self.calls.iter().position(|known| can_share && known.is_same(&call));
        Expr::SetValue(known.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        }))
    }

    /// Whether a part of an expression, or of the arguments of the calls in it, satisfies `test`.
    pub(super) fn any(&self, expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
        expr.any(&|part| match part {
            Expr::SetValue(at) => {
                self.calls.get(*at).is_some_and(|call| call.args().iter().any(|arg| self.any(arg, test)))
            }
            part => test(part),
        })
    }
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

impl FoundCall {
    /// The arguments and FILTER.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        match &self.function {
            FoundFunction::Own(_, args) => args.iter().chain(None),
            FoundFunction::Aggregate(call) => call.args.iter().chain(call.filter.as_ref()),
        }
    }
}

impl WindowState {
    /// The expressions of all windows and calls.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let windows = keys_of(&mut self.found);
        let calls = self.calls.iter_mut().flat_map(|call| match &mut call.function {
            FoundFunction::Own(_, args) => args.iter_mut().chain(None),
            FoundFunction::Aggregate(call) => call.args.iter_mut().chain(call.filter.as_mut()),
        });
        windows.chain(calls)
    }

    /// The keys of all windows.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Expr> {
        self.found.iter().flat_map(|window| window.partition.iter().chain(window.order.iter().map(|key| &key.expr)))
    }

    /// The same, to be changed.
    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        keys_of(&mut self.found)
    }
}

fn keys_of(windows: &mut [FoundWindow]) -> impl Iterator<Item = &mut Expr> {
    windows
        .iter_mut()
        .flat_map(|window| window.partition.iter_mut().chain(window.order.iter_mut().map(|key| &mut key.expr)))
}
