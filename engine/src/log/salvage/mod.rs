//! Reads the readable part of a damaged log, and changes nothing on the disk.
//!
//! 1. [`survey`] determines the files that the log consists of, as far as their headers are readable.
//! 2. [`replay`] applies the index of each file. If an index is damaged, the file's commit groups are read instead
//!    ([`walk`]), also those after damage. Each unreadable part is a [`Loss`].
//! 3. `Doubts` (in `index/`) tracks which records of each group are certain after a loss. An entry in a damaged block is
//!    no loss: its location is known, and reading it returns the damage, as in any log.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `walk`: one file
//! 2. `survey`: all files
//! 3. `replay`: their records
//!
//! # Invariant
//!
//! A read returns what the undamaged log would return, or a typed error. It never returns another entry, nor one that
//! was replaced since. (`LogOptions::keep_doubtful` permits replaced entries, to return more.)

mod replay;
mod survey;
mod walk;

pub use self::replay::Loss;
pub(crate) use self::replay::Replay;
pub(crate) use self::survey::{ExistingFile, Survey, before_first};
pub(crate) use self::walk::{ChainPosition, Gap, GroupWalk, Step};
