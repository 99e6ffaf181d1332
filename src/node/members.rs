//! The address book: the addresses of all stores and where they are, as far as this node knows.
//!
//! Its sources are the plan, the nodes of `--join` and heartbeat answers. Every component that dials a store reads it.
//! The latest address wins, so a node that moved is found again. Only heartbeat answers name localities.

use std::collections::BTreeMap;
use std::sync::Arc;

use raftstore::StoreId;
use tokio::sync::watch;

/// The shared address book; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    members: Arc<watch::Sender<BTreeMap<StoreId, Member>>>,
}

/// What is known of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    /// `host:port`.
    pub(crate) address: String,
    /// The locality of its node, as configured there. Empty if it is not known.
    pub(crate) locality: String,
}

impl Members {
    /// Records the address of a store.
    pub(crate) fn learn(&self, store: StoreId, address: &str) {
        self.update(store, |member| address.clone_into(&mut member.address));
    }

    /// Records the address and the locality of a store.
    pub(crate) fn learn_all(&self, store: StoreId, address: &str, locality: &str) {
        self.update(store, |member| {
            *member = Member { address: address.to_string(), locality: locality.to_string() };
        });
    }

    fn update(&self, store: StoreId, update: impl FnOnce(&mut Member)) {
        self.members.send_if_modified(|members| {
            let before = members.get(&store);
            let mut after = before.cloned().unwrap_or_default();
            update(&mut after);
            let changes = before != Some(&after);
            if changes {
                members.insert(store, after);
            }
            changes
        });
    }

    /// Records the address of a store from an indirect source: does not replace a known address.
    pub(crate) fn learn_if_unknown(&self, store: StoreId, address: &str) {
        self.members.send_if_modified(|members| {
            let changes = !members.contains_key(&store);
            if changes {
                members.insert(store, Member { address: address.to_string(), ..Member::default() });
            }
            changes
        });
    }

    /// The address of a store.
    pub(crate) fn get(&self, store: StoreId) -> Option<String> {
        self.members.borrow().get(&store).map(|member| member.address.clone())
    }

    /// All stores, by id.
    pub(crate) fn all(&self) -> Vec<(StoreId, String)> {
        self.members.borrow().iter().map(|(store, member)| (*store, member.address.clone())).collect()
    }

    /// Calls `follower` with all stores, now and after each change. Never ends.
    pub(crate) async fn follow(&self, mut follower: impl FnMut(Vec<(StoreId, Member)>)) {
        let mut changes = self.members.subscribe();
        changes.mark_changed();
        // Never fails: `self` owns the sender.
        while changes.changed().await.is_ok() {
            let all = changes.borrow_and_update().iter().map(|(store, member)| (*store, member.clone())).collect();
            follower(all);
        }
    }
}

impl raftstore::transport::AddressBook for Members {
    fn address(&self, store: StoreId) -> Option<String> {
        self.get(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_from_elsewhere_keeps_the_locality() {
        let members = Members::default();
        let member = |address: &str, locality: &str| {
            Some(Member { address: address.to_string(), locality: locality.to_string() })
        };
        let known = |store| members.members.borrow().get(&StoreId::new(store)).cloned();
        members.learn(StoreId::new(1), "a:1");
        assert_eq!(known(1), member("a:1", ""));
        members.learn_all(StoreId::new(1), "a:1", "region=eu");
        members.learn(StoreId::new(1), "a:2");
        members.learn_if_unknown(StoreId::new(1), "a:3");
        assert_eq!(known(1), member("a:2", "region=eu"));
        members.learn_if_unknown(StoreId::new(2), "b:1");
        assert_eq!(members.all(), [(StoreId::new(1), "a:2".to_string()), (StoreId::new(2), "b:1".to_string())]);
    }
}
