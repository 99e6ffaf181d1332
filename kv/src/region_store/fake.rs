//! A store of one region in memory. A test decides its leadership, its lease and the outcome of its proposals.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::store::memory::{MemorySnapshot, MemoryStore};
use engine::store::{Cursor, NewestReader, Reader, Result as StoreResult, Store, StoreError, Visit};
use engine::{Cf, WriteBatch};
use parking_lot::Mutex;
use raftstore::{
    Basis, DataGeneration, Epoch, Floor, Floors, LogIndex, PeerId, PeerMeta, PeerRole, ProposalObserver, ProposeError,
    Region, RegionContext, RegionError, RegionId, RegionStatus, ReplicaState, StoreId, Term,
};
use tokio::sync::oneshot;

use super::{RegionReads, RegionStore, RegionView};
use crate::key::Key;

/// The outcome of a proposal.
pub(crate) enum ProposalOutcome {
    /// It is applied once the sender sends or is dropped.
    Held(oneshot::Receiver<()>),
    /// It is refused.
    Refused(RegionError),
    /// The caller sees an unknown outcome; `applied` says whether it takes effect.
    Unknown { applied: bool },
    /// The store's log failed.
    Poisoned,
}

#[derive(Clone)]
pub(crate) struct FakeStore {
    id: StoreId,
    data: MemoryStore,
    state: Arc<Mutex<State>>,
    /// Cursors over write records that views opened, but those of memory alone.
    write_cursors: Arc<AtomicUsize>,
    /// Views taken.
    views: Arc<AtomicUsize>,
    /// The names of the threads that read the row in a file, as often as they did.
    file_readers: Arc<Mutex<Vec<String>>>,
    /// While its sender lives, reads of the row in a file do not return.
    file_gate: FileGate,
}

type FileGate = Arc<Mutex<Option<Receiver<()>>>>;

struct State {
    region: Region,
    term: Term,
    /// The term that reads see, if it differs from the one that evaluations see.
    read_term: Option<Term>,
    is_leader: bool,
    has_lease: bool,
    outcomes: VecDeque<ProposalOutcome>,
    floors: Floors,
    /// Why the store was poisoned.
    poisoned: Option<String>,
    /// A row whose reads fail.
    unreadable: Option<UnreadableRow>,
    /// A row that is not in memory.
    cold: Option<Vec<u8>>,
    read_indexes: usize,
    /// How long a read index takes.
    read_delay: Duration,
    proposals: usize,
    /// What a replica says of itself.
    applied: LogIndex,
    generation: u64,
    /// The leader, if it is another store.
    leader: Option<StoreId>,
    held: Vec<Weak<Mutex<Option<ProposalObserver>>>>,
}

/// The observer of a proposal that is held; gone once it has its answer.
type HeldObserver = Arc<Mutex<Option<ProposalObserver>>>;

/// A storage key, and the error of every read of it.
type UnreadableRow = (Vec<u8>, fn() -> StoreError);

#[derive(Clone)]
pub(crate) struct FakeView {
    snapshot: MemorySnapshot,
    region: Region,
    term: Term,
    unreadable: Option<UnreadableRow>,
    /// A row that is only in a file.
    in_file: Option<Vec<u8>>,
    /// Whether the view reads memory alone.
    is_cached: bool,
    write_cursors: Arc<AtomicUsize>,
    file_readers: Arc<Mutex<Vec<String>>>,
    file_gate: FileGate,
}

impl FakeStore {
    /// A store that leads region 2, from "b" to "y", in term 5 and with a lease.
    pub(crate) fn new() -> FakeStore {
        let peer = PeerMeta { id: PeerId::new(1), store: StoreId::new(1), role: PeerRole::Voter };
        let region = Region {
            id: RegionId::FIRST_DATA,
            start: Key::from_static(b"b").to_storage(),
            end: Key::from_static(b"y").to_storage(),
            epoch: Epoch { conf_ver: 1, version: 1 },
            peers: vec![peer],
        };
        let state = State {
            region,
            term: Term::new(5),
            read_term: None,
            is_leader: true,
            has_lease: true,
            outcomes: VecDeque::new(),
            floors: Floors::default(),
            poisoned: None,
            unreadable: None,
            cold: None,
            read_indexes: 0,
            read_delay: Duration::ZERO,
            proposals: 0,
            applied: LogIndex::new(1),
            generation: 1,
            leader: None,
            held: Vec::new(),
        };
        FakeStore {
            id: StoreId::new(1),
            data: MemoryStore::new(),
            state: Arc::new(Mutex::new(state)),
            write_cursors: Arc::default(),
            views: Arc::default(),
            file_readers: Arc::default(),
            file_gate: Arc::default(),
        }
    }

    pub(crate) fn context(&self) -> RegionContext {
        let state = self.state.lock();
        RegionContext { region: state.region.id, epoch: state.region.epoch }
    }

    /// Sets the outcome of the next proposal that has none yet. Proposals without a outcome are applied at once.
    pub(crate) fn push_outcome(&self, outcome: ProposalOutcome) {
        self.state.lock().outcomes.push_back(outcome);
    }

    pub(crate) fn set_term(&self, term: u64) {
        self.state.lock().term = Term::new(term);
    }

    pub(crate) fn set_read_term(&self, term: u64) {
        self.state.lock().read_term = Some(Term::new(term));
    }

    pub(crate) fn set_leader(&self, is_leader: bool) {
        self.state.lock().is_leader = is_leader;
    }

    pub(crate) fn set_lease(&self, has_lease: bool) {
        self.state.lock().has_lease = has_lease;
    }

    pub(crate) fn set_read_delay(&self, delay: Duration) {
        self.state.lock().read_delay = delay;
    }

    /// Raises the version of the region's epoch, as a split at its end would.
    pub(crate) fn raise_epoch(&self) {
        self.state.lock().region.epoch.version += 1;
    }

    /// A store with a replica that follows this one's. It has the same data, whatever it says to have applied.
    pub(crate) fn follower(&self, id: StoreId) -> FakeStore {
        let follower = FakeStore { id, data: self.data.clone(), ..FakeStore::new() };
        let mut state = follower.state.lock();
        (state.is_leader, state.leader) = (false, Some(self.id));
        drop(state);
        follower
    }

    /// Adds a voter on another store.
    pub(crate) fn add_peer(&self, store: StoreId) {
        let peer = PeerMeta { id: PeerId::new(store.get()), store, role: PeerRole::Voter };
        self.state.lock().region.peers.push(peer);
    }

    /// The proposals that are held get their entry in the log.
    pub(crate) fn place_held(&self, index: LogIndex) {
        let held: Vec<HeldObserver> = self.state.lock().held.iter().filter_map(Weak::upgrade).collect();
        held.iter().for_each(|observer| observer.lock().iter().for_each(|observer| observer.appended(index)));
    }

    pub(crate) fn set_applied(&self, index: u64) {
        self.state.lock().applied = LogIndex::new(index);
    }

    /// The replica's data is replaced.
    pub(crate) fn replace_data(&self) {
        self.state.lock().generation += 1;
    }

    fn check_generation(&self, before: &ReplicaState) -> Result<(), RegionError> {
        let state = self.state.lock();
        if DataGeneration::new(state.generation) == before.generation {
            return Ok(());
        }
        Err(RegionError::NotReady { region: state.region.id, why: "replaced".to_owned() })
    }

    /// The number of cursors over write records that reads opened so far.
    pub(crate) fn write_cursors(&self) -> usize {
        self.write_cursors.load(Ordering::Relaxed)
    }

    /// The number of views taken so far.
    pub(crate) fn views(&self) -> usize {
        self.views.load(Ordering::Relaxed)
    }

    pub(crate) fn read_indexes(&self) -> usize {
        self.state.lock().read_indexes
    }

    pub(crate) fn proposals(&self) -> usize {
        self.state.lock().proposals
    }

    pub(crate) fn poisoned(&self) -> Option<String> {
        self.state.lock().poisoned.clone()
    }

    /// The data as it is now.
    pub(crate) fn newest(&self) -> impl Reader {
        self.data.snapshot()
    }

    /// Writes a row as it is, well-formed or not.
    pub(crate) fn write_raw(&self, cf: Cf, key: &[u8], value: &[u8]) {
        let mut batch = WriteBatch::new();
        batch.put(cf, key, value);
        self.apply(&batch);
    }

    /// Makes reads of this row fail in all views taken from now on.
    pub(crate) fn fail_reads_of(&self, key: &[u8], error: fn() -> StoreError) {
        self.state.lock().unreadable = Some((key.to_vec(), error));
    }

    /// The names of the threads that read the row in a file, as often as they did.
    pub(crate) fn file_readers(&self) -> Vec<String> {
        self.file_readers.lock().clone()
    }

    /// Makes reads of the row in a file take until the sender is dropped.
    pub(crate) fn hold_file_reads(&self) -> SyncSender<()> {
        let (gate, held) = sync_channel(0);
        *self.file_gate.lock() = Some(held);
        gate
    }

    /// Makes this row be in a file alone.
    pub(crate) fn cool(&self, key: &[u8]) {
        self.state.lock().cold = Some(key.to_vec());
    }

    fn check(state: &State, context: RegionContext) -> Result<(), RegionError> {
        if state.poisoned.is_some() || !state.is_leader {
            return Err(RegionError::NotLeader { region: state.region.id, leader: None });
        }
        if state.region.epoch != context.epoch {
            return Err(RegionError::EpochNotMatch { current: Box::new(state.region.clone()) });
        }
        Ok(())
    }

    fn view(&self, state: &State, context: RegionContext, term: Term) -> Result<FakeView, RegionError> {
        Self::check(state, context)?;
        Ok(self.view_of(state, term))
    }

    fn view_of(&self, state: &State, term: Term) -> FakeView {
        self.views.fetch_add(1, Ordering::Relaxed);
        let (region, unreadable) = (state.region.clone(), state.unreadable.clone());
        let (write_cursors, file_readers) = (Arc::clone(&self.write_cursors), Arc::clone(&self.file_readers));
        let (snapshot, in_file, is_cached) = (self.data.snapshot(), state.cold.clone(), false);
        let file_gate = Arc::clone(&self.file_gate);
        FakeView { snapshot, region, term, unreadable, in_file, is_cached, write_cursors, file_readers, file_gate }
    }

    fn apply(&self, batch: &WriteBatch) -> LogIndex {
        self.data.write(batch).unwrap();
        LogIndex::new(1)
    }
}

impl FakeView {
    /// A read of the row, if it is true: fails if the view reads memory alone, and otherwise takes note of the thread.
    fn touch(&self, is_row: impl Fn(&[u8]) -> bool) -> StoreResult<()> {
        if self.in_file.as_deref().is_some_and(is_row) {
            if self.is_cached {
                return Err(StoreError::NotCached);
            }
            self.file_readers.lock().push(std::thread::current().name().unwrap_or_default().to_owned());
            if let Some(gate) = &*self.file_gate.lock() {
                // Fails when the sender is dropped.
                let _ = gate.recv();
            }
        }
        Ok(())
    }
}

impl Reader for FakeView {
    fn get(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        assert!(self.region.contains(key), "read outside the region");
        if let Some((_, error)) = self.unreadable.as_ref().filter(|(row, _)| row == key) {
            return Err(error());
        }
        self.touch(|row| row == key)?;
        self.snapshot.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> StoreResult<Box<dyn Cursor>> {
        assert!(self.region.contains_range(lower, upper), "cursor outside the region");
        if cf == Cf::Write && !self.is_cached {
            self.write_cursors.fetch_add(1, Ordering::Relaxed);
        }
        self.touch(|row| row >= lower && (upper.is_empty() || row < upper))?;
        self.snapshot.cursor(cf, lower, upper)
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], skips: usize) -> StoreResult<Box<dyn Cursor>> {
        assert!(self.region.contains_range(lower, upper), "cursor outside the region");
        self.snapshot.limited_cursor(cf, lower, upper, skips)
    }
}

/// The newest state of the region. Like a view it refuses other rows, and fails for the unreadable one.
struct FakeNewest {
    data: MemoryStore,
    region: Region,
    unreadable: Option<UnreadableRow>,
    cold: Option<Vec<u8>>,
}

impl NewestReader for FakeNewest {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        assert!(self.region.contains(key), "read outside the region");
        if let Some((_, error)) = self.unreadable.as_ref().filter(|(row, _)| row == key) {
            return Err(error());
        }
        if self.cold.as_deref() == Some(key) {
            return Err(StoreError::NotCached);
        }
        self.data.get_newest(cf, key)
    }

    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        assert!(self.region.contains(prefix), "read outside the region");
        self.data.visit_versions(cf, prefix, from, visit)
    }
}

impl RegionView for FakeView {
    fn region(&self) -> &Region {
        &self.region
    }

    fn term(&self) -> Term {
        self.term
    }

    fn cached(&self) -> FakeView {
        FakeView { is_cached: true, ..self.clone() }
    }
}

impl RegionReads for FakeStore {
    type View = FakeView;

    fn store_id(&self) -> StoreId {
        self.id
    }

    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError> {
        let state = self.state.lock();
        Self::check(&state, context).map(|()| state.has_lease)
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<FakeView>, RegionError> {
        let state = self.state.lock();
        let view = self.view(&state, context, state.read_term.unwrap_or(state.term))?;
        Ok(state.has_lease.then_some(view))
    }

    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let state = self.state.lock();
        Self::check(&state, context)?;
        let (region, unreadable, cold) = (state.region.clone(), state.unreadable.clone(), state.cold.clone());
        let newest = FakeNewest { data: self.data.clone(), region, unreadable, cold };
        let done = read(&newest, &newest.region);
        Ok(state.has_lease.then_some((done, state.floors.reads)))
    }

    async fn read(&self, context: RegionContext) -> Result<FakeView, RegionError> {
        let delay = self.state.lock().read_delay;
        if delay.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(delay).await;
        }
        let mut state = self.state.lock();
        state.read_indexes += 1;
        self.view(&state, context, state.read_term.unwrap_or(state.term))
    }

    fn regions(&self) -> Vec<RegionStatus> {
        let start = self.state.lock().region.start.clone();
        self.locate(&start).into_iter().collect()
    }

    fn leader(&self, _region: RegionId) -> Option<StoreId> {
        let state = self.state.lock();
        if state.is_leader { Some(self.store_id()) } else { state.leader }
    }

    fn sample<T>(
        &self,
        _region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        let state = self.state.lock();
        Self::check(&state, RegionContext::from(&state.region))?;
        let (region, term, applied, has_lease) =
            (Arc::new(state.region.clone()), state.term, state.applied, state.has_lease);
        drop(state);
        let looked = look(&region, term);
        Ok(has_lease.then_some((looked, applied, Basis { region, term })))
    }

    fn replica(&self, _region: RegionId) -> Result<ReplicaState, RegionError> {
        let state = self.state.lock();
        let (region, applied) = (Arc::new(state.region.clone()), state.applied);
        Ok(ReplicaState { region, generation: DataGeneration::new(state.generation), applied })
    }

    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let before = self.replica(context.region)?;
        let state = self.state.lock();
        let (region, unreadable, cold) = (state.region.clone(), state.unreadable.clone(), state.cold.clone());
        drop(state);
        let done = read(&before, &FakeNewest { data: self.data.clone(), region, unreadable, cold });
        self.check_generation(&before)?;
        let floor = self.state.lock().floors.reads;
        Ok(done.map(|done| (done, floor)))
    }

    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<FakeView>, RegionError> {
        let before = self.replica(context.region)?;
        if !is_enough(&before) {
            return Ok(None);
        }
        let view = {
            let state = self.state.lock();
            self.view_of(&state, state.term)
        };
        self.check_generation(&before)?;
        Ok(Some(view))
    }

    async fn applied(&self, _region: RegionId, index: LogIndex) -> Result<(), RegionError> {
        while self.state.lock().applied < index {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    fn floors(&self, _region: RegionId) -> Floors {
        self.state.lock().floors
    }

    fn poison(&self, why: &str) {
        self.state.lock().poisoned.get_or_insert_with(|| why.to_owned());
    }
}

impl RegionStore for FakeStore {
    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        let state = self.state.lock();
        let region = state.region.clone();
        let leader = region.peers.first().copied();
        let (term, applied, is_leader) = (state.term, LogIndex::new(1), state.is_leader);
        region.contains(key).then_some(RegionStatus { region, leader, term, applied, is_leader })
    }

    fn basis(&self, context: RegionContext) -> Result<Basis, RegionError> {
        let state = self.state.lock();
        Self::check(&state, context)?;
        Ok(Basis { region: Arc::new(state.region.clone()), term: state.term })
    }

    fn evaluate(&self, context: RegionContext) -> Result<FakeView, RegionError> {
        let state = self.state.lock();
        self.view(&state, context, state.term)
    }

    fn evaluate_cached<T>(&self, basis: &Basis, evaluate: impl FnOnce(&dyn Reader) -> T) -> Result<T, RegionError> {
        let view = {
            let state = self.state.lock();
            if state.term != basis.term {
                return Err(RegionError::StaleCommand { region: state.region.id });
            }
            let context = RegionContext { region: state.region.id, epoch: basis.region.epoch };
            let view = self.view(&state, context, state.term)?;
            view.cached()
        };
        Ok(evaluate(&view))
    }

    async fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> Result<LogIndex, ProposeError> {
        let region = basis.region.id;
        let outcome = {
            let mut state = self.state.lock();
            state.proposals += 1;
            state.outcomes.pop_front()
        };
        let outcome = match outcome {
            None if date.is_some_and(|date| date <= self.state.lock().floors.writes) => {
                Err(RegionError::StaleCommand { region }.into())
            }
            None => Ok(self.apply(&batch)),
            Some(ProposalOutcome::Held(release)) => {
                // A real store applies it whether the caller waits or not.
                let (store, (reply, answer)) = (self.clone(), oneshot::channel());
                let held: HeldObserver = Arc::new(Mutex::new(Some(observer)));
                self.state.lock().held.push(Arc::downgrade(&held));
                tokio::spawn(async move {
                    let _ = release.await;
                    let outcome = Ok(store.apply(&batch));
                    let observer = held.lock().take();
                    observer.into_iter().for_each(|observer| observer.answered(&outcome));
                    let _ = reply.send(outcome);
                });
                return answer.await.unwrap_or(Err(ProposeError::Undetermined { region }));
            }
            Some(ProposalOutcome::Refused(error)) => Err(error.into()),
            Some(ProposalOutcome::Unknown { applied }) => {
                if applied {
                    self.apply(&batch);
                }
                Err(ProposeError::Undetermined { region })
            }
            Some(ProposalOutcome::Poisoned) => Err(ProposeError::Poisoned("planted".to_owned())),
        };
        observer.answered(&outcome);
        outcome
    }

    async fn raise_floors(&self, _basis: &Basis, floors: Floors) -> Result<LogIndex, ProposeError> {
        let mut state = self.state.lock();
        state.floors = state.floors.raised_to(floors);
        Ok(state.applied)
    }
}
