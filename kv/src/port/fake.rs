//! A store of one region whose leadership and whose proposals go as a test says.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::store::memory::{MemorySnapshot, MemoryStore};
use engine::store::{Cursor, Reader, Result as StoreResult, Store, StoreError};
use engine::{Cf, WriteBatch};
use parking_lot::Mutex;
use raftstore::{
    Epoch, LogIndex, PeerId, PeerMeta, PeerRole, ProposeError, Region, RegionContext, RegionError, RegionId,
    RegionStatus, StoreId, Term,
};
use tokio::sync::oneshot;

use super::{RegionStore, RegionView};
use crate::key::Key;

/// What becomes of a proposal.
pub(crate) enum Fate {
    /// It is applied when the sender says so, or is dropped.
    Held(oneshot::Receiver<()>),
    /// It is refused.
    Refused(RegionError),
    /// Nobody knows; in truth it is applied, or not.
    Unknown { applied: bool },
    /// The store's log failed.
    Poisoned,
}

#[derive(Clone)]
pub(crate) struct FakeStore {
    data: MemoryStore,
    state: Arc<Mutex<State>>,
}

struct State {
    region: Region,
    term: Term,
    /// The term in which reads find the store, if it changes after writes are evaluated.
    read_term: Option<Term>,
    leads: bool,
    has_lease: bool,
    fates: VecDeque<Fate>,
    /// Why it serves nothing any more.
    failed: Option<String>,
    /// A row that cannot be read, and what the attempt ends in.
    broken: Option<Broken>,
    read_indexes: usize,
    proposals: usize,
}

type Broken = (Vec<u8>, fn() -> StoreError);

#[derive(Clone)]
pub(crate) struct FakeView {
    snapshot: MemorySnapshot,
    region: Region,
    term: Term,
    broken: Option<Broken>,
}

impl FakeStore {
    /// Leads region 2, from "b" to "y", in term 5, with a lease.
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
            leads: true,
            has_lease: true,
            fates: VecDeque::new(),
            failed: None,
            broken: None,
            read_indexes: 0,
            proposals: 0,
        };
        FakeStore { data: MemoryStore::new(), state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn context(&self) -> RegionContext {
        let state = self.state.lock();
        RegionContext { region: state.region.id, epoch: state.region.epoch }
    }

    /// The next proposals go so; later ones are applied at once.
    pub(crate) fn order(&self, fate: Fate) {
        self.state.lock().fates.push_back(fate);
    }

    pub(crate) fn set_term(&self, term: u64) {
        self.state.lock().term = Term::new(term);
    }

    pub(crate) fn set_read_term(&self, term: u64) {
        self.state.lock().read_term = Some(Term::new(term));
    }

    pub(crate) fn set_leads(&self, leads: bool) {
        self.state.lock().leads = leads;
    }

    pub(crate) fn set_lease(&self, has_lease: bool) {
        self.state.lock().has_lease = has_lease;
    }

    pub(crate) fn read_indexes(&self) -> usize {
        self.state.lock().read_indexes
    }

    pub(crate) fn proposals(&self) -> usize {
        self.state.lock().proposals
    }

    pub(crate) fn failed(&self) -> Option<String> {
        self.state.lock().failed.clone()
    }

    /// Puts a row into the store as it is, whatever the layers above make of it.
    pub(crate) fn plant(&self, cf: Cf, key: &[u8], value: &[u8]) {
        let mut batch = WriteBatch::new();
        batch.put(cf, key, value);
        self.apply(&batch);
    }

    /// Views taken from now on cannot read this row, and say so.
    pub(crate) fn break_row(&self, key: &[u8], error: fn() -> StoreError) {
        self.state.lock().broken = Some((key.to_vec(), error));
    }

    fn view(&self, state: &State, context: RegionContext, term: Term) -> Result<FakeView, RegionError> {
        if let Some(why) = &state.failed {
            return Err(RegionError::NotReady { region: state.region.id, why: why.clone() });
        }
        if !state.leads {
            return Err(RegionError::NotLeader { region: state.region.id, leader: None });
        }
        if state.region.epoch != context.epoch {
            return Err(RegionError::EpochNotMatch { current: Box::new(state.region.clone()) });
        }
        let (region, broken) = (state.region.clone(), state.broken.clone());
        Ok(FakeView { snapshot: self.data.snapshot(), region, term, broken })
    }

    fn apply(&self, batch: &WriteBatch) -> LogIndex {
        self.data.write(batch).unwrap();
        LogIndex::new(1)
    }
}

impl Reader for FakeView {
    fn get(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        assert!(self.region.contains(key), "read outside the region");
        if let Some((_, error)) = self.broken.as_ref().filter(|(broken, _)| broken == key) {
            return Err(error());
        }
        self.snapshot.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> StoreResult<Box<dyn Cursor + '_>> {
        assert!(self.region.contains_range(lower, upper), "cursor outside the region");
        self.snapshot.cursor(cf, lower, upper)
    }
}

impl RegionView for FakeView {
    fn region(&self) -> &Region {
        &self.region
    }

    fn term(&self) -> Term {
        self.term
    }
}

impl RegionStore for FakeStore {
    type View = FakeView;

    fn store_id(&self) -> StoreId {
        StoreId::new(1)
    }

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        let state = self.state.lock();
        let region = state.region.clone();
        let leader = region.peers.first().copied();
        let (term, applied, is_leader) = (state.term, LogIndex::new(1), state.leads);
        region.contains(key).then_some(RegionStatus { region, leader, term, applied, is_leader })
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<FakeView>, RegionError> {
        let state = self.state.lock();
        let view = self.view(&state, context, state.read_term.unwrap_or(state.term))?;
        Ok(state.has_lease.then_some(view))
    }

    async fn read(&self, context: RegionContext) -> Result<FakeView, RegionError> {
        tokio::task::yield_now().await;
        let mut state = self.state.lock();
        state.read_indexes += 1;
        self.view(&state, context, state.read_term.unwrap_or(state.term))
    }

    fn evaluate(&self, context: RegionContext) -> Result<FakeView, RegionError> {
        let state = self.state.lock();
        self.view(&state, context, state.term)
    }

    async fn propose(&self, basis: &FakeView, batch: WriteBatch) -> Result<LogIndex, ProposeError> {
        let region = basis.region.id;
        let fate = {
            let mut state = self.state.lock();
            state.proposals += 1;
            state.fates.pop_front()
        };
        match fate {
            None => Ok(self.apply(&batch)),
            Some(Fate::Held(release)) => {
                let _ = release.await;
                Ok(self.apply(&batch))
            }
            Some(Fate::Refused(error)) => Err(error.into()),
            Some(Fate::Unknown { applied }) => {
                if applied {
                    self.apply(&batch);
                }
                Err(ProposeError::Undetermined { region })
            }
            Some(Fate::Poisoned) => Err(ProposeError::Poisoned("planted".to_owned())),
        }
    }

    fn fail(&self, why: &str) {
        self.state.lock().failed.get_or_insert_with(|| why.to_owned());
    }
}
