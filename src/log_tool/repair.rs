//! `cortado log repair`: writes the readable part of a damaged log to a new directory.

use std::fmt::Write as _;
use std::fs::DirEntry;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use engine::disk::{Disk, RealDisk};
use engine::log::LogError;
use engine::log::tools::{self, RepairOptions, RepairReport, RepairedGroup};
use serde::Serialize;

use super::progress::ProgressDisplay;
use super::report::{CutFile, LogFolder, LogToolError, group_numbers, print_report, short_list};
use crate::cli::RepairArgs;
use crate::console::Table;

/// Repairs the log and prints the report. Fails if anything is lost.
pub(super) fn run(args: &RepairArgs) -> Result<(), LogToolError> {
    let folder = LogFolder::open(&args.log.dir)?;
    let same = |to: &Path| to.canonicalize().ok() == folder.dir.canonicalize().ok();
    if args.to.exists() && same(&args.to) {
        return Err(LogToolError::SameDirectory(folder.dir));
    }
    check_empty(&args.to)?;
    let options = RepairOptions { keep_doubtful: args.keep_doubtful, ..RepairOptions::default() };
    let mut unopened = None;
    let to = || match RealDisk::open(&args.to) {
        Ok(disk) => Ok(disk as Arc<dyn Disk>),
        Err(error) => {
            let named = io::Error::new(error.kind(), format!("{}: {error}", args.to.display()));
            unopened = Some(LogToolError::Open(named));
            Err(error)
        }
    };
    let bar = ProgressDisplay::new("repairing");
    let repaired = tools::repair(folder.disk.as_ref(), to, &options, &mut |progress| bar.show(progress));
    drop(bar);
    let report = repaired.map_err(|error| match (unopened, error) {
        (Some(unopened), _) => unopened,
        // These are errors of the target.
        (None, error @ (LogError::Invalid(_) | LogError::NoSpace(_) | LogError::Poisoned(_))) => {
            LogToolError::Log(args.to.clone(), error)
        }
        (None, error) => folder.error(error),
    })?;
    let (from, to) = (&folder.dir, &args.to);
    print_report(args.log.json, || Page::new(from, to, &report), || to_text(from, to, &report))?;
    let to = args.to.clone();
    match (report.groups.iter().filter(|group| !group.is_whole).count(), report.losses.len()) {
        (0, 0) => Ok(()),
        (0, losses) => Err(LogToolError::UnknownGroupsLost { to, losses }),
        (groups, _) => Err(LogToolError::GroupsLost { to, groups }),
    }
}

/// Fails unless the target directory is missing or empty, so that the new log is not mixed with other files, such as a
/// node's data.
fn check_empty(to: &Path) -> Result<(), LogToolError> {
    let entries = match to.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries,
    };
    // An earlier attempt that had nothing to write leaves a lock file.
    let is_foreign = |entry: &io::Result<DirEntry>| entry.as_ref().is_ok_and(|entry| entry.file_name() != "LOCK");
    let first = entries.and_then(|mut entries| entries.find(|entry| entry.is_err() || is_foreign(entry)).transpose());
    let named =
        |error: io::Error| LogToolError::Open(io::Error::new(error.kind(), format!("{}: {error}", to.display())));
    match first.map_err(named)? {
        None => Ok(()),
        Some(entry) => {
            let name = entry.file_name().to_string_lossy().into_owned();
            Err(LogToolError::NotEmpty { dir: to.to_path_buf(), name })
        }
    }
}

#[derive(Serialize)]
struct Page {
    directory: String,
    to: String,
    entries: u64,
    bytes: u64,
    torn_bytes: u64,
    cut_file: Option<CutFile>,
    losses: Vec<Loss>,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Loss {
    file: String,
    from: u64,
    to: u64,
    first_lsn: Option<u64>,
    last_lsn: Option<u64>,
    what: String,
    concerns: Option<Vec<u64>>,
}

#[derive(Serialize)]
struct Group {
    id: u64,
    whole: bool,
    kept: Option<[u64; 2]>,
    keys: u64,
    lost: Vec<[u64; 2]>,
    doubtful: Vec<[u64; 2]>,
    doubtful_keys: Vec<String>,
}

impl Page {
    fn new(dir: &Path, to: &Path, report: &RepairReport) -> Page {
        let loss = |loss: &engine::log::Loss| Loss {
            file: loss.file.clone(),
            from: loss.from,
            to: loss.to,
            first_lsn: loss.first_lsn.map(|lsn| lsn.0),
            last_lsn: loss.last_lsn.map(|lsn| lsn.0),
            what: loss.what.clone(),
            concerns: loss.concerns.as_deref().map(group_numbers),
        };
        let range = |range: &engine::log::EntryRange| [range.first, range.last];
        let group = |group: &RepairedGroup| Group {
            id: group.group.0,
            whole: group.is_whole,
            kept: group.kept.as_ref().map(range),
            keys: group.keys,
            lost: group.lost.iter().map(range).collect(),
            doubtful: group.doubtful.iter().map(range).collect(),
            doubtful_keys: group.doubtful_keys.iter().map(|key| key.escape_ascii().to_string()).collect(),
        };
        Page {
            directory: dir.display().to_string(),
            to: to.display().to_string(),
            entries: report.entries,
            bytes: report.bytes,
            torn_bytes: report.torn_bytes,
            cut_file: report.cut_file.as_ref().map(CutFile::new),
            losses: report.losses.iter().map(loss).collect(),
            groups: report.groups.iter().map(group).collect(),
        }
    }
}

fn to_text(dir: &Path, to: &Path, report: &RepairReport) -> String {
    let whole = report.groups.iter().filter(|group| group.is_whole).count();
    let mut out = format!("log folder {}\nwritten to {}\n\n", dir.display(), to.display());
    let RepairReport { entries, bytes, groups, torn_bytes, .. } = report;
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "{entries} entries of {bytes} bytes; {whole} of {} groups whole", groups.len());
    if *torn_bytes > 0 {
        let _ = writeln!(out, "{torn_bytes} bytes of a torn tail left out, as at any start after a crash");
    }
    if let Some(cut) = &report.cut_file {
        let _ = writeln!(out, "{}", CutFile::new(cut));
    }
    for loss in &report.losses {
        let _ = writeln!(out, "! {loss}");
    }
    if whole == groups.len() {
        return out;
    }
    let mut table = Table::new(&["group", "kept", "lost", "doubtful", "keys", "doubtful keys"]);
    for group in groups.iter().filter(|group| !group.is_whole) {
        let keys: Vec<String> = group.doubtful_keys.iter().map(|key| key.escape_ascii().to_string()).collect();
        table.row([
            group.group.0.to_string(),
            group.kept.map_or_else(|| "none".to_string(), |kept| kept.to_string()),
            short_list(&group.lost),
            short_list(&group.doubtful),
            group.keys.to_string(),
            short_list(&keys),
        ]);
    }
    let _ = write!(out, "\n{}", table.render());
    out
}

#[cfg(test)]
mod tests {
    use engine::log::{EntryRange, GroupId};

    use super::*;

    #[test]
    fn intact_groups_are_only_counted() {
        let whole = RepairedGroup {
            group: GroupId(1),
            kept: Some(EntryRange { first: 1, last: 9 }),
            keys: 1,
            lost: Vec::new(),
            doubtful: Vec::new(),
            doubtful_keys: Vec::new(),
            is_whole: true,
        };
        let lost = RepairedGroup {
            group: GroupId(2),
            kept: None,
            keys: 0,
            lost: vec![EntryRange { first: 5, last: 5 }, EntryRange { first: 8, last: 9 }],
            doubtful: vec![EntryRange { first: 5, last: 5 }],
            doubtful_keys: vec!["h".into()],
            is_whole: false,
        };
        let report = RepairReport { groups: vec![whole, lost], entries: 9, bytes: 90, ..RepairReport::default() };
        assert_eq!(
            to_text(Path::new("a"), Path::new("b"), &report),
            "log folder a\nwritten to b\n\n\
             9 entries of 90 bytes; 1 of 2 groups whole\n\n\
             group  kept  lost       doubtful  keys  doubtful keys\n\
             2      none  5, 8 to 9  5         0     h\n"
        );
    }
}
