//! What a run saw of the cluster, to check that the seeds cover enough.

/// Counts over a run, or over many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Events of all kinds.
    pub events: u64,
    /// Terms with a leader, over all regions.
    pub elections: u64,
    /// Raft messages sent.
    pub messages: u64,
    /// Messages of which no copy arrived.
    pub lost: u64,
    /// Snapshots that arrived with their message.
    pub snapshots: u64,
    /// Snapshots installed.
    pub installed: u64,
    /// Writes confirmed in a region while a snapshot of it was built.
    pub writes_in_builds: u64,
    /// Writes confirmed in a region while a snapshot of it was sent.
    pub writes_in_sends: u64,
    /// Writes confirmed in a region while a snapshot of it was installed.
    pub writes_in_installs: u64,
    /// Snapshots that met a busy receiver; their files are sent again.
    pub busy_receivers: u64,
    /// Snapshots built anew for such a receiver.
    pub rebuilt_for_busy: u64,
    /// Stores that lost power.
    pub crashes: u64,
    /// Stores that stopped after a failed write or sync.
    pub poisoned: u64,
    /// Faults that cut links.
    pub partitions: u64,
    /// Stores paused.
    pub pauses: u64,
    /// Syncs of a log that a fault made slow.
    pub slow_syncs: u64,
    /// Links that a fault made slow.
    pub slow_links: u64,
    /// Store turns stalled between stages.
    pub stalled_turns: u64,
    /// Candidates that lost power while campaigning.
    pub candidates: u64,
}

impl Stats {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Stats) {
        self.events += other.events;
        self.elections += other.elections;
        self.messages += other.messages;
        self.lost += other.lost;
        self.snapshots += other.snapshots;
        self.installed += other.installed;
        self.writes_in_builds += other.writes_in_builds;
        self.writes_in_sends += other.writes_in_sends;
        self.writes_in_installs += other.writes_in_installs;
        self.busy_receivers += other.busy_receivers;
        self.rebuilt_for_busy += other.rebuilt_for_busy;
        self.crashes += other.crashes;
        self.poisoned += other.poisoned;
        self.partitions += other.partitions;
        self.pauses += other.pauses;
        self.slow_syncs += other.slow_syncs;
        self.slow_links += other.slow_links;
        self.stalled_turns += other.stalled_turns;
        self.candidates += other.candidates;
    }
}
