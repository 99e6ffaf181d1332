//! What leaves a replica without waiting for its log or for apply.
//!
//! A disk that is slow to sync delays what depends on a write: acknowledgements of appends, votes, committed entries.
//! It must not delay what shows that a replica lives, or a hiccup of the disk would take every leadership of the store.
//! Each kind below may leave while writes of this replica are under way, also if a crash then loses those writes:
//!
//! - **Every message of a leader**, once its own term and vote are durable. Appends may precede its own fsync, because
//!   an entry that it loses in a crash carries a term in which it never leads again. A heartbeat's commit index is at
//!   most what its follower has acknowledged. A sole voter leads before its term is durable; until then all its
//!   messages wait, or a restart would lead the same term again, with other entries. A term counts as durable only if
//!   it is the one that was written: without room for a batch, a new term has not been written at all.
//! - **Answers to heartbeats.** An answer makes two claims. *Until now I have voted in no later term*: true, because
//!   the vote of a replica that forgets its term in a crash is either durable, or was not given. *For one election
//!   timeout I vote in no later term*: a restarted replica keeps the promise, because it refuses votes for that long
//!   after its start (`gate`). That it may have forgotten the leader's term is harmless: a candidate of an earlier
//!   term needs a quorum, and the quorum that elected the leader durably holds the leader's term. The commit index of
//!   an answer is cut to what is durable here.
//!   Both claims are about later terms only. So an answer may also leave in a term that this replica has just learned
//!   and not written.
//! - **Answers to pre-votes.** They change no state and promise nothing. The term of a refusal is a number that others
//!   learn; nobody relies on this replica to remember it.
//! - **Confirmed read indexes** and the announcements of leadership. They concern this store's memory only.
//!
//! Everything else of a replica that does not lead waits for the write of the ready that carries it, and that write
//! holds its term and vote:
//!
//! - **Votes and requests for votes**: a replica that forgets its vote votes twice in a term. A request tells the
//!   others of the candidate's vote for itself.
//! - **Acknowledgements and refusals of appends**: an acknowledgement tells the leader of the term that the entries are
//!   durable. A refusal promises nothing, but it may deliver a later term to an old leader, and raft-rs puts both in
//!   one message.
//!
//! Requests for pre-votes wait like requests for votes. A replica that cannot write its vote would win the pre-vote and
//! then hold up the election.

use raft::ReadState;
use raft::eraftpb::{Message, MessageType};

use super::effects::UrgentEffects;
use super::lease::Evidence;
use super::replica::Peer;
use crate::region::{LogIndex, Term};
use crate::time::MonoTime;

impl Peer {
    /// The effects that need no room in the log or in apply. Called when there is none; otherwise they leave with
    /// [`Peer::effects`].
    pub(crate) fn urgent_effects(&mut self, now: MonoTime) -> UrgentEffects {
        if self.fault().is_some() || self.is_urgency_off() {
            return UrgentEffects::default();
        }
        if !self.is_leader() {
            // Refuses them.
            self.append_proposals(now);
        }
        self.open_round(now, false);
        let states = std::mem::take(&mut self.node.raft.read_states);
        self.confirm_reads(states);
        if self.is_leader() && self.is_vote_durable() {
            self.broadcast_commit();
            let messages = std::mem::take(&mut self.node.raft.msgs);
            self.send(messages);
        } else {
            self.take_urgent_messages();
        }
        UrgentEffects {
            // Released by a durable write, if not urgent.
            messages: std::mem::take(&mut self.out.messages),
            events: std::mem::take(&mut self.out.events),
        }
    }

    /// Emits the answers that would otherwise wait for the write of the next ready.
    pub(super) fn take_urgent_messages(&mut self) {
        if self.is_urgency_off() || self.node.raft.msgs.is_empty() {
            return;
        }
        let persisted = self.node.raft.raft_log.persisted;
        let is_urgent = |message: &mut Message| {
            let kind = message.get_msg_type();
            if kind == MessageType::MsgHeartbeatResponse {
                message.commit = message.commit.min(persisted);
            }
            matches!(kind, MessageType::MsgHeartbeatResponse | MessageType::MsgRequestPreVoteResponse)
        };
        let urgent = self.node.raft.msgs.extract_if(.., is_urgent).collect();
        self.send(urgent);
    }

    /// Handles the rounds that a quorum has answered: renews the lease, and answers the reads that are applied.
    pub(super) fn confirm_reads(&mut self, states: Vec<ReadState>) {
        for state in states {
            if let Some(sent) = self.reads.confirm(&state.request_ctx, LogIndex::new(state.index)) {
                let max_lease = self.max_lease();
                self.lease.renew(sent, Evidence::Heartbeat, max_lease);
            }
        }
        self.reads.on_applied(self.applied.index, Term::new(self.node.raft.term));
    }

    /// Whether this replica's term, and its vote in it, are durable. A call into raft-rs may have changed them since
    /// the last ready; then nothing of them is written yet.
    pub(super) fn is_vote_durable(&self) -> bool {
        let (raft, written) = (&self.node.raft, &self.written_hard_state);
        (raft.term, raft.vote) == (written.term, written.vote) && self.vote_write <= self.durable
    }

    /// The `LivenessWaitsForDisk` bug.
    fn is_urgency_off(&self) -> bool {
        #[cfg(feature = "planted-bugs")]
        let off = self.config.planted(crate::config::PlantedBug::LivenessWaitsForDisk);
        #[cfg(not(feature = "planted-bugs"))]
        let off = false;
        off
    }
}
