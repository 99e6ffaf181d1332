//! `cortado demo`: a whole cluster on this machine, for trying things out.
//!
//! Each node is a child process of its own, so that it can be killed to see what happens. A node stops when its standard input
//! closes, so none outlives the demo, however that ends. A temporary directory is removed only after all nodes have ended well: while one
//! runs it holds its files, and after a failure their logs.

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
use crate::node::proto::InfoRequest;
use crate::output;
use crate::signals::Signals;

/// Nodes listen for each other this far above their PostgreSQL port.
const LISTEN_OFFSET: u16 = 1000;
/// And for HTTP this far above it.
const HTTP_OFFSET: u16 = 2000;
/// Nodes must be up, and later serve, within this time.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Nodes must stop within this time before they are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Between two looks at whether the nodes still run.
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
    /// There is nothing left to try out.
    #[error("all nodes ended by themselves; see the logs in {dir}")]
    AllEnded { dir: String },
    /// Nodes did not come up in time.
    #[error("the nodes did not come up within {START_TIMEOUT:?}; see the logs in {dir}")]
    Timeout { dir: String },
    /// A node refused something.
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

/// What the user is told. The demo goes on if nobody reads it any more.
fn say(line: impl Display) {
    let _ = output::line(line);
}

fn io_error(what: impl Display) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { what: what.to_string(), source }
}

/// Runs the demo until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: &DemoArgs, logs: &LogArgs) -> Result<(), DemoError> {
    let mut signals = Signals::catch().map_err(io_error("signals"))?;
    check_ports(args)?;
    let home = Home::open(args.data.as_deref())?;
    say(format_args!("Starting {} node(s) in {} ...", args.nodes, home.path.display()));
    let mut nodes = Vec::new();
    let outcome = live(args, logs, &home, &mut nodes, &mut signals).await;
    say("\nStopping ...");
    let all_ended = stop(nodes).await;
    home.close(outcome.is_ok() && all_ended);
    outcome
}

/// From the start of the nodes until a stop is asked for, or until something fails.
async fn live(
    args: &DemoArgs,
    logs: &LogArgs,
    home: &Home,
    nodes: &mut Vec<NodeProcess>,
    signals: &mut Signals,
) -> Result<(), DemoError> {
    for number in 1..=args.nodes {
        nodes.push(spawn(args, logs, number, &home.path).map_err(io_error("cannot start a node"))?);
    }
    // Ctrl-C reaches the nodes as well: that they end then is what was asked for.
    tokio::select! {
        biased;
        () = signals.stop_requested() => return Ok(()),
        up = bring_up(nodes, &home.path) => up?,
    }
    greet(nodes, home.temporary.is_some());
    tokio::select! {
        biased;
        () = signals.stop_requested() => Ok(()),
        () = all_ended(nodes) => Err(DemoError::AllEnded { dir: home.path.display().to_string() }),
    }
}

/// Where the nodes keep their data and logs.
struct Home {
    path: PathBuf,
    /// Removes it; `None` if it is the user's own.
    temporary: Option<TempDir>,
}

impl Home {
    fn open(dir: Option<&Path>) -> Result<Home, DemoError> {
        let Some(dir) = dir else {
            let temporary = tempfile::Builder::new().prefix("cortado-demo-").tempdir();
            let temporary = temporary.map_err(io_error("temporary directory"))?;
            return Ok(Home { path: temporary.path().to_path_buf(), temporary: Some(temporary) });
        };
        fs::create_dir_all(dir).map_err(io_error(dir.display()))?;
        Ok(Home { path: dir.to_path_buf(), temporary: None })
    }

    /// Removes the directory if it is temporary and nobody needs it any more.
    fn close(self, removable: bool) {
        let Some(temporary) = self.temporary else {
            return;
        };
        if !removable {
            let kept = temporary.keep();
            say(format_args!("Data and logs are kept in {}.", kept.display()));
        } else if let Err(error) = temporary.close() {
            say(format_args!("{} cannot be removed: {error}", self.path.display()));
        }
    }
}

fn ports_of(args: &DemoArgs, number: u16) -> [u16; 3] {
    let pg = args.pg_port + (number - 1);
    [pg, pg + LISTEN_OFFSET, pg + HTTP_OFFSET]
}

/// All ports are looked at before anything is started, so that a taken one is told at once and in one line.
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

/// The flags that have a node log as the demo was told. (RUST_LOG it inherits.)
fn log_flags(logs: &LogArgs) -> Vec<String> {
    let format = logs.log_format.to_possible_value().map(|value| value.get_name().to_string());
    let flag = |name: &str, value: String| [name.to_string(), value];
    let format = format.map(|format| flag("--log-format", format));
    let filter = logs.log.clone().map(|filter| flag("--log", filter));
    format.into_iter().chain(filter).flatten().collect()
}

/// Waits for all nodes, initialises the cluster unless that was done to the end, and waits until every node serves.
async fn bring_up(nodes: &mut [NodeProcess], dir: &Path) -> Result<(), DemoError> {
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

/// Waits until the node answers; tells whether it belongs to a cluster whose initialisation was not cut short.
async fn wait_for_node(node: &mut NodeProcess) -> Result<bool, DemoError> {
    loop {
        check_alive(node)?;
        if let Ok(mut client) = client::connect(&node.listen).await
            && let Ok(info) = client.info(InfoRequest {}).await
        {
            return Ok(info.into_inner().complete);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn check_alive(node: &mut NodeProcess) -> Result<(), DemoError> {
    match node.child.try_wait() {
        Ok(None) => Ok(()),
        _ => {
            let text = fs::read_to_string(&node.log).unwrap_or_default();
            let last_line = text.lines().last().unwrap_or("it ended without a word").to_string();
            Err(DemoError::NodeDied { node: node.number, last_line, log: node.log.display().to_string() })
        }
    }
}

/// Whether `/healthz` says 200.
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

fn greet(nodes: &[NodeProcess], temporary: bool) {
    say("\nThe cluster is up. Every node takes every statement:\n");
    for node in nodes {
        say(format_args!("  node {}   psql -h 127.0.0.1 -p {} -U postgres", node.number, node.pg.port()));
    }
    say("\nTry:");
    say("  CREATE TABLE t (id bigint PRIMARY KEY, v text);");
    say("  INSERT INTO t VALUES (1, 'one'), (2, 'two');      -- on one node");
    say("  SELECT * FROM t ORDER BY id;                      -- on another");
    say("  EXPLAIN SELECT * FROM t WHERE id = 1;");
    if let Some(node) = nodes.first() {
        say(format_args!("\n  cortado status --host {}         nodes, regions, leaders", node.listen));
        say(format_args!("  curl http://{}/metrics         what they count", node.http));
    }
    if nodes.len() >= 3 {
        let pids: Vec<String> = nodes.iter().filter_map(|n| n.child.id()).map(|id| id.to_string()).collect();
        say(format_args!("  kill -9 ONE OF {}                 the others go on", pids.join(" ")));
    }
    if temporary {
        say("\nThe data is temporary and goes away at the end; keep it with --data DIR.");
    }
    say("Ctrl-C stops all nodes.");
}

/// Tells of nodes that end; ends with the last.
async fn all_ended(nodes: &mut [NodeProcess]) {
    let mut told = vec![false; nodes.len()];
    while told.contains(&false) {
        tokio::time::sleep(WATCH_INTERVAL).await;
        for (node, told) in nodes.iter_mut().zip(&mut told) {
            if let (false, Ok(Some(status))) = (*told, node.child.try_wait()) {
                say(format_args!("node {} ended ({status}); its log is {}", node.number, node.log.display()));
                *told = true;
            }
        }
    }
}

/// Stops all nodes; whether all have ended.
async fn stop(mut nodes: Vec<NodeProcess>) -> bool {
    for node in &mut nodes {
        // Closing its input asks a node to stop; it stays where it is if it has ended already.
        drop(node.child.stdin.take());
    }
    let mut all_ended = true;
    for node in &mut nodes {
        if tokio::time::timeout(STOP_TIMEOUT, node.child.wait()).await.is_err() {
            say(format_args!("node {} does not stop and is killed", node.number));
            if let Err(error) = node.child.kill().await {
                say(format_args!("node {} cannot be killed: {error}", node.number));
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
    fn nodes_log_as_the_demo_is_told() {
        let logs = LogArgs { log_format: LogFormat::Json, log: Some("debug".to_string()) };
        assert_eq!(log_flags(&logs), ["--log-format", "json", "--log", "debug"]);
        let logs = LogArgs { log_format: LogFormat::Text, log: None };
        assert_eq!(log_flags(&logs), ["--log-format", "text"]);
    }

    #[test]
    fn a_temporary_home_is_kept_while_somebody_needs_it() {
        let home = Home::open(None).unwrap();
        let path = home.path.clone();
        home.close(true);
        assert!(!path.exists());
        let home = Home::open(None).unwrap();
        let path = home.path.clone();
        home.close(false);
        assert!(path.is_dir());
        fs::remove_dir(path).unwrap();
    }
}
