//! Reads a snapshot file sequentially, one block in memory, and verifies everything.
//!
//! The reader yields only rows of blocks with a valid checksum, in strictly ascending (cf code, key) order and inside
//! the region's range. After the last row it compares the counts and the total checksum with the footer. So a pass
//! without an error has seen exactly the bytes written.

use std::io;
use std::sync::Arc;

use engine::Cf;
use engine::disk::DiskFile;
use engine::store::StoreError;

use super::format::{self, BLOCK_HEADER, BlockHeader, Damage, FOOTER, Footer, HEADER_FIXED, Header};

/// A row: column family, key, value.
pub type Row = (Cf, Vec<u8>, Vec<u8>);

/// A snapshot file opened for one pass over its rows.
pub(super) struct FileReader {
    file: Arc<dyn DiskFile>,
    name: String,
    pub(super) header: Header,
    footer: Footer,
    /// Offset of the footer.
    end: u64,
    /// Offset of the next block.
    at: u64,
    /// CRC-32 of the bytes before `at`.
    total: crc32fast::Hasher,
    rows: u64,
    blocks: u64,
    /// Raw rows of the current block, and how many bytes are consumed.
    block: Vec<u8>,
    consumed: usize,
    last: Option<(Cf, Vec<u8>)>,
    finished: bool,
}

impl FileReader {
    /// Opens a file and verifies its header and footer.
    pub(super) fn open(file: Arc<dyn DiskFile>, name: &str) -> Result<FileReader, StoreError> {
        let len = file.len()?;
        if len < (HEADER_FIXED + 4 + FOOTER) as u64 {
            return Err(corrupt(name, 0, "file is shorter than its header and footer"));
        }
        let end = len - FOOTER as u64;
        let mut fixed = [0; HEADER_FIXED];
        read(&*file, name, &mut fixed, 0)?;
        let header_len = Header::length(&fixed).map_err(|damage| damaged(name, 0, damage))?;
        if header_len as u64 > end {
            return Err(corrupt(name, 0, "header is cut off"));
        }
        let mut bytes = vec![0; header_len];
        read(&*file, name, &mut bytes, 0)?;
        let header = Header::decode(&bytes).map_err(|damage| damaged(name, 0, damage))?;
        let mut footer = [0; FOOTER];
        read(&*file, name, &mut footer, end)?;
        let footer = Footer::decode(&footer).map_err(|damage| damaged(name, end, damage))?;
        let mut total = crc32fast::Hasher::new();
        total.update(&bytes);
        Ok(FileReader {
            file,
            name: name.to_owned(),
            header,
            footer,
            end,
            at: header_len as u64,
            total,
            rows: 0,
            blocks: 0,
            block: Vec::new(),
            consumed: 0,
            last: None,
            finished: false,
        })
    }

    /// Reads everything, only to verify it.
    pub(super) fn verify(mut self) -> Result<(), StoreError> {
        while self.next_row()?.is_some() {}
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<Row>, StoreError> {
        if self.consumed == self.block.len() && !self.next_block()? {
            return Ok(None);
        }
        let (row, len) =
            format::decode_row(&self.block[self.consumed..]).map_err(|damage| damaged(&self.name, self.at, damage))?;
        let follows = self.last.as_ref().is_none_or(|(cf, key)| (cf.code(), key.as_slice()) < (row.cf.code(), row.key));
        if !follows || !self.header.contains(row.key) {
            return Err(corrupt(&self.name, self.at, "a row is out of order or outside the region"));
        }
        self.consumed += len;
        self.rows += 1;
        self.last = Some((row.cf, row.key.to_vec()));
        Ok(Some((row.cf, row.key.to_vec(), row.value.to_vec())))
    }

    /// Loads the next block. False at the footer, after comparing it with everything read.
    fn next_block(&mut self) -> Result<bool, StoreError> {
        if self.at == self.end {
            let seen = Footer { rows: self.rows, blocks: self.blocks, total: self.total.clone().finalize() };
            if seen != self.footer {
                return Err(corrupt(&self.name, self.end, "footer does not agree with the blocks before it"));
            }
            return Ok(false);
        }
        let left = self.end - self.at;
        let mut bytes = [0; BLOCK_HEADER];
        if left < BLOCK_HEADER as u64 {
            return Err(corrupt(&self.name, self.at, "block header is cut off"));
        }
        read(&*self.file, &self.name, &mut bytes, self.at)?;
        let header = BlockHeader::decode(&bytes).map_err(|damage| damaged(&self.name, self.at, damage))?;
        if (header.stored as u64) > left - BLOCK_HEADER as u64 {
            return Err(corrupt(&self.name, self.at, "block is cut off"));
        }
        let mut stored = vec![0; header.stored];
        read(&*self.file, &self.name, &mut stored, self.at + BLOCK_HEADER as u64)?;
        self.total.update(&bytes);
        self.total.update(&stored);
        let next = self.at + (BLOCK_HEADER + stored.len()) as u64;
        self.block = header.unpack(stored).map_err(|damage| damaged(&self.name, self.at, damage))?;
        self.consumed = 0;
        self.at = next;
        self.blocks += 1;
        Ok(true)
    }
}

impl Iterator for FileReader {
    type Item = Result<Row, StoreError>;

    /// The next row; none after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let row = self.next_row().transpose();
        self.finished = !matches!(row, Some(Ok(_)));
        row
    }
}

/// Reads exactly `buf`. A file that ends early is corrupt, not an I/O error.
fn read(file: &dyn DiskFile, name: &str, buf: &mut [u8], offset: u64) -> Result<(), StoreError> {
    file.read_at(buf, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => corrupt(name, offset, "file is cut off"),
        _ => StoreError::Io(error),
    })
}

pub(super) fn corrupt(name: &str, offset: u64, what: &str) -> StoreError {
    StoreError::Corrupt(format!("snapshot file {name} at {offset}: {what}"))
}

fn damaged(name: &str, offset: u64, damage: Damage) -> StoreError {
    corrupt(name, offset, &damage.0)
}
