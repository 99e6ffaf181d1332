//! A PostgreSQL 15 server of its own, where its programs are installed. They refuse to run as root, so as root they run
//! as the user `postgres`, or as `nobody` if there is none.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::session::Session;
use super::system::System;
use crate::process::{Process, free_port, run, wait_for};

/// Where Debian installs the server programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Short, for the tests. The session whose wait closes a cycle begins to wait when the others have for longer.
const DEADLOCK_TIMEOUT_MS: u64 = 100;

pub struct Postgres {
    port: u16,
    observer: Session,
    process: Process,
    _dir: tempfile::TempDir,
}

/// A number that `id` prints of a user; `None` if there is no such user.
fn id(args: &[&str]) -> Option<u32> {
    let out = run(Command::new("id").args(args));
    String::from_utf8(out.stdout).unwrap().trim().parse().ok()
}

/// A server program, not as root.
fn program(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(Path::new(PROGRAMS).join(name));
    command.current_dir(dir);
    if id(&["-u"]) == Some(0) {
        let user = ["postgres", "nobody"].into_iter().find(|user| id(&["-u", user]).is_some()).expect("a user");
        let (uid, gid) = (id(&["-u", user]).unwrap(), id(&["-g", user]).unwrap());
        chown(dir, Some(uid), Some(gid)).unwrap();
        command.uid(uid).gid(gid);
    }
    command
}

impl Postgres {
    /// Starts a server; `None` if its programs are not installed.
    pub fn start() -> Option<Postgres> {
        if !Path::new(PROGRAMS).join("postgres").exists() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let out = run(program("initdb", dir.path()).arg("-D").arg(&data).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "--locale=C.UTF-8",
            "-E",
            "UTF8",
        ]));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let port = free_port();
        let settings = [
            "listen_addresses=127.0.0.1".to_string(),
            "unix_socket_directories=".to_string(),
            "fsync=off".to_string(),
            format!("port={port}"),
            format!("deadlock_timeout={DEADLOCK_TIMEOUT_MS}"),
        ];
        let mut command = program("postgres", dir.path());
        command.arg("-D").arg(&data);
        for setting in &settings {
            command.args(["-c", setting]);
        }
        let log = dir.path().join("server.log");
        let mut process = Process::spawn(&mut command, &log);
        wait_for("PostgreSQL to accept connections", || {
            assert!(!process.has_ended(), "PostgreSQL has ended:\n{}", process.output());
            process.output().contains("database system is ready to accept connections")
        });
        Some(Postgres { port, observer: Session::open(port), process, _dir: dir })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The rows of a query, all of numbers.
    fn numbers(&mut self, sql: &str) -> Vec<Vec<u32>> {
        let lines = self.observer.run(sql);
        let parse = |row: &String| row.split('|').map(|number| number.parse().unwrap()).collect();
        lines[1..lines.len() - 1].iter().map(parse).collect()
    }
}

impl System for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn open(&mut self, _number: usize) -> Session {
        Session::open(self.port)
    }

    /// Those that a session without a statement blocks, or one that waits itself. A session that was woken waits for a
    /// moment for others that were.
    fn waiting(&mut self, _sessions: &[Session]) -> Vec<u32> {
        let mut stuck = self.numbers("select pid from pg_stat_activity where state like 'idle%'").concat();
        let blocked = self.numbers("select pid, unnest(pg_blocking_pids(pid)) from pg_stat_activity");
        let idle = stuck.len();
        while let Some(pair) = blocked.iter().find(|pair| stuck.contains(&pair[1]) && !stuck.contains(&pair[0])) {
            stuck.push(pair[0]);
        }
        stuck.split_off(idle)
    }

    fn have_waited_long(&mut self, _sessions: &[Session]) -> bool {
        let fresh = format!(
            "select pid from pg_locks where not granted \
             and coalesce(waitstart, now()) > now() - interval '{} ms'",
            2 * DEADLOCK_TIMEOUT_MS
        );
        self.numbers(&fresh).is_empty()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its children are in process groups of their own. This ends them too.
        self.process.signal("QUIT");
        self.process.wait();
    }
}
