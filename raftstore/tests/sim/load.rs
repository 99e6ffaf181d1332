//! What runs on the cluster: clients that write and read, and a prober that shows whether the regions serve.
//!
//! It carries each step of a client into a call of a store, and answers what the faults want of clients.

use std::collections::BTreeMap;

use raftstore::{RegionId, StoreId};
use simulator::checkers::{Checked, Violation, violated};
use simulator::events::{Event, Part};
use simulator::{Load, World};

use crate::client::{Clients, Operation, Step};
use crate::options::Options;
use crate::prober::{self, Prober};

/// What the clients and the prober schedule.
pub(crate) enum ClientEvent {
    /// A client starts an operation or proposes the write it holds.
    Step { client: usize, ticket: u64 },
    /// A client's timeout for the operation with this value.
    Timeout { client: usize, value: u64 },
    /// The prober takes its next step.
    Probe,
}

/// See the module documentation.
pub(crate) struct ClientLoad {
    pub(crate) clients: Clients,
    /// Whether idle clients start operations.
    pub(crate) clients_on: bool,
    pub(crate) prober: Prober,
    /// Clients whose requests arrived while the store was paused.
    stalled: BTreeMap<StoreId, Vec<usize>>,
}

/// Starts a cluster, with the first events of the clients and the prober.
pub(crate) fn start(options: &Options, print: bool) -> Result<World<ClientLoad>, Violation> {
    let load = ClientLoad {
        clients: Clients::new(options, options.cluster.generator(3)),
        clients_on: true,
        prober: Prober::new(&options.cluster),
        stalled: BTreeMap::new(),
    };
    let mut world = World::start(options.cluster.clone(), load, print)?;
    for client in 0..options.clients {
        schedule_client(&mut world, client);
    }
    world.schedule(0, Event::Load(ClientEvent::Probe));
    Ok(world)
}

impl Load for ClientLoad {
    type Event = ClientEvent;

    fn step(world: &mut World<ClientLoad>, event: ClientEvent) -> Checked {
        match event {
            ClientEvent::Step { client, ticket } if world.load.clients.is_current(client, ticket) => {
                step_client(world, client)
            }
            ClientEvent::Step { .. } => Ok(()),
            ClientEvent::Timeout { client, value } => {
                if let Some(step) = world.load.clients.time_out(client, value) {
                    client_stepped(world, client, step);
                }
                Ok(())
            }
            ClientEvent::Probe => prober::probe(world),
        }
    }

    fn called(world: &mut World<ClientLoad>, store: StoreId) -> Checked {
        for client in world.load.clients.waiting_for(store) {
            let step = world.load.clients.poll(client)?;
            client_stepped(world, client, step);
        }
        Ok(())
    }

    fn started(world: &mut World<ClientLoad>, _: StoreId) {
        prober::disturb(world);
    }

    fn crashed(world: &mut World<ClientLoad>, store: StoreId) -> Checked {
        prober::disturb(world);
        for client in world.load.clients.store_crashed(store)? {
            client_stepped(world, client, Step::Done("store crashed".to_owned()));
        }
        Ok(())
    }

    fn resumed(world: &mut World<ClientLoad>, store: StoreId) -> Checked {
        for client in world.load.stalled.remove(&store).unwrap_or_default() {
            if let Some(operation) = world.load.clients.unstall(client, store) {
                send_operation(world, client, operation)?;
            }
        }
        ClientLoad::read_at(world, store)
    }

    fn disturbed(world: &mut World<ClientLoad>) {
        prober::disturb(world);
    }

    fn read_at(world: &mut World<ClientLoad>, store: StoreId) -> Checked {
        for client in world.load.clients.idle() {
            let operation = world.load.clients.begin_probe(client, store);
            send_operation(world, client, operation)?;
        }
        Ok(())
    }

    fn test_lease(world: &mut World<ClientLoad>, store: StoreId) -> Checked {
        let others = world
            .nodes
            .values()
            .filter(|node| node.id != store)
            .filter_map(|node| Some((node.id, node.live.as_ref()?)));
        let led = others.flat_map(|(id, live)| live.handle.regions().into_iter().map(move |status| (id, status)));
        let leaders = led.filter(|(_, status)| status.is_leader).map(|(id, status)| (status.region.id, id)).collect();
        for client in world.load.clients.idle() {
            let operation = match client % 2 {
                0 => world.load.clients.begin_probe(client, store),
                _ => world.load.clients.begin_write(client, &leaders),
            };
            send_operation(world, client, operation)?;
        }
        Ok(())
    }

    fn confirmed_writes(&self, region: RegionId) -> u64 {
        self.clients.confirmed.writes(region)
    }
}

fn step_client(world: &mut World<ClientLoad>, client: usize) -> Checked {
    if let Some(store) = world.load.clients.holds_for(client) {
        // A paused store is asked again after it resumes.
        let Some(node) = world.up(store) else {
            schedule_client(world, client);
            return Ok(());
        };
        let Some(live) = &node.live else { return Ok(()) };
        let handle = live.handle.clone();
        let step = world.load.clients.go_on(client, &handle)?;
        client_stepped(world, client, step);
        world.wake(store, Part::Store);
        return world.after_call(store, false);
    }
    if !world.load.clients_on || !world.load.clients.is_idle(client) {
        return Ok(());
    }
    if world.now < world.quiet_until {
        schedule_client(world, client);
        return Ok(());
    }
    let operation = world.load.clients.begin(client);
    send_operation(world, client, operation)
}

/// Sends an operation to its store, to run now or when the store resumes.
fn send_operation(world: &mut World<ClientLoad>, client: usize, operation: Operation) -> Checked {
    let Operation { value, kind, region, store, begin } = operation;
    let what = format_args!("client {client} asks {store}: {kind:?} region {region} value {value} at {begin}");
    world.trace.line(world.now, what);
    let timeout = world.load.clients.timeout();
    world.schedule(timeout, Event::Load(ClientEvent::Timeout { client, value }));
    let Some(node) = world.nodes.get(&store) else { return violated("no such store") };
    match &node.live {
        None => {
            let step = world.load.clients.not_sent(client, operation)?;
            client_stepped(world, client, step);
            Ok(())
        }
        Some(_) if node.paused => {
            world.load.stalled.entry(store).or_default().push(client);
            world.load.clients.stall(client, operation);
            Ok(())
        }
        Some(live) => {
            let handle = live.handle.clone();
            let step = world.load.clients.send(client, operation, &handle)?;
            client_stepped(world, client, step);
            world.wake(store, Part::Store);
            world.after_call(store, false)
        }
    }
}

fn client_stepped(world: &mut World<ClientLoad>, client: usize, step: Step) {
    let later = match step {
        Step::Waiting => return,
        Step::Holds => world.load.clients.think(),
        Step::Preempted => {
            world.trace.line(world.now, format_args!("client {client}: preempted"));
            world.load.clients.preemption()
        }
        Step::Done(how) => {
            world.trace.line(world.now, format_args!("client {client}: {how}"));
            world.load.clients.think()
        }
        Step::Refused(how) => {
            world.load.clients.stats.disk_full += u64::from(how.contains("disk full"));
            world.trace.line(world.now, format_args!("client {client}: {how}"));
            world.load.clients.back_off()
        }
    };
    schedule_step(world, client, later);
}

fn schedule_client(world: &mut World<ClientLoad>, client: usize) {
    let later = world.load.clients.think();
    schedule_step(world, client, later);
}

/// The next step of a client, `later` nanoseconds from now. Earlier ones are void.
fn schedule_step(world: &mut World<ClientLoad>, client: usize, later: u64) {
    let ticket = world.load.clients.new_ticket(client);
    world.schedule(later, Event::Load(ClientEvent::Step { client, ticket }));
}
