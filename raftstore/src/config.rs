//! Settings of the multi-Raft layer: meaning, default, minimum, and relations between them.

use std::time::Duration;

/// Settings of a store. A node runs with `Default`. Opening a store calls `validate`.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Length of a Raft tick. Default 100 ms, minimum 1 ms.
    pub tick_interval: Duration,
    /// Least ticks without a message from the leader before an election. The actual timeout is drawn from this to twice
    /// this. Default 10, minimum 3.
    pub election_ticks: u32,
    /// Ticks between heartbeats. Default 2, minimum 1, less than half of `election_ticks`.
    pub heartbeat_ticks: u32,
    /// Length of the leader lease, from the time the leader sent the message that a quorum confirmed. Default 800 ms;
    /// less than (`election_ticks` - 1) ticks, because a follower may count its first tick at once.
    pub max_lease: Duration,
    /// How long a read waits for a quorum before it fails as not ready, and how long a proposal of an ended leadership
    /// waits for its outcome before it becomes undetermined. Default 3 s, minimum one tick.
    pub read_timeout: Duration,
    /// Capacity of the store's mailbox in messages. Default 16384, minimum 16.
    pub mailbox_capacity: usize,
    /// Most messages processed in one turn of the store. Default 4096, minimum 1.
    pub turn_messages: usize,
    /// Log batches submitted and not durable from which on smaller ones are merged. Default 8, minimum 1.
    pub inflight_log_batches: usize,
    /// Most bytes of log that are not durable. Above it proposals and appends are refused; above half of it no more is
    /// submitted. Default 64 MiB, minimum 64 KiB.
    pub log_backlog_bytes: usize,
    /// How long the oldest batch may wait for its sync before the store offers its leaderships to other stores. Shorter
    /// hiccups of a disk delay writes and take no leadership. Default 2 s, minimum one tick.
    pub log_stall: Duration,
    /// Most bytes of committed entries that wait for apply; above it proposals and appends are refused. Also the most
    /// bytes of a region's uncommitted entries. Default 64 MiB, minimum 64 KiB.
    pub apply_backlog_bytes: usize,
    /// Target size of one apply write in bytes. Default 4 MiB, minimum 4 KiB.
    pub apply_batch_bytes: usize,
    /// Most pending proposals of a region. Default 8192, minimum 1.
    pub pending_proposals: usize,
    /// Most reads of a region that wait for a read index. Default 8192, minimum 1.
    pub pending_reads: usize,
    /// Largest write batch in bytes. It travels in one message, so the transport's frames must be larger. Default 8
    /// MiB, minimum 1 KiB.
    pub max_proposal_bytes: usize,
    /// Most bytes of entries in one append message, unless a single entry is larger. Also the most bytes of proposals
    /// appended to the log together. Default 256 KiB, minimum 1 KiB, at most `apply_backlog_bytes`.
    pub max_append_bytes: u64,
    /// Most unacknowledged append messages to one follower. A lagging follower is sent up to this many times
    /// `max_append_bytes` at once, which should fit into the transport's queue. Default 64, minimum 1.
    pub max_inflight_appends: usize,
    /// Bytes of a region's acknowledged entries cached for its followers. Default 1 MiB, minimum 0.
    pub entry_cache_bytes: usize,
    /// Ticks between log truncations. Default 50, minimum 1.
    pub log_gc_ticks: u32,
    /// Entries kept at the end of the log even if no follower needs them. Default 1024, minimum 0.
    pub log_tail_entries: u64,
    /// Most entries a leader keeps for a lagging follower; a follower further behind gets a snapshot, which then holds
    /// the log without this limit. Default 65536, minimum 1.
    pub log_lag_entries: u64,
    /// The same limit in bytes, estimated from the mean entry size. Default 256 MiB, minimum 1.
    pub log_lag_bytes: u64,
    /// Free bytes on the log's disk below which a leader no longer holds the log for snapshots that followers have not
    /// caught up from. Default 4 GiB; 0 holds it until the disk is full.
    pub log_hold_free_bytes: u64,
    /// Bytes of log appended since the last flush of the key-value store that trigger the next flush. Default 128 MiB,
    /// minimum 1.
    pub flush_log_bytes: u64,
    /// Bytes of log scrubbed per second, so that damage is found while other replicas are intact. Default 1 MiB; 0
    /// turns scrubbing off.
    pub log_scrub_bytes: u64,
    /// How long a graceful stop waits for leadership transfers. Default 2 s.
    pub stop_timeout: Duration,
    /// A deliberate bug, so that a checker can prove that it finds it.
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
            log_stall: Duration::from_secs(2),
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
            log_hold_free_bytes: 4 << 30,
            flush_log_bytes: 128 << 20,
            stop_timeout: Duration::from_secs(2),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }
}

/// A deliberate bug, so that a simulator can prove that its checkers find real ones. Inert unless
/// `StoreConfig::planted_bug` names it.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlantedBug {
    /// Entries and votes count as durable once queued. A crash then loses acknowledged writes.
    AckBeforeFsync,
    /// A leader applies and acknowledges its entries when it appends them, before a quorum has them.
    ApplyAboveCommit,
    /// A restarted replica forgets its vote in its term.
    VoteForgottenOnRestart,
    /// A restarted replica votes at once, although it may have promised a leader not to vote for one election timeout.
    PromiseForgottenOnRestart,
    /// The leader's lease never ends, so it answers reads while a newer leader writes.
    LeaseReadAfterNewerLeader,
    /// A read index request is answered under the lease, by a clock reading from before the request arrived.
    ReadIndexUnderOldClock,
    /// Heartbeats, their answers and rounds of reads wait for the log and for apply, as everything else does.
    LivenessWaitsForDisk,
    /// A leader keeps its leadership while its log is stalled.
    StalledLeaderStays,
    /// The lease stays valid while leadership is offered to another replica.
    LeaseNotSuspected,
    /// A read joins the open round, whose index and heartbeats precede its arrival.
    ReadJoinsOlderRound,
    /// A leader reads under its lease, and evaluates, before it has applied an entry of its own term.
    OwnTermUnchecked,
    /// A lease read does not look whether its replica changed meanwhile.
    StaleGeneration,
    /// A lease read looks at the clock and the lease before it reads the data.
    LeaseCheckedEarly,
    /// A read at a replica does not look whether its data was replaced meanwhile.
    GenerationUnchecked,
    /// A replica truncates its log to its applied index, whose effects may not be flushed.
    TruncationAboveFlushed,
}

/// A setting out of range, or two settings that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid store setting: {0}")]
pub struct InvalidConfig(pub String);

impl StoreConfig {
    /// The election timeout: the least time for which a follower that heard from a leader refuses to vote for another.
    pub fn election_timeout(&self) -> Duration {
        self.tick_interval * self.election_ticks
    }

    /// Checks every minimum and every relation.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first violated rule.
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
        ensure(self.log_stall >= self.tick_interval, "log_stall is below one tick")?;
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

    /// Whether this deliberate bug is enabled.
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
