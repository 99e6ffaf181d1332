//! The search for a match, and its division.

use super::ast::Prefer;
use super::program::{Haystack, Program, Sources};
use super::tree::{Kind, Part};

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

/// Divides a match among the groups. `groups` has a place for each of them.
pub(super) fn divide(haystack: &Haystack<'_>, part: &Part, span: Span, groups: &mut [Option<Span>]) {
    match &part.kind {
        Kind::Leaf => {}
        Kind::Capture(number, inner) => {
            divide(haystack, inner, span, groups);
            if let Some(group) = number.checked_sub(1).and_then(|at| groups.get_mut(at)) {
                *group = Some(span);
            }
        }
        Kind::Choice(parts) => {
            if let Some(fitting) = parts.iter().find(|part| fits(haystack, part, span)) {
                divide(haystack, fitting, span, groups);
            }
        }
        Kind::Sequence(parts) => divide_sequence(haystack, parts, span, groups),
        // An empty match is one empty repetition, unless the shortest one is preferred: that is none.
        Kind::Iterate(child, _) if span.0 == span.1 => {
            if child.prefer != Prefer::Shortest && fits(haystack, child, span) {
                divide(haystack, child, span, groups);
            }
        }
        Kind::Iterate(child, max) => {
            // The last repetition forgets the groups of those before it.
            if let Some(last) = last_iteration(haystack, child, *max, span) {
                divide(haystack, child, last, groups);
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

fn divide_sequence(haystack: &Haystack<'_>, parts: &[Part], (start, end): Span, groups: &mut [Option<Span>]) {
    // For each part, where it may end so that the parts after it fit.
    let mut ends = vec![vec![end]];
    for part in parts.iter().skip(1).rev() {
        let after = ends.last().map(Vec::as_slice).unwrap_or(&[]);
        let mut before = reached(haystack, &part.backward, Sources::Some(after), start, end);
        before.reverse();
        ends.push(before);
    }
    let mut at = start;
    for (part, allowed) in parts.iter().zip(ends.iter().rev()) {
        let mut chosen = None;
        haystack.run(&part.forward, Sources::One(at), at, end, |to| {
            if allowed.binary_search(&to).is_err() {
                return true;
            }
            chosen = Some(to);
            part.prefer != Prefer::Shortest
        });
        let Some(to) = chosen else { return };
        divide(haystack, part, (at, to), groups);
        at = to;
    }
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
