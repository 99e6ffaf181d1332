//! Leadership: elections, transfers, the lease, and the heartbeat rounds of reads.

use std::cmp::Reverse;

use raft::eraftpb::{Message, MessageType};
use rand::Rng;

use super::effects::RoleEvent;
use super::lease::{Evidence, Lease};
use super::read::ReadReply;
use super::replica::Peer;
use crate::error::RegionError;
#[cfg(feature = "planted-bugs")]
use crate::region::LogIndex;
use crate::region::{Epoch, PeerMeta, PeerRole, StoreId, Term};
use crate::time::MonoTime;

/// Election timeouts between two offers of leadership to the same replica, while the store runs on.
const OFFER_PAUSE: u32 = 6;

impl Peer {
    /// Updates all state that depends on raft-rs' state. Called after every call that may change it.
    pub(super) fn after_raft(&mut self, now: MonoTime) {
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
        self.note_kept();
    }

    /// Draws a randomized election timeout from this replica's own generator.
    pub(super) fn draw_timeout(&mut self) {
        let ticks = self.config.election_ticks as usize;
        self.randomized_timeout = self.rng.random_range(ticks..2 * ticks);
        self.node.raft.set_randomized_election_timeout(self.randomized_timeout);
    }

    /// Ends or begins a leadership.
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
        self.hands_over = false;
        let inherited = self.inherited.take();
        if let (Some(term), Some(packed)) = (leads.map(Term::new).filter(|term| self.is_handed_over(*term)), inherited)
        {
            self.out.events.push(RoleEvent::Inherited(term, packed));
        }
        self.outgoing.clear();
        self.node.store().clear_fetches();
        self.offers.clear();
        if leads.is_some() {
            // raft-rs has appended the empty entry of the new term.
            self.record_proposed(now);
        }
    }

    /// Announces the leadership once an entry of its term is applied.
    pub(super) fn announce(&mut self) {
        let term = self.term();
        if self.is_leader() && self.applied.term == term && self.announced.is_none() {
            self.announced = Some(term);
            self.out.events.push(RoleEvent::Leader(term));
        }
    }

    /// The term announced to the listener, if this replica leads. Clears it.
    pub(crate) fn take_announced_term(&mut self) -> Option<Term> {
        self.announced.take()
    }

    /// Whether the leadership of `term` was handed over to this replica, rather than won after a timeout.
    pub(crate) fn is_handed_over(&self, term: Term) -> bool {
        self.handed_over == Some(term)
    }

    /// Starts an election.
    pub(super) fn campaign(&mut self, now: MonoTime) {
        // An error means that there is nothing to campaign for.
        let _ = self.node.campaign();
        self.after_raft(now);
    }

    /// Offers leadership to the replica on `to`. Does nothing if this replica does not lead, or `to` holds no other
    /// voter or one that installs a snapshot or needs one: it could not serve.
    pub(crate) fn transfer_leader(&mut self, to: StoreId, now: MonoTime) {
        let target = self.region.peer_on(to).filter(|p| p.role == PeerRole::Voter && p.id != self.me.id);
        let eligible = |target: &PeerMeta| self.is_leader() && self.could_lead(target.id.get());
        let Some(target) = target.filter(eligible) else { return };
        self.offers.insert(target.id.get(), now);
        self.node.transfer_leader(target.id.get());
        self.after_raft(now);
    }

    /// Offers leadership to the best successor, if there is one and no offer is open. A transfer that fails is given up
    /// after an election timeout, and proposals are refused until then. So no successor gets a second offer within
    /// `OFFER_PAUSE` election timeouts. May be called with every tick.
    pub(crate) fn offer_leadership(&mut self, now: MonoTime) {
        self.offer_to(self.best_successor(now), now);
    }

    /// Offers leadership as a store does that stops, which has time for two election timeouts only (`stop_timeout`):
    /// once in an election timeout, to another replica before the same. An offer that was not accepted in half of that
    /// is given up, so writes succeed in the other half. It may still be accepted later; only its replica's log
    /// position decides about that (`gate`).
    pub(crate) fn hand_over(&mut self, now: MonoTime) {
        let timeout = self.config.election_timeout();
        let since = self.offers.values().max().map(|last| now.since(*last));
        if since.is_some_and(|since| since < timeout / 2) || !self.is_leader() {
            return;
        }
        self.node.raft.abort_leader_transfer();
        if since.is_none_or(|since| since >= timeout)
            && let Some(successor) = self.best_successor(now)
        {
            self.transfer_leader(successor, now);
        }
    }

    /// The same, but only to a replica that has written what this one has not: this one's log is stalled, and those of
    /// the others may be as well.
    pub(crate) fn offer_unwritten(&mut self, now: MonoTime) {
        let written = self.node.raft.raft_log.persisted;
        self.offer_to(self.successor(written + 1, now), now);
    }

    fn offer_to(&mut self, successor: Option<StoreId>, now: MonoTime) {
        if !self.is_leader() || self.node.raft.lead_transferee.is_some() {
            return;
        }
        let Some(to) = successor else { return };
        let last = self.region.peer_on(to).and_then(|p| self.offers.get(&p.id.get()));
        if last.is_none_or(|at| now.since(*at) >= self.config.election_timeout() * OFFER_PAUSE) {
            self.transfer_leader(to, now);
        }
    }

    /// The live voter with the longest matching log, other than this one, that could lead at once: the target of a
    /// leadership transfer. Those without an offer so far come first, then the one whose offer is oldest.
    pub(crate) fn best_successor(&self, now: MonoTime) -> Option<StoreId> {
        self.successor(0, now)
    }

    /// The best successor among those that have acknowledged the entry at `least`.
    fn successor(&self, least: u64, now: MonoTime) -> Option<StoreId> {
        let voters = self.region.peers.iter().filter(|p| p.role == PeerRole::Voter && p.id != self.me.id);
        let able = voters.filter(|p| self.is_live(p.id.get(), now) && self.could_lead(p.id.get()));
        let matched = |p: &PeerMeta| self.node.raft.prs().get(p.id.get()).map_or(0, |pr| pr.matched);
        let able = able.filter(|p| matched(p) >= least);
        let offered = |p: &PeerMeta| self.offers.get(&p.id.get());
        able.max_by_key(|p| (Reverse(offered(p)), matched(p), Reverse(p.store))).map(|p| p.store)
    }

    /// Runs before a `MsgTimeoutNow` leaves: suspends the lease and stamps the message with the last log position.
    fn prepare_transfer(&mut self, now: MonoTime) {
        let log = &self.node.raft.raft_log;
        let last = (log.last_index(), log.last_term());
        let unstamped = |m: &&mut Message| m.get_msg_type() == MessageType::MsgTimeoutNow && m.index == 0;
        for message in self.node.raft.msgs.iter_mut().filter(unstamped) {
            (message.index, message.log_term) = last;
            self.hands_over = true;
            // That an earlier offer came to nothing says nothing about this one.
            self.out.events.retain(|event| !matches!(event, RoleEvent::Kept(_)));
            #[cfg(feature = "planted-bugs")]
            if self.config.planted(crate::config::PlantedBug::LeaseNotSuspected) {
                continue;
            }
            self.lease.suspect(now);
        }
    }

    /// Whether a `MsgTimeoutNow` that is about to leave still says how this leader's log ends. Otherwise it leaves no
    /// more: what the leader has in memory belongs to a longer log by now.
    pub(crate) fn still_offers(&self, message: &Message) -> bool {
        let position = (message.term, message.index);
        self.hands_over && self.is_leader() && position == (self.node.raft.term, self.node.raft.raft_log.last_index())
    }

    /// Notes that an offer of leadership came to nothing: an entry is committed that was proposed after it. A replica
    /// without that entry cannot be elected, and one that has it does not obey the offer.
    fn note_kept(&mut self) {
        // With this bug the lease does not tell whether an offer is on its way.
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::LeaseNotSuspected) {
            return;
        }
        if self.hands_over && self.is_leader() && matches!(self.lease, Lease::Valid(_)) {
            self.hands_over = false;
            self.out.events.push(RoleEvent::Kept(self.term()));
        }
    }

    /// Records the time at which the newest entry was proposed.
    pub(super) fn record_proposed(&mut self, now: MonoTime) {
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
    pub(super) fn extend_lease(&mut self, now: MonoTime) {
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
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::ReadJoinsOlderRound) {
            return self.reads.join_open_round(reply, deadline);
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

    /// Opens a heartbeat round for the queued reads, if the commit index is current.
    pub(super) fn open_round(&mut self, now: MonoTime, renew: bool) {
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
}
