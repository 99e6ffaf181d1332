//! Golden scripts of the pure peer, in `tests/scripts/peer/`: three or five replicas, each with its own log, over a
//! network and disks that act only on command.
//!
//! Every printed line is an effect. After a change, rewrite the scripts with `UPDATE_GOLDENFILES=1` and review the
//! difference.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use engine::disk::SimDisk;
use engine::log::{Durability, LogBatch, LogEngine, LogOptions, LogWriter};
use goldenscript::{ArgumentConsumer, Command, Context, Runner};
use raft::eraftpb::{Entry, HardState, Message, MessageType};

use super::effects::position;
use super::lease::Lease;
use super::proposal::Proposal;
use super::read::ReadReady;
use super::{Peer, PeerStart};
use crate::command::encode_write;
use crate::config::StoreConfig;
use crate::error::{ProposeError, RegionError};
use crate::ports::RaftMessage;
use crate::records::LogPosition;
use crate::region::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
use crate::reply::testing::{Probe, probe};
use crate::storage::{self, LogOp};
use crate::time::MonoTime;

const ID: RegionId = RegionId::new(7);
const EPOCH: Epoch = Epoch { conf_ver: 1, version: 1 };

/// The outcome that a labelled request waits for.
enum Waiting {
    Write(Probe<Result<LogIndex, ProposeError>>),
    Read(Probe<Result<ReadReady, RegionError>>),
}

struct Node {
    peer: Peer,
    log: LogEngine,
    writer: LogWriter,
    /// Writes not handed to the log yet.
    unwritten: VecDeque<(LogBatch, Option<u64>)>,
    /// Applied positions not reported to the peer yet.
    unapplied: VecDeque<LogPosition>,
}

struct Script {
    disks: BTreeMap<u64, Arc<SimDisk>>,
    nodes: BTreeMap<u64, Node>,
    network: VecDeque<RaftMessage>,
    /// Replicas that neither send nor receive.
    isolated: BTreeSet<u64>,
    region: Arc<Region>,
    now: MonoTime,
    /// Labels and the outcomes they wait for, in the order of the requests.
    waiting: Vec<(String, Waiting)>,
    out: String,
}

fn config() -> StoreConfig {
    StoreConfig::default()
}

fn peer(id: u64) -> PeerMeta {
    PeerMeta { id: PeerId::new(id), store: StoreId::new(id), role: PeerRole::Voter }
}

fn region(replicas: u64) -> Arc<Region> {
    let peers = (1..=replicas).map(peer).collect();
    Arc::new(Region { id: ID, start: Vec::new(), end: Vec::new(), epoch: EPOCH, peers })
}

impl Node {
    /// Opens a replica on its disk; bootstraps a fresh disk. Nothing counts as applied beyond the bootstrap.
    fn open(id: u64, region: &Arc<Region>, disk: &SimDisk, now: MonoTime) -> Node {
        let options = LogOptions { identity: Some(id.into()), ..LogOptions::default() };
        let (log, mut writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
        let start = crate::records::BOOTSTRAP_POSITION;
        if log.bounds(storage::group(ID)).is_none() {
            let mut batch = LogBatch::new();
            storage::restart(storage::group(ID), start, &HardState { term: 1, vote: 0, commit: 1 }, &mut batch);
            log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
            writer.turn();
        }
        let recovered = storage::recover(&log, ID).unwrap().unwrap();
        let start = PeerStart {
            region: Arc::clone(region),
            me: peer(id),
            config: Arc::new(config()),
            log: log.clone(),
            recovered,
            applied: start,
            seed: id,
        };
        let peer = Peer::new(start, now).unwrap();
        Node { peer, log, writer, unwritten: VecDeque::new(), unapplied: VecDeque::new() }
    }

    /// Runs all pending log writes.
    fn write(&mut self, now: MonoTime) -> bool {
        let mut last = None;
        for (batch, number) in self.unwritten.drain(..) {
            self.log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
            last = last.max(number);
        }
        self.writer.turn();
        if let Some(number) = last {
            self.peer.on_durable(number, now);
        }
        last.is_some()
    }

    fn apply(&mut self, now: MonoTime) -> bool {
        let last = self.unapplied.drain(..).next_back();
        if let Some(position) = last {
            self.peer.on_applied(position, now);
        }
        last.is_some()
    }
}

impl Script {
    fn new(replicas: u64) -> Script {
        let now = MonoTime::from_millis(10_000);
        let region = region(replicas);
        let disks: BTreeMap<u64, Arc<SimDisk>> = (1..=replicas).map(|id| (id, SimDisk::new())).collect();
        let nodes = disks.iter().map(|(id, disk)| (*id, Node::open(*id, &region, disk, now))).collect();
        Script {
            disks,
            nodes,
            network: VecDeque::new(),
            isolated: BTreeSet::new(),
            region,
            now,
            waiting: Vec::new(),
            out: String::new(),
        }
    }

    fn node(&mut self, id: u64) -> Result<&mut Node, Box<dyn Error>> {
        self.nodes.get_mut(&id).ok_or_else(|| "no such replica".into())
    }

    /// Takes the effects of a replica: prints them and queues its writes, messages and applies.
    fn effects(&mut self, id: u64) -> bool {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        let effects = node.peer.effects(now);
        let mut lines = Vec::new();
        let mut batch = LogBatch::new();
        for op in effects.log {
            lines.push(format!("{id} writes {}", show_op(&op)));
            op.add_to(ID, &mut batch);
        }
        if effects.write.is_some() {
            node.unwritten.push_back((batch, effects.write));
        }
        for event in effects.events {
            lines.push(format!("{id} announces {event:?}"));
        }
        for message in effects.messages {
            lines.push(show_message(&message));
            self.network.push_back(message);
        }
        if let Some(committed) = effects.committed {
            lines.push(format!("{id} applies {}", show_entries(&committed.entries)));
            let last = committed.entries.last().unwrap();
            node.unapplied.push_back(position(last.index, last.term));
            for (index, reply) in committed.replies {
                reply.send(Ok(LogIndex::new(index)));
            }
        }
        for line in &lines {
            writeln!(self.out, "{line}").unwrap();
        }
        self.print_answers();
        !lines.is_empty()
    }

    fn print_answers(&mut self) {
        let out = &mut self.out;
        self.waiting.retain(|(label, waiting)| {
            let answer = match waiting {
                Waiting::Write(probe) => probe
                    .try_get()
                    .map(|outcome| outcome.map_or_else(|e| e.to_string(), |index| format!("committed at {index}"))),
                Waiting::Read(probe) => probe.try_get().map(|answer| {
                    answer.map_or_else(|e| e.to_string(), |ready| format!("may read at {}", ready.index))
                }),
            };
            answer.as_ref().is_none_or(|answer| writeln!(out, "{label}: {answer}").is_err())
        });
    }

    fn deliver(&mut self, only: Option<u64>) -> bool {
        let due: Vec<RaftMessage> = self.network.drain(..).collect();
        let (now, mut any) = (self.now, false);
        for message in due {
            let to = message.to.id.get();
            if only.is_some_and(|only| only != to) {
                self.network.push_back(message);
                continue;
            }
            any = true;
            if ![to, message.from.id.get()].iter().any(|id| self.isolated.contains(id)) {
                self.step(message, now);
            }
        }
        any
    }

    fn step(&mut self, message: RaftMessage, now: MonoTime) {
        let (to, shown) = (message.to.id.get(), show_message(&message));
        if let Some(node) = self.nodes.get_mut(&to)
            && let Err(refusal) = node.peer.step(message, now)
        {
            writeln!(self.out, "{to} refuses {shown}: {refusal:?}").unwrap();
        }
    }

    /// Delivers a late message, one that no replica has just sent.
    fn late(&mut self, from: u64, to: u64, term: u64, kind: &str) -> Result<(), Box<dyn Error>> {
        let (kind, reject) = match kind {
            "pre-vote" => (MessageType::MsgRequestPreVote, false),
            "vote" => (MessageType::MsgRequestVote, false),
            "rejection" => (MessageType::MsgRequestPreVoteResponse, true),
            other => return Err(format!("unknown kind {other}").into()),
        };
        // With an up-to-date log position, so that the log is no reason to refuse it.
        let log = &self.node(to)?.peer.node.raft.raft_log;
        let (index, log_term) = (log.last_index(), log.last_term());
        let mut message = Message { from, to, term, index, log_term, reject, ..Message::default() };
        message.set_msg_type(kind);
        let (from, to) = (peer(from), peer(to));
        self.step(RaftMessage { region: ID, epoch: EPOCH, from, to, message }, self.now);
        Ok(())
    }

    /// Runs everything that can happen without time passing.
    fn settle(&mut self) {
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for _ in 0..100 {
            let mut busy = self.deliver(None);
            let now = self.now;
            for id in &ids {
                if let Some(node) = self.nodes.get_mut(id) {
                    busy |= node.write(now);
                    busy |= node.apply(now);
                }
                busy |= self.effects(*id);
            }
            if !busy {
                return;
            }
        }
    }

    fn tick(&mut self, id: u64) {
        let now = self.now;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.peer.tick(now);
        }
    }

    fn propose(&mut self, id: u64, term: Option<u64>, label: &str) -> Result<(), Box<dyn Error>> {
        let (reply, outcome) = probe();
        self.waiting.push((label.to_string(), Waiting::Write(outcome)));
        let node = self.node(id)?;
        let term = term.map_or(node.peer.term(), Term::new);
        let data = encode_write(term, EPOCH, None, &engine::WriteBatch::new());
        node.peer.propose(Proposal { term, epoch: EPOCH, data, reply });
        Ok(())
    }

    fn read(&mut self, id: u64, label: &str) -> Result<(), Box<dyn Error>> {
        let (now, (reply, outcome)) = (self.now, probe());
        self.waiting.push((label.to_string(), Waiting::Read(outcome)));
        self.node(id)?.peer.read_index(EPOCH, reply, now);
        Ok(())
    }

    fn status(&mut self) {
        let now = self.now;
        for (id, node) in &self.nodes {
            let view = node.peer.view();
            let role = if view.is_leader { "leader" } else { "follower" };
            let lease = match node.peer.lease {
                Lease::Valid(bound) if now < bound => format!("lease for {:?}", bound.since(now)),
                Lease::Valid(_) => "lease over".to_string(),
                Lease::Suspect(_) => "lease suspect".to_string(),
                Lease::Expired => "no lease".to_string(),
            };
            let log = &node.peer.node.raft.raft_log;
            let (last, commit) = (log.last_index(), log.committed);
            let applied = node.peer.applied().index;
            let line = format!("{id} {role} term={} last={last} commit={commit} applied={applied} {lease}", view.term);
            writeln!(self.out, "{line}").unwrap();
        }
    }
}

fn show_op(op: &LogOp) -> String {
    match op {
        LogOp::Append(entries) => format!("entries {}", show_entries(entries)),
        LogOp::HardState(state) => format!("term={} vote={} commit={}", state.term, state.vote, state.commit),
        LogOp::Intent(intent) => format!("intent {}", intent.key),
        LogOp::Restart { start, .. } => format!("log start {}@{}", start.index, start.term),
    }
}

fn show_entries(entries: &[Entry]) -> String {
    let show = |e: &Entry| format!("{}@{}{}", e.index, e.term, if e.data.is_empty() { " noop" } else { "" });
    entries.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn show_message(message: &RaftMessage) -> String {
    let m = &message.message;
    let kind = format!("{:?}", m.get_msg_type());
    let kind = kind.trim_start_matches("Msg");
    let mut out = format!("{}->{} {kind} term={}", m.from, m.to, m.term);
    let numbers = [("index", m.index), ("log_term", m.log_term), ("commit", m.commit)];
    for (name, value) in numbers.into_iter().filter(|(_, value)| *value != 0) {
        write!(out, " {name}={value}").unwrap();
    }
    if m.reject {
        out.push_str(" rejected");
    }
    if !m.context.is_empty() && m.context.len() == 8 {
        write!(out, " round={}", u64::from_be_bytes(m.context[..].try_into().unwrap())).unwrap();
    }
    if !m.entries.is_empty() {
        write!(out, " [{}]", show_entries(&m.entries)).unwrap();
    }
    out
}

type Args<'a> = ArgumentConsumer<'a>;

fn maybe(args: &mut Args<'_>) -> Result<Option<u64>, Box<dyn Error>> {
    Ok(args.next_pos().map(str::parse).transpose()?)
}

fn number(args: &mut Args<'_>) -> Result<u64, Box<dyn Error>> {
    maybe(args)?.ok_or_else(|| "a number is missing".into())
}

fn word(args: &mut Args<'_>) -> Result<String, Box<dyn Error>> {
    Ok(args.next_pos().ok_or("a word is missing")?.to_string())
}

impl Script {
    /// Requests to replicas.
    fn request(&mut self, name: &str, args: &mut Args<'_>) -> Result<(), Box<dyn Error>> {
        let (id, now) = (number(args)?, self.now);
        match name {
            "propose" => {
                let (label, term) = (word(args)?, args.take_key("term").map(str::parse).transpose()?);
                self.propose(id, term, &label)
            }
            "read" => self.read(id, &word(args)?),
            _ => {
                let to = StoreId::new(number(args)?);
                self.node(id)?.peer.transfer_leader(to, now);
                Ok(())
            }
        }
    }

    /// Network commands.
    fn network(&mut self, name: &str, args: &mut Args<'_>) -> Result<(), Box<dyn Error>> {
        match name {
            "deliver" => {
                let only = maybe(args)?;
                self.deliver(only);
            }
            // Drops all messages in flight, or those to one replica.
            "lose" => match maybe(args)? {
                None => self.network.clear(),
                Some(to) => self.network.retain(|m| m.to.id.get() != to),
            },
            "late" => {
                let (from, to, kind) = (number(args)?, number(args)?, word(args)?);
                let term = args.take_key("term").ok_or("a term")?.parse()?;
                self.late(from, to, term, &kind)?;
            }
            _ => {
                while let Some(id) = maybe(args)? {
                    if name == "isolate" {
                        self.isolated.insert(id)
                    } else {
                        self.isolated.remove(&id)
                    };
                }
            }
        }
        Ok(())
    }

    /// Advances the clock for all replicas by whole ticks; only the named replicas tick.
    fn ticks(&mut self, args: &mut Args<'_>) -> Result<(), Box<dyn Error>> {
        let (count, mut ids) = (number(args)?, Vec::new());
        while let Some(id) = maybe(args)? {
            ids.push(id);
        }
        for _ in 0..count {
            self.now = self.now.plus(config().tick_interval);
            ids.iter().for_each(|id| self.tick(*id));
        }
        Ok(())
    }

    /// Power loss: memory and unsynced writes are lost.
    fn restart(&mut self, id: u64) {
        self.nodes.remove(&id);
        let disk = &self.disks[&id];
        disk.crash(id);
        self.nodes.insert(id, Node::open(id, &self.region, disk, self.now));
    }
}

impl Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Box<dyn Error>> {
        self.out.clear();
        let mut args = command.consume_args();
        let (args, now) = (&mut args, self.now);
        match command.name.as_str() {
            "ticks" => self.ticks(args)?,
            "sleep" => self.now = now.plus(Duration::from_millis(number(args)?)),
            "effects" => drop(self.effects(number(args)?)),
            "durable" => drop(self.node(number(args)?)?.write(now)),
            "apply" => drop(self.node(number(args)?)?.apply(now)),
            "restart" => self.restart(number(args)?),
            "settle" => self.settle(),
            "status" => self.status(),
            name @ ("deliver" | "lose" | "late" | "isolate" | "join") => self.network(name, args)?,
            name @ ("propose" | "read" | "transfer") => self.request(name, args)?,
            name => return Err(format!("unknown command {name}").into()),
        }
        self.print_answers();
        Ok(std::mem::take(&mut self.out))
    }
}

fn script(name: &str) {
    script_of(3, name);
}

fn script_of(replicas: u64, name: &str) {
    let path = format!("{}/tests/scripts/peer/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Script::new(replicas), path).expect("golden script");
}

#[test]
fn election() {
    script("election");
}

#[test]
fn propose() {
    script("propose");
}

#[test]
fn lease() {
    script("lease");
}

#[test]
fn read_index() {
    script("read_index");
}

#[test]
fn transfer() {
    script("transfer");
}

#[test]
fn suspect() {
    script("suspect");
}

/// What a leader has packed stays as it is while any offer is on its way.
#[test]
fn offer_again() {
    script("offer_again");
}

/// Regression: a late message of a higher term made a voter forget its promise and elect another leader during the
/// first one's lease.
#[test]
fn promise() {
    script("promise");
}

/// Regression: a re-elected leader answered that a write had no effect, and a later leader committed it (figure 8 of
/// the Raft paper).
#[test]
fn fate() {
    script_of(5, "fate");
}
