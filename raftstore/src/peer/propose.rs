//! Appends proposals: checks each on arrival, then appends all of a turn together.
//!
//! For every append raft-rs builds a message to each follower, and it counts messages, not bytes, against the in-flight
//! window. So the proposals of a turn are appended together, up to the size of an append message. Many small writes
//! then take one place in the window, and none waits for the acknowledgement of another. (raft-rs' `batch_append` has
//! no bound in bytes: it puts everything that a follower lacks into one message, which no transport accepts.)

use raft::eraftpb::{Entry, Message, MessageType};

use super::proposal::Proposal;
use super::replica::Peer;
use crate::error::RegionError;
use crate::region::{Epoch, LogIndex, Term};
use crate::time::MonoTime;

impl Peer {
    /// Accepts a write if this replica leads in the term and epoch of its evaluation. The outcome goes to the reply.
    pub(crate) fn propose(&mut self, proposal: Proposal) {
        let refused = self.check_proposal(proposal.term, proposal.epoch).err();
        let full = || self.proposals.is_full(self.unappended.proposals.len()).then(|| self.busy("pending proposals"));
        if let Some(refused) = refused.or_else(full) {
            return proposal.reply.send(Err(refused.into()));
        }
        self.unappended.bytes += proposal.data.len();
        self.unappended.proposals.push(proposal);
    }

    fn check_proposal(&self, term: Term, epoch: Epoch) -> Result<(), RegionError> {
        if !self.is_leader() {
            return Err(self.not_leader());
        }
        if self.term() != term {
            return Err(RegionError::StaleCommand { region: self.region.id });
        }
        self.check_epoch(epoch)?;
        if self.node.raft.lead_transferee.is_some() {
            return Err(self.not_ready("leadership is being transferred"));
        }
        Ok(())
    }

    /// Appends the accepted proposals. They are checked again, because a message may have ended the leadership
    /// meanwhile.
    pub(super) fn append_proposals(&mut self, now: MonoTime) {
        let limit = usize::try_from(self.config.max_append_bytes).unwrap_or(usize::MAX);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for proposal in std::mem::take(&mut self.unappended).proposals {
            if let Err(refused) = self.check_proposal(proposal.term, proposal.epoch) {
                proposal.reply.send(Err(refused.into()));
                continue;
            }
            if bytes + proposal.data.len() > limit {
                self.append(std::mem::take(&mut batch), now);
                bytes = 0;
            }
            bytes += proposal.data.len();
            batch.push(proposal);
        }
        self.append(batch, now);
    }

    fn append(&mut self, batch: Vec<Proposal>, now: MonoTime) {
        if batch.is_empty() {
            return;
        }
        #[cfg(feature = "epoch-changes")]
        let change = batch.iter().rposition(|proposal| crate::command::changes_range(&proposal.data));
        let entry = |proposal: Proposal| (Entry { data: proposal.data, ..Entry::default() }, proposal.reply);
        let (entries, replies): (Vec<_>, Vec<_>) = batch.into_iter().map(entry).unzip();
        let mut message = Message { from: self.me.id.get(), entries, ..Message::default() };
        message.set_msg_type(MessageType::MsgPropose);
        let last = self.node.raft.raft_log.last_index();
        if self.node.raft.step(message).is_err() {
            for reply in replies {
                reply.send(Err(self.busy("uncommitted entries").into()));
            }
            return;
        }
        let term = self.node.raft.term;
        let appended = self.node.raft.raft_log.last_index() - last;
        assert_eq!(appended, replies.len() as u64, "raft-rs appends all entries of a proposal or none");
        for (index, reply) in (last + 1..).zip(replies) {
            reply.appended(LogIndex::new(index));
            self.proposals.push(index, term, reply);
        }
        #[cfg(feature = "epoch-changes")]
        if let Some(at) = change {
            self.last_change = last + 1 + at as u64;
        }
        self.record_proposed(now);
        self.after_raft(now);
    }
}
