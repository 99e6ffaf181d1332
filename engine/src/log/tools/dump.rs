//! Dumps a log record by record, in order: headers, commit groups, changes, entries, seals.
//!
//! Every readable record is dumped, also between losses, and damage is dumped in its place. Every commit group, block and
//! seal is verified. Only `check` looks for other problems (padding, chains, gaps between entries).

use std::fmt;
use std::io;

use bytes::Bytes;

use crate::disk::Disk;

use super::findings::{damaged_blocks, file_finding, gap_finding, seal_finding};
use super::progress::{Meter, Progress};
use crate::log::error::{Finding, Result};
use crate::log::format::{Block, Item, file_name, replay};
use crate::log::index::FileSummary;
use crate::log::read::{CommitGroup, GroupReader};
use crate::log::salvage::{ChainPosition, ExistingFile, GroupWalk, Step, Survey};
use crate::log::types::{GroupId, Lsn};

/// Options of a dump.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpOptions {
    /// Only records of this group.
    pub group: Option<GroupId>,
    /// Also each entry: its index and length, and this many of its first bytes. `None` omits entries.
    pub entries: Option<usize>,
}

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file begins.
    File(FileRecord),
    /// A commit group begins.
    Group(GroupRecord),
    /// A change of a commit group.
    Change(Change),
    /// An entry of an append or a rewrite.
    Entry(EntryRecord),
    /// The end of a sealed file.
    Seal(SealRecord),
    /// An unreadable part.
    Damage(Finding),
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The number of the file before it; 0 for the first. `None`, as the following fields, if the header is unreadable.
    pub previous: Option<u64>,
    /// The position of its first commit group.
    pub first_lsn: Option<Lsn>,
    /// Whether an earlier file used its space.
    pub reused: Option<bool>,
    /// The older files of the log when it was created: ranges from first to last number.
    pub older: Option<Vec<(u64, u64)>>,
}

/// The header of a commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// Its offset in the file.
    pub offset: u64,
    /// Its length with padding.
    pub bytes: u64,
    /// Its position.
    pub lsn: Lsn,
    /// The position up to which everything was known to be synced when it was written.
    pub synced: Lsn,
    /// Batches in it; 0 in the mark of a clean stop.
    pub batches: u32,
    /// Blocks of entries in it.
    pub blocks: u32,
}

/// A change that a commit group makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "docs/formats.md describes each field")]
pub enum Change {
    Append { group: GroupId, first: u64, count: u64 },
    Rewrite { group: GroupId, floor: u64, last: u64, first: u64, count: u64 },
    Put { group: GroupId, key: Bytes, value: Bytes },
    Delete { group: GroupId, key: Bytes },
    Compact { group: GroupId, first_kept: u64 },
    Remove { group: GroupId },
    Drop { file: String },
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// Its group.
    pub group: GroupId,
    /// Its index.
    pub index: u64,
    /// Its length in bytes; `None` if its block is damaged.
    pub bytes: Option<u64>,
    /// Its first bytes, as many as requested.
    pub prefix: Bytes,
}

/// Index and footer of a sealed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealRecord {
    /// The offset of the index.
    pub offset: u64,
    /// Its length as stored.
    pub stored: u64,
    /// Its length before compression.
    pub raw: u64,
    /// Number of groups in it; `None` if it is damaged.
    pub groups: Option<usize>,
    /// The position of the last commit group.
    pub last_lsn: Lsn,
}

/// Dumps the log on `disk` to `show`, which may end the dump with an error. Returns the number of damage records; with
/// a group filter, of those that concern the group or may.
pub fn dump(
    disk: &dyn Disk,
    options: &DumpOptions,
    show: &mut dyn FnMut(&Record) -> io::Result<()>,
    progress: &mut dyn FnMut(Progress),
) -> Result<usize> {
    let survey = Survey::new(disk)?;
    let mut dump = Dump { options, show, meter: Meter::new(survey.bytes(), progress), damaged: 0 };
    for problem in &survey.problems {
        dump.damage(file_finding(&survey, problem))?;
    }
    let mut base = 0;
    let mut before = None;
    for (at, file) in survey.files.iter().enumerate() {
        let Some(found) = &file.found else {
            before = None;
            continue;
        };
        before = dump.file(&survey, at, found, before, base)?;
        base += found.file.len();
        dump.meter.at(base);
    }
    dump.meter.end();
    Ok(dump.damaged)
}

struct Dump<'a> {
    options: &'a DumpOptions,
    show: &'a mut dyn FnMut(&Record) -> io::Result<()>,
    meter: Meter<'a>,
    /// Damage records shown.
    damaged: usize,
}

impl Dump<'_> {
    /// Shows damage, unless it is known to concern other groups only.
    fn damage(&mut self, finding: Finding) -> Result<()> {
        let wanted = |wanted| finding.groups.is_empty() || finding.groups.contains(&wanted);
        if self.options.group.is_none_or(wanted) {
            self.damaged += 1;
            (self.show)(&Record::Damage(finding))?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        survey: &Survey,
        at: usize,
        found: &ExistingFile,
        before: Option<ChainPosition>,
        base: u64,
    ) -> Result<Option<ChainPosition>> {
        let Some(facts) = survey.facts(at, before) else { return Ok(None) };
        let header = found.header.as_ref();
        (self.show)(&Record::File(FileRecord {
            name: found.file.name.clone(),
            bytes: found.file.len(),
            previous: header.map(|header| header.prev_seq),
            first_lsn: header.map(|header| Lsn(header.first_lsn)),
            reused: header.map(|header| header.flags != 0),
            older: header.map(|header| header.live.clone()),
        }))?;
        let mut walk = GroupWalk::new(&found.file, facts);
        while let Some(step) = walk.step()? {
            match step {
                Step::Group(group) => self.group(found, &mut walk.reader, &group)?,
                Step::Gap(gap) => {
                    let mut finding = gap_finding(survey, at, found, &gap);
                    finding.what += &format!("; not readable up to {}", gap.to);
                    self.damage(finding)?;
                }
            }
            self.meter.at(base + walk.offset);
        }
        if let Some(footer) = found.footer {
            (self.show)(&Record::Seal(SealRecord {
                offset: footer.index_offset,
                stored: u64::from(footer.index_stored),
                raw: u64::from(footer.index_raw),
                groups: found.file.sealed().ok().map(|(_, summary)| summary.groups().count()),
                last_lsn: Lsn(footer.last_lsn),
            }))?;
        }
        if let Some(finding) = seal_finding(survey, at, found) {
            self.damage(finding)?;
        }
        if let Some((offset, error)) = &walk.reader.failed {
            self.damage(Finding::new(&found.file.name, *offset, error.to_string(), Vec::new()))?;
        }
        Ok(facts.last.or(walk.at))
    }

    fn group(&mut self, found: &ExistingFile, reader: &mut GroupReader<'_>, group: &CommitGroup) -> Result<()> {
        let is_wanted = |item: &Item| self.options.group.is_none_or(|wanted| item.group() == Some(wanted));
        if self.options.group.is_some() && !group.items.iter().any(is_wanted) {
            return Ok(());
        }
        let header = &group.header;
        (self.show)(&Record::Group(GroupRecord {
            offset: group.offset,
            bytes: header.total(),
            lsn: Lsn(header.lsn),
            synced: Lsn(header.synced),
            batches: header.batches,
            blocks: header.blocks,
        }))?;
        for finding in damaged_blocks(reader, group)? {
            self.damage(finding)?;
        }
        let fits = replay(&group.items, &group.blocks, found.file.place.seq, &mut FileSummary::default());
        if let Err(damage) = fits {
            self.damage(Finding::new(&found.file.name, group.offset, damage.0, group.groups()))?;
        }
        let mut entries = Entries { found, group, block: 0, decoded: None, ordinal: 0 };
        for item in &group.items {
            let is_shown = self.options.group.is_none_or(|wanted| item.group() == Some(wanted));
            if is_shown {
                (self.show)(&Record::Change(change(item)))?;
            }
            let (Item::Append { group: id, first, count } | Item::Rewrite { group: id, first, count, .. }) = item
            else {
                continue;
            };
            // Entries are in the order of the items: those of other groups are skipped. A damaged item may name more
            // than there are.
            let named = (0..*count).map_while(|at| first.checked_add(at));
            for index in named {
                if entries.is_at_end() {
                    break;
                }
                let Some(prefix) = self.options.entries.filter(|_| is_shown) else {
                    entries.skip();
                    continue;
                };
                let entry = entries.next();
                let bytes = entry.as_ref().map(|entry| entry.len() as u64);
                let prefix = entry.map_or_else(Bytes::new, |entry| entry.slice(..prefix.min(entry.len())));
                (self.show)(&Record::Entry(EntryRecord { group: *id, index, bytes, prefix }))?;
            }
        }
        Ok(())
    }
}

/// The entries of a commit group, in order.
struct Entries<'a> {
    found: &'a ExistingFile,
    group: &'a CommitGroup,
    /// The number of the current block, and its content once it is decoded; `Some(None)` if it is damaged.
    block: usize,
    decoded: Option<Option<Block>>,
    ordinal: u32,
}

impl Entries<'_> {
    /// The next entry, if its block is readable.
    fn next(&mut self) -> Option<Bytes> {
        let place = self.group.blocks.get(self.block)?;
        let block =
            self.decoded.get_or_insert_with(|| self.found.file.read_block(place.offset, place.total(), || {}).ok());
        let entry = block.as_ref().and_then(|block| block.entry(self.ordinal));
        self.skip();
        entry
    }

    /// Whether all entries were returned or skipped.
    fn is_at_end(&self) -> bool {
        self.block >= self.group.blocks.len()
    }

    /// Skips an entry.
    fn skip(&mut self) {
        let Some(place) = self.group.blocks.get(self.block) else { return };
        self.ordinal += 1;
        if self.ordinal >= u32::from(place.entries) {
            (self.block, self.decoded, self.ordinal) = (self.block + 1, None, 0);
        }
    }
}

fn change(item: &Item) -> Change {
    match item.clone() {
        Item::Append { group, first, count } => Change::Append { group, first, count },
        Item::Rewrite { group, floor, last, first, count } => Change::Rewrite { group, floor, last, first, count },
        Item::Put { group, key, value } => Change::Put { group, key, value },
        Item::Delete { group, key } => Change::Delete { group, key },
        Item::Compact { group, first_kept } => Change::Compact { group, first_kept },
        Item::Remove { group } => Change::Remove { group },
        Item::Drop { file } => Change::Drop { file: file_name(file) },
    }
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Record {
    /// One line, indented by depth.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::File(file) => file.fmt(f),
            Record::Group(group) => {
                let GroupRecord { offset, bytes, lsn, synced, batches, blocks } = group;
                write!(
                    f,
                    "  {offset} commit group {}: synced {}, batches {batches}, blocks {blocks}, bytes {bytes}",
                    lsn.0, synced.0
                )
            }
            Record::Change(change) => write!(f, "    {change}"),
            Record::Entry(EntryRecord { group, index, bytes: None, .. }) => {
                write!(f, "      {}/{index}: cannot be read", group.0)
            }
            Record::Entry(EntryRecord { group, index, bytes: Some(bytes), prefix }) => {
                write!(f, "      {}/{index}: bytes {bytes}", group.0)?;
                if prefix.is_empty() { Ok(()) } else { write!(f, ", {}", Hex(prefix)) }
            }
            Record::Seal(seal) => {
                let SealRecord { offset, stored, raw, groups, last_lsn } = seal;
                write!(f, "  {offset} index: ")?;
                match groups {
                    Some(groups) => write!(f, "groups {groups}")?,
                    None => f.write_str("damaged")?,
                }
                write!(f, ", bytes {stored}, raw {raw}, last commit group {}", last_lsn.0)
            }
            Record::Damage(finding) => write!(f, "! {finding}"),
        }
    }
}

impl fmt::Display for FileRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: bytes {}", self.name, self.bytes)?;
        let (Some(previous), Some(first_lsn), Some(older)) = (self.previous, self.first_lsn, &self.older) else {
            return f.write_str(", header cannot be read");
        };
        write!(f, ", after file {previous}, from commit group {}", first_lsn.0)?;
        if self.reused == Some(true) {
            f.write_str(", reused")?;
        }
        for (at, (first, last)) in older.iter().enumerate() {
            f.write_str(if at == 0 { ", older files " } else { " " })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Append { group, first, count } => {
                write!(f, "append group {}: first {first}, count {count}", group.0)
            }
            Change::Rewrite { group, floor, last, first, count } => {
                write!(f, "rewrite group {}: first {first}, count {count}, floor {floor}, last {last}", group.0)
            }
            Change::Put { group, key, value } => {
                write!(f, "put group {}: {} = {}", group.0, key.escape_ascii(), Hex(value))
            }
            Change::Delete { group, key } => write!(f, "delete group {}: {}", group.0, key.escape_ascii()),
            Change::Compact { group, first_kept } => write!(f, "compact group {}: first kept {first_kept}", group.0),
            Change::Remove { group } => write!(f, "remove group {}", group.0),
            Change::Drop { file } => write!(f, "drop {file}"),
        }
    }
}
