//! The data directory: its lock, and the identity of the store in it.
//!
//! ```text
//! DIR/LOCK     held by the running process
//! DIR/IDENT    which store of which cluster this is (JSON, versioned, replaced atomically)
//! DIR/log/     the Raft log
//! DIR/kv/      the replicated state
//! DIR/snap/    snapshot files on their way in or out
//! ```
//!
//! Guarantees: nothing is written before the directory is known to be ours (empty or missing, or holding a readable IDENT), locked,
//! and of a format this version reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use raftstore::StoreId;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::plan::{ClusterId, Plan};

/// The newest format of a data directory that this version reads, and the one it writes.
const FORMAT: u32 = 1;

/// Which store this is. Once written, cluster and store never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ident {
    /// Version of the whole data directory.
    pub(crate) format: u32,
    /// The cluster.
    pub(crate) cluster_id: ClusterId,
    /// This store's number in it.
    #[serde(with = "store_number")]
    pub(crate) store_id: StoreId,
    /// Whether the first regions have been created; until then the creation is repeated at start.
    pub(crate) bootstrapped: bool,
    /// How the cluster began, on the stores that were part of it.
    pub(crate) plan: Option<Plan>,
    /// Whether every node of the plan is known to have carried it out.
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
    /// The identity of a store whose regions are still to be created.
    pub(crate) fn new(cluster_id: ClusterId, store_id: StoreId, plan: Option<Plan>) -> Ident {
        Ident { format: FORMAT, cluster_id, store_id, bootstrapped: false, plan, complete: false }
    }

    /// The identity of a store that joined a running cluster: there are no first regions to create.
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
    /// It holds other things.
    #[error("{0} is not empty and is not a Cortado data directory")]
    Foreign(PathBuf),
    /// It was written by a newer version.
    #[error("data directory {dir} has format {found}, this version reads up to {FORMAT}; use a newer cortado")]
    Newer { dir: PathBuf, found: u32 },
    /// IDENT does not parse.
    #[error("{path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A locked data directory. The lock ends with it.
pub(crate) struct DataDir {
    dir: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Locks `dir`, creating it if it is missing, and reads who it belongs to.
    pub(crate) fn open(dir: &Path) -> Result<(DataDir, Option<Ident>), DataDirError> {
        let ident = if dir.exists() { inspect(dir)? } else { None };
        fs::create_dir_all(dir).map_err(|source| DataDirError::Io { path: dir.to_path_buf(), source })?;
        let lock_path = dir.join("LOCK");
        let io_error = |source| DataDirError::Io { path: lock_path.clone(), source };
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path).map_err(io_error)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DataDirError::Locked(dir.to_path_buf())),
            Err(errno) => return Err(io_error(errno.into())),
        }
        // Whoever held the lock before us may have written it since the first look.
        let ident = if ident.is_some() { ident } else { read_ident(dir)? };
        Ok((DataDir { dir: dir.to_path_buf(), _lock: lock }, ident))
    }

    /// A folder inside, created if missing.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, DataDirError> {
        let path = self.dir.join(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(DataDirError::Io { path, source }),
        }
    }

    /// Replaces IDENT; durable on return, and never half-written.
    pub(crate) fn write_ident(&self, ident: &Ident) -> Result<(), DataDirError> {
        let path = self.dir.join("IDENT");
        let write = || -> io::Result<()> {
            let temporary = self.dir.join("IDENT.new");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(ident)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|source| DataDirError::Io { path: path.clone(), source })
    }
}

/// Looks at an existing directory without changing it.
fn inspect(dir: &Path) -> Result<Option<Ident>, DataDirError> {
    let ident = read_ident(dir)?;
    if ident.is_none() {
        let io_error = |source| DataDirError::Io { path: dir.to_path_buf(), source };
        for entry in fs::read_dir(dir).map_err(io_error)? {
            let name = entry.map_err(io_error)?.file_name();
            // A node that was started but never initialised leaves these.
            let ours = ["LOCK", "IDENT.new", "lost+found"].iter().any(|known| name == *known);
            if !ours {
                return Err(DataDirError::Foreign(dir.to_path_buf()));
            }
        }
    }
    Ok(ident)
}

fn read_ident(dir: &Path) -> Result<Option<Ident>, DataDirError> {
    /// The part that every version can read.
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let path = dir.join("IDENT");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirError::Io { path, source }),
    };
    let damaged = |e: serde_json::Error| DataDirError::Damaged { path: path.clone(), why: e.to_string() };
    let Versioned { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > FORMAT {
        return Err(DataDirError::Newer { dir: dir.to_path_buf(), found: format });
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

    fn refused(dir: &Path) -> String {
        let before = files(dir);
        let error = DataDir::open(dir).map(|_| ()).unwrap_err().to_string();
        assert_eq!(files(dir), before, "a refusal changes nothing");
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
            assert!(refused(&dir).contains("in use by another process"));
        }
        let (_data, found) = DataDir::open(&dir).unwrap();
        assert_eq!(found, Some(ident));
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
        assert!(refused(dir.path()).contains("is not a Cortado data directory"));
    }

    #[test]
    fn newer_and_damaged_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("IDENT"), r#"{"format": 99, "whatever": []}"#).unwrap();
        assert!(refused(dir.path()).contains("format 99"));
        fs::write(dir.path().join("IDENT"), r#"{"format": 1, "cluster_id"#).unwrap();
        assert!(refused(dir.path()).contains("is damaged"));
    }
}
