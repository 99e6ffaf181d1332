//! What goes wrong, and when: by order of a test, or by a seed.

use std::collections::VecDeque;
use std::time::Duration;

use raftstore::{RegionError, StoreId};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::topology::Topology;
use crate::api::Request;
use crate::key::Key;

/// Requests that wait to be repeated at most; more are forgotten.
const REPEATS_MAX: usize = 64;

/// Something that goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store is not reached; nothing is done.
    Unreachable,
    /// The store refuses; nothing is done.
    Refuse(RegionError),
    /// The request is carried out, its answer lost.
    LoseReply,
    /// The outcome of a write is unknown to the store. Of a read, the answer is lost.
    Undetermined {
        /// Whether it is carried out all the same.
        applied: bool,
    },
    /// The request is carried out, and once more before some later call.
    Repeat,
    /// Leadership moves to a store before the request arrives.
    MoveLeader(StoreId),
    /// The region that holds the key is split there before the request arrives.
    Split(Key),
}

/// How often things go wrong by chance: probabilities from 0 to 1 of each fault, per call.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Determines everything that is drawn, given the order of calls.
    pub seed: u64,
    /// Of [`Fault::Unreachable`]; also of a call to locate.
    pub unreachable: f64,
    /// Of [`Fault::Refuse`], with any region error.
    pub refuse: f64,
    /// Of [`Fault::LoseReply`].
    pub lose_reply: f64,
    /// Of [`Fault::Undetermined`], half of them carried out.
    pub undetermined: f64,
    /// Of [`Fault::Repeat`].
    pub repeat: f64,
    /// Of [`Fault::MoveLeader`], to any store.
    pub move_leader: f64,
    /// Of [`Fault::Split`], at a key of the request.
    pub split: f64,
    /// A call waits for a time drawn between zero and this, on tokio's clock.
    pub delay_max: Duration,
}

impl Faults {
    /// Nothing goes wrong.
    pub const fn none() -> Faults {
        Faults {
            seed: 0,
            unreachable: 0.0,
            refuse: 0.0,
            lose_reply: 0.0,
            undetermined: 0.0,
            repeat: 0.0,
            move_leader: 0.0,
            split: 0.0,
            delay_max: Duration::ZERO,
        }
    }

    /// Everything goes wrong now and then, except that no write's outcome is unknown to the store, and that nothing waits.
    pub const fn rough(seed: u64) -> Faults {
        Faults {
            seed,
            unreachable: 0.02,
            refuse: 0.05,
            lose_reply: 0.03,
            repeat: 0.05,
            move_leader: 0.03,
            split: 0.01,
            ..Faults::none()
        }
    }
}

/// The faults to come.
pub(super) struct FaultPlan {
    faults: Faults,
    rng: StdRng,
    ordered: VecDeque<Fault>,
    repeats: VecDeque<(StoreId, Request)>,
}

impl FaultPlan {
    pub(super) fn new(faults: Faults) -> FaultPlan {
        let rng = StdRng::seed_from_u64(faults.seed);
        FaultPlan { faults, rng, ordered: VecDeque::new(), repeats: VecDeque::new() }
    }

    pub(super) fn inject(&mut self, faults: impl IntoIterator<Item = Fault>) {
        self.ordered.extend(faults);
    }

    /// What goes wrong with this call.
    pub(super) fn draw(&mut self, request: &Request, topology: &Topology) -> Option<Fault> {
        if let Some(fault) = self.ordered.pop_front() {
            return Some(fault);
        }
        let f = self.faults.clone();
        let mut left: f64 = self.rng.random();
        let mut hit = |probability: f64| {
            left -= probability;
            (-probability..0.0).contains(&left)
        };
        if hit(f.unreachable) {
            Some(Fault::Unreachable)
        } else if hit(f.refuse) {
            self.draw_refusal(request, topology)
        } else if hit(f.lose_reply) {
            Some(Fault::LoseReply)
        } else if hit(f.undetermined) {
            Some(Fault::Undetermined { applied: self.rng.random() })
        } else if hit(f.repeat) {
            Some(Fault::Repeat)
        } else if hit(f.move_leader) {
            topology.stores().choose(&mut self.rng).copied().map(Fault::MoveLeader)
        } else if hit(f.split) {
            request.body.keys().choose(&mut self.rng).map(|key| Fault::Split(Key::clone(key)))
        } else {
            None
        }
    }

    pub(super) fn draw_unreachable(&mut self) -> bool {
        self.faults.unreachable > 0.0 && self.rng.random_bool(self.faults.unreachable)
    }

    pub(super) fn draw_delay(&mut self) -> Duration {
        let max = self.faults.delay_max;
        if max.is_zero() { max } else { self.rng.random_range(Duration::ZERO..=max) }
    }

    pub(super) fn repeat_later(&mut self, store: StoreId, request: Request) {
        if self.repeats.len() < REPEATS_MAX {
            self.repeats.push_back((store, request));
        }
    }

    /// Requests that arrive again now: any of those that wait, in any order.
    pub(super) fn take_due(&mut self) -> Vec<(StoreId, Request)> {
        let mut due = Vec::new();
        while !self.repeats.is_empty() && self.rng.random_bool(0.3) {
            let at = self.rng.random_range(0..self.repeats.len());
            due.extend(self.repeats.remove(at));
        }
        due
    }

    fn draw_refusal(&mut self, request: &Request, topology: &Topology) -> Option<Fault> {
        let region = request.context.region;
        let store = StoreId::new(1);
        let mut errors = vec![
            RegionError::NotLeader { region, leader: None },
            RegionError::RegionNotFound { region, store },
            RegionError::ServerBusy { store, what: "injected".to_owned() },
            RegionError::StaleCommand { region },
            RegionError::NotReady { region, why: "injected".to_owned() },
        ];
        if let Some(current) = topology.region(region) {
            let leader = current.peers.choose(&mut self.rng).copied();
            errors.push(RegionError::NotLeader { region, leader });
            errors.push(RegionError::EpochNotMatch { current: Box::new(current.clone()) });
        }
        errors.choose(&mut self.rng).cloned().map(Fault::Refuse)
    }
}
