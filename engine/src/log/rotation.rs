//! The change from the active file to the next one.
//!
//! In an order that leaves a whole log at every step: the old file's groups are synced; the next file is made durable under its name; the old
//! file's index and footer are written and synced; only then is the next file written to. So a sealed file always has a successor, and an
//! unsealed file before an empty one is still the active one.
//!
//! Each step may fail, and what a failed one leaves is what a crash there would: a header under a temporary name or in a spare, or, where the
//! seal fails, a next file that is empty. That one is kept, and the seal is written again before anything else is; the old file takes no
//! group meanwhile, because the next one says which is its last.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::active::{Active, Failure, fatal, refused};
use super::error::LogError;
use super::file::{LogFile, Seal, Unmade};
use super::format::{FileHeader, Place};
use super::read::Shared;

/// The next file, durable and empty, and the seal of the one before it.
pub(super) struct Next {
    file: LogFile,
    /// Where its first group goes.
    data_offset: u64,
    seal: Seal,
}

impl From<Unmade> for Failure {
    fn from(unmade: Unmade) -> Failure {
        match unmade {
            Unmade::Absent(error) => refused("next file")(error),
            Unmade::Unknown(error) => fatal("next file")(error),
        }
    }
}

impl Active {
    /// Seals this file and goes on in the next. What is refused can be tried again.
    pub(super) fn rotate(&mut self, shared: &Shared, urgent: bool) -> Result<(), Failure> {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.prepare(shared, urgent)?,
        };
        if let Err(error) = next.seal.write(&self.file) {
            self.next = Some(next);
            return Err(refused("seal")(error));
        }
        shared.sync_file(&self.file)?;
        let file = Arc::new(next.file);
        shared.files.insert(file.clone());
        if let Some(metrics) = &shared.metrics {
            metrics.rotations.inc();
        }
        let mut older = std::mem::take(&mut self.older);
        older.insert(self.seq());
        let (small_syncs, vouched) = (self.small_syncs, self.vouched);
        *self = Active { small_syncs, vouched, older, ..Active::new(file, next.data_offset, self.lsn, self.chain) };
        Ok(())
    }

    /// Goes on in the next file, which may be the reserve, if this one has a group; returns whether it did.
    pub(super) fn rotate_urgently(&mut self, shared: &Shared) -> Result<bool, Failure> {
        if !self.used {
            return Ok(false);
        }
        self.rotate(shared, true).map(|()| true)
    }

    /// Goes on in the reserve, which takes the place of this file, if this one has no group; returns whether it did.
    pub(super) fn refit(&mut self, shared: &Shared) -> Result<bool, Failure> {
        if self.used {
            return Ok(false);
        }
        let Some(fitted) = shared.refit(&self.file)?.map(Arc::new) else { return Ok(false) };
        shared.files.insert(fitted.clone());
        self.file = fitted;
        Ok(true)
    }

    /// The next file, with all that is needed to seal this one.
    fn prepare(&self, shared: &Shared, urgent: bool) -> Result<Next, Failure> {
        self.sync(shared)?;
        self.wait_for_landing(shared)?;
        // The footer must be the last of the file, and a call that failed may have left more of it than is known.
        self.file.look_up_len().map_err(refused("length"))?;
        let index = self.touched.encode(self.seq(), &shared.index);
        let seal = Seal::new(&self.file, self.offset, index, self.lsn, self.chain);
        // With the space taken first, a full disk is noticed while nothing is half done.
        self.file.prefill(seal.file_len()).map_err(refused("space for the seal"))?;
        let (file, data_offset) = self.follow(shared, urgent)?;
        Ok(Next { file, data_offset, seal })
    }

    /// The file after this one, of a spare or new, and where its first group goes.
    fn follow(&self, shared: &Shared, urgent: bool) -> Result<(LogFile, u64), Failure> {
        let mut header = self.next_header();
        if !header.fits() {
            let what = format!("the log has {} files, more than a file header can list", self.older.len() + 1);
            return Err(Failure::Refused(LogError::Invalid(what)));
        }
        let file = shared.next_file(&mut header, urgent)?;
        Ok((file, u64::from(header.data_offset)))
    }

    fn next_header(&self) -> FileHeader {
        let place = self.file.place;
        let mut older = self.older.clone();
        older.insert(place.seq);
        FileHeader {
            place: Place { seq: place.seq + 1, ..place },
            prev_seq: place.seq,
            first_lsn: self.lsn + 1,
            chain: self.chain,
            data_offset: 0,
            flags: 0,
            live: ranges(&older),
            changed: Some(self.touched.groups().collect()),
        }
    }
}

/// Numbers as ranges.
fn ranges(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => out.push((*number, *number)),
        }
    }
    out
}
