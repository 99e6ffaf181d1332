//! The load of the simulated cluster: what every node serves, started and ended with the lives of its store, and the
//! faults of the oracle's node.

use std::sync::Arc;
use std::time::Duration;

use raftstore::{RegionId, StoreId, Term};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::{Checked, Violation, violated};
use simulator::events::{Event as WorldEvent, Part};
use simulator::{Load, World};
use tso::LeaderTerm;

use crate::nodes::{Nodes, Wanted};
use crate::options::Options;
use crate::wire::{Sender, Wire};
use crate::{gateway, panics};

/// See the module documentation.
pub(crate) struct Stack {
    options: Options,
    rng: StdRng,
    rng_of_epochs: StdRng,
    /// Set once the world knows its time and its links. Stores that started before are started again then.
    parts: Option<Parts>,
    /// Leaderships of the oracle's region.
    pub(crate) oracles: u64,
    /// Handovers and crashes of the oracle's node that were asked for.
    pub(crate) oracle_faults: u64,
    /// Those among them in the middle of a commit.
    pub(crate) oracle_faults_in_commits: u64,
    /// Leaders that were asked to hand over right before a commit in one phase.
    pub(crate) leader_moves: u64,
    /// Versions that were asked to be raised.
    pub(crate) epoch_changes: u64,
}

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) wire: Arc<Wire>,
}

/// What happens to the cluster beside the faults of the simulator.
pub(crate) enum Event {
    /// The oracle's node fails.
    OracleFault,
    /// The version of the epoch of a data region is raised, as by a split.
    EpochChange,
}

/// Starts a cluster and what its nodes serve.
pub(crate) fn start(options: &Options, print: bool) -> Result<(World<Stack>, Parts), Violation> {
    let rng = options.cluster.generator(6);
    let load = Stack {
        options: options.clone(),
        rng,
        rng_of_epochs: options.cluster.generator(8),
        parts: None,
        oracles: 0,
        oracle_faults: 0,
        oracle_faults_in_commits: 0,
        leader_moves: 0,
        epoch_changes: 0,
    };
    let mut world = World::start(options.cluster.clone(), load, print)?;
    let nodes = Arc::new(Nodes::new(options.cluster.stores, world.time()));
    let wire = Arc::new(Wire::new(options, Arc::clone(&nodes), world.network.cuts()));
    let parts = Parts { nodes, wire };
    world.load.parts = Some(parts.clone());
    for store in &parts.nodes.stores {
        Stack::started(&mut world, *store);
    }
    schedule_oracle_fault(&mut world);
    schedule_epoch_change(&mut world);
    Ok((world, parts))
}

fn schedule_epoch_change(world: &mut World<Stack>) {
    if let Some(mean) = world.load.options.epoch_changes {
        let delay = world.load.rng_of_epochs.random_range(mean / 4..mean * 2);
        world.schedule(delay.as_nanos() as u64, WorldEvent::Load(Event::EpochChange));
    }
}

/// The leader of a data region raises the version of its epoch. Does nothing if no node leads.
fn change_epoch(world: &mut World<Stack>) -> Checked {
    let data_regions = world.load.options.cluster.regions.len() as u64 - 1;
    let region = RegionId::new(RegionId::FIRST_DATA.get() + world.load.rng_of_epochs.random_range(0..data_regions));
    let Some(leader) = leader_of(world, region).filter(|_| world.faults_on) else { return Ok(()) };
    let Some(live) = world.nodes.get(&leader).and_then(|node| node.live.as_ref()) else { return Ok(()) };
    let asked = live.handle.raise_version(region);
    world.load.epoch_changes += u64::from(asked.is_ok());
    world.trace.line(world.now, format_args!("{leader} is asked to raise the version of region {region}: {asked:?}"));
    world.wake(leader, Part::Store);
    world.after_call(leader, false)
}

fn schedule_oracle_fault(world: &mut World<Stack>) {
    if let Some(mean) = world.load.options.oracle_faults {
        let delay = world.load.rng.random_range(mean / 4..mean * 2);
        world.schedule(delay.as_nanos() as u64, WorldEvent::Load(Event::OracleFault));
    }
}

/// The node of the oracle hands its leadership over, or loses power. Does nothing if no node leads.
fn move_oracle(world: &mut World<Stack>, in_commit: bool) -> Checked {
    if !world.faults_on {
        return Ok(());
    }
    let Some(leader) = leader_of(world, RegionId::SYSTEM) else { return Ok(()) };
    world.load.oracle_faults += 1;
    world.load.oracle_faults_in_commits += u64::from(in_commit);
    if world.load.rng.random_bool(0.5) {
        return world.crash(leader);
    }
    hand_over(world, RegionId::SYSTEM, leader)
}

/// The leader of a region hands over. Does nothing if no node leads.
fn move_leader(world: &mut World<Stack>, region: RegionId) -> Checked {
    match leader_of(world, region).filter(|_| world.faults_on) {
        None => Ok(()),
        Some(leader) => {
            world.load.leader_moves += 1;
            hand_over(world, region, leader)
        }
    }
}

/// The store that leads a region and runs.
fn leader_of(world: &World<Stack>, region: RegionId) -> Option<StoreId> {
    let leads = |store: &StoreId| {
        let live = world.nodes.get(store).filter(|node| node.is_up()).and_then(|node| node.live.as_ref());
        live.and_then(|live| live.handle.region(region)).is_some_and(|status| status.is_leader)
    };
    world.nodes.keys().copied().find(leads)
}

/// Asks the leader of a region to hand it to a random store, which may be itself.
fn hand_over(world: &mut World<Stack>, region: RegionId, leader: StoreId) -> Checked {
    let stores: Vec<StoreId> = world.nodes.keys().copied().collect();
    let to = stores[world.load.rng.random_range(0..stores.len())];
    let Some(live) = world.nodes.get(&leader).and_then(|node| node.live.as_ref()) else { return Ok(()) };
    let asked = live.handle.transfer_leader(region, to);
    world.trace.line(world.now, format_args!("{leader} is asked to hand region {region} to {to}: {asked:?}"));
    world.wake(leader, Part::Store);
    world.after_call(leader, false)
}

impl Load for Stack {
    type Event = Event;

    fn step(world: &mut World<Stack>, event: Event) -> Checked {
        match event {
            Event::OracleFault => {
                if world.faults_on {
                    schedule_oracle_fault(world);
                }
                move_oracle(world, false)
            }
            Event::EpochChange => {
                if world.faults_on {
                    schedule_epoch_change(world);
                }
                change_epoch(world)
            }
        }
    }

    fn called(_: &mut World<Stack>, _: StoreId) -> Checked {
        Ok(())
    }

    fn started(world: &mut World<Stack>, store: StoreId) {
        let Some(Parts { nodes, wire }) = world.load.parts.clone() else { return };
        let found = world.nodes.get(&store).and_then(|node| Some((node.life, node.live.as_ref()?, &node.store)));
        let Some((life, live, data)) = found else { return };
        let sender = Sender { wire, store, life, gateway: None };
        let settings = world.load.options.settings.clone();
        let skew = world.load.rng.random_range(0..=world.load.options.wall_skew_ms);
        let life = gateway::start(&sender, (live.handle.clone(), data), skew, world.load.rng.random(), &settings);
        let gateway = gateway::open(&sender, life.timestamps.clone(), &settings);
        nodes.start(store, life, gateway);
    }

    fn role(world: &mut World<Stack>, store: StoreId, region: RegionId, term: Term, leads: bool) {
        let Some(life) = world.load.parts.as_ref().and_then(|parts| parts.nodes.life(store)) else { return };
        match leads {
            _ if region != RegionId::SYSTEM => {}
            true => {
                world.load.oracles += 1;
                life.oracle.on_leader(LeaderTerm(term.get()));
            }
            false => life.oracle.on_step_down(),
        }
    }

    fn crashed(world: &mut World<Stack>, store: StoreId) -> Checked {
        if let Some(parts) = &world.load.parts {
            parts.nodes.stop(store);
        }
        Ok(())
    }

    fn resumed(_: &mut World<Stack>, _: StoreId) -> Checked {
        Ok(())
    }

    fn disturbed(_: &mut World<Stack>) {}

    fn read_at(_: &mut World<Stack>, _: StoreId) -> Checked {
        Ok(())
    }

    fn test_lease(_: &mut World<Stack>, _: StoreId) -> Checked {
        Ok(())
    }

    fn confirmed_writes(&self, _: RegionId) -> u64 {
        0
    }
}

/// Runs the world and the tasks up to a virtual time, or until `done`.
pub(crate) async fn run_until(
    world: &mut World<Stack>,
    nodes: &Nodes,
    end: u64,
    mut done: impl FnMut(&World<Stack>) -> bool,
) -> Checked {
    loop {
        let now = nodes.elapsed();
        for note in nodes.take_notes() {
            world.trace.line(now, format_args!("{note}"));
        }
        world.run_until(now)?;
        for store in nodes.take_called() {
            world.wake(store, Part::Store);
            world.after_call(store, false)?;
        }
        for wanted in nodes.take_wanted() {
            match wanted {
                Wanted::Crash(store) if world.faults_on => world.crash(store)?,
                Wanted::Crash(_) => {}
                Wanted::MoveOracle => move_oracle(world, true)?,
                Wanted::MoveLeader(region) => move_leader(world, region)?,
            }
        }
        if let Some(panic) = panics::take() {
            return violated(panic);
        }
        for (store, node) in &world.nodes {
            nodes.set_paused(*store, !node.is_up());
        }
        if now >= end || done(world) {
            return Ok(());
        }
        let next = world.next_event().unwrap_or(end).min(end);
        tokio::select! {
            biased;
            () = nodes.has_calls.notified() => {}
            () = nodes.sleep_until(next) => {}
        }
    }
}

/// Runs the world until `work` ends, for this long at most.
pub(crate) async fn complete<T: 'static>(
    world: &mut World<Stack>,
    nodes: &Nodes,
    limit: Duration,
    what: &str,
    work: impl Future<Output = T> + 'static,
) -> Result<T, Violation> {
    let task = tokio::task::spawn_local(work);
    run_until(world, nodes, nodes.elapsed() + limit.as_nanos() as u64, |_| task.is_finished()).await?;
    if !task.is_finished() {
        return violated(format!("not done within {limit:?}: {what}"));
    }
    task.await.map_err(|error| Violation(format!("{what}: {error}")))
}
