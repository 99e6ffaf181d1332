//! `cortado demo`: a cluster on this machine, to try things out.
//!
//! Each node is a child process, so that the user can kill it. A node stops when its standard input is closed, so no
//! node outlives the demo, however the demo ends. A temporary directory is removed only after a clean end of all nodes:
//! a running node still uses its files, and after a failure the logs are needed.

use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::ValueEnum;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::cli::{DemoArgs, LogArgs};
use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::console::{self, StopSignals};

/// Distance from a node's PostgreSQL port to its port for other nodes.
const LISTEN_OFFSET: u16 = 1000;
/// Distance from a node's PostgreSQL port to its HTTP port.
const HTTP_OFFSET: u16 = 2000;
/// All nodes must serve within this time.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// A node that has not stopped after this time is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The interval at which the demo checks whether its nodes still run.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Why the demo cannot run; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// A port is taken.
    #[error("port {port} is not free: {source}; choose others with --pg-port")]
    Port { port: u16, source: io::Error },
    /// Ports would lie above 65535.
    #[error("--pg-port {0} leaves no room for the nodes' other ports")]
    PortTooHigh(u16),
    /// A file or process could not be created.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// A node ended by itself.
    #[error("node {node} did not start: {last_line} (more in {log})")]
    NodeDied { node: u16, last_line: String, log: String },
    /// All nodes ended by themselves.
    #[error("all nodes ended by themselves; see the logs in {dir}")]
    AllEnded { dir: String },
    /// The nodes did not serve in time.
    #[error("the nodes did not come up within {START_TIMEOUT:?}; see the logs in {dir}")]
    Timeout { dir: String },
    /// A call to a node failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

struct NodeProcess {
    number: u16,
    child: Child,
    pg: SocketAddr,
    listen: HostPort,
    http: SocketAddr,
    log: PathBuf,
}

/// Prints a line for the user. The demo continues if standard output is closed.
fn print(line: impl Display) {
    let _ = console::print_line(line);
}

fn io_error(what: impl Display) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { what: what.to_string(), source }
}

/// Runs the demo until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: &DemoArgs, logs: &LogArgs) -> Result<(), DemoError> {
    let mut signals = StopSignals::install().map_err(io_error("signals"))?;
    check_ports(args)?;
    let dir = DemoDir::open(args.data.as_deref())?;
    print(format_args!("Starting {} node(s) in {} ...", args.nodes, dir.path.display()));
    let mut nodes = Vec::new();
    let outcome = run_until_stopped(args, logs, &dir, &mut nodes, &mut signals).await;
    print("\nStopping ...");
    let all_ended = stop(nodes).await;
    dir.close(outcome.is_ok() && all_ended);
    outcome
}

/// Starts the nodes and runs until a stop signal or a failure.
async fn run_until_stopped(
    args: &DemoArgs,
    logs: &LogArgs,
    dir: &DemoDir,
    nodes: &mut Vec<NodeProcess>,
    signals: &mut StopSignals,
) -> Result<(), DemoError> {
    for number in 1..=args.nodes {
        nodes.push(spawn(args, logs, number, &dir.path).map_err(io_error("cannot start a node"))?);
    }
    // `biased`: Ctrl-C also reaches the nodes, so they end at the same time. That is a stop, not a failure.
    tokio::select! {
        biased;
        () = signals.recv() => return Ok(()),
        started = start_cluster(nodes, &dir.path) => started?,
    }
    print_instructions(nodes, dir.temporary.is_some());
    tokio::select! {
        biased;
        () = signals.recv() => Ok(()),
        () = watch_until_all_ended(nodes) => Err(DemoError::AllEnded { dir: dir.path.display().to_string() }),
    }
}

/// The directory for the data and logs of all nodes.
struct DemoDir {
    path: PathBuf,
    /// Removes the directory; `None` for a directory given with `--data`.
    temporary: Option<TempDir>,
}

impl DemoDir {
    fn open(dir: Option<&Path>) -> Result<DemoDir, DemoError> {
        let Some(dir) = dir else {
            let temporary = tempfile::Builder::new().prefix("cortado-demo-").tempdir();
            let temporary = temporary.map_err(io_error("temporary directory"))?;
            return Ok(DemoDir { path: temporary.path().to_path_buf(), temporary: Some(temporary) });
        };
        fs::create_dir_all(dir).map_err(io_error(dir.display()))?;
        Ok(DemoDir { path: dir.to_path_buf(), temporary: None })
    }

    /// Removes a temporary directory if it is `removable`, else keeps it and says where it is.
    fn close(self, removable: bool) {
        let Some(temporary) = self.temporary else {
            return;
        };
        if !removable {
            let kept = temporary.keep();
            print(format_args!("Data and logs are kept in {}.", kept.display()));
        } else if let Err(error) = temporary.close() {
            print(format_args!("{} cannot be removed: {error}", self.path.display()));
        }
    }
}

fn ports_of(args: &DemoArgs, number: u16) -> [u16; 3] {
    let pg = args.pg_port + (number - 1);
    [pg, pg + LISTEN_OFFSET, pg + HTTP_OFFSET]
}

/// Checks all ports before any node is started, so that a port in use is one error line.
fn check_ports(args: &DemoArgs) -> Result<(), DemoError> {
    if args.pg_port > u16::MAX - HTTP_OFFSET - args.nodes {
        return Err(DemoError::PortTooHigh(args.pg_port));
    }
    for port in (1..=args.nodes).flat_map(|number| ports_of(args, number)) {
        TcpListener::bind(loopback(port)).map_err(|source| DemoError::Port { port, source })?;
    }
    Ok(())
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn spawn(args: &DemoArgs, logs: &LogArgs, number: u16, dir: &Path) -> io::Result<NodeProcess> {
    let [pg, listen, http] = ports_of(args, number).map(loopback);
    let join: Vec<String> = (1..=args.nodes).map(|n| loopback(ports_of(args, n)[1]).to_string()).collect();
    let log = dir.join(format!("node-{number}.log"));
    let log_file = File::options().create(true).append(true).open(&log)?;
    let child = Command::new(std::env::current_exe()?)
        .arg("start")
        .arg("--data")
        .arg(dir.join(format!("node-{number}")))
        .args(["--listen", &listen.to_string(), "--pg", &pg.to_string(), "--http", &http.to_string()])
        .args(["--join", &join.join(","), "--locality", &format!("zone=z{number}")])
        .args(["--cache", "128MiB", "--until-stdin-closes"])
        .args(log_flags(logs))
        .stdin(Stdio::piped())
        .stdout(log_file.try_clone()?)
        .stderr(log_file)
        .spawn()?;
    Ok(NodeProcess { number, child, pg, listen: listen.into(), http, log })
}

/// The demo's own logging flags, for its nodes. They inherit RUST_LOG.
fn log_flags(logs: &LogArgs) -> Vec<String> {
    let format = logs.log_format.to_possible_value().map(|value| value.get_name().to_string());
    let flag = |name: &str, value: String| [name.to_string(), value];
    let format = format.map(|format| flag("--log-format", format));
    let filter = logs.log.clone().map(|filter| flag("--log", filter));
    format.into_iter().chain(filter).flatten().collect()
}

/// Waits for all nodes, initialises the cluster unless its initialisation is complete, and waits until every node
/// serves.
async fn start_cluster(nodes: &mut [NodeProcess], dir: &Path) -> Result<(), DemoError> {
    let work = async {
        let mut initialised = false;
        for node in nodes.iter_mut() {
            initialised |= wait_for_node(node).await?;
        }
        if !initialised {
            client::init(&nodes[0].listen).await?;
        }
        for node in nodes.iter_mut() {
            while !serves(node.http).await {
                check_alive(node)?;
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    };
    match tokio::time::timeout(START_TIMEOUT, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(DemoError::Timeout { dir: dir.display().to_string() }),
    }
}

/// Waits until the node answers. Returns whether the initialisation of its cluster is complete.
async fn wait_for_node(node: &mut NodeProcess) -> Result<bool, DemoError> {
    loop {
        check_alive(node)?;
        if let Ok(info) = client::info(&node.listen).await {
            return Ok(info.complete);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn check_alive(node: &mut NodeProcess) -> Result<(), DemoError> {
    match node.child.try_wait() {
        Ok(None) => Ok(()),
        _ => {
            let text = fs::read_to_string(&node.log).unwrap_or_default();
            let last_line = text.lines().last().unwrap_or("no log output").to_string();
            Err(DemoError::NodeDied { node: node.number, last_line, log: node.log.display().to_string() })
        }
    }
}

/// Whether `/healthz` answers 200.
async fn serves(http: SocketAddr) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(http).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        io::Result::Ok(answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"))
    };
    matches!(tokio::time::timeout(Duration::from_secs(2), ask).await, Ok(Ok(true)))
}

fn print_instructions(nodes: &[NodeProcess], temporary: bool) {
    print("\nThe cluster is up. Every node accepts every statement:\n");
    for node in nodes {
        print(format_args!("  node {}   psql -h 127.0.0.1 -p {} -U postgres", node.number, node.pg.port()));
    }
    print("\nTry:");
    print("  CREATE TABLE t (id bigint PRIMARY KEY, v text);");
    print("  INSERT INTO t VALUES (1, 'one'), (2, 'two');      -- on one node");
    print("  SELECT * FROM t ORDER BY id;                      -- on another");
    print("  EXPLAIN SELECT * FROM t WHERE id = 1;");
    if let Some(node) = nodes.first() {
        print(format_args!("\n  cortado status --host {}         nodes, regions, leaders", node.listen));
        print(format_args!("  curl http://{}/metrics         metrics", node.http));
    }
    if nodes.len() >= 3 {
        let pids: Vec<String> = nodes.iter().filter_map(|n| n.child.id()).map(|id| id.to_string()).collect();
        print(format_args!("  kill -9 ONE OF {}                 the other nodes continue", pids.join(" ")));
    }
    if temporary {
        print("\nThe data is temporary and is deleted at exit; keep it with --data DIR.");
    }
    print("Ctrl-C stops all nodes.");
}

/// Reports each node that ends by itself. Completes when the last one has ended.
async fn watch_until_all_ended(nodes: &mut [NodeProcess]) {
    let mut has_ended = vec![false; nodes.len()];
    while has_ended.contains(&false) {
        tokio::time::sleep(WATCH_INTERVAL).await;
        for (node, has_ended) in nodes.iter_mut().zip(&mut has_ended) {
            if let (false, Ok(Some(status))) = (*has_ended, node.child.try_wait()) {
                print(format_args!("node {} ended ({status}); its log is {}", node.number, node.log.display()));
                *has_ended = true;
            }
        }
    }
}

/// Stops all nodes. Returns whether all have ended.
async fn stop(mut nodes: Vec<NodeProcess>) -> bool {
    for node in &mut nodes {
        // A node stops when its standard input is closed.
        drop(node.child.stdin.take());
    }
    let mut all_ended = true;
    for node in &mut nodes {
        if tokio::time::timeout(STOP_TIMEOUT, node.child.wait()).await.is_err() {
            print(format_args!("node {} does not stop and is killed", node.number));
            if let Err(error) = node.child.kill().await {
                print(format_args!("node {} cannot be killed: {error}", node.number));
                all_ended = false;
            }
        }
    }
    all_ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::LogFormat;

    #[test]
    fn nodes_inherit_the_logging_flags() {
        let logs = LogArgs { log_format: LogFormat::Json, log: Some("debug".to_string()) };
        assert_eq!(log_flags(&logs), ["--log-format", "json", "--log", "debug"]);
        let logs = LogArgs { log_format: LogFormat::Text, log: None };
        assert_eq!(log_flags(&logs), ["--log-format", "text"]);
    }

    #[test]
    fn a_temporary_directory_is_kept_unless_removable() {
        let dir = DemoDir::open(None).unwrap();
        let path = dir.path.clone();
        dir.close(true);
        assert!(!path.exists());
        let dir = DemoDir::open(None).unwrap();
        let path = dir.path.clone();
        dir.close(false);
        assert!(path.is_dir());
        fs::remove_dir(path).unwrap();
    }
}
