//! A batch from the queue to its acknowledgement.
//!
//! [`Pipeline`] takes jobs from a bounded queue. The [`writer`] validates them, builds a commit group and appends it to
//! the [`active`] file, rotating to the next file when it is full ([`rotation`]). The [`publish`]er then syncs the
//! group, applies it to the index and completes its batches ([`completion`], [`ticket`]). Files are sealed and prepared
//! in the background ([`file_work`], [`spares`]).
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `batch`, `next_file`, `purge_work`, `sequence`, `spares`, `ticket`, `workers`: the inputs, and the resources of
//!    the pipeline
//! 2. `completion`, `validate`: outcomes, and rejected batches
//! 3. `draft`, `queue`: commit groups and jobs
//! 4. `publish`: the second stage
//! 5. `file_work`: the files before and after the active one
//! 6. `active`: the active file
//! 7. `rotation`: the change of the active file to the next one
//! 8. `writer`: the first stage
//! 9. `pipeline`: both stages

mod active;
mod batch;
mod completion;
mod draft;
mod file_work;
mod next_file;
mod pipeline;
mod publish;
mod purge_work;
mod queue;
mod rotation;
mod sequence;
mod spares;
#[cfg(test)]
mod tests;
mod ticket;
mod validate;
mod workers;
mod writer;

pub(crate) use self::active::ActiveFile;
pub use self::batch::LogBatch;
pub use self::completion::OnDone;
pub(crate) use self::completion::is_in_callback;
pub(crate) use self::file_work::FullFile;
pub(crate) use self::pipeline::Pipeline;
pub(crate) use self::purge_work::{PurgeWork, Rewrite};
pub(crate) use self::queue::Work;
pub(crate) use self::sequence::{Link, SequenceState};
pub(crate) use self::spares::{SpareFiles, is_reusable, is_unfinished, parse_spare_name};
pub use self::ticket::Ticket;
