//! Inputs of a replica: messages, ticks, reports of apply and the transport, and the end of the store.

use engine::log::LogError;
use raft::StateRole;
use raft::eraftpb::{Entry, Message, MessageType};

use super::gate::{self, GateContext, Refusal};
use super::replica::{Peer, PeerFault};
use crate::error::ProposeError;
use crate::ports::RaftMessage;
use crate::records::LogPosition;
use crate::region::Term;
use crate::storage::Fetch;
use crate::time::MonoTime;

impl Peer {
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
        let mut raft = message.message;
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
        self.note_installation(&raft);
        let packed = if kind == MessageType::MsgTimeoutNow { std::mem::take(&mut raft.context) } else { Vec::new() };
        let (before, to_notice) = (self.node.raft.term, self.is_plain_notice(&raft));
        // An error means that raft-rs ignored the message.
        let _ = self.node.step(raft);
        if leads {
            self.review_answer(to_notice);
        }
        if kind == MessageType::MsgTimeoutNow && self.node.raft.term > before {
            self.handed_over = Some(Term::new(self.node.raft.term));
            self.inherited = (!packed.is_empty()).then_some(packed);
        }
        self.after_raft(now);
        Ok(())
    }

    /// Notes what an answer says about a snapshot that its sender installs (see `ready`).
    fn note_installation(&mut self, answer: &Message) {
        if !self.is_leader() || answer.term != self.node.raft.term {
            return;
        }
        match answer.get_msg_type() {
            MessageType::MsgHeartbeatResponse => self.outgoing.answered(answer.from, answer.index),
            MessageType::MsgAppendResponse if !answer.reject => self.outgoing.appended(answer.from, answer.index),
            _ => {}
        }
    }

    /// One tick of the Raft clock. Missed ticks are skipped: a lease relies on ticks of full length.
    pub(crate) fn tick(&mut self, now: MonoTime) {
        self.reads.expire(now, self.region.id);
        let expired = now.since(MonoTime::ZERO).saturating_sub(self.config.read_timeout);
        self.proposals.expire_orphans(MonoTime::ZERO.plus(expired));
        self.defer_snapshots(now);
        self.node.store().tick();
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
        // A candidate whose own vote is not durable has asked nobody yet; its time to be elected has not begun.
        if self.node.raft.state == StateRole::Candidate && !self.is_vote_durable() {
            return;
        }
        self.node.tick();
        self.after_raft(now);
        self.extend_lease(now);
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
        if self.installing.is_some() {
            // It may have waited for apply.
            self.release_durable(now);
        }
        self.reads.on_applied(applied.index, Term::new(self.node.raft.term));
        self.announce();
    }

    /// Old entries for followers were read.
    pub(crate) fn on_fetched(&mut self, fetch: Fetch, read: Result<Vec<Entry>, LogError>, now: MonoTime) {
        for context in self.node.store().on_fetched(fetch, read) {
            self.node.on_entries_fetched(context);
        }
        self.after_raft(now);
    }

    /// A read of old entries could not be started.
    pub(crate) fn on_fetch_refused(&mut self, fetch: Fetch) {
        self.node.store().fetch_refused(fetch);
    }

    /// The transport refused a message to `peer`.
    pub(crate) fn on_unreachable(&mut self, peer: u64, now: MonoTime) {
        self.node.report_unreachable(peer);
        self.after_raft(now);
    }

    /// The store is poisoned: fails all waiting requests.
    pub(crate) fn poison(&mut self, why: &str) {
        self.lease.expire();
        for proposal in std::mem::take(&mut self.unappended).proposals {
            proposal.reply.send(Err(ProposeError::Poisoned(why.to_string())));
        }
        self.proposals.poison(why);
        self.reads.fail_all(&self.not_leader());
    }

    /// The store stops: fails all waiting requests. Pending proposals become undetermined.
    pub(crate) fn stop(&mut self) {
        self.lease.expire();
        let stops = self.not_leader();
        for proposal in std::mem::take(&mut self.unappended).proposals {
            proposal.reply.send(Err(stops.clone().into()));
        }
        self.proposals.abandon();
        self.reads.fail_all(&stops);
    }
}
