//! Delivery: what happens to the messages and snapshot files that a store sends, and the turns that build and install
//! these files.

use engine::store::StoreError;
use raft::eraftpb::MessageType;
use raftstore::ports::{Delivery, RaftMessage};
use raftstore::snapshot::{SnapshotFiles, SnapshotKey};
use raftstore::{Region, StoreId, Term};

use crate::checkers::snapshots::SnapshotStep;
use crate::checkers::{Checked, violated};
use crate::events::{Event, Fault, Part, SnapshotArrival};
use crate::network::{Outgoing, Receiver};
use crate::world::{CandidateCrash, Load, World};

impl<L: Load> World<L> {
    pub(crate) fn send(&mut self, store: StoreId, life: u64, outgoing: Outgoing) -> Checked {
        match outgoing {
            Outgoing::TooLarge(message, bytes) => {
                return violated(format!("{} has {bytes} bytes: no frame holds it", MessageLine(&message)));
            }
            Outgoing::Message(message) => {
                self.raft.on_send(&message)?;
                self.stats.messages += 1;
                if self.is_vote_of_crashing_candidate(store, &message) {
                    self.trace.line(self.now, format_args!("{} is lost", MessageLine(&message)));
                    return Ok(());
                }
                if message.message.msg_type() == MessageType::MsgTimeoutNow && self.held_offers.is_some() {
                    self.trace.line(self.now, format_args!("{} is held", MessageLine(&message)));
                    self.held_offers.iter_mut().for_each(|held| held.push(message.clone()));
                    return Ok(());
                }
                if self.hold_answer(&message) {
                    self.trace.line(self.now, format_args!("{} is held", MessageLine(&message)));
                    return Ok(());
                }
                let copies = self.network.delivery_delays(&message, self.now);
                self.stats.lost += u64::from(copies.is_empty());
                self.trace.line(self.now, format_args!("{} x{}", MessageLine(&message), copies.len()));
                for delay in copies {
                    self.schedule(delay, Event::Deliver(Box::new(message.clone())));
                }
            }
            Outgoing::Snapshot(message, key, done) => {
                self.raft.on_send(&message)?;
                self.snapshots.on_sent(message.to.id, key, Term::new(message.message.term));
                let size = self.nodes.get(&store).and_then(|node| node.live.as_ref());
                let size = size.and_then(|live| live.snapshots.size(key).ok()).unwrap_or_default();
                let (least, most) = self.options.snapshot_work_us;
                let delay = self.network.snapshot_delay(size) + self.network.pick(least, most) * 1000;
                self.trace.line(self.now, format_args!("{} with file {key} of {size} bytes", MessageLine(&message)));
                let writes = self.load.confirmed_writes(key.region);
                let arrival = SnapshotArrival { message, key, life, done, writes };
                self.schedule(delay, Event::Snapshot(Box::new(arrival)));
            }
        }
        Ok(())
    }

    /// Holds an answer to a leader if the fault says so.
    fn hold_answer(&mut self, message: &RaftMessage) -> bool {
        let to = message.to.store;
        let Some((_, held)) = self.held_answers.as_mut().filter(|(leader, _)| *leader == to) else { return false };
        let kind = message.message.msg_type();
        let holds = matches!(kind, MessageType::MsgHeartbeatResponse | MessageType::MsgAppendResponse);
        held.extend(holds.then(|| message.clone()));
        holds
    }

    /// Whether this is a vote request of the candidate that loses power while campaigning.
    fn is_vote_of_crashing_candidate(&mut self, store: StoreId, message: &RaftMessage) -> bool {
        let inner = &message.message;
        if inner.msg_type() != MessageType::MsgRequestVote || !inner.context.is_empty() {
            return false;
        }
        let this = CandidateCrash::Crashing(store, message.region, inner.term);
        if self.candidate_crash == CandidateCrash::Armed {
            self.candidate_crash = this;
            self.stats.candidates += 1;
            self.schedule(0, Event::EndFault(Fault::CandidateCrash(store)));
        }
        self.candidate_crash == this
    }

    /// Schedules a message that ignores cuts. It arrives after what clients send now was taken in.
    pub(crate) fn schedule_past_cut(&mut self, message: RaftMessage) {
        self.schedule(1_000_000, Event::DeliverPast(Box::new(message)));
    }

    pub(crate) fn deliver(&mut self, message: RaftMessage, past_cut: bool) -> Checked {
        let (from, to) = (message.from.store, message.to.store);
        if !past_cut && self.network.is_cut(from, to) {
            return Ok(());
        }
        let Some(node) = self.nodes.get_mut(&to) else { return Ok(()) };
        // The network stack of a paused store keeps running.
        let Some(live) = &node.live else { return Ok(()) };
        if let Err(error) = live.handle.deliver(message) {
            self.trace.line(self.now, format_args!("{to} drops a message: {error}"));
        }
        self.wake(to, Part::Store);
        Ok(())
    }

    pub(crate) fn deliver_snapshot(&mut self, arrival: SnapshotArrival) -> Checked {
        let SnapshotArrival { message, key, life, done, writes } = arrival;
        let (from, to, peer) = (message.from.store, message.to.store, message.to.id);
        let files = |store: StoreId, life: Option<u64>| {
            let node = self.nodes.get(&store).filter(|node| life.is_none_or(|life| life == node.life))?;
            node.live.as_ref().filter(|_| !node.paused).map(|live| live.snapshots.clone())
        };
        let ends = files(from, Some(life)).zip(files(to, None)).filter(|_| !self.network.is_cut(from, to));
        let receiver = self.network.receiver();
        let delivery = match ends {
            None => Delivery::Busy,
            Some(_) if receiver == Receiver::Busy => Delivery::Busy,
            Some((_, target)) if target.contains(key) => Delivery::Delivered,
            Some((source, target)) => match copy_file(&source, &target, key) {
                Delivery::Delivered if receiver == Receiver::Slow => Delivery::Busy,
                copied => copied,
            },
        };
        self.trace.line(self.now, format_args!("file {key} to {to}: {delivery:?}, the receiver is {receiver:?}"));
        self.snapshots.on_ended(peer, delivery);
        if delivery == Delivery::Delivered {
            self.stats.snapshots += 1;
            let confirmed = self.load.confirmed_writes(key.region);
            self.traffic.on_step(SnapshotStep::Send, key.region, writes, confirmed);
            if let Some(live) = self.nodes.get_mut(&to).and_then(|node| node.live.as_mut()) {
                live.delivered.entry(key.region).or_default().insert(key.index.get(), confirmed);
            }
            self.deliver(message, false)?;
        }
        done(delivery);
        self.wake(from, Part::Store);
        self.after_call(to, false)
    }

    /// Runs a step of the build of a snapshot: the first takes the region's data, the second writes the file.
    pub(crate) fn build_turn(&mut self, store: StoreId) -> bool {
        let Some(live) = self.nodes.get_mut(&store).and_then(|node| node.live.as_mut()) else { return false };
        let Some(before) = live.building.take() else {
            let begins = live.core.build_turn();
            let count = |region: &Region| (region.id, self.load.confirmed_writes(region.id));
            live.building = begins.then(|| self.options.regions.iter().map(count).collect());
            return begins;
        };
        // The file that is new says which region it was.
        let known = live.snapshots.list().unwrap_or_default();
        let busy = live.core.build_turn();
        let files = live.snapshots.list().unwrap_or_default();
        if let Some(SnapshotKey { region, .. }) = files.into_iter().find(|key| !known.contains(key)) {
            let confirmed = self.load.confirmed_writes(region);
            let before = before.get(&region).copied().unwrap_or_default();
            self.traffic.on_step(SnapshotStep::Build, region, before, confirmed);
        }
        busy
    }

    /// Installs a snapshot, if one waits. The applied index of its region is then that of the snapshot.
    pub(crate) fn install_turn(&mut self, store: StoreId) -> bool {
        let Some(live) = self.nodes.get_mut(&store).and_then(|node| node.live.as_mut()) else { return false };
        let before = live.handle.regions();
        let busy = live.core.install_turn();
        let after = live.handle.regions();
        for (_, status) in before.iter().zip(&after).filter(|(old, new)| old.applied != new.applied) {
            self.stats.installed += 1;
            // One that arrived in an earlier life was not installed all the time since.
            let region = status.region.id;
            if let Some(writes) = live.delivered.get(&region).and_then(|all| all.get(&status.applied.get())) {
                let confirmed = self.load.confirmed_writes(region);
                self.traffic.on_step(SnapshotStep::Install, region, *writes, confirmed);
            }
        }
        busy
    }
}

/// Copies a snapshot file in chunks and verifies it, as the transport does.
fn copy_file(from: &SnapshotFiles, to: &SnapshotFiles, key: SnapshotKey) -> Delivery {
    let Ok(mut writer) = to.receive(key) else { return Delivery::Busy };
    let mut offset = 0;
    loop {
        let bytes = match from.read(key, offset, 1000) {
            Ok(bytes) => bytes,
            Err(error) => return Delivery::of_unreadable(&error),
        };
        if bytes.is_empty() {
            return match writer.finish() {
                Ok(()) => Delivery::Delivered,
                Err(StoreError::Corrupt(_)) => Delivery::Damaged,
                Err(_) => Delivery::Busy,
            };
        }
        if writer.write(&bytes).is_err() {
            return Delivery::Busy;
        }
        offset += bytes.len() as u64;
    }
}

/// A message in one line of the trace.
struct MessageLine<'a>(&'a RaftMessage);

impl std::fmt::Display for MessageLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RaftMessage { region, from, to, message, .. } = self.0;
        let (kind, entries) = (message.msg_type(), message.entries.len());
        write!(f, "{} -> {} region {region} {kind:?} term {}", from.store, to.store, message.term)?;
        write!(f, " index {} log term {} commit {}", message.index, message.log_term, message.commit)?;
        write!(f, " entries {entries}{}", if message.reject { " reject" } else { "" })
    }
}
