//! Makes a case that differs smaller while it still differs in the same way.

use std::collections::VecDeque;
use std::io;

use crate::case::{Case, Servers, Verdict};
use crate::compare::{Class, Difference};
use crate::wire::Mode;

/// Runs that one case may take.
const RUNS: usize = 400;

/// A smaller case and its verdict.
pub fn shrink(servers: &mut Servers, case: Case, verdict: Verdict) -> io::Result<(Case, Verdict)> {
    let (mut case, mut verdict) = (case, verdict);
    let mut runs = 0;
    'again: loop {
        let Verdict::Differs { at, difference, .. } = &verdict else { return Ok((case, verdict)) };
        let (wanted, length) = (difference.clone(), case.text().len());
        for smaller in smaller_cases(&case, *at) {
            if smaller.text().len() >= length || runs == RUNS {
                continue;
            }
            runs += 1;
            let found = servers.run(&smaller)?;
            if matches!(&found, Verdict::Differs { difference, .. } if is_same(&wanted, difference)) {
                (case, verdict) = (smaller, found);
                continue 'again;
            }
        }
        return Ok((case, verdict));
    }
}

/// Whether a case has the errors of both servers: a smaller one fails on both with that of PostgreSQL, another one with
/// that of Cortado. Then they differ only in which one comes first.
pub fn has_both_errors(servers: &mut Servers, case: &Case, verdict: &Verdict) -> io::Result<bool> {
    let Verdict::Differs { at, difference, .. } = verdict else { return Ok(false) };
    if difference.class != Class::SqlState {
        return Ok(false);
    }
    let mut missing = difference.codes.to_vec();
    let mut waiting: VecDeque<Case> = smaller_cases(case, *at).into();
    for _ in 0..RUNS {
        let Some(smaller) = waiting.pop_front() else { break };
        match servers.run(&smaller)? {
            Verdict::Same { code } => missing.retain(|wanted| *wanted != code),
            Verdict::Differs { at, .. } => waiting.extend(smaller_cases(&smaller, at)),
            Verdict::Inconclusive => {}
        }
        if missing.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two differences are of one kind: the class and, for errors, both SQLSTATEs.
fn is_same(wanted: &Difference, found: &Difference) -> bool {
    if wanted.class != found.class {
        return false;
    }
    match wanted.class {
        Class::Fault | Class::Rows | Class::Types | Class::Tag => true,
        _ => wanted.codes == found.codes,
    }
}

fn smaller_cases(case: &Case, at: usize) -> Vec<Case> {
    let mut found = Vec::new();
    if case.statements.len() > at + 1 {
        let mut shorter = case.clone();
        shorter.statements.truncate(at + 1);
        found.push(shorter);
    }
    for gone in 0..at {
        let mut fewer = case.clone();
        fewer.statements.remove(gone);
        found.push(fewer);
    }
    for (number, statement) in case.statements.iter().enumerate().take(at + 1) {
        if statement.mode != Mode::Simple && statement.tree.render().1.is_empty() {
            let mut simple = case.clone();
            simple.statements[number].mode = Mode::Simple;
            found.push(simple);
        }
        found.extend(statement.tree.smaller().into_iter().map(|tree| {
            let mut changed = case.clone();
            changed.statements[number].tree = tree;
            changed
        }));
    }
    found
}
