//! The faults of a run: how each begins and ends.
//!
//! Every fault leaves the cluster recoverable. Disks lose only unsynced data, partitions and pauses end, full disks get
//! space, and poisoned stores are restarted.

use std::io;

use engine::disk::Operation;
use rand::Rng;

use raftstore::StoreId;

use crate::checkers::Checked;
use crate::events::{Event, Fault, PARTS, Part};
use crate::node::{Node, Scheduled};
use crate::options::FaultKind;
use crate::world::{CandidateCrash, Load, World};

impl<L: Load> World<L> {
    /// Nanoseconds until the next fault.
    pub(crate) fn next_fault_delay(&mut self) -> u64 {
        let mean = self.options.faults.interval.as_nanos() as u64;
        self.fault_rng.random_range(mean / 4..=mean * 2)
    }

    /// Whether the store's disk is full.
    pub(crate) fn is_full(&self, store: StoreId) -> bool {
        self.nodes.get(&store).is_some_and(|node| node.full)
    }

    /// Begins a fault and schedules its end and the next one.
    pub(crate) fn begin_fault(&mut self) -> Checked {
        if !self.faults_on {
            return Ok(());
        }
        let next = self.next_fault_delay();
        self.schedule(next, Event::Fault);
        let Some(kind) = self.draw_kind() else { return Ok(()) };
        let store = StoreId::new(self.fault_rng.random_range(1..=self.options.stores));
        let longest = self.options.faults.longest.as_nanos() as u64;
        let duration = self.fault_rng.random_range(longest / 20..=longest);
        self.trace.line(self.now, format_args!("fault: {kind:?} (store {store}, up to {} ms)", duration / 1_000_000));
        match kind {
            FaultKind::Crash => self.crash(store)?,
            FaultKind::CrashAll => {
                for store in (1..=self.options.stores).map(StoreId::new) {
                    self.crash(store)?;
                }
            }
            FaultKind::TornCrash => self.arm_power(store),
            FaultKind::Pause => self.pause(store),
            FaultKind::Partition | FaultKind::OneWay => self.partition(kind, duration),
            FaultKind::FailedSync | FaultKind::FailedStore => self.arm_failure(kind, store),
            FaultKind::DiskFull => self.fill_disk(store),
            FaultKind::SlowDisk => self.slow_disk(store),
            FaultKind::Transfer => self.transfer(store)?,
            FaultKind::IsolateLeader => self.isolate_leader(duration),
            FaultKind::RestartVoters => self.restart_voters(),
            FaultKind::TransferAway => self.transfer_away()?,
            FaultKind::LateTimeoutNow => self.late_timeout_now()?,
            FaultKind::SlowApply => self.slow_down(store, |node, longest| node.slow_apply = longest),
            FaultKind::SlowTurns => self.slow_down(store, |node, longest| node.slow_turns = longest),
            FaultKind::StallLeaderTurn => self.stall_leader_turn(),
            FaultKind::CrashCandidate => self.crash_candidate(),
            FaultKind::LateAnswers => self.late_answers(),
            FaultKind::SlowSync => self.slow_syncs(store, duration),
            FaultKind::SlowLink => self.slow_link(store),
        }
        if !matches!(kind, FaultKind::SlowSync | FaultKind::SlowLink) {
            L::disturbed(self);
        }
        let end = match kind {
            FaultKind::TornCrash => Fault::Torn(store),
            FaultKind::Pause => Fault::Paused(store),
            FaultKind::DiskFull => Fault::Full(store),
            FaultKind::SlowDisk => Fault::Slow(store),
            FaultKind::SlowApply => Fault::SlowApply(store),
            FaultKind::SlowTurns => Fault::SlowTurns(store),
            FaultKind::SlowLink => Fault::SlowLink(store),
            _ => return Ok(()),
        };
        self.schedule(duration, Event::EndFault(end));
        Ok(())
    }

    fn draw_kind(&mut self) -> Option<FaultKind> {
        let weights = &self.options.faults.weights;
        let total: u32 = weights.iter().map(|(_, weight)| weight).sum();
        if total == 0 {
            return None;
        }
        let mut left = self.fault_rng.random_range(0..total);
        weights.iter().find_map(|(kind, weight)| {
            if left < *weight {
                return Some(*kind);
            }
            left -= weight;
            None
        })
    }

    fn arm_power(&mut self, store: StoreId) {
        let changes = self.fault_rng.random_range(0..6);
        let Some(node) = self.up(store) else { return };
        node.log_disk.halt_after(changes);
        node.snapshot_disk.halt_after(changes);
        node.power = Some((node.log_disk.changes() + changes, node.snapshot_disk.changes() + changes));
    }

    fn pause(&mut self, store: StoreId) {
        self.stats.pauses += 1;
        if let Some(node) = self.up(store) {
            node.paused = true;
        }
    }

    fn partition(&mut self, kind: FaultKind, duration: u64) {
        self.stats.partitions += 1;
        let stores: Vec<StoreId> = (1..=self.options.stores).map(StoreId::new).collect();
        let cut: Vec<(StoreId, StoreId)> = if kind == FaultKind::OneWay {
            let from = self.fault_rng.random_range(0..stores.len());
            let to = (from + self.fault_rng.random_range(1..stores.len())) % stores.len();
            vec![(stores[from], stores[to])]
        } else {
            let side: Vec<bool> = stores.iter().map(|_| self.fault_rng.random_bool(0.5)).collect();
            let pairs = (0..stores.len()).flat_map(|from| (0..stores.len()).map(move |to| (from, to)));
            pairs.filter(|(from, to)| side[*from] != side[*to]).map(|(from, to)| (stores[from], stores[to])).collect()
        };
        self.cut(cut, duration);
    }

    fn cut(&mut self, cut: Vec<(StoreId, StoreId)>, duration: u64) {
        self.trace.line(self.now, format_args!("cut: {cut:?}"));
        for (from, to) in &cut {
            self.network.cut(*from, *to);
        }
        self.schedule(duration, Event::EndFault(Fault::Cut(cut)));
    }

    /// Cuts both directions between a store and some others.
    fn cut_off(&mut self, store: StoreId, others: &[StoreId], duration: u64) {
        let cut = others.iter().flat_map(|other| [(store, *other), (*other, store)]).collect();
        self.cut(cut, duration);
    }

    /// A random store that leads a region, and the other stores.
    fn some_leader(&mut self) -> Option<(StoreId, Vec<StoreId>)> {
        let stores: Vec<StoreId> = (1..=self.options.stores).map(StoreId::new).collect();
        let leads = |store: &StoreId| {
            let live = self.nodes.get(store).and_then(|node| node.live.as_ref());
            live.is_some_and(|live| live.handle.regions().iter().any(|status| status.is_leader))
        };
        let leaders: Vec<StoreId> = stores.iter().copied().filter(leads).collect();
        if leaders.is_empty() {
            return None;
        }
        let leader = leaders[self.fault_rng.random_range(0..leaders.len())];
        Some((leader, stores.into_iter().filter(|store| *store != leader).collect()))
    }

    fn isolate_leader(&mut self, duration: u64) {
        self.stats.partitions += 1;
        if let Some((leader, others)) = self.some_leader() {
            self.cut_off(leader, &others, duration);
            self.probe_leases(leader, duration);
        }
    }

    /// Schedules probes of the store's lease.
    fn probe_leases(&mut self, store: StoreId, duration: u64) {
        for twelfth in 1..12 {
            self.schedule(duration * twelfth / 12, Event::EndFault(Fault::ProbeLease(store)));
        }
    }

    /// Tests the lease against a candidate that the leader cannot reach, whose log is as long as any because nothing is
    /// written, and voters whose restart made them forget when they last heard the leader.
    fn restart_voters(&mut self) {
        let Some((leader, mut others)) = self.some_leader() else { return };
        let candidate = others.swap_remove(self.fault_rng.random_range(0..others.len()));
        let election = self.options.config.election_timeout().as_nanos() as u64;
        others.truncate(self.options.stores as usize / 2);
        let delay = self.fault_rng.random_range(election..election * 2);
        self.quiet_until = self.now + delay + election / 4;
        self.schedule(election / 4, Event::EndFault(Fault::CutOff(candidate, leader)));
        self.schedule(delay, Event::EndFault(Fault::RestartIsolated(leader, others)));
    }

    fn cut_off_candidate(&mut self, candidate: StoreId, leader: StoreId) {
        if self.faults_on {
            let election = self.options.config.election_timeout().as_nanos() as u64;
            self.cut_off(leader, &[candidate], 3 * election);
        }
    }

    fn restart_isolated(&mut self, leader: StoreId, voters: &[StoreId]) -> Checked {
        if !self.faults_on {
            return Ok(());
        }
        self.isolate(leader);
        let election = self.options.config.election_timeout().as_nanos() as u64;
        for store in voters {
            let downtime = self.fault_rng.random_range(election / 50..election / 8);
            self.crash_for(*store, downtime)?;
        }
        Ok(())
    }

    /// Tests the lease against a transfer whose acceptance the old leader does not learn of.
    fn transfer_away(&mut self) -> Checked {
        let Some((leader, others)) = self.some_leader() else { return Ok(()) };
        let to = others[self.fault_rng.random_range(0..others.len())];
        self.transfer(to)?;
        // About one message delay. Earlier, the offer does not leave. Later, the new leader's vote request may
        // reach the old leader.
        let (low, high) = self.options.network.latency_us;
        let delay = self.fault_rng.random_range(low * 1000..=high * 3000);
        self.schedule(delay, Event::EndFault(Fault::Isolate(leader)));
        Ok(())
    }

    /// Tests the lease against an offer that was abandoned, the lease regained, and the offer then accepted.
    fn late_timeout_now(&mut self) -> Checked {
        let Some((leader, others)) = self.some_leader() else { return Ok(()) };
        if self.held_offers.is_some() {
            return Ok(());
        }
        self.held_offers = Some(Vec::new());
        let to = others[self.fault_rng.random_range(0..others.len())];
        self.transfer(to)?;
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let quiet = self.fault_rng.random_range(election * 3 / 2..election * 2);
        self.schedule(quiet, Event::EndFault(Fault::Quiet));
        self.schedule(quiet + election / 3, Event::EndFault(Fault::DeliverHeldOffers(leader)));
        Ok(())
    }

    fn deliver_held_offers(&mut self, leader: StoreId) {
        let held = self.held_offers.take().unwrap_or_default();
        if held.is_empty() {
            return;
        }
        self.isolate(leader);
        for message in held {
            self.trace.line(self.now, format_args!("late: region {} to {}", message.region, message.to.store));
            self.schedule_past_cut(message);
        }
    }

    /// Tests rounds of reads against answers from before the leader was replaced: they confirm no read that arrived
    /// after them.
    fn late_answers(&mut self) {
        let Some((leader, _)) = self.some_leader() else { return };
        if self.held_answers.is_some() {
            return;
        }
        self.held_answers = Some((leader, Vec::new()));
        let election = self.options.config.election_timeout().as_nanos() as u64;
        // Long enough for the lease to run down to where it opens a round; then nothing arrives any more.
        let held = self.fault_rng.random_range(election / 2..election * 3 / 4);
        self.schedule(held, Event::EndFault(Fault::Isolate(leader)));
        let until = self.now + held + election * 2;
        self.schedule(held + election / 2, Event::EndFault(Fault::AwaitSuccessor(until)));
    }

    /// Lets the held answers arrive a little after a successor serves, while the old leader does not know it.
    fn await_successor(&mut self, until: u64) {
        let Some((leader, _)) = self.held_answers.as_ref() else { return };
        let status = |node: &Node| node.live.as_ref().map(|live| live.handle.regions()).unwrap_or_default();
        let led: Vec<_> = self.nodes.get(leader).map(status).unwrap_or_default();
        let others = self.nodes.values().filter(|node| node.id != *leader).flat_map(status);
        let successors: Vec<_> = others.filter(|status| status.is_leader).collect();
        let replaced = led
            .iter()
            .filter(|old| old.is_leader)
            .any(|old| successors.iter().any(|new| new.region.id == old.region.id && new.term > old.term));
        let election = self.options.config.election_timeout().as_nanos() as u64;
        if replaced || self.now >= until {
            self.schedule(election / 6, Event::EndFault(Fault::DeliverHeldAnswers));
        } else {
            self.schedule(election / 20, Event::EndFault(Fault::AwaitSuccessor(until)));
        }
    }

    /// The load reads at the old leader, then the answers arrive.
    fn deliver_held_answers(&mut self) -> Checked {
        let Some((leader, held)) = self.held_answers.take() else { return Ok(()) };
        self.trace.line(self.now, format_args!("late: {} answers", held.len()));
        L::read_at(self, leader)?;
        for message in held {
            self.schedule_past_cut(message);
        }
        Ok(())
    }

    fn isolate(&mut self, leader: StoreId) {
        if !self.faults_on {
            return;
        }
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let others: Vec<StoreId> =
            (1..=self.options.stores).map(StoreId::new).filter(|store| *store != leader).collect();
        self.cut_off(leader, &others, 2 * election);
        self.probe_leases(leader, election * 6 / 5);
    }

    fn arm_failure(&mut self, kind: FaultKind, store: StoreId) {
        let nth = self.fault_rng.random_range(1..6);
        let flush = self.fault_rng.random_bool(0.5);
        let Some(node) = self.up(store) else { return };
        node.armed = true;
        match kind {
            FaultKind::FailedSync => node.log_disk.fail_nth(Operation::Sync, nth, io::ErrorKind::Other),
            _ if flush => node.store.fail_flush(nth),
            _ => node.store.fail_write(nth * 5),
        }
    }

    fn fill_disk(&mut self, store: StoreId) {
        let left = self.fault_rng.random_range(0..30_000);
        let Some(node) = self.up(store) else { return };
        node.full = true;
        node.log_disk.set_capacity(Some(node.log_disk.used() + left));
    }

    fn slow_disk(&mut self, store: StoreId) {
        let slowness = self.fault_rng.random_range(5..100);
        if let Some(node) = self.nodes.get_mut(&store) {
            node.slowness = slowness;
        }
    }

    /// Syncs that take up to some election timeouts: hiccups of one store's disk, or short ones of all disks.
    fn slow_syncs(&mut self, store: StoreId, duration: u64) {
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let everywhere = self.fault_rng.random_bool(0.5);
        let slowest = election * u64::from(self.options.disk.slowest_sync);
        let most = if everywhere { self.longest_hiccup() } else { slowest };
        let longest = self.fault_rng.random_range(election / 2..=most);
        for id in (1..=self.options.stores).map(StoreId::new).filter(|id| everywhere || *id == store) {
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            (node.slow_sync, node.next_is_slow) = (longest, false);
            self.schedule(duration, Event::EndFault(Fault::SlowSync(id)));
        }
        self.trace.line(self.now, format_args!("syncs of up to {} ms", longest / 1_000_000));
        if longest > self.longest_hiccup() {
            L::disturbed(self);
        }
    }

    fn end_slow_syncs(&mut self, store: StoreId) {
        let hands_over = self.nodes.get(&store).is_some_and(|node| node.slow_sync > self.longest_hiccup());
        self.speed_up(store, |node| node.slow_sync = 0);
        if hands_over {
            L::disturbed(self);
        }
    }

    /// From here on, what the store sends queues in its links.
    fn slow_link(&mut self, store: StoreId) {
        let (least, most) = self.options.network.slow_link_kb;
        let kilobytes = self.fault_rng.random_range(least..=most);
        let rate = kilobytes * 1024 * 1_000_000_000 / self.options.config.election_timeout().as_nanos() as u64;
        self.network.slow_down(store, rate);
        self.stats.slow_links += 1;
    }

    /// Slows a part of a store down, by up to three election timeouts.
    fn slow_down(&mut self, store: StoreId, part: impl Fn(&mut Node, u64)) {
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let longest = self.fault_rng.random_range(election / 20..=election * 3);
        if let Some(node) = self.nodes.get_mut(&store) {
            part(node, longest);
        }
    }

    /// Tests the order of clock and intake: requests that arrive after the clock was read, at a leader that is replaced
    /// meanwhile.
    fn stall_leader_turn(&mut self) {
        let Some((leader, others)) = self.some_leader() else { return };
        let election = self.options.config.election_timeout().as_nanos() as u64;
        let hold = self.fault_rng.random_range(election..election * 3);
        if let Some(node) = self.nodes.get_mut(&leader) {
            node.hold = Some(hold);
        }
        self.cut_off(leader, &others, 3 * election);
        self.probe_leases(leader, 3 * election);
    }

    /// Tests the durability of votes: a candidate has voted for itself, its vote requests are lost, and the others
    /// campaign in the same term.
    fn crash_candidate(&mut self) {
        let Some((leader, others)) = self.some_leader() else { return };
        let election = self.options.config.election_timeout().as_nanos() as u64;
        self.cut_off(leader, &others, 3 * election);
        self.candidate_crash = CandidateCrash::Armed;
    }

    /// Asks the leader of a region to transfer it to `to`.
    fn transfer(&mut self, to: StoreId) -> Checked {
        for from in (1..=self.options.stores).map(StoreId::new) {
            let Some(node) = self.up(from) else { continue };
            let Some(live) = &node.live else { continue };
            let leads = live.handle.regions().into_iter().find(|status| status.is_leader);
            if let Some(status) = leads {
                let asked = live.handle.transfer_leader(status.region.id, to);
                let region = status.region.id;
                self.trace.line(self.now, format_args!("{from} is asked to hand region {region} to {to}: {asked:?}"));
                self.wake(from, Part::Store);
                self.after_call(from, false)?;
            }
        }
        Ok(())
    }

    /// Ends one fault.
    pub(crate) fn end_fault(&mut self, fault: Fault) -> Checked {
        let harmless =
            matches!(fault, Fault::SlowSync(_) | Fault::SlowLink(_) | Fault::ProbeLease(_) | Fault::AwaitSuccessor(_));
        self.undo_fault(fault)?;
        if !harmless {
            L::disturbed(self);
        }
        Ok(())
    }

    fn undo_fault(&mut self, fault: Fault) -> Checked {
        match fault {
            Fault::Poisoned(store) => {
                if self.nodes.get(&store).is_some_and(|node| node.poisoned) {
                    self.crash(store)?;
                }
            }
            Fault::Torn(store) => {
                if self.nodes.get(&store).is_some_and(|node| node.power.is_some()) {
                    self.crash(store)?;
                }
            }
            Fault::Paused(store) => self.resume(store)?,
            Fault::RestartIsolated(leader, voters) => self.restart_isolated(leader, &voters)?,
            Fault::Cut(cut) => {
                self.trace.line(self.now, format_args!("mended: {cut:?}"));
                for (from, to) in cut {
                    self.network.restore(from, to);
                }
            }
            Fault::CutOff(candidate, leader) => self.cut_off_candidate(candidate, leader),
            Fault::Isolate(leader) => self.isolate(leader),
            Fault::Quiet => {
                let election = self.options.config.election_timeout().as_nanos() as u64;
                self.quiet_until = self.now + election;
            }
            Fault::DeliverHeldOffers(leader) => self.deliver_held_offers(leader),
            Fault::AwaitSuccessor(until) => self.await_successor(until),
            Fault::DeliverHeldAnswers => self.deliver_held_answers()?,
            Fault::ProbeLease(store) if self.faults_on => L::test_lease(self, store)?,
            Fault::ProbeLease(_) => {}
            Fault::Full(store) => self.clear_disk(store),
            Fault::Slow(store) => self.speed_up(store, |node| node.slowness = 1),
            Fault::SlowApply(store) => self.speed_up(store, |node| node.slow_apply = 0),
            Fault::SlowTurns(store) => self.speed_up(store, |node| node.slow_turns = 0),
            Fault::SlowSync(store) => self.end_slow_syncs(store),
            Fault::SlowLink(store) => self.network.speed_up(store),
            Fault::CandidateCrash(store) => {
                let election = self.options.config.election_timeout().as_nanos() as u64;
                let downtime = self.fault_rng.random_range(election / 50..election / 8);
                self.crash_for(store, downtime)?;
            }
        }
        Ok(())
    }

    pub(crate) fn speed_up(&mut self, store: StoreId, part: impl Fn(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&store) {
            part(node);
        }
    }

    pub(crate) fn clear_disk(&mut self, store: StoreId) {
        let Some(node) = self.nodes.get_mut(&store) else { return };
        node.full = false;
        node.log_disk.set_capacity(None);
        self.trace.line(self.now, format_args!("{store} has space again"));
        for part in [Part::Store, Part::Log, Part::Background] {
            self.wake(store, part);
        }
    }

    /// Resumes a store. The load comes first, before the store has processed its mailbox: at that moment it must not
    /// trust a lease it held before.
    pub(crate) fn resume(&mut self, store: StoreId) -> Checked {
        let Some(node) = self.nodes.get_mut(&store).filter(|node| node.paused) else { return Ok(()) };
        node.paused = false;
        node.scheduled = Scheduled::default();
        self.trace.line(self.now, format_args!("{store} resumes"));
        L::resumed(self, store)?;
        for part in PARTS {
            self.wake(store, part);
        }
        Ok(())
    }
}
