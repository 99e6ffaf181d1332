//! The read pool: runs reads that take long, or that must read a file, on threads of its own, so that they do not
//! occupy the async runtime's workers.
//!
//! A job runs in slices of about a millisecond. What its statement has cost so far decides its level, so a scan falls
//! while it runs, and each level has its share of the time, so it never starves. Two groups of threads serve the
//! levels: those of short reads run as any other thread, those of long scans at a lower priority of the system. So a
//! scan takes what the sessions, the writes and the Raft threads leave. Where they leave nothing, the threads of long
//! scans rest between slices, because each page of theirs makes work for sessions and the network. The number of jobs
//! and the bytes of their results are bounded; where they do not fit, the lowest level is shed first.
//!
//! # Layers
//!
//! 1. `cost`: levels, and how a slice is cut (pure)
//! 2. `pace`: how long a thread rests after it (pure)
//! 3. `levels`, `metrics`: which job runs next, and which one is shed (pure); what is counted
//! 4. `threads`: the threads, and the jobs in slices
//! 5. `pool`: the pool as its callers see it

mod cost;
mod levels;
mod metrics;
mod pace;
mod pool;
mod threads;

pub use cost::{Cost, Level};
pub use metrics::PoolMetrics;
pub use pool::{Demand, PoolConfig, PoolError, ReadPool, Workers};
