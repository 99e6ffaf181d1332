//! Idle cursors over the versions of one key, for point reads of the newest state.
//!
//! The first seek of a new cursor opens a cursor in every file, which takes a third of a point read. So a cursor is
//! kept when its read ends, and *refreshed* before the next one: it then sees everything written so far. An idle cursor
//! pins the memtables and the files that it was refreshed on. Therefore cursors that nobody has used for some hundred
//! writes are dropped, and all of them after a flush.

use parking_lot::Mutex;
use rocksdb::DBRawIterator;

/// The most idle cursors: as many as threads read at the same time on a large machine.
const IDLE_MAX: usize = 64;

/// The idle cursors of a database. The owner drops them before it closes the database.
#[derive(Default)]
pub(super) struct VersionCursors {
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    cursor: DBRawIterator<'static>,
    /// Whether it was used since the last [`VersionCursors::drop_unused`].
    is_used: bool,
}

impl VersionCursors {
    /// An idle cursor, of which the caller refreshes the state. The one that was used last.
    pub(super) fn take(&self) -> Option<DBRawIterator<'static>> {
        self.idle.lock().pop().map(|idle| idle.cursor)
    }

    /// Keeps a cursor for the next read.
    pub(super) fn keep(&self, cursor: DBRawIterator<'static>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { cursor, is_used: true });
        }
    }

    /// Drops the cursors that nobody has used since the last call.
    pub(super) fn drop_unused(&self) {
        let unused: Vec<Idle> = {
            let mut idle = self.idle.lock();
            idle.extract_if(.., |cursor| !std::mem::take(&mut cursor.is_used)).collect()
        };
        drop(unused);
    }

    /// Drops all idle cursors.
    pub(super) fn clear(&self) {
        drop(std::mem::take(&mut *self.idle.lock()));
    }
}
