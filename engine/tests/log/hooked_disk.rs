//! A disk that passes each call through hooks of a test: to count calls, block them, panic, or do something else
//! instead.

use std::io::{self, IoSlice};
use std::sync::Arc;

use engine::disk::{Disk, DiskFile};

/// The hooks. By default a call goes to the disk; an advisory call is dropped.
pub(crate) trait Hooks: Send + Sync + 'static {
    /// Before a file is opened.
    fn open(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
    /// In place of a read of the file `name`.
    fn read(&self, file: &dyn DiskFile, _name: &str, buf: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(buf, offset)
    }
    /// Before a write to any file.
    fn write(&self) {}
    /// In place of the sync of a file.
    fn sync(&self, file: &dyn DiskFile) -> io::Result<()> {
        file.sync()
    }
    /// The log asked to start the write-back of `len` bytes at `offset`.
    fn start_writeback(&self, _offset: u64, _len: u64) {}
    /// The log asked to drop `len` cached bytes at `offset` of the file `name`.
    fn drop_cached(&self, _file: &dyn DiskFile, _name: &str, _offset: u64, _len: u64) {}
}

/// See the module documentation. Files are known by the name under which they were opened or created.
pub(crate) struct HookedDisk<H> {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) hooks: Arc<H>,
}

struct HookedFile<H> {
    file: Arc<dyn DiskFile>,
    name: String,
    hooks: Arc<H>,
}

impl<H: Hooks> HookedDisk<H> {
    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(HookedFile { file, name: name.to_owned(), hooks: self.hooks.clone() })
    }
}

impl<H: Hooks> Disk for HookedDisk<H> {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.hooks.open(name)?;
        self.disk.open(name).map(|file| self.file(name, file))
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
}

impl<H: Hooks> DiskFile for HookedFile<H> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.hooks.read(self.file.as_ref(), &self.name, buf, offset)
    }
    fn start_writeback(&self, offset: u64, len: u64) {
        self.hooks.start_writeback(offset, len);
    }
    fn drop_cached(&self, offset: u64, len: u64) {
        self.hooks.drop_cached(self.file.as_ref(), &self.name, offset, len);
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
        self.hooks.sync(self.file.as_ref())
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
