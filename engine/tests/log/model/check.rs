//! The numbered invariants, and the checks that name a violated one.
//!
//! A [`History`] records the batches of a log and their outcomes. [`History::judge`] finds the state of the history
//! that an observer sees, or names the violated invariant. [`recovered`] opens a log after a crash in all the ways that
//! must give the same result.
//!
//! 1. A batch acknowledged as synced survives power loss.
//! 2. A batch is visible completely or not at all.
//! 3. Recovery finds a prefix of the log order.
//! 4. Compacted, overwritten, deleted or removed data does not reappear.
//! 5. A read returns the bytes that were written.
//! 6. Acknowledged data is visible, live and after a restart of the process.
//! 7. The entries of a group are consecutive, and a batch that would break that is refused.
//! 8. Purge changes nothing visible.
//! 9. No file is removed before its replacement is durable.
//! 10. After a failed sync nothing is acknowledged as synced until the log is reopened.
//! 11. A failed write leaves no visible trace, now or after a restart, and later writes succeed.
//! 12. Recovery cuts no more than it reports, and never takes a crash for damage.
//! 13. Recovery gives the same result each time, needs no space, and never panics.
//! 14. A read returns the right entry or a typed error, whatever purge does meanwhile.
//! 15. Batches are acknowledged in log order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use engine::disk::{Disk, SimDisk};
use engine::log::{LogEngine, LogError, LogOptions, LogWriter, RecoveryMode, RecoveryReport};

use super::{Change, Observed, Seen, State, observe, open};

/// A violated invariant.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant.
    pub invariant: u8,
    pub what: String,
}

impl Violation {
    pub fn new(invariant: u8, what: impl Into<String>) -> Violation {
        Violation { invariant, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What happened to the log before it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// At most the end of the process: all acknowledged batches are there.
    Process,
    /// A power loss: all batches acknowledged as synced are there.
    Crash,
}

/// The batches of a log and their outcomes. Dereferences to all states, oldest first. A batch with an unknown outcome
/// is included as if it was written.
#[derive(Clone)]
pub struct History {
    states: Vec<State>,
    /// The log position of each state; `u64::MAX` for a state that may not have been reached.
    pub positions: Vec<u64>,
    /// The batch that led to each state except the first.
    batches: Vec<Vec<Change>>,
    /// All batches so far, including those that a crash lost.
    submitted: Vec<Vec<Change>>,
    /// Batches that were not written, because of a full disk or another failure, each with the state before it.
    refused: Vec<(usize, Vec<Change>)>,
    /// The index of the newest state acknowledged as synced.
    pub synced: usize,
    /// The index of the newest acknowledged state.
    pub current: usize,
    /// Whether purge did something since the last batch.
    pub purged: bool,
}

impl Deref for History {
    type Target = [State];

    fn deref(&self) -> &[State] {
        &self.states
    }
}

impl Default for History {
    fn default() -> History {
        History {
            states: vec![State::default()],
            positions: vec![0],
            batches: Vec::new(),
            submitted: Vec::new(),
            refused: Vec::new(),
            synced: 0,
            current: 0,
            purged: false,
        }
    }
}

impl History {
    /// The history of a log found in this durable state.
    pub fn from_state(state: State) -> History {
        History { states: vec![state], ..History::default() }
    }

    pub fn latest(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// Adds a batch and the state after it. Without a position the batch may not have been written.
    pub fn push(&mut self, batch: Vec<Change>, after: State, position: Option<u64>) {
        self.positions.push(position.unwrap_or(u64::MAX));
        self.submitted.push(batch.clone());
        self.batches.push(batch);
        self.states.push(after);
        self.purged = false;
    }

    /// Adds a batch that was not written.
    pub fn refuse(&mut self, batch: Vec<Change>) {
        self.submitted.push(batch.clone());
        self.refused.push((self.states.len() - 1, batch));
    }

    /// The recovered state is the newest one; recovery made it durable.
    pub fn rewind(&mut self, found: usize) {
        self.states.truncate(found + 1);
        self.positions.truncate(found + 1);
        self.batches.truncate(found);
        self.refused.clear();
        (self.current, self.synced) = (found, found);
    }

    fn floor(&self, after: After) -> usize {
        match after {
            After::Process => self.current,
            After::Crash => self.synced,
        }
    }

    /// The index of the newest state that looks like `seen`.
    pub fn judge(&self, seen: &Observed, after: After) -> Result<usize, Violation> {
        let floor = self.floor(after);
        // Several states may be equal: take the newest.
        let found = self.states.iter().rposition(|state| state.looks_like(seen));
        match found.filter(|found| *found >= floor) {
            Some(found) => Ok(found),
            None => Err(self.explain(seen, found, after)),
        }
    }

    /// Checks that a running log shows exactly the acknowledged state.
    pub fn judge_live(&self, seen: &Observed) -> Result<(), Violation> {
        if self.states[self.current].looks_like(seen) {
            return Ok(());
        }
        let found = self.judge(seen, After::Process)?;
        let what = format!("state {found} is shown, only {} was acknowledged", self.current);
        Err(Violation::new(11, what))
    }

    fn explain(&self, seen: &Observed, found: Option<usize>, after: After) -> Violation {
        let floor = self.floor(after);
        let wanted = self.states[floor].seen();
        let text =
            format!("after {after:?}, {floor} of {} must be visible\n seen {seen:?}\n want {wanted:?}", self.len());
        let violation = |invariant| Violation::new(invariant, text.clone());
        if let Some(group) = seen.iter().find(|(_, seen)| seen.last + 1 - seen.first != seen.entries.len() as u64) {
            return Violation::new(7, format!("group {group:?}"));
        }
        if let Some(strange) = self.never_written(seen) {
            return Violation::new(5, format!("{strange} was never written\n{text}"));
        }
        if self.purged && floor + 1 == self.len() {
            return violation(8);
        }
        let (shown, later) = (items(seen), &self.states[floor..]);
        let later: Vec<BTreeSet<Item>> = later.iter().map(|state| items(&state.seen())).collect();
        // An item that no allowed state has, or a missing item that all of them have.
        let back = shown.iter().any(|item| later.iter().all(|state| !state.contains(item)));
        let gone = later[0].iter().any(|item| !shown.contains(item) && later.iter().all(|state| state.contains(item)));
        if found.is_some() {
            return violation(match after {
                After::Process => 6,
                After::Crash => {
                    if back {
                        4
                    } else {
                        1
                    }
                }
            });
        }
        let with_refused = |(at, batch): &(usize, Vec<Change>)| self.states[*at].after(batch);
        if self.refused.iter().any(|one| with_refused(one).is_some_and(|state| state.looks_like(seen))) {
            return violation(11);
        }
        if (0..self.batches.len()).any(|at| self.is_part(at, seen)) {
            return violation(2);
        }
        violation(if back {
            4
        } else if gone {
            1
        } else {
            3
        })
    }

    /// An entry or a value that no batch contained.
    fn never_written(&self, seen: &Observed) -> Option<String> {
        for (id, shown) in seen {
            let mut entries = (shown.first..).zip(&shown.entries);
            if let Some((index, _)) = entries.find(|(index, entry)| !self.was_appended(*id, *index, entry.len(), entry))
            {
                return Some(format!("entry {index} of group {id}"));
            }
            if let Some((key, _)) = shown.keys.iter().find(|(key, value)| !self.was_set(*id, key, value)) {
                return Some(format!("key {key:?} of group {id}"));
            }
        }
        None
    }

    /// Whether some batch appended this entry, given its length and first bytes.
    pub fn was_appended(&self, id: u64, index: u64, len: usize, prefix: &[u8]) -> bool {
        self.submitted.iter().flatten().any(|change| match change {
            Change::Append { group, first, entries } => {
                let at = index.checked_sub(*first).and_then(|at| entries.get(at as usize));
                *group == id && at.is_some_and(|at| at.len() == len && at.starts_with(prefix))
            }
            _ => false,
        })
    }

    /// Whether some batch set the key to this value.
    pub fn was_set(&self, id: u64, name: &[u8], shown: &[u8]) -> bool {
        self.submitted.iter().flatten().any(|change| match change {
            Change::Put { group, key, value } => *group == id && key == name && value == shown,
            _ => false,
        })
    }

    /// Whether this state is the result of only some changes of a batch.
    fn is_part(&self, at: usize, seen: &Observed) -> bool {
        let batch = &self.batches[at];
        let some = 1..(1u32 << batch.len().min(10)) - 1;
        some.into_iter().any(|subset| {
            let kept = batch.iter().enumerate().filter(|(bit, _)| subset & (1 << bit) != 0);
            let changes: Vec<Change> = kept.map(|(_, change)| change.clone()).collect();
            self.states[at].after(&changes).is_some_and(|state| state.looks_like(seen))
        })
    }
}

/// A visible entry or key: the group, the index or the key, and the bytes.
type Item = (u64, Result<u64, Vec<u8>>, Vec<u8>);

fn items(seen: &Observed) -> BTreeSet<Item> {
    let of_group = |(id, seen): (&u64, &Seen)| {
        let entries = (seen.first..).zip(&seen.entries).map(|(index, entry)| (*id, Ok(index), entry.to_vec()));
        let keys = seen.keys.iter().map(|(key, value)| (*id, Err(key.clone()), value.clone()));
        entries.chain(keys).collect::<Vec<Item>>()
    };
    seen.iter().flat_map(of_group).collect()
}

/// An opened log, and its place in the history.
pub struct Recovered {
    pub engine: LogEngine,
    pub writer: LogWriter,
    pub report: RecoveryReport,
    pub found: usize,
}

/// Opens a log and checks recovery: it succeeds on a full disk, a second open changes nothing, the changes are those in
/// the report, and the result is a state of the history.
pub fn recovered(
    disk: &Arc<SimDisk>,
    options: &LogOptions,
    history: &History,
    after: After,
) -> Result<Recovered, Violation> {
    let twin = disk.fork();
    twin.set_capacity(Some(twin.used()));
    let (first, _) = opened(&twin, options)?;
    let (second, report) = opened(&twin, options)?;
    if first != second || report.truncated_bytes > 0 {
        return Err(Violation::new(13, format!("opened twice: {first:?}, then {second:?}, {report:?}")));
    }
    let before = logs(disk);
    let (engine, writer, report) = open(disk, options).map_err(refusal)?;
    check_report(&before, &logs(disk), &report)?;
    let seen = observe(&engine).map_err(refusal)?;
    if seen != first {
        return Err(Violation::new(13, format!("on a full disk {first:?}, with space {seen:?}")));
    }
    let found = history.judge(&seen, after)?;
    Ok(Recovered { engine, writer, report, found })
}

/// A short check: opens the log once, and finds its state in the history.
pub fn check_once(disk: &SimDisk, options: &LogOptions, history: &History, after: After) -> Result<usize, Violation> {
    let found = history.judge(&opened(disk, options)?.0, after)?;
    Ok(found)
}

fn opened(disk: &SimDisk, options: &LogOptions) -> Result<(Observed, RecoveryReport), Violation> {
    let (engine, _writer, report) = open(disk, options).map_err(refusal)?;
    Ok((observe(&engine).map_err(refusal)?, report))
}

/// The violation when a log cannot be opened or read after a crash.
pub fn refusal(error: LogError) -> Violation {
    let invariant = match &error {
        LogError::Missing { .. } | LogError::Misplaced { .. } => 9,
        LogError::Corrupt { .. } => 12,
        _ => 13,
    };
    Violation::new(invariant, error.to_string())
}

/// The content of all log files.
fn logs(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let names = Disk::list(disk).unwrap_or_default();
    let logs = names.into_iter().filter(|name| name.ends_with(".log"));
    logs.filter_map(|name| disk.content(&name).map(|content| (name, content))).collect()
}

/// Checks that recovery changed only the bytes that it reports as cut.
fn check_report(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
    report: &RecoveryReport,
) -> Result<(), Violation> {
    for (name, now) in after {
        let Some(then) = before.get(name).filter(|then| *then != now) else { continue };
        let differs = then.iter().zip(now).position(|(then, now)| then != now);
        let Some(at) = differs.or((then.len() != now.len()).then_some(then.len().min(now.len()))) else { continue };
        let is_reported = report.truncated_at.as_ref().is_some_and(|(file, from)| file == name && *from <= at as u64);
        if !is_reported || report.truncated_bytes == 0 {
            return Err(Violation::new(12, format!("byte {at} of {name} was changed: {report:?}")));
        }
    }
    Ok(())
}
