//! `cortado log dump`: prints the records of a log, one per line.

use std::io::{self, BufWriter, ErrorKind, Write};

use engine::log::tools::{self, Change, DumpOptions, Record};
use engine::log::{GroupId, LogError};
use serde_json::{Value, json};

use super::progress::ProgressDisplay;
use super::report::{LogFolder, LogToolError, group_numbers};
use crate::cli::DumpArgs;

/// Prints the records. Fails if the log is damaged. Ends without an error if the reader of standard output closes the
/// pipe.
pub(super) fn run(args: &DumpArgs) -> Result<(), LogToolError> {
    let folder = LogFolder::open(&args.log.dir)?;
    let options = DumpOptions { group: args.group.map(GroupId), entries: args.entries.then_some(args.prefix) };
    let mut out = BufWriter::new(io::stdout().lock());
    let bar = ProgressDisplay::beside_output("reading");
    let mut has_heading = false;
    let mut show = |record: &Record| {
        if !std::mem::replace(&mut has_heading, true) {
            match args.log.json {
                true => writeln!(out, "{}", json!({ "directory": folder.dir.display().to_string() }))?,
                false => writeln!(out, "log folder {}", folder.dir.display())?,
            }
        }
        match args.log.json {
            true => writeln!(out, "{}", to_json(record)),
            false => writeln!(out, "{record}"),
        }
    };
    let dumped = tools::dump(folder.disk.as_ref(), &options, &mut show, &mut |progress| bar.show(progress));
    drop(bar);
    let written = dumped.and_then(|findings| Ok((findings, out.flush()?)));
    match written {
        Ok((findings, ())) => folder.result(findings),
        Err(LogError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(folder.error(error)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A record as a JSON object. Its member `record` is the kind.
fn to_json(record: &Record) -> Value {
    match record {
        Record::File(file) => json!({
            "record": "file", "name": file.name, "bytes": file.bytes, "previous": file.previous,
            "first_lsn": file.first_lsn.map(|lsn| lsn.0), "reused": file.reused, "older": file.older,
        }),
        Record::Group(group) => json!({
            "record": "commit_group", "offset": group.offset, "bytes": group.bytes, "lsn": group.lsn.0,
            "synced": group.synced.0, "batches": group.batches, "blocks": group.blocks,
        }),
        Record::Change(change) => change_to_json(change),
        Record::Entry(entry) => json!({
            "record": "entry", "group": entry.group.0, "index": entry.index, "bytes": entry.bytes,
            "prefix": hex(&entry.prefix),
        }),
        Record::Seal(seal) => json!({
            "record": "seal", "offset": seal.offset, "stored": seal.stored, "raw": seal.raw, "groups": seal.groups,
            "last_lsn": seal.last_lsn.0,
        }),
        Record::Damage(finding) => json!({
            "record": "damage", "file": finding.file, "offset": finding.offset, "what": finding.what,
            "groups": group_numbers(&finding.groups),
        }),
    }
}

fn change_to_json(change: &Change) -> Value {
    match change {
        Change::Append { group, first, count } => {
            json!({ "record": "append", "group": group.0, "first": first, "count": count })
        }
        Change::Rewrite { group, floor, last, first, count } => json!({
            "record": "rewrite", "group": group.0, "floor": floor, "last": last, "first": first, "count": count,
        }),
        Change::Put { group, key, value } => {
            json!({ "record": "put", "group": group.0, "key": hex(key), "value": hex(value) })
        }
        Change::Delete { group, key } => json!({ "record": "delete", "group": group.0, "key": hex(key) }),
        Change::Compact { group, first_kept } => {
            json!({ "record": "compact", "group": group.0, "first_kept": first_kept })
        }
        Change::Remove { group } => json!({ "record": "remove", "group": group.0 }),
        Change::Drop { file } => json!({ "record": "drop", "file": file }),
    }
}
