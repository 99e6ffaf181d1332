//! Scrub: what lives in sealed files is read and verified again, a little at a time, round after round.
//!
//! Damage to what nobody reads is found only when it is needed: by a follower that lags, by a restart, when other replicas may be damaged
//! as well. So everything that a read or a restart would need is gone through: the index of each sealed file, then, group by group, each block
//! that holds a live entry. What is dead is left out, and so is the active file, of which recovery reads all.
//!
//! The cache is neither asked nor filled. Pages that the system holds are believed; what was not read for long is not among them.
//! Each damaged place is told once as long as the log is open.

use std::collections::BTreeSet;

use super::GroupId;
use super::error::LogError;
use super::format::file_name;
use super::read::Shared;
use super::runs::Span;
use super::tools::Finding;

/// What one call of scrub came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Bytes that were verified, about.
    pub bytes: u64,
    /// What is damaged and was not told before.
    pub damage: Vec<Finding>,
    /// Whether a round ended with this call; the next one begins anew.
    pub done: bool,
}

/// How far a round is.
#[derive(Default)]
pub(crate) struct Scrub {
    under_way: bool,
    /// The newest file of the round.
    newest: u64,
    /// Files and groups that are left, the next ones last.
    files: Vec<u64>,
    groups: Vec<GroupId>,
    /// Entries of the group below this index are done.
    next: u64,
    /// The block that was read last: runs that follow each other may share one.
    block: Option<(u64, u64)>,
    told: BTreeSet<(u64, u64)>,
}

/// No more runs of a group are looked up at once.
const RUNS: usize = 256;

impl Shared {
    /// Goes on with the round, or begins one, until about `most` bytes are verified. One caller at a time; others wait.
    pub(crate) fn scrub(&self, most: u64) -> ScrubReport {
        let mut scrub = self.scrub.lock();
        let mut report = ScrubReport::default();
        if !scrub.under_way {
            scrub.begin(self);
        }
        while report.bytes < most.max(1) {
            if let Some(file) = scrub.files.pop() {
                self.scrub_seal(file, &mut scrub, &mut report);
            } else if let Some(group) = scrub.groups.last().copied() {
                self.scrub_group(group, most, &mut scrub, &mut report);
            } else {
                scrub.under_way = false;
                report.done = true;
                break;
            }
        }
        if let Some(metrics) = &self.metrics {
            metrics.scrubbed_bytes.inc_by(report.bytes);
            metrics.damage.inc_by(report.damage.len() as u64);
        }
        report
    }

    fn scrub_seal(&self, seq: u64, scrub: &mut Scrub, report: &mut ScrubReport) {
        // Purge may have given it up.
        let Some(file) = self.files.get(seq) else { return };
        match file.sealed() {
            Ok((footer, _)) => report.bytes += u64::from(footer.index_stored),
            Err(error) => scrub.tell(seq, &error, report),
        }
    }

    fn scrub_group(&self, group: GroupId, most: u64, scrub: &mut Scrub, report: &mut ScrubReport) {
        let from = scrub.next;
        let runs = self.index.with(group, |group| group.runs.iter_from(from).take(RUNS).collect::<Vec<Span>>());
        let runs = runs.unwrap_or_default();
        for span in &runs {
            if report.bytes >= most.max(1) {
                return;
            }
            scrub.next = span.end();
            let place = (span.file, span.offset);
            if span.file > scrub.newest || scrub.block.replace(place) == Some(place) {
                continue;
            }
            report.bytes += span.bytes;
            // What purge has moved since the look stands in a newer file.
            if let Err(error) = self.read_block(span, || {}) {
                scrub.tell(span.file, &error, report);
            }
        }
        if runs.len() < RUNS {
            scrub.groups.pop();
            scrub.next = 0;
        }
    }
}

impl Scrub {
    fn begin(&mut self, shared: &Shared) {
        self.files = shared.files.lengths().into_iter().map(|(seq, _)| seq).collect();
        // The active one.
        self.files.pop();
        self.newest = self.files.last().copied().unwrap_or(0);
        self.files.reverse();
        self.groups = shared.index.groups();
        self.groups.reverse();
        (self.next, self.block, self.under_way) = (0, None, true);
    }

    fn tell(&mut self, seq: u64, error: &LogError, report: &mut ScrubReport) {
        let finding = Finding::of(error, &file_name(seq));
        if self.told.insert((seq, finding.offset)) {
            report.damage.push(finding);
        }
    }
}
