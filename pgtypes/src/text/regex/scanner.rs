//! The state of the parser: the pattern, what was read of it, and errors.

use super::ast::{Ast, Look};
use super::options::{RegexOptions, Syntax};
use super::set::Set;
use crate::error::ValueError;
use crate::sqlstate::SqlState;
use crate::text::ctype;

/// 2201B with the words of PostgreSQL.
pub(super) fn invalid(why: &str) -> ValueError {
    ValueError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {why}"))
}

pub(super) fn too_complex() -> ValueError {
    invalid("regular expression is too complex")
}

pub(super) fn bad_quantifier() -> ValueError {
    invalid("quantifier operand invalid")
}

/// A scanner over a pattern.
pub(super) struct Parser {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) options: RegexOptions,
    pub(super) depth: usize,
    /// Whether this is inside of a lookaround, where nothing captures.
    pub(super) in_look: bool,
    pub(super) sets: Vec<Set>,
    pub(super) looks: Vec<Look>,
    /// For each group, what it has inside, once it is closed.
    pub(super) groups: Vec<Option<Ast>>,
    pub(super) references: bool,
    /// The parts that back references may still repeat.
    pub(super) budget: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let matches = text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c));
        if matches {
            self.at += text.chars().count();
        }
        matches
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn back(&mut self, count: usize) {
        self.at = self.at.saturating_sub(count);
    }

    /// The groups that are open or closed here.
    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn is_basic(&self) -> bool {
        self.options.syntax == Syntax::Basic
    }

    /// What closes a group, which a BRE writes with a backslash.
    pub(super) fn closes_group(&self) -> bool {
        if self.is_basic() {
            self.peek() == Some('\\') && self.peek_at(1) == Some(')')
        } else {
            self.peek() == Some(')')
        }
    }

    pub(super) fn is_advanced(&self) -> bool {
        self.options.syntax == Syntax::Advanced
    }

    pub(super) fn options(&self) -> RegexOptions {
        self.options
    }

    /// Skips comments, and white space in expanded syntax.
    pub(super) fn skip(&mut self) {
        loop {
            match self.peek() {
                Some(c) if self.options.expanded && ctype::is_space(c) => self.at += 1,
                Some('#') if self.options.expanded => while self.next().is_some_and(|c| c != '\n') {},
                Some('(') if self.is_advanced() && self.eat("(?#") => while self.next().is_some_and(|c| c != ')') {},
                _ => return,
            }
        }
    }

    /// Skips white space and comments of expanded syntax.
    pub(super) fn skip_space(&mut self) {
        while self.options.expanded {
            match self.peek() {
                Some(c) if ctype::is_space(c) => self.at += 1,
                Some('#') => while self.next().is_some_and(|c| c != '\n') {},
                _ => return,
            }
        }
    }
}
