//! A region on two stores, whose proposals the test applies, loses or leaves undetermined. It stands in for
//! `raftstore::StoreHandle`.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::WriteBatch;
use engine::store::memory::MemoryStore;
use engine::store::{NewestReader, Store};
use kv::memory::RegionReader;
use kv::region_store::{RegionReads, RegionStore, RegionView};
use parking_lot::Mutex;
use raftstore::{
    Basis, DataGeneration, Epoch, Floor, Floors, LogIndex, PeerId, PeerMeta, PeerRole, ProposalObserver, ProposeError,
    Region, RegionContext, RegionError, RegionId, RegionStatus, ReplicaState, StoreId, Term,
};
use tokio::sync::oneshot;

/// Takes the answer to a proposer.
struct Reply {
    observer: ProposalObserver,
    sender: oneshot::Sender<Result<LogIndex, ProposeError>>,
}

impl Reply {
    fn send(self, outcome: Result<LogIndex, ProposeError>) {
        self.observer.answered(&outcome);
        let _ = self.sender.send(outcome);
    }
}

/// One region as one of its stores sees it. The stores share the data, as if replication took no time.
///
/// Invariants:
/// 1. Entries take effect in the order of their proposals.
/// 2. When a term begins, every entry of an earlier term is applied or lost.
#[derive(Clone)]
pub(crate) struct ModelRegion {
    id: StoreId,
    pub(crate) data: MemoryStore,
    state: Arc<Mutex<State>>,
}

struct State {
    region: Region,
    term: Term,
    leader: StoreId,
    applied: u64,
    floors: Floors,
    /// Proposed and not applied. A reply that is gone was lost: the proposer sees an unknown outcome.
    pending: VecDeque<(WriteBatch, Option<Reply>)>,
}

impl ModelRegion {
    pub(crate) fn new() -> ModelRegion {
        let id = StoreId::new(1);
        let peer = PeerMeta { id: PeerId::new(1), store: id, role: PeerRole::Voter };
        let epoch = Epoch { conf_ver: 1, version: 1 };
        let region = Region { id: RegionId::FIRST_DATA, start: Vec::new(), end: Vec::new(), epoch, peers: vec![peer] };
        let state = State {
            region,
            term: Term::new(1),
            leader: id,
            applied: 0,
            floors: Floors::default(),
            pending: VecDeque::new(),
        };
        ModelRegion { id, data: MemoryStore::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// The region as another store sees it.
    pub(crate) fn on(&self, id: StoreId) -> ModelRegion {
        ModelRegion { id, ..self.clone() }
    }

    pub(crate) fn leader(&self) -> StoreId {
        self.state.lock().leader
    }

    pub(crate) fn context(&self) -> RegionContext {
        let state = self.state.lock();
        RegionContext { region: state.region.id, epoch: state.region.epoch }
    }

    pub(crate) fn pending(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// Applies the oldest proposal, if there is one.
    pub(crate) fn apply_next(&self) {
        let mut state = self.state.lock();
        let Some((batch, reply)) = state.pending.pop_front() else { return };
        self.data.write(&batch).unwrap();
        state.applied += 1;
        if let Some(reply) = reply {
            reply.send(Ok(LogIndex::new(state.applied)));
        }
    }

    /// The proposer of a pending entry gets no answer. The entry stays.
    pub(crate) fn lose_reply(&self, at: usize) {
        if let Some((_, reply)) = self.state.lock().pending.get_mut(at) {
            drop(reply.take());
        }
    }

    /// A new term of `leader` begins. The first `kept` pending entries are applied, the others are lost, and no
    /// proposer learns it.
    pub(crate) fn elect(&self, leader: StoreId, kept: usize) {
        let mut state = self.state.lock();
        for (batch, _) in std::mem::take(&mut state.pending).into_iter().take(kept) {
            self.data.write(&batch).unwrap();
            state.applied += 1;
        }
        state.term = Term::new(state.term.get() + 1);
        state.leader = leader;
    }

    fn view(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        let state = self.state.lock();
        assert_eq!(context.region, state.region.id);
        if state.leader != self.id {
            return Err(RegionError::NotLeader { region: state.region.id, leader: None });
        }
        Ok(RegionReader::new(self.data.snapshot(), state.region.clone(), state.term))
    }
}

impl RegionReads for ModelRegion {
    type View = RegionReader;

    fn store_id(&self) -> StoreId {
        self.id
    }

    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError> {
        self.try_read(context).map(|view| view.is_some())
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<RegionReader>, RegionError> {
        self.view(context).map(Some)
    }

    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let region = self.view(context)?.region().clone();
        let done = read(&self.data, &region);
        Ok(Some((done, self.state.lock().floors.reads)))
    }

    async fn read(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        self.view(context)
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.locate(b"").into_iter().collect()
    }

    fn leader(&self, _region: RegionId) -> Option<StoreId> {
        Some(self.state.lock().leader)
    }

    fn sample<T>(
        &self,
        _region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        let view = self.view(self.context())?;
        let (region, term) = (Arc::new(view.region().clone()), view.term());
        let looked = look(&region, term);
        let applied = LogIndex::new(self.state.lock().applied);
        Ok(Some((looked, applied, Basis { region, term })))
    }

    fn replica(&self, _region: RegionId) -> Result<ReplicaState, RegionError> {
        let state = self.state.lock();
        let (region, applied) = (Arc::new(state.region.clone()), LogIndex::new(state.applied));
        Ok(ReplicaState { region, generation: DataGeneration::new(1), applied })
    }

    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let done = read(&self.replica(context.region)?, &self.data);
        Ok(done.map(|done| (done, self.state.lock().floors.reads)))
    }

    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<RegionReader>, RegionError> {
        let state = self.replica(context.region)?;
        let reader = || RegionReader::new(self.data.snapshot(), Region::clone(&state.region), Term::new(1));
        Ok(is_enough(&state).then(reader))
    }

    async fn applied(&self, _region: RegionId, _index: LogIndex) -> Result<(), RegionError> {
        Ok(())
    }

    fn floors(&self, _region: RegionId) -> Floors {
        self.state.lock().floors
    }

    fn poison(&self, _why: &str) {}
}

impl RegionStore for ModelRegion {
    fn locate(&self, _key: &[u8]) -> Option<RegionStatus> {
        let state = self.state.lock();
        let State { region, term, applied, .. } = &*state;
        let (leader, applied) = (region.peers.first().copied(), LogIndex::new(*applied));
        let is_leader = state.leader == self.id;
        Some(RegionStatus { region: region.clone(), leader, term: *term, applied, is_leader })
    }

    fn evaluate(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        self.view(context)
    }

    async fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> Result<LogIndex, ProposeError> {
        let region = basis.region.id;
        let (sender, answer) = oneshot::channel();
        let reply = Reply { observer, sender };
        {
            let mut state = self.state.lock();
            if basis.term != state.term || self.id != state.leader {
                reply.send(Err(RegionError::StaleCommand { region }.into()));
            } else {
                assert!(date.is_none_or(|date| date > state.floors.writes), "no floor rises here");
                state.pending.push_back((batch, Some(reply)));
            }
        }
        answer.await.unwrap_or(Err(ProposeError::Undetermined { region }))
    }

    async fn raise_floors(&self, _basis: &Basis, floors: Floors) -> Result<LogIndex, ProposeError> {
        let mut state = self.state.lock();
        state.floors = state.floors.raised_to(floors);
        Ok(LogIndex::new(state.applied))
    }
}
