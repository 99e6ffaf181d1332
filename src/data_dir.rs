//! The data directory: its lock, and the identity of the store in it.
//!
//! ```text
//! DIR/LOCK     locked by the running process
//! DIR/IDENT    the cluster and store that this is (JSON, versioned, replaced atomically)
//! DIR/log/     the Raft log
//! DIR/kv/      the key-value store
//! DIR/snap/    snapshot files being sent or received
//! ```
//!
//! Guarantees:
//! - Nothing is written before the directory is known to be ours (missing, empty, or with a readable IDENT), locked,
//!   and of a format that this version reads.
//! - Created files and directories are durable, and are removed again if the node is rejected
//!   ([`DataDir::remove_created`]).
//! - The locked file is the one that the next process finds at the path of LOCK.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use raftstore::StoreId;
use raftstore::transport::ClusterId;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, cluster_text};

/// The format of a data directory, the only one that this version reads. Rows have format 2 since format 2. Format 3
/// has indexes, schemas and databases.
const FORMAT: u32 = 3;

/// The identity of a store. Once written, its cluster and store id never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ident {
    /// The format version of the data directory.
    pub(crate) format: u32,
    /// The cluster.
    #[serde(with = "cluster_text")]
    pub(crate) cluster_id: ClusterId,
    /// The id of this store in the cluster.
    #[serde(with = "store_number")]
    pub(crate) store_id: StoreId,
    /// Whether the initial regions have been created. Until then every start creates them again.
    pub(crate) bootstrapped: bool,
    /// The plan by which the cluster was initialised; only on its initial stores.
    pub(crate) plan: Option<Plan>,
    /// Whether every node of the plan is known to have taken it.
    pub(crate) complete: bool,
}

mod store_number {
    //! `StoreId` as a plain number.

    use raftstore::StoreId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &StoreId, serializer: S) -> Result<S::Ok, S::Error> {
        id.get().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StoreId, D::Error> {
        u64::deserialize(deserializer).map(StoreId::new)
    }
}

impl Ident {
    /// The identity of a store whose initial regions are not created yet.
    pub(crate) fn new(cluster_id: ClusterId, store_id: StoreId, plan: Option<Plan>) -> Ident {
        Ident { format: FORMAT, cluster_id, store_id, bootstrapped: false, plan, complete: false }
    }

    /// The identity of a store that joined a running cluster, which has no initial regions to create.
    pub(crate) fn joined(cluster_id: ClusterId, store_id: StoreId) -> Ident {
        Ident { bootstrapped: true, complete: true, ..Ident::new(cluster_id, store_id, None) }
    }
}

/// Why a data directory cannot be used; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    /// Another process holds it.
    #[error("data directory {0} is in use by another process")]
    Locked(PathBuf),
    /// It holds other files.
    #[error("{0} is not empty and is not a Cortado data directory")]
    Foreign(PathBuf),
    /// A newer version wrote it.
    #[error("data directory {dir} has format {found}, this version reads {FORMAT}; use a newer cortado")]
    Newer { dir: PathBuf, found: u32 },
    /// An older version wrote it.
    #[error(
        "data directory {dir} has format {found} of an older version, this version reads {FORMAT}; copy the data with \
         that version, or start with an empty directory"
    )]
    Older { dir: PathBuf, found: u32 },
    /// IDENT does not parse.
    #[error("{path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    /// An operation of the file system failed.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A locked data directory. Dropping it releases the lock.
pub(crate) struct DataDir {
    dir: PathBuf,
    _lock: File,
    created: Created,
}

/// The files and directories that opening a data directory created.
#[derive(Debug, Default)]
struct Created {
    /// Directories, outer ones first.
    dirs: Vec<PathBuf>,
    lock: Option<PathBuf>,
}

impl Created {
    /// Removes the lock file, and the directories that are empty then.
    fn remove(&self) {
        if let Some(lock) = &self.lock {
            // A failure is harmless: the next start accepts a directory with a lock file.
            let _ = fs::remove_file(lock);
        }
        for dir in self.dirs.iter().rev() {
            let _ = fs::remove_dir(dir);
        }
    }
}

impl DataDir {
    /// Locks `dir`, after creating it if it is missing, and reads its identity.
    pub(crate) fn open(dir: &Path) -> Result<(DataDir, Option<Ident>), DataDirError> {
        if dir.exists() {
            inspect(dir)?;
        }
        let mut created = Created::default();
        // Inspected again under the lock: the previous holder may have written meanwhile.
        let opened = lock(dir, &mut created).and_then(|lock| Ok((lock, inspect(dir)?)));
        match opened {
            Ok((lock, ident)) => Ok((DataDir { dir: dir.to_path_buf(), _lock: lock, created }, ident)),
            Err(error) => {
                created.remove();
                Err(error)
            }
        }
    }

    /// Removes what `open` created, for a node that its cluster rejects. Does nothing once there is an identity.
    pub(crate) fn remove_created(&self) {
        if !self.dir.join("IDENT").exists() {
            self.created.remove();
        }
    }

    /// Returns a subfolder, created if missing; durable on return.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, DataDirError> {
        let path = self.dir.join(name);
        match create_dir(&path) {
            Ok(_) => Ok(path),
            Err(source) => Err(DataDirError::Io { path, source }),
        }
    }

    /// Whether the subfolder exists.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        self.dir.join(name).is_dir()
    }

    /// Replaces IDENT atomically; durable on return.
    pub(crate) fn write_ident(&self, ident: &Ident) -> Result<(), DataDirError> {
        let path = self.dir.join("IDENT");
        let write = || -> io::Result<()> {
            let temporary = self.dir.join("IDENT.new");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(ident)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            sync_dir(&self.dir)
        };
        write().map_err(|source| DataDirError::Io { path: path.clone(), source })
    }
}

/// Creates `dir` and its missing parents, and locks it.
fn lock(dir: &Path, created: &mut Created) -> Result<File, DataDirError> {
    let missing = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists());
    for dir in missing.collect::<Vec<_>>().into_iter().rev() {
        let is_new = create_dir(dir).map_err(|source| DataDirError::Io { path: dir.to_path_buf(), source })?;
        created.dirs.extend(is_new.then(|| dir.to_path_buf()));
    }
    let path = dir.join("LOCK");
    let io_error = |source| DataDirError::Io { path: path.clone(), source };
    loop {
        let (file, is_new) = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => (file, true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => match OpenOptions::new().write(true).open(&path) {
                Ok(file) => (file, false),
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(io_error(e)),
            },
            Err(e) => return Err(io_error(e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DataDirError::Locked(dir.to_path_buf())),
            Err(errno) => return Err(io_error(errno.into())),
        }
        // A rejected node removes the file that it had locked. If that is our file, its lock excludes no other process.
        if is_file_at(&file, &path).map_err(io_error)? {
            created.lock = is_new.then(|| path.clone());
            return Ok(file);
        }
    }
}

/// Whether `file` is the file at `path`.
fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Creates a directory durably. Returns false if it exists.
fn create_dir(path: &Path) -> io::Result<bool> {
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(false),
        Err(e) => return Err(e),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_dir(parent.unwrap_or(Path::new(".")))?;
    Ok(true)
}

/// Makes the entries of a directory durable.
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Reads the identity of an existing directory, without changing it. Fails if it holds foreign files.
fn inspect(dir: &Path) -> Result<Option<Ident>, DataDirError> {
    let ident = read_ident(dir)?;
    if ident.is_none() {
        let io_error = |source| DataDirError::Io { path: dir.to_path_buf(), source };
        for entry in fs::read_dir(dir).map_err(io_error)? {
            let name = entry.map_err(io_error)?.file_name();
            // A node that was started but never initialised leaves LOCK and IDENT.new.
            let ours = ["LOCK", "IDENT.new", "lost+found"].iter().any(|known| name == *known);
            if !ours {
                return Err(DataDirError::Foreign(dir.to_path_buf()));
            }
        }
    }
    Ok(ident)
}

fn read_ident(dir: &Path) -> Result<Option<Ident>, DataDirError> {
    /// The field that every version of the format has.
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let path = dir.join("IDENT");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirError::Io { path, source }),
    };
    let damaged = |e: serde_json::Error| DataDirError::Damaged { path: path.clone(), why: e.to_string() };
    let Versioned { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > FORMAT {
        return Err(DataDirError::Newer { dir: dir.to_path_buf(), found: format });
    }
    if format == 0 {
        return Err(DataDirError::Damaged { path, why: "there is no format 0".to_string() });
    }
    if format < FORMAT {
        return Err(DataDirError::Older { dir: dir.to_path_buf(), found: format });
    }
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .map(|p| (p.display().to_string(), fs::read(&p).unwrap_or_default()))
            .collect();
        found.sort();
        found
    }

    fn open_error(dir: &Path) -> String {
        let before = files(dir);
        let error = DataDir::open(dir).map(|_| ()).unwrap_err().to_string();
        assert_eq!(files(dir), before, "a failed open changes nothing");
        error
    }

    #[test]
    fn identity_survives_and_the_lock_holds() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("new/data");
        let ident = Ident::new(ClusterId::new(7), StoreId::new(3), None);
        {
            let (data, found) = DataDir::open(&dir).unwrap();
            assert_eq!(found, None);
            data.write_ident(&ident).unwrap();
            assert!(open_error(&dir).contains("in use by another process"));
        }
        let (_data, found) = DataDir::open(&dir).unwrap();
        assert_eq!(found, Some(ident));
    }

    #[test]
    fn a_foreign_directory_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
        assert!(open_error(dir.path()).contains("is not a Cortado data directory"));
    }

    #[test]
    fn other_formats_and_damaged_identities_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("IDENT"), r#"{"format": 99, "whatever": []}"#).unwrap();
        assert!(open_error(dir.path()).contains("format 99"));
        fs::write(dir.path().join("IDENT"), r#"{"format": 1, "whatever": []}"#).unwrap();
        assert!(open_error(dir.path()).contains("format 1 of an older version"));
        fs::write(dir.path().join("IDENT"), r#"{"format": 2, "cluster_id"#).unwrap();
        assert!(open_error(dir.path()).contains("is damaged"));
        fs::write(dir.path().join("IDENT"), r#"{"format": 0, "whatever": []}"#).unwrap();
        assert!(open_error(dir.path()).contains("no format 0"));
    }

    #[test]
    fn a_rejected_node_removes_what_it_created() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("new/data");
        DataDir::open(&dir).unwrap().0.remove_created();
        assert_eq!(files(temporary.path()), [], "directories and lock are gone");

        // Existing entries stay: first the directory, then also the lock.
        fs::create_dir_all(&dir).unwrap();
        DataDir::open(&dir).unwrap().0.remove_created();
        assert!(dir.is_dir() && files(&dir).is_empty());
        drop(DataDir::open(&dir).unwrap());
        DataDir::open(&dir).unwrap().0.remove_created();
        assert_eq!(files(&dir), [(dir.join("LOCK").display().to_string(), Vec::new())]);
    }

    #[test]
    fn an_identity_is_never_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("data");
        let (data, _) = DataDir::open(&dir).unwrap();
        data.write_ident(&Ident::new(ClusterId::new(7), StoreId::new(3), None)).unwrap();
        data.remove_created();
        assert!(dir.join("IDENT").exists() && dir.join("LOCK").exists());
    }

    #[test]
    fn a_removed_lock_file_is_detected() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("data");
        let (rejected, _) = DataDir::open(&dir).unwrap();
        let stale = File::open(dir.join("LOCK")).unwrap();
        assert!(is_file_at(&stale, &dir.join("LOCK")).unwrap());
        rejected.remove_created();
        assert!(!is_file_at(&stale, &dir.join("LOCK")).unwrap(), "removed");
        let _next = DataDir::open(&dir).unwrap();
        assert!(!is_file_at(&stale, &dir.join("LOCK")).unwrap(), "another file");
    }
}
