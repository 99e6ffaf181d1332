//! Settings of the transaction coordinator: meaning, default and minimum of each.

use std::time::Duration;

use tso::oracle::WINDOW_MS;

#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;

/// The default of [`TxnConfig::lock_ttl`].
const LOCK_TTL: Duration = Duration::from_secs(3);
/// A handover of the oracle moves its time forward by a window at most. So one leaves a live lock two thirds of its
/// ttl, and two leave a third: the interval of its heartbeats, each of which gives it the whole ttl again.
const _: () = assert!(LOCK_TTL.as_millis() >= 3 * WINDOW_MS as u128);

/// What reads of replicas that wait to be compared weigh at most together, in KiB.
pub(crate) const SHADOW_KIB: usize = 8 << 10;

/// Limits of one transaction's write buffer. Exceeding one fails the write with [`crate::TxnError::TooLarge`], or
/// with [`crate::TxnError::RowTooLarge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Bytes of keys and values in the buffer, including those kept for rollback to a savepoint, plus 64 bytes for
    /// each. Default 256 MiB.
    pub bytes: usize,
    /// Number of keys written. Default 2,000,000.
    pub keys: usize,
    /// Bytes of one key. Default 16 KiB.
    pub key_bytes: usize,
    /// Bytes of one value. Default 4 MiB.
    pub value_bytes: usize,
}

impl Default for BufferLimits {
    fn default() -> BufferLimits {
        BufferLimits { bytes: 256 << 20, keys: 2_000_000, key_bytes: 16 << 10, value_bytes: 4 << 20 }
    }
}

/// Limits of the commit protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLimits {
    /// The most keys of one prewrite batch. Default 512, at least 1.
    pub batch_keys: usize,
    /// The most bytes, approximately, that regions write for one prewrite batch. A batch holds at least one mutation.
    /// Default 1 MiB.
    pub batch_bytes: usize,
    /// The most prewrite batches in flight. Default 8, at least 1.
    pub batches_in_flight: usize,
    /// How long a commit waits for the locks of live transactions, counted from its start. Default 20 s.
    pub lock_wait: Duration,
    /// Whether a transaction in one region is committed in one phase. Default true.
    pub one_phase: bool,
    /// The most keys of an asynchronous commit. The lock of its primary names them all. Default 64; 0 for none.
    pub async_keys: usize,
    /// The most bytes of these keys. Default 4 KiB.
    pub async_key_bytes: usize,
    /// How often a newer commit_ts is fetched because the last was below a lock's min_commit_ts. Default 16.
    pub commit_ts_retries: u32,
}

impl Default for CommitLimits {
    fn default() -> CommitLimits {
        CommitLimits {
            batch_keys: 512,
            batch_bytes: 1 << 20,
            batches_in_flight: 8,
            lock_wait: Duration::from_secs(20),
            one_phase: true,
            async_keys: 64,
            async_key_bytes: 4 << 10,
            commit_ts_retries: 16,
        }
    }
}

/// Settings of a [`crate::Database`].
#[derive(Clone, Debug, PartialEq)]
pub struct TxnConfig {
    /// Limits of the write buffer.
    pub buffer: BufferLimits,
    /// Limits of the commit protocol.
    pub commit: CommitLimits,
    /// How long a lock lives after its last heartbeat: how long others wait for a dead coordinator. A heartbeat is sent
    /// every third of it. A handover of the oracle takes up to a second of it. Default 3 s, at least 30 ms.
    pub lock_ttl: Duration,
    /// How long a read waits for the locks of other transactions, counted from the first one it meets. Default 20 s.
    pub read_lock_wait: Duration,
    /// The most entries in the cache of other transactions' final statuses. Default 4,096, at least 1.
    pub status_cache_entries: usize,
    /// The most commits that clean up in the background: commit their secondaries, or roll back their locks. A commit
    /// beyond it cleans up before it answers. Default 256.
    pub background: usize,
    /// The most attempts of [`crate::Database::run`]. Default 24, at least 1.
    pub run_attempts: u32,
    /// The fraction of the reads at replicas that are read again on the leader and compared, in the background, as far
    /// as there is room. Default 0, from 0 to 1.
    pub shadow_reads: f64,
    /// The seed of the jitter of pauses; drawn from the system if absent.
    pub seed: Option<u64>,
    /// A deliberate bug, so that a test can prove that it finds it.
    #[cfg(feature = "planted-bugs")]
    pub planted_bug: Option<PlantedBug>,
}

impl Default for TxnConfig {
    fn default() -> TxnConfig {
        TxnConfig {
            buffer: BufferLimits::default(),
            commit: CommitLimits::default(),
            lock_ttl: LOCK_TTL,
            read_lock_wait: Duration::from_secs(20),
            status_cache_entries: 4_096,
            background: 256,
            run_attempts: 24,
            shadow_reads: 0.0,
            seed: None,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }
}

impl TxnConfig {
    /// Checks every bound.
    ///
    /// # Errors
    /// Names the first setting that is out of its bounds.
    pub fn validate(&self) -> Result<(), String> {
        let least = [
            ("commit.batch_keys", self.commit.batch_keys >= 1),
            ("commit.batches_in_flight", self.commit.batches_in_flight >= 1),
            ("lock_ttl", self.lock_ttl >= Duration::from_millis(30)),
            ("status_cache_entries", self.status_cache_entries >= 1),
            ("run_attempts", self.run_attempts >= 1),
        ];
        match least.iter().find(|(_, fine)| !fine) {
            Some((name, _)) => Err(format!("txn.{name} is below its minimum")),
            None if !(0.0..=1.0).contains(&self.shadow_reads) => {
                Err("txn.shadow_reads is not between 0 and 1".to_owned())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_minimums_are_checked() {
        assert_eq!(TxnConfig::default().validate(), Ok(()));
        let config = TxnConfig { lock_ttl: Duration::from_millis(29), ..TxnConfig::default() };
        assert_eq!(config.validate(), Err("txn.lock_ttl is below its minimum".to_owned()));
        for fraction in [-0.1, 1.1, f64::NAN] {
            let config = TxnConfig { shadow_reads: fraction, ..TxnConfig::default() };
            assert!(config.validate().is_err(), "{fraction}");
        }
    }
}
