//! A compiled pattern, and the search for matches with their groups.

use std::sync::OnceLock;

use super::ast::{Parsed, Prefer};
use super::options::RegexOptions;
use super::program::{self, Haystack, LookProgram, Program};
use super::{accelerate, matcher, parser, tree};
use crate::error::ValueError;

/// A compiled pattern. Large: callers keep a bounded number of them.
#[derive(Debug)]
pub struct Regex {
    parsed: Parsed,
    prefer: Prefer,
    looks: Vec<LookProgram>,
    forward: Program,
    fast: Option<regex::Regex>,
    /// Finds starts where `fast` cannot.
    backward: Option<Program>,
    /// Divides a match among groups. Made when a function first asks for groups, as many patterns only test.
    tree: OnceLock<Result<tree::Part, ValueError>>,
    size: usize,
}

/// A search through one text.
pub(super) struct Search<'a> {
    regex: &'a Regex,
    haystack: Haystack<'a>,
    /// All starts of matches, where the `regex` crate cannot find them.
    starts: Option<Vec<usize>>,
}

impl Regex {
    /// Compiles a pattern. 2201B for a bad or too complex one.
    pub fn new(pattern: &str, options: RegexOptions) -> Result<Regex, ValueError> {
        let parsed = parser::parse(pattern, options)?;
        let mut budget = program::budget();
        let forward = Program::new(&parsed.ast, program::Direction::Forward, &mut budget)?;
        let looks = program::looks(&parsed, &mut budget)?;
        let fast = accelerate::compile(&parsed);
        let backward = match fast {
            Some(_) => None,
            None => Some(Program::new(&parsed.ast, program::Direction::Backward, &mut budget)?),
        };
        let prefer = tree::preference(&parsed.ast);
        let size = program::budget() - budget;
        Ok(Regex { parsed, prefer, looks, forward, fast, backward, tree: OnceLock::new(), size })
    }

    /// The number of its instructions, which its memory grows with. A pattern of a few characters has a few dozen, and
    /// none has more than 60,000.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.parsed.groups
    }

    /// `~`, `regexp_like`: whether there is a match. Only back references have errors: 54001 for too many steps.
    pub fn is_match(&self, text: &str) -> Result<bool, ValueError> {
        match &self.fast {
            Some(fast) => Ok(fast.is_match(text)),
            None if self.parsed.references => Ok(self.search(text).find(0)?.is_some()),
            None => Ok(matcher::is_match(&self.haystack(text), &self.forward)),
        }
    }

    fn tree(&self) -> Result<&tree::Part, ValueError> {
        let build = || tree::build(&self.parsed.ast, &mut program::tree_budget());
        self.tree.get_or_init(build).as_ref().map_err(Clone::clone)
    }

    fn haystack<'a>(&'a self, text: &'a str) -> Haystack<'a> {
        Haystack::new(text, &self.parsed.sets, &self.looks)
    }

    pub(super) fn search<'a>(&'a self, text: &'a str) -> Search<'a> {
        let haystack = self.haystack(text);
        let starts = self.backward.as_ref().map(|backward| matcher::all_starts(&haystack, backward));
        Search { regex: self, haystack, starts }
    }
}

/// A match.
pub(super) struct Match {
    pub(super) span: matcher::Span,
    /// The groups, if the search had to find them.
    groups: Option<Vec<Option<matcher::Span>>>,
}

impl Search<'_> {
    /// The first match from a byte offset on. 54001 if back references take too many steps.
    pub(super) fn find(&self, from: usize) -> Result<Option<Match>, ValueError> {
        let Regex { parsed, forward, prefer, .. } = self.regex;
        let starts = match &self.starts {
            Some(starts) => starts.get(starts.partition_point(|start| *start < from)..).unwrap_or(&[]),
            None => &[],
        };
        if parsed.references {
            return self.find_referring(starts);
        }
        let start = match &self.regex.fast {
            Some(fast) => fast.find_at(self.haystack.text(), from).map(|found| found.start()),
            None => starts.first().copied(),
        };
        let span = start.and_then(|start| Some((start, matcher::end(&self.haystack, forward, start, *prefer)?)));
        Ok(span.map(|span| Match { span, groups: None }))
    }

    /// The first match of a pattern with back references: a span may fit, and not be a match.
    fn find_referring(&self, starts: &[usize]) -> Result<Option<Match>, ValueError> {
        let tree = self.regex.tree()?;
        let mut divider = self.divider();
        for start in starts {
            let mut ends = matcher::ends(&self.haystack, &self.regex.forward, *start);
            if self.regex.prefer != Prefer::Shortest {
                ends.reverse();
            }
            for end in ends {
                divider.clear();
                let span = (*start, end);
                if divider.divide(tree, span)? {
                    return Ok(Some(Match { span, groups: Some(divider.into_groups()) }));
                }
            }
        }
        Ok(None)
    }

    fn divider(&self) -> matcher::Divider<'_> {
        matcher::Divider::new(&self.haystack, self.regex.groups(), self.regex.parsed.ignore_case)
    }

    /// The groups of a match. 2201B if the pattern is too complex to be divided.
    pub(super) fn groups(&self, found: &Match) -> Result<Vec<Option<matcher::Span>>, ValueError> {
        if let Some(groups) = &found.groups {
            return Ok(groups.clone());
        }
        let mut divider = self.divider();
        if self.regex.groups() > 0 {
            divider.divide(self.regex.tree()?, found.span)?;
        }
        Ok(divider.into_groups())
    }

    /// The offset at which the search goes on after a match. `None` at the end of the text.
    pub(super) fn next(&self, (start, end): matcher::Span) -> Option<usize> {
        if start < end {
            return Some(end);
        }
        self.haystack.after(end).map(|c| end + c.len_utf8())
    }
}
