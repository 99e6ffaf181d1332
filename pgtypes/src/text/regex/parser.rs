//! The syntax of patterns: PostgreSQL's advanced regular expressions (ARE), extended ones (ERE), basic ones (BRE) and
//! literal strings.

use super::ast::{Assert, Ast, Look, Parsed};
use super::escape::{Escape, bad_escape};
use super::options::{RegexOptions, Syntax};
use super::scanner::{Parser, bad_quantifier, invalid, too_complex};
use super::set::{self, Set};
use crate::error::ValueError;
use crate::text::ctype::{self, Ranges};

/// The parts that all back references may repeat.
const MAX_REPEATED: usize = 60_000;
/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 250;

fn unbalanced() -> ValueError {
    invalid("parentheses () not balanced")
}

/// Reads a pattern. 2201B as PostgreSQL says.
pub(super) fn parse(pattern: &str, options: RegexOptions) -> Result<Parsed, ValueError> {
    let mut parser = Parser {
        chars: pattern.chars().collect(),
        at: 0,
        options,
        depth: 0,
        in_look: false,
        sets: Vec::new(),
        looks: Vec::new(),
        groups: Vec::new(),
        references: false,
        budget: MAX_REPEATED,
    };
    let modes = options.expanded || options.newline_stops || options.newline_anchors;
    if options.syntax == Syntax::Literal && modes {
        return Err(invalid("invalid argument to regex function"));
    }
    parser.prefix()?;
    let ast = match parser.options.syntax {
        Syntax::Literal => parser.literal(),
        Syntax::Advanced | Syntax::Extended | Syntax::Basic => parser.alternatives()?,
    };
    if parser.at < parser.chars.len() {
        return Err(unbalanced());
    }
    Ok(Parsed {
        ast,
        sets: parser.sets,
        looks: parser.looks,
        groups: parser.groups.len(),
        references: parser.references,
        ignore_case: parser.options.ignore_case,
    })
}

impl Parser {
    /// Reads a director (`***:`, `***=`) and embedded options.
    fn prefix(&mut self) -> Result<(), ValueError> {
        if self.options.syntax == Syntax::Literal {
            return Ok(());
        }
        if self.eat("***=") {
            let ignore_case = self.options.ignore_case;
            self.options = RegexOptions { syntax: Syntax::Literal, ignore_case, ..RegexOptions::default() };
            return Ok(());
        }
        if self.eat("***:") {
            self.options.syntax = Syntax::Advanced;
        } else if self.eat("***") {
            return Err(bad_quantifier());
        }
        let letter = self.peek_at(2).is_some_and(ctype::is_alpha);
        if !self.is_advanced() || !letter || !self.eat("(?") {
            return Ok(());
        }
        while let Some(letter) = self.peek().filter(|c| ctype::is_alpha(*c)) {
            if !self.options.set(letter) {
                return Err(invalid("invalid embedded option"));
            }
            self.at += 1;
        }
        if self.eat(")") { Ok(()) } else { Err(invalid("invalid embedded option")) }
    }

    fn literal(&mut self) -> Ast {
        let mut items = Vec::new();
        while let Some(c) = self.next() {
            items.push(self.one(c.into()));
        }
        Ast::Concat(items)
    }

    /// Branches up to a closing parenthesis or the end.
    fn alternatives(&mut self) -> Result<Ast, ValueError> {
        let mut branches = Vec::new();
        loop {
            let branch = self.branch()?;
            branches.push(branch);
            if self.is_basic() || !self.eat("|") {
                break;
            }
        }
        Ok(match branches.pop() {
            Some(only) if branches.is_empty() => only,
            Some(last) => {
                branches.push(last);
                Ast::Alternate(branches)
            }
            None => Ast::Empty,
        })
    }

    fn branch(&mut self) -> Result<Ast, ValueError> {
        let mut items = Vec::new();
        loop {
            self.skip();
            match self.peek() {
                None => break,
                Some('|') if !self.is_basic() => break,
                // EREs take an unmatched parenthesis as a character.
                _ if self.closes_group() && (self.options.syntax != Syntax::Extended || self.depth > 0) => break,
                Some(c) => {
                    let item = if self.is_basic() { self.basic_item(c, &items) } else { self.item(c) }?;
                    items.push(item);
                }
            }
        }
        Ok(if items.is_empty() { Ast::Empty } else { Ast::Concat(items) })
    }

    /// A constraint, or an atom with its quantifier.
    fn item(&mut self, first: char) -> Result<Ast, ValueError> {
        let atom = match first {
            '*' | '+' | '?' => return Err(bad_quantifier()),
            '{' if self.starts_bound() => return Err(bad_quantifier()),
            '^' | '$' => {
                self.at += 1;
                return Ok(Ast::Assert(self.anchor(first)));
            }
            '(' => match self.parentheses()? {
                look @ Ast::Look(_) => return Ok(look),
                group => group,
            },
            '[' => match self.bracket_item()? {
                word @ Ast::Assert(_) => return Ok(word),
                set => set,
            },
            '.' => self.any(),
            '\\' => {
                self.at += 1;
                match self.escape()? {
                    Escape::Code(code) => self.one(code),
                    Escape::Class(class, negated) => {
                        let ranges = set::class(class, self.options.ignore_case);
                        self.set(if negated { ctype::complement(&ranges) } else { ranges })
                    }
                    Escape::Assert(assert) => return Ok(Ast::Assert(assert)),
                    Escape::BackReference(group) => self.back_reference(group)?,
                }
            }
            c => {
                self.at += 1;
                self.one(c.into())
            }
        };
        self.quantified(atom)
    }

    /// An item of a BRE, after others of its group.
    fn basic_item(&mut self, c: char, before: &[Ast]) -> Result<Ast, ValueError> {
        let first = before.is_empty();
        let after_anchor = matches!(before, [Ast::Assert(Assert::TextStart | Assert::LineStart)]);
        let escaped = if c == '\\' { self.peek_at(1) } else { None };
        let atom = match (c, escaped) {
            ('*', _) if !first && !after_anchor => return Err(bad_quantifier()),
            ('\\', Some('{')) => return Err(bad_quantifier()),
            ('^', _) if first => {
                self.at += 1;
                return Ok(Ast::Assert(self.anchor(c)));
            }
            ('$', _) if self.ends_group(1) => {
                self.at += 1;
                return Ok(Ast::Assert(self.anchor(c)));
            }
            ('[', _) => match self.bracket_item()? {
                word @ Ast::Assert(_) => return Ok(word),
                set => set,
            },
            ('.', _) => self.any(),
            ('\\', Some('(')) => self.parentheses()?,
            ('\\', Some(word @ ('<' | '>'))) => {
                self.at += 2;
                return Ok(Ast::Assert(if word == '<' { Assert::WordStart } else { Assert::WordEnd }));
            }
            ('\\', Some(digit @ '1'..='9')) => {
                self.at += 2;
                self.back_reference(digit.to_digit(10).unwrap_or(0))?
            }
            ('\\', Some(c)) => {
                self.at += 2;
                self.one(c.into())
            }
            ('\\', None) => return Err(bad_escape()),
            (c, _) => {
                self.at += 1;
                self.one(c.into())
            }
        };
        self.quantified(atom)
    }

    /// Whether a group of a BRE, or the pattern, ends after so many characters.
    fn ends_group(&self, mut ahead: usize) -> bool {
        while self.options.expanded && self.peek_at(ahead).is_some_and(ctype::is_space) {
            ahead += 1;
        }
        match self.peek_at(ahead) {
            None => true,
            Some('\\') => self.peek_at(ahead + 1) == Some(')'),
            Some(_) => false,
        }
    }

    /// Brackets, or the words `[[:<:]]` and `[[:>:]]`.
    fn bracket_item(&mut self) -> Result<Ast, ValueError> {
        if self.eat("[[:<:]]") {
            return Ok(Ast::Assert(Assert::WordStart));
        }
        if self.eat("[[:>:]]") {
            return Ok(Ast::Assert(Assert::WordEnd));
        }
        let ranges = self.bracket()?;
        Ok(self.set(ranges))
    }

    /// A point.
    fn any(&mut self) -> Ast {
        self.at += 1;
        let newline = [(10, 10)];
        let left_out: &[(u32, u32)] = if self.options.newline_stops { &newline } else { &[] };
        self.set(ctype::complement(left_out))
    }

    fn anchor(&self, c: char) -> Assert {
        match (c, self.options.newline_anchors) {
            ('^', false) => Assert::TextStart,
            ('^', true) => Assert::LineStart,
            (_, false) => Assert::TextEnd,
            (_, true) => Assert::LineEnd,
        }
    }

    fn back_reference(&mut self, number: u32) -> Result<Ast, ValueError> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let group = number.checked_sub(1).and_then(|at| self.groups.get(at)).and_then(Option::as_ref);
        let group = group.filter(|_| !self.in_look).ok_or_else(|| invalid("invalid backreference number"))?;
        let inner = group.approximation(&mut self.budget).ok_or_else(too_complex)?;
        self.references = true;
        Ok(Ast::Reference(number, Box::new(inner)))
    }

    /// What begins with an opening parenthesis.
    fn parentheses(&mut self) -> Result<Ast, ValueError> {
        self.at += if self.is_basic() { 2 } else { 1 };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_complex());
        }
        let ast = if self.is_advanced() && self.eat("?") {
            let look = [("=", true, false), ("!", true, true), ("<=", false, false), ("<!", false, true)];
            match look.iter().find(|(mark, ..)| self.eat(mark)) {
                Some((_, ahead, negated)) => {
                    let outer = std::mem::replace(&mut self.in_look, true);
                    let inner = self.alternatives()?;
                    self.in_look = outer;
                    self.looks.push(Look { ahead: *ahead, negated: *negated, inner });
                    Ast::Look(self.looks.len() - 1)
                }
                None if self.eat(":") => self.alternatives()?,
                None => return Err(bad_quantifier()),
            }
        } else if self.in_look {
            self.alternatives()?
        } else {
            self.groups.push(None);
            let number = self.groups.len();
            let inner = self.alternatives()?;
            if let Some(group) = self.groups.get_mut(number - 1) {
                *group = Some(inner.clone());
            }
            Ast::Capture(number, Box::new(inner))
        };
        self.depth -= 1;
        if self.eat(if self.is_basic() { "\\)" } else { ")" }) { Ok(ast) } else { Err(unbalanced()) }
    }

    fn one(&mut self, code: u32) -> Ast {
        self.set(set::one(code, self.options.ignore_case))
    }

    fn set(&mut self, ranges: Ranges) -> Ast {
        let set = Set::new(ranges);
        // Patterns repeat few sets, and near each other.
        let known = self.sets.iter().rev().take(16).position(|other| *other == set);
        match known {
            Some(back) => Ast::Set(self.sets.len() - 1 - back),
            None => {
                self.sets.push(set);
                Ast::Set(self.sets.len() - 1)
            }
        }
    }
}
