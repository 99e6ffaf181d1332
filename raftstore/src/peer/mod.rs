//! A region's replica on this store: a pure state machine around raft-rs.
//!
//! Inputs are messages, ticks, requests and completions, each with the current time. Output is
//! [`Effects`](effects::Effects): log writes, messages, committed entries and leadership events. The peer reads its log
//! through `PeerStorage` and has no clock, channel, thread or ambient randomness.
//!
//! Life of a write:
//!
//! 1. [`Peer::propose`] checks term and epoch.
//! 2. [`Peer::effects`] appends the entry, emits it as a log write, and emits the appends to the followers at once.
//! 3. [`Peer::on_durable`] counts this replica's own acknowledgement; [`Peer::step`] counts those of the followers.
//! 4. Once committed, the entry and its reply leave with the next effects.
//! 5. [`Peer::on_applied`] records that it is applied.
//!
//! # Layers
//!
//! 1. `gate`, `lease`, `read`, `proposal`, `truncate`, `outgoing`, `coalesce`: rules and queues, without raft-rs' node
//! 2. `effects`: the output of a peer
//! 3. `replica`: the state of a peer
//! 4. `leadership`, `commit_notice`: elections, the lease, rounds of reads; how followers learn the commit index
//! 5. `start`, `step`, `retention`, `propose`: start, inputs, truncation and snapshots for followers, proposals
//! 6. `urgent`: the effects that wait for no write
//! 7. `ready`: the others

mod coalesce;
mod commit_notice;
pub(crate) mod effects;
mod gate;
mod leadership;
mod lease;
mod outgoing;
pub(crate) mod proposal;
mod propose;
pub(crate) mod read;
mod ready;
mod replica;
mod retention;
mod start;
mod step;
#[cfg(test)]
mod tests;
mod truncate;
mod urgent;

pub(crate) use replica::{Peer, PeerFault};
pub(crate) use retention::LogPressure;
pub(crate) use start::PeerStart;
