//! Builds the sorted table files that replace a range.
//!
//! Rows are streamed into files of bounded size in a subfolder of their own. RocksDB moves the files into its own
//! folder. The subfolder is deleted on success and on failure; after a crash, by the next open.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rocksdb::SstFileWriter;

use super::database::Database;
use super::dir;
use super::errors::on_read;
use crate::cf::Cf;
use crate::store::{Result, RowCheck, StoreError};

/// The size in bytes at which a new file is started.
const FILE_BYTES: u64 = 64 << 20;

/// Complete files to ingest. Deletes its subfolder when dropped.
pub(super) struct Files {
    folder: PathBuf,
    paths: Vec<(Cf, PathBuf)>,
}

impl Files {
    /// The files by column family; families without files are left out.
    pub(super) fn by_family(&self) -> impl Iterator<Item = (Cf, Vec<&PathBuf>)> {
        let of = |cf| (cf, self.paths.iter().filter(|(of, _)| *of == cf).map(|(_, path)| path).collect::<Vec<_>>());
        Cf::DATA.into_iter().map(of).filter(|(_, paths)| !paths.is_empty())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            // The next open removes it.
            tracing::warn!(folder = %self.folder.display(), %error, "leftover files of a range replacement");
        }
    }
}

/// Writes `rows` into files. Does not change the store.
pub(super) fn build(
    database: &Database,
    start: &[u8],
    end: &[u8],
    rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
) -> Result<Files> {
    let number = database.next_ingest.fetch_add(1, Ordering::Relaxed);
    let folder = database.dir.join(dir::INGEST).join(number.to_string());
    fs::create_dir(&folder)?;
    let mut files = Files { folder, paths: Vec::new() };
    let mut check = RowCheck::new(start, end);
    let mut open: Option<(Cf, SstFileWriter<'_>)> = None;
    for row in rows {
        let (cf, key, value) = row?;
        check.accept(cf, &key)?;
        let mut writer = match open.take() {
            Some((of, writer)) if of == cf && writer.file_size() < FILE_BYTES => writer,
            full => {
                finish(full)?;
                let path = files.folder.join(format!("{}.sst", files.paths.len()));
                let writer = SstFileWriter::create(options(database, cf)?);
                writer.open(&path).map_err(on_read)?;
                files.paths.push((cf, path));
                writer
            }
        };
        writer.put(&key, &value).map_err(on_read)?;
        open = Some((cf, writer));
    }
    finish(open)?;
    Ok(files)
}

fn options(database: &Database, cf: Cf) -> Result<&rocksdb::Options> {
    let of = database.family_options.get(usize::from(cf.code()));
    of.ok_or_else(|| StoreError::Corrupt(format!("no options for column family {}", cf.name())))
}

fn finish(open: Option<(Cf, SstFileWriter<'_>)>) -> Result<()> {
    open.map_or(Ok(()), |(_, mut writer)| writer.finish().map_err(on_read))
}
