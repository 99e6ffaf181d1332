//! `cortado log check`: verifies every byte of a log and prints all damage.

use std::fmt::Write as _;
use std::path::Path;

use engine::log::tools::{self, CheckReport};
use serde::Serialize;

use super::report::{CutFile, LogToolError, group_numbers, inspect, print_report, short_list};
use crate::cli::LogDirArgs;
use crate::console::Table;

/// Checks the log and prints the report. Fails if the log is damaged.
pub(super) fn run(args: &LogDirArgs) -> Result<(), LogToolError> {
    let (folder, report) = inspect(&args.dir, "checking", tools::check)?;
    print_report(args.json, || Page::new(&folder.dir, &report), || to_text(&folder.dir, &report))?;
    folder.result(report.findings.len())
}

#[derive(Serialize)]
struct Page {
    directory: String,
    sound: bool,
    files: Vec<File>,
    findings: Vec<Finding>,
    torn_tail: Option<Tail>,
    cut_file: Option<CutFile>,
    surplus_files: Vec<String>,
    bytes: u64,
    commit_groups: u64,
    blocks: u64,
    groups: usize,
    entries: u64,
}

#[derive(Serialize)]
struct File {
    name: String,
    bytes: u64,
    commit_groups: u64,
    sealed: bool,
}

#[derive(Serialize)]
struct Finding {
    file: String,
    offset: u64,
    what: String,
    groups: Vec<u64>,
}

#[derive(Serialize)]
struct Tail {
    file: String,
    offset: u64,
    bytes: u64,
}

impl Page {
    fn new(dir: &Path, report: &CheckReport) -> Page {
        let file = |file: &tools::CheckedFile| File {
            name: file.name.clone(),
            bytes: file.bytes,
            commit_groups: file.commit_groups,
            sealed: file.sealed,
        };
        let finding = |finding: &tools::Finding| Finding {
            file: finding.file.clone(),
            offset: finding.offset,
            what: finding.what.clone(),
            groups: group_numbers(&finding.groups),
        };
        let tail = |tail: &tools::TornTail| Tail { file: tail.file.clone(), offset: tail.offset, bytes: tail.bytes };
        Page {
            directory: dir.display().to_string(),
            sound: report.is_sound(),
            files: report.files.iter().map(file).collect(),
            findings: report.findings.iter().map(finding).collect(),
            torn_tail: report.torn_tail.as_ref().map(tail),
            cut_file: report.cut_file.as_ref().map(CutFile::new),
            surplus_files: report.surplus.clone(),
            bytes: report.bytes,
            commit_groups: report.commit_groups,
            blocks: report.blocks,
            groups: report.groups,
            entries: report.entries,
        }
    }
}

fn to_text(dir: &Path, report: &CheckReport) -> String {
    let mut files = Table::new(&["file", "bytes", "commit groups", "sealed"]);
    for file in &report.files {
        let sealed = if file.sealed { "yes" } else { "no" };
        files.row([file.name.clone(), file.bytes.to_string(), file.commit_groups.to_string(), sealed.to_string()]);
    }
    let mut out = format!("log folder {}\n\n{}\n", dir.display(), files.render());
    let CheckReport { bytes, commit_groups, blocks, groups, entries, .. } = report;
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "{bytes} bytes, {commit_groups} commit groups, {blocks} blocks; {groups} groups, {entries} entries"
    );
    if let Some(tail) = &report.torn_tail {
        let _ = writeln!(
            out,
            "torn tail: {} bytes of {} from {} on were being written and are cut off at the next start; \
             that is no damage",
            tail.bytes, tail.file, tail.offset
        );
    }
    if let Some(cut) = &report.cut_file {
        let _ = writeln!(out, "{}", CutFile::new(cut));
    }
    if !report.surplus.is_empty() {
        let _ = writeln!(out, "not part of the log: {}", short_list(&report.surplus));
    }
    if report.is_sound() {
        out.push_str("sound\n");
        return out;
    }
    let mut findings = Table::new(&["file", "offset", "finding", "groups"]);
    for finding in &report.findings {
        let groups = short_list(&group_numbers(&finding.groups));
        findings.row([finding.file.clone(), finding.offset.to_string(), finding.what.clone(), groups]);
    }
    let _ = write!(out, "\n{}", findings.render());
    out
}

#[cfg(test)]
mod tests {
    use engine::log::GroupId;

    use super::*;

    #[test]
    fn reports_are_rendered_as_text() {
        let file =
            tools::CheckedFile { name: "0000000000000001.log".into(), bytes: 65536, commit_groups: 3, sealed: true };
        let sound = CheckReport {
            files: vec![file],
            bytes: 65536,
            commit_groups: 3,
            blocks: 4,
            groups: 2,
            entries: 9,
            ..CheckReport::default()
        };
        let head = "log folder d/log\n\n\
            file                  bytes  commit groups  sealed\n\
            0000000000000001.log  65536  3              yes\n\n\
            65536 bytes, 3 commit groups, 4 blocks; 2 groups, 9 entries\n";
        assert_eq!(to_text(Path::new("d/log"), &sound), format!("{head}sound\n"));
        let finding = tools::Finding {
            file: "0000000000000001.log".into(),
            offset: 4096,
            what: "block fails its checksum".into(),
            groups: vec![GroupId(1), GroupId(7)],
        };
        let damaged = CheckReport { findings: vec![finding], ..sound };
        let table = "\nfile                  offset  finding                   groups\n\
            0000000000000001.log  4096    block fails its checksum  1, 7\n";
        assert_eq!(to_text(Path::new("d/log"), &damaged), format!("{head}{table}"));
        let name = "0000000000000002.log".to_owned();
        let cut_file = Some(engine::log::CutFile { name, bytes: 5000, groups: vec![GroupId(4)] });
        let torn = CheckReport { cut_file, findings: Vec::new(), ..damaged };
        let line = "0000000000000002.log: 5000 bytes follow the torn tail and are cut off with it; groups 4\n";
        assert_eq!(to_text(Path::new("d/log"), &torn), format!("{head}{line}sound\n"));
    }
}
