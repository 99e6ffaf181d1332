//! The ways to read: where the clients are, how the nodes are started, what each session sets, and what the distance
//! may cost.

use crate::load::Statements;

/// Where the clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The region whose node leads the table
    ByLeader,
    /// Another region, whose node has a replica
    ByFollower,
}

/// How the nodes of a cluster are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nodes {
    /// Whether there is a distance between the regions.
    pub apart: bool,
    /// Whether leaders push grants.
    pub push: bool,
}

impl Nodes {
    /// All of them.
    pub const ALL: [Nodes; 4] = [
        Nodes { apart: false, push: true },
        Nodes { apart: false, push: false },
        Nodes { apart: true, push: true },
        Nodes { apart: true, push: false },
    ];

    /// The flags of each node.
    pub fn flags(self) -> &'static [&'static str] {
        if self.push { &[] } else { &["--node-flag=--push-interval=0"] }
    }
}

/// A way to read.
#[derive(Debug)]
pub struct Mode {
    pub name: &'static str,
    pub client: Client,
    /// Whether leaders push grants.
    pub push: bool,
    /// What a session sets before it reads.
    pub settings: &'static [&'static str],
}

/// What a distance may cost a way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Whatever it costs: the reads cross it, or there is none
    Any,
    /// A tenth of the rate
    Little,
    /// One round trip, and a tenth of the time with it
    RoundTrip,
}

impl Mode {
    /// What a distance may cost the first statements of transactions, or later ones.
    pub fn cost(&self, statements: Statements) -> Cost {
        match (self.name, statements) {
            ("read index", _) | ("grant" | FOLLOWER, Statements::First) => Cost::RoundTrip,
            ("grant" | FOLLOWER, Statements::Later) | ("session snapshot", _) => Cost::Little,
            _ => Cost::Any,
        }
    }
}

/// The one that the others are compared with.
pub const BASELINE: &str = "remote leader";

const CLOSEST: &str = "SET cortado.replica_read = 'closest'";

/// The way to read whose first replica is beside the client, in the comparison without a distance.
pub const FOLLOWER: &str = "grant and push";
/// The way to read at a leader beside the client.
pub const LEADER: &str = "leader beside client";
/// Published rates of follower reads in another region over those of its remote leader, by keys of a scan.
pub const PUBLISHED: [(i64, f64); 6] = [(10, 1.2), (100, 9.8), (200, 12.0), (500, 14.0), (1_000, 14.0), (1_500, 35.0)];

/// All of them, in the order of the table.
pub const MODES: [Mode; 7] = [
    Mode { name: BASELINE, client: Client::ByFollower, push: true, settings: &[] },
    Mode {
        name: "read index",
        client: Client::ByFollower,
        push: false,
        settings: &[CLOSEST, "SET cortado.grants = off"],
    },
    Mode { name: "grant", client: Client::ByFollower, push: false, settings: &[CLOSEST] },
    Mode { name: FOLLOWER, client: Client::ByFollower, push: true, settings: &[CLOSEST] },
    Mode {
        name: "session snapshot",
        client: Client::ByFollower,
        push: true,
        settings: &[CLOSEST, "SET cortado.session_snapshot = on"],
    },
    Mode { name: LEADER, client: Client::ByLeader, push: true, settings: &[] },
    Mode {
        name: "follower, client by leader",
        client: Client::ByLeader,
        push: true,
        settings: &["SET cortado.replica_read = 'follower'"],
    },
];
