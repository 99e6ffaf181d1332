//! Pending proposals: proposals of unknown outcome.
//!
//! A proposal is identified by the (term, index) of its entry. It took effect if that entry is applied. It had no
//! effect if another entry is *committed* at that index. Nothing less proves that it is lost. An entry of a deposed
//! leader may still be committed by the next leader. An entry that this replica truncated or overwrote, even as leader
//! of a later term, may survive in another replica's log and be committed once that one leads (figure 8 of the Raft
//! paper). Until one of the two is observed, or a timeout passes, the outcome is open.

use std::collections::VecDeque;

use raft::eraftpb::Entry;

use crate::error::{ProposeError, RegionError};
use crate::region::{Epoch, LogIndex, RegionId, Term};
use crate::reply::Reply;
use crate::time::MonoTime;

/// The reply of a proposal.
pub(crate) type ProposeReply = Reply<Result<LogIndex, ProposeError>>;

/// A write to replicate.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The term of its evaluation.
    pub(crate) term: Term,
    /// The epoch of its evaluation.
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

/// Replies for committed entries, ascending by index.
pub(crate) type CommittedReplies = VecDeque<(u64, ProposeReply)>;

/// Pending proposals of one region.
///
/// Invariants:
/// 1. `queue` is of one term, in which this replica leads; its indexes ascend strictly.
/// 2. `orphans` are of earlier terms; `orphaned_at` is set while there are any.
#[derive(Debug)]
pub(crate) struct Proposals {
    region: RegionId,
    capacity: usize,
    queue: VecDeque<Pending>,
    orphans: Vec<Pending>,
    /// When this replica stopped leading and left the oldest orphans.
    orphaned_at: Option<MonoTime>,
}

impl Proposals {
    pub(crate) fn new(region: RegionId, capacity: usize) -> Proposals {
        Proposals { region, capacity, queue: VecDeque::new(), orphans: Vec::new(), orphaned_at: None }
    }

    /// Whether the bound is reached with `more` proposals beside these.
    pub(crate) fn is_full(&self, more: usize) -> bool {
        self.len() + more >= self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.orphans.len()
    }

    /// The entry of a proposal was appended at `index` by the leader of `term`.
    pub(crate) fn push(&mut self, index: u64, term: u64, reply: ProposeReply) {
        let follows = self.queue.back().is_none_or(|last| last.term == term && last.index < index);
        assert!(follows, "a term appends each index once, in order");
        self.queue.push_back(Pending { index, term, reply });
    }

    /// Takes the replies for committed entries. Answers the proposals that these entries prove lost.
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

    /// This replica no longer leads; its pending proposals become orphans.
    pub(crate) fn stepped_down(&mut self, now: MonoTime) {
        self.orphans.extend(self.queue.drain(..));
        if !self.orphans.is_empty() {
            self.orphaned_at.get_or_insert(now);
        }
    }

    /// Answers orphans as undetermined if the leadership ended at or before `since`.
    pub(crate) fn expire_orphans(&mut self, since: MonoTime) {
        if self.orphaned_at.is_none_or(|at| at > since) {
            return;
        }
        self.orphaned_at = None;
        for pending in std::mem::take(&mut self.orphans) {
            self.undetermined(pending.reply);
        }
    }

    /// Answers all as undetermined: a snapshot replaces the log, or the store stops.
    pub(crate) fn abandon(&mut self) {
        for pending in self.take_all() {
            self.undetermined(pending.reply);
        }
    }

    /// Fails all: the store is poisoned.
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
    fn committed_entry_takes_its_reply() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        let replies = proposals.take_committed(&[entry(4, 2), entry(5, 2), entry(6, 2)]);
        assert_eq!(replies.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [5]);
        assert_eq!(outcome.try_get(), None);
    }

    #[test]
    fn committed_entry_of_another_term_proves_the_loss() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        assert!(proposals.take_committed(&[entry(5, 3)]).is_empty());
        assert_eq!(outcome.try_get(), stale());
    }

    #[test]
    fn entry_of_a_deposed_leader_may_still_be_committed() {
        let mut proposals = Proposals::new(REGION, 8);
        let (first, outcome) = reply();
        proposals.push(5, 2, first);
        proposals.stepped_down(MonoTime::from_millis(1));
        assert_eq!(outcome.try_get(), None);
        assert_eq!(proposals.take_committed(&[entry(5, 2)]).len(), 1);
    }

    /// Regression: a re-elected leader overwrote its older proposal and answered that it had no effect; a later leader
    /// then committed it (figure 8 of the Raft paper). Only a committed entry proves a loss.
    #[test]
    fn overwritten_proposal_is_open_until_an_entry_is_committed() {
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
    fn orphans_expire_but_current_proposals_do_not() {
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
