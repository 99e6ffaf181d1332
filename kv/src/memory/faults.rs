//! The faults of a [`super::MemoryCluster`]: injected by a test, or drawn from a seed.

use std::collections::VecDeque;
use std::time::Duration;

use raftstore::{RegionError, StoreId};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::topology::Topology;
use crate::api::Request;
use crate::key::Key;

/// The most requests that wait to be delivered a second time. Further duplicates are dropped.
const DUPLICATES_MAX: usize = 64;

/// A fault of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store is not reached. The request is not executed.
    Unreachable,
    /// The store refuses the request and does not execute it.
    Refuse(RegionError),
    /// The request is executed and its response lost.
    LoseReply,
    /// A write ends with an unknown outcome. A read loses its response.
    Undetermined {
        /// Whether the write is executed.
        applied: bool,
    },
    /// The request is executed, and once more before some later call.
    Duplicate,
    /// Leadership moves to a store before the request arrives.
    MoveLeader(StoreId),
    /// The region that holds the key is split there before the request arrives.
    Split(Key),
}

/// The probability of each fault, per call, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Seed of all draws. The same seed and order of calls give the same faults.
    pub seed: u64,
    /// Of [`Fault::Unreachable`]; also of a call to locate.
    pub unreachable: f64,
    /// Of [`Fault::Refuse`], with any region error.
    pub refuse: f64,
    /// Of [`Fault::LoseReply`].
    pub lose_reply: f64,
    /// Of [`Fault::Undetermined`]; half of these writes are executed.
    pub undetermined: f64,
    /// Of [`Fault::Duplicate`].
    pub duplicate: f64,
    /// Of [`Fault::MoveLeader`], to any store.
    pub move_leader: f64,
    /// Of [`Fault::Split`], at a key of the request.
    pub split: f64,
    /// The longest delay of a call, on tokio's clock. Drawn uniformly from zero up.
    pub delay_max: Duration,
}

impl Faults {
    /// No faults and no delays.
    pub const fn none() -> Faults {
        Faults {
            seed: 0,
            unreachable: 0.0,
            refuse: 0.0,
            lose_reply: 0.0,
            undetermined: 0.0,
            duplicate: 0.0,
            move_leader: 0.0,
            split: 0.0,
            delay_max: Duration::ZERO,
        }
    }

    /// A mix of all faults at low probabilities, without [`Fault::Undetermined`] and without delays.
    pub const fn mixed(seed: u64) -> Faults {
        Faults {
            seed,
            unreachable: 0.02,
            refuse: 0.05,
            lose_reply: 0.03,
            duplicate: 0.05,
            move_leader: 0.03,
            split: 0.01,
            ..Faults::none()
        }
    }
}

/// Decides the fault of each call.
pub(super) struct FaultPlan {
    faults: Faults,
    rng: StdRng,
    /// Faults of the next calls. They come before any drawn fault.
    injected: VecDeque<Fault>,
    /// Requests that will be delivered a second time.
    duplicates: VecDeque<(StoreId, Request)>,
}

impl FaultPlan {
    pub(super) fn new(faults: Faults) -> FaultPlan {
        let rng = StdRng::seed_from_u64(faults.seed);
        FaultPlan { faults, rng, injected: VecDeque::new(), duplicates: VecDeque::new() }
    }

    pub(super) fn inject(&mut self, faults: impl IntoIterator<Item = Fault>) {
        self.injected.extend(faults);
    }

    /// Whether no call is delayed or meets a fault.
    pub(super) fn is_empty(&self) -> bool {
        self.injected.is_empty() && self.duplicates.is_empty() && Faults { seed: 0, ..self.faults } == Faults::none()
    }

    /// The fault of this call, if any.
    pub(super) fn draw(&mut self, request: &Request, topology: &Topology) -> Option<Fault> {
        if let Some(fault) = self.injected.pop_front() {
            return Some(fault);
        }
        let f = self.faults;
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
        } else if hit(f.duplicate) {
            Some(Fault::Duplicate)
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

    pub(super) fn deliver_again_later(&mut self, store: StoreId, request: Request) {
        if self.duplicates.len() < DUPLICATES_MAX {
            self.duplicates.push_back((store, request));
        }
    }

    /// Duplicates to deliver now: some of those that wait, in random order.
    pub(super) fn take_due_duplicates(&mut self) -> Vec<(StoreId, Request)> {
        let mut due = Vec::new();
        while !self.duplicates.is_empty() && self.rng.random_bool(0.3) {
            let at = self.rng.random_range(0..self.duplicates.len());
            due.extend(self.duplicates.remove(at));
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
