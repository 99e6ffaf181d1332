//! What window functions compute, and the frames of rows that they see.

use super::aggregation::AggregateCall;
use crate::expr::Expr;
use pgtypes::functions::WindowFn;

/// What a call computes.
#[derive(Debug, PartialEq)]
pub(crate) enum WindowFunction {
    /// An aggregate over the frame. Its arguments and its FILTER are columns.
    Aggregate(AggregateCall),
    /// A function of windows, over columns.
    Own(WindowFn, Vec<usize>),
}

/// The rows around a row that a call sees.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) units: FrameUnits,
    pub(crate) start: FrameBound,
    pub(crate) end: FrameBound,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameUnits {
    /// Rows.
    Rows,
    /// Values of the only sort key.
    Range,
    /// Groups of rows that are equal in the order.
    Groups,
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FrameBound {
    /// The end of the partition on this side.
    Unbounded,
    /// CURRENT ROW
    Current,
    /// So much before the row, or behind it.
    Offset {
        offset: Expr,
        follows: bool,
        /// How values are compared, of RANGE.
        range: Option<Box<RangeBound>>,
    },
}

/// A bound of a frame by values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RangeBound {
    /// The value at the bound, over the value of the row and the offset.
    pub(crate) edge: Expr,
    /// Whether another value is on the inner side of the bound, over that value and the one at the bound.
    pub(crate) test: Expr,
    /// The outcome of the test if the value at the bound is too large, or too small, for its type.
    pub(crate) beyond: bool,
}

impl Frame {
    /// That of a call which says nothing: from the first row of the partition to the last one that is equal to the row.
    pub(crate) fn default_one() -> Frame {
        Frame { units: FrameUnits::Range, start: FrameBound::Unbounded, end: FrameBound::Current }
    }

    /// Its offsets.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = &Expr> {
        [&self.start, &self.end].into_iter().filter_map(|bound| match bound {
            FrameBound::Offset { offset, .. } => Some(offset),
            FrameBound::Unbounded | FrameBound::Current => None,
        })
    }
}

impl WindowFunction {
    /// The columns of the input that it reads.
    pub(crate) fn columns(&self) -> Vec<usize> {
        match self {
            WindowFunction::Own(_, args) => args.clone(),
            WindowFunction::Aggregate(call) => call
                .inputs()
                .filter_map(|input| match input {
                    Expr::Column(at) => Some(*at),
                    _ => None,
                })
                .collect(),
        }
    }
}
