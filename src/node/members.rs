//! Which store answers at which address, as far as this node knows.
//!
//! Fed by the plan, by asking the addresses of `--join`, and by heartbeat answers; read by everything that dials. What is told
//! later wins, so a node that moved is found again.

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
    /// Learns where a store answers.
    pub(crate) fn learn(&self, store: StoreId, address: &str) {
        self.addresses.send_if_modified(|addresses| {
            let changes = addresses.get(&store).is_none_or(|known| known != address);
            if changes {
                addresses.insert(store, address.to_string());
            }
            changes
        });
    }

    /// Learns of a store by hearsay: what is known already is not touched.
    pub(crate) fn learn_new(&self, store: StoreId, address: &str) {
        self.addresses.send_if_modified(|addresses| {
            let changes = !addresses.contains_key(&store);
            if changes {
                addresses.insert(store, address.to_string());
            }
            changes
        });
    }

    /// Where a store answers.
    pub(crate) fn get(&self, store: StoreId) -> Option<String> {
        self.addresses.borrow().get(&store).cloned()
    }

    /// Every store, by number.
    pub(crate) fn all(&self) -> Vec<(StoreId, String)> {
        listed(&self.addresses.borrow())
    }

    /// Tells `follower` of every store, now and whenever something changes, for ever.
    pub(crate) async fn follow(&self, mut follower: impl FnMut(Vec<(StoreId, String)>)) {
        let mut changes = self.addresses.subscribe();
        changes.mark_changed();
        // Ends never: `self` keeps the sender.
        while changes.changed().await.is_ok() {
            let all = listed(&changes.borrow_and_update());
            follower(all);
        }
    }
}

fn listed(addresses: &BTreeMap<StoreId, String>) -> Vec<(StoreId, String)> {
    addresses.iter().map(|(store, address)| (*store, address.clone())).collect()
}

impl raftstore::transport::AddressBook for Members {
    fn address(&self, store: StoreId) -> Option<String> {
        self.get(store)
    }
}
