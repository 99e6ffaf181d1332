//! The node's sessions by process id, for cancel requests and shutdown.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock;
use crate::session::activity::Activity;
use crate::session::interrupt::Interrupt;
use crate::sessions::{NODES, SESSION_BITS, SessionInfo, Signal};

/// The registry of sessions.
#[derive(Debug)]
pub(crate) struct Registry {
    node: i32,
    inner: Mutex<Sessions>,
}

#[derive(Debug)]
struct Sessions {
    sessions: HashMap<i32, Entry>,
    next: i32,
    draining: bool,
}

#[derive(Debug)]
struct Entry {
    secret: i32,
    interrupt: Arc<Interrupt>,
    /// What it does.
    activity: Arc<Activity>,
}

/// A session's registration. Dropping it unregisters the session.
#[derive(Debug)]
pub(crate) struct Registered {
    registry: Arc<Registry>,
    /// The process id for BackendKeyData.
    pub(crate) pid: i32,
    /// The secret that a CancelRequest must contain.
    pub(crate) secret: i32,
    /// The session's interrupt.
    pub(crate) interrupt: Arc<Interrupt>,
    /// What the session does, as others see it.
    pub(crate) activity: Arc<Activity>,
}

impl Registry {
    /// An empty registry of a node.
    pub(crate) fn new(node_id: u64) -> Arc<Registry> {
        let node = i32::try_from(node_id % NODES).unwrap_or(0) << SESSION_BITS;
        let inner = Sessions { sessions: HashMap::new(), next: 0, draining: false };
        Arc::new(Registry { node, inner: Mutex::new(inner) })
    }

    /// Registers a session, unless `limit` are registered. At most 2^19 can be.
    pub(crate) fn register(self: &Arc<Self>, limit: usize) -> Option<Registered> {
        let mut inner = self.inner.lock();
        let mask = (1 << SESSION_BITS) - 1;
        if inner.sessions.len() >= limit.min(1 << (SESSION_BITS - 1)) {
            return None;
        }
        let pid = loop {
            // Number 0 of node 0 would be process id 0, which clients read as "none".
            inner.next = (inner.next + 1) & mask;
            let pid = self.node | inner.next;
            if inner.next != 0 && !inner.sessions.contains_key(&pid) {
                break pid;
            }
        };
        let secret = clock::secret();
        let interrupt = Arc::new(Interrupt::default());
        if inner.draining {
            interrupt.drain();
        }
        let activity = Arc::new(Activity::default());
        inner.sessions.insert(pid, Entry { secret, interrupt: interrupt.clone(), activity: activity.clone() });
        Some(Registered { registry: self.clone(), pid, secret, interrupt, activity })
    }

    /// Whether a session of this process id is one of this node, if there is one.
    pub(crate) fn is_own(&self, pid: i32) -> bool {
        pid >> SESSION_BITS == self.node >> SESSION_BITS
    }

    /// Signals a session. Returns whether there is one, and the secret is right.
    pub(crate) fn signal(&self, pid: i32, signal: Signal) -> bool {
        let inner = self.inner.lock();
        let Some(entry) = inner.sessions.get(&pid) else { return false };
        match signal {
            Signal::Probe => {}
            Signal::Cancel => entry.interrupt.cancel(),
            Signal::CancelWithSecret(secret) if secret == entry.secret => entry.interrupt.cancel(),
            Signal::CancelWithSecret(_) => return false,
            Signal::Terminate => entry.interrupt.kill(),
        }
        true
    }

    /// Tells all sessions, future ones too, to end when idle.
    pub(crate) fn drain(&self) {
        let mut inner = self.inner.lock();
        inner.draining = true;
        inner.sessions.values().for_each(|entry| entry.interrupt.drain());
    }

    /// Tells all sessions to end now.
    pub(crate) fn kill(&self) {
        self.inner.lock().sessions.values().for_each(|entry| entry.interrupt.kill());
    }

    /// The sessions that have started, by their process ids.
    pub(crate) fn list(&self) -> Vec<SessionInfo> {
        let inner = self.inner.lock();
        let mut list: Vec<SessionInfo> = inner.sessions.values().map(|entry| entry.activity.info()).collect();
        drop(inner);
        list.retain(|session| session.pid != 0);
        list.sort_unstable_by_key(|session| session.pid);
        list
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().sessions.len()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.inner.lock().sessions.remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_ids_contain_the_node_and_are_unique() {
        let registry = Registry::new(2050);
        let first = registry.register(10).unwrap();
        let second = registry.register(10).unwrap();
        assert_eq!((first.pid >> SESSION_BITS, second.pid >> SESSION_BITS), (2, 2));
        assert_ne!(first.pid, second.pid);
        assert!(registry.register(2).is_none(), "the limit");
        registry.inner.lock().next = (first.pid - 1) & ((1 << SESSION_BITS) - 1);
        let third = registry.register(10).unwrap();
        assert!(third.pid != first.pid && third.pid != second.pid);
        drop((first, second, third));
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn cancel_needs_the_secret() {
        let registry = Registry::new(1);
        let session = registry.register(1).unwrap();
        session.interrupt.begin();
        assert!(!registry.signal(session.pid, Signal::CancelWithSecret(session.secret.wrapping_add(1))));
        assert!(!registry.signal(session.pid + 1, Signal::CancelWithSecret(session.secret)));
        assert_eq!(session.interrupt.check(), Ok(()));
        assert!(registry.signal(session.pid, Signal::CancelWithSecret(session.secret)));
        assert_eq!(session.interrupt.check().unwrap_err().code.0, "57014");
    }

    #[test]
    fn signals_of_operators_need_no_secret() {
        let registry = Registry::new(1);
        let session = registry.register(1).unwrap();
        assert!(registry.is_own(session.pid) && !registry.is_own(session.pid | (1 << (SESSION_BITS + 1))));
        session.interrupt.begin();
        assert!(registry.signal(session.pid, Signal::Probe) && !registry.signal(session.pid + 1, Signal::Probe));
        assert_eq!(session.interrupt.check(), Ok(()));
        assert!(registry.signal(session.pid, Signal::Cancel));
        assert_eq!(session.interrupt.check().unwrap_err().code.0, "57014");
        assert!(registry.signal(session.pid, Signal::Terminate));
        assert_eq!(session.interrupt.check().unwrap_err().code.0, "57P01");
    }

    #[test]
    fn sessions_are_listed_once_they_have_started() {
        let registry = Registry::new(1);
        let [first, second] = [registry.register(2).unwrap(), registry.register(2).unwrap()];
        second.activity.open(SessionInfo { pid: second.pid, ..SessionInfo::default() });
        assert_eq!(registry.list().iter().map(|session| session.pid).collect::<Vec<_>>(), [second.pid]);
        drop((first, second));
        assert_eq!(registry.list(), []);
    }
}
