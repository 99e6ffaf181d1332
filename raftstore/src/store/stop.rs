//! How a store ends: a graceful stop, or a halt after a failure.

use super::state::{PeerSlot, StoreLoop};
use crate::error::{ProposeError, RegionError};
use crate::messages::{ApplyTask, StoreMsg};
use crate::peer::Peer;
use crate::peer::effects::RoleEvent;
use crate::region::RegionId;
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
                StoreMsg::Read(region, _, reply) => reply.send(Err(self.redirect(region))),
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

    /// Starts a graceful stop: transfers leaderships away. Ticks offer those that are left again, because an offer may
    /// be lost, or its receiver may let it pass. The store serves until they are handed over.
    pub(crate) fn begin_stop(&mut self, now: MonoTime) {
        self.handing_over = true;
        self.hand_over(now);
    }

    /// Offers every leadership to its best follower, as often as a stop has time for.
    pub(super) fn hand_over(&mut self, now: MonoTime) {
        let regions: Vec<RegionId> = self.peers.keys().copied().collect();
        for region in regions {
            self.with_peer(region, |peer| peer.hand_over(now));
        }
    }

    /// Continues a graceful stop after a turn: refuses requests once every leadership with a live successor is handed
    /// over. Returns whether there is nothing left to wait for. Before that the store serves, so a region whose
    /// successor cannot take over yet stays available.
    pub(crate) fn continue_stop(&mut self, now: MonoTime) -> bool {
        let leads = |slot: &PeerSlot| slot.peer.is_leader() && slot.peer.best_successor(now).is_some();
        if self.handing_over && !self.peers.values().any(leads) {
            self.handing_over = false;
            self.parts.health.stop();
        }
        let proposals = self.peers.values().any(|slot| slot.peer.pending_proposals() > 0);
        let log = !self.batches.is_empty() || !self.next_batch.log.is_empty();
        let waits = proposals || log || !self.pending_apply.is_empty();
        !self.handing_over && !waits
    }

    /// Ends a graceful stop. Requests that still wait fail; the outcome of pending proposals is undetermined.
    pub(crate) fn finish_stop(&mut self) {
        self.halted = true;
        self.parts.health.stop();
        self.close_peers(Peer::stop);
        for message in self.parts.mailbox.close() {
            match message {
                StoreMsg::Propose(region, proposal) => proposal.reply.send(Err(self.redirect(region).into())),
                StoreMsg::Read(region, _, reply) => reply.send(Err(self.redirect(region))),
                StoreMsg::Raft(_) | StoreMsg::Transfer(..) => {}
            }
        }
    }

    /// The refusal of a store that does not serve any more. Its delegates are closed, so a leader names no leader.
    fn redirect(&self, region: RegionId) -> RegionError {
        let unknown = RegionError::NotLeader { region, leader: None };
        self.peers.get(&region).map_or(unknown, |slot| slot.delegate.not_leader())
    }
}
