//! What the parser makes of a pattern.

use super::set::Set;

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Ast {
    Empty,
    /// A character of the set at an index
    Set(usize),
    Assert(Assert),
    /// The lookaround at an index
    Look(usize),
    /// Parentheses that capture, with their number
    Capture(usize, Box<Ast>),
    Concat(Vec<Ast>),
    Alternate(Vec<Ast>),
    Repeat {
        atom: Box<Ast>,
        min: u32,
        /// `None` for no bound
        max: Option<u32>,
        prefer: Prefer,
    },
}

/// Which of the possible matches a part prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    /// No preference of its own
    Any,
    Longest,
    Shortest,
}

impl Prefer {
    /// This preference, or another one if this is none.
    pub(super) fn or(self, other: Prefer) -> Prefer {
        if self == Prefer::Any { other } else { self }
    }
}

/// Conditions at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assert {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
}

/// `(?=`, `(?!`, `(?<=`, `(?<!`
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) ahead: bool,
    pub(super) negated: bool,
    pub(super) inner: Ast,
}

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) ast: Ast,
    pub(super) sets: Vec<Set>,
    pub(super) looks: Vec<Look>,
    /// The number of parentheses that capture
    pub(super) groups: usize,
}
