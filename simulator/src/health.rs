//! The health of the stores: what keeps one from serving, and what may take a leadership.

use crate::node::Node;
use crate::world::{Load, World};

impl<L: Load> World<L> {
    /// Whether the store takes part, but slowly.
    pub fn is_slow(&self, node: &Node) -> bool {
        let itself = node.slow_turns > 0 || node.slow_apply > 0 || node.hold.is_some();
        itself || self.network.is_slow(node.id, self.now)
    }

    /// Whether nothing but the speed of its parts keeps the store from serving, and its syncs take less than the time
    /// after which it hands over.
    pub fn is_healthy(&self, node: &Node) -> bool {
        let quick = node.slowness == 1 && node.slow_sync <= self.longest_hiccup() && node.stuck_until <= self.now;
        quick && node.is_up() && !node.full && !node.poisoned && node.power.is_none()
    }

    /// Whether every store is healthy and runs its turns in one go. Then nothing but a slow apply, slow syncs and slow
    /// links may disturb leaderships.
    pub fn is_undisturbed(&self) -> bool {
        self.nodes.values().all(|node| self.is_healthy(node) && node.slow_turns == 0 && node.hold.is_none())
    }

    /// The longest sync that takes no leadership, in nanoseconds. A store hands over after two election timeouts
    /// (`log_stall` in `options.rs`).
    pub(crate) fn longest_hiccup(&self) -> u64 {
        self.options.config.election_timeout().as_nanos() as u64 * 3 / 2
    }
}
