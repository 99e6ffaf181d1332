//! The shape of a match: where parentheses and mixed preferences divide it.
//!
//! PostgreSQL first finds the whole match, then divides it from left to right. Each part takes as much as it prefers,
//! as long as the parts after it can take the rest. Parts that neither capture nor mix preferences are not divided.

use super::ast::{Ast, Prefer};
use super::program::{Direction, Program};
use crate::error::ValueError;

/// A part of a match.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) prefer: Prefer,
    /// Whether it has back references, so that a span that fits may still not match.
    pub(super) references: bool,
    /// Matches the part forwards.
    pub(super) forward: Program,
    /// Matches the part backwards.
    pub(super) backward: Program,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Is not divided.
    Leaf,
    Capture(usize, Box<Part>),
    /// One after the other
    Sequence(Vec<Part>),
    /// The first that fits
    Choice(Vec<Part>),
    /// The same part several times
    Iterate(Iteration),
    /// What a group has matched, so many times
    Reference {
        group: usize,
        min: u32,
        max: Option<u32>,
    },
}

/// A repeated part.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    pub(super) child: Box<Part>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// The groups in the child, which each repetition forgets
    pub(super) groups: Vec<usize>,
}

/// What a part says to the parts around it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flags {
    prefer: Prefer,
    /// Whether it holds both preferences.
    mixed: bool,
    captures: bool,
    references: bool,
}

const PLAIN: Flags = Flags { prefer: Prefer::Any, mixed: false, captures: false, references: false };

impl Flags {
    fn preferring(prefer: Prefer) -> Flags {
        Flags { prefer, ..PLAIN }
    }

    /// The flags of two parts together: the preference of the first.
    fn with(self, other: Flags) -> Flags {
        let clash = self.prefer != Prefer::Any && other.prefer != Prefer::Any && self.prefer != other.prefer;
        Flags {
            prefer: self.prefer.or(other.prefer),
            mixed: self.mixed || other.mixed || clash,
            captures: self.captures || other.captures,
            references: self.references || other.references,
        }
    }

    fn is_messy(self) -> bool {
        self.mixed || self.captures || self.references
    }
}

/// Builds the parts of a pattern. 2201B if the programs are too large.
pub(super) fn build(ast: &Ast, budget: &mut usize) -> Result<Part, ValueError> {
    Builder { budget }.part(ast)
}

/// The preference of a whole pattern.
pub(super) fn preference(ast: &Ast) -> Prefer {
    flags(ast).prefer
}

fn flags(ast: &Ast) -> Flags {
    match ast {
        Ast::Empty | Ast::Set(_) | Ast::Assert(_) | Ast::Look(_) => PLAIN,
        Ast::Reference(..) => Flags { references: true, ..PLAIN },
        Ast::Capture(_, inner) => Flags { captures: true, ..flags(inner) },
        Ast::Concat(items) => match items.split_last() {
            Some((last, before)) => before.iter().fold(PLAIN, |all, item| all.with(flags(item))).with(last_flags(last)),
            None => PLAIN,
        },
        Ast::Alternate(branches) => {
            branches.iter().fold(Flags::preferring(Prefer::Longest), |all, branch| all.with(flags(branch)))
        }
        // A count of zero makes nothing of the atom.
        Ast::Repeat { max: Some(0), .. } => PLAIN,
        Ast::Repeat { atom, prefer, .. } => Flags::preferring(*prefer).with(flags(atom)),
    }
}

/// The flags of the last item of a branch. PostgreSQL drops a quantifier there that changes nothing, if its atom
/// captures, and its preference with it.
fn last_flags(item: &Ast) -> Flags {
    match item {
        Ast::Repeat { atom, min: 1, max: Some(1), prefer }
            if flags(atom).captures && !matches!(**atom, Ast::Reference(..)) && is_vacuous(*prefer, flags(atom)) =>
        {
            flags(atom)
        }
        item => flags(item),
    }
}

/// Whether a count of one with this preference changes nothing of an atom.
fn is_vacuous(prefer: Prefer, atom: Flags) -> bool {
    let same = atom.prefer == Prefer::Any || atom.prefer == prefer;
    prefer == Prefer::Any || (same && !atom.mixed)
}

struct Builder<'a> {
    budget: &'a mut usize,
}

impl Builder<'_> {
    fn make(&mut self, ast: &Ast, prefer: Prefer, kind: Kind) -> Result<Part, ValueError> {
        let forward = Program::new(ast, Direction::Forward, self.budget)?;
        let backward = Program::new(ast, Direction::Backward, self.budget)?;
        Ok(Part { kind, prefer, references: flags(ast).references, forward, backward })
    }

    fn leaf(&mut self, ast: &Ast, prefer: Prefer) -> Result<Part, ValueError> {
        self.make(ast, prefer, Kind::Leaf)
    }

    fn part(&mut self, ast: &Ast) -> Result<Part, ValueError> {
        let own = flags(ast);
        if !own.is_messy() {
            return self.leaf(ast, own.prefer);
        }
        match ast {
            Ast::Capture(number, inner) => {
                let inner = self.part(inner)?;
                self.make(ast, own.prefer, Kind::Capture(*number, Box::new(inner)))
            }
            Ast::Reference(group, _) => {
                self.make(ast, own.prefer, Kind::Reference { group: *group, min: 1, max: Some(1) })
            }
            Ast::Concat(items) => self.sequence(ast, items),
            Ast::Alternate(branches) => {
                let parts = branches.iter().map(|branch| self.part(branch)).collect::<Result<_, _>>()?;
                self.make(ast, own.prefer, Kind::Choice(parts))
            }
            Ast::Repeat { atom, min, max, prefer } => self.repeat(ast, atom, (*min, *max), *prefer),
            Ast::Empty | Ast::Set(_) | Ast::Assert(_) | Ast::Look(_) => self.leaf(ast, own.prefer),
        }
    }

    /// Runs of items that need no division are one part.
    fn sequence(&mut self, ast: &Ast, items: &[Ast]) -> Result<Part, ValueError> {
        let mut parts = Vec::new();
        let mut run: Vec<Ast> = Vec::new();
        let mut run_flags = PLAIN;
        for item in items {
            let own = flags(item);
            if run_flags.with(own).is_messy() {
                parts.push(self.leaf(&Ast::Concat(std::mem::take(&mut run)), run_flags.prefer)?);
                run_flags = PLAIN;
                parts.push(self.part(item)?);
            } else {
                run.push(item.clone());
                run_flags = run_flags.with(own);
            }
        }
        if !run.is_empty() {
            parts.push(self.leaf(&Ast::Concat(run), run_flags.prefer)?);
        }
        self.make(ast, flags(ast).prefer, Kind::Sequence(parts))
    }

    fn repeat(
        &mut self,
        ast: &Ast,
        atom: &Ast,
        (min, max): (u32, Option<u32>),
        prefer: Prefer,
    ) -> Result<Part, ValueError> {
        let inner = flags(atom);
        let all = Flags::preferring(prefer).with(inner);
        if (min, max) == (1, Some(1)) && is_vacuous(prefer, inner) {
            return self.part(atom);
        }
        if max == Some(0) || !(inner.captures || inner.references) {
            return self.leaf(ast, all.prefer);
        }
        if let Ast::Reference(group, _) = atom {
            return self.make(ast, all.prefer, Kind::Reference { group: *group, min, max });
        }
        if min == 0 || inner.references {
            let child = Box::new(self.part(atom)?);
            let mut groups = Vec::new();
            atom.groups(&mut groups);
            let iteration = Iteration { child, min, max, groups };
            return self.make(ast, all.prefer, Kind::Iterate(iteration));
        }
        // Only the last repetition captures. Those before it are one part.
        let before = Ast::Repeat {
            atom: Box::new(atom.clone()),
            min: min - 1,
            max: max.map(|max| max.saturating_sub(1)),
            prefer,
        };
        let parts = vec![self.leaf(&before, all.prefer)?, self.part(atom)?];
        self.make(ast, all.prefer, Kind::Sequence(parts))
    }
}
