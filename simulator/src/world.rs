//! The world of a run: virtual time, one queue of events, the stores, the network, the checkers, and the load that runs
//! on the cluster.
//!
//! Each event is one call into production code, or one fault. After each call the world takes the store's messages,
//! lets the load look for answers, and shows the store's state to the checkers. Nothing happens outside an event, time
//! moves only between events, and every choice comes from a generator derived from the seed. So a seed replays exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;

use raftstore::ports::RaftMessage;
use raftstore::{RegionId, StoreId, Term};

use crate::checkers::raft::RaftChecker;
use crate::checkers::replicas::ReplicaChecker;
use crate::checkers::snapshots::{SnapshotChecker, SnapshotStep, SnapshotTraffic};
use crate::checkers::{Checked, Violation, violated};
use crate::events::{Event, EventQueue, Fault, PARTS, Part};
use crate::network::Network;
use crate::node::{Node, Scheduled, VirtualTime};
use crate::options::Options;
use crate::stats::Stats;
use crate::trace::Trace;

/// What runs on the cluster: clients and whatever serves them. The world owns it and calls it, each time with itself.
pub trait Load: Sized {
    /// What the load schedules for itself ([`World::schedule`], [`Event::Load`]).
    type Event;

    /// An event of the load is due.
    fn step(world: &mut World<Self>, event: Self::Event) -> Checked;

    /// A call into the store has returned. Operations that wait for the store may have their answers.
    fn called(world: &mut World<Self>, store: StoreId) -> Checked;

    /// The store starts a life, with a new handle. Nothing was called yet.
    fn started(world: &mut World<Self>, store: StoreId);

    /// The store leads a region from this term on, or no longer does (`leads`).
    fn role(_world: &mut World<Self>, _store: StoreId, _region: RegionId, _term: Term, _leads: bool) {}

    /// The store loses its memory: the operations there are never answered.
    fn crashed(world: &mut World<Self>, store: StoreId) -> Checked;

    /// A pause of the store ends: what was sent to it meanwhile arrives, before its loops run.
    fn resumed(world: &mut World<Self>, store: StoreId) -> Checked;

    /// A fault begins or ends that may change leaderships. Slow syncs and links that may not are not reported.
    fn disturbed(world: &mut World<Self>);

    /// A fault wants reads at this store, which may have been replaced as a leader.
    fn read_at(world: &mut World<Self>, store: StoreId) -> Checked;

    /// A fault wants to know whether this store, which may have been replaced, still trusts a lease: writes at the
    /// leaders on other stores, and reads at this one.
    fn test_lease(world: &mut World<Self>, store: StoreId) -> Checked;

    /// The number of writes confirmed in a region so far.
    fn confirmed_writes(&self, region: RegionId) -> u64;
}

/// State of the fault that crashes the first candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateCrash {
    Off,
    Armed,
    /// This store is the candidate, campaigning in this region and term; its vote requests are lost.
    Crashing(StoreId, RegionId, u64),
}

/// See the module documentation.
pub struct World<L: Load> {
    /// What the seed decided.
    pub options: Options,
    /// Virtual nanoseconds since the start.
    pub now: u64,
    time: Arc<VirtualTime>,
    events: EventQueue<L::Event>,
    /// The stores.
    pub nodes: BTreeMap<StoreId, Node>,
    /// The links between them.
    pub network: Network,
    /// What runs on them.
    pub load: L,
    pub(crate) raft: RaftChecker,
    pub(crate) snapshots: SnapshotChecker,
    pub(crate) traffic: SnapshotTraffic,
    replicas: ReplicaChecker,
    /// Every step so far.
    pub trace: Trace,
    /// Generator for the timing of turns and the seeds of crashes.
    rng: StdRng,
    /// Generator for faults alone.
    pub(crate) fault_rng: StdRng,
    pub(crate) stats: Stats,
    /// Whether new faults begin.
    pub faults_on: bool,
    /// The load starts no operations before this time: a fault tests what happens without any.
    pub quiet_until: u64,
    /// Held `MsgTimeoutNow` messages, while the network holds them.
    pub(crate) held_offers: Option<Vec<RaftMessage>>,
    /// Held answers to a leader, while the network holds them.
    pub(crate) held_answers: Option<(StoreId, Vec<RaftMessage>)>,
    /// Whether the next candidate loses power.
    pub(crate) candidate_crash: CandidateCrash,
}

impl<L: Load> World<L> {
    /// Starts a bootstrapped cluster, with the first fault scheduled. `print` writes every step to standard output.
    pub fn start(options: Options, load: L, print: bool) -> Result<World<L>, Violation> {
        let mut rng = options.generator(1);
        let time = Arc::new(VirtualTime::default());
        let mut nodes = BTreeMap::new();
        for store in (1..=options.stores).map(StoreId::new) {
            let drift = options.clock_drift_ppm as i64;
            nodes.insert(store, Node::new(store, rng.random_range(-drift..=drift), Arc::clone(&time)));
        }
        let mut world = World {
            now: 0,
            time,
            events: EventQueue::default(),
            nodes,
            network: Network::new(options.network.clone(), options.generator(2)),
            load,
            raft: RaftChecker::default(),
            snapshots: SnapshotChecker::default(),
            traffic: SnapshotTraffic::default(),
            replicas: ReplicaChecker::default(),
            trace: Trace::new(print),
            rng,
            fault_rng: options.generator(4),
            stats: Stats::default(),
            faults_on: true,
            quiet_until: 0,
            held_offers: None,
            held_answers: None,
            candidate_crash: CandidateCrash::Off,
            options,
        };
        for store in (1..=world.options.stores).map(StoreId::new) {
            world.restart(store)?;
        }
        let first = world.next_fault_delay();
        world.schedule(first, Event::Fault);
        Ok(world)
    }

    /// Adds an event `delay` nanoseconds from now.
    pub fn schedule(&mut self, delay: u64, event: Event<L::Event>) {
        self.events.push(self.now + delay, event);
    }

    /// Runs all events up to a virtual time.
    pub fn run_until(&mut self, end: u64) -> Checked {
        while let Some((at, event)) = self.events.pop_until(end) {
            self.now = at;
            self.time.set(at);
            self.stats.events += 1;
            self.step(event)?;
        }
        self.now = end;
        self.time.set(end);
        Ok(())
    }

    fn step(&mut self, event: Event<L::Event>) -> Checked {
        match event {
            Event::Deliver(message) => self.deliver(*message, false),
            Event::DeliverPast(message) => self.deliver(*message, true),
            Event::Snapshot(arrival) => self.deliver_snapshot(*arrival),
            Event::Tick { store, life } => self.tick(store, life),
            Event::Turn { store, life, part } => self.turn(store, life, part),
            Event::Load(event) => L::step(self, event),
            Event::Fault => self.begin_fault(),
            Event::EndFault(fault) => self.end_fault(fault),
            Event::Restart(store) => self.restart(store),
        }
    }

    /// The time that the stores' clocks follow.
    pub fn time(&self) -> Arc<VirtualTime> {
        Arc::clone(&self.time)
    }

    /// When the next event is due, in virtual nanoseconds.
    pub fn next_event(&self) -> Option<u64> {
        self.events.next()
    }

    /// A running store.
    pub fn up(&mut self, store: StoreId) -> Option<&mut Node> {
        self.nodes.get_mut(&store).filter(|node| node.is_up())
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
    pub fn wake(&mut self, store: StoreId, part: Part) {
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

    /// Runs after every call into a store: checks its power, sends its messages, lets the load look for answers, and
    /// observes its state. `applied`: it may have applied entries.
    pub fn after_call(&mut self, store: StoreId, applied: bool) -> Checked {
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
            L::role(self, store, region, term, leads);
        }
        for outgoing in sent {
            self.send(store, life, outgoing)?;
        }
        L::called(self, store)?;
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
                let hash = node
                    .hash_region(&status.region, self.options.hash)
                    .map_err(|error| Violation(error.to_string()))?;
                self.replicas.on_state(store, region, index, hash)?;
            }
        }
        Ok(())
    }

    /// Crashes a store and schedules its restart. Does nothing if it is down.
    pub fn crash(&mut self, store: StoreId) -> Checked {
        let longest = self.options.faults.longest.as_nanos() as u64;
        let downtime = self.rng.random_range(longest / 20..=longest);
        self.crash_for(store, downtime)
    }

    /// Crashes a store and schedules its restart after `downtime` nanoseconds.
    pub(crate) fn crash_for(&mut self, store: StoreId, downtime: u64) -> Checked {
        let seed = self.rng.random();
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.live.is_some()) else { return Ok(()) };
        node.crash(seed);
        self.stats.crashes += 1;
        self.trace.line(self.now, format_args!("{store} crashes"));
        self.raft.on_crash(store);
        L::crashed(self, store)?;
        self.schedule(downtime, Event::Restart(store));
        Ok(())
    }

    /// Starts a store that is down.
    pub(crate) fn restart(&mut self, store: StoreId) -> Checked {
        let seed = self.rng.random();
        let (now, cuts) = (self.now, self.network.cuts());
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.live.is_none()) else { return Ok(()) };
        match node.open(&self.options, cuts, seed) {
            Ok(()) => {
                let life = node.life;
                L::started(self, store);
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

    /// What the run saw so far.
    pub fn stats(&self) -> Stats {
        Stats {
            elections: self.raft.elections() as u64,
            writes_in_builds: self.traffic.writes_during(SnapshotStep::Build),
            writes_in_sends: self.traffic.writes_during(SnapshotStep::Send),
            writes_in_installs: self.traffic.writes_during(SnapshotStep::Install),
            busy_receivers: self.snapshots.busy,
            rebuilt_for_busy: self.snapshots.rebuilt,
            ..self.stats
        }
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
