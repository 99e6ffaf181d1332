//! The errors of RocksDB, as the errors of the store.

use crate::store::StoreError;

/// The error of a failed open. RocksDB reports damage as an invalid argument; unlike other errors, a retry cannot cure
/// it.
pub(super) fn on_open(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        rocksdb::ErrorKind::InvalidArgument => StoreError::Corrupt(error.into_string()),
        _ => on_read(error),
    }
}

/// The error of any other failed call.
pub(super) fn on_read(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => StoreError::Corrupt(error.into_string()),
        _ => StoreError::Backend(error.into_string()),
    }
}

/// The error of a failed call that reads from memory alone.
pub(super) fn on_cached(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        rocksdb::ErrorKind::Incomplete => StoreError::NotCached,
        _ => on_read(error),
    }
}
