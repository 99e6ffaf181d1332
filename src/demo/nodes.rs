//! The nodes of the demo: their ports and flags, their processes from the start to the end.
//!
//! With a distance between them, a node listens at another address than it advertises. There its proxies listen. So the
//! addresses by which nodes know each other are the same with and without, and a cluster can be started again either
//! way.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use raftstore::transport::ClusterId;
use raftstore::{RegionId, StoreId};
use tokio::process::{Child, Command};

use super::distance::{self, Plan};
use super::error::{DemoError, START_TIMEOUT};
use super::regions::Regions;
use crate::cli::{DemoArgs, LogArgs};
use crate::client;
use crate::config::HostPort;
use crate::console::show_line;

/// Distance from a node's PostgreSQL port to the port that it advertises to other nodes.
const ADVERTISE_OFFSET: u16 = 1000;
/// Distance from a node's PostgreSQL port to its HTTP port.
const HTTP_OFFSET: u16 = 2000;
/// Distance from a node's PostgreSQL port to its port behind its proxies.
const LISTEN_OFFSET: u16 = 1100;
/// Distance from the first PostgreSQL port to the HTTP port of the proxies.
const METRICS_OFFSET: u16 = 1200;
/// A node that has not stopped after this time is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The interval at which the demo checks whether its nodes still run.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// The regions of a new cluster: the system region, and that of all tables.
const REGIONS: [RegionId; 2] = [RegionId::SYSTEM, RegionId::FIRST_DATA];

/// Which nodes there are, and their addresses.
pub(super) struct Layout {
    nodes: u16,
    first_pg: u16,
    /// Further flags of every node.
    node_flags: Vec<String>,
    regions: Option<Regions>,
}

/// A running node.
pub(super) struct NodeProcess {
    pub(super) number: u16,
    pub(super) child: Child,
    pub(super) pg: SocketAddr,
    /// Where it listens for other nodes, without a proxy.
    pub(super) listen: HostPort,
    pub(super) http: SocketAddr,
    log: PathBuf,
}

impl Layout {
    /// The layout that the flags give.
    pub(super) fn new(args: &DemoArgs, regions: Option<Regions>) -> Result<Arc<Layout>, DemoError> {
        let nodes = regions.as_ref().map_or(args.nodes, |regions| regions.names.len() as u16);
        if args.pg_port > u16::MAX - HTTP_OFFSET - nodes {
            return Err(DemoError::PortTooHigh(args.pg_port));
        }
        Ok(Arc::new(Layout { nodes, first_pg: args.pg_port, node_flags: args.node_flag.clone(), regions }))
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> u16 {
        self.nodes
    }

    /// The regions, if there are any. Node `n` is in the region at `n - 1`.
    pub(super) fn regions(&self) -> Option<&Regions> {
        self.regions.as_ref()
    }

    /// The distance between the regions, if there is any.
    pub(super) fn distance(&self) -> Option<&Plan> {
        self.regions.as_ref()?.distance.as_ref()
    }

    /// The address of the page with the counters of the proxies, if there are any.
    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.distance().map(|_| loopback(self.first_pg + METRICS_OFFSET))
    }

    fn port(&self, number: u16, offset: u16) -> SocketAddr {
        loopback(self.first_pg + (number - 1) + offset)
    }

    fn advertised(&self, number: u16) -> SocketAddr {
        self.port(number, ADVERTISE_OFFSET)
    }

    fn listen(&self, number: u16) -> SocketAddr {
        self.port(number, if self.distance().is_some() { LISTEN_OFFSET } else { ADVERTISE_OFFSET })
    }

    /// For each node the address that it advertises, and the one at which it listens.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        (1..=self.nodes).map(|number| (self.advertised(number), self.listen(number)))
    }

    /// Checks all ports before any node is started, so that a port in use is one error line.
    pub(super) fn check_ports(&self) -> Result<(), DemoError> {
        let of_node = |number| [self.port(number, 0), self.advertised(number), self.port(number, HTTP_OFFSET)];
        let behind = self.distance().map(|_| (1..=self.nodes).map(|number| self.listen(number)));
        let all = (1..=self.nodes).flat_map(of_node).chain(behind.into_iter().flatten()).chain(self.metrics());
        for address in all {
            TcpListener::bind(address).map_err(|source| DemoError::Port { port: address.port(), source })?;
        }
        Ok(())
    }

    /// The flags of a node about its place.
    fn place_flags(&self, number: u16) -> Vec<String> {
        let place = usize::from(number - 1);
        let flag = |name: &str, value: String| [name.to_string(), value];
        let region = self.regions.as_ref().and_then(|regions| regions.names.get(place));
        let locality = match region {
            Some(name) => format!("region={name},zone={name}-1"),
            None => format!("zone=z{number}"),
        };
        let advertise = [
            flag("--advertise", self.advertised(number).to_string()),
            flag("--connect-from", distance::connect_from(place).to_string()),
        ];
        let advertise = self.distance().map(|_| advertise).into_iter().flatten();
        [flag("--locality", locality)].into_iter().chain(advertise).flatten().collect()
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Starts the process of a node.
pub(super) fn spawn(layout: &Layout, logs: &LogArgs, number: u16, dir: &Path) -> io::Result<NodeProcess> {
    let [pg, listen, http] = [layout.port(number, 0), layout.listen(number), layout.port(number, HTTP_OFFSET)];
    let join: Vec<String> = layout.addresses().map(|(advertised, _)| advertised.to_string()).collect();
    let log = dir.join(format!("node-{number}.log"));
    let log_file = File::options().create(true).append(true).open(&log)?;
    let child = Command::new(std::env::current_exe()?)
        .arg("start")
        .arg("--data")
        .arg(dir.join(format!("node-{number}")))
        .args(["--listen", &listen.to_string(), "--pg", &pg.to_string(), "--http", &http.to_string()])
        .args(["--join", &join.join(",")])
        .args(layout.place_flags(number))
        .args(["--cache", "128MiB", "--until-stdin-closes"])
        .args(&layout.node_flags)
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
pub(super) async fn start_cluster(nodes: &mut [NodeProcess], dir: &Path) -> Result<(), DemoError> {
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
        if let Ok(info) = client::info(&node.listen, None).await {
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

/// Makes the first node the leader of all regions, and waits until it is.
pub(super) async fn lead_from_first(nodes: &mut [NodeProcess], dir: &Path) -> Result<(), DemoError> {
    let work = async {
        let info = client::info(&nodes[0].listen, None).await?;
        let cluster = info.cluster_id.unwrap_or(ClusterId::new(0));
        for region in REGIONS {
            // The leader may change meanwhile, so all are asked until one has done it.
            while !any_transfers(nodes, cluster, region, StoreId::new(info.store_id)).await? {
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

async fn any_transfers(
    nodes: &mut [NodeProcess],
    cluster: ClusterId,
    region: RegionId,
    to: StoreId,
) -> Result<bool, DemoError> {
    for node in nodes {
        check_alive(node)?;
        if client::transfer_leader(&node.listen, cluster, region, to).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reports each node that ends by itself. Completes when the last one has ended.
pub(super) async fn watch_until_all_ended(nodes: &mut [NodeProcess]) {
    let mut has_ended = vec![false; nodes.len()];
    while has_ended.contains(&false) {
        tokio::time::sleep(WATCH_INTERVAL).await;
        for (node, has_ended) in nodes.iter_mut().zip(&mut has_ended) {
            if let (false, Ok(Some(status))) = (*has_ended, node.child.try_wait()) {
                show_line(format_args!("node {} ended ({status}); its log is {}", node.number, node.log.display()));
                *has_ended = true;
            }
        }
    }
}

/// Stops all nodes. Returns whether all have ended.
pub(super) async fn stop(mut nodes: Vec<NodeProcess>) -> bool {
    for node in &mut nodes {
        // A node stops when its standard input is closed.
        drop(node.child.stdin.take());
    }
    let mut all_ended = true;
    for node in &mut nodes {
        if tokio::time::timeout(STOP_TIMEOUT, node.child.wait()).await.is_err() {
            show_line(format_args!("node {} does not stop and is killed", node.number));
            if let Err(error) = node.child.kill().await {
                show_line(format_args!("node {} cannot be killed: {error}", node.number));
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
}
