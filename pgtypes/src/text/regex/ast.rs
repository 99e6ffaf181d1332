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
    /// What a group has matched, with all that it can match
    Reference(usize, Box<Ast>),
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

impl Ast {
    /// The same without constraints, groups and references: all that it can match. `None` beyond `budget` parts.
    pub(super) fn approximation(&self, budget: &mut usize) -> Option<Ast> {
        *budget = budget.checked_sub(1)?;
        let mut each = |items: &[Ast]| items.iter().map(|item| item.approximation(budget)).collect::<Option<Vec<_>>>();
        Some(match self {
            Ast::Empty | Ast::Assert(_) | Ast::Look(_) => Ast::Empty,
            Ast::Set(set) => Ast::Set(*set),
            Ast::Concat(items) => Ast::Concat(each(items)?),
            Ast::Alternate(branches) => Ast::Alternate(each(branches)?),
            Ast::Capture(_, inner) | Ast::Reference(_, inner) => inner.approximation(budget)?,
            Ast::Repeat { atom, min, max, prefer } => {
                let atom = Box::new(atom.approximation(budget)?);
                Ast::Repeat { atom, min: *min, max: *max, prefer: *prefer }
            }
        })
    }

    /// The numbers of the groups inside.
    pub(super) fn groups(&self, out: &mut Vec<usize>) {
        match self {
            Ast::Capture(number, inner) => {
                out.push(*number);
                inner.groups(out);
            }
            Ast::Concat(items) | Ast::Alternate(items) => items.iter().for_each(|item| item.groups(out)),
            Ast::Repeat { atom, .. } => atom.groups(out),
            _ => {}
        }
    }
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
    /// Whether there are back references
    pub(super) references: bool,
    pub(super) ignore_case: bool,
}
