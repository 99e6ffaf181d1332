//! The prober: a client of each region that writes and retries, so that the checkers see whether the region is
//! available and its leadership stable.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use engine::{Cf, WriteBatch};
use raftstore::{LogIndex, ProposeError, Region, RegionContext, RegionError, RegionId, StoreId, Term};
use simulator::World;
use simulator::checkers::{Checked, Violation, violated};
use simulator::events::{Event, Part};
use simulator::node::Node;
use simulator::options::Options;

use crate::checkers::availability::{AvailabilityChecker, StabilityChecker};
use crate::load::{ClientEvent, ClientLoad};
use simulator::checkers::history::Moment;

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
    availability: AvailabilityChecker,
    stability: StabilityChecker,
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

    /// What the checkers judged, for stores with this election timeout.
    pub(crate) fn stats(&self, election: Duration) -> ProberStats {
        let Prober { availability, stability, .. } = self;
        ProberStats {
            writes: availability.judged,
            stable: stability.judged,
            longest_wait: availability.longest * 1000 / election.as_nanos() as u64,
        }
    }
}

/// What the checkers of availability and stability judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProberStats {
    /// Writes that began and succeeded under a healthy quorum.
    pub(crate) writes: u64,
    /// Observations of leaderships that nothing but slow syncs and links could disturb.
    pub(crate) stable: u64,
    /// The longest wait under a healthy quorum, in thousandths of an election timeout.
    pub(crate) longest_wait: u64,
}

/// What became of a step of a probe.
enum Probed {
    Waits,
    Confirmed,
    /// Ask this store, or the next one.
    Refused(Option<StoreId>),
}

/// Tells the checkers which stores are healthy. Called after every event that may change it.
fn observe_health(world: &mut World<ClientLoad>) {
    let slow: BTreeSet<StoreId> = world.nodes.values().filter(|node| world.is_slow(node)).map(|node| node.id).collect();
    let is_healthy = |node: &&Node| !slow.contains(&node.id) && world.is_healthy(node);
    let healthy: BTreeSet<StoreId> = world.nodes.values().filter(is_healthy).map(|node| node.id).collect();
    // A leader that is slow but alive keeps its leadership, whichever quorum is healthy.
    let leads = |store: &StoreId, region: &Region| {
        let live = world.nodes.get(store).and_then(|node| node.live.as_ref());
        live.and_then(|live| live.handle.region(region.id)).is_some_and(|status| status.is_leader)
    };
    let led_slowly = |region: &&Region| slow.iter().any(|store| leads(store, region));
    let led_slowly: BTreeSet<RegionId> =
        world.options.regions.iter().filter(led_slowly).map(|region| region.id).collect();
    let network = &world.network;
    let works = |region, from, to| {
        !led_slowly.contains(&region) && healthy.contains(&from) && healthy.contains(&to) && !network.is_cut(from, to)
    };
    world.load.prober.availability.observe(world.now, &works);
}

/// Something other than a slow sync or a slow link may change leaderships.
pub(crate) fn disturb(world: &mut World<ClientLoad>) {
    world.load.prober.disturbed = world.now;
    world.load.prober.stability.disturbed();
    observe_health(world);
}

/// Takes a step of every probe, and schedules the next.
pub(crate) fn probe(world: &mut World<ClientLoad>) -> Checked {
    let tick = world.options.config.tick_interval.as_nanos() as u64;
    world.schedule(tick, Event::Load(ClientEvent::Probe));
    observe_health(world);
    if !world.load.clients_on || world.now < world.quiet_until {
        world.load.prober.probes.clear();
        return Ok(());
    }
    for region in world.options.regions.clone() {
        probe_region(world, &region)?;
    }
    check_stability(world)
}

fn probe_region(world: &mut World<ClientLoad>, region: &Region) -> Checked {
    let (now, election) = (world.now, world.options.config.election_timeout().as_nanos() as u64);
    let mut probe = world.load.prober.probes.remove(&region.id).unwrap_or_else(|| Probe {
        begun: now,
        moment: world.load.clients.moment(),
        store: StoreId::new(1),
        proposed: None,
    });
    if probe.begun > now {
        world.load.prober.probes.insert(region.id, probe);
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
        None => propose_probe(world, region, &mut probe)?,
    };
    // Where only a few proposals are admitted, the clients may always be quicker. Their writes show as much.
    let step = match step {
        Probed::Refused(_) if world.load.clients.confirmed.latest(region.id) > probe.moment => Probed::Confirmed,
        step => step,
    };
    world.load.prober.availability.waits(region.id, probe.begun, now, matches!(step, Probed::Confirmed))?;
    match step {
        Probed::Waits => {}
        Probed::Confirmed => (probe.begun, probe.moment) = (now + election / 2, world.load.clients.moment()),
        Probed::Refused(leader) => {
            let next = StoreId::new(probe.store.get() % world.options.stores + 1);
            probe.store = leader.unwrap_or(next);
        }
    }
    world.load.prober.probes.insert(region.id, probe);
    Ok(())
}

/// Proposes a probe at the store it believes to lead.
fn propose_probe(world: &mut World<ClientLoad>, region: &Region, probe: &mut Probe) -> Result<Probed, Violation> {
    let (store, now) = (probe.store, world.now);
    let Some(live) = world.up(store).and_then(|node| node.live.as_ref()) else { return Ok(Probed::Refused(None)) };
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
    world.wake(store, Part::Store);
    world.after_call(store, false)?;
    Ok(match polled {
        Poll::Pending => {
            probe.proposed = Some((future, now));
            Probed::Waits
        }
        Poll::Ready(Ok(_)) => Probed::Confirmed,
        Poll::Ready(Err(error)) => Probed::Refused(leader_named(&error)),
    })
}

/// Shows the leaderships to the checker once they have settled.
fn check_stability(world: &mut World<ClientLoad>) -> Checked {
    let election = world.options.config.election_timeout().as_nanos() as u64;
    let undisturbed = world.is_undisturbed();
    let calm = world.options.network.is_calm() || !world.faults_on;
    if !undisturbed {
        world.load.prober.disturbed = world.now;
        world.load.prober.stability.disturbed();
    }
    if !undisturbed || !calm || world.now - world.load.prober.disturbed < election * SETTLES_IN {
        return Ok(());
    }
    for region in &world.options.regions {
        let status = |node: &Node| node.live.as_ref()?.handle.region(region.id);
        let led = world.nodes.values().filter_map(status).filter(|status| status.is_leader);
        let term: Option<Term> = led.map(|status| status.term).max();
        world.load.prober.stability.leads(region.id, term)?;
    }
    Ok(())
}
fn leader_named(error: &ProposeError) -> Option<StoreId> {
    match error {
        ProposeError::Region(RegionError::NotLeader { leader, .. }) => leader.map(|leader| leader.store),
        _ => None,
    }
}
