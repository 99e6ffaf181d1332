//! A simulated disk that tells a test of calls before they are made: to count them, to hold them up, or to panic in them.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use engine::disk::{Disk, DiskCopy, DiskFile};

/// What a test does at a call; nothing by default.
pub(crate) trait Hooks: Send + Sync + 'static {
    /// Bytes of some file are read.
    fn read(&self) {}
    /// Bytes are written to some file.
    fn write(&self) {}
    /// A file is synced.
    fn sync(&self) {}
    /// So many bytes at an offset were announced as to be synced later.
    fn will_sync(&self, _offset: u64, _len: u64) {}
}

/// See the file's documentation.
pub(crate) struct HookedDisk<H> {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) hooks: Arc<H>,
}

struct HookedFile<H> {
    file: Arc<dyn DiskFile>,
    hooks: Arc<H>,
}

impl<H: Hooks> HookedDisk<H> {
    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(HookedFile { file, hooks: self.hooks.clone() })
    }
}

impl<H: Hooks> Disk for HookedDisk<H> {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.file(file))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(file))
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

impl<H: Hooks> DiskFile for HookedFile<H> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.hooks.read();
        self.file.read_at(buf, offset)
    }
    fn will_sync(&self, offset: u64, len: u64) {
        self.hooks.will_sync(offset, len);
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.hooks.write();
        self.file.write_at(data, offset)
    }
    fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.hooks.write();
        self.file.write_vectored_at(parts, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.hooks.sync();
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
