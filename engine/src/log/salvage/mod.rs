//! Reads a damaged log as far as it can be read, and changes nothing on the disk.
//!
//! 1. [`survey`]: which files the log consists of, as far as they tell.
//! 2. [`replay`]: each file is believed by its index. If that is damaged the file's commit groups are read ([`walk`]),
//!    and the walk goes on behind damage. What is missing is a [`Loss`].
//! 3. `Doubts` (in `index/`): what a loss leaves of each group. Entries whose location is known and whose block is
//!    damaged are no loss: reading them names the damage, as it does in any log.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `walk`: one file
//! 2. `survey`: all files
//! 3. `replay`: what they say
//!
//! # What holds
//!
//! What is returned is what the log would return if it were sound, or a typed error: never another entry, and never one
//! that was replaced since. (`LogOptions::keep_doubtful` gives up the last half of that, to show more.)

mod replay;
mod survey;
mod walk;

pub use self::replay::Loss;
pub(crate) use self::replay::Replay;
pub(crate) use self::survey::{Found, Survey, before_first};
pub(crate) use self::walk::{Gap, Position, Step, Walk};
