//! How followers learn the commit index: with entries, by a notice, or with a heartbeat.
//!
//! raft-rs would send each move of the commit index to every follower in an append of its own, and every follower would
//! answer it. Under load that doubles the messages of a write. Here:
//!
//! - While entries are on their way the leader sends no notice. The entries after them carry the commit index, or their
//!   own commit is announced a round later. If they do not commit, the next heartbeat carries it, cut to what its
//!   receiver has acknowledged.
//! - Once all entries are committed, one *notice* tells all followers at once: an empty append at the end of the log.
//! - A follower does not answer a notice if it has already acknowledged that position. If that acknowledgement was
//!   lost, the leader asks again after the next heartbeat, with an append that moves no commit index, and is answered.
//!
//! So an idle follower has applied what is committed half a round after the leader, and under load a follower is behind
//! by what was sent last.

use raft::eraftpb::{Message, MessageType};

use super::replica::{Acknowledged, Peer};

impl Peer {
    /// The leader's part. Called whenever the commit index may have moved.
    pub(super) fn broadcast_commit(&mut self) {
        let log = &self.node.raft.raft_log;
        let (commit, last) = (log.committed, log.last_index());
        if self.is_leader() && commit == last && commit > self.noticed_commit {
            self.noticed_commit = commit;
            self.node.raft.bcast_append();
        }
    }

    /// Whether a message of the leader is a notice that this replica need not answer. Called before it is stepped.
    pub(super) fn is_plain_notice(&self, message: &Message) -> bool {
        let log = &self.node.raft.raft_log;
        message.msg_type == MessageType::MsgAppend as i32
            && message.entries.is_empty()
            && message.index == log.last_index()
            && message.commit > log.committed
            && self.acknowledged == Acknowledged { term: message.term, index: message.index }
    }

    /// The follower's part: drops the answer to a notice, or notes what an answer acknowledges. Called after each
    /// message from a leader; raft-rs has put its answer last.
    pub(super) fn review_answer(&mut self, to_notice: bool) {
        let messages = &mut self.node.raft.msgs;
        let acknowledges =
            |message: &Message| message.get_msg_type() == MessageType::MsgAppendResponse && !message.reject;
        let Some(answer) = messages.last().filter(|message| acknowledges(message)) else { return };
        let acknowledged = Acknowledged { term: answer.term, index: answer.index };
        if to_notice && acknowledged == self.acknowledged {
            messages.pop();
        } else {
            self.acknowledged = acknowledged;
        }
    }
}
