//! The prober: a client of each region that writes and retries, so that the checkers see whether the region is
//! available and its leadership stable.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use engine::{Cf, WriteBatch};
use raftstore::{LogIndex, ProposeError, Region, RegionContext, RegionError, RegionId, StoreId, Term};

use crate::checkers::availability::{AvailabilityChecker, StabilityChecker};
use crate::checkers::history::Moment;
use crate::checkers::{Checked, violated};
use crate::events::{Event, Part};
use crate::node::Node;
use crate::options::Options;
use crate::world::World;

type WriteFuture = Pin<Box<dyn Future<Output = Result<LogIndex, ProposeError>>>>;

/// A write succeeds within this many election timeouts while a quorum is healthy and the network loses nothing. The
/// slowest case is a leader that hands over, after 2, to a store whose votes and first entries wait for several syncs
/// of 1.5 each.
const BOUND: u64 = 12;
/// The same on a network that loses, doubles and delays messages.
const LOSSY_BOUND: u64 = 24;
/// Election timeouts without a disturbance after which leaderships must be stable.
const SETTLES_IN: u64 = 8;
/// Election timeouts after which the prober gives an answer up and asks another store.
const PATIENCE: u64 = 1;

/// The prober's write to a region.
struct Probe {
    /// When the write began; retries do not count.
    begun: u64,
    /// The same, as the clients count.
    moment: Moment,
    /// The store to ask.
    store: StoreId,
    /// The proposal that waits for its answer, and since when.
    proposed: Option<(WriteFuture, u64)>,
}

/// See the module documentation.
pub(crate) struct Prober {
    probes: BTreeMap<RegionId, Probe>,
    pub(crate) availability: AvailabilityChecker,
    pub(crate) stability: StabilityChecker,
    /// When something last disturbed the leaderships, other than slow syncs and slow links.
    disturbed: u64,
}

impl Prober {
    /// A prober of all regions.
    pub(crate) fn new(options: &Options) -> Prober {
        let election = options.config.election_timeout().as_nanos() as u64;
        let bound = election * if options.network.is_calm() { BOUND } else { LOSSY_BOUND };
        Prober {
            probes: BTreeMap::new(),
            availability: AvailabilityChecker::new(&options.regions, bound),
            stability: StabilityChecker::default(),
            disturbed: 0,
        }
    }
}

/// What became of a step of a probe.
enum Probed {
    Waits,
    Confirmed,
    /// Ask this store, or the next one.
    Refused(Option<StoreId>),
}

impl World {
    /// Tells the checkers which stores are healthy. Called after every event that may change it.
    pub(crate) fn observe_health(&mut self) {
        let slow: BTreeSet<StoreId> =
            self.nodes.values().filter(|node| self.is_slow(node)).map(|node| node.id).collect();
        let is_healthy = |node: &&Node| !slow.contains(&node.id) && self.is_healthy(node);
        let healthy: BTreeSet<StoreId> = self.nodes.values().filter(is_healthy).map(|node| node.id).collect();
        // A leader that is slow but alive keeps its leadership, whichever quorum is healthy.
        let leads = |store: &StoreId, region: &Region| {
            let live = self.nodes.get(store).and_then(|node| node.live.as_ref());
            live.and_then(|live| live.handle.region(region.id)).is_some_and(|status| status.is_leader)
        };
        let led_slowly = |region: &&Region| slow.iter().any(|store| leads(store, region));
        let led_slowly: BTreeSet<RegionId> =
            self.options.regions.iter().filter(led_slowly).map(|region| region.id).collect();
        let network = &self.network;
        let works = |region, from, to| {
            !led_slowly.contains(&region)
                && healthy.contains(&from)
                && healthy.contains(&to)
                && !network.is_cut(from, to)
        };
        self.prober.availability.observe(self.now, &works);
    }

    /// Whether the store takes part, but slowly.
    fn is_slow(&self, node: &Node) -> bool {
        let itself = node.slow_turns > 0 || node.slow_apply > 0 || node.hold.is_some();
        itself || self.network.is_slow(node.id, self.now)
    }

    /// Whether nothing but the speed of its parts keeps the store from serving, and its syncs take less than the time
    /// after which it hands over.
    fn is_healthy(&self, node: &Node) -> bool {
        let quick = node.slowness == 1 && node.slow_sync <= self.longest_hiccup() && node.stuck_until <= self.now;
        quick && node.is_up() && !node.full && !node.poisoned && node.power.is_none()
    }

    /// The longest sync that takes no leadership, in nanoseconds. A store hands over after two election timeouts
    /// (`log_stall` in `options.rs`).
    pub(crate) fn longest_hiccup(&self) -> u64 {
        self.options.config.election_timeout().as_nanos() as u64 * 3 / 2
    }

    /// Something other than a slow sync or a slow link may change leaderships.
    pub(crate) fn disturb(&mut self) {
        self.prober.disturbed = self.now;
        self.prober.stability.disturbed();
        self.observe_health();
    }

    /// Takes a step of every probe, and schedules the next.
    pub(crate) fn probe(&mut self) -> Checked {
        let tick = self.options.config.tick_interval.as_nanos() as u64;
        self.schedule(tick, Event::Probe);
        self.observe_health();
        if !self.clients_on || self.now < self.clients_paused_until {
            self.prober.probes.clear();
            return Ok(());
        }
        for region in self.options.regions.clone() {
            self.probe_region(&region)?;
        }
        self.check_stability()
    }

    fn probe_region(&mut self, region: &Region) -> Checked {
        let (now, election) = (self.now, self.options.config.election_timeout().as_nanos() as u64);
        let mut probe = self.prober.probes.remove(&region.id).unwrap_or_else(|| Probe {
            begun: now,
            moment: self.clients.moment(),
            store: StoreId::new(1),
            proposed: None,
        });
        if probe.begun > now {
            self.prober.probes.insert(region.id, probe);
            return Ok(());
        }
        let step = match probe.proposed.take() {
            Some((mut future, since)) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending if now - since > election * PATIENCE => Probed::Refused(None),
                Poll::Pending => {
                    probe.proposed = Some((future, since));
                    Probed::Waits
                }
                Poll::Ready(Ok(_)) => Probed::Confirmed,
                Poll::Ready(Err(error)) => Probed::Refused(leader_named(&error)),
            },
            None => self.propose_probe(region, &mut probe)?,
        };
        // Where only a few proposals are admitted, the clients may always be quicker. Their writes show as much.
        let step = match step {
            Probed::Refused(_) if self.clients.confirmed.latest(region.id) > probe.moment => Probed::Confirmed,
            step => step,
        };
        self.prober.availability.waits(region.id, probe.begun, now, matches!(step, Probed::Confirmed))?;
        match step {
            Probed::Waits => {}
            Probed::Confirmed => (probe.begun, probe.moment) = (now + election / 2, self.clients.moment()),
            Probed::Refused(leader) => {
                let next = StoreId::new(probe.store.get() % self.options.stores + 1);
                probe.store = leader.unwrap_or(next);
            }
        }
        self.prober.probes.insert(region.id, probe);
        Ok(())
    }

    /// Proposes a probe at the store it believes to lead.
    fn propose_probe(&mut self, region: &Region, probe: &mut Probe) -> Result<Probed, crate::checkers::Violation> {
        let (store, now) = (probe.store, self.now);
        let Some(live) = self.up(store).and_then(|node| node.live.as_ref()) else { return Ok(Probed::Refused(None)) };
        let handle = live.handle.clone();
        let basis = match handle.evaluate(RegionContext { region: region.id, epoch: region.epoch }) {
            Ok(basis) => basis,
            Err(RegionError::EpochNotMatch { .. }) => return violated("a correct probe was refused"),
            Err(error) => return Ok(Probed::Refused(leader_named(&error.into()))),
        };
        let mut batch = WriteBatch::new();
        let key = if region.start.is_empty() { b"aprobe" } else { b"zprobe" };
        batch.put(Cf::Lock, key, &now.to_le_bytes());
        let mut future: WriteFuture = Box::pin(async move { handle.propose(&basis, batch).await });
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.wake(store, Part::Store);
        self.after_call(store, false)?;
        Ok(match polled {
            Poll::Pending => {
                probe.proposed = Some((future, now));
                Probed::Waits
            }
            Poll::Ready(Ok(_)) => Probed::Confirmed,
            Poll::Ready(Err(error)) => Probed::Refused(leader_named(&error)),
        })
    }

    /// Copies the counters of the checkers to the statistics.
    pub(crate) fn sum_up(&mut self) {
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let Prober { availability, stability, .. } = &self.prober;
        (self.stats.probes, self.stats.stable) = (availability.judged, stability.judged);
        self.stats.longest_wait = availability.longest * 1000 / election;
    }

    /// Shows the leaderships to the checker once they have settled.
    fn check_stability(&mut self) -> Checked {
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let undisturbed =
            self.nodes.values().all(|node| self.is_healthy(node) && node.slow_turns == 0 && node.hold.is_none());
        let calm = self.options.network.is_calm() || !self.faults_on;
        if !undisturbed {
            self.prober.disturbed = self.now;
            self.prober.stability.disturbed();
        }
        if !undisturbed || !calm || self.now - self.prober.disturbed < election * SETTLES_IN {
            return Ok(());
        }
        for region in &self.options.regions {
            let status = |node: &Node| node.live.as_ref()?.handle.region(region.id);
            let led = self.nodes.values().filter_map(status).filter(|status| status.is_leader);
            let term: Option<Term> = led.map(|status| status.term).max();
            self.prober.stability.leads(region.id, term)?;
        }
        Ok(())
    }
}

fn leader_named(error: &ProposeError) -> Option<StoreId> {
    match error {
        ProposeError::Region(RegionError::NotLeader { leader, .. }) => leader.map(|leader| leader.store),
        _ => None,
    }
}
