//! The node's sessions by process id, for cancel requests and shutdown.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock;
use crate::session::interrupt::Interrupt;
use crate::session::values::SessionList;
use crate::system::SessionInfo;

/// Bits of a process id for the session's number. The bits above, except the sign, hold the node's.
const SESSION_BITS: u32 = 20;

/// Node numbers are taken modulo this.
const NODES: u64 = 1 << (31 - SESSION_BITS);

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
    /// What `pg_stat_activity` shows of it.
    info: SessionInfo,
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
        inner.sessions.insert(pid, Entry { secret, interrupt: interrupt.clone(), info: SessionInfo::default() });
        Some(Registered { registry: self.clone(), pid, secret, interrupt })
    }

    /// Cancels a session's running request, if the secret matches.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) -> bool {
        let inner = self.inner.lock();
        match inner.sessions.get(&pid) {
            Some(entry) if entry.secret == secret => {
                entry.interrupt.cancel();
                true
            }
            _ => false,
        }
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

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().sessions.len()
    }
}

impl SessionList for Registry {
    fn list(&self) -> Vec<SessionInfo> {
        let inner = self.inner.lock();
        let mut pids: Vec<i32> = inner.sessions.keys().copied().collect();
        pids.sort_unstable();
        let info = |pid: i32| {
            let entry = inner.sessions.get(&pid)?;
            Some(SessionInfo { pid, is_active: entry.interrupt.is_running(), ..entry.info.clone() })
        };
        pids.into_iter().filter_map(info).collect()
    }
}

impl Registered {
    /// Says what `pg_stat_activity` shows of the session.
    pub(crate) fn describe(&self, info: SessionInfo) {
        if let Some(entry) = self.registry.inner.lock().sessions.get_mut(&self.pid) {
            entry.info = info;
        }
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
        assert!(!registry.cancel(session.pid, session.secret.wrapping_add(1)));
        assert!(!registry.cancel(session.pid + 1, session.secret));
        assert_eq!(session.interrupt.check(), Ok(()));
        assert!(registry.cancel(session.pid, session.secret));
        assert_eq!(session.interrupt.check().unwrap_err().code.0, "57014");
    }
}
