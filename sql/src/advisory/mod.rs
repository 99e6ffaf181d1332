//! Advisory locks: `pg_advisory_lock` and its kin, as records in the system region.
//!
//! # What holds a lock
//!
//! The *record* of a lock lists the sessions that hold it, each with its node and the term of the node's *lease on its
//! locks* ([`record`]). Every change of a record is an ordinary transaction, so records survive each change of leader,
//! and the first of two takers wins. A session takes a lock as follows ([`session`]):
//!
//! 1. It locks the key of the lock's *queue*, as one locks a row, under a name of its own ([`txn::SessionLocks`]), and
//!    keeps that as long as it has the lock. So others wait in the order in which they came, hear at once when it is
//!    their turn, and are known to the detector of deadlocks. That lock is in the memory of the leader and can be lost.
//!    It protects nothing.
//! 2. It reads the record and adds itself, in one transaction. If the record names another session that lives and is in
//!    the way, the leader has lost its queue. Then the session asks every 100 ms, at the head of the new one.
//!
//! To give a lock up it changes the record, then leaves the queue. A session that already has a lock, and wants it
//! alone, tries the record first.
//!
//! # When a node dies, or sleeps
//!
//! The lease of a node is a record: a term, and a timestamp E of the oracle, its end ([`node`]). A node with locks
//! renews it every 2 s for 10 s. A renewal commits at the E before it or below. Whoever reads the lease at a snapshot
//! s > E, or finds another term or none, knows that no lock of that term is held: the term cannot be renewed any more.
//! So a lock of a dead node is free after 10 s at most, and the time that the system region takes to have a leader.
//!
//! A node that was paused may not know. Two rules keep its sessions from acting on a lock that is gone:
//!
//! - *Every commit of a session with locks carries E as its greatest commit_ts*, beside the end of the lease on the
//!   catalog. The next holder reads the lease at s > E and takes the lock at a timestamp above s. So everything that
//!   the last holder has committed lies below.
//! - *A session whose term is over ends*, with 57P01: at once when its node notices, else at its next statement, which
//!   checks the term before it runs and again with the snapshot that it has read. So does a statement that has just
//!   taken a lock, before it is answered.
//!
//! What a client does elsewhere, in the belief that it still has the lock, no database can hold up.
//!
//! # Bounds
//!
//! Locks of a session, locks of a node, and sessions that share a lock are bounded ([`AdvisoryConfig`]): 53200. Records
//! of dead nodes that nobody asks for are removed by the nodes that live.
//!
//! # Layers
//!
//! 1. `held`, `record`: pure: the locks of a session; the records
//! 2. `node`: the lease of a node, changes of records
//! 3. `shared`: the locks of a session as its background work sees them
//! 4. `session`: what the functions do

mod held;
mod node;
mod record;
mod session;
mod shared;
#[cfg(test)]
mod tests;

pub use node::{AdvisoryConfig, AdvisoryHolder};
pub(crate) use node::{NodeLocks, lost};
pub use session::AdvisorySession;
pub(crate) use session::{Answer, LockCall, Patience};
