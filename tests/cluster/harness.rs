//! Clusters of real processes on this machine.
//!
//! Nodes get ports that were free a moment ago. A failed test prints the end of each node's log.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::clients;
use crate::exclusive::ClusterLock;
use crate::links::Links;
use crate::process::{POLL_INTERVAL, Process, WAIT_TIMEOUT, cortado, free_port, http_get, metric, run, tail, wait_for};

/// A node of a cluster, and its process while it runs.
pub struct Node {
    pub pg: u16,
    pub listen: u16,
    pub http: u16,
    pub dir: PathBuf,
    pub log: PathBuf,
    process: Option<Process>,
}

/// A cluster of processes in a temporary directory.
pub struct Cluster {
    pub nodes: Vec<Node>,
    /// Flags that all nodes are started with, beside those of each.
    flags: Vec<String>,
    /// What is between the nodes, if they are not beside each other.
    links: Option<Links>,
    _dir: tempfile::TempDir,
}

/// Leaderships, by what began them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    pub by_election: usize,
    pub by_handover: usize,
}

impl Begun {
    /// Those that began after `earlier` was counted.
    pub fn since(self, earlier: Begun) -> Begun {
        Begun {
            by_election: self.by_election - earlier.by_election,
            by_handover: self.by_handover - earlier.by_handover,
        }
    }
}

impl Cluster {
    /// Starts and initialises `count` nodes, and waits until they serve.
    pub async fn start(lock: &ClusterLock, count: usize) -> Cluster {
        Cluster::start_with(lock, count, &[]).await
    }

    /// As [`Cluster::start`], with these flags of `cortado start` for all nodes.
    pub async fn start_with(lock: &ClusterLock, count: usize, flags: &[&str]) -> Cluster {
        let mut cluster = Cluster::new(lock, count, flags);
        cluster.bring_up().await;
        cluster
    }

    /// As [`Cluster::start`], with links between the nodes that have this delay in each direction, and that
    /// [`Cluster::cut_off`] cuts.
    pub async fn start_apart(lock: &ClusterLock, count: usize, delay: Duration) -> Cluster {
        let mut cluster = Cluster::new(lock, count, &[]);
        cluster.links = Some(Links::start(cluster.nodes.iter().map(|node| node.listen).collect(), delay).await);
        cluster.bring_up().await;
        cluster
    }

    /// Cuts these nodes off from all others, and no others. Their clients are not.
    pub fn cut_off(&self, nodes: &[usize]) {
        self.links.as_ref().expect("nodes with links").cut_off(nodes);
    }

    /// Starts `count` nodes, which wait for `cortado init`.
    pub fn start_uninitialised(lock: &ClusterLock, count: usize) -> Cluster {
        let mut cluster = Cluster::new(lock, count, &[]);
        cluster.spawn_all();
        cluster
    }

    fn new(_lock: &ClusterLock, count: usize, flags: &[&str]) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let node = |number: usize| Node {
            pg: free_port(),
            listen: free_port(),
            http: free_port(),
            dir: dir.path().join(format!("node-{number}")),
            log: dir.path().join(format!("node-{number}.log")),
            process: None,
        };
        let flags = flags.iter().map(ToString::to_string).collect();
        Cluster { nodes: (1..=count).map(node).collect(), flags, links: None, _dir: dir }
    }

    fn spawn_all(&mut self) {
        for i in 0..self.nodes.len() {
            self.spawn(i);
        }
    }

    async fn bring_up(&mut self) {
        self.spawn_all();
        self.init();
        for i in 0..self.nodes.len() {
            self.wait_until_serving(i).await;
        }
    }

    /// Initialises the cluster, once all nodes listen.
    pub fn init(&self) {
        let host = format!("127.0.0.1:{}", self.nodes[0].listen);
        wait_for("init to succeed", || {
            let out = run(cortado().args(["init", "--host", &host]));
            out.status.success() || String::from_utf8_lossy(&out.stderr).contains("already initialised")
        });
    }

    /// The command that starts node `i`.
    fn command(&self, i: usize) -> Command {
        let advertised = |(i, node): (usize, &Node)| self.links.as_ref().map_or(node.listen, |links| links.port(i));
        let join: Vec<String> =
            self.nodes.iter().enumerate().map(|node| format!("127.0.0.1:{}", advertised(node))).collect();
        let node = &self.nodes[i];
        let mut command = cortado();
        command
            .args(["start", "--until-stdin-closes", "--cache", "64MiB"])
            .arg("--data")
            .arg(&node.dir)
            .args(["--listen", &format!("127.0.0.1:{}", node.listen), "--pg", &format!("127.0.0.1:{}", node.pg)])
            .args(["--http", &format!("127.0.0.1:{}", node.http), "--join", &join.join(",")])
            .args(&self.flags);
        if self.links.is_some() {
            command.args(["--advertise", &join[i], "--connect-from", &Links::connect_from(i).to_string()]);
        }
        command
    }

    /// Starts the process of node `i`.
    pub fn spawn(&mut self, i: usize) {
        let process = Process::spawn(&mut self.command(i), &self.nodes[i].log);
        self.nodes[i].process = Some(process);
    }

    /// `kill -9`.
    pub fn kill(&mut self, i: usize) {
        self.kill_all(&[i]);
    }

    /// `kill -9` of several nodes at once, before one of them can notice that another is gone.
    pub fn kill_all(&mut self, nodes: &[usize]) {
        let mut processes: Vec<Process> = nodes.iter().filter_map(|i| self.nodes[*i].process.take()).collect();
        processes.iter_mut().for_each(Process::kill);
        for process in &mut processes {
            process.wait();
        }
    }

    /// SIGSTOP: the nodes stand still, with all that they believe, until [`Cluster::resume`].
    pub fn pause(&self, nodes: &[usize]) {
        self.signal(nodes, "STOP");
    }

    /// SIGCONT.
    pub fn resume(&self, nodes: &[usize]) {
        self.signal(nodes, "CONT");
    }

    fn signal(&self, nodes: &[usize], name: &str) {
        for node in nodes {
            self.nodes[*node].process.as_ref().expect("a node that runs").signal(name);
        }
    }

    /// SIGTERM; returns the exit code.
    pub fn terminate(&mut self, i: usize) -> Option<i32> {
        let mut process = self.nodes[i].process.take().unwrap();
        process.signal("TERM");
        process.wait().code()
    }

    /// Waits until `SELECT 1` works on node `i` and its health check passes.
    pub async fn wait_until_serving(&mut self, i: usize) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(client) = clients::connect(&[self.nodes[i].pg]).await
                && client.simple_query("SELECT 1").await.is_ok()
                && self.health(i) == Some(200)
            {
                return;
            }
            let ended = self.nodes[i].process.as_mut().is_none_or(Process::has_ended);
            assert!(
                !ended && Instant::now() < deadline,
                "node {} does not serve:\n{}",
                i + 1,
                tail(&self.nodes[i].log)
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The status of `/healthz` on node `i`.
    pub fn health(&self, i: usize) -> Option<u16> {
        http_get(self.nodes[i].http, "/healthz").map(|(status, _)| status)
    }

    /// A connection to node `i`.
    pub async fn connect(&self, i: usize) -> Client {
        clients::connect_with_retries(self.nodes[i].pg).await
    }

    /// The PostgreSQL ports of these nodes.
    pub fn gateways(&self, nodes: &[usize]) -> Vec<u16> {
        nodes.iter().map(|i| self.nodes[*i].pg).collect()
    }

    /// `cortado status --json` through node `i`.
    pub fn status(&self, i: usize) -> serde_json::Value {
        let host = format!("127.0.0.1:{}", self.nodes[i].listen);
        let out = run(cortado().args(["status", "--json", "--host", &host]));
        serde_json::from_slice(&out.stdout).unwrap_or(serde_json::Value::Null)
    }

    /// Runs `cortado check table` through node `i`: the indexes of all tables equal them.
    pub fn check_tables(&self, i: usize) {
        let host = format!("127.0.0.1:{}", self.nodes[i].listen);
        let out = run(cortado().args(["check", "table", "--host", &host]));
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.lines().all(|line| line.ends_with(": ok")), "{text}{out:?}");
        assert!(!text.is_empty(), "there are tables");
    }

    /// The node (from 0) that leads a region, once any node knows it.
    pub fn leader_of(&self, region: u64) -> usize {
        let mut found = None;
        let leader = |node: usize| {
            let status = self.status(node);
            let region = status["regions"].as_array()?.iter().find(|r| r["id"] == region)?.clone();
            Some(region["leader"].as_u64()? as usize - 1)
        };
        wait_for("a leader", || {
            found = (0..self.nodes.len()).find_map(leader);
            found.is_some()
        });
        found.unwrap()
    }

    /// The number of regions that node `i` leads now, by its own metric; 0 if it does not run.
    pub fn leads(&self, i: usize) -> usize {
        metric(self.nodes[i].http, "raftstore_leaders").unwrap_or(0.0) as usize
    }

    /// Waits until these nodes lead both regions, by their own metrics.
    pub fn wait_until_they_lead(&self, nodes: &[usize]) {
        wait_for("new leaders", || nodes.iter().map(|node| self.leads(*node)).sum::<usize>() == 2);
    }

    /// A metric, summed over all nodes, which must run.
    pub fn sum_metric(&self, name: &str) -> f64 {
        self.nodes.iter().map(|node| metric(node.http, name).expect("a node that runs")).sum()
    }

    /// The number of leaderships that these nodes have begun since they started, by their own metrics.
    pub fn begun(&self, nodes: &[usize]) -> Begun {
        let count = |by: &str| {
            let name = format!("raftstore_leaderships_total{{by=\"{by}\"}}");
            nodes.iter().map(|i| metric(self.nodes[*i].http, &name).expect("a node that runs") as usize).sum()
        };
        Begun { by_election: count("election"), by_handover: count("handover") }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        self.kill_all(&all);
        if std::thread::panicking() {
            for (i, node) in self.nodes.iter().enumerate() {
                println!("---- log of node {}\n{}", i + 1, tail(&node.log));
            }
        }
    }
}
