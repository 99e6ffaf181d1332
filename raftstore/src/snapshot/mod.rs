//! Snapshot files: the data of a region at one applied index, in a file of checksummed blocks.
//!
//! [`SnapshotFiles::build`] writes a file from a store snapshot. [`SnapshotFiles::read`] and [`SnapshotFiles::receive`]
//! stream it to another store, where `Store::replace_range` installs its [`SnapshotFiles::rows`].
//!
//! # Layers
//!
//! 1. `format`: the name and the bytes of a file
//! 2. `reader`: reads a file and verifies it
//! 3. `files`: the directory of files

mod files;
mod format;
mod reader;
#[cfg(test)]
pub(crate) mod tests;

pub use files::{Rows, SnapshotFiles, SnapshotWriter};
pub use format::SnapshotKey;
pub use reader::Row;
