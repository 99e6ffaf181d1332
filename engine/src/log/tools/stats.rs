//! Sizes and counts of a log: by file, by group, in total.
//!
//! Reads the whole log, for the sizes before compression. Of a damaged log the readable part is counted, including
//! records before a loss. Headers, commit groups, blocks and indexes are verified. `check` verifies more: padding,
//! indexes against groups, consecutive entries.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::Disk;

use super::findings::{damaged_blocks, file_finding, gap_finding, seal_finding};
use super::progress::{Meter, Progress};
use crate::log::error::{Finding, Result};
use crate::log::format::{BLOCK_HEADER, BlockHeader};
use crate::log::index::Group;
use crate::log::read::{CommitGroup, GroupReader};
use crate::log::salvage::{ExistingFile, GroupWalk, Replay, Step, Survey};
use crate::log::types::GroupId;

/// Sizes and counts of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsReport {
    /// The existing files of the log, oldest first.
    pub files: Vec<CountedFile>,
    /// Its groups, ascending.
    pub groups: Vec<CountedGroup>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Approximate size of its live records, in bytes.
    pub live_bytes: u64,
    /// Live entries.
    pub entries: u64,
    /// Bytes of entries and metas in all commit groups, before compression.
    pub raw_bytes: u64,
    /// Bytes of entries and metas in all commit groups, as stored.
    pub stored_bytes: u64,
    /// Damage, missing files and unreadable parts. Empty if every header, commit group, block and index passes its
    /// checksum. (`check` looks for more.)
    pub damage: Vec<String>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Approximate size of its live records, in bytes.
    pub live_bytes: u64,
    /// Commit groups in it.
    pub commit_groups: u64,
    /// Groups with live records in it.
    pub groups: u64,
    /// Whether it is sealed.
    pub sealed: bool,
}

/// A group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedGroup {
    /// The group.
    pub group: GroupId,
    /// Index of the first entry kept.
    pub first: u64,
    /// Index of the last entry; `first` less one if there is none.
    pub last: u64,
    /// Live entries.
    pub entries: u64,
    /// Their approximate size in the files, in bytes.
    pub bytes: u64,
    /// Its keys.
    pub keys: u64,
}

impl StatsReport {
    /// Raw bytes per stored byte; `None` if nothing is stored.
    pub fn compression(&self) -> Option<f64> {
        (self.stored_bytes > 0).then(|| self.raw_bytes as f64 / self.stored_bytes as f64)
    }
}

/// Counts the content of the log on `disk`.
pub fn stats(disk: &dyn Disk, progress: &mut dyn FnMut(Progress)) -> Result<StatsReport> {
    let survey = Survey::new(disk)?;
    let mut meter = Meter::new(survey.bytes().saturating_mul(2), progress);
    let replay = Replay::run(&survey, true, &mut |bytes| meter.add(bytes))?;
    let mut stats = StatsReport { bytes: survey.bytes(), ..StatsReport::default() };
    let problems = survey.problems.iter().map(|problem| file_finding(&survey, problem).to_string());
    stats.damage = problems.chain(replay.losses.iter().map(|loss| loss.to_string())).collect();
    // Findings at these locations are reported as losses already.
    let reported: BTreeSet<(&str, u64)> = replay.losses.iter().map(|loss| (loss.file.as_str(), loss.from)).collect();
    let mut groups_in: BTreeMap<u64, u64> = BTreeMap::new();
    for group in replay.index.groups() {
        let counted = replay.index.with(group, |known| (count(group, known), files_of(known)));
        let Some((counted, files)) = counted else { continue };
        files.into_iter().for_each(|file| *groups_in.entry(file).or_default() += 1);
        stats.entries += counted.entries;
        stats.groups.push(counted);
    }
    for (at, file) in survey.files.iter().enumerate() {
        let Some(found) = &file.found else { continue };
        let (commit_groups, findings) = sizes(&survey, at, found, &mut stats)?;
        let new = findings.iter().filter(|finding| !reported.contains(&(finding.file.as_str(), finding.offset)));
        stats.damage.extend(new.map(Finding::to_string));
        let live_bytes = replay.index.usage(file.seq).bytes.min(found.file.len());
        stats.live_bytes += live_bytes;
        stats.files.push(CountedFile {
            name: found.file.name.clone(),
            bytes: found.file.len(),
            live_bytes,
            commit_groups,
            groups: groups_in.get(&file.seq).copied().unwrap_or(0),
            sealed: found.footer.is_some(),
        });
        meter.add(found.file.len());
    }
    meter.end();
    Ok(stats)
}

fn count(group: GroupId, known: &Group) -> CountedGroup {
    let bounds = known.bounds();
    CountedGroup {
        group,
        first: bounds.first,
        last: bounds.last,
        entries: known.runs.iter().map(|span| u64::from(span.count)).sum(),
        bytes: known.runs.iter().map(|span| span.bytes).sum(),
        keys: known.keys.len() as u64,
    }
}

/// The files with live records of a group.
fn files_of(known: &Group) -> BTreeSet<u64> {
    let floor = (known.floor > 0).then_some(known.floor_file);
    known.runs.iter().map(|span| span.file).chain(known.keys.iter().map(|kv| kv.file)).chain(floor).collect()
}

/// Adds the sizes of a file's commit groups. Returns how many there are, and the findings in the file.
fn sizes(survey: &Survey, at: usize, found: &ExistingFile, stats: &mut StatsReport) -> Result<(u64, Vec<Finding>)> {
    let Some(facts) = survey.facts(at, None) else { return Ok((0, Vec::new())) };
    let mut walk = GroupWalk::new(&found.file, facts);
    let (mut commit_groups, mut findings) = (0, Vec::new());
    while let Some(step) = walk.step()? {
        let group = match step {
            Step::Group(group) => group,
            Step::Gap(gap) => {
                findings.push(gap_finding(survey, at, found, &gap));
                continue;
            }
        };
        commit_groups += 1;
        stats.raw_bytes += u64::from(group.header.meta_raw);
        stats.stored_bytes += u64::from(group.header.meta_stored);
        block_sizes(&mut walk.reader, &group, stats)?;
        findings.extend(damaged_blocks(&mut walk.reader, &group)?);
    }
    findings.extend(seal_finding(survey, at, found));
    let failed = walk.reader.failed.iter();
    findings.extend(failed.map(|(at, error)| Finding::new(&found.file.name, *at, error.to_string(), Vec::new())));
    Ok((commit_groups, findings))
}

fn block_sizes(reader: &mut GroupReader<'_>, group: &CommitGroup, stats: &mut StatsReport) -> Result<()> {
    for block in &group.blocks {
        let head = reader.get(block.offset, BLOCK_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<BLOCK_HEADER>());
        let Some(Ok(header)) = head.map(BlockHeader::decode) else { continue };
        // Sizes of a damaged header are not counted.
        if header.checksum == block.checksum && header.stored == block.stored {
            stats.raw_bytes += u64::from(header.raw);
            stats.stored_bytes += u64::from(header.stored);
        }
    }
    Ok(())
}
