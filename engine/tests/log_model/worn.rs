//! A disk under a page cache: what is damaged on it is not seen before the pages are forgotten, and some of it cannot be read at all.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::disk::{Disk, DiskCopy, DiskFile};
use parking_lot::Mutex;

/// Files are known by the name under which they are opened.
pub struct WornDisk {
    disk: Arc<dyn Disk>,
    wear: Arc<Mutex<Wear>>,
}

#[derive(Default)]
pub struct Wear {
    /// Bytes that are others on the disk than in memory.
    pub rot: Vec<(String, u64)>,
    /// Bytes that the disk does not give.
    pub bad: Vec<(String, u64)>,
    /// The number of the error with which no file can be opened.
    pub refuses: Option<i32>,
    /// Of each file, byte by byte, whether memory holds it no more.
    forgotten: BTreeMap<String, Vec<bool>>,
    /// Reads of which memory held a part: file, offset and length.
    pub stale: Vec<(String, u64, usize)>,
    /// Bytes read of each file.
    pub read: BTreeMap<String, u64>,
}

struct WornFile {
    file: Arc<dyn DiskFile>,
    name: String,
    wear: Arc<Mutex<Wear>>,
}

impl WornDisk {
    pub fn new(disk: Arc<dyn Disk>) -> (Arc<WornDisk>, Arc<Mutex<Wear>>) {
        let wear = Arc::<Mutex<Wear>>::default();
        (Arc::new(WornDisk { disk, wear: wear.clone() }), wear)
    }

    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WornFile { file, name: name.to_owned(), wear: self.wear.clone() })
    }
}

impl Wear {
    /// What was read so far is not counted.
    pub fn begin(&mut self) {
        self.stale.clear();
        self.read.clear();
    }

    fn is_forgotten(&self, name: &str, offset: u64) -> bool {
        self.forgotten.get(name).and_then(|bytes| bytes.get(offset as usize)).copied().unwrap_or(false)
    }
}

impl Disk for WornDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.wear.lock().refuses {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => self.disk.open(name).map(|file| self.file(name, file)),
        }
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(name, file))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }
    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        self.disk.begin_copy(path)
    }
}

impl DiskFile for WornFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        let mut wear = self.wear.lock();
        if wear.bad.iter().any(|(name, at)| *name == self.name && (offset..end).contains(at)) {
            return Err(io::Error::other("bad sector"));
        }
        self.file.read_at(buf, offset)?;
        *wear.read.entry(self.name.clone()).or_default() += buf.len() as u64;
        if (offset..end).any(|at| !wear.is_forgotten(&self.name, at)) {
            wear.stale.push((self.name.clone(), offset, buf.len()));
        }
        let rotten = wear.rot.iter().filter(|(name, at)| *name == self.name && (offset..end).contains(at));
        for (_, at) in rotten.filter(|(name, at)| wear.is_forgotten(name, *at)) {
            buf[(at - offset) as usize] ^= 4;
        }
        Ok(())
    }
    fn forget(&self, offset: u64, len: u64) {
        let end = self.file.len().unwrap_or(0).min(offset.saturating_add(len)) as usize;
        let mut wear = self.wear.lock();
        let bytes = wear.forgotten.entry(self.name.clone()).or_default();
        bytes.resize(bytes.len().max(end), false);
        if let Some(bytes) = bytes.get_mut(offset as usize..end) {
            bytes.fill(true);
        }
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn links(&self) -> io::Result<u64> {
        self.file.links()
    }
}
