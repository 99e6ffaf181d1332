//! `cortado log`: what it prints, how it ends, and that only `repair` writes, and only where it is told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogOptions};
use serde_json::Value;

use crate::command_line::refusal;
use crate::process::{contents, cortado, run};

/// Bytes that depend on group and index alone, and hardly compress.
fn entry(group: u64, index: u64) -> Bytes {
    let mut state = (group << 32) + index;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(2700).collect()
}

/// The data directory of a node, as far as its log goes: three files, ten entries of group 1 and of one more group in each.
fn node(dir: &Path) -> PathBuf {
    let data = dir.join("node");
    let options = LogOptions {
        file_bytes: 64 << 10,
        align_bytes: 512,
        prefill_bytes: 0,
        spare_files: 0,
        ..LogOptions::default()
    };
    let (engine, mut writer, _) = LogEngine::open_driven(RealDisk::open(data.join("log")).unwrap(), options).unwrap();
    for number in 0..3 {
        let mut batch = LogBatch::new();
        let append = |batch: &mut LogBatch, group: u64, first: u64| {
            batch.append(GroupId(group), first, (first..first + 10).map(|index| entry(group, index)).collect());
        };
        append(&mut batch, 1, number * 10 + 1);
        append(&mut batch, 11 + number, 1);
        batch.put(GroupId(11 + number), b"h", b"hard state");
        engine.write(batch, Durability::Synced).unwrap();
    }
    writer.finish();
    assert_eq!(fs::read_dir(data.join("log")).unwrap().count(), 4, "three files and the lock");
    data
}

fn file(data: &Path, seq: u64) -> PathBuf {
    data.join("log").join(format!("{seq:016}.log"))
}

fn flip(path: &Path, at: usize) {
    let mut content = fs::read(path).unwrap();
    content[at] ^= 1;
    fs::write(path, content).unwrap();
}

fn log(args: &[&str], dir: &Path) -> Output {
    run(cortado().arg("log").args(args).arg(dir))
}

/// What a command printed that found nothing wrong.
fn well(args: &[&str], dir: &Path) -> String {
    let out = log(args, dir);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.is_empty(), "log {args:?}: {}\n{said}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

/// What a command printed that found something wrong, and the one line that it said.
fn ill(args: &[&str], dir: &Path) -> (String, String) {
    let out = log(args, dir);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "log {args:?}:\n{said}");
    assert_eq!(said.lines().count(), 1, "log {args:?}:\n{said}");
    (String::from_utf8(out.stdout).unwrap(), said.trim_end().to_string())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

#[test]
fn a_sound_log() {
    let dir = tempfile::tempdir().unwrap();
    let data = node(dir.path());
    let folder = data.join("log");
    let before = contents(dir.path());
    let said = well(&["check"], &data);
    assert!(said.starts_with(&format!("log folder {}\n", folder.display())), "{said}");
    assert!(said.ends_with("; 4 groups, 60 entries\nsound\n"), "{said}");
    assert_eq!(well(&["check"], &folder), said, "the log folder will do too");
    let page = json(&well(&["check", "--json"], &data));
    assert_eq!((page["sound"].as_bool(), page["files"].as_array().unwrap().len()), (Some(true), 3));
    assert_eq!(page["directory"], folder.display().to_string());

    let said = well(&["stats"], &data);
    assert!(said.contains("4 groups, 60 entries; "), "{said}");
    assert_eq!(said.lines().filter(|line| line.ends_with("  sealed")).count(), 2, "{said}");
    assert!(well(&["stats", "--top", "1"], &data).contains("and 3 groups more"));
    let page = json(&well(&["stats", "--json"], &data));
    let group = &page["groups"][0];
    assert_eq!((group["id"].as_u64(), group["first"].as_u64(), group["last"].as_u64()), (Some(1), Some(1), Some(30)));

    let said = well(&["dump", "--group", "12", "--entries"], &data);
    let hex: String = entry(12, 7).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    assert!(said.contains(&format!("12/7: bytes 2700, {hex}\n")), "{said}");
    assert!(said.contains("put group 12: h = 68617264207374617465\n"), "{said}");
    assert!(!said.contains("group 13"), "{said}");
    let said = well(&["dump", "--json"], &data);
    let kinds: Vec<String> =
        said.lines().skip(1).map(|line| json(line)["record"].as_str().unwrap().to_string()).collect();
    for kind in ["file", "commit_group", "append", "put", "seal"] {
        assert!(kinds.iter().any(|known| known == kind), "{kinds:?}");
    }
    assert_eq!(contents(dir.path()), before, "nothing is changed");
}

#[test]
fn a_damaged_log() {
    let dir = tempfile::tempdir().unwrap();
    let data = node(dir.path());
    // A block, and another file's header.
    flip(&file(&data, 1), 20_000);
    flip(&file(&data, 2), 40);
    let before = contents(dir.path());
    let (printed, said) = ill(&["check"], &data);
    assert_eq!(said, format!("cortado: 2 finding(s) in {}", data.join("log").display()));
    assert!(
        printed.contains("block fails its checksum") && printed.contains("file header fails its checksum"),
        "{printed}"
    );
    let page = json(&ill(&["check", "--json"], &data).0);
    assert_eq!(page["sound"].as_bool(), Some(false));
    assert_eq!(page["findings"][0]["groups"], serde_json::json!([1]), "the one with entries in the block");
    let (printed, _) = ill(&["stats"], &data);
    assert!(printed.contains("! 0000000000000002.log at 0: file header fails its checksum"), "{printed}");
    assert!(printed.contains("! 0000000000000001.log at "), "the block too: {printed}");
    let (printed, said) = ill(&["dump", "--entries", "--prefix", "0"], &data);
    assert_eq!(said, format!("cortado: 2 finding(s) in {}", data.join("log").display()));
    assert!(printed.contains(": cannot be read\n") && printed.contains("\n! 0000000000000002.log at 0: "), "{printed}");
    assert!(printed.contains(": block fails its checksum (group 1)\n"), "{printed}");
    let (without, _) = ill(&["dump"], &data);
    assert!(without.contains(": block fails its checksum (group 1)\n"), "whether entries are shown or not: {without}");
    let (json, _) = ill(&["dump", "--json"], &data);
    assert_eq!(json.lines().filter(|line| line.contains("\"record\":\"damage\"")).count(), 2, "{json}");
    let (of_one, said) = ill(&["dump", "--group", "12"], &data);
    assert!(
        said.starts_with("cortado: 1 finding(s)") && !of_one.contains("block fails"),
        "known to be another's: {of_one}"
    );
    assert!(!well(&["dump", "--group", "13"], &data).contains('!'), "none of it is known to concern group 13");
    assert_eq!(contents(dir.path()), before, "nothing is changed");
}

#[test]
fn a_repaired_log() {
    let dir = tempfile::tempdir().unwrap();
    let data = node(dir.path());
    fs::remove_file(file(&data, 2)).unwrap();
    let before = contents(&data);
    let to = dir.path().join("new/log");
    let repair = |more: &[&str]| {
        let mut command = cortado();
        command.args(["log", "repair"]).arg(&data).arg("--to").arg(&to).args(more);
        command
    };
    let out = run(&mut repair(&[]));
    let (printed, said) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.starts_with(&format!("cortado: {} opens again, but 2 Raft group(s) lost", to.display())), "{said}");
    assert!(printed.contains("! 0000000000000002.log: file is missing"), "{printed}");
    assert!(printed.contains("30 entries of 81000 bytes; 2 of 4 groups whole\n"), "{printed}");
    assert!(printed.contains("\n1      21 to 30  1 to 20  1 to 10   0"), "{printed}");
    assert!(well(&["check"], &to).ends_with("3 groups, 30 entries\nsound\n"));
    assert_eq!(contents(&data), before, "the damaged log is not changed");

    assert!(refusal(&mut repair(&[])).contains("is not empty, it has 0000000000000001.log"));
    fs::remove_dir_all(&to).unwrap();
    let out = run(&mut repair(&["--json", "--keep-doubtful"]));
    let page = json(&String::from_utf8(out.stdout).unwrap());
    assert_eq!(page["losses"][0]["concerns"], serde_json::json!([1, 12]));
    assert_eq!(page["groups"][0]["doubtful"], serde_json::json!([[1, 10]]));

    let mut same = cortado();
    same.args(["log", "repair"]).arg(&data).arg("--to").arg(data.join("log"));
    assert!(refusal(&mut same).contains("another directory"));

    // A node's data directory, or anything else that has something in it, is no place for a log.
    for name in ["IDENT", "notes"] {
        let taken = dir.path().join(name);
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join(name), "mine").unwrap();
        let before = contents(&taken);
        for source in [&data, &taken] {
            let said = refusal(cortado().args(["log", "repair"]).arg(source).arg("--to").arg(&taken));
            assert!(said.contains(&format!("is not empty, it has {name}")) || source == &taken, "{said}");
            assert_eq!(contents(&taken), before);
        }
    }
    let said = refusal(cortado().args(["log", "repair"]).arg(&data).arg("--to").arg(&data));
    assert!(said.contains("is not empty, it has log"), "{said}");
    assert_eq!(contents(&data), before);

    // What is sound is copied, and nothing is lost.
    let (copy, sound) = (dir.path().join("copy"), tempfile::tempdir().unwrap());
    let out = run(cortado().args(["log", "repair"]).arg(node(sound.path())).arg("--to").arg(&copy));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(well(&["check"], &copy).ends_with("4 groups, 60 entries\nsound\n"));
}

#[test]
fn logs_that_cannot_be_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let said = refusal(cortado().args(["log", "check"]));
    assert!(said.contains("DIR"), "{said}");
    let said = refusal(cortado().args(["log", "repair"]).arg(dir.path()));
    assert!(said.contains("--to"), "{said}");
    let said = refusal(cortado().args(["log", "dump", "d", "--group", "one"]));
    assert!(said.contains("--group"), "{said}");
    let nowhere = dir.path().join("nowhere");
    let new = dir.path().join("new");
    for command in ["check", "dump", "stats", "repair"] {
        let with = |dir: &Path| {
            let mut line = cortado();
            line.args(["log", command]).arg(dir);
            if command == "repair" {
                line.arg("--to").arg(&new);
            }
            line
        };
        let said = refusal(&mut with(&nowhere));
        assert!(said.contains("nowhere"), "{said}");
        let said = refusal(&mut with(dir.path()));
        assert!(said.contains("it has no log files"), "{command}: {said}");
    }
    assert_eq!(contents(dir.path()), [], "nothing was created");
    let data = node(dir.path());
    let held = RealDisk::open(data.join("log")).unwrap();
    for command in ["check", "dump", "stats", "repair"] {
        let mut line = cortado();
        line.args(["log", command]).arg(&data);
        if command == "repair" {
            line.arg("--to").arg(&new);
        }
        let said = refusal(&mut line);
        assert!(said.contains("in use by another process"), "{command}: {said}");
    }
    assert!(!new.exists(), "nothing was created");
    drop(held);
}
