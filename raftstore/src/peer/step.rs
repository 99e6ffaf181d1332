//! Inputs of a replica: messages, ticks, reports of apply and the transport, and the end of the store.

use raft::SnapshotStatus;
use raft::eraftpb::MessageType;

use super::gate::{self, GateContext, Refusal};
use super::replica::{Peer, PeerFault};
use crate::error::ProposeError;
use crate::ports::RaftMessage;
use crate::records::LogPosition;
use crate::region::Term;
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

    /// One tick of the Raft clock. Missed ticks are skipped: a lease relies on ticks of full length.
    pub(crate) fn tick(&mut self, now: MonoTime) {
        self.reads.expire(now, self.region.id);
        let expired = now.since(MonoTime::ZERO).saturating_sub(self.config.read_timeout);
        self.proposals.expire_orphans(MonoTime::ZERO.plus(expired));
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
