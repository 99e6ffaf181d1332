//! `cortado log stats`: prints statistics of a log by file and by group.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::Path;

use engine::log::tools::{self, CountedGroup, StatsReport};
use serde::Serialize;

use super::report::{LogToolError, inspect, print_report};
use crate::cli::StatsArgs;
use crate::console::Table;

/// Collects and prints the statistics. Fails if the log is damaged.
pub(super) fn run(args: &StatsArgs) -> Result<(), LogToolError> {
    let (folder, stats) = inspect(&args.log.dir, "counting", tools::stats)?;
    print_report(args.log.json, || Page::new(&folder.dir, &stats), || to_text(&folder.dir, &stats, args.top))?;
    folder.result(stats.damage.len())
}

#[derive(Serialize)]
struct Page {
    directory: String,
    bytes: u64,
    live_bytes: u64,
    entries: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    compression: Option<f64>,
    files: Vec<File>,
    groups: Vec<Group>,
    damage: Vec<String>,
}

#[derive(Serialize)]
struct File {
    name: String,
    bytes: u64,
    live_bytes: u64,
    commit_groups: u64,
    groups: u64,
    sealed: bool,
}

#[derive(Serialize)]
struct Group {
    id: u64,
    first: u64,
    last: u64,
    entries: u64,
    bytes: u64,
    keys: u64,
}

impl Page {
    fn new(dir: &Path, stats: &StatsReport) -> Page {
        let file = |file: &tools::CountedFile| File {
            name: file.name.clone(),
            bytes: file.bytes,
            live_bytes: file.live_bytes,
            commit_groups: file.commit_groups,
            groups: file.groups,
            sealed: file.sealed,
        };
        let group = |group: &CountedGroup| Group {
            id: group.group.0,
            first: group.first,
            last: group.last,
            entries: group.entries,
            bytes: group.bytes,
            keys: group.keys,
        };
        Page {
            directory: dir.display().to_string(),
            bytes: stats.bytes,
            live_bytes: stats.live_bytes,
            entries: stats.entries,
            raw_bytes: stats.raw_bytes,
            stored_bytes: stats.stored_bytes,
            compression: stats.compression(),
            files: stats.files.iter().map(file).collect(),
            groups: stats.groups.iter().map(group).collect(),
            damage: stats.damage.clone(),
        }
    }
}

fn to_text(dir: &Path, stats: &StatsReport, top: usize) -> String {
    let mut files = Table::new(&["file", "bytes", "live bytes", "commit groups", "groups", "state"]);
    for file in &stats.files {
        files.row([
            file.name.clone(),
            file.bytes.to_string(),
            file.live_bytes.to_string(),
            file.commit_groups.to_string(),
            file.groups.to_string(),
            if file.sealed { "sealed" } else { "active" }.to_string(),
        ]);
    }
    let mut shown: Vec<&CountedGroup> = stats.groups.iter().collect();
    if top > 0 {
        shown.sort_by_key(|group| (Reverse(group.bytes), group.group));
        shown.truncate(top);
    }
    let mut groups = Table::new(&["group", "entries", "first", "last", "bytes", "keys"]);
    for group in &shown {
        let CountedGroup { group, first, last, entries, bytes, keys } = group;
        groups.row([group.0, *entries, *first, *last, *bytes, *keys].map(|number| number.to_string()));
    }
    let mut out = format!("log folder {}\n\n{}\n{}", dir.display(), files.render(), groups.render());
    // Writing to a String cannot fail, here and below.
    if shown.len() < stats.groups.len() {
        let _ = writeln!(out, "and {} groups more", stats.groups.len() - shown.len());
    }
    let StatsReport { bytes, live_bytes, entries, raw_bytes, stored_bytes, .. } = stats;
    let _ = writeln!(
        out,
        "\n{} groups, {entries} entries; {bytes} bytes, about {live_bytes} of them live",
        stats.groups.len()
    );
    if let Some(compression) = stats.compression() {
        let _ = writeln!(out, "{raw_bytes} bytes stored as {stored_bytes}, {compression:.2} to 1");
    }
    for damage in &stats.damage {
        let _ = writeln!(out, "! {damage}");
    }
    out
}

#[cfg(test)]
mod tests {
    use engine::log::GroupId;

    use super::*;

    #[test]
    fn the_largest_groups_are_listed_first() {
        let group =
            |id: u64, bytes: u64| CountedGroup { group: GroupId(id), first: 1, last: 4, entries: 4, bytes, keys: 1 };
        let file = tools::CountedFile {
            name: "0000000000000001.log".into(),
            bytes: 9000,
            live_bytes: 700,
            commit_groups: 2,
            groups: 3,
            sealed: false,
        };
        let stats = StatsReport {
            files: vec![file],
            groups: vec![group(1, 100), group(2, 300), group(3, 300)],
            bytes: 9000,
            live_bytes: 700,
            entries: 12,
            raw_bytes: 1500,
            stored_bytes: 1000,
            damage: vec!["something".into()],
        };
        assert_eq!(
            to_text(Path::new("d"), &stats, 2),
            "log folder d\n\n\
             file                  bytes  live bytes  commit groups  groups  state\n\
             0000000000000001.log  9000   700         2              3       active\n\n\
             group  entries  first  last  bytes  keys\n\
             2      4        1      4     300    1\n\
             3      4        1      4     300    1\n\
             and 1 groups more\n\n\
             3 groups, 12 entries; 9000 bytes, about 700 of them live\n\
             1500 bytes stored as 1000, 1.50 to 1\n\
             ! something\n"
        );
        assert!(to_text(Path::new("d"), &stats, 0).contains("\n1      4"));
    }
}
