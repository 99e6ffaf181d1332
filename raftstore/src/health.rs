//! Whether a store still serves.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all parts of a store. Once poisoned or stopped it stays so.
#[derive(Debug, Default)]
pub(crate) struct Health {
    poison: OnceLock<String>,
    stopping: AtomicBool,
}

impl Health {
    /// Nothing is acknowledged any more; the first reason is kept.
    pub(crate) fn poison(&self, why: &str) {
        if self.poison.set(why.to_string()).is_ok() {
            tracing::error!(reason = why, "store stops serving");
        }
    }

    pub(crate) fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// No new requests are taken.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Why no request is taken, if none is.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self.poisoned() {
            Some(why) => Some(format!("store is poisoned: {why}")),
            None => self.is_stopping().then(|| "the store stops".to_string()),
        }
    }
}
