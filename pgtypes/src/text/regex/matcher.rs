//! The search for a match, and its division.

use super::ast::Prefer;
use super::program::{Haystack, Program, Sources};
use super::scanner::too_complex;
use super::tree::{Iteration, Kind, Part};
use crate::error::ValueError;
use crate::letters;
use crate::sqlstate::SqlState;

/// The choices that a search with back references may try, and some more for each byte of the text.
const MAX_STEPS: usize = 200_000;
/// The positions between the parts of a sequence that a division may keep: 256 MB.
const MAX_POSITIONS: usize = 32 << 20;

/// The byte offsets of a match.
pub(super) type Span = (usize, usize);

/// The positions that a program reaches from one position, ascending if it runs forwards.
fn reached(haystack: &Haystack<'_>, program: &Program, from: Sources<'_>, low: usize, high: usize) -> Vec<usize> {
    let mut out = Vec::new();
    haystack.run(program, from, low, high, |at| {
        out.push(at);
        true
    });
    out
}

/// The end of the match from a start.
pub(super) fn end(haystack: &Haystack<'_>, forward: &Program, start: usize, prefer: Prefer) -> Option<usize> {
    let mut end = None;
    haystack.run(forward, Sources::One(start), start, haystack.text().len(), |at| {
        end = Some(at);
        prefer != Prefer::Shortest
    });
    end
}

/// Whether there is a match.
pub(super) fn is_match(haystack: &Haystack<'_>, forward: &Program) -> bool {
    let mut found = false;
    haystack.run(forward, Sources::All, 0, haystack.text().len(), |_| {
        found = true;
        false
    });
    found
}

/// All positions from which there is a match, ascending.
pub(super) fn all_starts(haystack: &Haystack<'_>, backward: &Program) -> Vec<usize> {
    let mut out = reached(haystack, backward, Sources::All, 0, haystack.text().len());
    out.reverse();
    out
}

/// All ends of matches from a start, ascending.
pub(super) fn ends(haystack: &Haystack<'_>, forward: &Program, start: usize) -> Vec<usize> {
    reached(haystack, forward, Sources::One(start), start, haystack.text().len())
}

/// The division of matches among the groups.
pub(super) struct Divider<'a> {
    haystack: &'a Haystack<'a>,
    ignore_case: bool,
    /// What back references may still try.
    steps: usize,
    /// The spans of the groups.
    groups: Vec<Option<Span>>,
    /// The groups that were set, with what they had before, to take it back.
    log: Vec<(usize, Option<Span>)>,
}

/// A choice of back references that may have to be taken back.
struct Choice {
    at: usize,
    /// The ends that were not tried, the next one last
    ends: Vec<usize>,
    /// The length of the log before
    mark: usize,
}

impl<'a> Divider<'a> {
    pub(super) fn new(haystack: &'a Haystack<'a>, groups: usize, ignore_case: bool) -> Divider<'a> {
        let steps = MAX_STEPS.saturating_add(haystack.text().len().saturating_mul(32));
        Divider { haystack, ignore_case, steps, groups: vec![None; groups], log: Vec::new() }
    }

    /// The spans of the groups.
    pub(super) fn into_groups(self) -> Vec<Option<Span>> {
        self.groups
    }

    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        self.groups.fill(None);
        self.log.clear();
    }

    /// Takes back what was set since the log had this length.
    fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            if let Some((at, before)) = self.log.pop()
                && let Some(group) = self.groups.get_mut(at)
            {
                *group = before;
            }
        }
    }

    fn step(&mut self) -> Result<(), ValueError> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| {
            let message = "regular expression with back references takes too many steps";
            ValueError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        })?;
        Ok(())
    }

    /// Divides a span that fits. Without back references this always succeeds.
    pub(super) fn divide(&mut self, part: &Part, span: Span) -> Result<bool, ValueError> {
        match &part.kind {
            Kind::Leaf => Ok(true),
            Kind::Capture(number, inner) => {
                let divided = self.divide(inner, span)?;
                if divided {
                    self.set(*number, Some(span));
                }
                Ok(divided)
            }
            Kind::Choice(parts) => {
                for part in parts {
                    let mark = self.log.len();
                    if fits(self.haystack, part, span) && self.divide(part, span)? {
                        return Ok(true);
                    }
                    self.undo(mark);
                }
                Ok(false)
            }
            Kind::Sequence(parts) => self.divide_sequence(parts, span, part.references),
            Kind::Reference { group, min, max } => Ok(self.repeats(*group, *min, *max, span)),
            Kind::Iterate(iteration) if iteration.child.references => self.divide_iterations(iteration, span),
            // An empty match is one empty repetition, unless the shortest one is preferred: that is none.
            Kind::Iterate(Iteration { child, .. }) if span.0 == span.1 => {
                let once = child.prefer != Prefer::Shortest && fits(self.haystack, child, span);
                if once { self.divide(child, span) } else { Ok(true) }
            }
            // The last repetition forgets the groups of those before it.
            Kind::Iterate(Iteration { child, max, .. }) => match last_iteration(self.haystack, child, *max, span) {
                Some(last) => self.divide(child, last),
                None => Ok(true),
            },
        }
    }

    fn set(&mut self, number: usize, span: Option<Span>) {
        let Some(at) = number.checked_sub(1) else { return };
        if let Some(group) = self.groups.get_mut(at) {
            self.log.push((at, std::mem::replace(group, span)));
        }
    }

    /// Whether a span is so many times what a group has matched.
    fn repeats(&self, group: usize, min: u32, max: Option<u32>, span: Span) -> bool {
        let matched = group.checked_sub(1).and_then(|at| self.groups.get(at)).copied().flatten();
        let Some(matched) = matched else { return false };
        if matched.0 == matched.1 || span.0 == span.1 {
            return span.0 == span.1 && (min == 0 || matched.0 == matched.1);
        }
        let (unit, all) = (self.folded(matched), self.folded(span));
        let count = all.len() / unit.len().max(1);
        let enough = u32::try_from(count).is_ok_and(|count| count >= min && max.is_none_or(|max| count <= max));
        enough && all.len() % unit.len() == 0 && all.chunks(unit.len()).all(|chunk| chunk == unit)
    }

    fn folded(&self, (start, end): Span) -> Vec<char> {
        let text = self.haystack.text().get(start..end).unwrap_or("");
        text.chars().map(|c| if self.ignore_case { letters::lower_char(c) } else { c }).collect()
    }

    /// `retry` says that back references may refuse a choice.
    fn divide_sequence(&mut self, parts: &[Part], (start, end): Span, retry: bool) -> Result<bool, ValueError> {
        // For each part, where it may end so that the parts after it fit.
        let mut allowed = vec![vec![end]];
        let mut size = 0;
        for part in parts.iter().skip(1).rev() {
            let after = allowed.last().map(Vec::as_slice).unwrap_or(&[]);
            let mut before = reached(self.haystack, &part.backward, Sources::Some(after), start, end);
            before.reverse();
            size += before.len();
            if size > MAX_POSITIONS {
                return Err(too_complex());
            }
            allowed.push(before);
        }
        allowed.reverse();
        let mut choices: Vec<Choice> = Vec::new();
        let mut at = start;
        loop {
            let (Some(part), Some(allowed)) = (parts.get(choices.len()), allowed.get(choices.len())) else {
                return Ok(true);
            };
            let ends = self.candidates(part, (at, end), retry, |to| allowed.binary_search(&to).is_ok());
            choices.push(Choice { at, ends, mark: self.log.len() });
            match self.advance(&mut choices, |depth| parts.get(depth))? {
                Some(to) => at = to,
                None => return Ok(false),
            }
        }
    }

    /// The ends of a part that are allowed, the preferred one last. Without `retry` only the preferred one.
    fn candidates(&self, part: &Part, (at, end): Span, retry: bool, allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut ends = Vec::new();
        self.haystack.run(&part.forward, Sources::One(at), at, end, |to| {
            if !allowed(to) {
                return true;
            }
            if !retry {
                ends.clear();
            }
            ends.push(to);
            retry || part.prefer != Prefer::Shortest
        });
        if part.prefer == Prefer::Shortest {
            ends.reverse();
        }
        ends
    }

    /// Divides the part of the last choice at one of its ends, or takes back choices until one can. The end, or `None`
    /// if there is no choice left.
    fn advance<'p>(
        &mut self,
        choices: &mut Vec<Choice>,
        part: impl Fn(usize) -> Option<&'p Part>,
    ) -> Result<Option<usize>, ValueError> {
        while let Some(choice) = choices.last_mut() {
            let Some(to) = choice.ends.pop() else {
                choices.pop();
                continue;
            };
            let (span, mark) = ((choice.at, to), choice.mark);
            self.step()?;
            self.undo(mark);
            let Some(part) = part(choices.len() - 1) else { return Ok(None) };
            if self.divide(part, span)? {
                return Ok(Some(to));
            }
        }
        Ok(None)
    }

    /// Repetitions of a part with back references.
    fn divide_iterations(&mut self, iteration: &Iteration, (start, end): Span) -> Result<bool, ValueError> {
        let Iteration { child, min, max, groups, .. } = iteration;
        if *min == 0 && start == end {
            // As without back references, an empty repetition may be one.
            let mark = self.log.len();
            let once = child.prefer != Prefer::Shortest && fits(self.haystack, child, (start, end));
            if once && !self.divide(child, (start, end))? {
                self.undo(mark);
            }
            return Ok(true);
        }
        let min = usize::try_from(*min).unwrap_or(usize::MAX).max(1);
        let max = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        let mut choices: Vec<Choice> = Vec::new();
        let mut at = start;
        loop {
            let number = choices.len() + 1;
            // Empty repetitions are taken only if the minimum needs them, and not at the end.
            let needed = |to: usize| number < min && min - number >= end - to;
            let ends = self.candidates(child, (at, end), true, |to| match to == end {
                true => number >= min,
                false => number < max && (to > at || needed(to)),
            });
            groups.iter().for_each(|number| self.set(*number, None));
            choices.push(Choice { at, ends, mark: self.log.len() });
            match self.advance(&mut choices, |_| Some(&**child))? {
                None => return Ok(false),
                Some(to) if to == end => return Ok(true),
                Some(to) => at = to,
            }
        }
    }
}

fn fits(haystack: &Haystack<'_>, part: &Part, (start, end): Span) -> bool {
    let mut fits = false;
    haystack.run(&part.forward, Sources::One(start), start, end, |at| {
        fits = at == end;
        !fits
    });
    fits
}

/// The span of the last repetition in a match that is not empty. No repetition is empty.
fn last_iteration(haystack: &Haystack<'_>, child: &Part, max: Option<u32>, (start, end): Span) -> Option<Span> {
    // How few repetitions lead from a position to the end: a search backwards by their number.
    let mut needed: std::collections::HashMap<usize, u32> = std::collections::HashMap::from([(end, 0)]);
    let mut level = vec![end];
    let mut count = 0;
    while !level.is_empty() && max.is_none_or(|max| count < max) {
        count += 1;
        let mut next = reached(haystack, &child.backward, Sources::Some(&level), start, end);
        next.reverse();
        next.retain(|at| !needed.contains_key(at));
        needed.extend(next.iter().map(|at| (*at, count)));
        level = next;
    }
    let (mut at, mut used) = (start, 0);
    let mut last = None;
    while at != end {
        used += 1;
        let mut chosen = None;
        haystack.run(&child.forward, Sources::One(at), at, end, |to| {
            let fits = needed.get(&to).is_some_and(|more| max.is_none_or(|max| more + used <= max));
            if to == at || !fits {
                return true;
            }
            chosen = Some(to);
            child.prefer != Prefer::Shortest
        });
        last = Some((at, chosen?));
        at = chosen?;
    }
    last
}
