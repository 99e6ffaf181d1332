//! Processes of the binary under test, and what is visible from outside: exit codes, logs, pages over HTTP.
//!
//! Every wait polls a condition and is bounded.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The timeout of every wait in a test.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which a wait polls its condition.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The binary under test.
pub fn cortado() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cortado"))
}

/// Polls until `condition` holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {WAIT_TIMEOUT:?} for {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The first of `count` consecutive ports that were free a moment ago, as were the ports at each of the distances
/// `above`. This process returns each port once. All lie below the ephemeral range, or an outgoing connection could
/// take them first.
pub fn free_ports(count: u16, above: &[u16]) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let step =
            NEXT.fetch_add(u32::from(count), Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(101));
        let base = 10_000 + (step % 20_000) as u16;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (base..base + count).all(|port| is_free(port) && above.iter().all(|up| is_free(port + up))) {
            return base;
        }
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    free_ports(1, &[])
}

/// The running processes: process ids and log files.
static RUNNING: Mutex<BTreeMap<u32, PathBuf>> = Mutex::new(BTreeMap::new());

fn registry() -> MutexGuard<'static, BTreeMap<u32, PathBuf>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ids and log files of all processes that tests have started and not dropped yet.
pub fn running() -> BTreeMap<u32, PathBuf> {
    registry().clone()
}

/// Kills a process that [`Process::spawn`] started, and its children.
pub fn kill_group(id: u32) {
    let group = format!("-{id}");
    let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
}

/// A process. Dropping it kills it and its children.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a process, with its stdout and stderr appended to one file.
    pub fn spawn(command: &mut Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log).unwrap();
        // A process group of its own: a signal to the group, like Ctrl-C in a terminal, does not reach the tests.
        let command = command.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        let process = Process { child: command.spawn().unwrap(), log: log.to_path_buf() };
        registry().insert(process.id(), process.log.clone());
        process
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, name: &str) {
        signal(name, &self.id().to_string());
    }

    /// Sends a signal to the process and its children, as a terminal does.
    pub fn signal_group(&self, name: &str) {
        signal(name, &format!("-{}", self.id()));
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("a process to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// `kill -9`, without waiting for the end.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// The output so far.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The last lines of the output.
    pub fn tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            // The group, so that a failed test leaves no children of a demo behind.
            kill_group(self.id());
            let _ = self.child.wait();
        }
        registry().remove(&self.id());
    }
}

fn signal(name: &str, target: &str) {
    let sent = Command::new("kill").args(["-s", name, "--", target]).status().unwrap();
    assert!(sent.success(), "SIG{name} could not be sent to {target}");
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Runs a command that ends by itself.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (sender, ended) = std::sync::mpsc::sync_channel(1);
    // It may print more than a pipe takes.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(WAIT_TIMEOUT) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal("KILL", &pid.to_string());
            let output = ended.recv().unwrap().unwrap();
            panic!("{command:?} does not end:\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// Fetches a page: its status and body, or `None` without an answer.
pub fn http_get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_string()))
}

/// A metric of a node, summed over its labels unless `name` has them. `None` if the node does not answer or does not
/// have it.
pub fn metric(http: u16, name: &str) -> Option<f64> {
    metrics(http, [name]).map(|[value]| value)
}

/// As [`metric`], several of one page.
pub fn metrics<const N: usize>(http: u16, names: [&str; N]) -> Option<[f64; N]> {
    let (_, page) = http_get(http, "/metrics").filter(|(status, _)| *status == 200)?;
    let mut found = [None; N];
    for (sample, value) in page.lines().filter_map(|line| line.rsplit_once(' ')) {
        for (name, found) in names.iter().zip(&mut found) {
            if sample == *name || sample.split('{').next() == Some(name) {
                *found = Some(found.unwrap_or(0.0) + value.parse::<f64>().unwrap());
            }
        }
    }
    let found: Vec<f64> = found.into_iter().collect::<Option<_>>()?;
    found.try_into().ok()
}

/// All files and folders below a directory with their contents, to show that nothing changed.
pub fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.push((path.clone(), Vec::new()));
                left.push(path);
            } else {
                found.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
