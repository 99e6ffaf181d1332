//! Settings of the transport.

use std::net::IpAddr;
use std::time::Duration;

use super::cluster_id::ClusterId;
use super::proto::{PROTOCOL, wire};
use crate::region::StoreId;

/// Most bytes of a frame besides its messages.
const FRAME_OVERHEAD: usize = 64;

/// Settings of a store's transport, both directions.
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// The cluster. Streams of other clusters are refused.
    pub cluster: ClusterId,
    /// This store.
    pub store: StoreId,
    /// Target size of a frame in bytes: a frame is closed at this size even if more is queued. Default 512 KiB.
    pub frame_bytes: usize,
    /// Most bytes of a frame, hence of a message, on both sides. Default 16 MiB.
    pub max_frame_bytes: usize,
    /// Most messages queued for one lane to a store. Default 8192.
    pub queue_messages: usize,
    /// Most bytes queued for one lane to a store. Default 32 MiB.
    pub queue_bytes: usize,
    /// Timeout for connecting with the handshake, and for the first chunk of a snapshot. Default 2 s.
    pub connect_timeout: Duration,
    /// The local address of connections to other stores; by default the system chooses.
    pub connect_from: Option<IpAddr>,
    /// Interval of keep-alive probes, and the timeout of their answers. Default 3 s.
    pub keep_alive: Duration,
    /// First backoff after a failure. Default 50 ms.
    pub backoff_floor: Duration,
    /// Longest backoff after a failure. Default 2 s.
    pub backoff_cap: Duration,
    /// Snapshot files sent concurrently. Default 2.
    pub snapshots_sending: usize,
    /// Snapshot files that may wait to be sent, beyond those. Default 32.
    pub snapshots_waiting: usize,
    /// Snapshot files received concurrently. Default 4.
    pub snapshots_receiving: usize,
    /// Rate limit for sending snapshot files, in bytes per second. Default 100 MiB.
    pub snapshot_bytes_per_second: u64,
    /// Longest time without progress in a snapshot transfer. At the end the receiver verifies and syncs the file, for
    /// which it has this time and a second more for each 16 MiB. Default 30 s.
    pub snapshot_stall: Duration,
    /// Seed of the backoff jitter; different on every store.
    pub jitter_seed: u64,
}

/// Bytes per second at which the slowest disk reads and syncs.
const SLOWEST_DISK: u64 = 16 << 20;

impl TransportOptions {
    /// The default settings.
    pub fn new(cluster: ClusterId, store: StoreId, jitter_seed: u64) -> TransportOptions {
        TransportOptions {
            cluster,
            store,
            frame_bytes: 512 << 10,
            max_frame_bytes: 16 << 20,
            queue_messages: 8192,
            queue_bytes: 32 << 20,
            connect_timeout: Duration::from_secs(2),
            connect_from: None,
            keep_alive: Duration::from_secs(3),
            backoff_floor: Duration::from_millis(50),
            backoff_cap: Duration::from_secs(2),
            snapshots_sending: 2,
            snapshots_waiting: 32,
            snapshots_receiving: 4,
            snapshot_bytes_per_second: 100 << 20,
            snapshot_stall: Duration::from_secs(30),
            jitter_seed,
        }
    }

    /// How long a receiver may take to verify and sync a file of `bytes` bytes.
    pub(super) fn snapshot_answer_timeout(&self, bytes: u64) -> Duration {
        self.snapshot_stall.saturating_add(Duration::from_secs(bytes / SLOWEST_DISK))
    }

    /// Most bytes of a message: the frame limit less the overhead.
    pub(super) fn max_message_bytes(&self) -> usize {
        self.max_frame_bytes.saturating_sub(FRAME_OVERHEAD)
    }

    /// The interval at which the receiver of messages checks that it has received anything. The sender probes three
    /// times as often.
    pub(super) fn silence_max(&self) -> Duration {
        self.keep_alive * 3
    }

    /// The Hello of a snapshot's stream to store `to`.
    pub(super) fn hello(&self, to: StoreId) -> wire::Hello {
        wire::Hello {
            protocol: PROTOCOL,
            cluster_id: self.cluster.get(),
            from_store: self.store.get(),
            to_store: to.get(),
        }
    }
}
