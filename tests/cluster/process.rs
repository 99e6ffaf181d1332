//! Processes of the binary under test, and what can be seen of them from outside: exit codes, logs, pages over HTTP.
//!
//! Every wait polls a state with a bound.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Nothing in a test waits longer for a state.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a state.
pub const POLL: Duration = Duration::from_millis(20);

/// The binary under test.
pub fn cortado() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cortado"))
}

/// Polls until `state` holds.
pub fn wait_for(what: &str, mut state: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !state() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(POLL);
    }
}

/// The first of `count` ports in a row that were free a moment ago, and as many at each of the distances `above`; this process names
/// each once. All lie below the range that the system gives to outgoing connections, or one of those could take them first.
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

/// A process that is killed when dropped, and its children with it.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it, with its output and its complaints added to one file.
    pub fn spawn(command: &mut Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log).unwrap();
        // A group of its own, so that a signal can go to it as Ctrl-C in a terminal does, and not to the tests.
        let command = command.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        Process { child: command.spawn().unwrap(), log: log.to_path_buf() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, name: &str) {
        signal(name, &self.id().to_string());
    }

    /// Sends a signal to it and all its children, as a terminal does.
    pub fn signal_group(&self, name: &str) {
        signal(name, &format!("-{}", self.id()));
    }

    /// Waits until it has ended.
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

    /// What it has said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The last lines of what it has said.
    pub fn tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            let group = format!("-{}", self.id());
            // A test that fails must not leave the children of a demo behind.
            let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
            let _ = self.child.wait();
        }
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

/// Runs to the end, which must come by itself.
pub fn run(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            let said = child.wait_with_output().unwrap();
            panic!("{command:?} does not end:\n{}", String::from_utf8_lossy(&said.stderr));
        }
        std::thread::sleep(POLL);
    }
    child.wait_with_output().unwrap()
}

/// Asks for a page: status and body, if anybody answers.
pub fn http_get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_string()))
}

/// A metric of a node, summed over its labels, if the node answers and has it.
pub fn metric(http: u16, name: &str) -> Option<f64> {
    let (_, page) = http_get(http, "/metrics").filter(|(status, _)| *status == 200)?;
    let value = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        (sample.split('{').next() == Some(name)).then(|| value.parse::<f64>().unwrap())
    };
    page.lines().filter_map(value).reduce(|a, b| a + b)
}

/// All files and folders below a directory with what they hold, to show that nothing changed.
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
