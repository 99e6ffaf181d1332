//! Invalid flags and impossible starts: one line on stderr, a non-zero exit code, and no change on disk.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::process::{contents, cortado, free_port, free_ports, run};

/// Whether a line is a log line: a timestamp, a level, a target and a message.
fn is_log_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_timestamp =
        |word: &str| word.len() > 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z');
    words.next().is_some_and(is_timestamp)
        && words.next().is_some_and(|level| ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"].contains(&level))
}

/// Runs a command that fails, and returns its one error line. A node may print log lines before it.
pub fn error_line(command: &mut Command) -> String {
    let out = run(command);
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert!(
        matches!(out.status.code(), Some(1 | 2)),
        "{command:?} must exit with 1 or 2, not {}:\n{stderr}",
        out.status
    );
    assert!(out.stdout.is_empty(), "{command:?} must fail on stderr, not: {}", String::from_utf8_lossy(&out.stdout));
    let mut lines: Vec<&str> = stderr.lines().skip_while(|line| is_log_line(line)).collect();
    let line = lines.pop().unwrap_or_default();
    assert!(line.starts_with("cortado: ") || line.starts_with("error: "), "{command:?} must print an error:\n{stderr}");
    assert!(lines.is_empty(), "{command:?} must print one line, not:\n{stderr}");
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
fn invalid_flags_fail() {
    assert!(error_line(cortado().args(["demo", "--colour"])).contains("--colour"));
    assert!(error_line(cortado().args(["restart"])).contains("restart"));
    let message = error_line(cortado().args(["start"]));
    assert!(["required", "--data", "--listen", "--join"].iter().all(|word| message.contains(word)), "{message}");
    assert!(error_line(cortado().args(["demo", "--nodes", "0"])).contains("--nodes"));
    assert!(error_line(cortado().args(["status", "--log-format", "xml"])).contains("xml"));
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for (listen, pg) in [("nonsense", "127.0.0.1:1"), ("127.0.0.1:99999", "127.0.0.1:1"), ("127.0.0.1:1", "10.0.0.1")] {
        let message = error_line(cortado().arg("start").arg("--data").arg(&data).args([
            "--join",
            "127.0.0.1:1",
            "--listen",
            listen,
            "--pg",
            pg,
        ]));
        assert!(message.contains("invalid value"), "{message}");
    }
    for join in ["127.0.0.1", "127.0.0.1:1,:2", "127.0.0.1:1,127.0.0.1:1", ""] {
        assert!(error_line(&mut start(&data, 4000, 4001, join)).contains("--join"), "{join:?}");
    }
    for id in ["beef", "0", "00000000000000fg", ""] {
        assert!(
            error_line(start(&data, 4000, 4001, "127.0.0.1:1").args(["--cluster-id", id])).contains("--cluster-id")
        );
    }
    let message = error_line(start(&data, 4000, 4001, "127.0.0.1:1").args(["--locality", "region=eu,region=us"]));
    assert!(message.contains("--locality"), "{message}");
    let message = error_line(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--pg", "0.0.0.0:0"]));
    assert!(message.contains("--insecure"), "{message}");
    assert!(error_line(&mut start(&data, 4000, 4000, "127.0.0.1:1")).contains("both"));
    let message = error_line(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--log", "=="]));
    assert!(message.contains("--log"), "{message}");
    let message = error_line(cortado().arg("start-single-node").arg("--data").arg(&data).env("RUST_LOG", "=="));
    assert!(message.contains("RUST_LOG"), "{message}");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn invalid_regions_fail() {
    let demo = |flags: &str| error_line(cortado().arg("demo").args(flags.split_whitespace()));
    for (flags, why) in [
        ("--regions a,b,a", "names a twice"),
        ("--regions a,b", "2 region(s)"),
        ("--regions a,b,c,d,e,f,g,h,i,j", "10 region(s)"),
        ("--regions a,b,c/d", "\"c/d\" is no name"),
        ("--regions a,b,c --nodes 3", "cannot be used with"),
        ("--regions a,b,c --rtt 0", "1ms to 300ms"),
        ("--regions a,b,c --rtt 0ms", "1ms to 300ms"),
        ("--regions a,b,c --rtt 5ms,a-d=5ms", "no pair of the regions a, b, c"),
        ("--regions a,b,c --rtt a-b=5ms", "how far a is from c"),
        ("--regions a,b,c --rtt 5ms --bandwidth 297", "unknown unit"),
        ("--regions a,b,c --rtt 5ms --bandwidth 0Mbit", "1Mbit to 100Gbit"),
        ("--regions a,b,c --bandwidth 297Mbit", "--rtt"),
        ("--rtt 5ms", "--regions"),
    ] {
        let message = demo(flags);
        assert!(message.contains(why), "{flags}: {message}");
    }
    let message = error_line(start(Path::new("unused"), 4000, 4001, "127.0.0.1:1").args(["--connect-from", "here"]));
    assert!(message.contains("--connect-from"), "{message}");
}

#[test]
fn a_port_in_use_fails() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let [a, b] = [free_port(), free_port()];
    for (listen, pg, http) in [(port, a, b), (a, port, b), (a, b, port)] {
        let mut command = start(&data, listen, pg, "127.0.0.1:1");
        let message = error_line(command.args(["--http", &format!("127.0.0.1:{http}")]));
        assert!(message.contains(&port.to_string()) && message.contains("in use"), "{message}");
    }
    // Each of the ports of a demo.
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    for (node, up) in [(0, 0), (1, 0), (0, 1000), (1, 2000)] {
        let pg = free_ports(2, &[1000, 2000]);
        let _taken = TcpListener::bind(("127.0.0.1", pg + node + up)).unwrap();
        let mut command = cortado();
        command.args(["demo", "--nodes", "2", "--pg-port", &pg.to_string()]).env("TMPDIR", &temporary);
        let message = error_line(&mut command);
        assert!(message.contains(&(pg + node + up).to_string()) && message.contains("in use"), "{message}");
    }
    // The ports of the proxies too.
    for up in [1100 + 2, 1200] {
        let pg = free_ports(3, &[1000, 1100, 1200, 2000]);
        let _taken = TcpListener::bind(("127.0.0.1", pg + up)).unwrap();
        let mut command = cortado();
        command.args(["demo", "--regions", "a,b,c", "--rtt", "5ms", "--pg-port", &pg.to_string()]);
        let message = error_line(command.env("TMPDIR", &temporary));
        assert!(message.contains(&(pg + up).to_string()) && message.contains("in use"), "{message}");
    }
    assert_eq!(contents(&temporary), [], "nothing was created");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn an_unreachable_host_fails() {
    let host = format!("127.0.0.1:{}", free_port());
    assert!(error_line(cortado().args(["status", "--host", &host])).contains("cannot reach"));
    assert!(error_line(cortado().args(["init", "--host", &host])).contains("cannot reach"));
}

#[test]
fn foreign_data_directories_fail() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let newer = dir.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("IDENT"), "{\"format\": 1000}").unwrap();
    let before = contents(dir.path());
    for (data, word) in [(&foreign, "not a Cortado data directory"), (&newer, "format 1000")] {
        let message = error_line(&mut start(data, free_port(), free_port(), "127.0.0.1:1"));
        assert!(message.contains(word), "{message}");
    }
    let file = dir.path().join("newer/IDENT");
    error_line(&mut start(&file, free_port(), free_port(), "127.0.0.1:1"));
    assert_eq!(contents(dir.path()), before, "a failed start changes nothing");
}

#[test]
fn log_lines_are_distinguished_from_errors() {
    assert!(is_log_line("2026-03-01T12:00:00.123456Z  INFO cortado::node: starting cluster=1"));
    for line in
        ["cortado: data directory /x is in use", "error: unexpected argument", "", "    --data <DIR>", "2026 INFO x"]
    {
        assert!(!is_log_line(line), "{line}");
    }
}
