//! A database system that runs the cases, and Cortado as one: sessions alternate between two gateways, the one that
//! leads the table's region and another one.

use std::collections::BTreeSet;

use super::session::{Block, Session};
use crate::harness::Cluster;
use crate::process::{cortado, run};

/// The region that holds all tables.
const DATA_REGION: u64 = 2;
/// The session whose wait closes a cycle begins to wait when the others have for so long, and have said so.
const LONG_MS: u64 = 500;

pub trait System {
    fn name(&self) -> &'static str;
    /// Opens the session of this number.
    fn open(&mut self, number: usize) -> Session;
    /// The process ids of the sessions that wait for a transaction that has not ended.
    fn waiting(&mut self, sessions: &[Session]) -> Vec<u32>;
    /// Whether all that wait have done so for long enough for the next one to be the one that closes a cycle.
    fn have_waited_long(&mut self, sessions: &[Session]) -> bool;
}

/// Cortado through two gateways.
pub struct Gateways<'a> {
    cluster: &'a Cluster,
    nodes: [usize; 2],
}

impl<'a> Gateways<'a> {
    pub fn of(cluster: &'a Cluster) -> Gateways<'a> {
        let leader = cluster.leader_of(DATA_REGION);
        Gateways { cluster, nodes: [leader, (leader + 1) % cluster.nodes.len()] }
    }

    /// The rows of `cortado locks` whose transaction waits.
    fn waits(&self) -> Vec<serde_json::Value> {
        let host = format!("127.0.0.1:{}", self.cluster.nodes[self.nodes[0]].listen);
        let out = run(cortado().args(["locks", "--json", "--host", &host]));
        assert!(out.status.success(), "{out:?}");
        let page: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let locks = page["locks"].as_array().unwrap();
        locks.iter().filter(|lock| !lock["wait"].is_null()).cloned().collect()
    }
}

fn pid(transaction: &serde_json::Value) -> Option<u32> {
    Some(transaction["pid"].as_u64()? as u32)
}

impl System for Gateways<'_> {
    fn name(&self) -> &'static str {
        "Cortado"
    }

    fn open(&mut self, number: usize) -> Session {
        Session::open(self.cluster.nodes[self.nodes[number % 2]].pg)
    }

    fn waiting(&mut self, sessions: &[Session]) -> Vec<u32> {
        // The locks of a transaction are given up a moment after its client knows that it has ended.
        let is_alive = |session: &&Session| session.is_running() || session.block != Block::None;
        let alive: BTreeSet<u32> = sessions.iter().filter(is_alive).map(|session| session.pid).collect();
        let holds = |holder: &serde_json::Value| pid(holder).is_some_and(|pid| alive.contains(&pid));
        let waits = self.waits();
        // A session can hold an advisory lock outside of a block.
        let is_held = |lock: &&serde_json::Value| {
            lock["table"] == "advisory lock" || lock["wait"]["for"].as_array().unwrap().iter().any(holds)
        };
        waits.iter().filter(is_held).filter_map(|lock| pid(&lock["transaction"])).collect()
    }

    fn have_waited_long(&mut self, sessions: &[Session]) -> bool {
        let waits = self.waits();
        let running = sessions.iter().filter(|session| session.is_running()).count();
        waits.len() >= running && waits.iter().all(|lock| lock["wait"]["ms"].as_u64().unwrap() >= LONG_MS)
    }
}
