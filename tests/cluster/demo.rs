//! `cortado demo`: the commands that it prints work, and it leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exclusive::ClusterLock;
use crate::process::{Process, contents, cortado, free_ports, metric, run, wait_for};

const NODES: u16 = 3;

/// A demo with a folder of its own for temporary files.
struct Demo {
    process: Process,
    /// The PostgreSQL port of the first node.
    pg: u16,
    temporary: PathBuf,
    _dir: tempfile::TempDir,
}

impl Demo {
    /// Runs the program with the command prefix `wrap`, which may be empty.
    fn start(lock: &ClusterLock, wrap: &[&str]) -> Demo {
        Demo::start_with(lock, wrap, &[])
    }

    /// The same with these flags.
    fn start_with(_lock: &ClusterLock, wrap: &[&str], flags: &[&str]) -> Demo {
        let dir = tempfile::tempdir().unwrap();
        let temporary = dir.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let pg = free_ports(NODES, &[1000, 1100, 1200, 2000]);
        let mut words = wrap.iter().map(ToString::to_string).chain([env!("CARGO_BIN_EXE_cortado").to_string()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["demo", "--pg-port", &pg.to_string()]).args(flags).env("TMPDIR", &temporary);
        let process = Process::spawn(&mut command, &dir.path().join("demo.log"));
        Demo { process, pg, temporary, _dir: dir }
    }

    /// Waits until the demo has printed `words`.
    fn wait_for_output(&mut self, words: &str) {
        wait_for("the demo to come up", || self.process.output().contains(words) || self.process.has_ended());
        assert!(self.process.output().contains(words), "the demo ended:\n{}", self.process.output());
    }

    /// The process ids of the nodes.
    fn nodes(&self) -> Vec<u32> {
        let id = self.process.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Runs a command line as a user who copies it from the screen.
fn shell(line: &str, rest: &str) -> String {
    let out = run(Command::new("sh").args(["-c", &format!("{line} {rest}")]));
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_string()
}

#[test]
fn the_printed_commands_work() {
    let lock = ClusterLock::acquire();
    let mut demo = Demo::start(&lock, &[]);
    demo.wait_for_output("Ctrl-C stops all nodes.");
    let output = demo.process.output();
    assert!(output.contains(&demo.temporary.display().to_string()) && output.contains("temporary"), "{output}");
    assert_eq!(contents(&demo.temporary).iter().filter(|(path, _)| path.ends_with("IDENT")).count(), 3);

    // Every psql line connects, each to another node.
    let lines: Vec<&str> = output.lines().filter_map(|line| Some(&line[line.find("psql ")?..])).collect();
    assert_eq!(lines.len(), usize::from(NODES), "{output}");
    shell(lines[0], "-Xqc 'CREATE TABLE t (id bigint PRIMARY KEY, v text)'");
    for (i, line) in lines.iter().enumerate() {
        shell(line, &format!("-Xqc \"INSERT INTO t VALUES ({i}, 'from {i}')\""));
    }
    for line in &lines {
        assert_eq!(shell(line, "-XAtc 'SELECT * FROM t ORDER BY id'"), "0|from 0\n1|from 1\n2|from 2");
    }
    // The other lines work too: the host for `cortado status`, the page of metrics.
    let after = |words: &str| output.split(words).nth(1).unwrap().split_whitespace().next().unwrap().to_string();
    let status = run(cortado().args(["status", "--host", &after("cortado status --host ")]));
    assert_eq!(String::from_utf8_lossy(&status.stdout).matches(" alive ").count(), 3);
    let page = after("curl http://127.0.0.1:");
    let (port, path) = page.split_at(page.find('/').unwrap());
    assert_eq!(crate::process::http_get(port.parse().unwrap(), path).unwrap().0, 200);
    let nodes = demo.nodes();
    assert_eq!(nodes.len(), usize::from(NODES));
    assert!(nodes.iter().all(|pid| output.contains(&pid.to_string())), "{nodes:?} are not all printed:\n{output}");

    // Ctrl-C in a terminal signals the demo and its nodes.
    demo.process.signal_group("INT");
    assert_eq!(demo.process.wait().code(), Some(0), "{}", demo.process.output());
    assert!(!nodes.iter().any(|pid| is_running(*pid)), "nodes outlived the demo");
    assert_eq!(contents(&demo.temporary), [], "the data was temporary");
}

/// SIGTERM to the demo alone stops its nodes, also after one of them was killed.
#[test]
fn the_demo_stops_its_nodes() {
    let lock = ClusterLock::acquire();
    let mut demo = Demo::start(&lock, &[]);
    demo.wait_for_output("Ctrl-C stops all nodes.");
    let nodes = demo.nodes();
    run(Command::new("kill").args(["-s", "KILL", "--", &nodes[1].to_string()]));
    demo.wait_for_output("node 2 ended");
    demo.process.signal("TERM");
    assert_eq!(demo.process.wait().code(), Some(0), "{}", demo.process.output());
    assert!(!nodes.iter().any(|pid| is_running(*pid)), "nodes outlived the demo");
    assert_eq!(contents(&demo.temporary), [], "the data was temporary");
}

/// When the nodes fail, the demo names the folder of their logs and keeps it.
#[test]
fn a_failure_keeps_the_logs() {
    let lock = ClusterLock::acquire();
    // No file may grow beyond 64 KiB: the nodes start, and fail when they create their stores.
    let mut demo = Demo::start(&lock, &["sh", "-c", "ulimit -c 0 && ulimit -f 128 && exec \"$0\" \"$@\""]);
    assert_eq!(demo.process.wait().code(), Some(1), "{}", demo.process.output());
    let output = demo.process.output();
    let errors: Vec<&str> = output.lines().filter(|line| line.starts_with("cortado: ")).collect();
    assert_eq!(errors.len(), 1, "{output}");
    assert!(output.ends_with(&format!("{}\n", errors[0])), "the error is the last line:\n{output}");
    let start =
        output.find(&demo.temporary.display().to_string()).unwrap_or_else(|| panic!("no folder named:\n{output}"));
    let folder = Path::new(output[start..].split_whitespace().next().unwrap());
    assert!(folder.join("node-1.log").exists(), "{} has no log:\n{output}", folder.display());
}

/// The milliseconds that `\\timing` shows for each statement of a script, which psql sends one after the other.
fn timings(line: &str, script: &str) -> Vec<f64> {
    let printed = shell("printf '%s\\n'", &format!("'\\timing on' \"{script}\" | {line} -XAt"));
    let times = printed.lines().filter_map(|line| line.strip_prefix("Time: ")?.split(' ').next()?.parse().ok());
    times.collect()
}

/// A demo of regions: its nodes are as far apart as asked, by whatever connection, and its clients are not.
#[test]
fn regions_are_apart() {
    const ROUND_TRIP_MS: f64 = 20.0;
    const NAMES: [&str; 3] = ["tokyo", "frankfurt", "oregon"];
    let lock = ClusterLock::acquire();
    let flags = ["--regions", &NAMES.join(","), "--rtt", "20ms", "--bandwidth", "500Mbit"];
    let mut demo = Demo::start_with(&lock, &[], &flags);
    demo.wait_for_output("Ctrl-C stops all nodes.");
    let output = demo.process.output();
    let said = output.lines().find(|line| line.contains("added round trip")).unwrap().to_string();
    assert!(said.contains("(asked 20 ms)") && output.contains("(asked 500 Mbit/s each way)"), "{output}");
    // What a round trip takes without proxies is subtracted, which is little unless the machine is very busy.
    let added: f64 = said.split("round trip ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(added > ROUND_TRIP_MS / 2.0, "{said}");

    // The first region leads everything.
    wait_for("the first region to lead", || metric(demo.pg + 2000, "raftstore_leaders") == Some(2.0));
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("   psql ")).collect();
    assert_eq!(lines.len(), NAMES.len(), "{output}");
    assert!(lines.iter().zip(NAMES).all(|(line, name)| line.trim_start().starts_with(name)), "{output}");
    assert!(lines[0].ends_with("# leads all tables"), "{output}");
    let psql: Vec<&str> =
        lines.iter().map(|line| &line[line.find("psql ").unwrap()..line.find('#').unwrap()]).collect();

    // A write is a round trip of Raft messages, a read from afar one of a request.
    shell(psql[0], "-Xqc 'CREATE TABLE t (id bigint PRIMARY KEY, v text)'");
    let writes = timings(psql[0], "INSERT INTO t VALUES (1, 'one'); INSERT INTO t VALUES (2, 'two');");
    assert!(writes.len() == 2 && writes.iter().all(|ms| *ms >= ROUND_TRIP_MS), "{writes:?}");
    for far in &psql[1..] {
        let reads = timings(far, &"SELECT v FROM t WHERE id = 1; ".repeat(3));
        assert!(reads.len() == 3 && reads.iter().all(|ms| *ms >= ROUND_TRIP_MS), "{reads:?}");
        assert_eq!(shell(far, "-XAtc 'SELECT * FROM t ORDER BY id'"), "1|one\n2|two");
    }
    // All pairs have exchanged something, and nothing came from an unknown place.
    let sent = |from: &str, to: &str| {
        let name = format!("cortado_demo_sent_bytes_total{{from=\"{from}\",to=\"{to}\"}}");
        metric(demo.pg + 1200, &name).unwrap()
    };
    for from in NAMES {
        let others = NAMES.into_iter().filter(|to| *to != from);
        assert!(others.clone().all(|to| sent(from, to) > 0.0), "{from} sends to every region");
        assert_eq!((sent("elsewhere", from), sent(from, "elsewhere")), (0.0, 0.0), "{from}");
    }
    let status = run(cortado().args(["status", "--host", &format!("127.0.0.1:{}", demo.pg + 1100)]));
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(NAMES.iter().all(|name| status.contains(&format!("region={name},zone={name}-1"))), "{status}");

    let nodes = demo.nodes();
    demo.process.signal("TERM");
    assert_eq!(demo.process.wait().code(), Some(0), "{}", demo.process.output());
    assert!(!nodes.iter().any(|pid| is_running(*pid)), "nodes outlived the demo");
    assert_eq!(contents(&demo.temporary), [], "the data was temporary");
}
