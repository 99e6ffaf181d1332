//! The way of a batch from the queue to its acknowledgement.
//!
//! [`Pipeline`] takes jobs from a bounded queue. The [`writer`] validates them, builds a commit group and appends it to
//! the [`active`] file, rotating to the next file when it is full ([`rotation`], [`spares`]). The [`publish`]er then
//! syncs the group, applies it to the index and completes its batches ([`completion`], [`ticket`]).

mod active;
mod batch;
mod completion;
mod context;
mod draft;
mod pipeline;
mod publish;
mod purge_work;
mod queue;
mod rotation;
mod sequence;
mod spares;
mod ticket;
mod validate;
mod workers;
mod writer;

pub(crate) use self::active::ActiveFile;
pub use self::batch::LogBatch;
pub use self::completion::OnDone;
pub(crate) use self::completion::is_in_callback;
pub(crate) use self::pipeline::Pipeline;
pub(crate) use self::purge_work::{PurgeEffect, PurgeWork, Rewrite, Undone, are_absent};
pub(crate) use self::queue::Work;
pub(crate) use self::sequence::{Link, SequenceState};
pub(crate) use self::spares::{SpareFiles, is_reusable, is_unfinished, parse_spare_name};
pub use self::ticket::Ticket;
