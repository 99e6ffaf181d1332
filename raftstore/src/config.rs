//! Settings of the multi-Raft layer: meaning, default, minimum, and the relations between them.

use std::time::Duration;

#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;

/// Settings of a store. `Default` is what a node runs with; `validate` is called by whoever opens a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Length of a Raft tick. Default 100 ms, minimum 1 ms.
    pub tick_interval: Duration,
    /// Ticks without a word from the leader before an election, at least; the real timeout is drawn from this to twice this.
    /// Default 10, minimum 3.
    pub election_ticks: u32,
    /// Ticks between heartbeats. Default 2, minimum 1, less than half of `election_ticks`.
    pub heartbeat_ticks: u32,
    /// How long a leader may answer reads alone after the moment it sent what a quorum confirmed. Default 800 ms; less than
    /// (`election_ticks` - 1) ticks, because a follower may count its first tick at once.
    pub max_lease: Duration,
    /// How long a read or a proposal may wait for a quorum before it fails as not ready (reads only: a proposal's fate stays open).
    /// Default 3 s, minimum one tick.
    pub read_timeout: Duration,
    /// Most messages the store's mailbox holds. Default 16384, minimum 16.
    pub mailbox_capacity: usize,
    /// Most messages one turn of the store takes. Default 4096, minimum 1.
    pub turn_messages: usize,
    /// Most log batches submitted and not yet durable. Default 8, minimum 1.
    pub inflight_log_batches: usize,
    /// Most bytes of log that are not durable yet before proposals and appends are refused; no more is submitted while half of it is on its way.
    /// Default 64 MiB, minimum 64 KiB.
    pub log_backlog_bytes: usize,
    /// Most bytes of committed entries waiting for apply before proposals and appends are refused, and most bytes of a region's entries
    /// waiting to be committed. Default 64 MiB, minimum 64 KiB.
    pub apply_backlog_bytes: usize,
    /// About the most bytes one write of apply holds. Default 4 MiB, minimum 4 KiB.
    pub apply_batch_bytes: usize,
    /// Most proposals of a region waiting for their fate. Default 8192, minimum 1.
    pub pending_proposals: usize,
    /// Most reads of a region waiting for a read index. Default 8192, minimum 1.
    pub pending_reads: usize,
    /// Largest write batch accepted, in bytes. It travels in one message, so the transport's frames must be larger. Default 8 MiB, minimum 1 KiB.
    pub max_proposal_bytes: usize,
    /// Most bytes of entries in one append message, unless a single entry is larger; also what goes into the log as one when many proposals
    /// come together. Default 256 KiB, minimum 1 KiB, at most `apply_backlog_bytes`.
    pub max_append_bytes: u64,
    /// Most append messages to one follower that are not acknowledged. What a follower that lags is sent at once is this many times
    /// `max_append_bytes`, and should fit into the transport's queue. Default 64, minimum 1.
    pub max_inflight_appends: usize,
    /// Bytes of acknowledged entries of a region kept in memory for its followers. Default 1 MiB, minimum 0.
    pub entry_cache_bytes: usize,
    /// Ticks between looks at what of the log may be dropped. Default 50, minimum 1.
    pub log_gc_ticks: u32,
    /// Entries kept behind the last one even if nobody needs them. Default 1024, minimum 0.
    pub log_tail_entries: u64,
    /// Most entries a leader keeps for a follower that lags; a slower one gets a snapshot. Default 65536, minimum 1.
    pub log_lag_entries: u64,
    /// Most bytes (estimated from the mean size) a leader keeps for a follower that lags. Default 256 MiB, minimum 1.
    pub log_lag_bytes: u64,
    /// Bytes of log appended since the last flush of the key-value store at which a flush is asked for. Default 128 MiB, minimum 1.
    pub flush_log_bytes: u64,
    /// Bytes of the log that are read and verified each second, so that damage is found while other replicas are whole. Default 1 MiB; 0 for none.
    pub log_scrub_bytes: u64,
    /// How long a graceful stop waits for leadership to move away. Default 2 s.
    pub stop_timeout: Duration,
    /// A deliberate bug, so that a checker can prove it would find it.
    #[cfg(feature = "planted-bugs")]
    pub planted_bug: Option<PlantedBug>,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig {
            tick_interval: Duration::from_millis(100),
            election_ticks: 10,
            heartbeat_ticks: 2,
            max_lease: Duration::from_millis(800),
            read_timeout: Duration::from_secs(3),
            mailbox_capacity: 16_384,
            turn_messages: 4096,
            inflight_log_batches: 8,
            log_backlog_bytes: 64 << 20,
            apply_backlog_bytes: 64 << 20,
            apply_batch_bytes: 4 << 20,
            pending_proposals: 8192,
            pending_reads: 8192,
            max_proposal_bytes: 8 << 20,
            max_append_bytes: 256 << 10,
            max_inflight_appends: 64,
            entry_cache_bytes: 1 << 20,
            log_gc_ticks: 50,
            log_scrub_bytes: 1 << 20,
            log_tail_entries: 1024,
            log_lag_entries: 65_536,
            log_lag_bytes: 256 << 20,
            flush_log_bytes: 128 << 20,
            stop_timeout: Duration::from_secs(2),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }
}

/// A setting out of its range, or two that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store setting: {0}")]
pub struct InvalidConfig(pub String);

impl StoreConfig {
    /// The election timeout: the least time a follower that heard from a leader waits before it votes for another.
    pub fn election_timeout(&self) -> Duration {
        self.tick_interval * self.election_ticks
    }

    /// Checks every minimum and relation.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let ensure = |ok: bool, what: &str| if ok { Ok(()) } else { Err(InvalidConfig(what.to_string())) };
        ensure(self.tick_interval >= Duration::from_millis(1), "tick_interval is below 1 ms")?;
        ensure(self.election_ticks >= 3, "election_ticks is below 3")?;
        ensure(self.heartbeat_ticks >= 1, "heartbeat_ticks is below 1")?;
        ensure(self.heartbeat_ticks * 2 < self.election_ticks, "heartbeat_ticks is not below half of election_ticks")?;
        ensure(
            self.max_lease < self.tick_interval * (self.election_ticks - 1),
            "max_lease is not below the election timeout less one tick",
        )?;
        ensure(!self.max_lease.is_zero(), "max_lease is zero")?;
        ensure(self.read_timeout >= self.tick_interval, "read_timeout is below one tick")?;
        ensure(self.mailbox_capacity >= 16, "mailbox_capacity is below 16")?;
        ensure(self.turn_messages >= 1, "turn_messages is below 1")?;
        ensure(self.inflight_log_batches >= 1, "inflight_log_batches is below 1")?;
        ensure(self.log_backlog_bytes >= 64 << 10, "log_backlog_bytes is below 64 KiB")?;
        ensure(self.apply_backlog_bytes >= 64 << 10, "apply_backlog_bytes is below 64 KiB")?;
        ensure(self.apply_batch_bytes >= 4 << 10, "apply_batch_bytes is below 4 KiB")?;
        ensure(self.pending_proposals >= 1, "pending_proposals is below 1")?;
        ensure(self.pending_reads >= 1, "pending_reads is below 1")?;
        ensure(self.max_proposal_bytes >= 1 << 10, "max_proposal_bytes is below 1 KiB")?;
        ensure(self.max_append_bytes >= 1 << 10, "max_append_bytes is below 1 KiB")?;
        ensure(
            self.max_append_bytes <= self.apply_backlog_bytes as u64,
            "max_append_bytes is above apply_backlog_bytes",
        )?;
        ensure(self.max_inflight_appends >= 1, "max_inflight_appends is below 1")?;
        ensure(self.log_gc_ticks >= 1, "log_gc_ticks is below 1")?;
        ensure(self.log_lag_entries >= 1, "log_lag_entries is below 1")?;
        ensure(self.log_lag_bytes >= 1, "log_lag_bytes is below 1")?;
        ensure(self.flush_log_bytes >= 1, "flush_log_bytes is below 1")
    }

    /// Whether this deliberate bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn planted(&self, bug: PlantedBug) -> bool {
        self.planted_bug == Some(bug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_valid() {
        StoreConfig::default().validate().unwrap();
    }

    #[test]
    fn lease_must_end_a_tick_before_the_election_timeout() {
        let ms = Duration::from_millis;
        let config = |max_lease| StoreConfig { max_lease, ..StoreConfig::default() };
        config(ms(899)).validate().unwrap();
        assert!(config(ms(900)).validate().is_err());
        assert!(config(ms(0)).validate().is_err());
    }
}
