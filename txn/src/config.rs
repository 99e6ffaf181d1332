//! Settings of the transaction coordinator.

use std::time::Duration;

/// Limits of one transaction's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Bytes of keys and values buffered, including those kept to undo a statement. Default 64 MiB.
    pub bytes: usize,
    /// Keys written. Default 300,000.
    pub keys: usize,
    /// Bytes of one key. Default 16 KiB.
    pub key_bytes: usize,
    /// Bytes of one value. Default 4 MiB.
    pub value_bytes: usize,
}

impl Default for BufferLimits {
    fn default() -> BufferLimits {
        BufferLimits { bytes: 64 << 20, keys: 300_000, key_bytes: 16 << 10, value_bytes: 4 << 20 }
    }
}

/// Limits of the commit protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLimits {
    /// Keys of one prewrite batch. Default 512, at least 1.
    pub batch_keys: usize,
    /// About the most bytes that regions write for one prewrite batch; at least one change is in each. Default 1 MiB.
    pub batch_bytes: usize,
    /// Prewrite batches under way at once. Default 8, at least 1.
    pub batches_in_flight: usize,
    /// How long a prewrite waits for locks of living transactions. Default 20 s.
    pub lock_wait: Duration,
    /// How often a newer commit_ts is fetched because the last came too early. Default 16.
    pub commit_ts_retries: u32,
}

impl Default for CommitLimits {
    fn default() -> CommitLimits {
        CommitLimits {
            batch_keys: 512,
            batch_bytes: 1 << 20,
            batches_in_flight: 8,
            lock_wait: Duration::from_secs(20),
            commit_ts_retries: 16,
        }
    }
}

/// Settings of a [`crate::Database`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnConfig {
    /// Limits of the write buffer.
    pub buffer: BufferLimits,
    /// Limits of the commit protocol.
    pub commit: CommitLimits,
    /// How long a lock outlives its last sign of life, so how long others wait for a coordinator that died. Heartbeats
    /// go out every third of it. Default 3 s, at least 30 ms.
    pub lock_ttl: Duration,
    /// How long a read waits for locks of living transactions. Default 20 s.
    pub read_lock_wait: Duration,
    /// Fates of other transactions remembered. Default 4,096, at least 1.
    pub decided_transactions: usize,
    /// Transactions whose secondaries are committed, or whose locks are rolled back, in the background; beyond it the
    /// session waits for this work. Default 256.
    pub background: usize,
    /// Attempts of [`crate::Database::run`]. Default 24, at least 1.
    pub run_attempts: u32,
    /// Seed of the jitter of waits; drawn from the system when absent.
    pub seed: Option<u64>,
}

impl Default for TxnConfig {
    fn default() -> TxnConfig {
        TxnConfig {
            buffer: BufferLimits::default(),
            commit: CommitLimits::default(),
            lock_ttl: Duration::from_secs(3),
            read_lock_wait: Duration::from_secs(20),
            decided_transactions: 4_096,
            background: 256,
            run_attempts: 24,
            seed: None,
        }
    }
}

impl TxnConfig {
    /// Says which setting is below its minimum.
    pub fn validate(&self) -> Result<(), String> {
        let least = [
            ("commit.batch_keys", self.commit.batch_keys >= 1),
            ("commit.batches_in_flight", self.commit.batches_in_flight >= 1),
            ("lock_ttl", self.lock_ttl >= Duration::from_millis(30)),
            ("decided_transactions", self.decided_transactions >= 1),
            ("run_attempts", self.run_attempts >= 1),
        ];
        match least.iter().find(|(_, fine)| !fine) {
            Some((name, _)) => Err(format!("txn.{name} is below its minimum")),
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
    }
}
