//! Reading: log files, the block cache, commit groups, lookup of entries; and [`LogState`], which all later layers
//! share.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `cache`, `log_file`: blocks in memory, files on disk
//! 2. `group_reader`, `state`: commit groups of a file, and the shared state
//! 3. `lookup`, `scan`: entries and keys, and whole files
//! 4. `unsealed`: the newest two files

mod cache;
mod group_reader;
mod log_file;
mod lookup;
mod scan;
mod state;
mod unsealed;

pub(crate) use self::cache::BlockCache;
pub(crate) use self::group_reader::{CommitGroup, GroupReader, Head, HeadRef, Verified};
pub(crate) use self::log_file::{
    CreateError, FileTable, LogFile, Seal, UNUSED, changed_in, read_header, rename, temporary_number,
};
pub(crate) use self::lookup::{Lookup, entries_of};
pub(crate) use self::scan::{Scan, scan};
pub(crate) use self::state::{LogState, RecoveredState, WriteError, is_exhausted};
pub use self::unsealed::CutFile;
pub(crate) use self::unsealed::Succession;
