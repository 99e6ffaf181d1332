//! Golden scripts of the region cache: what it learns from descriptors and failures, and the routes it then returns.
//!
//! Every command ends with a check of the cache's invariants. `UPDATE_GOLDENFILES=1` rewrites the expected output.

use std::error::Error;
use std::fmt::Write as _;

use goldenscript::Context;
use kv::api::{KeyError, ServerError};
use kv::client::{CallError, RegionCache, Route};
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionError, RegionId, StoreId};

type Outcome = Result<String, Box<dyn Error>>;

#[derive(goldenscript::Command)]
enum Command {
    /// Starts with an empty cache: new capacity=N
    New {
        #[arg(key)]
        capacity: usize,
    },
    /// Inserts a region: insert ID START END version=N conf=N stores="1 2 3L" leader=STORE
    Insert {
        id: u64,
        start: String,
        end: String,
        #[arg(key)]
        version: Option<u64>,
        #[arg(key)]
        conf: Option<u64>,
        #[arg(key)]
        stores: Option<String>,
        #[arg(key)]
        leader: Option<u64>,
    },
    /// Looks up a storage key: lookup KEY
    Lookup(String),
    /// Looks up the last keys before a bound: lookup_before BOUND
    LookupBefore(String),
    /// Reports a failed call along the route of a key. `sent` names the store of the call if the route has changed
    /// since, `attempt` its attempt.
    Fail {
        key: String,
        kind: String,
        #[arg(key)]
        leader: Option<u64>,
        #[arg(key)]
        sent: Option<u64>,
        #[arg(key)]
        attempt: Option<usize>,
        #[arg(key)]
        id: Option<u64>,
        #[arg(key)]
        start: Option<String>,
        #[arg(key)]
        end: Option<String>,
        #[arg(key)]
        version: Option<u64>,
        #[arg(key)]
        conf: Option<u64>,
        #[arg(key)]
        stores: Option<String>,
    },
    /// Reports a successful call along the route of a key.
    Confirm(String),
    /// Prints all routes.
    Show,
}

struct Runner {
    cache: RegionCache,
}

fn peers(stores: Option<&str>) -> Result<Vec<PeerMeta>, Box<dyn Error>> {
    let parse = |text: &str| {
        let (number, role) = match text.strip_suffix('L') {
            Some(number) => (number, PeerRole::Learner),
            None => (text, PeerRole::Voter),
        };
        let number: u64 = number.parse()?;
        Ok(PeerMeta { id: PeerId::new(number * 10), store: StoreId::new(number), role })
    };
    stores.unwrap_or("1 2 3").split_whitespace().map(parse).collect()
}

fn show(route: &Route) -> String {
    let Region { id, start, end, epoch, peers } = &*route.region;
    let stores: Vec<String> = peers.iter().map(|p| p.store.to_string()).collect();
    format!(
        "region {id} [{}, {}) epoch {}.{} stores {} ask {}",
        start.escape_ascii(),
        end.escape_ascii(),
        epoch.version,
        epoch.conf_ver,
        stores.join(" "),
        route.store
    )
}

fn show_option(route: Option<Route>) -> String {
    route.map_or_else(|| "unknown".to_owned(), |route| show(&route))
}

impl Runner {
    fn fail(&mut self, command: &Command) -> Outcome {
        let Command::Fail { key, kind, leader, sent, attempt, id, start, end, version, conf, stores } = command else {
            return Err("not a failure".into());
        };
        let mut route = self.cache.lookup(key.as_bytes()).ok_or("the key's region is not known")?;
        if let Some(sent) = sent {
            route.store = StoreId::new(*sent);
        }
        route.attempt = attempt.unwrap_or(route.attempt);
        let (region, store) = (route.region.id, route.store);
        let error = match kind.as_str() {
            "unreachable" => CallError::Unreachable { store, why: "refused".to_owned() },
            "lost" => CallError::Lost { store, why: "silence".to_owned() },
            "undetermined" => ServerError::Undetermined(region).into(),
            "too_large" => ServerError::TooLarge { bytes: 9, limit: 8 }.into(),
            "invalid" => ServerError::Invalid("two of one key".to_owned()).into(),
            "failed" => ServerError::Failed("poisoned".to_owned()).into(),
            "key" => ServerError::from(KeyError::Locked(Vec::new())).into(),
            "not_leader" => {
                let leader = leader.map(|store| PeerMeta {
                    id: PeerId::new(store * 10),
                    store: StoreId::new(store),
                    role: PeerRole::Voter,
                });
                ServerError::from(RegionError::NotLeader { region, leader }).into()
            }
            "not_found" => ServerError::from(RegionError::RegionNotFound { region, store }).into(),
            "not_in_region" => ServerError::from(RegionError::KeyNotInRegion { region }).into(),
            "busy" => ServerError::from(RegionError::ServerBusy { store, what: "queue".to_owned() }).into(),
            "stale" => ServerError::from(RegionError::StaleCommand { region }).into(),
            "not_ready" => ServerError::from(RegionError::NotReady { region, why: "snapshot".to_owned() }).into(),
            "epoch" => {
                let bytes =
                    |given: &Option<String>, old: &[u8]| given.as_ref().map_or(old.to_vec(), |g| g.clone().into());
                let current = Region {
                    id: id.map_or(region, RegionId::new),
                    start: bytes(start, &route.region.start),
                    end: bytes(end, &route.region.end),
                    epoch: Epoch {
                        version: version.unwrap_or(route.region.epoch.version),
                        conf_ver: conf.unwrap_or(route.region.epoch.conf_ver),
                    },
                    peers: stores.as_ref().map_or(Ok(route.region.peers.clone()), |s| peers(Some(s)))?,
                };
                ServerError::from(RegionError::EpochNotMatch { current: Box::new(current) }).into()
            }
            other => return Err(format!("unknown failure {other}").into()),
        };
        let class = self.cache.on_failure(&route, &error);
        let class = class.map_or("final", |class| class.name());
        Ok(format!("{class}; {}\n", show_option(self.cache.lookup(key.as_bytes()))))
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Outcome {
        let mut output = String::new();
        match command {
            Command::New { capacity } => self.cache = RegionCache::new(*capacity),
            Command::Insert { id, start, end, version, conf, stores, leader } => {
                let region = Region {
                    id: RegionId::new(*id),
                    start: start.clone().into(),
                    end: end.clone().into(),
                    epoch: Epoch { version: version.unwrap_or(1), conf_ver: conf.unwrap_or(1) },
                    peers: peers(stores.as_deref())?,
                };
                let taken = self.cache.insert(region, leader.map(StoreId::new));
                writeln!(output, "{}", if taken { "taken" } else { "refused" })?;
            }
            Command::Lookup(key) => writeln!(output, "{}", show_option(self.cache.lookup(key.as_bytes())))?,
            Command::LookupBefore(bound) => {
                writeln!(output, "{}", show_option(self.cache.lookup_before(bound.as_bytes())))?
            }
            Command::Fail { .. } => output = self.fail(command)?,
            Command::Confirm(key) => {
                let route = self.cache.lookup(key.as_bytes()).ok_or("unknown")?;
                writeln!(output, "{}", if route.unproven { "was unproven" } else { "was proven" })?;
                self.cache.confirm(route.region.id);
            }
            Command::Show => {
                for route in self.cache.routes() {
                    writeln!(output, "{}", show(&route))?;
                }
            }
        }
        self.cache.check();
        Ok(output)
    }
}

fn script(name: &str) {
    let path = format!("{}/tests/scripts/client/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Runner { cache: RegionCache::new(100) }, path).expect("script runs");
}

#[test]
fn lookups() {
    script("lookups");
}

#[test]
fn descriptors() {
    script("descriptors");
}

#[test]
fn failures() {
    script("failures");
}

#[test]
fn eviction() {
    script("eviction");
}
