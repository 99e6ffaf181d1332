//! A disk under a page cache: readers see damage on it only after the pages are dropped, and some of it cannot be read
//! at all.

use std::collections::BTreeMap;
use std::io;

use engine::disk::DiskFile;
use parking_lot::Mutex;

use crate::hooked_disk::Hooks;

#[derive(Default)]
pub(crate) struct Wear {
    /// Bytes that differ between the disk and the page cache.
    pub(crate) rot: Vec<(String, u64)>,
    /// Bytes that the disk fails to read.
    pub(crate) bad: Vec<(String, u64)>,
    /// The error number with which every open fails.
    pub(crate) refuses: Option<i32>,
    /// For each file, byte by byte, whether the page cache has dropped it.
    dropped: BTreeMap<String, Vec<bool>>,
    /// Reads of which the page cache held a part: file, offset and length.
    pub(crate) stale: Vec<(String, u64, usize)>,
    /// Bytes read of each file.
    pub(crate) read: BTreeMap<String, u64>,
}

impl Wear {
    /// Resets the counters of reads.
    pub(crate) fn reset_reads(&mut self) {
        self.stale.clear();
        self.read.clear();
    }

    fn is_dropped(&self, name: &str, offset: u64) -> bool {
        self.dropped.get(name).and_then(|bytes| bytes.get(offset as usize)).copied().unwrap_or(false)
    }
}

impl Hooks for Mutex<Wear> {
    fn open(&self, _name: &str) -> io::Result<()> {
        self.lock().refuses.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)))
    }

    fn read(&self, file: &dyn DiskFile, name: &str, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        let mut wear = self.lock();
        if wear.bad.iter().any(|(bad, at)| bad == name && (offset..end).contains(at)) {
            return Err(io::Error::other("bad sector"));
        }
        file.read_at(buf, offset)?;
        *wear.read.entry(name.to_owned()).or_default() += buf.len() as u64;
        if (offset..end).any(|at| !wear.is_dropped(name, at)) {
            wear.stale.push((name.to_owned(), offset, buf.len()));
        }
        let rotten = wear.rot.iter().filter(|(rotten, at)| rotten == name && (offset..end).contains(at));
        for (_, at) in rotten.filter(|(_, at)| wear.is_dropped(name, *at)) {
            buf[(at - offset) as usize] ^= 4;
        }
        Ok(())
    }

    fn drop_cached(&self, file: &dyn DiskFile, name: &str, offset: u64, len: u64) {
        let end = file.len().unwrap_or(0).min(offset.saturating_add(len)) as usize;
        let mut wear = self.lock();
        let bytes = wear.dropped.entry(name.to_owned()).or_default();
        bytes.resize(bytes.len().max(end), false);
        if let Some(bytes) = bytes.get_mut(offset as usize..end) {
            bytes.fill(true);
        }
    }
}
