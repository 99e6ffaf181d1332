//! Creates a log where there is none.
//!
//! The one place where a log begins empty, so it is the one that must not take a log whose files are gone for none: what is created
//! in its place has forgotten everything that was promised. It refuses where anything in the directory shows that there was a
//! log ([`remains`]), and where its caller knows that there was ([`LogOptions::create`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;

use super::super::active::Active;
use super::super::error::{LogError, Result};
use super::super::file::{FileTable, LogFile, temporary_number};
use super::super::format::{FileHeader, Identity, Place};
use super::super::index::Index;
use super::super::spare::{is_unfinished, parse_spare_name};
use super::super::{LogOptions, RecoveryReport};
use super::Recovered;

/// The number of the first file of a log.
const FIRST: u64 = 1;

/// A log of one empty file, in a directory with these names and no log file among them.
pub(super) fn create(disk: &dyn Disk, names: &[String], options: &LogOptions) -> Result<Recovered> {
    if names.iter().any(|name| remains(name)) {
        // Which files there were is lost with them.
        return Err(LogError::missing("*.log"));
    }
    if !options.create {
        return Err(LogError::NoLog);
    }
    #[expect(clippy::disallowed_methods, reason = "the identity of a new log is drawn once, here at the edge")]
    let identity = options.identity.unwrap_or_else(rand::random);
    let place = Place { identity: Identity(identity), seq: FIRST };
    let mut header = FileHeader {
        place,
        prev_seq: 0,
        first_lsn: 1,
        chain: 0,
        data_offset: 0,
        flags: 0,
        live: Vec::new(),
        changed: None,
    };
    let file = Arc::new(LogFile::create(disk, &mut header)?);
    let files = FileTable::default();
    files.insert(file.clone());
    let offset = file.len();
    let active = Active::new(file, offset, 0, 0);
    let report = RecoveryReport { files: 1, ..RecoveryReport::default() };
    Ok(Recovered { index: Index::new(), files, active, report, spares: BTreeSet::new(), doubts: None })
}

/// Whether a name shows that there was a log: a spare, also one that was being made, or a file after the first that was being prepared. All
/// of them come only once the first file is durable. (The first one being prepared is what a crash leaves of a log that was never there.)
fn remains(name: &str) -> bool {
    let is_spare = parse_spare_name(name).is_some() || is_unfinished(name);
    is_spare || temporary_number(name).is_some_and(|seq| seq > FIRST)
}
