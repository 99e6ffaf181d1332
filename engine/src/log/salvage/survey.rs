//! The survey of a damaged log: the files that it consists of, as far as their headers are readable.
//!
//! In an undamaged log the header of the newest file lists the files. Here any file may be missing, unreadable or under
//! the name of another, so all files are inspected first. The identity is that of most headers. The number of a file is
//! that in its header, or that in its name if the header is unreadable. The list of older files is that of the newest
//! readable header. It may contain files that were dropped since. Newer files have rewritten all their live records, so
//! applying them in order changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};

use super::walk::{ChainPosition, FileFacts, GroupWalk, Step};
use crate::log::error::{LogError, Result};
use crate::log::format::{FileHeader, Footer, Identity, Item, MAX_FILES, Place, REUSED, file_name, parse_file_name};
use crate::log::read::{CutFile, GroupReader, LogFile, Succession, read_header, scan};
use crate::log::types::GroupId;

/// The files of a log.
pub(crate) struct Survey {
    /// The log's files, oldest first, whether they exist or not.
    pub(crate) files: Vec<SurveyedFile>,
    /// Errors of whole files.
    pub(crate) problems: Vec<LogError>,
    /// Log files that are not part of the log: dropped and not deleted yet, never used, or copies.
    pub(crate) surplus: Vec<String>,
    /// A file that follows a torn tail and is cut with it.
    pub(crate) cut_file: Option<CutFile>,
    /// The file before the newest one, if it has all of its groups and no seal: the log did not come to seal it.
    unsealed: Option<u64>,
}

/// A file that the log consists of.
pub(crate) struct SurveyedFile {
    pub(crate) seq: u64,
    pub(crate) found: Option<ExistingFile>,
}

/// An existing file, by the number that it has in the log.
pub(crate) struct ExistingFile {
    pub(crate) file: Arc<LogFile>,
    /// Its header, if readable.
    pub(crate) header: Option<FileHeader>,
    /// Its footer, if it has a readable one.
    pub(crate) footer: Option<Footer>,
}

/// A file by the number in its name, before its content is checked.
struct InspectedFile {
    name: String,
    seq: u64,
    file: Arc<dyn DiskFile>,
    len: u64,
    header: Result<FileHeader>,
}

/// The offset of the identity in a header that fails its checksum.
const IDENTITY_AT: u64 = 16;

impl Survey {
    /// Inspects all log files on `disk`. Fails if there is none, if no identity is readable, or if a newer version of
    /// this program wrote one.
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
        let (mut unsealed, mut cut_file) = (None, None);
        match newest_two(&existing) {
            Some((before, Succession::InUse)) => unsealed = Some(before),
            Some((_, succession @ (Succession::Unused | Succession::Cut(_)))) => {
                let after = existing.pop_last().map(|(_, after)| after.file.name.clone());
                problems.retain(|problem| problem.file() != after.as_deref());
                match succession {
                    Succession::Cut(cut) => cut_file = Some(cut),
                    _ => surplus.extend(after),
                }
            }
            _ => {}
        }
        let seqs = listed_files(&existing);
        let files: Vec<SurveyedFile> =
            seqs.into_iter().map(|seq| SurveyedFile { seq, found: existing.remove(&seq) }).collect();
        let missing = files.iter().filter(|file| file.found.is_none());
        let missing = missing.map(|file| LogError::missing(file_name(file.seq)));
        // A file that exists and cannot be opened is reported above.
        let reported: BTreeSet<String> = problems.iter().filter_map(|error| error.file().map(str::to_owned)).collect();
        problems.extend(missing.filter(|error| error.file().is_none_or(|file| !reported.contains(file))));
        surplus.extend(existing.into_values().map(|found| found.file.name.clone()));
        surplus.sort();
        Ok(Survey { files, problems, surplus, cut_file, unsealed })
    }

    /// The facts about file `at` in the list.
    pub(crate) fn facts(&self, at: usize, before: Option<ChainPosition>) -> Option<FileFacts> {
        let found = self.files.get(at)?.found.as_ref()?;
        let next = self.files.get(at + 1).and_then(|next| next.found.as_ref());
        Some(facts(found, next, at + 1 < self.files.len(), before))
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

    /// Whether file `at` in the list may lack a seal: the newest file, and the one before it if it has all its groups.
    pub(crate) fn may_be_unsealed(&self, at: usize) -> bool {
        at + 1 == self.files.len() || self.files.get(at).is_some_and(|file| self.unsealed == Some(file.seq))
    }

    /// Bytes of all existing files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.found.as_ref()).map(|found| found.file.len()).sum()
    }
}

/// The facts about a file from its header and footer, and from the next file. `followed`: see [`FileFacts::followed`].
fn facts(
    found: &ExistingFile,
    next: Option<&ExistingFile>,
    followed: bool,
    before: Option<ChainPosition>,
) -> FileFacts {
    let own = found.header.as_ref();
    let by_footer = found.footer.map(|footer| ChainPosition { lsn: footer.last_lsn, chain: footer.chain });
    let next = next.and_then(|next| next.header.as_ref()).filter(|header| header.prev_seq == found.file.place.seq);
    FileFacts {
        start: own.map_or(0, |header| u64::from(header.data_offset)),
        before: own.map(before_first).or(before),
        last: by_footer.or(next.map(before_first)),
        followed,
        reused: own.is_none_or(|header| header.flags & REUSED != 0),
    }
}

/// The position before a file's first group.
pub(crate) fn before_first(header: &FileHeader) -> ChainPosition {
    ChainPosition { lsn: header.first_lsn.saturating_sub(1), chain: header.chain }
}

/// The number of the file before the newest one, and how the newest one continues it, if both are unsealed and the
/// older one is readable.
fn newest_two(existing: &BTreeMap<u64, ExistingFile>) -> Option<(u64, Succession)> {
    let (last, newest) = existing.last_key_value()?;
    let seq = newest.header.as_ref().map_or(last.checked_sub(1), |header| Some(header.prev_seq))?;
    let before = existing.get(&seq).filter(|_| newest.footer.is_none())?;
    if before.file.is_sealed().ok()? {
        return None;
    }
    let found = scan(&before.file, before.header.as_ref()?).ok()?;
    let footer = before.footer.as_ref();
    let succession = match &newest.header {
        Some(header) => Succession::of(&found, footer, &newest.file, header, &scan(&newest.file, header).ok()?),
        None => Succession::of_headless(footer.is_none().then_some(&found), &newest.file).ok()?,
    };
    Some((seq, succession))
}

fn inspect(disk: &dyn Disk, name: String, seq: u64) -> Result<InspectedFile> {
    let file = disk.open(&name)?;
    let len = file.len()?;
    let header = read_header(file.as_ref(), len, &name).map_err(|error| match error {
        LogError::Io(_) => unreadable(&name, &error),
        other => other,
    });
    Ok(InspectedFile { name, seq, file, len, header })
}

/// The error for a file that cannot be read.
fn unreadable(name: &str, error: &LogError) -> LogError {
    let what = format!("file cannot be read: {error}");
    LogError::Corrupt { file: name.to_owned(), offset: 0, what, groups: Vec::new() }
}

/// The identity of most headers; on a tie, that of the newest file. If no header is readable, the identity in a damaged
/// header for which other content of the file passes its checksum.
fn identity(inspected: &[InspectedFile]) -> Option<Identity> {
    let mut votes: BTreeMap<u128, (usize, u64)> = BTreeMap::new();
    for header in inspected.iter().filter_map(|file| file.header.as_ref().ok()) {
        let (count, newest) = votes.entry(header.place.identity.0).or_default();
        *count += 1;
        *newest = (*newest).max(header.place.seq);
    }
    let majority = votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(identity, _)| Identity(identity));
    majority.or_else(|| inspected.iter().find_map(confirmed_identity))
}

fn confirmed_identity(inspected: &InspectedFile) -> Option<Identity> {
    let mut bytes = [0; 16];
    inspected.file.read_at(&mut bytes, IDENTITY_AT).ok()?;
    let identity = Identity(u128::from_le_bytes(bytes));
    let place = Place { identity, seq: inspected.seq };
    let file = LogFile::new(place, inspected.name.clone(), inspected.file.clone(), inspected.len);
    has_valid_content(&file).then_some(identity)
}

/// Whether a footer or a commit group of the file passes its checksum.
fn has_valid_content(file: &LogFile) -> bool {
    let mut reader = GroupReader::tolerant(file);
    file.footer().is_ok_and(|footer| footer.is_some())
        || reader.scan_rest(0, true, None).is_ok_and(|rest| !rest.heads.is_empty())
}

/// Assigns a file to each number.
fn assign(
    inspected: Vec<InspectedFile>,
    identity: Identity,
    problems: &mut Vec<LogError>,
    surplus: &mut Vec<String>,
) -> Result<BTreeMap<u64, ExistingFile>> {
    let mut existing: BTreeMap<u64, ExistingFile> = BTreeMap::new();
    // Files under their own name first, then those under another name, then those with an unreadable header.
    let rank = |file: &InspectedFile| match &file.header {
        Ok(header) if header.place == (Place { identity, seq: file.seq }) => 0,
        Ok(_) => 1,
        Err(_) => 2,
    };
    let mut ranked: Vec<(u8, InspectedFile)> = inspected.into_iter().map(|file| (rank(&file), file)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    for (rank, InspectedFile { name, seq, file, len, header }) in ranked {
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
        existing.insert(place.seq, ExistingFile { file: Arc::new(file), header, footer });
    }
    Ok(existing)
}

/// The numbers of the files that the log consists of.
fn listed_files(existing: &BTreeMap<u64, ExistingFile>) -> BTreeSet<u64> {
    let newest_header = existing.values().rev().find_map(|found| found.header.as_ref());
    // Without any header, all existing files.
    let Some(header) = newest_header else { return existing.keys().copied().collect() };
    let mut seqs: BTreeSet<u64> = header.live.iter().flat_map(|(first, last)| *first..=*last).collect();
    let mut last = header.place.seq;
    seqs.insert(last);
    // Later files have no readable header. A later file with other readable content is in use, and so are the files
    // before it. A sealed file has a successor, readable or not. `MAX_FILES` bounds the range, because a file name may
    // contain any number.
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
fn dropped(found: &ExistingFile, next: Option<&ExistingFile>, followed: bool) -> Vec<u64> {
    let mut walk = GroupWalk::new(&found.file, facts(found, next, followed, None));
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
