//! Which files a damaged log consists of, as far as they tell.
//!
//! The newest file's header of a sound log lists the files. Here any file may be missing, unreadable or under another's
//! name, so all files are inspected first. The identity is the one of most headers. A file goes by the number in its
//! header, or by its name if the header is unreadable. The list of older files is that of the newest readable header.
//! It may name files that were dropped since. They repeat what newer files say, so applying them in their place changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};

use super::walk::{Known, Position, Step, Walk};
use crate::log::error::{LogError, Result};
use crate::log::format::{FileHeader, Footer, Identity, Item, MAX_FILES, Place, REUSED, file_name, parse_file_name};
use crate::log::read::{GroupReader, LogFile, read_header};
use crate::log::types::GroupId;

/// The files of a log.
pub(crate) struct Survey {
    /// The log's files, oldest first, whether they exist or not.
    pub(crate) files: Vec<Surveyed>,
    /// What is wrong with files as a whole.
    pub(crate) problems: Vec<LogError>,
    /// Log files that are no part of it: dropped and not deleted yet, never used, or copies.
    pub(crate) surplus: Vec<String>,
}

/// A file that the log consists of.
pub(crate) struct Surveyed {
    pub(crate) seq: u64,
    pub(crate) found: Option<Found>,
}

/// A file that exists.
pub(crate) struct Found {
    pub(crate) file: Arc<LogFile>,
    /// Its header, if readable.
    pub(crate) header: Option<FileHeader>,
    /// Its footer, if it has a readable one.
    pub(crate) footer: Option<Footer>,
}

/// A file as found by name.
struct Inspected {
    name: String,
    seq: u64,
    file: Arc<dyn DiskFile>,
    len: u64,
    header: Result<FileHeader>,
}

/// The offset of the identity in a header that fails its checksum.
const IDENTITY_AT: u64 = 16;

impl Survey {
    /// Inspects all log files on `disk`. Fails if there is none, if none says which log it belongs to, or if one was
    /// written by a newer version of this program.
    pub(crate) fn new(disk: &dyn Disk) -> Result<Survey> {
        let mut problems = Vec::new();
        let mut inspected = Vec::new();
        for name in disk.list()? {
            let Some(seq) = parse_file_name(&name) else { continue };
            match inspect(disk, name.clone(), seq) {
                Ok(file) => inspected.push(file),
                Err(error) => problems.push(unreadable(&name, &error)),
            }
        }
        let Some(identity) = identity(&inspected) else {
            let first = inspected.into_iter().find_map(|file| file.header.err());
            return Err(problems.into_iter().next().or(first).unwrap_or(LogError::NoLog));
        };
        let mut surplus = Vec::new();
        let mut existing = assign(inspected, identity, &mut problems, &mut surplus)?;
        let seqs = listed_files(&existing);
        let files: Vec<Surveyed> = seqs.into_iter().map(|seq| Surveyed { seq, found: existing.remove(&seq) }).collect();
        let missing = files.iter().filter(|file| file.found.is_none());
        let missing = missing.map(|file| LogError::missing(file_name(file.seq)));
        // A file that exists and cannot be opened was reported above.
        let known: BTreeSet<String> = problems.iter().filter_map(|error| error.file().map(str::to_owned)).collect();
        problems.extend(missing.filter(|error| error.file().is_none_or(|file| !known.contains(file))));
        surplus.extend(existing.into_values().map(|found| found.file.name.clone()));
        surplus.sort();
        Ok(Survey { files, problems, surplus })
    }

    /// What is known of file `at` in the list from outside of its groups.
    pub(crate) fn known(&self, at: usize, before: Option<Position>) -> Option<Known> {
        let found = self.files.get(at)?.found.as_ref()?;
        let next = self.files.get(at + 1).and_then(|next| next.found.as_ref());
        Some(known(found, next, at + 1 < self.files.len(), before))
    }

    /// The groups that file `at` in the list changes, as the next file's header lists them.
    pub(crate) fn changed_in(&self, at: usize) -> Option<Vec<GroupId>> {
        self.header_after(at)?.changed.clone()
    }

    /// The header of the file right after file `at`, if readable.
    pub(crate) fn header_after(&self, at: usize) -> Option<&FileHeader> {
        let seq = self.files.get(at)?.seq;
        let after = self.files.get(at + 1)?.found.as_ref()?.header.as_ref()?;
        (after.prev_seq == seq).then_some(after)
    }

    /// Bytes of all existing files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.found.as_ref()).map(|found| found.file.len()).sum()
    }
}

fn known(found: &Found, next: Option<&Found>, followed: bool, before: Option<Position>) -> Known {
    let own = found.header.as_ref();
    let by_footer = found.footer.map(|footer| Position { lsn: footer.last_lsn, chain: footer.chain });
    let next = next.and_then(|next| next.header.as_ref()).filter(|header| header.prev_seq == found.file.place.seq);
    Known {
        start: own.map_or(0, |header| u64::from(header.data_offset)),
        before: own.map(before_first).or(before),
        last: by_footer.or(next.map(before_first)),
        followed,
        reused: own.is_none_or(|header| header.flags & REUSED != 0),
    }
}

/// The position before a file's first group.
pub(crate) fn before_first(header: &FileHeader) -> Position {
    Position { lsn: header.first_lsn.saturating_sub(1), chain: header.chain }
}

fn inspect(disk: &dyn Disk, name: String, seq: u64) -> Result<Inspected> {
    let file = disk.open(&name)?;
    let len = file.len()?;
    let header = read_header(file.as_ref(), len, &name).map_err(|error| match error {
        LogError::Io(_) => unreadable(&name, &error),
        other => other,
    });
    Ok(Inspected { name, seq, file, len, header })
}

/// The error for a file that the disk does not return.
fn unreadable(name: &str, error: &LogError) -> LogError {
    let what = format!("file cannot be read: {error}");
    LogError::Corrupt { file: name.to_owned(), offset: 0, what, groups: Vec::new() }
}

/// The identity of most headers; on a tie, that of the newest file. If no header is readable, the identity in a damaged
/// header that something else in the file confirms.
fn identity(inspected: &[Inspected]) -> Option<Identity> {
    let mut votes: BTreeMap<u128, (usize, u64)> = BTreeMap::new();
    for header in inspected.iter().filter_map(|file| file.header.as_ref().ok()) {
        let (count, newest) = votes.entry(header.place.identity.0).or_default();
        *count += 1;
        *newest = (*newest).max(header.place.seq);
    }
    let majority = votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(identity, _)| Identity(identity));
    majority.or_else(|| inspected.iter().find_map(confirmed_identity))
}

fn confirmed_identity(inspected: &Inspected) -> Option<Identity> {
    let mut bytes = [0; 16];
    inspected.file.read_at(&mut bytes, IDENTITY_AT).ok()?;
    let identity = Identity(u128::from_le_bytes(bytes));
    let place = Place { identity, seq: inspected.seq };
    let file = LogFile::new(place, inspected.name.clone(), inspected.file.clone(), inspected.len);
    has_valid_content(&file).then_some(identity)
}

/// Whether something in a file passes its checksum.
fn has_valid_content(file: &LogFile) -> bool {
    let mut reader = GroupReader::tolerant(file);
    file.footer().is_ok_and(|footer| footer.is_some())
        || reader.scan_rest(0, true, None).is_ok_and(|rest| !rest.heads.is_empty())
}

/// Assigns a file to each number.
fn assign(
    inspected: Vec<Inspected>,
    identity: Identity,
    problems: &mut Vec<LogError>,
    surplus: &mut Vec<String>,
) -> Result<BTreeMap<u64, Found>> {
    let mut existing: BTreeMap<u64, Found> = BTreeMap::new();
    // Files under their own name first, then those under another name, then those that do not say what they are.
    let rank = |file: &Inspected| match &file.header {
        Ok(header) if header.place == (Place { identity, seq: file.seq }) => 0,
        Ok(_) => 1,
        Err(_) => 2,
    };
    let mut ranked: Vec<(u8, Inspected)> = inspected.into_iter().map(|file| (rank(&file), file)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    for (rank, Inspected { name, seq, file, len, header }) in ranked {
        let misplaced = |what: String| LogError::misplaced(name.as_str(), what);
        let (place, header) = match header {
            Ok(header) if header.place.identity != identity => {
                problems.push(misplaced("it belongs to another log".to_owned()));
                surplus.push(name);
                continue;
            }
            Ok(header) => {
                if rank > 0 {
                    problems.push(misplaced(format!("it is file {}", header.place.seq)));
                }
                (header.place, Some(header))
            }
            Err(error) => {
                let place = Place { identity, seq };
                let is_newer = matches!(error, LogError::Version { .. });
                if is_newer && !has_valid_content(&LogFile::new(place, name.clone(), file.clone(), len)) {
                    return Err(error);
                }
                problems.push(error);
                (place, None)
            }
        };
        if existing.contains_key(&place.seq) {
            surplus.push(name);
            continue;
        }
        let file = LogFile::new(place, name, file, len);
        let footer = file.footer().unwrap_or_default();
        existing.insert(place.seq, Found { file: Arc::new(file), header, footer });
    }
    Ok(existing)
}

/// The numbers of the files that the log consists of.
fn listed_files(existing: &BTreeMap<u64, Found>) -> BTreeSet<u64> {
    let newest_header = existing.values().rev().find_map(|found| found.header.as_ref());
    // Without any header, all existing files.
    let Some(header) = newest_header else { return existing.keys().copied().collect() };
    let mut seqs: BTreeSet<u64> = header.live.iter().flat_map(|(first, last)| *first..=*last).collect();
    let mut last = header.place.seq;
    seqs.insert(last);
    // Later files have no readable header. They are in use if something else in them is readable, and so are the files
    // between. A sealed file is followed by another one, readable or not. The number of files is bounded, whatever a
    // name says.
    let mut later = existing.range(last.saturating_add(1)..=last.saturating_add(MAX_FILES)).rev();
    if let Some((newest, _)) = later.find(|(_, found)| has_valid_content(&found.file)) {
        seqs.extend(last..=*newest);
        last = *newest;
    }
    if existing.get(&last).is_some_and(|found| found.footer.is_some()) {
        last = last.saturating_add(1);
        seqs.insert(last);
    }
    for (seq, found) in existing.range(header.place.seq..) {
        let next = existing.get(&seq.saturating_add(1));
        for file in dropped(found, next, *seq < last) {
            seqs.remove(&file);
        }
    }
    seqs
}

/// The files that a file's groups drop.
fn dropped(found: &Found, next: Option<&Found>, followed: bool) -> Vec<u64> {
    let mut walk = Walk::new(&found.file, known(found, next, followed, None));
    let mut dropped = Vec::new();
    while let Ok(Some(step)) = walk.step() {
        let Step::Group(group) = step else { continue };
        dropped.extend(group.items.iter().filter_map(|item| match item {
            Item::Drop { file } => Some(*file),
            _ => None,
        }));
    }
    dropped
}
