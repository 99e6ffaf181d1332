//! The values of sequences: how a node draws them from the store, and what a session has drawn.
//!
//! The state of a sequence is a record ([`state`]), outside of every user's transaction: a value that was given is
//! never given again, whatever becomes of the transaction. A node draws blocks of values in transactions of their own
//! ([`node`]). The first block after a pause holds as many as CACHE says; one that is used up within a second is
//! followed by one of twice the size. So a sequence that is seldom used has no gaps, and a busy one costs no message
//! per value. What is left of a block is lost when the node stops.
//!
//! A draw whose outcome is not known is repeated: the values of the first one are lost or were never taken.
//!
//! `setval` writes the record, and the node that runs it drops its block. ALTER SEQUENCE changes the rules in the
//! catalog; a block belongs to the rules under which it was drawn. RESTART begins a new *epoch* in the catalog, with a
//! random number and a record of its own. Those who see the RESTART draw from the new record: at first its transaction
//! alone, after the commit everybody. A rollback leaves the record of the epoch before as it is. A node that does not
//! know of the commit yet draws from the epoch before, as if the RESTART were still to come: it is answered when no
//! such node is left. The records of epochs that are over stay. When the sequence is dropped, the reclaimer removes all
//! of them ([`crate::catalog::reclaim`]).
//!
//! # Layers
//!
//! 1. `state`: rules, records and blocks, pure
//! 2. `node`: the blocks of a node
//! 3. `session`: what a session has drawn

mod node;
mod session;
mod state;

pub(crate) use node::NodeSequences;
pub(crate) use session::SessionSequences;
