//! `cortado demo`: a whole cluster on this machine, for trying things out.
//!
//! Each node is a child process of its own, so that it can be killed to see what happens. A node stops when its standard input
//! closes, so none outlives the demo, however that ends.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::cli::DemoArgs;
use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::node::proto::InfoRequest;

/// Nodes listen for each other this far above their PostgreSQL port.
const LISTEN_OFFSET: u16 = 1000;
/// And for HTTP this far above it.
const HTTP_OFFSET: u16 = 2000;
/// Nodes must be up, and later serve, within this time.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Nodes must stop within this time before they are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

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

/// Runs the demo until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), DemoError> {
    check_ports(args)?;
    let io_error = |what: &str| {
        let what = what.to_string();
        move |source| DemoError::Io { what, source }
    };
    let (dir, temporary) = match &args.data {
        Some(dir) => (dir.clone(), None),
        None => {
            let temporary = tempfile::Builder::new().prefix("cortado-demo-").tempdir();
            let temporary = temporary.map_err(io_error("temporary directory"))?;
            (temporary.path().to_path_buf(), Some(temporary))
        }
    };
    fs::create_dir_all(&dir).map_err(io_error(&dir.display().to_string()))?;
    println!("Starting {} node(s) in {} ...", args.nodes, dir.display());
    let mut nodes = Vec::new();
    for number in 1..=args.nodes {
        nodes.push(spawn(args, number, &dir).map_err(io_error("cannot start a node"))?);
    }
    let outcome = tokio::select! {
        outcome = bring_up(&mut nodes, &dir) => outcome.map(|()| true),
        () = crate::signals::stop_requested() => Ok(false),
    };
    if let Ok(true) = outcome {
        greet(&nodes, temporary.is_some());
        watch(&mut nodes).await;
    }
    println!("\nStopping ...");
    stop(nodes).await;
    if let Some(temporary) = temporary {
        temporary.close().map_err(io_error("temporary directory"))?;
    }
    outcome.map(|_| ())
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

fn spawn(args: &DemoArgs, number: u16, dir: &Path) -> io::Result<NodeProcess> {
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
        .stdin(Stdio::piped())
        .stdout(log_file.try_clone()?)
        .stderr(log_file)
        .spawn()?;
    Ok(NodeProcess { number, child, pg, listen: listen.into(), http, log })
}

/// Waits for all nodes, initialises the cluster if it is new, and waits until every node serves.
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

/// Waits until the node answers; tells whether it belongs to a cluster already.
async fn wait_for_node(node: &mut NodeProcess) -> Result<bool, DemoError> {
    loop {
        check_alive(node)?;
        if let Ok(mut client) = client::connect(&node.listen).await
            && let Ok(info) = client.info(InfoRequest {}).await
        {
            return Ok(info.into_inner().cluster_id != 0);
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
    println!("\nThe cluster is up. Every node takes every statement:\n");
    for node in nodes {
        println!("  node {}   psql -h 127.0.0.1 -p {} -U postgres", node.number, node.pg.port());
    }
    println!("\nTry:");
    println!("  CREATE TABLE t (id bigint PRIMARY KEY, v text);");
    println!("  INSERT INTO t VALUES (1, 'one'), (2, 'two');      -- on one node");
    println!("  SELECT * FROM t ORDER BY id;                      -- on another");
    println!("  EXPLAIN SELECT * FROM t WHERE id = 1;");
    if let Some(node) = nodes.first() {
        println!("\n  cortado status --host {}         nodes, regions, leaders", node.listen);
        println!("  curl http://{}/metrics         what they count", node.http);
    }
    if nodes.len() >= 3 {
        let pids: Vec<String> = nodes.iter().filter_map(|n| n.child.id()).map(|id| id.to_string()).collect();
        println!("  kill -9 ONE OF {}                 the others go on", pids.join(" "));
    }
    if temporary {
        println!("\nThe data is temporary and goes away at the end; keep it with --data DIR.");
    }
    println!("Ctrl-C stops all nodes.");
}

/// Until a stop is asked for; tells of nodes that end on the way.
async fn watch(nodes: &mut [NodeProcess]) {
    let mut told = vec![false; nodes.len()];
    let mut poll = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            () = crate::signals::stop_requested() => return,
            _ = poll.tick() => {}
        }
        for (node, told) in nodes.iter_mut().zip(&mut told) {
            if let (false, Ok(Some(status))) = (*told, node.child.try_wait()) {
                println!("node {} ended ({status}); its log is {}", node.number, node.log.display());
                *told = true;
            }
        }
        if told.iter().all(|told| *told) {
            return;
        }
    }
}

async fn stop(mut nodes: Vec<NodeProcess>) {
    for node in &mut nodes {
        // Closing its input asks a node to stop; it stays where it is if it has ended already.
        drop(node.child.stdin.take());
    }
    for node in &mut nodes {
        if tokio::time::timeout(STOP_TIMEOUT, node.child.wait()).await.is_err() {
            println!("node {} does not stop and is killed", node.number);
            if let Err(error) = node.child.kill().await {
                println!("node {} cannot be killed: {error}", node.number);
            }
        }
    }
}
