//! Proposals whose fate is not known yet.
//!
//! A proposal is known by the (term, index) its entry got. It took effect if that very entry is applied; it certainly did not if another entry is
//! *committed* at that index. Nothing less proves the loss: an entry that a deposed leader appended may still be committed by the next one, and
//! an entry that this replica has cut off its own log, even one it has written over as leader of a later term, may live on in another's and be
//! committed once that one leads (figure 8 of the Raft paper). Until one of the two is seen, or patience ends, its fate is open.

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

/// Proposals with an open fate.
///
/// Invariants:
/// 1. `queue` is of one term, the one this replica leads in; its indexes ascend strictly.
/// 2. `orphans` are of earlier terms; `orphaned_at` says since when there are any.
#[derive(Debug)]
pub(crate) struct Proposals {
    region: RegionId,
    capacity: usize,
    queue: VecDeque<Pending>,
    orphans: Vec<Pending>,
    /// When this replica first stopped leading, while proposals from before are open.
    orphaned_at: Option<MonoTime>,
}

impl Proposals {
    pub(crate) fn new(region: RegionId, capacity: usize) -> Proposals {
        Proposals { region, capacity, queue: VecDeque::new(), orphans: Vec::new(), orphaned_at: None }
    }

    /// Whether no more than `more` proposals beside these are within the bound.
    pub(crate) fn is_full(&self, more: usize) -> bool {
        self.len() + more >= self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.orphans.len()
    }

    /// The leader of `term` appended the proposal's entry at `index`.
    pub(crate) fn push(&mut self, index: u64, term: u64, reply: ProposeReply) {
        let follows = self.queue.back().is_none_or(|last| last.term == term && last.index < index);
        assert!(follows, "one term appends each index once, in order");
        self.queue.push_back(Pending { index, term, reply });
    }

    /// Takes the replies that go with committed entries; answers those that the entries prove lost.
    pub(crate) fn take_committed(&mut self, entries: &[Entry]) -> CommittedReplies {
        let mut replies = VecDeque::new();
        for entry in entries {
            let mut decided: Vec<Pending> = self.orphans.extract_if(.., |p| p.index <= entry.index).collect();
            while let Some(first) = self.queue.pop_front_if(|first| first.index <= entry.index) {
                decided.push(first);
            }
            for pending in decided {
                if (pending.index, pending.term) == (entry.index, entry.term) {
                    replies.push_back((entry.index, pending.reply));
                } else if pending.index == entry.index {
                    pending.reply.send(Err(RegionError::StaleCommand { region: self.region }.into()));
                } else {
                    self.undetermined(pending.reply);
                }
            }
        }
        if self.orphans.is_empty() {
            self.orphaned_at = None;
        }
        replies
    }

    /// This replica does not lead any more.
    pub(crate) fn stepped_down(&mut self, now: MonoTime) {
        self.orphans.extend(self.queue.drain(..));
        if !self.orphans.is_empty() {
            self.orphaned_at.get_or_insert(now);
        }
    }

    /// Gives up on those of an earlier leadership, if that ended before `since`.
    pub(crate) fn expire_orphans(&mut self, since: MonoTime) {
        if self.orphaned_at.is_none_or(|at| at > since) {
            return;
        }
        self.orphaned_at = None;
        for pending in std::mem::take(&mut self.orphans) {
            self.undetermined(pending.reply);
        }
    }

    /// The fate of all of them will not be learned here: a snapshot replaces the log, or the store stops.
    pub(crate) fn abandon(&mut self) {
        for pending in self.take_all() {
            self.undetermined(pending.reply);
        }
    }

    /// The store failed.
    pub(crate) fn poison(&mut self, why: &str) {
        for pending in self.take_all() {
            pending.reply.send(Err(ProposeError::Poisoned(why.to_string())));
        }
    }

    fn take_all(&mut self) -> Vec<Pending> {
        self.orphaned_at = None;
        let mut all = std::mem::take(&mut self.orphans);
        all.extend(self.queue.drain(..));
        all
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
        let replies = proposals.take_committed(&[entry(4, 2), entry(5, 2), entry(6, 2)]);
        assert_eq!(replies.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [5]);
        assert_eq!(outcome.try_get(), None);
    }

    #[test]
    fn another_terms_entry_at_the_index_proves_the_loss() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        assert!(proposals.take_committed(&[entry(5, 3)]).is_empty());
        assert_eq!(outcome.try_get(), stale());
    }

    #[test]
    fn a_deposed_leaders_entry_may_still_be_committed() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        proposals.stepped_down(MonoTime::from_millis(1));
        assert_eq!(outcome.try_get(), None);
        assert_eq!(proposals.take_committed(&[entry(5, 2)]).len(), 1);
    }

    /// A leader that was elected again wrote over its older proposal and said that it had no effect; a later leader committed it (figure 8 of the
    /// Raft paper). Only a committed entry proves a loss.
    #[test]
    fn what_a_reelected_leader_writes_over_is_not_lost_yet() {
        for committed in [entry(5, 4), entry(5, 2)] {
            let mut proposals = Proposals::new(REGION, 8);
            let ((a, old), (b, new)) = (reply(), reply());
            proposals.push(5, 2, a);
            proposals.stepped_down(MonoTime::from_millis(1));
            proposals.push(5, 4, b);
            assert_eq!((old.try_get(), new.try_get()), (None, None));
            proposals.stepped_down(MonoTime::from_millis(2));
            let replies = proposals.take_committed(std::slice::from_ref(&committed));
            assert_eq!(replies.len(), 1);
            let (lost, kept) = if committed.term == 4 { (old, new) } else { (new, old) };
            assert_eq!((lost.try_get(), kept.try_get()), (stale(), None));
        }
    }

    #[test]
    fn orphans_are_given_up_after_a_while_but_not_the_new_terms() {
        let mut proposals = Proposals::new(REGION, 8);
        let ((a, old), (b, new)) = (reply(), reply());
        proposals.push(5, 2, a);
        proposals.stepped_down(MonoTime::from_millis(10));
        proposals.push(7, 4, b);
        proposals.expire_orphans(MonoTime::from_millis(9));
        assert_eq!(old.try_get(), None);
        proposals.expire_orphans(MonoTime::from_millis(10));
        assert_eq!(old.try_get(), unknown());
        assert_eq!(new.try_get(), None);
        proposals.abandon();
        assert_eq!(new.try_get(), unknown());
    }
}
