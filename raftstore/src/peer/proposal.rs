//! Proposals whose fate is not known yet.
//!
//! A proposal is known by the (term, index) its entry got. It took effect if that very entry is applied; it certainly did not if another entry is
//! applied, or appended by this replica as leader, at that index. Until one of the two is seen its fate is open, whoever
//! leads: an entry that a deposed leader appended may still be committed by the next one.

use std::collections::VecDeque;

use raft::eraftpb::Entry;

use crate::error::{ProposeError, RegionError};
use crate::region::{Epoch, LogIndex, RegionId, Term};
use crate::reply::Reply;
use crate::time::MonoTime;

/// Where the outcome of a proposal goes.
pub(crate) type ProposeReply = Reply<Result<LogIndex, ProposeError>>;

/// A write to replicate.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The term it was evaluated in.
    pub(crate) term: Term,
    /// The epoch it was evaluated at.
    pub(crate) epoch: Epoch,
    /// The encoded command.
    pub(crate) data: Vec<u8>,
    pub(crate) reply: ProposeReply,
}

#[derive(Debug)]
struct Pending {
    index: u64,
    term: u64,
    reply: ProposeReply,
}

/// Replies that go with committed entries, by index, ascending.
pub(crate) type CommittedReplies = VecDeque<(u64, ProposeReply)>;

/// Proposals with an open fate. Invariant: indexes ascend strictly, terms never descend.
#[derive(Debug)]
pub(crate) struct Proposals {
    region: RegionId,
    capacity: usize,
    queue: VecDeque<Pending>,
    /// When this replica stopped leading, while proposals from before are open.
    orphaned: Option<MonoTime>,
}

impl Proposals {
    pub(crate) fn new(region: RegionId, capacity: usize) -> Proposals {
        Proposals { region, capacity, queue: VecDeque::new(), orphaned: None }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The leader of `term` appended the proposal's entry at `index`.
    pub(crate) fn push(&mut self, index: u64, term: u64, reply: ProposeReply) {
        // Whatever an earlier term left at or behind this index was cut off the log before this replica could be elected.
        while self.queue.back().is_some_and(|last| last.index >= index) {
            if let Some(lost) = self.queue.pop_back() {
                assert!(lost.term < term, "one term appends each index once");
                lost.reply.send(Err(RegionError::StaleCommand { region: self.region }.into()));
            }
        }
        self.queue.push_back(Pending { index, term, reply });
    }

    /// Takes the replies that go with committed entries; answers those that the entries prove lost.
    pub(crate) fn committed(&mut self, entries: &[Entry]) -> CommittedReplies {
        let mut replies = VecDeque::new();
        for entry in entries {
            while self.queue.front().is_some_and(|first| first.index <= entry.index) {
                let Some(first) = self.queue.pop_front() else { break };
                if (first.index, first.term) == (entry.index, entry.term) {
                    replies.push_back((entry.index, first.reply));
                } else if first.index == entry.index {
                    first.reply.send(Err(RegionError::StaleCommand { region: self.region }.into()));
                } else {
                    self.undetermined(first.reply);
                }
            }
        }
        if self.queue.is_empty() {
            self.orphaned = None;
        }
        replies
    }

    /// This replica does not lead any more.
    pub(crate) fn stepped_down(&mut self, now: MonoTime) {
        if !self.queue.is_empty() && self.orphaned.is_none() {
            self.orphaned = Some(now);
        }
    }

    /// Gives up on those left from an earlier leadership before `since`.
    pub(crate) fn give_up_orphans(&mut self, since: MonoTime, leads_in: Option<u64>) {
        if self.orphaned.is_none_or(|at| at > since) {
            return;
        }
        self.orphaned = None;
        while self.queue.front().is_some_and(|first| leads_in != Some(first.term)) {
            if let Some(first) = self.queue.pop_front() {
                self.undetermined(first.reply);
            }
        }
    }

    /// The fate of all of them will not be learned here: a snapshot replaces the log, or the store stops.
    pub(crate) fn abandon(&mut self) {
        for pending in std::mem::take(&mut self.queue) {
            self.undetermined(pending.reply);
        }
        self.orphaned = None;
    }

    /// The store failed.
    pub(crate) fn poison(&mut self, why: &str) {
        for pending in self.queue.drain(..) {
            pending.reply.send(Err(ProposeError::Poisoned(why.to_string())));
        }
    }

    fn undetermined(&self, reply: ProposeReply) {
        reply.send(Err(ProposeError::Undetermined { region: self.region }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::testing::probe as reply;

    const REGION: RegionId = RegionId::new(2);

    fn entry(index: u64, term: u64) -> Entry {
        Entry { index, term, ..Entry::default() }
    }

    fn stale() -> Option<Result<LogIndex, ProposeError>> {
        Some(Err(RegionError::StaleCommand { region: REGION }.into()))
    }

    fn unknown() -> Option<Result<LogIndex, ProposeError>> {
        Some(Err(ProposeError::Undetermined { region: REGION }))
    }

    #[test]
    fn a_committed_entry_takes_its_reply_along() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        let replies = proposals.committed(&[entry(4, 2), entry(5, 2), entry(6, 2)]);
        assert_eq!(replies.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [5]);
        assert_eq!(outcome.look(), None);
    }

    #[test]
    fn another_terms_entry_at_the_index_proves_the_loss() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        assert!(proposals.committed(&[entry(5, 3)]).is_empty());
        assert_eq!(outcome.look(), stale());
    }

    #[test]
    fn a_deposed_leaders_entry_may_still_be_committed() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        proposals.stepped_down(MonoTime::from_millis(1));
        assert_eq!(outcome.look(), None);
        assert_eq!(proposals.committed(&[entry(5, 2)]).len(), 1);
    }

    #[test]
    fn reelected_leader_overwrites_its_older_proposals() {
        let mut proposals = Proposals::new(REGION, 8);
        let ((a, lost), (b, kept)) = (reply(), reply());
        proposals.push(5, 2, a);
        proposals.push(5, 4, b);
        assert_eq!(lost.look(), stale());
        assert_eq!(kept.look(), None);
    }

    #[test]
    fn orphans_are_given_up_after_a_while_but_not_the_new_terms() {
        let mut proposals = Proposals::new(REGION, 8);
        let ((a, old), (b, new)) = (reply(), reply());
        proposals.push(5, 2, a);
        proposals.stepped_down(MonoTime::from_millis(10));
        proposals.push(7, 4, b);
        proposals.give_up_orphans(MonoTime::from_millis(9), Some(4));
        assert_eq!(old.look(), None);
        proposals.give_up_orphans(MonoTime::from_millis(10), Some(4));
        assert_eq!(old.look(), unknown());
        assert_eq!(new.look(), None);
        proposals.abandon();
        assert_eq!(new.look(), unknown());
    }
}
