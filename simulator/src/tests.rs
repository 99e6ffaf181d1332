//! A cluster without clients: what the world tells its load, and that a seed replays exactly.

use rand::SeedableRng;
use rand::rngs::StdRng;

use raftstore::{RegionId, StoreId};

use crate::checkers::{Checked, Violation};
use crate::options::{Options, Topology};
use crate::{Load, World};

/// Does nothing, and counts what it is told.
#[derive(Default)]
struct Watcher {
    calls: u64,
    lives: u64,
    crashes: u64,
    resumed: u64,
    disturbed: u64,
    lease_tests: u64,
}

impl Load for Watcher {
    type Event = ();

    fn step(_: &mut World<Watcher>, (): ()) -> Checked {
        Ok(())
    }
    fn called(world: &mut World<Watcher>, _: StoreId) -> Checked {
        world.load.calls += 1;
        Ok(())
    }
    fn started(world: &mut World<Watcher>, store: StoreId) {
        assert!(world.up(store).is_some(), "store {store} has no handle");
        world.load.lives += 1;
    }
    fn crashed(world: &mut World<Watcher>, store: StoreId) -> Checked {
        assert!(world.up(store).is_none(), "store {store} still has its handle");
        world.load.crashes += 1;
        Ok(())
    }
    fn resumed(world: &mut World<Watcher>, store: StoreId) -> Checked {
        assert!(world.up(store).is_some(), "store {store} is paused");
        world.load.resumed += 1;
        Ok(())
    }
    fn disturbed(world: &mut World<Watcher>) {
        world.load.disturbed += 1;
    }
    fn read_at(_: &mut World<Watcher>, _: StoreId) -> Checked {
        Ok(())
    }
    fn test_lease(world: &mut World<Watcher>, _: StoreId) -> Checked {
        world.load.lease_tests += 1;
        Ok(())
    }
    fn confirmed_writes(&self, _: RegionId) -> u64 {
        0
    }
}

/// Runs a cluster under faults, heals it and waits until its replicas are the same.
fn run(seed: u64) -> Result<World<Watcher>, Violation> {
    let rng = &mut StdRng::seed_from_u64(seed);
    let topology = Topology::draw(rng);
    let mut world = World::start(Options::draw(seed, topology, rng), Watcher::default(), false)?;
    let healing = world.options.safety.as_nanos() as u64;
    world.run_until(healing)?;
    world.heal()?;
    let deadline = healing + world.options.liveness.as_nanos() as u64;
    world.run_until_done(deadline, "all replicas are the same", |world| Ok(world.difference()?.is_none()))?;
    Ok(world)
}

#[test]
fn load_hears_of_every_life_and_every_fault() {
    let mut sum = Watcher::default();
    for seed in 1..=8 {
        let world = run(seed).unwrap_or_else(|Violation(what)| panic!("seed {seed}: {what}"));
        let (load, stats) = (&world.load, world.stats());
        assert_eq!(load.crashes, stats.crashes, "seed {seed}");
        assert_eq!(load.lives, world.options.stores + stats.crashes, "seed {seed}");
        assert!(load.resumed <= stats.pauses, "seed {seed}");
        assert!(load.calls > stats.elections && stats.elections > 0, "seed {seed}");
        sum.resumed += load.resumed;
        sum.disturbed += load.disturbed;
        sum.lease_tests += load.lease_tests;
    }
    assert!(sum.resumed > 0 && sum.disturbed > 0 && sum.lease_tests > 0);
}

#[test]
fn seeds_replay_exactly() {
    let traces = [3, 3, 4].map(|seed| {
        let world = run(seed).unwrap_or_else(|Violation(what)| panic!("seed {seed}: {what}"));
        (world.trace.hash(), world.trace.lines())
    });
    assert_eq!(traces[0], traces[1]);
    assert_ne!(traces[0], traces[2]);
}
