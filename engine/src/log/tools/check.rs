//! Reads and verifies every byte of a log and reports all damage.
//!
//! A check does more than opening a log: it reads, verifies and decompresses every commit group and block; it checks
//! padding for zeros; it compares the index of a sealed file with its groups; it checks that each file continues the
//! one before and that the entries of each group are consecutive. A torn tail is the result of a crash. It is reported,
//! and is not damage.

use crate::disk::Disk;

use super::findings::{damaged_blocks, file_finding, gap_finding, seal_finding};
use super::progress::{Meter, Progress};
use crate::log::error::{Finding, Result};
use crate::log::format::{BLOCK_HEADER, FOOTER, FileHeader, GROUP_HEADER, REUSED, Span, replay};
use crate::log::index::{FileSummary, Index};
use crate::log::read::{CommitGroup, CutFile, GroupReader};
use crate::log::salvage::{ChainPosition, ExistingFile, GroupWalk, Step, Survey, before_first};
use crate::log::types::GroupId;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The existing files of the log, oldest first.
    pub files: Vec<CheckedFile>,
    /// All damage, by file and offset. Empty if the log is sound.
    pub findings: Vec<Finding>,
    /// The torn tail that a crash left, if any. The next open truncates it.
    pub torn_tail: Option<TornTail>,
    /// A file whose commit groups follow the torn tail, if any. The next open deletes it.
    pub cut_file: Option<CutFile>,
    /// Log files that are not part of the log: dropped and not deleted yet, never used, or copies.
    pub surplus: Vec<String>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Commit groups read.
    pub commit_groups: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Groups found.
    pub groups: usize,
    /// Live entries found.
    pub entries: u64,
}

/// A file that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Commit groups read in it.
    pub commit_groups: u64,
    /// Whether it ends with a readable index.
    pub sealed: bool,
}

/// An incomplete write at the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file's name.
    pub file: String,
    /// The offset where the last whole commit group ends.
    pub offset: u64,
    /// Bytes after it.
    pub bytes: u64,
}

impl CheckReport {
    /// Whether there is no finding.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the log on `disk`. Fails only if a check is impossible: no log, a newer version, an unreadable directory. All
/// other errors are findings.
pub fn check(disk: &dyn Disk, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
    let survey = Survey::new(disk)?;
    let mut checker = Checker {
        report: CheckReport {
            surplus: survey.surplus.clone(),
            cut_file: survey.cut_file.clone(),
            bytes: survey.bytes(),
            ..CheckReport::default()
        },
        index: Index::new(),
        at: None,
        meter: Meter::new(survey.bytes(), progress),
    };
    checker.report.findings.extend(survey.problems.iter().map(|problem| file_finding(&survey, problem)));
    let mut base = 0;
    for (at, file) in survey.files.iter().enumerate() {
        match &file.found {
            Some(found) => {
                checker.file(FileContext { survey: &survey, at, found, base })?;
                base += found.file.len();
                checker.meter.at(base);
            }
            None => checker.at = None,
        }
    }
    checker.contiguity(&survey);
    checker.meter.end();
    let mut report = checker.report;
    report.findings.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
    Ok(report)
}

struct Checker<'a> {
    report: CheckReport,
    /// The index of all files read so far.
    index: Index,
    /// The last group of the file before, if known.
    at: Option<ChainPosition>,
    meter: Meter<'a>,
}

/// A file that is being checked.
#[derive(Clone, Copy)]
struct FileContext<'a> {
    survey: &'a Survey,
    /// Its position in the list of files.
    at: usize,
    found: &'a ExistingFile,
    /// Bytes of the files before it.
    base: u64,
}

/// The commit groups of a file, in sum.
#[derive(Default)]
struct GroupsSum {
    summary: FileSummary,
    /// Whether some of them are unreadable.
    broken: bool,
    commit_groups: u64,
}

impl Checker<'_> {
    fn find(&mut self, found: &ExistingFile, offset: u64, what: impl Into<String>, groups: Vec<GroupId>) {
        self.report.findings.push(Finding::new(&found.file.name, offset, what, groups));
    }

    fn file(&mut self, context: FileContext<'_>) -> Result<()> {
        let FileContext { survey, at, found, .. } = context;
        let Some(facts) = survey.facts(at, self.at) else { return Ok(()) };
        let mut walk = GroupWalk::new(&found.file, facts);
        if let Some(header) = &found.header {
            self.header(context, header, &mut walk.reader)?;
        }
        let index = found.footer.and_then(|_| found.file.sealed().ok()).map(|(_, summary)| summary);
        let sum = self.groups(context, &mut walk, index.as_ref())?;
        self.report.findings.extend(seal_finding(survey, at, found));
        match (&found.footer, survey.may_be_unsealed(at)) {
            (Some(_), true) if index.is_none() => self.torn(found, walk.offset, found.file.len()),
            (Some(_), _) => self.seal(context, &mut walk, &sum, index.as_ref())?,
            (None, true) => self.torn(found, walk.offset, walk.garbage_end),
            (None, false) => {}
        }
        if let Some((offset, error)) = &walk.reader.failed {
            self.find(found, *offset, error.to_string(), Vec::new());
        }
        self.at = facts.last.or(walk.at);
        let (name, bytes, sealed) = (found.file.name.clone(), found.file.len(), index.is_some());
        self.report.files.push(CheckedFile { name, bytes, commit_groups: sum.commit_groups, sealed });
        self.report.commit_groups += sum.commit_groups;
        let applied = index.unwrap_or(sum.summary).apply(found.file.place.seq, &mut self.index.editor());
        if let Err(damage) = applied {
            self.find(found, 0, damage.0, Vec::new());
        }
        Ok(())
    }

    /// Checks that the header continues the file before and is followed by zeros.
    fn header(&mut self, context: FileContext<'_>, header: &FileHeader, reader: &mut GroupReader<'_>) -> Result<()> {
        let FileContext { survey, at, found, .. } = context;
        self.zeros(
            found,
            reader,
            header.encoded_len() as u64,
            u64::from(header.data_offset),
            "padding of the file header",
        )?;
        let follows = at.checked_sub(1).and_then(|before| survey.files.get(before)).map(|before| before.seq);
        let Some(before) = self.at else { return Ok(()) };
        let continues = before_first(header) == before;
        if (Some(header.prev_seq) == follows && !continues) || header.first_lsn <= before.lsn {
            self.find(found, 0, "file does not continue the one before", Vec::new());
        }
        Ok(())
    }

    /// Walks the groups.
    fn groups(
        &mut self,
        context: FileContext<'_>,
        walk: &mut GroupWalk<'_>,
        index: Option<&FileSummary>,
    ) -> Result<GroupsSum> {
        let FileContext { survey, at, found, base } = context;
        let mut sum = GroupsSum::default();
        while let Some(step) = walk.step()? {
            let broken = match step {
                Step::Gap(gap) => {
                    let mut finding = gap_finding(survey, at, found, &gap);
                    if let Some(index) = index {
                        finding.groups = index.groups_in(gap.from, gap.to);
                    }
                    Some(finding)
                }
                Step::Group(group) => {
                    sum.commit_groups += 1;
                    self.group(found, &mut walk.reader, &group)?;
                    let replayed = replay(&group.items, &group.blocks, found.file.place.seq, &mut sum.summary);
                    replayed.err().map(|damage| Finding::new(&found.file.name, group.offset, damage.0, group.groups()))
                }
            };
            sum.broken |= broken.is_some();
            self.report.findings.extend(broken);
            self.meter.at(base + walk.offset);
        }
        Ok(sum)
    }

    /// Checks the blocks of a group, and its padding.
    fn group(&mut self, found: &ExistingFile, reader: &mut GroupReader<'_>, group: &CommitGroup) -> Result<()> {
        self.report.blocks += group.blocks.len() as u64;
        self.report.findings.extend(damaged_blocks(reader, group)?);
        for block in &group.blocks {
            let stored_end = block.offset + BLOCK_HEADER as u64 + u64::from(block.stored);
            self.zeros(found, reader, stored_end, block.offset + block.total(), "padding of a block")?;
        }
        let header = &group.header;
        let content = GROUP_HEADER as u64 + u64::from(header.body) + u64::from(header.meta_stored);
        // The padding of the last group may be missing: then it ends with the file.
        let end = group.end().min(reader.len);
        self.zeros(found, reader, group.offset + content, end, "padding of a commit group")
    }

    /// Checks that there are zeros from `from` to before `to`.
    fn zeros(
        &mut self,
        found: &ExistingFile,
        reader: &mut GroupReader<'_>,
        from: u64,
        to: u64,
        what: &str,
    ) -> Result<()> {
        let bytes = reader.get(from, to.saturating_sub(from))?.unwrap_or_default();
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            self.find(found, from + at as u64, format!("{what} is not zero"), Vec::new());
        }
        Ok(())
    }

    /// Checks that the seal agrees with the groups.
    fn seal(
        &mut self,
        context: FileContext<'_>,
        walk: &mut GroupWalk<'_>,
        sum: &GroupsSum,
        index: Option<&FileSummary>,
    ) -> Result<()> {
        let found = context.found;
        let Some(footer) = found.footer else { return Ok(()) };
        let differing = index.filter(|_| !sum.broken).map(|index| sum.summary.differences(index));
        if let Some(differing) = differing.filter(|differing| !differing.is_empty()) {
            self.find(found, footer.index_offset, "index does not say what the file holds", differing);
        }
        let last = ChainPosition { lsn: footer.last_lsn, chain: footer.chain };
        if !sum.broken && (walk.offset != footer.index_offset || walk.at.is_some_and(|at| at != last)) {
            self.find(found, walk.offset, "commit groups do not end where the seal says", Vec::new());
        }
        if found.header.as_ref().is_some_and(|header| header.flags & REUSED == 0) {
            let index_end = footer.index_offset + u64::from(footer.index_stored);
            let footer_at = found.file.len() - FOOTER as u64;
            self.zeros(found, &mut walk.reader, index_end, footer_at, "padding of the index")?;
        }
        Ok(())
    }

    /// Reports the bytes from `offset` to `garbage_end` as a torn tail.
    fn torn(&mut self, found: &ExistingFile, offset: u64, garbage_end: u64) {
        if garbage_end > offset {
            let (file, bytes) = (found.file.name.clone(), garbage_end - offset);
            self.report.torn_tail = Some(TornTail { file, offset, bytes });
        }
    }

    /// Checks that the entries of each group are consecutive.
    fn contiguity(&mut self, survey: &Survey) {
        let name = |seq: u64| {
            let found = survey.files.iter().find(|file| file.seq == seq).and_then(|file| file.found.as_ref());
            found.map_or_else(String::new, |found| found.file.name.clone())
        };
        for group in self.index.groups() {
            let spans: Vec<Span> = self.index.with(group, |group| group.runs.iter().collect()).unwrap_or_default();
            self.report.groups += 1;
            self.report.entries += spans.iter().map(|span| u64::from(span.count)).sum::<u64>();
            for (before, after) in spans.iter().zip(spans.iter().skip(1)) {
                if before.end() != after.first {
                    let what = format!("group {} lacks entries {} to {}", group.0, before.end(), after.first - 1);
                    let finding = Finding::new(&name(after.file), after.offset, what, vec![group]);
                    self.report.findings.push(finding);
                }
            }
        }
    }
}
