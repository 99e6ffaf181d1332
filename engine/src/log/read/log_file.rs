//! The files of a log: handles, creation, sealing, and the table of open files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use crate::disk::{Disk, DiskFile};
use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{
    BLOCK_HEADER, Block, BlockHeader, Codec, FOOTER, FileHeader, Footer, HeaderError, Identity, PAGE, Place, UNIT,
    VERSION, align, compress_lz4, decompress, file_name,
};
use crate::log::index::FileSummary;
use crate::log::types::GroupId;

/// An open log file.
pub(crate) struct LogFile {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) file: Arc<dyn DiskFile>,
    /// The length, cached to save a system call per read.
    len: AtomicU64,
    /// Position of the last commit group that was written to it, or to the file before if it has none. Maintained for
    /// the active file and for the one before it.
    pub(crate) last_lsn: AtomicU64,
    /// Whether an earlier file used its space. Known for a file that this process prepared.
    pub(crate) reused: bool,
    /// Held while the file is synced: the kernel reports a failed write to one caller only.
    pub(crate) sync_lock: Mutex<()>,
    /// After a rename with unknown outcome: the number of the spare that the file may have become.
    pub(crate) spare: OnceLock<u64>,
}

/// A run below this size likely shares its block with other runs, in bytes. The length of the block is then unknown,
/// and the first read takes [`FIRST_READ`] bytes.
const SHARED_BELOW: u64 = 1 << 10;
/// Size of the first read of a block of unknown length, in bytes.
const FIRST_READ: u64 = 4 << 10;
/// Maximum size of a block that is read into a thread-local buffer, in bytes.
const MAX_BUFFER: usize = 128 << 10;

impl LogFile {
    /// Opens file `seq` and reads its header. `identity` is that of the log, if known.
    pub(crate) fn load(disk: &dyn Disk, seq: u64, identity: Option<Identity>) -> Result<(LogFile, FileHeader)> {
        let name = file_name(seq);
        let file = disk.open(&name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LogError::missing(name.as_str()),
            _ => error.into(),
        })?;
        let len = file.len()?;
        let header = read_header(file.as_ref(), len, &name)?;
        if header.place.seq != seq {
            return Err(LogError::misplaced(name, format!("it is file {}", header.place.seq)));
        }
        if identity.is_some_and(|identity| identity != header.place.identity) {
            return Err(LogError::misplaced(name, "it belongs to another log"));
        }
        Ok((LogFile::new(header.place, name, file, len), header))
    }

    /// The file at `place`, named `name`, of `len` bytes. The header is not read.
    pub(crate) fn new(place: Place, name: String, file: Arc<dyn DiskFile>, len: u64) -> LogFile {
        LogFile {
            place,
            name,
            file,
            len: AtomicU64::new(len),
            last_lsn: AtomicU64::new(0),
            reused: false,
            sync_lock: Mutex::default(),
            spare: OnceLock::new(),
        }
    }

    /// Makes the file at `place` from a spare. `start` is durable before the file gets the name of a log file.
    pub(crate) fn reuse(
        disk: &dyn Disk,
        spare: &str,
        place: Place,
        start: &[u8],
    ) -> std::result::Result<LogFile, CreateError> {
        let file = disk.open(spare).map_err(CreateError::NotCreated)?;
        file.write_at(start, 0).map_err(CreateError::NotCreated)?;
        file.sync().map_err(sync_failed)?;
        Ok(LogFile { reused: true, ..LogFile::publish(disk, file, spare, place)? })
    }

    /// Creates the file at `place`, which begins with `start`: a header, or [`UNUSED`]. A header is durable under a
    /// temporary name before the file gets the name of a log file. A file that loses its zeros has no header either.
    pub(crate) fn create(disk: &dyn Disk, place: Place, start: &[u8]) -> std::result::Result<LogFile, CreateError> {
        let temporary = temporary_name(place.seq);
        let created = match disk.create(&temporary) {
            // Left by an earlier attempt that failed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(&temporary).and_then(|()| disk.create(&temporary))
            }
            outcome => outcome,
        };
        let made = created.and_then(|file| file.write_at(start, 0).map(|()| file)).map_err(CreateError::NotCreated);
        let made = made.and_then(|file| {
            if *start != UNUSED {
                file.sync().map_err(sync_failed)?;
            }
            LogFile::publish(disk, file, &temporary, place)
        });
        if let Err(CreateError::NotCreated(_)) = &made
            && let Err(error) = disk.remove_if_there(&temporary)
        {
            // The next attempt, or recovery, removes it. Until then it takes space.
            tracing::warn!(file = temporary, %error, "an unfinished log file could not be removed");
        }
        made
    }

    /// Gives `file`, which is named `from`, the name of a log file.
    fn publish(
        disk: &dyn Disk,
        file: Arc<dyn DiskFile>,
        from: &str,
        place: Place,
    ) -> std::result::Result<LogFile, CreateError> {
        let name = file_name(place.seq);
        let len = file.len().map_err(CreateError::NotCreated)?;
        rename(disk, from, &name)?;
        disk.sync_dir().map_err(sync_failed)?;
        Ok(LogFile::new(place, name, file, len))
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Writes, and updates the length. A failed write may still have extended the file.
    pub(crate) fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(data, offset)?;
        self.len.fetch_max(offset + data.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    /// As [`LogFile::write_at`], for several slices one after another.
    pub(crate) fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let end = offset + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        self.file.write_vectored_at(parts, offset)?;
        self.len.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    /// Allocates space up to `len`, and updates the length.
    pub(crate) fn reserve(&self, len: u64) -> io::Result<()> {
        self.grow(len, |file| file.reserve(len))
    }

    /// Allocates space up to `len`, filled with zeros, and updates the length.
    pub(crate) fn prefill(&self, len: u64) -> io::Result<()> {
        self.grow(len, |file| file.prefill(len))
    }

    /// Extends the file to `len`, or not at all: a partial extension would waste space.
    fn grow(&self, len: u64, extend: impl FnOnce(&dyn DiskFile) -> io::Result<()>) -> io::Result<()> {
        let before = self.len();
        if before >= len {
            return Ok(());
        }
        let extended = extend(self.file.as_ref());
        if extended.is_err()
            && let Err(error) = self.file.set_len(before)
        {
            // Harmless: the file is longer than needed.
            tracing::warn!(file = self.name, %error, "unused space of a log file could not be freed");
        }
        // After the extension: readers rely on the length.
        self.refresh_len()?;
        extended
    }

    /// Reloads the length after a failed call, which may have extended the file.
    pub(crate) fn refresh_len(&self) -> io::Result<()> {
        self.len.store(self.file.len()?, Ordering::Release);
        Ok(())
    }

    /// Reads and verifies the block at `offset`. `approximate_len` is its length, rounded down by at most an eighth. If
    /// it is right, one read suffices, otherwise two. `before_wait` is called before the read waits for the disk, if
    /// the system can detect that.
    pub(crate) fn read_block(&self, offset: u64, approximate_len: u64, before_wait: impl FnOnce()) -> Result<Block> {
        let room = self.len().saturating_sub(offset);
        let max_len = approximate_len + approximate_len / 7;
        let first = if approximate_len < SHARED_BELOW { FIRST_READ } else { align(max_len, UNIT) };
        let first = room.min(first) as usize;
        if first > MAX_BUFFER {
            return self.read_block_into(&mut vec![0; first], first, offset, room, before_wait);
        }
        thread_local!(static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(buffer.len().max(first), 0);
            let block = self.read_block_into(buffer, first, offset, room, before_wait);
            // A damaged length may have grown the buffer.
            buffer.truncate(MAX_BUFFER);
            buffer.shrink_to(MAX_BUFFER);
            block
        })
    }

    /// As [`LogFile::read_block`], into a buffer. The first read takes `first` bytes. The file has `room` bytes from
    /// the offset on.
    fn read_block_into(
        &self,
        buffer: &mut Vec<u8>,
        first: usize,
        offset: u64,
        room: u64,
        before_wait: impl FnOnce(),
    ) -> Result<Block> {
        if !self.file.read_cached_at(&mut buffer[..first], offset)? {
            before_wait();
            self.read(&mut buffer[..first], offset)?;
        }
        let bytes = &buffer[..first];
        let Some(head) = bytes.first_chunk::<BLOCK_HEADER>() else {
            return Err(Damage("block is cut off").at(&self.name, offset));
        };
        let header = BlockHeader::decode(head).map_err(|damage| damage.at(&self.name, offset))?;
        let total = BLOCK_HEADER as u64 + u64::from(header.stored);
        if total > room {
            return Err(Damage("block is cut off").at(&self.name, offset));
        }
        let total = total as usize;
        if total > first {
            buffer.resize(buffer.len().max(total), 0);
            self.read(&mut buffer[first..total], offset + first as u64)?;
        }
        Block::decode(&buffer[..total], self.place, offset).map_err(|damage| damage.at(&self.name, offset))
    }

    /// Reads exactly the block at `offset` into `buffer`, verifies and decodes it. Returns its length.
    pub(crate) fn verify_block(&self, offset: u64, buffer: &mut Vec<u8>) -> Result<u64> {
        let damage = |damage: Damage| damage.at(&self.name, offset);
        let room = self.len().saturating_sub(offset);
        let mut head = [0; BLOCK_HEADER];
        let start = offset + BLOCK_HEADER as u64;
        self.read(&mut head, offset)?;
        let header = BlockHeader::decode(&head).map_err(damage)?;
        let total = BLOCK_HEADER as u64 + u64::from(header.stored);
        if total > room {
            return Err(damage(Damage("block is cut off")));
        }
        buffer.clear();
        buffer.extend_from_slice(&head);
        buffer.resize(total as usize, 0);
        self.read(&mut buffer[BLOCK_HEADER..], start)?;
        Block::decode(buffer, self.place, offset).map_err(damage)?;
        Ok(total)
    }

    /// Reads bytes that must exist: an early end of the file is damage.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_at(buf, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage("file is cut off").at(&self.name, offset),
            _ => error.into(),
        })
    }

    /// The footer, if the file is sealed.
    pub(crate) fn footer(&self) -> Result<Option<Footer>> {
        let len = self.len();
        if len < PAGE + FOOTER as u64 {
            return Ok(None);
        }
        let offset = len - FOOTER as u64;
        let mut bytes = [0; FOOTER];
        self.read(&mut bytes, offset)?;
        let footer = Footer::decode(&bytes, self.place, offset);
        let fits = |footer: &Footer| footer.index_offset.saturating_add(u64::from(footer.index_stored)) <= offset;
        Ok(footer.filter(fits))
    }

    /// The stored index of a sealed file; `None` if it fails its checksum.
    pub(crate) fn stored_index(&self, footer: &Footer) -> Result<Option<Vec<u8>>> {
        let mut stored = vec![0; footer.index_stored as usize];
        self.read(&mut stored, footer.index_offset)?;
        let checksum = self.place.checksum(footer.index_offset, &[&stored]);
        Ok((checksum == footer.index_checksum).then_some(stored))
    }

    /// Whether the file has a footer and a readable index.
    pub(crate) fn is_sealed(&self) -> Result<bool> {
        Ok(match self.footer()? {
            Some(footer) => self.stored_index(&footer)?.is_some(),
            None => false,
        })
    }

    /// The footer of a file that must be sealed.
    pub(crate) fn seal(&self) -> Result<Footer> {
        let unsealed = || Damage("file has no seal, though a later one is in use").at(&self.name, self.len());
        self.footer()?.ok_or_else(unsealed)
    }

    /// The stored index of a sealed file, which must pass its checksum.
    pub(crate) fn sound_index(&self, footer: &Footer) -> Result<Vec<u8>> {
        let damage = || Damage("index fails its checksum").at(&self.name, footer.index_offset);
        self.stored_index(footer)?.ok_or_else(damage)
    }

    /// Footer and index of a sealed file.
    pub(crate) fn sealed(&self) -> Result<(Footer, FileSummary)> {
        let footer = self.seal()?;
        let raw = self.raw_index(&footer)?;
        let decoded = FileSummary::decode(&raw, self.place.seq);
        Ok((footer, decoded.map_err(|damage| damage.at(&self.name, footer.index_offset))?))
    }

    /// The index of a sealed file, verified and decompressed.
    pub(crate) fn raw_index(&self, footer: &Footer) -> Result<Vec<u8>> {
        let damage = |damage: Damage| damage.at(&self.name, footer.index_offset);
        let stored = self.sound_index(footer)?;
        match footer.codec {
            // Returned without a copy: it may be long.
            Codec::Raw if stored.len() == footer.index_raw as usize => Ok(stored),
            codec => decompress(codec, &stored, footer.index_raw as usize).map_err(damage),
        }
    }
}

/// The beginning of a file that is prepared and not in use: no header.
pub(crate) const UNUSED: [u8; PAGE as usize] = [0; PAGE as usize];

/// The groups that file `seq` changes, as the next file's header lists them.
pub(crate) fn changed_in(disk: &dyn Disk, seq: u64) -> Option<Vec<GroupId>> {
    let (_, after) = LogFile::load(disk, seq.checked_add(1)?, None).ok()?;
    after.changed.filter(|_| after.prev_seq == seq)
}

/// Reads the header of the file `name`, which has `len` bytes.
pub(crate) fn read_header(file: &dyn DiskFile, len: u64, name: &str) -> Result<FileHeader> {
    let mut want = PAGE;
    let header = loop {
        let mut bytes = vec![0; want.min(len) as usize];
        file.read_at(&mut bytes, 0)?;
        match FileHeader::decode(&bytes) {
            Ok(header) => break header,
            Err(HeaderError::Short(needed)) if (needed as u64) <= len => want = needed as u64,
            Err(HeaderError::Short(_)) => return Err(Damage("file header is cut off").at(name, 0)),
            Err(HeaderError::Version(found)) => {
                return Err(LogError::Version { file: name.to_owned(), found, supported: VERSION, groups: Vec::new() });
            }
            Err(HeaderError::Damage(damage)) => return Err(damage.at(name, 0)),
        }
    };
    if len < u64::from(header.data_offset) { Err(Damage("file header is cut off").at(name, 0)) } else { Ok(header) }
}

/// The reason why a file was not created.
#[derive(Debug)]
pub(crate) enum CreateError {
    /// It did not get its name: the caller may retry.
    NotCreated(io::Error),
    /// A sync failed, or it is unknown whether the file has its name.
    Unknown(io::Error),
}

impl From<CreateError> for LogError {
    fn from(error: CreateError) -> LogError {
        match error {
            CreateError::NotCreated(error) | CreateError::Unknown(error) => error.into(),
        }
    }
}

/// The error of a failed sync. Always fatal, also on a full disk, because the content of the disk is unknown.
fn sync_failed(error: io::Error) -> CreateError {
    CreateError::Unknown(io::Error::new(error.kind(), format!("sync: {error}")))
}

/// Renames a file, replacing `to`. A rename may take effect and still return an error. So after an error the names on
/// disk decide.
pub(crate) fn rename(disk: &dyn Disk, from: &str, to: &str) -> std::result::Result<(), CreateError> {
    let Err(error) = disk.rename(from, to) else { return Ok(()) };
    let is_there = |name| match disk.open(name) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    };
    match (is_there(from), is_there(to)) {
        (Some(false), Some(true)) => Ok(()),
        (Some(true), _) | (_, Some(false)) => Err(CreateError::NotCreated(error)),
        _ => {
            Err(CreateError::Unknown(io::Error::new(error.kind(), format!("rename, with an unknown outcome: {error}"))))
        }
    }
}

/// The name under which a file is created.
pub(crate) fn temporary_name(seq: u64) -> String {
    format!("{seq:016}.tmp")
}

/// The number of a file by its temporary name; `None` for other names.
pub(crate) fn temporary_number(name: &str) -> Option<u64> {
    let seq = name.strip_suffix(".tmp")?.parse().ok()?;
    (temporary_name(seq) == name).then_some(seq)
}

/// The end of a sealed file, ready to be written.
pub(crate) struct Seal {
    index: Vec<u8>,
    index_offset: u64,
    footer: [u8; FOOTER],
    footer_offset: u64,
}

impl Seal {
    /// The seal of `file`, whose groups end at `end`, with the raw index `raw`.
    pub(crate) fn new(file: &LogFile, end: u64, raw: Vec<u8>, last_lsn: u64, chain: u32) -> Seal {
        let raw_len = raw.len();
        let (index, codec) = match compress_lz4(&raw) {
            Some(packed) => (packed, Codec::Lz4),
            None => (raw, Codec::Raw),
        };
        let index_end = end + index.len() as u64;
        let footer_offset = align(index_end, UNIT).max(file.len().saturating_sub(FOOTER as u64));
        let footer = Footer {
            index_checksum: file.place.checksum(end, &[&index]),
            index_offset: end,
            index_stored: index.len() as u32,
            index_raw: raw_len as u32,
            last_lsn,
            chain,
            codec,
        };
        let footer = footer.encode(file.place, footer_offset);
        Seal { index, index_offset: end, footer, footer_offset }
    }

    /// The index as stored.
    pub(crate) fn index(&self) -> &[u8] {
        &self.index
    }

    /// The length of the sealed file.
    pub(crate) fn file_len(&self) -> u64 {
        self.footer_offset + FOOTER as u64
    }

    /// Writes the seal; the caller syncs it. All groups must be synced before: recovery reads the index of a sealed
    /// file and not its groups. A failed write may be retried.
    pub(crate) fn write(&self, file: &LogFile) -> io::Result<()> {
        file.write_at(&self.index, self.index_offset)?;
        file.write_at(&self.footer, self.footer_offset)
    }
}

/// The open files of a log, by number.
#[derive(Default)]
pub(crate) struct FileTable(RwLock<BTreeMap<u64, Arc<LogFile>>>);

impl FileTable {
    /// Adds a file.
    pub(crate) fn insert(&self, file: Arc<LogFile>) {
        self.0.write().insert(file.place.seq, file);
    }

    /// A file. It stays readable while the handle is open, also after it is deleted.
    pub(crate) fn get(&self, seq: u64) -> Option<Arc<LogFile>> {
        self.0.read().get(&seq).cloned()
    }

    /// Removes a file.
    pub(crate) fn remove(&self, seq: u64) -> Option<Arc<LogFile>> {
        self.0.write().remove(&seq)
    }

    /// Whether `file` is still the one with its number.
    pub(crate) fn has(&self, file: &Arc<LogFile>) -> bool {
        self.get(file.place.seq).is_some_and(|known| Arc::ptr_eq(&known, file))
    }

    /// Number and length of each file, oldest first.
    pub(crate) fn lengths(&self) -> Vec<(u64, u64)> {
        self.0.read().iter().map(|(seq, file)| (*seq, file.len())).collect()
    }
}
