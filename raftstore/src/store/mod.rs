//! The store loop: one thread steps all peers of a store.
//!
//! A turn has three stages:
//!
//! 1. *Intake* takes completions and messages from their queues. `intake` lists what it refuses.
//! 2. *Decide* reads the clock, then feeds the peers: completions first, then messages, then a tick if one is due.
//! 3. *Execute* carries out the effects of the peers. It publishes the read state, submits *one* log batch for all
//!    peers (`log_queue`), submits truncations apart from it (`upkeep`), sends messages, and queues committed entries
//!    for apply. A peer for whose writes or committed entries there is no room still does what is urgent: heartbeats,
//!    their answers, rounds of reads (`peer::urgent`).
//!
//! Three orderings matter:
//!
//! - The clock is read *after* the intake. A promise to a leader counts from that reading, so the reading must not
//!   precede the moment the leader sent its message. So no message is evaluated with a time before its arrival. A
//!   late execution is safe: messages then leave later than their recorded send time.
//! - A suspect lease is published before the message that made it suspect is sent.
//! - A message that depends on a log write is released only by the completion of that write.
//!
//! A turn never blocks. A simulator can run the stages one by one and let time pass between them.
//!
//! # Layers
//!
//! 1. `log_queue`, `log_space`, `scrub`: log batches in flight, the purge of log files, the pace of scrubbing
//! 2. `state`: the state of the loop
//! 3. `stop`, `upkeep`: the end of a store, truncation and purge
//! 4. `execute`, `intake`: effects, completions and messages
//! 5. `turn`: the stages of a turn

mod execute;
mod intake;
mod log_queue;
mod log_space;
mod scrub;
mod state;
mod stop;
mod turn;
mod upkeep;

pub(crate) use state::{LoopParts, StoreLoop};
