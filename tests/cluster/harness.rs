//! Real clusters of real processes on this machine, for tests.
//!
//! Every wait polls a state with a bound. Nodes get ports that were free a moment ago; each node's log is kept and printed when a
//! test fails.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

/// Nothing in a test waits longer for a state.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a state.
const POLL: Duration = Duration::from_millis(20);

/// The binary under test.
pub fn cortado() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cortado"))
}

/// A port that was free a moment ago, and that this process names once. Below the range that the system gives to outgoing connections, or one of
/// those could take it before the node does.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let step = std::process::id().wrapping_mul(101).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (step % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A node of a cluster; killed when dropped.
pub struct Node {
    pub pg: u16,
    pub listen: u16,
    pub http: u16,
    pub dir: PathBuf,
    pub log: PathBuf,
    child: Option<Child>,
}

/// A cluster of processes in a temporary directory.
pub struct Cluster {
    pub nodes: Vec<Node>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    /// `count` nodes, started, initialised and serving.
    pub async fn start(count: usize) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let node = |number: usize| Node {
            pg: free_port(),
            listen: free_port(),
            http: free_port(),
            dir: dir.path().join(format!("node-{number}")),
            log: dir.path().join(format!("node-{number}.log")),
            child: None,
        };
        let mut cluster = Cluster { nodes: (1..=count).map(node).collect(), _dir: dir };
        for i in 0..count {
            cluster.spawn(i);
        }
        let host = format!("127.0.0.1:{}", cluster.nodes[0].listen);
        wait_for("init to succeed", || {
            let out = cortado().args(["init", "--host", &host]).output().unwrap();
            out.status.success() || String::from_utf8_lossy(&out.stderr).contains("already initialised")
        });
        for i in 0..count {
            cluster.wait_until_serving(i).await;
        }
        cluster
    }

    /// Starts the process of node `i`.
    pub fn spawn(&mut self, i: usize) {
        let join: Vec<String> = self.nodes.iter().map(|n| format!("127.0.0.1:{}", n.listen)).collect();
        let node = &mut self.nodes[i];
        let log = std::fs::File::options().create(true).append(true).open(&node.log).unwrap();
        let child = cortado()
            .args(["start", "--until-stdin-closes", "--cache", "64MiB"])
            .arg("--data")
            .arg(&node.dir)
            .args(["--listen", &format!("127.0.0.1:{}", node.listen), "--pg", &format!("127.0.0.1:{}", node.pg)])
            .args(["--http", &format!("127.0.0.1:{}", node.http), "--join", &join.join(",")])
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        node.child = Some(child);
    }

    /// `kill -9`.
    pub fn kill(&mut self, i: usize) {
        if let Some(mut child) = self.nodes[i].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// SIGTERM; returns the exit code.
    pub fn terminate(&mut self, i: usize) -> Option<i32> {
        let mut child = self.nodes[i].child.take().unwrap();
        let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(killed.success());
        let mut code = None;
        wait_for("a node to stop after SIGTERM", || {
            code = child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }

    /// Waits until `SELECT 1` works on node `i`.
    pub async fn wait_until_serving(&mut self, i: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(client) = self.try_connect(i).await
                && client.simple_query("SELECT 1").await.is_ok()
                && health(self.nodes[i].http).await
            {
                return;
            }
            let ended = self.nodes[i].child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
            assert!(!ended && Instant::now() < deadline, "node {} does not serve:\n{}", i + 1, self.nodes[i].tail());
            tokio::time::sleep(POLL).await;
        }
    }

    /// A connection to node `i`, if it takes one.
    pub async fn try_connect(&self, i: usize) -> Option<Client> {
        connect(self.nodes[i].pg).await
    }

    /// A connection to node `i`.
    pub async fn connect(&self, i: usize) -> Client {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(client) = self.try_connect(i).await {
                return client;
            }
            assert!(Instant::now() < deadline, "node {} takes no connection:\n{}", i + 1, self.nodes[i].tail());
            tokio::time::sleep(POLL).await;
        }
    }

    /// `cortado status --json`, asked of node `i`.
    pub fn status(&self, i: usize) -> serde_json::Value {
        let host = format!("127.0.0.1:{}", self.nodes[i].listen);
        let out = cortado().args(["status", "--json", "--host", &host]).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap_or(serde_json::Value::Null)
    }

    /// The node (from 0) that leads a region, as node `i` tells.
    pub fn leader_of(&self, region: u64, ask: usize) -> Option<usize> {
        let status = self.status(ask);
        let found = status["regions"].as_array()?.iter().find(|r| r["id"] == region)?;
        Some(found["leader"].as_u64()? as usize - 1)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for i in 0..self.nodes.len() {
            self.kill(i);
        }
        if std::thread::panicking() {
            for (i, node) in self.nodes.iter().enumerate() {
                println!("---- log of node {}\n{}", i + 1, node.tail());
            }
        }
    }
}

impl Node {
    /// The last lines of its log.
    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

/// A connection to a port, if somebody takes it.
pub async fn connect(port: u16) -> Option<Client> {
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=3");
    let (client, connection) =
        tokio::time::timeout(PATIENCE, tokio_postgres::connect(&config, NoTls)).await.ok()?.ok()?;
    tokio::spawn(connection);
    Some(client)
}

async fn health(port: u16) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer.contains(" 200 "))
    };
    ask.await.unwrap_or(false)
}

/// Polls until `state` holds.
pub fn wait_for(what: &str, mut state: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !state() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(POLL);
    }
}

/// All files below a directory with their contents, to show that nothing changed.
pub fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => todo.push(path),
                false => found.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}
