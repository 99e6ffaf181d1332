//! A PostgreSQL primary with two streaming standbys and `synchronous_standby_names = 'ANY 1 (s1, s2)'`: like a Raft
//! group of three, it acknowledges a commit once the primary and one standby have it on disk.
//!
//! Needs PostgreSQL's server programs (Debian: postgresql-15). They refuse to run as root; as root the benchmark runs
//! them as the user `postgres`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::system::System;

struct Server {
    data: PathBuf,
    port: u16,
}

struct Postgres {
    servers: Vec<Server>,
    _dir: TempDir,
}

/// Starts the three servers and waits until both standbys stream.
pub fn start() -> impl System {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let server = |n: usize| Server { data: dir.path().join(format!("pg{n}")), port: free_port() };
    let servers: Vec<Server> = (0..3).map(server).collect();
    let primary = &servers[0];
    run("initdb", &["-D", path(&primary.data), "-U", "postgres", "-A", "trust", "--no-sync"]);
    let settings = format!(
        "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 300\n\
         shared_buffers = 512MB\nwal_level = replica\nmax_wal_senders = 8\nsynchronous_commit = on\n\
         synchronous_standby_names = 'ANY 1 (s1, s2)'\nmax_wal_size = 4GB\nlogging_collector = off\n",
        primary.port
    );
    append(&primary.data.join("postgresql.conf"), &settings);
    start_server(primary);
    for (n, standby) in servers.iter().enumerate().skip(1) {
        let source = format!("host=127.0.0.1 port={} user=postgres application_name=s{n}", primary.port);
        run("pg_basebackup", &["-d", &source, "-D", path(&standby.data), "-R", "-X", "stream", "--no-sync"]);
        let own = format!("port = {}\nprimary_conninfo = '{source}'\n", standby.port);
        append(&standby.data.join("postgresql.auto.conf"), &own);
        start_server(standby);
    }
    wait_for_standbys(primary.port);
    Postgres { servers, _dir: dir }
}

/// Waits until a commit needs one of both standbys.
fn wait_for_standbys(primary: u16) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'";
    while psql(primary, count) != "2" {
        assert!(Instant::now() < deadline, "the standbys do not stream");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start_server(server: &Server) {
    let log = server.data.with_extension("log");
    run("pg_ctl", &["-D", path(&server.data), "-l", path(&log), "-w", "-s", "start"]);
}

/// The path of a server program: Debian's directory if it is there, else the PATH.
fn program(name: &str) -> PathBuf {
    let debian = Path::new("/usr/lib/postgresql/15/bin").join(name);
    if debian.exists() { debian } else { PathBuf::from(name) }
}

/// A command of PostgreSQL. Does not run it as root.
fn command(name: &str) -> Command {
    let root = String::from_utf8_lossy(&Command::new("id").arg("-u").output().unwrap().stdout).trim() == "0";
    if !root {
        return Command::new(program(name));
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program(name)).current_dir("/");
    command
}

fn run(name: &str, args: &[&str]) {
    let out = command(name).args(args).output().unwrap_or_else(|e| panic!("{name}: {e}; install postgresql-15"));
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
}

fn append(file: &Path, text: &str) {
    use std::io::Write;
    std::fs::File::options().append(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
}

fn psql(port: u16, sql: &str) -> String {
    let out = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "-XAtc", sql])
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).trim().to_string()
}

impl System for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn port(&self) -> u16 {
        self.servers[0].port
    }

    fn servers(&self) -> Vec<u32> {
        let pid = |server: &Server| {
            let text = std::fs::read_to_string(server.data.join("postmaster.pid")).unwrap();
            text.lines().next().unwrap().parse().unwrap()
        };
        self.servers.iter().map(pid).collect()
    }

    fn restart(&self) {
        for server in self.servers.iter().rev() {
            run("pg_ctl", &["-D", path(&server.data), "-m", "fast", "-w", "-s", "stop"]);
        }
        self.servers.iter().for_each(start_server);
        wait_for_standbys(self.servers[0].port);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for server in self.servers.iter().rev() {
            let _ = command("pg_ctl").args(["-D", path(&server.data), "-m", "immediate", "-s", "stop"]).output();
        }
    }
}
