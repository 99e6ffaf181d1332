//! The rewrite of the oldest file: whether it pays, and its progress.
//!
//! # When a rewrite pays
//!
//! A *run* is the oldest files up to some file. A run pays if at most half of its bytes would be rewritten, 80 % under
//! pressure. The oldest file is rewritten while some run pays. Mostly this is the oldest file alone. A longer run is
//! needed when the oldest file is nearly all live, as with many idle groups that are too small to be reported as
//! pinning. Its rewrite frees nothing by itself, but the dead records behind it can be dropped afterwards.
//!
//! # Why purge terminates
//!
//! Take the shortest run that pays. No shorter run pays, so the rest of the run still pays after its first file is
//! rewritten: if more than half of the first file was rewritten, and at most half of the run is, then less than half of
//! the rest is. So the run is rewritten to its end, and the log shrinks by half of it, or by a fifth of it under
//! pressure. Live data does not grow by that. Without new batches the log is soon so small, or so full of live data,
//! that no run pays. All sealed files are a run as well. So a log under pressure that purge leaves alone is more than
//! 80 % live: only the owners of its groups can make it smaller.
//!
//! The cost of a rewrite is an estimate. The index rounds live bytes down by up to an eighth. Records are assumed to
//! compress as they did before: after a change of the codec a rewrite may take more. Both only shift the shares above,
//! unless a run of more than 80 % is rewritten with a weaker codec.
//!
//! Pressure may end within a run. Then the log is within one and a half times its threshold, which is all that
//! the rest of the run was for.
//!
//! # Damage
//!
//! A file whose index or live block cannot be read is reported, unless scrub reported it. Purge stops in front of it,
//! because no younger file can be dropped before it. It continues when nothing in the file is live any more.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::report::PurgeReport;
use super::rewrite_cost::RewriteCost;
use super::sealed_files::SealedFiles;
use crate::log::commit::Rewrite;
use crate::log::error::{LogError, Result};
use crate::log::format::{Footer, Span, file_name};
use crate::log::index::{FileSummary, Group};
use crate::log::read::{LogState, Lookup, entries_of, is_exhausted};
use crate::log::types::GroupId;

/// A run pays if at most this share of its bytes would be rewritten, in percent. The second number holds under
/// pressure.
const MAX_REWRITTEN_PERCENT: (u64, u64) = (50, 80);

/// See the module documentation.
#[derive(Default)]
pub(super) struct Rewriter {
    /// The rewrite under way.
    current: Option<FileRewrite>,
    /// The file that cannot be read.
    unreadable: Option<u64>,
    /// The cost of rewriting each sealed file that was looked at.
    costs: BTreeMap<u64, RewriteCost>,
}

/// The file that is being rewritten.
struct FileRewrite {
    file: u64,
    /// The groups that are left, the next one last.
    groups: Vec<GroupId>,
}

/// What of one group is live in a file.
struct LiveRecords {
    spans: Vec<Span>,
    /// With the bytes of key and value.
    keys: Vec<(Bytes, usize)>,
    floor: bool,
}

impl Rewriter {
    /// A part was not written: the rewrite begins again.
    pub(super) fn restart(&mut self) {
        self.current = None;
    }

    /// The next part of the rewrite of the oldest file, of about `max_bytes`. The oldest file holds live records. Adds
    /// damage to the report.
    pub(super) fn next_part(
        &mut self,
        state: &LogState,
        sealed: &SealedFiles,
        max_bytes: usize,
        report: &mut PurgeReport,
    ) -> Option<Rewrite> {
        let (oldest, _) = *sealed.files.first()?;
        self.costs = self.costs.split_off(&oldest);
        let mut current = match self.current.take().filter(|current| current.file == oldest) {
            Some(current) => current,
            None => self.begin(state, sealed, report)?,
        };
        match current.next_part(state, max_bytes) {
            Ok(rewrite) => {
                self.current = (!current.groups.is_empty()).then_some(current);
                Some(rewrite)
            }
            Err((offset, error)) => {
                let concerned = || state.index.groups_at(oldest, offset);
                self.report_unreadable(state, oldest, (offset, &error), concerned, report);
                None
            }
        }
    }

    /// Begins the rewrite of the oldest file, if it pays.
    fn begin(&mut self, state: &LogState, sealed: &SealedFiles, report: &mut PurgeReport) -> Option<FileRewrite> {
        if !self.pays(state, sealed, report) {
            return None;
        }
        let (file, _) = *sealed.files.first()?;
        let (_, summary) = self.read_seal(state, file, report)?;
        let mut groups: Vec<GroupId> = summary.groups().map(|(group, _)| group).collect();
        groups.reverse();
        Some(FileRewrite { file, groups })
    }

    /// Whether some run pays. Reads the indexes of the files up to its end, each once.
    fn pays(&mut self, state: &LogState, sealed: &SealedFiles, report: &mut PurgeReport) -> bool {
        let max_percent = if sealed.under_pressure { MAX_REWRITTEN_PERCENT.1 } else { MAX_REWRITTEN_PERCENT.0 };
        let (mut rewritten, mut len) = (0, 0);
        for (seq, _) in &sealed.files {
            let Some(cost) = self.cost(state, *seq, report) else { return false };
            rewritten += cost.rewritten(state.index.usage(*seq).bytes);
            len += cost.len;
            if rewritten * 100 <= len * max_percent {
                return true;
            }
        }
        false
    }

    /// The cost of rewriting a sealed file; `None` if it cannot be read.
    fn cost(&mut self, state: &LogState, seq: u64, report: &mut PurgeReport) -> Option<RewriteCost> {
        if let Some(cost) = self.costs.get(&seq) {
            return Some(*cost);
        }
        let (footer, summary) = self.read_seal(state, seq, report)?;
        let cost = RewriteCost::of(state.files.get(seq)?.len(), &footer, &summary, &state.options);
        self.costs.insert(seq, cost);
        Some(cost)
    }

    /// Footer and index of a sealed file; `None` if it cannot be read, now or before.
    fn read_seal(&mut self, state: &LogState, seq: u64, report: &mut PurgeReport) -> Option<(Footer, FileSummary)> {
        let file = state.files.get(seq).filter(|_| self.unreadable != Some(seq))?;
        match file.sealed() {
            Ok(seal) => Some(seal),
            Err(error) => {
                self.report_unreadable(state, seq, (file.len(), &error), || state.groups_changed_in(seq), report);
                None
            }
        }
    }

    /// Reports that a file cannot be read at an offset. It is not read again, unless the process had just run out of
    /// something.
    fn report_unreadable(
        &mut self,
        state: &LogState,
        seq: u64,
        (offset, error): (u64, &LogError),
        concerned: impl FnOnce() -> Vec<GroupId>,
        report: &mut PurgeReport,
    ) {
        if is_exhausted(error) {
            report.failed.get_or_insert_with(|| format!("{}: {error}", file_name(seq)));
        } else {
            self.unreadable = Some(seq);
            state.report_once(seq, offset, error, concerned, &mut report.damage);
        }
    }
}

impl FileRewrite {
    /// Collects the next part, of about `max_bytes`. An error comes with the offset of the block.
    fn next_part(&mut self, state: &LogState, max_bytes: usize) -> std::result::Result<Rewrite, (u64, LogError)> {
        let file = self.file;
        let mut rewrite = Rewrite { file, ..Rewrite::default() };
        while let Some(id) = self.groups.last().copied() {
            let Some(live) = state.index.with(id, |group| LiveRecords::of(group, file)) else {
                self.groups.pop();
                continue;
            };
            // What does not fit is looked up again by the next call: by then this part is elsewhere.
            for span in &live.spans {
                if rewrite.bytes >= max_bytes {
                    return Ok(rewrite);
                }
                let at = |error| (span.offset, error);
                let Some(block) = Lookup(state).block_uncached(span, || {}).map_err(at)? else { continue };
                let entries = entries_of(&block, span, span.first).collect::<Result<Vec<Bytes>>>().map_err(at)?;
                rewrite.bytes += entries.iter().map(|entry| entry.len() + 8).sum::<usize>();
                rewrite.entries.push((id, span.first, entries));
            }
            for (key, bytes) in live.keys {
                if rewrite.bytes >= max_bytes {
                    return Ok(rewrite);
                }
                rewrite.bytes += bytes + 16;
                rewrite.keys.push((id, key));
            }
            if live.floor {
                rewrite.bytes += 16;
                rewrite.floors.push(id);
            }
            self.groups.pop();
            if rewrite.bytes >= max_bytes {
                break;
            }
        }
        Ok(rewrite)
    }
}

impl LiveRecords {
    fn of(group: &Group, file: u64) -> LiveRecords {
        let keys = group.keys.iter().filter(|kv| kv.file == file);
        LiveRecords {
            spans: group.runs.iter().filter(|span| span.file == file).collect(),
            keys: keys.map(|kv| (Bytes::copy_from_slice(kv.key()), kv.key().len() + kv.value().len())).collect(),
            floor: group.floor > 0 && group.floor_file == file,
        }
    }
}
