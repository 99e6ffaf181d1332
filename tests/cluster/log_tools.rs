//! `cortado log`: its output, its exit codes, and that only `repair` writes, and only to `--to`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogOptions};
use serde_json::Value;

use crate::command_line::error_line;
use crate::process::{contents, cortado, run, wait_for};

/// Bytes that depend only on group and index, and hardly compress.
fn entry(group: u64, index: u64) -> Bytes {
    let mut state = (group << 32) + index;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(2700).collect()
}

/// A data directory with only a log: three files, each with ten entries of group 1 and ten of another group.
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
    drop((engine, writer));
    drop(locked(&data));
    assert_eq!(fs::read_dir(data.join("log")).unwrap().count(), 4, "three files and the lock");
    data
}

/// Takes the lock of the log of `data`. A process that another test is starting meanwhile has every open file of this
/// one, and so the lock of a log that was just closed, until it runs its own program.
fn locked(data: &Path) -> Arc<RealDisk> {
    let mut disk = None;
    wait_for("the lock of the log", || {
        disk = RealDisk::open(data.join("log")).ok();
        disk.is_some()
    });
    disk.unwrap()
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

/// The output of a command that succeeds and finds no damage.
fn stdout_of(args: &[&str], dir: &Path) -> String {
    let out = log(args, dir);
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && message.is_empty(), "log {args:?}: {}\n{message}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

/// The output and the one error line of a command that finds damage.
fn fails_with_damage(args: &[&str], dir: &Path) -> (String, String) {
    let out = log(args, dir);
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "log {args:?}:\n{message}");
    assert_eq!(message.lines().count(), 1, "log {args:?}:\n{message}");
    (String::from_utf8(out.stdout).unwrap(), message.trim_end().to_string())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

#[test]
fn an_intact_log_is_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let data = node(dir.path());
    let folder = data.join("log");
    let before = contents(dir.path());
    let stdout = stdout_of(&["check"], &data);
    assert!(stdout.starts_with(&format!("log folder {}\n", folder.display())), "{stdout}");
    assert!(stdout.ends_with("; 4 groups, 60 entries\nsound\n"), "{stdout}");
    assert_eq!(stdout_of(&["check"], &folder), stdout, "the log folder will do too");
    let page = json(&stdout_of(&["check", "--json"], &data));
    assert_eq!((page["sound"].as_bool(), page["files"].as_array().unwrap().len()), (Some(true), 3));
    assert_eq!(page["directory"], folder.display().to_string());

    let stdout = stdout_of(&["stats"], &data);
    assert!(stdout.contains("4 groups, 60 entries; "), "{stdout}");
    assert_eq!(stdout.lines().filter(|line| line.ends_with("  sealed")).count(), 2, "{stdout}");
    assert!(stdout_of(&["stats", "--top", "1"], &data).contains("and 3 groups more"));
    let page = json(&stdout_of(&["stats", "--json"], &data));
    let group = &page["groups"][0];
    assert_eq!((group["id"].as_u64(), group["first"].as_u64(), group["last"].as_u64()), (Some(1), Some(1), Some(30)));

    let stdout = stdout_of(&["dump", "--group", "12", "--entries"], &data);
    let hex: String = entry(12, 7).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    assert!(stdout.contains(&format!("12/7: bytes 2700, {hex}\n")), "{stdout}");
    assert!(stdout.contains("put group 12: h = 68617264207374617465\n"), "{stdout}");
    assert!(!stdout.contains("group 13"), "{stdout}");
    let stdout = stdout_of(&["dump", "--json"], &data);
    let kinds: Vec<String> =
        stdout.lines().skip(1).map(|line| json(line)["record"].as_str().unwrap().to_string()).collect();
    for kind in ["file", "commit_group", "append", "put", "seal"] {
        assert!(kinds.iter().any(|known| known == kind), "{kinds:?}");
    }
    assert_eq!(contents(dir.path()), before, "nothing is changed");
}

#[test]
fn a_damaged_log_is_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let data = node(dir.path());
    // A block, and the header of another file.
    flip(&file(&data, 1), 20_000);
    flip(&file(&data, 2), 40);
    let before = contents(dir.path());
    let (stdout, message) = fails_with_damage(&["check"], &data);
    assert_eq!(message, format!("cortado: 2 finding(s) in {}", data.join("log").display()));
    assert!(
        stdout.contains("block fails its checksum") && stdout.contains("file header fails its checksum"),
        "{stdout}"
    );
    let page = json(&fails_with_damage(&["check", "--json"], &data).0);
    assert_eq!(page["sound"].as_bool(), Some(false));
    assert_eq!(page["findings"][0]["groups"], serde_json::json!([1]), "the one with entries in the block");
    let (stdout, _) = fails_with_damage(&["stats"], &data);
    assert!(stdout.contains("! 0000000000000002.log at 0: file header fails its checksum"), "{stdout}");
    assert!(stdout.contains("! 0000000000000001.log at "), "the block too: {stdout}");
    let (stdout, message) = fails_with_damage(&["dump", "--entries", "--prefix", "0"], &data);
    assert_eq!(message, format!("cortado: 2 finding(s) in {}", data.join("log").display()));
    assert!(stdout.contains(": cannot be read\n") && stdout.contains("\n! 0000000000000002.log at 0: "), "{stdout}");
    assert!(stdout.contains(": block fails its checksum (group 1)\n"), "{stdout}");
    let (without, _) = fails_with_damage(&["dump"], &data);
    assert!(without.contains(": block fails its checksum (group 1)\n"), "whether entries are shown or not: {without}");
    let (json, _) = fails_with_damage(&["dump", "--json"], &data);
    assert_eq!(json.lines().filter(|line| line.contains("\"record\":\"damage\"")).count(), 2, "{json}");
    let (of_one, message) = fails_with_damage(&["dump", "--group", "12"], &data);
    assert!(
        message.starts_with("cortado: 1 finding(s)") && !of_one.contains("block fails"),
        "known to be another's: {of_one}"
    );
    assert!(!stdout_of(&["dump", "--group", "13"], &data).contains('!'), "none of it is known to concern group 13");
    assert_eq!(contents(dir.path()), before, "nothing is changed");
}

#[test]
fn a_damaged_log_is_repaired() {
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
    let (stdout, message) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(
        message.starts_with(&format!("cortado: {} opens again, but 2 Raft group(s) lost", to.display())),
        "{message}"
    );
    assert!(stdout.contains("! 0000000000000002.log: file is missing"), "{stdout}");
    assert!(stdout.contains("30 entries of 81000 bytes; 2 of 4 groups whole\n"), "{stdout}");
    assert!(stdout.contains("\n1      21 to 30  1 to 20  1 to 10   0"), "{stdout}");
    assert!(stdout_of(&["check"], &to).ends_with("3 groups, 30 entries\nsound\n"));
    assert_eq!(contents(&data), before, "the damaged log is not changed");

    assert!(error_line(&mut repair(&[])).contains("is not empty, it has 0000000000000001.log"));
    fs::remove_dir_all(&to).unwrap();
    let out = run(&mut repair(&["--json", "--keep-doubtful"]));
    let page = json(&String::from_utf8(out.stdout).unwrap());
    assert_eq!(page["losses"][0]["concerns"], serde_json::json!([1, 12]));
    assert_eq!(page["groups"][0]["doubtful"], serde_json::json!([[1, 10]]));

    let mut same = cortado();
    same.args(["log", "repair"]).arg(&data).arg("--to").arg(data.join("log"));
    assert!(error_line(&mut same).contains("another directory"));

    // A directory that is not empty, such as a node's data directory, is rejected as a target.
    for name in ["IDENT", "notes"] {
        let taken = dir.path().join(name);
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join(name), "mine").unwrap();
        let before = contents(&taken);
        for source in [&data, &taken] {
            let message = error_line(cortado().args(["log", "repair"]).arg(source).arg("--to").arg(&taken));
            assert!(message.contains(&format!("is not empty, it has {name}")) || source == &taken, "{message}");
            assert_eq!(contents(&taken), before);
        }
    }
    let message = error_line(cortado().args(["log", "repair"]).arg(&data).arg("--to").arg(&data));
    assert!(message.contains("is not empty, it has log"), "{message}");
    assert_eq!(contents(&data), before);

    // An intact log is copied as a whole.
    let (copy, sound) = (dir.path().join("copy"), tempfile::tempdir().unwrap());
    let out = run(cortado().args(["log", "repair"]).arg(node(sound.path())).arg("--to").arg(&copy));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(stdout_of(&["check"], &copy).ends_with("4 groups, 60 entries\nsound\n"));
}

#[test]
fn unreadable_logs_fail() {
    let dir = tempfile::tempdir().unwrap();
    let message = error_line(cortado().args(["log", "check"]));
    assert!(message.contains("DIR"), "{message}");
    let message = error_line(cortado().args(["log", "repair"]).arg(dir.path()));
    assert!(message.contains("--to"), "{message}");
    let message = error_line(cortado().args(["log", "dump", "d", "--group", "one"]));
    assert!(message.contains("--group"), "{message}");
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
        let message = error_line(&mut with(&nowhere));
        assert!(message.contains("nowhere"), "{message}");
        let message = error_line(&mut with(dir.path()));
        assert!(message.contains("it has no log files"), "{command}: {message}");
    }
    assert_eq!(contents(dir.path()), [], "nothing was created");
    let data = node(dir.path());
    let held = locked(&data);
    for command in ["check", "dump", "stats", "repair"] {
        let mut line = cortado();
        line.args(["log", command]).arg(&data);
        if command == "repair" {
            line.arg("--to").arg(&new);
        }
        let message = error_line(&mut line);
        assert!(message.contains("in use by another process"), "{command}: {message}");
    }
    assert!(!new.exists(), "nothing was created");
    drop(held);
}
