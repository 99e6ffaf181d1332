//! Automata: the positions that a part of a pattern can reach, from many positions at once, in either direction.
//!
//! A run takes at worst the length of the text times the size of the program. It has no preferences: these are applied
//! to the positions that it finds.

use super::ast::{Assert, Ast, Parsed};
use super::scanner::too_complex;
use super::set::Set;
use crate::error::ValueError;
use crate::text::ctype;

/// The instructions of all programs of a pattern.
const MAX_INSTRUCTIONS: usize = 60_000;

#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Takes a character of a set.
    Set(usize),
    Assert(Assert),
    Look(usize),
    Jump(usize),
    Split(usize, usize),
    Match,
}

/// Which way a program reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// An automaton.
#[derive(Clone, Debug)]
pub(super) struct Program {
    instructions: Vec<Instruction>,
    direction: Direction,
}

impl Program {
    /// Compiles a part of a pattern. 2201B if it is too large. `budget` is what the programs of the pattern may still
    /// use.
    pub(super) fn new(ast: &Ast, direction: Direction, budget: &mut usize) -> Result<Program, ValueError> {
        let mut program = Program { instructions: Vec::new(), direction };
        program.compile(ast, budget)?;
        program.push(Instruction::Match, budget)?;
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction, budget: &mut usize) -> Result<usize, ValueError> {
        *budget = budget.checked_sub(1).ok_or_else(too_complex)?;
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn patch(&mut self, at: usize, instruction: Instruction) {
        if let Some(slot) = self.instructions.get_mut(at) {
            *slot = instruction;
        }
    }

    fn compile(&mut self, ast: &Ast, budget: &mut usize) -> Result<(), ValueError> {
        match ast {
            Ast::Empty => {}
            Ast::Set(set) => {
                self.push(Instruction::Set(*set), budget)?;
            }
            Ast::Assert(assert) => {
                self.push(Instruction::Assert(*assert), budget)?;
            }
            Ast::Look(look) => {
                self.push(Instruction::Look(*look), budget)?;
            }
            Ast::Capture(_, inner) | Ast::Reference(_, inner) => self.compile(inner, budget)?,
            Ast::Concat(items) => match self.direction {
                Direction::Forward => items.iter().try_for_each(|item| self.compile(item, budget))?,
                Direction::Backward => items.iter().rev().try_for_each(|item| self.compile(item, budget))?,
            },
            Ast::Alternate(branches) => self.compile_branches(branches, budget)?,
            Ast::Repeat { atom, min, max, .. } => self.compile_repeat(atom, *min, *max, budget)?,
        }
        Ok(())
    }

    fn compile_branches(&mut self, branches: &[Ast], budget: &mut usize) -> Result<(), ValueError> {
        let mut ends = Vec::with_capacity(branches.len());
        for (at, branch) in branches.iter().enumerate() {
            let is_last = at + 1 == branches.len();
            let split = if is_last { None } else { Some(self.push(Instruction::Jump(0), budget)?) };
            self.compile(branch, budget)?;
            if let Some(split) = split {
                ends.push(self.push(Instruction::Jump(0), budget)?);
                self.patch(split, Instruction::Split(split + 1, self.instructions.len()));
            }
        }
        for end in ends {
            self.patch(end, Instruction::Jump(self.instructions.len()));
        }
        Ok(())
    }

    fn compile_repeat(&mut self, atom: &Ast, min: u32, max: Option<u32>, budget: &mut usize) -> Result<(), ValueError> {
        for _ in 0..min {
            self.compile(atom, budget)?;
        }
        let Some(max) = max else {
            let split = self.push(Instruction::Jump(0), budget)?;
            self.compile(atom, budget)?;
            self.push(Instruction::Jump(split), budget)?;
            self.patch(split, Instruction::Split(split + 1, self.instructions.len()));
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Instruction::Jump(0), budget)?);
            self.compile(atom, budget)?;
        }
        for split in splits {
            self.patch(split, Instruction::Split(split + 1, self.instructions.len()));
        }
        Ok(())
    }
}

/// The size that the programs of a pattern may have together.
pub(super) fn budget() -> usize {
    MAX_INSTRUCTIONS
}

/// The size that the programs of the parts of a pattern may have together. Nested parts repeat each other.
pub(super) fn tree_budget() -> usize {
    8 * MAX_INSTRUCTIONS
}

/// A lookaround, ready to run.
#[derive(Clone, Debug)]
pub(super) struct LookProgram {
    program: Program,
    negated: bool,
}

/// Compiles the lookarounds of a pattern. 2201B if they are too large.
pub(super) fn looks(parsed: &Parsed, budget: &mut usize) -> Result<Vec<LookProgram>, ValueError> {
    let compile = |look: &super::ast::Look| {
        // What follows a position is found by reading back from every later one.
        let direction = if look.ahead { Direction::Backward } else { Direction::Forward };
        Ok(LookProgram { program: Program::new(&look.inner, direction, budget)?, negated: look.negated })
    };
    parsed.looks.iter().map(compile).collect()
}

/// A text with what a pattern knows about it.
pub(super) struct Haystack<'a> {
    text: &'a str,
    sets: &'a [Set],
    /// For each lookaround, whether it holds at each byte position. They are in the order of nesting: inner ones first.
    looks: Vec<Vec<bool>>,
}

/// Positions in a text.
pub(super) enum Sources<'a> {
    /// One position
    One(usize),
    /// Ascending positions
    Some(&'a [usize]),
    /// Every position
    All,
}

impl<'a> Haystack<'a> {
    pub(super) fn new(text: &'a str, sets: &'a [Set], looks: &[LookProgram]) -> Haystack<'a> {
        let mut haystack = Haystack { text, sets, looks: Vec::with_capacity(looks.len()) };
        for look in looks {
            let mut holds = vec![look.negated; text.len() + 1];
            haystack.run(&look.program, Sources::All, 0, text.len(), |at| {
                if let Some(hold) = holds.get_mut(at) {
                    *hold = !look.negated;
                }
                true
            });
            haystack.looks.push(holds);
        }
        haystack
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The character after a position.
    pub(super) fn after(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at)?.chars().next_back()
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let word = |c: Option<char>| c.is_some_and(ctype::is_word);
        match assert {
            Assert::TextStart => at == 0,
            Assert::TextEnd => at == self.text.len(),
            Assert::LineStart => at == 0 || self.before(at) == Some('\n'),
            Assert::LineEnd => at == self.text.len() || self.after(at) == Some('\n'),
            Assert::WordStart => !word(self.before(at)) && word(self.after(at)),
            Assert::WordEnd => word(self.before(at)) && !word(self.after(at)),
            Assert::WordBoundary => word(self.before(at)) != word(self.after(at)),
            Assert::NotWordBoundary => word(self.before(at)) == word(self.after(at)),
        }
    }

    /// Runs a program from positions between `low` and `high`. Calls `found` for each position that it reaches, in the
    /// order of its direction, until that returns `false`.
    pub(super) fn run(
        &self,
        program: &Program,
        sources: Sources<'_>,
        low: usize,
        high: usize,
        mut found: impl FnMut(usize) -> bool,
    ) {
        let forward = program.direction == Direction::Forward;
        let mut sources = Pending::new(sources, forward);
        let mut threads = Threads::new(program.instructions.len());
        let mut next = Threads::new(program.instructions.len());
        let Some(mut at) = sources.nearest(if forward { low } else { high }) else { return };
        loop {
            let mut matched = threads.close(self, program, at);
            if sources.take(at) {
                matched |= threads.enter(self, program, 0, at);
            }
            if matched && !found(at) {
                return;
            }
            let step = if forward { self.after(at) } else { self.before(at) };
            let Some(c) = step else { return };
            let neighbour = if forward { at + c.len_utf8() } else { at - c.len_utf8() };
            // Without threads nothing can happen before the next source.
            let idle = threads.list.is_empty();
            let target = if idle { sources.nearest(neighbour) } else { Some(neighbour) };
            at = match target {
                Some(to) if (low..=high).contains(&to) => to,
                _ => return,
            };
            next.clear();
            for pc in threads.list.drain(..) {
                if let Some(Instruction::Set(set)) = program.instructions.get(pc)
                    && self.sets.get(*set).is_some_and(|set| set.has(c))
                {
                    next.seeds.push(pc + 1);
                }
            }
            std::mem::swap(&mut threads, &mut next);
        }
    }
}

/// The sources that a run has not come to.
struct Pending<'a> {
    one: Option<usize>,
    rest: &'a [usize],
    all: bool,
    forward: bool,
}

impl<'a> Pending<'a> {
    fn new(sources: Sources<'a>, forward: bool) -> Pending<'a> {
        let none = Pending { one: None, rest: &[], all: false, forward };
        match sources {
            Sources::One(at) => Pending { one: Some(at), ..none },
            Sources::Some(rest) => Pending { rest, ..none },
            Sources::All => Pending { all: true, ..none },
        }
    }

    /// The next source, if this position is where the run could go on.
    fn nearest(&self, at: usize) -> Option<usize> {
        match (self.all, self.one) {
            (true, _) => Some(at),
            (false, Some(one)) => Some(one),
            (false, None) if self.forward => self.rest.first().copied(),
            (false, None) => self.rest.last().copied(),
        }
    }

    /// Whether a position is a source. It is none any more afterwards.
    fn take(&mut self, at: usize) -> bool {
        if self.all {
            return true;
        }
        if self.one == Some(at) {
            self.one = None;
            return true;
        }
        let nearest = if self.forward { self.rest.split_first() } else { self.rest.split_last() };
        match nearest {
            Some((position, rest)) if *position == at => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}

/// The states of a run at one position.
struct Threads {
    /// States that wait for a character
    list: Vec<usize>,
    /// States that the last character led to, before jumps
    seeds: Vec<usize>,
    /// The round in which a state was entered last
    entered: Vec<u32>,
    round: u32,
    stack: Vec<usize>,
}

impl Threads {
    fn new(size: usize) -> Threads {
        Threads { list: Vec::new(), seeds: Vec::new(), entered: vec![0; size], round: 1, stack: Vec::new() }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seeds.clear();
        match self.round.checked_add(1) {
            Some(round) => self.round = round,
            None => {
                self.entered.fill(0);
                self.round = 1;
            }
        }
    }

    /// Follows the jumps from the seeds. Whether that came to a match.
    fn close(&mut self, haystack: &Haystack<'_>, program: &Program, at: usize) -> bool {
        let mut matched = false;
        while let Some(seed) = self.seeds.pop() {
            matched |= self.enter(haystack, program, seed, at);
        }
        matched
    }

    /// Enters a state and follows its jumps. Whether that came to a match.
    fn enter(&mut self, haystack: &Haystack<'_>, program: &Program, state: usize, at: usize) -> bool {
        let mut matched = false;
        self.stack.push(state);
        while let Some(pc) = self.stack.pop() {
            match self.entered.get_mut(pc) {
                Some(round) if *round != self.round => *round = self.round,
                _ => continue,
            }
            match program.instructions.get(pc) {
                Some(Instruction::Set(_)) => self.list.push(pc),
                Some(Instruction::Assert(assert)) if haystack.holds(*assert, at) => self.stack.push(pc + 1),
                Some(Instruction::Look(look)) => {
                    let holds = haystack.looks.get(*look).and_then(|holds| holds.get(at)).copied();
                    if holds == Some(true) {
                        self.stack.push(pc + 1);
                    }
                }
                Some(Instruction::Jump(to)) => self.stack.push(*to),
                Some(Instruction::Split(a, b)) => self.stack.extend([*b, *a]),
                Some(Instruction::Match) => matched = true,
                _ => {}
            }
        }
        matched
    }
}
