//! How a store ends: a graceful stop, or a halt after a failure.

use super::state::{PeerSlot, StoreLoop};
use crate::error::{ProposeError, RegionError};
use crate::messages::{ApplyTask, StoreMsg};
use crate::peer::Peer;
use crate::peer::effects::RoleEvent;
use crate::time::MonoTime;

impl StoreLoop {
    /// Handles a turn of a poisoned store: refuses everything that waits or arrives, and acknowledges nothing.
    pub(super) fn halt(&mut self, why: &str) -> bool {
        let first = !self.halted;
        self.halted = true;
        if first {
            self.close_peers(|peer| peer.poison(why));
            for task in std::mem::take(&mut self.pending_apply) {
                if let ApplyTask::Entries(_, committed) = task {
                    for (_, reply) in committed.replies {
                        reply.send(Err(ProposeError::Poisoned(why.to_string())));
                    }
                }
            }
        }
        let mut messages = std::mem::take(&mut self.messages);
        let busy = self.parts.mailbox.take(usize::MAX, &mut messages);
        for message in messages.drain(..) {
            match message {
                StoreMsg::Propose(_, proposal) => proposal.reply.send(Err(ProposeError::Poisoned(why.to_string()))),
                StoreMsg::Read(region, _, reply) => {
                    reply.send(Err(RegionError::NotReady { region, why: format!("store is poisoned: {why}") }));
                }
                StoreMsg::Raft(_) | StoreMsg::Transfer(..) => {}
            }
        }
        self.messages = messages;
        busy || first
    }

    /// Closes the delegates, calls `end` on every peer, and reports the lost leaderships to the listener.
    fn close_peers(&mut self, end: impl Fn(&mut Peer)) {
        let mut stepped_down = Vec::new();
        for (region, slot) in &mut self.peers {
            slot.delegate.close();
            end(&mut slot.peer);
            stepped_down.extend(slot.peer.take_announced_term().map(|term| (*region, term)));
        }
        for (region, term) in stepped_down {
            self.announce(region, RoleEvent::SteppedDown(term));
        }
    }

    /// Starts a graceful stop: transfers leaderships away.
    pub(crate) fn begin_stop(&mut self, now: MonoTime) {
        self.transfer_leaderships(now);
    }

    /// Whether a graceful stop has nothing left to wait for.
    pub(crate) fn is_drained(&self, now: MonoTime) -> bool {
        let waits = |slot: &PeerSlot| {
            slot.peer.pending_proposals() > 0 || (slot.peer.is_leader() && slot.peer.best_successor(now).is_some())
        };
        self.pending_apply.is_empty()
            && self.batches.is_empty()
            && self.next_batch.log.is_empty()
            && !self.peers.values().any(waits)
    }

    /// Ends a graceful stop. Requests that still wait fail; the outcome of pending proposals is undetermined.
    pub(crate) fn finish_stop(&mut self) {
        self.halted = true;
        self.close_peers(Peer::stop);
        let region_of = |m: &StoreMsg| match m {
            StoreMsg::Propose(region, _) | StoreMsg::Read(region, ..) | StoreMsg::Transfer(region, _) => *region,
            StoreMsg::Raft(message) => message.region,
        };
        for message in self.parts.mailbox.close() {
            let region = region_of(&message);
            let refused = RegionError::NotReady { region, why: "the store stops".to_string() };
            match message {
                StoreMsg::Propose(_, proposal) => proposal.reply.send(Err(refused.into())),
                StoreMsg::Read(_, _, reply) => reply.send(Err(refused)),
                StoreMsg::Raft(_) | StoreMsg::Transfer(..) => {}
            }
        }
    }
}
