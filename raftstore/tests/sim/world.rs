//! The world of a run: virtual time, one queue of events, the stores, the network, the clients and the checkers.
//!
//! Each event is one call into production code, or one fault. After each call the world takes the store's messages,
//! shows its state to the checkers, and polls the waiting clients. Nothing happens outside an event, time moves only
//! between events, and every choice comes from a generator derived from the seed. So a seed replays exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use raftstore::ports::RaftMessage;
use raftstore::{LogIndex, RegionId, StoreId};

use crate::checkers::raft::RaftChecker;
use crate::checkers::replicas::ReplicaChecker;
use crate::checkers::snapshots::{SnapshotChecker, SnapshotTraffic};
use crate::checkers::{Checked, Violation, violated};
use crate::client::{Clients, Operation, Step};
use crate::events::{Event, EventQueue, PARTS, Part};
use crate::faults::Fault;
use crate::network::Network;
use crate::node::{Node, Scheduled};
use crate::options::Options;
use crate::prober::Prober;
use crate::trace::Trace;

/// State of the fault that crashes the first candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateCrash {
    Off,
    Armed,
    /// This store is the candidate, campaigning in this region and term; its vote requests are lost.
    Crashing(StoreId, raftstore::RegionId, u64),
}

/// Statistics, to check that the seeds cover enough.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) lost: u64,
    /// Snapshots that arrived with their message, and snapshots installed.
    pub(crate) snapshots: u64,
    pub(crate) installed: u64,
    /// Writes confirmed in a region while a snapshot of it was built, sent, installed.
    pub(crate) writes_in_builds: u64,
    pub(crate) writes_in_sends: u64,
    pub(crate) writes_in_installs: u64,
    /// Snapshots that met a busy receiver, files sent again, and snapshots built anew for such a receiver.
    pub(crate) busy_receivers: u64,
    pub(crate) rebuilt_for_busy: u64,
    pub(crate) crashes: u64,
    pub(crate) poisoned: u64,
    pub(crate) partitions: u64,
    pub(crate) pauses: u64,
    /// Syncs of a log that a fault made slow, and links that one made slow.
    pub(crate) slow_syncs: u64,
    pub(crate) slow_links: u64,
    /// Writes of the prober that began and succeeded under a healthy quorum.
    pub(crate) probes: u64,
    /// Observations of leaderships that nothing but slow syncs and links could disturb.
    pub(crate) stable: u64,
    /// The longest wait of the prober under a healthy quorum, in thousandths of an election timeout.
    pub(crate) longest_wait: u64,
    /// Store turns stalled between stages.
    pub(crate) stalled_turns: u64,
    /// Candidates that lost power while campaigning.
    pub(crate) candidates: u64,
    /// Writes refused because of a full disk.
    pub(crate) disk_full: u64,
}

/// See the module documentation.
pub(crate) struct World {
    pub(crate) options: Options,
    /// Virtual nanoseconds since the start.
    pub(crate) now: u64,
    events: EventQueue,
    pub(crate) nodes: BTreeMap<StoreId, Node>,
    pub(crate) network: Network,
    pub(crate) clients: Clients,
    pub(crate) raft: RaftChecker,
    pub(crate) snapshots: SnapshotChecker,
    pub(crate) traffic: SnapshotTraffic,
    replicas: ReplicaChecker,
    pub(crate) trace: Trace,
    /// Generator for the timing of turns and the seeds of crashes.
    rng: StdRng,
    /// Generator for faults alone.
    pub(crate) fault_rng: StdRng,
    pub(crate) stats: Stats,
    /// Whether new faults begin.
    pub(crate) faults_on: bool,
    /// Held `MsgTimeoutNow` messages, while the network holds them.
    pub(crate) held_offers: Option<Vec<RaftMessage>>,
    /// Held answers to a leader, while the network holds them.
    pub(crate) held_answers: Option<(StoreId, Vec<RaftMessage>)>,
    /// Whether the next candidate loses power.
    pub(crate) candidate_crash: CandidateCrash,
    /// Clients start no operations before this time.
    pub(crate) clients_paused_until: u64,
    /// Whether idle clients start operations.
    pub(crate) clients_on: bool,
    pub(crate) prober: Prober,
}

impl World {
    /// Starts a bootstrapped cluster with its first events.
    pub(crate) fn start(options: Options, print: bool) -> Result<World, Violation> {
        let stream = |number: u64| StdRng::seed_from_u64(options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let mut rng = stream(1);
        let mut nodes = BTreeMap::new();
        for store in (1..=options.stores).map(StoreId::new) {
            let drift = options.clock_drift_ppm as i64;
            nodes.insert(store, Node::new(store, rng.random_range(-drift..=drift)));
        }
        let mut world = World {
            now: 0,
            events: EventQueue::default(),
            nodes,
            network: Network::new(options.network.clone(), stream(2)),
            clients: Clients::new(&options, stream(3)),
            raft: RaftChecker::default(),
            snapshots: SnapshotChecker::default(),
            traffic: SnapshotTraffic::default(),
            replicas: ReplicaChecker::default(),
            trace: Trace::new(print),
            rng,
            fault_rng: stream(4),
            stats: Stats::default(),
            faults_on: true,
            held_offers: None,
            held_answers: None,
            candidate_crash: CandidateCrash::Off,
            clients_paused_until: 0,
            clients_on: true,
            prober: Prober::new(&options),
            options,
        };
        for store in (1..=world.options.stores).map(StoreId::new) {
            world.restart(store)?;
        }
        for client in 0..world.options.clients {
            world.schedule_client(client);
        }
        world.schedule(0, Event::Probe);
        let first = world.next_fault_delay();
        world.schedule(first, Event::Fault);
        Ok(world)
    }

    /// Adds an event `delay` nanoseconds from now.
    pub(crate) fn schedule(&mut self, delay: u64, event: Event) {
        self.events.push(self.now + delay, event);
    }

    /// Runs all events up to a virtual time.
    pub(crate) fn run_until(&mut self, end: u64) -> Checked {
        while let Some((at, event)) = self.events.pop_until(end) {
            self.now = at;
            self.stats.events += 1;
            self.step(event)?;
        }
        self.now = end;
        Ok(())
    }

    fn step(&mut self, event: Event) -> Checked {
        match event {
            Event::Deliver(message) => self.deliver(*message, false),
            Event::DeliverPast(message) => self.deliver(*message, true),
            Event::Snapshot { message, key, life, done, writes } => {
                self.deliver_snapshot(*message, key, life, done, writes)
            }
            Event::Tick { store, life } => self.tick(store, life),
            Event::Turn { store, life, part } => self.turn(store, life, part),
            Event::Client { client, ticket } if self.clients.is_current(client, ticket) => self.client(client),
            Event::Client { .. } => Ok(()),
            Event::ClientTimeout { client, value } => {
                if let Some(step) = self.clients.time_out(client, value) {
                    self.client_stepped(client, step);
                }
                Ok(())
            }
            Event::Probe => self.probe(),
            Event::Fault => self.begin_fault(),
            Event::EndFault(fault) => self.end_fault(fault),
            Event::Restart(store) => self.restart(store),
        }
    }

    /// A running store, with its clock set to the current time.
    pub(crate) fn up(&mut self, store: StoreId) -> Option<&mut Node> {
        let now = self.now;
        let node = self.nodes.get_mut(&store).filter(|node| node.is_up())?;
        node.set_time(now);
        Some(node)
    }

    fn tick(&mut self, store: StoreId, life: u64) -> Checked {
        if self.nodes.get(&store).is_none_or(|node| node.life != life || node.live.is_none()) {
            return Ok(());
        }
        let interval = self.options.config.tick_interval.as_nanos() as u64;
        self.schedule(interval, Event::Tick { store, life });
        self.wake(store, Part::Store);
        Ok(())
    }

    /// Schedules a turn unless one is scheduled.
    pub(crate) fn wake(&mut self, store: StoreId, part: Part) {
        let (low, high) = self.options.disk.sync_us;
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.is_up()) else { return };
        let scheduled = flag(&mut node.scheduled, part);
        if std::mem::replace(scheduled, true) {
            return;
        }
        let (life, slowness, slow_apply) = (node.life, node.slowness, node.slow_apply);
        let (least, most) = self.options.snapshot_work_us;
        let mut slow_sync = 0;
        if part == Part::Log && node.slow_sync > 0 {
            node.next_is_slow = !node.next_is_slow;
            slow_sync = if node.next_is_slow { node.slow_sync } else { 0 };
        }
        if part == Part::Log {
            node.sync_is_slow = slow_sync > 0;
        }
        let delay = match part {
            Part::Build | Part::Install => self.rng.random_range(least..=most) * 1000,
            Part::Apply => self.rng.random_range(1_000..100_000 + slow_apply),
            Part::Store => self.rng.random_range(1_000..100_000),
            Part::Log if slow_sync > 0 => self.rng.random_range(slow_sync / 4 * 3..=slow_sync),
            Part::Log => self.rng.random_range(low..=high) * 1000 * slowness,
            Part::Background | Part::LogRead => self.rng.random_range(100_000..5_000_000),
        };
        if slow_sync > 0 && delay > self.longest_hiccup() {
            let until = self.now + delay;
            self.nodes.entry(store).and_modify(|node| node.stuck_until = until);
        }
        self.schedule(delay, Event::Turn { store, life, part });
    }

    fn turn(&mut self, store: StoreId, life: u64, part: Part) -> Checked {
        let Some(node) = self.up(store).filter(|node| node.life == life) else { return Ok(()) };
        *flag(&mut node.scheduled, part) = false;
        let is_slow = part == Part::Log && std::mem::take(&mut node.sync_is_slow);
        let Some(live) = &mut node.live else { return Ok(()) };
        let busy = match part {
            Part::Store => match self.store_turn(store) {
                Some(busy) => busy,
                None => return self.after_call(store, false),
            },
            Part::Log => {
                let syncs = live.writer.turn() > 0;
                self.stats.slow_syncs += u64::from(syncs && is_slow);
                syncs
            }
            Part::Apply => live.core.apply_turn(),
            Part::Background => live.core.background_turn(),
            Part::Build => self.build_turn(store),
            Part::Install => self.install_turn(store),
            Part::LogRead => live.core.log_read_turn(),
        };
        if busy {
            self.trace.line(self.now, format_args!("{store} {part:?} turn"));
            for next in PARTS {
                self.wake(store, next);
            }
        }
        self.after_call(store, busy && part == Part::Apply)
    }

    /// Runs a store turn or the rest of one. `None` if it is stalled again.
    fn store_turn(&mut self, store: StoreId) -> Option<bool> {
        loop {
            let node = self.nodes.get_mut(&store)?;
            let clock = Arc::clone(&node.clock);
            let ended = node.live.as_mut()?.core.store_stage(&*clock);
            node.stages = if ended.is_some() { 0 } else { node.stages + 1 };
            if ended.is_some() {
                return ended;
            }
            let (life, longest) = (node.life, node.slow_turns);
            let held = if node.stages == 2 { node.hold.take() } else { None };
            if longest > 0 || held.is_some() {
                node.scheduled.store = true;
                self.stats.stalled_turns += 1;
                let delay = held.unwrap_or_else(|| self.rng.random_range(0..=longest));
                self.schedule(delay, Event::Turn { store, life, part: Part::Store });
                return None;
            }
        }
    }

    /// Runs after every call into a store: checks its power, sends its messages, polls its clients, observes its state.
    pub(crate) fn after_call(&mut self, store: StoreId, applied: bool) -> Checked {
        let Some(node) = self.nodes.get_mut(&store) else { return Ok(()) };
        if node.power_is_gone() {
            self.trace.line(self.now, format_args!("{store} loses power in the middle of its writes"));
            return self.crash(store);
        }
        let Some(live) = &node.live else { return Ok(()) };
        let (sent, roles, life) = (live.outbox.take(), live.roles.take(), node.life);
        for (region, term, leads) in roles {
            let role = if leads { "leads" } else { "no longer leads" };
            self.trace.line(self.now, format_args!("{store} {role} region {region} in term {term}"));
        }
        for outgoing in sent {
            self.send(store, life, outgoing)?;
        }
        for client in self.clients.waiting_for(store) {
            let step = self.clients.poll(client)?;
            self.client_stepped(client, step);
        }
        self.check_poison(store);
        self.observe(store, applied)
    }

    /// Shows the store's state to the checkers. Data is hashed only at intervals, to save time.
    fn observe(&mut self, store: StoreId, applied: bool) -> Checked {
        let Some(node) = self.nodes.get_mut(&store) else { return Ok(()) };
        let Some(live) = &node.live else { return Ok(()) };
        for status in live.handle.regions() {
            let (region, index) = (status.region.id, status.applied);
            self.raft.on_status(store, &status)?;
            // A poisoned store may have stopped while replacing data by a snapshot; its next life starts over.
            if !applied || node.poisoned || node.is_installing(region) {
                continue;
            }
            for (index, hash) in node.new_entries(region, index) {
                self.replicas.on_entry(store, region, index, hash)?;
            }
            if index.get() % 4 == 0 {
                let hash = node.hash_region(&status.region).map_err(|error| Violation(error.to_string()))?;
                self.replicas.on_state(store, region, index, hash)?;
            }
        }
        Ok(())
    }

    fn client(&mut self, client: usize) -> Checked {
        if let Some(store) = self.clients.holds_for(client) {
            // A paused store is asked again after it resumes.
            let Some(node) = self.up(store) else {
                self.schedule_client(client);
                return Ok(());
            };
            let Some(live) = &node.live else { return Ok(()) };
            let handle = live.handle.clone();
            let step = self.clients.go_on(client, &handle)?;
            self.client_stepped(client, step);
            self.wake(store, Part::Store);
            return self.after_call(store, false);
        }
        if !self.clients_on || !self.clients.is_idle(client) {
            return Ok(());
        }
        if self.now < self.clients_paused_until {
            self.schedule_client(client);
            return Ok(());
        }
        let operation = self.clients.begin(client);
        self.send_operation(client, operation)
    }

    /// Sends an operation to its store, to run now or when the store resumes.
    pub(crate) fn send_operation(&mut self, client: usize, operation: Operation) -> Checked {
        let Operation { value, kind, region, store, begin } = operation;
        let what = format_args!("client {client} asks {store}: {kind:?} region {region} value {value} at {begin}");
        self.trace.line(self.now, what);
        let client_timeout = self.options.client_timeout.as_nanos() as u64;
        self.schedule(client_timeout, Event::ClientTimeout { client, value });
        let Some(node) = self.nodes.get_mut(&store) else { return violated("no such store") };
        node.set_time(self.now);
        match &node.live {
            None => {
                let step = self.clients.not_sent(client, operation)?;
                self.client_stepped(client, step);
                Ok(())
            }
            Some(_) if node.paused => {
                node.stalled.push(client);
                self.clients.stall(client, operation);
                Ok(())
            }
            Some(live) => {
                let handle = live.handle.clone();
                let step = self.clients.send(client, operation, &handle)?;
                self.client_stepped(client, step);
                self.wake(store, Part::Store);
                self.after_call(store, false)
            }
        }
    }

    fn client_stepped(&mut self, client: usize, step: Step) {
        match step {
            Step::Waiting => {}
            Step::Holds => self.schedule_client(client),
            Step::Preempted => {
                self.trace.line(self.now, format_args!("client {client}: preempted"));
                let later = self.clients.preemption();
                let ticket = self.clients.new_ticket(client);
                self.schedule(later, Event::Client { client, ticket });
            }
            Step::Done(how) => {
                self.trace.line(self.now, format_args!("client {client}: {how}"));
                self.schedule_client(client);
            }
            Step::Refused(how) => {
                self.stats.disk_full += u64::from(how.contains("disk full"));
                self.trace.line(self.now, format_args!("client {client}: {how}"));
                let later = self.clients.back_off();
                let ticket = self.clients.new_ticket(client);
                self.schedule(later, Event::Client { client, ticket });
            }
        }
    }

    fn schedule_client(&mut self, client: usize) {
        let later = self.clients.think();
        let ticket = self.clients.new_ticket(client);
        self.schedule(later, Event::Client { client, ticket });
    }

    /// Crashes a store and schedules its restart.
    pub(crate) fn crash(&mut self, store: StoreId) -> Checked {
        let longest = self.options.faults.longest.as_nanos() as u64;
        let downtime = self.rng.random_range(longest / 20..=longest);
        self.crash_for(store, downtime)
    }

    /// Crashes a store and schedules its restart after `downtime` nanoseconds.
    pub(crate) fn crash_for(&mut self, store: StoreId, downtime: u64) -> Checked {
        let seed = self.rng.random();
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.live.is_some()) else { return Ok(()) };
        node.crash(seed);
        self.disturb();
        self.stats.crashes += 1;
        self.trace.line(self.now, format_args!("{store} crashes"));
        self.raft.on_crash(store);
        for client in self.clients.store_crashed(store)? {
            self.client_stepped(client, Step::Done("store crashed".to_owned()));
        }
        self.schedule(downtime, Event::Restart(store));
        Ok(())
    }

    /// Starts a store that is down.
    pub(crate) fn restart(&mut self, store: StoreId) -> Checked {
        let seed = self.rng.random();
        let (now, cuts) = (self.now, self.network.cuts());
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.live.is_none()) else { return Ok(()) };
        node.set_time(now);
        match node.open(&self.options, cuts, seed) {
            Ok(()) => {
                let life = node.life;
                self.disturb();
                self.trace.line(now, format_args!("{store} starts life {life}"));
                let interval = self.options.config.tick_interval.as_nanos() as u64;
                let phase = self.rng.random_range(0..interval);
                self.schedule(phase, Event::Tick { store, life });
                for part in PARTS {
                    self.wake(store, part);
                }
                self.after_call(store, true)
            }
            // A full disk may prevent a start; nothing else may.
            Err(error) if self.is_full(store) => {
                self.trace.line(now, format_args!("{store} does not start: {error}"));
                let longest = self.options.faults.longest.as_nanos() as u64;
                self.schedule(longest / 10, Event::Restart(store));
                Ok(())
            }
            Err(error) => violated(format!("store {store} does not start: {error}")),
        }
    }

    /// Schedules the restart of a poisoned store, as an operator would.
    fn check_poison(&mut self, store: StoreId) {
        let Some(node) = self.nodes.get_mut(&store) else { return };
        let Some(why) = node.live.as_ref().and_then(|live| live.core.poisoned()) else { return };
        if std::mem::replace(&mut node.poisoned, true) {
            return;
        }
        self.stats.poisoned += 1;
        self.trace.line(self.now, format_args!("{store} is poisoned: {why}"));
        let longest = self.options.faults.longest.as_nanos() as u64;
        let delay = self.rng.random_range(0..=longest);
        self.schedule(delay, Event::EndFault(Fault::Poisoned(store)));
    }

    /// Whether a write to every region was confirmed that began after `since`.
    pub(crate) fn regions_written_since(&self, since: u64) -> bool {
        self.options.regions.iter().all(|region| self.clients.confirmed.latest(region.id) > since)
    }

    /// The highest applied index of each region.
    pub(crate) fn applied(&self) -> BTreeMap<RegionId, LogIndex> {
        let live = self.nodes.values().filter_map(|node| node.live.as_ref());
        let mut highest = BTreeMap::new();
        for status in live.flat_map(|live| live.handle.regions()) {
            let index = highest.entry(status.region.id).or_insert(status.applied);
            *index = status.applied.max(*index);
        }
        highest
    }

    /// A replica that has not applied its region up to this index.
    pub(crate) fn lags_behind(&self, applied: &BTreeMap<RegionId, LogIndex>) -> Option<(StoreId, RegionId)> {
        let lags = |store: StoreId, region: RegionId, index: LogIndex| {
            let live = self.nodes.get(&store).and_then(|node| node.live.as_ref());
            live.and_then(|live| live.handle.region(region)).is_none_or(|status| status.applied < index)
        };
        let replicas = self.options.regions.iter().flat_map(|region| region.peers.iter().map(|p| (p.store, region.id)));
        replicas.into_iter().find(|(store, region)| applied.get(region).is_some_and(|at| lags(*store, *region, *at)))
    }

    /// Why the replicas differ; `None` if they agree.
    pub(crate) fn difference(&self) -> Result<Option<String>, Violation> {
        for region in &self.options.regions {
            let mut first = None;
            for peer in &region.peers {
                let live = self.nodes.get(&peer.store).and_then(|node| Some((node, node.live.as_ref()?)));
                let Some((node, live)) = live else { return Ok(Some(format!("store {} is down", peer.store))) };
                let Some(status) = live.handle.region(region.id) else {
                    return Ok(Some(format!("region {} is not on store {}", region.id, peer.store)));
                };
                let hash = node.hash_region(region).map_err(|error| Violation(error.to_string()))?;
                let this = (status.applied, hash);
                let (expected, by) = *first.get_or_insert((this, peer.store));
                if expected.0 != this.0 {
                    let what = format!("store {} applied {}, store {by} {}", peer.store, this.0, expected.0);
                    return Ok(Some(format!("region {}: {what}", region.id)));
                }
                if expected.1 != this.1 {
                    return violated(format!(
                        "region {}: the data of stores {} and {by} differ",
                        region.id, peer.store
                    ));
                }
            }
        }
        Ok(None)
    }
}

fn flag(scheduled: &mut Scheduled, part: Part) -> &mut bool {
    match part {
        Part::Store => &mut scheduled.store,
        Part::Log => &mut scheduled.log,
        Part::Apply => &mut scheduled.apply,
        Part::Background => &mut scheduled.background,
        Part::Build => &mut scheduled.build,
        Part::Install => &mut scheduled.install,
        Part::LogRead => &mut scheduled.log_read,
    }
}
