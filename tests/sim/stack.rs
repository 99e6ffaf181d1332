//! The load of the simulated cluster: what every node serves, started and ended with the lives of its store.

use std::sync::Arc;

use raftstore::{RegionId, StoreId, Term};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::{Checked, Violation};
use simulator::events::Part;
use simulator::{Load, World};
use tso::LeaderTerm;

use crate::gateway;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::wire::{Sender, Wire};

/// See the module documentation.
pub(crate) struct Stack {
    options: Options,
    rng: StdRng,
    /// Set once the world knows its time and its links. Stores that started before are started again then.
    parts: Option<Parts>,
}

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) wire: Arc<Wire>,
}

/// Starts a cluster and what its nodes serve.
pub(crate) fn start(options: &Options, print: bool) -> Result<(World<Stack>, Parts), Violation> {
    let load = Stack { options: options.clone(), rng: options.cluster.generator(6), parts: None };
    let mut world = World::start(options.cluster.clone(), load, print)?;
    let nodes = Arc::new(Nodes::new(options.cluster.stores, world.time()));
    let wire = Arc::new(Wire::new(options, Arc::clone(&nodes), world.network.cuts()));
    let parts = Parts { nodes, wire };
    world.load.parts = Some(parts.clone());
    for store in &parts.nodes.stores {
        Stack::started(&mut world, *store);
    }
    Ok((world, parts))
}

impl Load for Stack {
    type Event = ();

    fn step(_: &mut World<Stack>, (): ()) -> Checked {
        Ok(())
    }

    fn called(_: &mut World<Stack>, _: StoreId) -> Checked {
        Ok(())
    }

    fn started(world: &mut World<Stack>, store: StoreId) {
        let Some(Parts { nodes, wire }) = world.load.parts.clone() else { return };
        let Some((life, live)) = world.nodes.get(&store).and_then(|node| Some((node.life, node.live.as_ref()?))) else {
            return;
        };
        let sender = Sender { wire, store, life };
        let skew = world.load.rng.random_range(0..=world.load.options.wall_skew_ms);
        let life = gateway::start(&sender, &nodes, live.handle.clone(), skew, world.load.rng.random());
        nodes.start(store, life);
    }

    fn role(world: &mut World<Stack>, store: StoreId, region: RegionId, term: Term, leads: bool) {
        let Some(life) = world.load.parts.as_ref().and_then(|parts| parts.nodes.life(store)) else { return };
        match leads {
            _ if region != RegionId::SYSTEM => {}
            true => life.oracle.on_leader(LeaderTerm(term.get())),
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
        world.run_until(now)?;
        for store in nodes.take_called() {
            world.wake(store, Part::Store);
            world.after_call(store, false)?;
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
