//! Checks the promises of the Raft protocol, from the messages that stores send and the states that they report.

use std::collections::BTreeMap;

use raft::eraftpb::MessageType;
use raftstore::ports::RaftMessage;
use raftstore::{LogIndex, PeerId, RegionId, RegionStatus, StoreId, Term};

use super::{Checked, violated};

/// Invariants over the whole run, all replicas and all lives:
/// 1. At most one peer leads a region in a term. It sends as the leader of that term in one life only: one that forgets
///    its term in a crash could send other entries of the same term.
/// 2. A peer votes for at most one peer in a term, itself included.
/// 3. After a crash a peer sends no message of an earlier term than it sent before. (Within a life, messages of earlier
///    terms may leave late, as a network may delay them.)
/// 4. Within a life, the term and applied index of a replica never move back.
#[derive(Default)]
pub(crate) struct RaftChecker {
    leaders: BTreeMap<(RegionId, Term), PeerId>,
    /// The crashes of the leader's store when it first sent as the leader of this term.
    led_after: BTreeMap<(RegionId, Term), u32>,
    /// The crashes of each store.
    crashes: BTreeMap<StoreId, u32>,
    votes: BTreeMap<(RegionId, PeerId, Term), u64>,
    /// Highest term sent, and its value before the last crash.
    terms: BTreeMap<(StoreId, RegionId), (u64, u64)>,
    seen: BTreeMap<(StoreId, RegionId), (Term, LogIndex)>,
}

impl RaftChecker {
    /// A store sends a message.
    pub(crate) fn on_send(&mut self, message: &RaftMessage) -> Checked {
        let (region, peer, inner) = (message.region, message.from.id, &message.message);
        match inner.msg_type() {
            // Pre-votes carry a term that the sender does not hold.
            MessageType::MsgRequestPreVote | MessageType::MsgRequestPreVoteResponse => return Ok(()),
            // Answers to heartbeats leave before the sender's term is durable.
            MessageType::MsgHeartbeatResponse => return Ok(()),
            MessageType::MsgAppend | MessageType::MsgHeartbeat | MessageType::MsgSnapshot => {
                self.leads(region, Term::new(inner.term), peer)?;
                self.sends_as_leader(region, Term::new(inner.term), message.from.store)?;
            }
            MessageType::MsgRequestVoteResponse if !inner.reject => {
                self.votes_for(region, peer, inner.term, inner.to)?
            }
            // A candidate has voted for itself.
            MessageType::MsgRequestVote => self.votes_for(region, peer, inner.term, peer.get())?,
            _ => {}
        }
        if inner.term == 0 {
            return Ok(());
        }
        let (highest, floor) = self.terms.entry((message.from.store, region)).or_default();
        if inner.term < *floor {
            let kind = inner.msg_type();
            return violated(format!(
                "peer {peer} of region {region} sends {kind:?} of term {} but sent term {floor} before it crashed",
                inner.term
            ));
        }
        *highest = inner.term.max(*highest);
        Ok(())
    }

    /// A store reports the state of a replica.
    pub(crate) fn on_status(&mut self, store: StoreId, status: &RegionStatus) -> Checked {
        let region = status.region.id;
        if status.is_leader {
            let Some(peer) = status.region.peer_on(store) else {
                return violated(format!("store {store} leads region {region} without a replica of it"));
            };
            self.leads(region, status.term, peer.id)?;
        }
        let now = (status.term, status.applied);
        let before = self.seen.insert((store, region), now).unwrap_or_default();
        if now.0 < before.0 || now.1 < before.1 {
            return violated(format!(
                "store {store} region {region} goes back from term {} applied {} to term {} applied {}",
                before.0, before.1, now.0, now.1
            ));
        }
        Ok(())
    }

    /// A store lost its memory.
    pub(crate) fn on_crash(&mut self, store: StoreId) {
        *self.crashes.entry(store).or_default() += 1;
        self.seen.retain(|(other, _), _| *other != store);
        for (_, (highest, floor)) in self.terms.iter_mut().filter(|((other, _), _)| *other == store) {
            *floor = *highest;
        }
    }

    /// Number of (region, term) pairs with a leader.
    pub(crate) fn elections(&self) -> usize {
        self.leaders.len()
    }

    fn votes_for(&mut self, region: RegionId, peer: PeerId, term: u64, candidate: u64) -> Checked {
        let vote = *self.votes.entry((region, peer, Term::new(term))).or_insert(candidate);
        if vote == candidate {
            return Ok(());
        }
        violated(format!("peer {peer} of region {region} votes for {vote} and for {candidate} in term {term}"))
    }

    fn leads(&mut self, region: RegionId, term: Term, peer: PeerId) -> Checked {
        let leader = *self.leaders.entry((region, term)).or_insert(peer);
        if leader == peer {
            return Ok(());
        }
        violated(format!("peers {leader} and {peer} both lead region {region} in term {term}"))
    }

    fn sends_as_leader(&mut self, region: RegionId, term: Term, store: StoreId) -> Checked {
        let crashes = self.crashes.get(&store).copied().unwrap_or_default();
        if *self.led_after.entry((region, term)).or_insert(crashes) == crashes {
            return Ok(());
        }
        violated(format!("store {store} leads region {region} in term {term} again after a crash"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raft::eraftpb::Message;
    use raftstore::{Epoch, PeerMeta, PeerRole};

    fn message(kind: MessageType, from: u64, to: u64, term: u64) -> RaftMessage {
        let peer = |id| PeerMeta { id: PeerId::new(id), store: StoreId::new(id), role: PeerRole::Voter };
        let mut inner = Message { from, to, term, ..Message::default() };
        inner.set_msg_type(kind);
        let epoch = Epoch::default();
        RaftMessage { region: RegionId::new(1), epoch, from: peer(from), to: peer(to), message: inner }
    }

    #[test]
    fn two_leaders_in_a_term_are_found() {
        let mut checker = RaftChecker::default();
        assert!(checker.on_send(&message(MessageType::MsgHeartbeat, 1, 2, 5)).is_ok());
        assert!(checker.on_send(&message(MessageType::MsgAppend, 1, 3, 5)).is_ok());
        assert!(checker.on_send(&message(MessageType::MsgAppend, 2, 3, 6)).is_ok());
        assert!(checker.on_send(&message(MessageType::MsgAppend, 3, 2, 5)).is_err());
    }

    #[test]
    fn term_led_again_after_a_crash_is_found() {
        let mut checker = RaftChecker::default();
        assert!(checker.on_send(&message(MessageType::MsgHeartbeat, 1, 2, 5)).is_ok());
        checker.on_crash(StoreId::new(2));
        assert!(checker.on_send(&message(MessageType::MsgAppend, 1, 2, 5)).is_ok(), "another store");
        checker.on_crash(StoreId::new(1));
        assert!(checker.on_send(&message(MessageType::MsgAppend, 1, 2, 6)).is_ok());
        assert!(checker.on_send(&message(MessageType::MsgAppend, 1, 2, 5)).is_err());
    }

    #[test]
    fn two_votes_in_a_term_are_found() {
        let mut checker = RaftChecker::default();
        let vote = MessageType::MsgRequestVoteResponse;
        assert!(checker.on_send(&message(vote, 1, 2, 5)).is_ok());
        assert!(checker.on_send(&message(vote, 1, 2, 5)).is_ok());
        assert!(checker.on_send(&message(vote, 1, 3, 6)).is_ok());
        let mut rejection = message(vote, 1, 2, 6);
        rejection.message.reject = true;
        assert!(checker.on_send(&rejection).is_ok());
        assert!(checker.on_send(&message(vote, 1, 2, 6)).is_err());
        assert!(checker.on_send(&message(MessageType::MsgRequestVote, 2, 1, 6)).is_ok());
        assert!(checker.on_send(&message(vote, 2, 3, 6)).is_err(), "it has voted for itself");
    }

    #[test]
    fn term_forgotten_by_a_crash_is_found() {
        let mut checker = RaftChecker::default();
        let response = MessageType::MsgAppendResponse;
        assert!(checker.on_send(&message(response, 1, 2, 6)).is_ok());
        assert!(checker.on_send(&message(response, 1, 2, 5)).is_ok(), "late, but of the same life");
        checker.on_crash(StoreId::new(1));
        assert!(checker.on_send(&message(MessageType::MsgRequestPreVote, 1, 2, 7)).is_ok());
        assert!(checker.on_send(&message(response, 1, 2, 5)).is_err());
    }
}
