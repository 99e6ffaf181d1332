//! Which snapshot a statement reads, and who serves it: settings, hints, AS OF SYSTEM TIME, the session's token, and
//! what was read last. Pure: [`super::snapshot`] begins the transactions.
//!
//! # Layers
//!
//! 1. `interval`, `last_read`, `token`: lengths of time, what SHOW prints of the last read, session tokens
//! 2. `moment`: AS OF SYSTEM TIME
//! 3. `policy`: how reads choose snapshots and replicas
//! 4. `hints`: hints in comments

mod hints;
mod interval;
mod last_read;
mod moment;
mod policy;
mod token;

pub(crate) use hints::Hints;
pub(crate) use last_read::LastRead;
pub(crate) use moment::{Clause, Moment, Resolved};
pub(crate) use policy::{ReadSettings, Staleness, Wanted, hedge, replica, show_hedge};
pub(crate) use token::{parse as parse_token, show as show_token};
