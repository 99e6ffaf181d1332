//! Whether a store still serves requests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all parts of a store. Poisoned and stopping are final.
#[derive(Debug, Default)]
pub(crate) struct Health {
    poison: OnceLock<String>,
    stopping: AtomicBool,
}

impl Health {
    /// Poisons the store: nothing is acknowledged any more. The first reason is kept.
    pub(crate) fn poison(&self, why: &str) {
        if self.poison.set(why.to_string()).is_ok() {
            tracing::error!(reason = why, "store stops serving");
        }
    }

    pub(crate) fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Starts refusing new requests.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Why new requests are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self.poisoned() {
            Some(why) => Some(format!("store is poisoned: {why}")),
            None => self.is_stopping().then(|| "the store stops".to_string()),
        }
    }
}
