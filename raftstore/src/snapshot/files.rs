//! The directory of snapshot files: builds, reads, receives and removes them.
//!
//! A file is written under a temporary name, synced and renamed, and the directory is synced. So a file under its final
//! name is complete and durable, and a received file was verified before the rename.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Cf;
use engine::disk::{Disk, DiskFile};
use engine::store::{Reader, StoreError};

use super::format::{self, Damage, Footer, Header, SnapshotKey};
use super::reader::{FileReader, Row, corrupt};
use crate::region::{Floors, Region};

/// Suffix of an unfinished file.
const TEMP_SUFFIX: &str = ".tmp";
/// Bytes buffered before each write to the file.
const WRITE_CHUNK: usize = 1 << 20;

/// The directory of a store's snapshot files. Clones share it. All methods may be called from any thread; they block on
/// the disk.
#[derive(Clone)]
pub struct SnapshotFiles {
    disk: Arc<dyn Disk>,
    /// Numbers the temporary files, so that two writers of the same key do not collide.
    next_temp: Arc<AtomicU64>,
}

/// Rows of a snapshot file, in the order of (cf code, key).
pub type Rows = Box<dyn Iterator<Item = Result<Row, StoreError>> + Send>;

impl SnapshotFiles {
    /// Opens a directory and removes unfinished files.
    pub fn open(disk: Arc<dyn Disk>) -> Result<SnapshotFiles, StoreError> {
        let mut removed = false;
        for name in disk.list()? {
            if name.ends_with(TEMP_SUFFIX) {
                disk.remove(&name)?;
                removed = true;
            }
        }
        if removed {
            disk.sync_dir()?;
        }
        Ok(SnapshotFiles { disk, next_temp: Arc::new(AtomicU64::new(0)) })
    }

    /// Writes the data of `region` as seen by `reader`, and its floors there. Complete and durable on return. Does
    /// nothing if the file exists and is sound; replaces a damaged one. Fails when `goes_on` says no, with an `Io`
    /// error of kind `Interrupted`.
    pub fn build(
        &self,
        key: SnapshotKey,
        (region, floors): (&Region, Floors),
        reader: &dyn Reader,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        if self.verify(key).is_ok() {
            return Ok(());
        }
        let header = Header { key, start: region.start.clone(), end: region.end.clone(), floors };
        let mut builder = Builder::start(TempFile::create(self, key)?, &header)?;
        for cf in Cf::DATA {
            let mut cursor = reader.cursor(cf, &region.start, &region.end)?;
            let mut valid = cursor.seek_to_first()?;
            while valid {
                if !goes_on() {
                    return Err(StoreError::Io(io::ErrorKind::Interrupted.into()));
                }
                builder.row(cf, cursor.key(), cursor.value())?;
                valid = cursor.next()?;
            }
        }
        builder.finish()?.publish()
    }

    /// Whether the file exists and its header and footer are sound. Damage in between is found when the rows are read.
    pub fn contains(&self, key: SnapshotKey) -> bool {
        self.check(key).is_ok()
    }

    /// What [`SnapshotFiles::contains`] finds wrong.
    ///
    /// # Errors
    ///
    /// `Io` of kind `NotFound` if there is no file, `Corrupt` if its header or footer is damaged.
    pub fn check(&self, key: SnapshotKey) -> Result<(), StoreError> {
        self.reader(key).map(drop)
    }

    /// Reads and verifies the whole file.
    ///
    /// # Errors
    ///
    /// `Io` of kind `NotFound` if there is no file, `Corrupt` if it is damaged.
    pub fn verify(&self, key: SnapshotKey) -> Result<(), StoreError> {
        self.reader(key)?.verify()
    }

    /// The floors of the region at the snapshot's index.
    ///
    /// # Errors
    ///
    /// As [`SnapshotFiles::check`].
    pub fn floors(&self, key: SnapshotKey) -> Result<Floors, StoreError> {
        Ok(self.reader(key)?.header.floors)
    }

    /// The rows of a file. A damaged block yields an error at its first row, and nothing after it.
    pub fn rows(&self, key: SnapshotKey) -> Result<Rows, StoreError> {
        Ok(Box::new(self.reader(key)?))
    }

    /// The length of a file in bytes.
    pub fn size(&self, key: SnapshotKey) -> Result<u64, StoreError> {
        Ok(self.disk.open(&key.file_name())?.len()?)
    }

    /// The raw bytes of a file from `offset`, at most `max`; empty at the end.
    pub fn read(&self, key: SnapshotKey, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
        let file = self.disk.open(&key.file_name())?;
        let left = file.len()?.saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(max)];
        file.read_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Starts receiving a file.
    pub fn receive(&self, key: SnapshotKey) -> Result<SnapshotWriter, StoreError> {
        Ok(SnapshotWriter { file: TempFile::create(self, key)? })
    }

    /// Removes a file. A missing file is not an error.
    pub fn remove(&self, key: SnapshotKey) -> Result<(), StoreError> {
        match self.disk.remove(&key.file_name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.and_then(|()| self.disk.sync_dir())?),
        }
    }

    /// All complete files, sorted.
    pub fn list(&self) -> Result<Vec<SnapshotKey>, StoreError> {
        let names = self.disk.list()?;
        let mut keys: Vec<SnapshotKey> = names.iter().filter_map(|name| SnapshotKey::from_file_name(name)).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn reader(&self, key: SnapshotKey) -> Result<FileReader, StoreError> {
        let name = key.file_name();
        let reader = FileReader::open(self.disk.open(&name)?, &name)?;
        check_key(&reader, key, &name)?;
        Ok(reader)
    }
}

/// Refuses a file whose header names another snapshot than its file name.
fn check_key(reader: &FileReader, key: SnapshotKey, name: &str) -> Result<(), StoreError> {
    if reader.header.key == key {
        return Ok(());
    }
    Err(corrupt(name, 0, &format!("file holds snapshot {}", reader.header.key)))
}

/// A snapshot file being received: write all bytes in order, then call `finish`. Dropping it removes the unfinished
/// file.
pub struct SnapshotWriter {
    file: TempFile,
}

impl SnapshotWriter {
    /// Appends bytes. After an error the writer must be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.append(bytes)
    }

    /// Verifies every checksum and makes the file durable under its final name, replacing an existing one.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.file.flush()?;
        let reader = FileReader::open(Arc::clone(&self.file.file), &self.file.name)?;
        check_key(&reader, self.file.key, &self.file.name)?;
        reader.verify()?;
        self.file.publish()
    }
}

/// A file under a temporary name, written front to back. Removed if dropped before `publish`.
struct TempFile {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    name: String,
    key: SnapshotKey,
    /// Bytes appended and not written yet, and their offset.
    pending: Vec<u8>,
    at: u64,
    published: bool,
}

impl TempFile {
    fn create(files: &SnapshotFiles, key: SnapshotKey) -> Result<TempFile, StoreError> {
        let name = format!("{key}.{}{TEMP_SUFFIX}", files.next_temp.fetch_add(1, Ordering::Relaxed));
        let file = files.disk.create(&name)?;
        Ok(TempFile { disk: Arc::clone(&files.disk), file, name, key, pending: Vec::new(), at: 0, published: false })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= WRITE_CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.file.write_at(&self.pending, self.at)?;
        self.at += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Makes the file durable under its final name.
    fn publish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.file.sync()?;
        self.disk.rename(&self.name, &self.key.file_name())?;
        self.published = true;
        Ok(self.disk.sync_dir()?)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // A file that cannot be removed now is removed by the next `open`.
        if !self.published {
            let _ = self.disk.remove(&self.name);
        }
    }
}

/// Writes header, blocks and footer, and maintains the counts and the total checksum.
struct Builder {
    file: TempFile,
    block: Vec<u8>,
    encoded: Vec<u8>,
    total: crc32fast::Hasher,
    rows: u64,
    blocks: u64,
}

impl Builder {
    fn start(mut file: TempFile, header: &Header) -> Result<Builder, StoreError> {
        let bytes = header.encode().map_err(|Damage(what)| StoreError::Backend(what))?;
        file.append(&bytes)?;
        let mut total = crc32fast::Hasher::new();
        total.update(&bytes);
        Ok(Builder { file, block: Vec::new(), encoded: Vec::new(), total, rows: 0, blocks: 0 })
    }

    fn row(&mut self, cf: Cf, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let len = format::row_len(key, value);
        if len > format::BLOCK_MAX {
            return Err(StoreError::Backend(format!("a row of {len} bytes does not fit a snapshot block")));
        }
        if !self.block.is_empty() && self.block.len() + len > format::BLOCK_TARGET {
            self.close_block()?;
        }
        format::encode_row(cf, key, value, &mut self.block);
        self.rows += 1;
        Ok(())
    }

    fn close_block(&mut self) -> Result<(), StoreError> {
        self.encoded.clear();
        format::encode_block(&self.block, &mut self.encoded);
        self.total.update(&self.encoded);
        self.file.append(&self.encoded)?;
        self.block.clear();
        self.blocks += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<TempFile, StoreError> {
        if !self.block.is_empty() {
            self.close_block()?;
        }
        let footer = Footer { rows: self.rows, blocks: self.blocks, total: self.total.finalize() };
        self.file.append(&footer.encode())?;
        Ok(self.file)
    }
}
