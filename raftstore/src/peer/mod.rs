//! A region's replica on this store: a pure state machine around raft-rs.
//!
//! Inputs are messages, ticks, requests and completions, each with the current time. Output is [`Effects`]: log writes,
//! messages, committed entries and leadership events. The peer reads its log through [`PeerStorage`] and has no clock,
//! channel, thread or ambient randomness.
//!
//! Life of a write:
//!
//! 1. [`Peer::propose`] checks term and epoch.
//! 2. [`Peer::effects`] appends the entry, emits it as a log write, and emits the appends to the followers at once.
//! 3. [`Peer::on_durable`] counts this replica's own acknowledgement; [`Peer::step`] counts those of the followers.
//! 4. Once committed, the entry and its reply leave with the next effects.
//! 5. [`Peer::on_applied`] records that it is applied.
//!
//! # Layers
//!
//! 1. `gate`, `lease`, `read`, `proposal`, `truncate`, `coalesce`: rules and queues, without raft-rs' node
//! 2. `effects`: the output of a peer
//! 3. `propose`, `ready`: the two halves of [`Peer::effects`]

mod coalesce;
pub(crate) mod effects;
mod gate;
mod lease;
pub(crate) mod proposal;
mod propose;
pub(crate) mod read;
mod ready;
mod truncate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use raft::eraftpb::MessageType;
use raft::{ProgressState, RawNode, SnapshotStatus, StateRole};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::config::StoreConfig;
use crate::error::RegionError;
use crate::ports::RaftMessage;
use crate::records::LogPosition;
use crate::region::{Epoch, LogIndex, PeerMeta, PeerRole, Region, StoreId, Term};
use crate::snapshot::SnapshotKey;
use crate::storage::{PeerStorage, Recovered};
use crate::time::MonoTime;
use effects::{Effects, PeerView, RoleEvent, WriteNumber, position};
use gate::{GateContext, Refusal};
use lease::{Evidence, Lease};
use proposal::Proposals;
use propose::Unappended;
use read::{ReadQueue, ReadReply};
use ready::{Installing, PendingReady};

/// A fault that ends this replica. The store stops serving.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerFault {
    /// The log cannot be read.
    #[error("log of region {0} failed: {1}")]
    Log(crate::region::RegionId, String),
    /// The leader knows that this replica acknowledged entries that it does not have: its disk has lost them.
    #[error("replica of region {0} has lost entries that it acknowledged: {1}")]
    LostEntries(crate::region::RegionId, String),
    /// raft-rs rejected the recovered state.
    #[error("replica of region {0} cannot start: {1}")]
    Start(crate::region::RegionId, String),
}

/// A replica.
///
/// Invariants:
/// 1. `applied <= commit`, and `applied` is never above the last entry that the log has acknowledged.
/// 2. `inflight` holds, in order, every ready that raft-rs does not know to be persisted.
/// 3. While the lease is valid, `leader_term` is the current term.
/// 4. A message that depends on a durable write leaves only after `on_durable` of that write.
pub(crate) struct Peer {
    node: RawNode<PeerStorage>,
    region: Arc<Region>,
    me: PeerMeta,
    config: Arc<StoreConfig>,
    rng: StdRng,
    /// The current randomized election timeout, in ticks.
    randomized_timeout: usize,
    /// Role and term after the last call into raft-rs.
    observed: (StateRole, u64),
    /// The term in which this replica leads.
    leader_term: Option<u64>,
    /// The term announced to the listener.
    announced: Option<Term>,
    lease: Lease,
    /// Own-term entries not known to be committed: (last index, time of proposing), ascending.
    proposed: VecDeque<(u64, MonoTime)>,
    unappended: Unappended,
    proposals: Proposals,
    reads: ReadQueue,
    applied: LogPosition,
    /// End of the newest promise to a leader (see `gate`).
    promised_until: MonoTime,
    /// When each other replica was last heard.
    last_heard: BTreeMap<u64, MonoTime>,
    inflight: VecDeque<PendingReady>,
    next_write: WriteNumber,
    durable: WriteNumber,
    /// The hard state last written to the log.
    written_hard_state: raft::eraftpb::HardState,
    installing: Option<Installing>,
    /// Highest index emitted by the `ApplyAboveCommit` bug.
    #[cfg(feature = "planted-bugs")]
    leaked: u64,
    out: Effects,
    fault: Option<PeerFault>,
}

/// The parts of a [`Peer`].
pub(crate) struct PeerStart {
    pub(crate) region: Arc<Region>,
    pub(crate) me: PeerMeta,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) log: engine::log::LogEngine,
    pub(crate) recovered: Recovered,
    pub(crate) applied: LogPosition,
    pub(crate) seed: u64,
}

impl Peer {
    /// A replica with its recovered state. The only voter of a region campaigns at once: no other replica can hold a
    /// lease.
    pub(crate) fn new(mut start: PeerStart, now: MonoTime) -> Result<Peer, PeerFault> {
        let promised = now.plus(start.config.election_timeout());
        let promised_until = if planted_amnesia(&mut start) { now } else { promised };
        let PeerStart { region, me, config, log, recovered, applied, seed } = start;
        let storage = PeerStorage::new(log, &region, &recovered, config.entry_cache_bytes);
        let fault = |error: raft::Error| PeerFault::Start(region.id, error.to_string());
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&raft_config(&config, me, applied), storage, &logger).map_err(fault)?;
        let observed = (node.raft.state, node.raft.term);
        let mut peer = Peer {
            unappended: Unappended::default(),
            proposals: Proposals::new(region.id, config.pending_proposals),
            reads: ReadQueue::new(config.pending_reads),
            node,
            me,
            rng: StdRng::seed_from_u64(seed),
            randomized_timeout: 0,
            observed,
            leader_term: None,
            announced: None,
            lease: Lease::Expired,
            proposed: VecDeque::new(),
            applied,
            promised_until,
            last_heard: BTreeMap::new(),
            inflight: VecDeque::new(),
            next_write: 1,
            durable: 0,
            written_hard_state: recovered.hard_state,
            installing: None,
            #[cfg(feature = "planted-bugs")]
            leaked: 0,
            out: Effects::default(),
            fault: None,
            region,
            config,
        };
        peer.draw_timeout();
        if peer.is_only_voter() {
            peer.campaign(now);
        }
        Ok(peer)
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    pub(crate) fn term(&self) -> Term {
        Term::new(self.node.raft.term)
    }

    pub(crate) fn applied(&self) -> LogPosition {
        self.applied
    }

    pub(crate) fn pending_proposals(&self) -> usize {
        self.unappended.proposals.len() + self.proposals.len()
    }

    /// Bytes of entries taken in and not emitted to the log.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.unappended.bytes + self.node.raft.raft_log.unstable().entries_size
    }

    /// The fault that ended this replica, if any.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        let log = || self.node.store().failure().map(|what| PeerFault::Log(self.region.id, what));
        self.fault.clone().or_else(log)
    }

    /// Whether a request or the announcement of leadership waits for apply.
    pub(crate) fn waits_for_apply(&self) -> bool {
        self.reads.waits_for_apply() || (self.is_leader() && self.announced != Some(self.term()))
    }

    /// The state to publish to readers on other threads.
    pub(crate) fn view(&self) -> PeerView {
        let leader = self.node.raft.leader_id;
        PeerView {
            term: self.term(),
            leader: self.region.peers.iter().copied().find(|p| p.id.get() == leader),
            is_leader: self.is_leader(),
            lease: self.lease.bound(),
            serving: self.installing.is_none(),
        }
    }

    /// Steps a message from another replica. A refused message is dropped, as a network may.
    pub(crate) fn step(&mut self, message: RaftMessage, now: MonoTime) -> Result<(), Refusal> {
        let last = self.node.raft.raft_log.last_index();
        let gate_context = GateContext {
            region: &self.region,
            me: self.me,
            installing: self.is_installing(),
            last: (last, self.node.raft.raft_log.last_term()),
            promised_until: self.promised_until,
            now,
        };
        gate::admit(&message, &gate_context)?;
        let raft = message.message;
        self.last_heard.insert(raft.from, now);
        let kind = raft.get_msg_type();
        let leads = matches!(kind, MessageType::MsgAppend | MessageType::MsgHeartbeat | MessageType::MsgSnapshot);
        if leads && raft.term >= self.node.raft.term {
            // The promise that the leader's lease relies on. It holds even if raft-rs forgets the leader.
            self.promised_until = self.promised_until.max(now.plus(self.config.election_timeout()));
        }
        if kind == MessageType::MsgHeartbeat && raft.term >= self.node.raft.term && raft.commit > last {
            let what = format!("last is {last}, the leader saw {}", raft.commit);
            self.fault = Some(PeerFault::LostEntries(self.region.id, what));
            return Ok(());
        }
        // An error means that raft-rs ignored the message.
        let _ = self.node.step(raft);
        self.after_raft(now);
        Ok(())
    }

    /// One tick of the Raft clock. Missed ticks are not made up for: a lease relies on ticks of full length.
    pub(crate) fn tick(&mut self, now: MonoTime) {
        self.reads.expire(now, self.region.id);
        let patience = now.since(MonoTime::ZERO).saturating_sub(self.config.read_timeout);
        self.proposals.expire_orphans(MonoTime::ZERO.plus(patience));
        // A log that is being replaced must not campaign. Time still counts: the replica may vote for others once it
        // has not heard its leader for an election timeout.
        if self.is_installing() {
            let elapsed = &mut self.node.raft.election_elapsed;
            *elapsed = (*elapsed + 1).min(self.config.election_ticks as usize);
            return;
        }
        // Nor may a sole voter campaign while the end of its log is not durable: no other voter's reply waits for it.
        let unpersisted = self.node.raft.raft_log.persisted < self.node.raft.raft_log.last_index();
        if self.is_only_voter() && !self.is_leader() && unpersisted {
            return;
        }
        self.node.tick();
        self.after_raft(now);
        self.extend_lease(now);
    }

    /// Requests a read index. It is confirmed by a heartbeat round and answered once applied, never under the lease:
    /// the caller has found that the lease does not cover the read, and `now` may be older than the request.
    pub(crate) fn read_index(&mut self, epoch: Epoch, reply: ReadReply, now: MonoTime) {
        if let Err(refused) = self.check_read(epoch) {
            return reply.send(Err(refused));
        }
        let deadline = now.plus(self.config.read_timeout);
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::ReadIndexUnderOldClock)
            && self.lease.bound().is_some_and(|bound| now < bound)
        {
            self.reads.confirm_now(reply, deadline, LogIndex::new(self.node.raft.raft_log.committed));
            return self.reads.on_applied(self.applied.index, self.term());
        }
        self.reads.enqueue(reply, deadline);
    }

    fn check_read(&self, epoch: Epoch) -> Result<(), RegionError> {
        if !self.is_leader() {
            return Err(self.not_leader());
        }
        self.check_epoch(epoch)?;
        if self.reads.is_full() {
            return Err(self.busy("pending reads"));
        }
        Ok(())
    }

    /// Offers leadership to the replica on `to`. Does nothing if this replica does not lead or `to` holds no other
    /// voter.
    pub(crate) fn transfer_leader(&mut self, to: StoreId, now: MonoTime) {
        let target = self.region.peer_on(to).filter(|p| p.role == PeerRole::Voter && p.id != self.me.id);
        let Some(target) = target.filter(|_| self.is_leader()) else { return };
        self.node.transfer_leader(target.id.get());
        self.after_raft(now);
    }

    /// The live voter with the longest matching log, other than this one: the target of a leadership transfer.
    pub(crate) fn best_successor(&self, now: MonoTime) -> Option<StoreId> {
        let voters = self.region.peers.iter().filter(|p| p.role == PeerRole::Voter && p.id != self.me.id);
        let live = voters.filter(|p| self.is_live(p.id.get(), now));
        let best = live.filter_map(|p| self.node.raft.prs().get(p.id.get()).map(|pr| (pr.matched, p.store)));
        best.max_by_key(|(matched, store)| (*matched, std::cmp::Reverse(*store))).map(|(_, store)| store)
    }

    /// Apply has reached `applied`.
    pub(crate) fn on_applied(&mut self, applied: LogPosition, now: MonoTime) {
        assert!(applied.index >= self.applied.index, "the applied index never moves back");
        self.applied = applied;
        if self.installing.is_none() {
            let log = &self.node.raft.raft_log;
            let bound = applied.index.get().min(log.committed).min(log.persisted);
            if bound > log.applied {
                self.node.advance_apply_to(bound);
                self.after_raft(now);
            }
        }
        self.reads.on_applied(applied.index, Term::new(self.node.raft.term));
        self.announce();
    }

    /// The transport refused a message to `peer`.
    pub(crate) fn on_unreachable(&mut self, peer: u64, now: MonoTime) {
        self.node.report_unreachable(peer);
        self.after_raft(now);
    }

    /// A snapshot was delivered to `peer`, or its delivery failed.
    pub(crate) fn on_snapshot_sent(&mut self, peer: u64, delivered: bool, now: MonoTime) {
        let status = if delivered { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
        self.node.report_snapshot(peer, status);
        self.after_raft(now);
    }

    /// The snapshot requested by `Effects::build_snapshot` was built, or building failed (`None`).
    pub(crate) fn on_snapshot_built(&mut self, built: Option<(SnapshotKey, Region)>) {
        self.node.store().on_snapshot_built(built);
    }

    /// Snapshot files in use: the one kept for followers, and the one being installed. The first is released if no
    /// follower needs it. The second is needed after a crash until the new log start is durable, which is long after
    /// its index counts as applied.
    pub(crate) fn snapshots_in_use(&mut self, now: MonoTime) -> Vec<SnapshotKey> {
        let start = self.node.store().start().index.get();
        let needs = |(id, pr): (&u64, &raft::Progress)| {
            pr.state == ProgressState::Snapshot || (self.is_live(*id, now) && pr.matched < start)
        };
        if !self.is_leader() || !self.node.raft.prs().iter().any(needs) {
            self.node.store().drop_snapshot();
        }
        let installing = self.installing.as_ref().map(|installing| installing.intent.key);
        self.node.store().kept_snapshot().into_iter().chain(installing).collect()
    }

    /// Truncates the log and returns its new start, which the caller must write. Entries above `flushed` are kept,
    /// because a restart replays them. Entries up to `pinning` keep the log engine from freeing old files. No effect of
    /// the peer depends on this write, and it depends on no effect.
    #[must_use]
    pub(crate) fn truncate_log(&mut self, flushed: LogIndex, pinning: LogIndex, now: MonoTime) -> Option<LogPosition> {
        if self.is_installing() {
            return None;
        }
        let storage = self.node.store();
        let per_entry = storage.estimate_bytes(1).max(1);
        let lag = self.config.log_lag_entries.min(self.config.log_lag_bytes / per_entry);
        let mut followers = Vec::new();
        if self.is_leader() {
            let others = self.node.raft.prs().iter().filter(|(id, _)| self.is_live(**id, now));
            // A follower that is being sent a snapshot continues from it. So does one that has received it and is
            // installing it: raft-rs considers the snapshot done once delivered, but the follower will ask for the
            // entries after it.
            let kept = storage.kept_snapshot().map_or(0, |key| key.index.get());
            let start = storage.start().index.get();
            let installing_from = |pr: &raft::Progress| if pr.matched < start { kept } else { 0 };
            let continues_from = |pr: &raft::Progress| pr.matched.max(pr.pending_snapshot).max(installing_from(pr));
            followers.extend(others.map(|(_, pr)| LogIndex::new(continues_from(pr))));
        }
        let flushed = flushed.min(self.applied.index);
        let log = truncate::TruncationInput {
            start: storage.start().index,
            last: storage.last(),
            flushed,
            pinning,
            followers,
        };
        let keep = truncate::Retention { tail: self.config.log_tail_entries, lag };
        let bound = truncate::truncation_bound(&log, keep)?;
        match raft::Storage::term(storage, bound.get()) {
            Ok(term) => {
                // Applied entries are acknowledged by the log, so no write in flight precedes them.
                assert!(bound <= self.applied.index, "only applied entries are truncated");
                let start = position(bound.get(), term);
                self.node.mut_store().truncate(start);
                Some(start)
            }
            Err(error) => {
                self.fault = Some(PeerFault::Log(self.region.id, error.to_string()));
                None
            }
        }
    }

    /// The store is poisoned: fails all waiting requests.
    pub(crate) fn poison(&mut self, why: &str) {
        self.lease.expire();
        for proposal in std::mem::take(&mut self.unappended).proposals {
            proposal.reply.send(Err(crate::ProposeError::Poisoned(why.to_string())));
        }
        self.proposals.poison(why);
        self.reads.fail_all(&RegionError::NotReady { region: self.region.id, why: why.to_string() });
    }

    /// The store stops: fails all waiting requests. Pending proposals become undetermined.
    pub(crate) fn stop(&mut self) {
        self.lease.expire();
        let stops = self.not_ready("the store stops");
        for proposal in std::mem::take(&mut self.unappended).proposals {
            proposal.reply.send(Err(stops.clone().into()));
        }
        self.proposals.abandon();
        self.reads.fail_all(&stops);
    }

    /// The term announced to the listener, if this replica leads. Clears it.
    pub(crate) fn take_announced_term(&mut self) -> Option<Term> {
        self.announced.take()
    }

    /// Whether another replica was heard within two election timeouts. raft-rs' own `recent_active` is reset by every
    /// quorum check, so it says nothing right after one.
    fn is_live(&self, peer: u64, now: MonoTime) -> bool {
        self.last_heard.get(&peer).is_some_and(|at| now.since(*at) < self.config.election_timeout() * 2)
    }

    fn is_installing(&self) -> bool {
        self.installing.is_some() || self.node.snap().is_some()
    }

    fn is_only_voter(&self) -> bool {
        let mut voters = self.region.peers.iter().filter(|p| p.role == PeerRole::Voter);
        voters.next().is_some_and(|p| p.id == self.me.id) && voters.next().is_none()
    }

    fn campaign(&mut self, now: MonoTime) {
        // An error means that there is nothing to campaign for.
        let _ = self.node.campaign();
        self.after_raft(now);
    }

    /// Updates all state that depends on raft-rs' state. Called after every call that may change it.
    fn after_raft(&mut self, now: MonoTime) {
        let present = (self.node.raft.state, self.node.raft.term);
        if present != self.observed {
            self.observed = present;
            self.draw_timeout();
            self.role_changed(now);
        } else {
            // On every reset raft-rs draws a new timeout from the thread's generator.
            self.node.raft.set_randomized_election_timeout(self.randomized_timeout);
        }
        self.prepare_transfer(now);
        self.renew_by_commit();
    }

    fn draw_timeout(&mut self) {
        let ticks = self.config.election_ticks as usize;
        self.randomized_timeout = self.rng.random_range(ticks..2 * ticks);
        self.node.raft.set_randomized_election_timeout(self.randomized_timeout);
    }

    fn role_changed(&mut self, now: MonoTime) {
        let leads = self.is_leader().then_some(self.node.raft.term);
        if leads == self.leader_term {
            return;
        }
        self.lease.expire();
        self.proposed.clear();
        if self.leader_term.is_some() {
            self.proposals.stepped_down(now);
            self.reads.fail_all(&self.not_leader());
            if let Some(term) = self.announced.take() {
                self.out.events.push(RoleEvent::SteppedDown(term));
            }
        }
        self.leader_term = leads;
        if leads.is_some() {
            // raft-rs has appended the empty entry of the new term.
            self.record_proposed(now);
        }
    }

    fn announce(&mut self) {
        let term = self.term();
        if self.is_leader() && self.applied.term == term && self.announced.is_none() {
            self.announced = Some(term);
            self.out.events.push(RoleEvent::Leader(term));
        }
    }

    /// Runs before a `MsgTimeoutNow` leaves: suspends the lease and stamps the message with the last log position.
    fn prepare_transfer(&mut self, now: MonoTime) {
        let log = &self.node.raft.raft_log;
        let last = (log.last_index(), log.last_term());
        let unstamped =
            |m: &&mut raft::eraftpb::Message| m.get_msg_type() == MessageType::MsgTimeoutNow && m.index == 0;
        for message in self.node.raft.msgs.iter_mut().filter(unstamped) {
            (message.index, message.log_term) = last;
            self.lease.suspect(now);
        }
    }

    /// Records the time at which the newest entry was proposed.
    fn record_proposed(&mut self, now: MonoTime) {
        let index = self.node.raft.raft_log.last_index();
        match self.proposed.back_mut() {
            Some(last) if last.1 == now => last.0 = index,
            _ => self.proposed.push_back((index, now)),
        }
    }

    /// Renews the lease by committed entries of this term, from the times they were proposed.
    fn renew_by_commit(&mut self) {
        let committed = self.node.raft.raft_log.committed;
        let max_lease = self.max_lease();
        while let Some((index, at)) = self.proposed.front().copied().filter(|(index, _)| *index <= committed) {
            assert!(index <= committed, "only committed entries renew the lease");
            self.lease.renew(at, Evidence::Entry, max_lease);
            self.proposed.pop_front();
        }
    }

    /// Renews a lease that runs out: by a heartbeat round, or by an empty entry while it is suspect.
    fn extend_lease(&mut self, now: MonoTime) {
        if !self.is_leader() || !self.node.raft.commit_to_current_term() {
            return;
        }
        match self.lease {
            Lease::Suspect(_) => {
                let idle = self.node.raft.lead_transferee.is_none() && self.proposed.is_empty();
                if idle && self.node.propose(Vec::new(), Vec::new()).is_ok() {
                    self.record_proposed(now);
                    self.after_raft(now);
                }
            }
            Lease::Valid(bound) if bound.since(now) > self.config.max_lease / 2 => {}
            Lease::Valid(_) | Lease::Expired => {
                if !self.reads.has_open_round() {
                    self.open_round(now, true);
                }
            }
        }
    }

    /// Opens a heartbeat round for the queued reads, if the commit index is current.
    fn open_round(&mut self, now: MonoTime, renew: bool) {
        // A new leader's commit index may be behind what its predecessor acknowledged, until it commits an entry of its
        // own term.
        if !self.is_leader() || !self.node.raft.commit_to_current_term() {
            return;
        }
        if let Some(context) = self.reads.open_round(now, renew) {
            self.node.read_index(context.to_vec());
            self.after_raft(now);
        }
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), RegionError> {
        if epoch == self.region.epoch {
            return Ok(());
        }
        Err(RegionError::EpochNotMatch { current: Box::new((*self.region).clone()) })
    }

    fn not_leader(&self) -> RegionError {
        RegionError::NotLeader { region: self.region.id, leader: self.view().leader.filter(|p| p.id != self.me.id) }
    }

    fn not_ready(&self, why: &str) -> RegionError {
        RegionError::NotReady { region: self.region.id, why: why.to_string() }
    }

    fn busy(&self, what: &str) -> RegionError {
        RegionError::ServerBusy { store: self.me.store, what: what.to_string() }
    }

    fn max_lease(&self) -> Duration {
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::LeaseReadAfterNewerLeader) {
            return Duration::from_secs(1 << 20);
        }
        self.config.max_lease
    }
}

/// Forgets the vote or the promise if a planted bug says so. Returns whether the promise is forgotten.
fn planted_amnesia(_start: &mut PeerStart) -> bool {
    #[cfg(feature = "planted-bugs")]
    {
        use crate::config::PlantedBug::{PromiseForgottenOnRestart, VoteForgottenOnRestart};
        let vote = _start.config.planted(VoteForgottenOnRestart);
        if vote {
            _start.recovered.hard_state.vote = 0;
        }
        vote || _start.config.planted(PromiseForgottenOnRestart)
    }
    #[cfg(not(feature = "planted-bugs"))]
    false
}

fn raft_config(config: &StoreConfig, me: PeerMeta, applied: LogPosition) -> raft::Config {
    raft::Config {
        id: me.id.get(),
        election_tick: config.election_ticks as usize,
        heartbeat_tick: config.heartbeat_ticks as usize,
        applied: applied.index.get(),
        max_size_per_msg: config.max_append_bytes,
        max_inflight_msgs: config.max_inflight_appends,
        check_quorum: true,
        pre_vote: true,
        batch_append: false,
        max_uncommitted_size: config.apply_backlog_bytes as u64,
        max_committed_size_per_ready: config.apply_batch_bytes as u64,
        ..raft::Config::default()
    }
}

#[cfg(test)]
mod tests;
