//! The address book: the addresses of all stores, as far as this node knows.
//!
//! Its sources are the plan, the nodes of `--join` and heartbeat answers. Every component that dials a store reads it.
//! The latest address wins, so a node that moved is found again.

use std::collections::BTreeMap;
use std::sync::Arc;

use raftstore::StoreId;
use tokio::sync::watch;

/// The shared address book; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    addresses: Arc<watch::Sender<BTreeMap<StoreId, String>>>,
}

impl Members {
    /// Records the address of a store.
    pub(crate) fn learn(&self, store: StoreId, address: &str) {
        self.addresses.send_if_modified(|addresses| {
            let changes = addresses.get(&store).is_none_or(|known| known != address);
            if changes {
                addresses.insert(store, address.to_string());
            }
            changes
        });
    }

    /// Records the address of a store from an indirect source: does not replace a known address.
    pub(crate) fn learn_if_unknown(&self, store: StoreId, address: &str) {
        self.addresses.send_if_modified(|addresses| {
            let changes = !addresses.contains_key(&store);
            if changes {
                addresses.insert(store, address.to_string());
            }
            changes
        });
    }

    /// The address of a store.
    pub(crate) fn get(&self, store: StoreId) -> Option<String> {
        self.addresses.borrow().get(&store).cloned()
    }

    /// All stores, by id.
    pub(crate) fn all(&self) -> Vec<(StoreId, String)> {
        to_list(&self.addresses.borrow())
    }

    /// Calls `follower` with all stores, now and after each change. Never ends.
    pub(crate) async fn follow(&self, mut follower: impl FnMut(Vec<(StoreId, String)>)) {
        let mut changes = self.addresses.subscribe();
        changes.mark_changed();
        // Never fails: `self` owns the sender.
        while changes.changed().await.is_ok() {
            let all = to_list(&changes.borrow_and_update());
            follower(all);
        }
    }
}

fn to_list(addresses: &BTreeMap<StoreId, String>) -> Vec<(StoreId, String)> {
    addresses.iter().map(|(store, address)| (*store, address.clone())).collect()
}

impl raftstore::transport::AddressBook for Members {
    fn address(&self, store: StoreId) -> Option<String> {
        self.get(store)
    }
}
