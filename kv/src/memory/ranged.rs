//! A snapshot of one region, as strict about its range as the real one.

use engine::Cf;
use engine::store::memory::MemorySnapshot;
use engine::store::{Cursor, Reader, Result, StoreError};
use raftstore::Region;

/// Refuses reads outside the region.
pub(super) struct Ranged {
    snapshot: MemorySnapshot,
    region: Region,
}

impl Ranged {
    pub(super) fn new(snapshot: MemorySnapshot, region: Region) -> Ranged {
        Ranged { snapshot, region }
    }

    fn check(&self, inside: bool) -> Result<()> {
        if inside { Ok(()) } else { Err(StoreError::Backend(format!("read outside region {}", self.region.id))) }
    }
}

impl Reader for Ranged {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check(self.region.contains(key))?;
        self.snapshot.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor + '_>> {
        self.check(self.region.contains_range(lower, upper))?;
        self.snapshot.cursor(cf, lower, upper)
    }
}
