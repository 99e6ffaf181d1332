//! What is typed wrongly is told in one line on stderr, ends with a non-zero exit code, and changes nothing on disk.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::process::{contents, cortado, free_port, free_ports, run};

/// Whether a line is a log line: a moment, a level, where from, and what.
fn is_log_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_moment = |word: &str| word.len() > 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z');
    words.next().is_some_and(is_moment)
        && words.next().is_some_and(|level| ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"].contains(&level))
}

/// The one line that a refused command says. A node may have logged what it did until then, before it.
pub fn refusal(command: &mut Command) -> String {
    let out = run(command);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(matches!(out.status.code(), Some(1 | 2)), "{command:?} must exit with 1 or 2, not {}:\n{said}", out.status);
    assert!(out.stdout.is_empty(), "{command:?} must say why on stderr, not: {}", String::from_utf8_lossy(&out.stdout));
    let mut lines: Vec<&str> = said.lines().skip_while(|line| is_log_line(line)).collect();
    let line = lines.pop().unwrap_or_default();
    assert!(line.starts_with("cortado: ") || line.starts_with("error: "), "{command:?} must say why, not:\n{said}");
    assert!(lines.is_empty(), "{command:?} must say one line, not:\n{said}");
    line.to_string()
}

/// The command that starts a node of a cluster.
pub fn start(dir: &Path, listen: u16, pg: u16, join: &str) -> Command {
    let mut command = cortado();
    command.arg("start").arg("--data").arg(dir).args([
        "--listen",
        &format!("127.0.0.1:{listen}"),
        "--pg",
        &format!("127.0.0.1:{pg}"),
        "--join",
        join,
    ]);
    command
}

#[test]
fn flags() {
    assert!(refusal(cortado().args(["demo", "--colour"])).contains("--colour"));
    assert!(refusal(cortado().args(["restart"])).contains("restart"));
    let said = refusal(cortado().args(["start"]));
    assert!(["required", "--data", "--listen", "--join"].iter().all(|word| said.contains(word)), "{said}");
    assert!(refusal(cortado().args(["demo", "--nodes", "0"])).contains("--nodes"));
    assert!(refusal(cortado().args(["status", "--log-format", "xml"])).contains("xml"));
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for (listen, pg) in [("nonsense", "127.0.0.1:1"), ("127.0.0.1:99999", "127.0.0.1:1"), ("127.0.0.1:1", "10.0.0.1")] {
        let said = refusal(cortado().arg("start").arg("--data").arg(&data).args([
            "--join",
            "127.0.0.1:1",
            "--listen",
            listen,
            "--pg",
            pg,
        ]));
        assert!(said.contains("invalid value"), "{said}");
    }
    for join in ["127.0.0.1", "127.0.0.1:1,:2", "127.0.0.1:1,127.0.0.1:1", ""] {
        assert!(refusal(&mut start(&data, 4000, 4001, join)).contains("--join"), "{join:?}");
    }
    for id in ["beef", "0", "00000000000000fg", ""] {
        assert!(refusal(start(&data, 4000, 4001, "127.0.0.1:1").args(["--cluster-id", id])).contains("--cluster-id"));
    }
    let said = refusal(start(&data, 4000, 4001, "127.0.0.1:1").args(["--locality", "region=eu,region=us"]));
    assert!(said.contains("--locality"), "{said}");
    let said = refusal(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--pg", "0.0.0.0:0"]));
    assert!(said.contains("--insecure"), "{said}");
    assert!(refusal(&mut start(&data, 4000, 4000, "127.0.0.1:1")).contains("both"));
    let said = refusal(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--log", "=="]));
    assert!(said.contains("--log"), "{said}");
    let said = refusal(cortado().arg("start-single-node").arg("--data").arg(&data).env("RUST_LOG", "=="));
    assert!(said.contains("RUST_LOG"), "{said}");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn a_taken_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let [a, b] = [free_port(), free_port()];
    for (listen, pg, http) in [(port, a, b), (a, port, b), (a, b, port)] {
        let mut command = start(&data, listen, pg, "127.0.0.1:1");
        let said = refusal(command.args(["--http", &format!("127.0.0.1:{http}")]));
        assert!(said.contains(&port.to_string()) && said.contains("in use"), "{said}");
    }
    // Each of the ports that a demo takes.
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    for (node, up) in [(0, 0), (1, 0), (0, 1000), (1, 2000)] {
        let pg = free_ports(2, &[1000, 2000]);
        let _taken = TcpListener::bind(("127.0.0.1", pg + node + up)).unwrap();
        let mut command = cortado();
        command.args(["demo", "--nodes", "2", "--pg-port", &pg.to_string()]).env("TMPDIR", &temporary);
        let said = refusal(&mut command);
        assert!(said.contains(&(pg + node + up).to_string()) && said.contains("in use"), "{said}");
    }
    assert_eq!(contents(&temporary), [], "nothing was created");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn nobody_there() {
    let host = format!("127.0.0.1:{}", free_port());
    assert!(refusal(cortado().args(["status", "--host", &host])).contains("cannot reach"));
    assert!(refusal(cortado().args(["init", "--host", &host])).contains("cannot reach"));
}

#[test]
fn directories_that_are_not_ours() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let newer = dir.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("IDENT"), "{\"format\": 1000}").unwrap();
    let before = contents(dir.path());
    for (data, word) in [(&foreign, "not a Cortado data directory"), (&newer, "format 1000")] {
        let said = refusal(&mut start(data, free_port(), free_port(), "127.0.0.1:1"));
        assert!(said.contains(word), "{said}");
    }
    let file = dir.path().join("newer/IDENT");
    refusal(&mut start(&file, free_port(), free_port(), "127.0.0.1:1"));
    assert_eq!(contents(dir.path()), before, "a refusal changes nothing");
}

#[test]
fn log_lines_are_told_from_complaints() {
    assert!(is_log_line("2026-03-01T12:00:00.123456Z  INFO cortado::node: starting cluster=1"));
    for line in
        ["cortado: data directory /x is in use", "error: unexpected argument", "", "    --data <DIR>", "2026 INFO x"]
    {
        assert!(!is_log_line(line), "{line}");
    }
}
