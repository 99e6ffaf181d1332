//! Quantifiers: `*`, `+`, `?` and bounds, with their preference.

use super::ast::{Ast, Prefer};
use super::scanner::{Parser, invalid};
use crate::error::ValueError;
use crate::text::ctype;

/// The largest number in a bound.
const MAX_BOUND: u32 = 255;

fn bad_bound() -> ValueError {
    invalid("invalid repetition count(s)")
}

impl Parser {
    /// Whether a brace begins a bound here. Otherwise it is a character.
    pub(super) fn starts_bound(&self) -> bool {
        let mut ahead = 1;
        while self.options().expanded && self.peek_at(ahead).is_some_and(ctype::is_space) {
            ahead += 1;
        }
        self.peek_at(ahead).is_some_and(|c| c.is_ascii_digit())
    }

    /// An atom with the quantifier that follows, if there is one.
    pub(super) fn quantified(&mut self, atom: Ast) -> Result<Ast, ValueError> {
        self.skip();
        let (min, max, own) = match self.peek() {
            Some('*') => (0, None, true),
            Some('\\') if self.is_basic() && self.peek_at(1) == Some('{') => {
                self.next();
                self.bound()?
            }
            _ if self.is_basic() => return Ok(atom),
            Some('+') => (1, None, true),
            Some('?') => (0, Some(1), true),
            Some('{') if self.starts_bound() => self.bound()?,
            _ => return Ok(atom),
        };
        self.next();
        let lazy = self.is_advanced() && self.eat("?");
        let prefer = match (own, lazy) {
            (false, _) => Prefer::Any,
            (true, false) => Prefer::Longest,
            (true, true) => Prefer::Shortest,
        };
        Ok(Ast::Repeat { atom: Box::new(atom), min, max, prefer })
    }

    /// The bound at a brace, and whether it has a preference. Moves to the closing brace.
    fn bound(&mut self) -> Result<(u32, Option<u32>, bool), ValueError> {
        self.next();
        let min = self.bound_number()?;
        let (max, own) = if self.eat(",") {
            self.skip_space();
            let digit = self.peek().is_some_and(|c| c.is_ascii_digit());
            (if digit { Some(self.bound_number()?) } else { None }, true)
        } else {
            // A fixed count passes on the preference of its atom.
            (Some(min), false)
        };
        if max.is_some_and(|max| max < min) {
            return Err(bad_bound());
        }
        if self.is_basic() && self.peek().is_some() && !(self.eat("\\") && self.peek() == Some('}')) {
            return Err(bad_bound());
        }
        match self.peek() {
            Some('}') => Ok((min, max, own)),
            None => Err(invalid("braces {} not balanced")),
            Some(_) => Err(bad_bound()),
        }
    }

    fn bound_number(&mut self) -> Result<u32, ValueError> {
        let mut value = 0;
        self.skip_space();
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = value * 10 + digit;
            if value > MAX_BOUND {
                return Err(bad_bound());
            }
            self.next();
            self.skip_space();
        }
        Ok(value)
    }
}
