//! Starts a replica from its recovered state.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use engine::log::LogEngine;
use raft::RawNode;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::effects::Effects;
use super::lease::Lease;
use super::outgoing::Outgoing;
use super::proposal::Proposals;
use super::read::ReadQueue;
use super::replica::{Acknowledged, Peer, PeerFault, Unappended};
use crate::config::StoreConfig;
use crate::records::LogPosition;
use crate::region::{PeerMeta, Region};
use crate::storage::{PeerStorage, Recovered};
use crate::time::MonoTime;

/// The parts of a [`Peer`].
pub(crate) struct PeerStart {
    pub(crate) region: Arc<Region>,
    pub(crate) me: PeerMeta,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) log: LogEngine,
    pub(crate) recovered: Recovered,
    pub(crate) applied: LogPosition,
    pub(crate) seed: u64,
}

impl Peer {
    /// A replica with its recovered state. The only voter of a region campaigns at once: no other replica can hold a
    /// lease.
    pub(crate) fn new(mut start: PeerStart, now: MonoTime) -> Result<Peer, PeerFault> {
        let promised = now.plus(start.config.election_timeout());
        let promised_until = if planted_amnesia(&mut start) { now } else { promised };
        let PeerStart { region, me, config, log, mut recovered, applied, seed } = start;
        let storage = PeerStorage::new(log, &region, &recovered, config.entry_cache_bytes)
            .map_err(|what| PeerFault::Log(region.id, what))?;
        let fault = |error: raft::Error| PeerFault::Start(region.id, error.to_string());
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        // For raft-rs the log begins behind a snapshot whose installation was interrupted.
        let known = if recovered.intent.is_some() { recovered.start } else { applied };
        let node = RawNode::new(&raft_config(&config, me, known), storage, &logger).map_err(fault)?;
        let observed = (node.raft.state, node.raft.term);
        let mut peer = Peer {
            last_change: 0,
            unappended: Unappended::default(),
            proposals: Proposals::new(region.id, config.pending_proposals),
            reads: ReadQueue::new(config.pending_reads),
            node,
            me,
            rng: StdRng::seed_from_u64(seed),
            randomized_timeout: 0,
            observed,
            leader_term: None,
            announced: None,
            noticed_commit: 0,
            acknowledged: Acknowledged::default(),
            handed_over: None,
            inherited: None,
            hands_over: false,
            lease: Lease::Expired,
            proposed: VecDeque::new(),
            emitted: applied.index.get(),
            applied,
            promised_until,
            last_heard: BTreeMap::new(),
            inflight: VecDeque::new(),
            next_write: 1,
            durable: 0,
            vote_write: 0,
            written_hard_state: recovered.hard_state,
            installing: None,
            outgoing: Outgoing::default(),
            offers: BTreeMap::new(),
            #[cfg(feature = "planted-bugs")]
            leaked: 0,
            out: Effects::default(),
            fault: None,
            region,
            config,
        };
        peer.draw_timeout();
        if let Some(intent) = recovered.intent.take() {
            peer.continue_install(intent, now);
        } else if peer.is_only_voter() {
            peer.campaign(now);
        }
        Ok(peer)
    }
}

/// Forgets the vote or the promise if a planted bug says so. Returns whether the promise is forgotten.
fn planted_amnesia(_start: &mut PeerStart) -> bool {
    #[cfg(feature = "planted-bugs")]
    {
        use crate::config::PlantedBug::{PromiseForgottenOnRestart, VoteForgottenOnRestart};
        let vote = _start.config.planted(VoteForgottenOnRestart);
        if vote {
            _start.recovered.hard_state.vote = 0;
        }
        vote || _start.config.planted(PromiseForgottenOnRestart)
    }
    #[cfg(not(feature = "planted-bugs"))]
    false
}

fn raft_config(config: &StoreConfig, me: PeerMeta, applied: LogPosition) -> raft::Config {
    raft::Config {
        id: me.id.get(),
        election_tick: config.election_ticks as usize,
        heartbeat_tick: config.heartbeat_ticks as usize,
        applied: applied.index.get(),
        max_size_per_msg: config.max_append_bytes,
        max_inflight_msgs: config.max_inflight_appends,
        check_quorum: true,
        pre_vote: true,
        batch_append: false,
        // `commit_notice` does it.
        skip_bcast_commit: true,
        max_uncommitted_size: config.apply_backlog_bytes as u64,
        max_committed_size_per_ready: config.apply_batch_bytes as u64,
        ..raft::Config::default()
    }
}
