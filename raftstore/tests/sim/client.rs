//! The clients: what they write and read, and which answers they got.
//!
//! A client runs one operation at a time. Registers are shared: any client writes a new value to one, or reads one
//! through the lease path or the read-index path, at the store it believes to lead or at any other. A list belongs to
//! one client. The client appends to the list it read when it evaluated the write, and waits for the outcome however
//! long it takes, as the holder of a latch would. Every write also changes some ballast rows that nobody reads, so that
//! deletes, range deletes and all column families take part.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use engine::store::Reader;
use engine::store::memory::MemoryStore;
use engine::{Cf, WriteBatch};
use rand::Rng;
use rand::rngs::StdRng;

use raftstore::{
    LogIndex, ProposeError, Region, RegionContext, RegionError, RegionId, RegionSnapshot, StoreHandle, StoreId,
};
use simulator::checkers::{Checked, Violation, violated};
use simulator::preempted::{Answer, Begun, PreemptedRead};

use crate::options::Options;
use simulator::checkers::history::{Confirmed, List, Moment, Register, Value, WriteOutcome};

type Snapshot = RegionSnapshot<MemoryStore>;
type WriteFuture = Pin<Box<dyn Future<Output = Result<LogIndex, ProposeError>>>>;
type ReadFuture = Pin<Box<dyn Future<Output = Result<Snapshot, RegionError>>>>;

/// Ballast rows per region.
const BALLAST_ROWS: u64 = 60;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writes a new value to a register.
    Write(u64),
    /// Appends to the client's list.
    Append,
    /// Reads a register under the leader's lease, or by read index if the lease does not cover.
    LeaseRead(u64),
    /// Reads a register through `StoreHandle::read`.
    IndexRead(u64),
}

/// An operation and its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// Unique id; also the value of a write.
    pub(crate) value: Value,
    pub(crate) kind: Kind,
    pub(crate) region: RegionId,
    pub(crate) store: StoreId,
    pub(crate) begin: Moment,
}

/// The state of a client.
enum State {
    Idle,
    /// Sent to a paused store.
    Stalled(Operation),
    /// Evaluated, not yet proposed.
    Holding(Operation, Box<Snapshot>, WriteBatch),
    /// Preempted before it looked at the clock.
    Preempted(Operation, PreemptedRead),
    Writing(Operation, WriteFuture),
    Reading(Operation, ReadFuture),
}

/// The result of a client step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Waiting for the store.
    Waiting,
    /// Holds an evaluated write and will propose it later.
    Holds,
    /// The thread of its read is preempted and will go on later.
    Preempted,
    /// The operation has ended.
    Done(String),
    /// The operation has ended without effect; the client may retry elsewhere.
    Refused(String),
}

/// A client.
struct Client {
    state: State,
    /// The believed leader of each region.
    hints: BTreeMap<RegionId, StoreId>,
    /// Number of the client's next event. Events with another number are void.
    ticket: u64,
}

/// Client statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientStats {
    pub(crate) writes: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    /// Writes refused because of a full disk.
    pub(crate) disk_full: u64,
    pub(crate) lease_reads: u64,
    /// Lease reads whose thread was preempted.
    pub(crate) preempted: u64,
    pub(crate) index_reads: u64,
    pub(crate) failed_reads: u64,
}

/// All clients and their histories.
pub(crate) struct Clients {
    options: Options,
    rng: StdRng,
    clients: Vec<Client>,
    /// The next moment or value.
    next: u64,
    registers: BTreeMap<(RegionId, u64), Register>,
    lists: BTreeMap<(RegionId, usize), List>,
    pub(crate) stats: ClientStats,
    pub(crate) confirmed: Confirmed,
}

impl Clients {
    /// Creates idle clients.
    pub(crate) fn new(options: &Options, rng: StdRng) -> Clients {
        let clients =
            (0..options.clients).map(|_| Client { state: State::Idle, hints: BTreeMap::new(), ticket: 0 }).collect();
        Clients {
            options: options.clone(),
            rng,
            clients,
            next: 1,
            registers: BTreeMap::new(),
            lists: BTreeMap::new(),
            stats: ClientStats::default(),
            confirmed: Confirmed::default(),
        }
    }

    /// The next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.next += 1;
        self.next
    }

    /// Whether all clients are idle.
    pub(crate) fn all_idle(&self) -> bool {
        self.clients.iter().all(|client| matches!(client.state, State::Idle))
    }

    /// The clients that may begin an operation.
    pub(crate) fn idle(&self) -> Vec<usize> {
        (0..self.clients.len()).filter(|&client| self.is_idle(client)).collect()
    }

    /// Whether the client may begin an operation.
    pub(crate) fn is_idle(&self, client: usize) -> bool {
        matches!(self.clients[client].state, State::Idle)
    }

    /// Issues the number of the client's next event; earlier numbers become void.
    pub(crate) fn new_ticket(&mut self, client: usize) -> u64 {
        self.clients[client].ticket += 1;
        self.clients[client].ticket
    }

    /// Whether a ticket is still valid.
    pub(crate) fn is_current(&self, client: usize, ticket: u64) -> bool {
        self.clients[client].ticket == ticket
    }

    /// How long a client waits for an answer, in nanoseconds.
    pub(crate) fn timeout(&self) -> u64 {
        self.options.client_timeout.as_nanos() as u64
    }

    /// A random think time, in nanoseconds.
    pub(crate) fn think(&mut self) -> u64 {
        let mean = self.options.think.as_nanos() as u64;
        self.rng.random_range(mean / 4..=mean * 2)
    }

    /// How long the thread of a read is preempted, in nanoseconds: long enough for others to lead meanwhile.
    pub(crate) fn preemption(&mut self) -> u64 {
        let election = self.options.cluster.config.election_timeout().as_nanos() as u64;
        self.rng.random_range(election / 20..=election * 5)
    }

    /// A random backoff after a refusal. A client that retries fast meets new leaders in their first moments.
    pub(crate) fn back_off(&mut self) -> u64 {
        let mean = if self.options.retries_fast { self.options.think / 8 } else { self.options.think };
        self.rng.random_range(mean.as_nanos() as u64 / 4..=mean.as_nanos() as u64 * 2)
    }

    /// Draws an operation for an idle client.
    pub(crate) fn begin(&mut self, client: usize) -> Operation {
        let region = self.options.cluster.regions[self.rng.random_range(0..self.options.cluster.regions.len())].id;
        let register = self.rng.random_range(0..self.options.registers);
        let kind = match self.rng.random_range(0..100) {
            0..20 if client.is_multiple_of(2) => Kind::Append,
            0..45 => Kind::Write(register),
            45..75 => Kind::LeaseRead(register),
            _ => Kind::IndexRead(register),
        };
        let anywhere = StoreId::new(self.rng.random_range(1..=self.options.cluster.stores));
        let believed = self.clients[client].hints.get(&region).copied().unwrap_or(anywhere);
        let wanders = matches!(kind, Kind::LeaseRead(_)) && self.rng.random_bool(0.5);
        let store = if wanders || self.rng.random_bool(0.15) { anywhere } else { believed };
        self.begin_at(client, kind, region, store)
    }

    /// Draws a write for an idle client, at the leader of the region or at any store.
    pub(crate) fn begin_write(&mut self, client: usize, leaders: &BTreeMap<RegionId, StoreId>) -> Operation {
        let region = self.options.cluster.regions[self.rng.random_range(0..self.options.cluster.regions.len())].id;
        let register = self.rng.random_range(0..self.options.registers);
        let anywhere = StoreId::new(self.rng.random_range(1..=self.options.cluster.stores));
        let store = leaders.get(&region).copied().unwrap_or(anywhere);
        self.begin_at(client, Kind::Write(register), region, store)
    }

    /// Draws a lease read at `store` for an idle client.
    pub(crate) fn begin_probe(&mut self, client: usize, store: StoreId) -> Operation {
        let region = self.options.cluster.regions[self.rng.random_range(0..self.options.cluster.regions.len())].id;
        let register = self.rng.random_range(0..self.options.registers);
        self.begin_at(client, Kind::LeaseRead(register), region, store)
    }

    fn begin_at(&mut self, client: usize, kind: Kind, region: RegionId, store: StoreId) -> Operation {
        let begin = self.moment();
        let value = self.moment();
        match kind {
            Kind::Write(register) => self.registers.entry((region, register)).or_default().begin_write(value, begin),
            Kind::Append => self.lists.entry((region, client)).or_default().begin(value),
            Kind::LeaseRead(_) | Kind::IndexRead(_) => {}
        }
        Operation { value, kind, region, store, begin }
    }

    /// The store is down: the operation has no effect. The client tries elsewhere next.
    pub(crate) fn not_sent(&mut self, client: usize, operation: Operation) -> Result<Step, Violation> {
        self.clients[client].hints.remove(&operation.region);
        self.refuse(client, operation, "not sent".to_owned())
    }

    /// The store is paused: the operation waits there.
    pub(crate) fn stall(&mut self, client: usize, operation: Operation) {
        self.clients[client].state = State::Stalled(operation);
    }

    /// The store resumes: returns its operation if it still waits there.
    pub(crate) fn unstall(&mut self, client: usize, store: StoreId) -> Option<Operation> {
        match self.clients[client].state {
            State::Stalled(operation) if operation.store == store => Some(operation),
            _ => None,
        }
    }

    /// Starts the operation at its store.
    pub(crate) fn send(
        &mut self,
        client: usize,
        operation: Operation,
        handle: &StoreHandle<MemoryStore>,
    ) -> Result<Step, Violation> {
        let Some(region) = self.options.region(operation.region).cloned() else {
            return violated("a client knows a region that does not exist");
        };
        let ctx = RegionContext { region: region.id, epoch: region.epoch };
        match operation.kind {
            Kind::Write(register) => match handle.evaluate(ctx) {
                Ok(snapshot) => {
                    let batch = self.write_batch(&region, register, operation.value);
                    self.hold_or_propose(client, operation, snapshot, batch, handle)
                }
                Err(error) => self.region_error(client, operation, &error),
            },
            Kind::Append => match handle.evaluate(ctx) {
                Ok(snapshot) => {
                    let batch = self.append_batch(&region, client, operation.value, &snapshot)?;
                    self.hold_or_propose(client, operation, snapshot, batch, handle)
                }
                Err(error) => self.region_error(client, operation, &error),
            },
            Kind::LeaseRead(_) if self.options.preempts > 0.0 && self.rng.random_bool(self.options.preempts) => {
                match PreemptedRead::begin(handle, ctx) {
                    Begun::Answered(answer) => self.lease_answer(client, operation, answer, handle),
                    Begun::Preempted(read) => {
                        self.stats.preempted += 1;
                        self.clients[client].state = State::Preempted(operation, read);
                        Ok(Step::Preempted)
                    }
                }
            }
            Kind::LeaseRead(_) => self.lease_answer(client, operation, handle.try_read(ctx), handle),
            Kind::IndexRead(_) => self.read_by_index(client, operation, ctx, handle),
        }
    }

    /// Ends a lease read, or goes on by read index if the lease does not cover it.
    fn lease_answer(
        &mut self,
        client: usize,
        operation: Operation,
        answer: Answer,
        handle: &StoreHandle<MemoryStore>,
    ) -> Result<Step, Violation> {
        let Some(region) = self.options.region(operation.region) else { return violated("a region is gone") };
        let ctx = RegionContext { region: region.id, epoch: region.epoch };
        match (answer, operation.kind) {
            (Ok(Some(snapshot)), Kind::LeaseRead(register)) => {
                self.stats.lease_reads += 1;
                self.finish_read(client, operation, register, &snapshot)
            }
            (Ok(Some(_)), _) => violated("a write was answered with a read"),
            (Ok(None), _) => self.read_by_index(client, operation, ctx, handle),
            (Err(error), _) => self.region_error(client, operation, &error),
        }
    }

    fn read_by_index(
        &mut self,
        client: usize,
        operation: Operation,
        ctx: RegionContext,
        handle: &StoreHandle<MemoryStore>,
    ) -> Result<Step, Violation> {
        let handle = handle.clone();
        let future: ReadFuture = Box::pin(async move { handle.read(ctx).await });
        self.clients[client].state = State::Reading(operation, future);
        self.poll(client)
    }

    fn hold_or_propose(
        &mut self,
        client: usize,
        operation: Operation,
        snapshot: Snapshot,
        batch: WriteBatch,
        handle: &StoreHandle<MemoryStore>,
    ) -> Result<Step, Violation> {
        self.clients[client].state = State::Holding(operation, Box::new(snapshot), batch);
        if self.rng.random_bool(0.2) { Ok(Step::Holds) } else { self.propose(client, handle) }
    }

    /// The store for which a client holds an evaluated write or a preempted read.
    pub(crate) fn holds_for(&self, client: usize) -> Option<StoreId> {
        match &self.clients[client].state {
            State::Holding(operation, ..) | State::Preempted(operation, _) => Some(operation.store),
            _ => None,
        }
    }

    /// Goes on with the preempted read, or the write, that the client holds.
    pub(crate) fn go_on(&mut self, client: usize, handle: &StoreHandle<MemoryStore>) -> Result<Step, Violation> {
        match std::mem::replace(&mut self.clients[client].state, State::Idle) {
            State::Preempted(operation, read) => self.lease_answer(client, operation, read.resume(), handle),
            other => {
                self.clients[client].state = other;
                self.propose(client, handle)
            }
        }
    }

    /// Proposes the write that the client holds.
    fn propose(&mut self, client: usize, handle: &StoreHandle<MemoryStore>) -> Result<Step, Violation> {
        match std::mem::replace(&mut self.clients[client].state, State::Idle) {
            State::Holding(operation, snapshot, batch) => {
                let handle = handle.clone();
                let future: WriteFuture = Box::pin(async move { handle.propose(&snapshot, batch).await });
                self.clients[client].state = State::Writing(operation, future);
                self.poll(client)
            }
            other => {
                self.clients[client].state = other;
                Ok(Step::Waiting)
            }
        }
    }

    /// The clients that wait for `store`.
    pub(crate) fn waiting_for(&self, store: StoreId) -> Vec<usize> {
        let waits = |client: &Client| match &client.state {
            State::Writing(operation, _) | State::Reading(operation, _) => operation.store == store,
            _ => false,
        };
        (0..self.clients.len()).filter(|&at| waits(&self.clients[at])).collect()
    }

    /// Polls the client's operation.
    pub(crate) fn poll(&mut self, client: usize) -> Result<Step, Violation> {
        let mut context = Context::from_waker(Waker::noop());
        match &mut self.clients[client].state {
            State::Writing(operation, future) => {
                let operation = *operation;
                let Poll::Ready(result) = future.as_mut().poll(&mut context) else { return Ok(Step::Waiting) };
                match result {
                    Ok(index) => self.confirm(client, operation, index),
                    Err(ProposeError::Region(error)) => self.region_error(client, operation, &error),
                    Err(error) => Ok(self.finish_unknown(client, operation, error.to_string())),
                }
            }
            State::Reading(operation, future) => {
                let operation = *operation;
                let Poll::Ready(result) = future.as_mut().poll(&mut context) else { return Ok(Step::Waiting) };
                match (result, operation.kind) {
                    (Ok(snapshot), Kind::LeaseRead(register) | Kind::IndexRead(register)) => {
                        self.stats.index_reads += 1;
                        self.finish_read(client, operation, register, &snapshot)
                    }
                    (Ok(_), _) => violated("a write was answered with a read"),
                    (Err(error), _) => self.region_error(client, operation, &error),
                }
            }
            _ => Ok(Step::Waiting),
        }
    }

    /// Times out the operation with this value. `None` if the client no longer waits for it, or must wait.
    pub(crate) fn time_out(&mut self, client: usize, value: Value) -> Option<Step> {
        let operation = match &self.clients[client].state {
            State::Writing(operation, _) | State::Reading(operation, _) => *operation,
            _ => return None,
        };
        if operation.value != value || operation.kind == Kind::Append {
            return None;
        }
        self.clients[client].hints.remove(&operation.region);
        Some(self.finish_unknown(client, operation, "times out".to_owned()))
    }

    /// The store crashed: its pending operations are never answered.
    pub(crate) fn store_crashed(&mut self, store: StoreId) -> Result<Vec<usize>, Violation> {
        let mut freed = Vec::new();
        for client in 0..self.clients.len() {
            let (operation, proposed) = match &self.clients[client].state {
                State::Writing(operation, _) | State::Reading(operation, _) => (*operation, true),
                State::Holding(operation, ..) | State::Preempted(operation, _) | State::Stalled(operation) => {
                    (*operation, false)
                }
                State::Idle => continue,
            };
            if operation.store != store {
                continue;
            }
            self.clients[client].hints.remove(&operation.region);
            if proposed {
                self.finish_unknown(client, operation, "store crashed".to_owned());
            } else {
                self.refuse(client, operation, "store crashed".to_owned())?;
            }
            freed.push(client);
        }
        Ok(freed)
    }

    fn confirm(&mut self, client: usize, operation: Operation, index: LogIndex) -> Result<Step, Violation> {
        let end = self.moment();
        self.end_write(client, operation, WriteOutcome::Confirmed(end));
        self.stats.writes += 1;
        self.clients[client].hints.insert(operation.region, operation.store);
        self.clients[client].state = State::Idle;
        self.confirmed.add(operation.region, operation.begin);
        Ok(Step::Done(format!("confirmed at index {index}")))
    }

    fn region_error(&mut self, client: usize, operation: Operation, error: &RegionError) -> Result<Step, Violation> {
        match error {
            RegionError::NotLeader { leader: Some(leader), .. } => {
                self.clients[client].hints.insert(operation.region, leader.store);
            }
            RegionError::ServerBusy { .. } | RegionError::NotReady { .. } => {}
            RegionError::EpochNotMatch { .. } | RegionError::KeyNotInRegion { .. } => {
                return violated(format!("a correct request was refused: {error}"));
            }
            _ => {
                self.clients[client].hints.remove(&operation.region);
            }
        }
        self.refuse(client, operation, error.to_string())
    }

    fn refuse(&mut self, client: usize, operation: Operation, why: String) -> Result<Step, Violation> {
        match operation.kind {
            Kind::Write(_) | Kind::Append => {
                self.stats.refused += 1;
                self.end_write(client, operation, WriteOutcome::Refused);
            }
            Kind::LeaseRead(_) | Kind::IndexRead(_) => self.stats.failed_reads += 1,
        }
        self.clients[client].state = State::Idle;
        Ok(Step::Refused(why))
    }

    /// Ends an operation with an unknown outcome.
    fn finish_unknown(&mut self, client: usize, operation: Operation, why: String) -> Step {
        match operation.kind {
            Kind::Write(_) | Kind::Append => self.stats.unknown += 1,
            Kind::LeaseRead(_) | Kind::IndexRead(_) => self.stats.failed_reads += 1,
        }
        self.clients[client].state = State::Idle;
        Step::Done(why)
    }

    fn end_write(&mut self, client: usize, operation: Operation, outcome: WriteOutcome) {
        match operation.kind {
            Kind::Write(register) => {
                self.registers.entry((operation.region, register)).or_default().end_write(operation.value, outcome);
            }
            Kind::Append => self.lists.entry((operation.region, client)).or_default().end(operation.value, outcome),
            Kind::LeaseRead(_) | Kind::IndexRead(_) => {}
        }
    }

    fn finish_read(
        &mut self,
        client: usize,
        operation: Operation,
        register: u64,
        snapshot: &Snapshot,
    ) -> Result<Step, Violation> {
        let Some(region) = self.options.region(operation.region) else { return violated("a region is gone") };
        let value = read_register(snapshot, region, register)?;
        let end = self.moment();
        self.registers.entry((operation.region, register)).or_default().read(value, operation.begin, end);
        self.clients[client].hints.insert(operation.region, operation.store);
        self.clients[client].state = State::Idle;
        Ok(Step::Done(format!("read {value}")))
    }

    fn write_batch(&mut self, region: &Region, register: u64, value: Value) -> WriteBatch {
        let mut batch = WriteBatch::new();
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.resize(8 + self.rng.random_range(0..=self.options.padding), value as u8);
        batch.put(Cf::Default, &register_key(region, register), &bytes);
        self.add_ballast(region, value, &mut batch);
        batch
    }

    fn append_batch(
        &mut self,
        region: &Region,
        client: usize,
        value: Value,
        snapshot: &Snapshot,
    ) -> Result<WriteBatch, Violation> {
        let key = list_key(region, client);
        let found = snapshot.get(Cf::Write, &key).map_err(|error| Violation(error.to_string()))?;
        let mut list = found.unwrap_or_default();
        list.extend_from_slice(&value.to_le_bytes());
        let mut batch = WriteBatch::new();
        batch.put(Cf::Write, &key, &list);
        self.add_ballast(region, value, &mut batch);
        Ok(batch)
    }

    fn add_ballast(&mut self, region: &Region, value: Value, batch: &mut WriteBatch) {
        for _ in 0..self.rng.random_range(0..4) {
            let row = self.rng.random_range(0..BALLAST_ROWS);
            let cf = Cf::DATA[self.rng.random_range(0..Cf::DATA.len())];
            match self.rng.random_range(0..10) {
                0 => batch.delete_range(cf, &ballast_key(region, row), &ballast_key(region, row + 5)),
                1..3 => batch.delete(cf, &ballast_key(region, row)),
                _ => batch.put(cf, &ballast_key(region, row), &value.to_le_bytes()),
            }
        }
    }

    /// Reads every register and list of a region from its final data.
    pub(crate) fn final_reads(&mut self, region: &Region, reader: &dyn Reader) -> Checked {
        for register in 0..self.options.registers {
            let (begin, end) = (self.moment(), self.moment());
            let value = read_register(reader, region, register)?;
            self.registers.entry((region.id, register)).or_default().read(value, begin, end);
        }
        for client in 0..self.clients.len() {
            let bytes =
                reader.get(Cf::Write, &list_key(region, client)).map_err(|error| Violation(error.to_string()))?;
            let values: Vec<Value> = bytes.unwrap_or_default().chunks(8).map(parse_value).collect();
            let list = self.lists.entry((region.id, client)).or_default();
            list.check(&values).map_err(|Violation(what)| {
                Violation(format!("list of client {client} in region {}: {what}", region.id))
            })?;
        }
        Ok(())
    }

    /// Checks that all registers are linearizable so far.
    pub(crate) fn check_registers(&self) -> Checked {
        for ((region, register), history) in &self.registers {
            history.check().map_err(|Violation(what)| {
                Violation(format!("register {register} of region {region} is not linearizable: {what}"))
            })?;
        }
        Ok(())
    }
}

fn read_register(reader: &dyn Reader, region: &Region, register: u64) -> Result<Value, Violation> {
    let bytes =
        reader.get(Cf::Default, &register_key(region, register)).map_err(|error| Violation(error.to_string()))?;
    Ok(bytes.map_or(simulator::checkers::history::INITIAL, |bytes| parse_value(&bytes)))
}

fn parse_value(bytes: &[u8]) -> Value {
    bytes.first_chunk::<8>().map_or(Value::MAX, |bytes| Value::from_le_bytes(*bytes))
}

/// A key prefix inside the region.
fn prefix(region: &Region) -> &'static str {
    if region.start.is_empty() { "a" } else { "z" }
}

fn register_key(region: &Region, register: u64) -> Vec<u8> {
    format!("{}r{register}", prefix(region)).into_bytes()
}

fn list_key(region: &Region, client: usize) -> Vec<u8> {
    format!("{}l{client}", prefix(region)).into_bytes()
}

fn ballast_key(region: &Region, row: u64) -> Vec<u8> {
    format!("{}x{row:04}", prefix(region)).into_bytes()
}
