//! Which store answers at which address, as far as this node knows.
//!
//! Fed by the plan, by asking the addresses of `--join`, and by heartbeat answers; read by everything that dials. What is told
//! later wins, so a node that moved is found again.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use raftstore::StoreId;

/// The shared address book; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    addresses: Arc<RwLock<BTreeMap<StoreId, String>>>,
}

impl Members {
    /// Learns where a store answers.
    pub(crate) fn learn(&self, store: StoreId, address: &str) {
        if self.addresses.read().get(&store).is_some_and(|known| known == address) {
            return;
        }
        self.addresses.write().insert(store, address.to_string());
    }

    /// Learns of a store by hearsay: what is known already is not touched.
    pub(crate) fn learn_new(&self, store: StoreId, address: &str) {
        self.addresses.write().entry(store).or_insert_with(|| address.to_string());
    }

    /// Where a store answers.
    pub(crate) fn get(&self, store: StoreId) -> Option<String> {
        self.addresses.read().get(&store).cloned()
    }

    /// Every store, by number.
    pub(crate) fn all(&self) -> Vec<(StoreId, String)> {
        self.addresses.read().iter().map(|(store, address)| (*store, address.clone())).collect()
    }
}

impl raftstore::transport::AddressBook for Members {
    fn address(&self, store: StoreId) -> Option<String> {
        self.get(store)
    }
}
