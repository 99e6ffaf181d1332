//! One run: the safety phase under faults, then healing, the liveness phase, and the final checks.

use engine::store::Store;
use simulator::World;
use simulator::checkers::history::Moment;
use simulator::checkers::{Checked, Violation, violated};
use simulator::failure::{Failure, caught};
use simulator::seeds::assert_enough;
use simulator::stats::Stats;

use crate::client::ClientStats;
use crate::load::{self, ClientLoad};
use crate::options::Options;
use crate::prober::ProberStats;

/// The statistics of a run without a violation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Hash and number of the trace lines.
    pub(crate) hash: u64,
    pub(crate) lines: u64,
    pub(crate) stats: Stats,
    pub(crate) clients: ClientStats,
    pub(crate) prober: ProberStats,
}

/// Runs a cluster through all phases. A panic of the code under test is a violation.
pub(crate) fn run(options: Options, print: bool) -> Result<Outcome, Box<Failure>> {
    let failed = |violation: &str, tail| {
        let replay = "CORTADO_SIM_SEED={seed} cargo test -p raftstore --test sim seeds -- --nocapture";
        Box::new(Failure::of_seed(options.cluster.seed, violation, &options, tail, replay))
    };
    let mut world = caught(|| load::start(&options, print)).map_err(|Violation(what)| failed(&what, Vec::new()))?;
    if let Err(Violation(what)) = caught(|| drive(&mut world)) {
        let at = world.now as f64 / 1e9;
        return Err(failed(&format!("at {at:.6} s: {what}"), world.trace.tail()));
    }
    Ok(Outcome {
        hash: world.trace.hash(),
        lines: world.trace.lines(),
        stats: world.stats(),
        clients: world.load.clients.stats,
        prober: world.load.prober.stats(world.options.config.election_timeout()),
    })
}

fn drive(world: &mut World<ClientLoad>) -> Checked {
    let safety = world.options.safety.as_nanos() as u64;
    world.run_until(safety)?;
    world.load.clients.check_registers()?;
    world.heal()?;
    let deadline = safety + world.options.liveness.as_nanos() as u64;
    let since = world.load.clients.moment();
    world.run_until_done(deadline, "a write to every region is confirmed", |world| {
        Ok(regions_written_since(world, since))
    })?;
    let applied = world.applied();
    world.run_until_done(deadline, "every replica catches up while clients write", |world| {
        Ok(world.lags_behind(&applied).is_none())
    })?;
    world.load.clients_on = false;
    world.run_until_done(deadline, "every client has its answer", |world| Ok(world.load.clients.all_idle()))?;
    let mut difference = None;
    let converged = world.run_until_done(deadline, "all replicas are the same", |world| {
        difference = world.difference()?;
        Ok(difference.is_none())
    });
    if let (Err(Violation(what)), Some(difference)) = (&converged, &difference) {
        return violated(format!("{what}: {difference}"));
    }
    converged?;
    for region in world.options.regions.clone() {
        let Some(store) = region.peers.first().and_then(|peer| world.nodes.get(&peer.store)) else { continue };
        let snapshot = store.store.snapshot();
        world.load.clients.final_reads(&region, &snapshot)?;
    }
    world.load.clients.check_registers()
}

/// Whether a write to every region was confirmed that began after `since`.
fn regions_written_since(world: &World<ClientLoad>, since: Moment) -> bool {
    world.options.regions.iter().all(|region| world.load.clients.confirmed.latest(region.id) > since)
}

impl Outcome {
    /// The sum over many runs.
    pub(crate) fn sum<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Outcome {
        outcomes.fold(Outcome::default(), |mut sum, one| {
            sum.lines += one.lines;
            sum.stats.add(&one.stats);
            let (to, from) = (&mut sum.clients, &one.clients);
            to.writes += from.writes;
            to.refused += from.refused;
            to.unknown += from.unknown;
            to.disk_full += from.disk_full;
            to.lease_reads += from.lease_reads;
            to.preempted += from.preempted;
            to.index_reads += from.index_reads;
            to.failed_reads += from.failed_reads;
            let (to, from) = (&mut sum.prober, &one.prober);
            to.writes += from.writes;
            to.stable += from.stable;
            to.longest_wait = to.longest_wait.max(from.longest_wait);
            sum
        })
    }

    /// Asserts that the seeds together covered enough of everything.
    pub(crate) fn assert_covers(&self) {
        let (stats, clients, prober) = (&self.stats, &self.clients, &self.prober);
        assert_enough(&[
            ("elections", stats.elections, 1000),
            ("snapshots", stats.snapshots, 100),
            ("snapshots installed", stats.installed, 60),
            ("confirmed writes while a snapshot was built", stats.writes_in_builds, 200),
            ("confirmed writes while a snapshot was sent", stats.writes_in_sends, 200),
            ("confirmed writes while a snapshot was installed", stats.writes_in_installs, 200),
            ("busy receivers of snapshots", stats.busy_receivers, 100),
            ("crashes", stats.crashes, 500),
            ("poisoned stores", stats.poisoned, 100),
            ("partitions", stats.partitions, 200),
            ("pauses", stats.pauses, 100),
            ("slow syncs", stats.slow_syncs, 300),
            ("slow links", stats.slow_links, 100),
            ("stalled turns", stats.stalled_turns, 1000),
            ("candidates that lost power", stats.candidates, 50),
            ("writes refused for a full disk", clients.disk_full, 30),
            ("confirmed writes", clients.writes, 10_000),
            ("writes of unknown outcome", clients.unknown, 100),
            ("lease reads", clients.lease_reads, 5_000),
            ("preempted lease reads", clients.preempted, 200),
            ("index reads", clients.index_reads, 2_000),
            ("writes judged for availability", prober.writes, 5_000),
            ("leaderships that had to last", prober.stable, 500),
        ]);
    }
}
