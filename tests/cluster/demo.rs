//! `cortado demo`: what it prints works, and nothing is left of it when it ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Process, contents, cortado, free_ports, run, wait_for};

const NODES: u16 = 3;

/// A demo whose temporary files go to a folder of their own.
struct Demo {
    process: Process,
    temporary: PathBuf,
    _dir: tempfile::TempDir,
}

impl Demo {
    /// Runs the program behind `wrap`, which may be empty.
    fn start(wrap: &[&str]) -> Demo {
        let dir = tempfile::tempdir().unwrap();
        let temporary = dir.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let pg = free_ports(NODES, &[1000, 2000]);
        let mut words = wrap.iter().map(ToString::to_string).chain([env!("CARGO_BIN_EXE_cortado").to_string()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["demo", "--pg-port", &pg.to_string()]).env("TMPDIR", &temporary);
        let process = Process::spawn(&mut command, &dir.path().join("demo.log"));
        Demo { process, temporary, _dir: dir }
    }

    /// Waits until it has said that, or has ended.
    fn wait_until_it_says(&mut self, words: &str) {
        wait_for("the demo to come up", || self.process.said().contains(words) || self.process.has_ended());
        assert!(self.process.said().contains(words), "the demo ended:\n{}", self.process.said());
    }

    /// Process ids of its nodes.
    fn nodes(&self) -> Vec<u32> {
        let id = self.process.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Runs a command line as somebody who copies it from the screen.
fn shell(line: &str, rest: &str) -> String {
    let out = run(Command::new("sh").args(["-c", &format!("{line} {rest}")]));
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_string()
}

#[test]
fn a_session_from_start_to_end() {
    let mut demo = Demo::start(&[]);
    demo.wait_until_it_says("Ctrl-C stops all nodes.");
    let said = demo.process.said();
    assert!(said.contains(&demo.temporary.display().to_string()) && said.contains("temporary"), "{said}");
    assert_eq!(contents(&demo.temporary).iter().filter(|(path, _)| path.ends_with("IDENT")).count(), 3);

    // Every line for psql connects, to another node each time.
    let lines: Vec<&str> = said.lines().filter_map(|line| Some(&line[line.find("psql ")?..])).collect();
    assert_eq!(lines.len(), usize::from(NODES), "{said}");
    shell(lines[0], "-Xqc 'CREATE TABLE t (id bigint PRIMARY KEY, v text)'");
    for (i, line) in lines.iter().enumerate() {
        shell(line, &format!("-Xqc \"INSERT INTO t VALUES ({i}, 'from {i}')\""));
    }
    for line in &lines {
        assert_eq!(shell(line, "-XAtc 'SELECT * FROM t ORDER BY id'"), "0|from 0\n1|from 1\n2|from 2");
    }
    // So do the other lines: the host for `cortado status`, the page of metrics.
    let after = |words: &str| said.split(words).nth(1).unwrap().split_whitespace().next().unwrap().to_string();
    let status = run(cortado().args(["status", "--host", &after("cortado status --host ")]));
    assert_eq!(String::from_utf8_lossy(&status.stdout).matches(" alive ").count(), 3);
    let page = after("curl http://127.0.0.1:");
    let (port, path) = page.split_at(page.find('/').unwrap());
    assert_eq!(crate::process::http_get(port.parse().unwrap(), path).unwrap().0, 200);
    let nodes = demo.nodes();
    assert_eq!(nodes.len(), usize::from(NODES));
    assert!(nodes.iter().all(|pid| said.contains(&pid.to_string())), "{nodes:?} can be killed as it says:\n{said}");

    // Ctrl-C in a terminal goes to all of them.
    demo.process.signal_group("INT");
    assert_eq!(demo.process.wait().code(), Some(0), "{}", demo.process.said());
    assert!(!nodes.iter().any(|pid| runs(*pid)), "nodes outlived the demo");
    assert_eq!(contents(&demo.temporary), [], "the data was temporary");
}

/// SIGTERM to the demo alone stops its nodes, one of which was killed on the way, as the demo invites to.
#[test]
fn it_stops_its_nodes() {
    let mut demo = Demo::start(&[]);
    demo.wait_until_it_says("Ctrl-C stops all nodes.");
    let nodes = demo.nodes();
    run(Command::new("kill").args(["-s", "KILL", "--", &nodes[1].to_string()]));
    demo.wait_until_it_says("node 2 ended");
    demo.process.signal("TERM");
    assert_eq!(demo.process.wait().code(), Some(0), "{}", demo.process.said());
    assert!(!nodes.iter().any(|pid| runs(*pid)), "nodes outlived the demo");
    assert_eq!(contents(&demo.temporary), [], "the data was temporary");
}

/// When the nodes cannot do their work the demo says where to look, and what it names is there to be looked at.
#[test]
fn a_failure_leaves_the_logs() {
    // No file may grow beyond 64 KiB: the nodes start, and fail when they create their stores.
    let mut demo = Demo::start(&["sh", "-c", "ulimit -c 0 && ulimit -f 128 && exec \"$0\" \"$@\""]);
    assert_eq!(demo.process.wait().code(), Some(1), "{}", demo.process.said());
    let said = demo.process.said();
    let complaints: Vec<&str> = said.lines().filter(|line| line.starts_with("cortado: ")).collect();
    assert_eq!(complaints.len(), 1, "{said}");
    assert!(said.ends_with(&format!("{}\n", complaints[0])), "the complaint is the last line:\n{said}");
    let start = said.find(&demo.temporary.display().to_string()).unwrap_or_else(|| panic!("no folder named:\n{said}"));
    let folder = Path::new(said[start..].split_whitespace().next().unwrap());
    assert!(folder.join("node-1.log").exists(), "{} was to be looked at:\n{said}", folder.display());
}
