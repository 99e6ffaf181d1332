//! The stages of a turn, the clock and the tick.

use std::sync::atomic::Ordering;

use super::state::{Stage, StoreLoop};
use crate::time::{Clock, MonoTime};

impl StoreLoop {
    /// Runs one turn. Returns whether it did anything; if so, another turn may have work.
    pub(crate) fn turn(&mut self, clock: &dyn Clock) -> bool {
        loop {
            if let Some(busy) = self.stage(clock) {
                return busy;
            }
        }
    }

    /// Runs one stage of a turn. After the last stage, returns whether the turn did anything.
    pub(crate) fn stage(&mut self, clock: &dyn Clock) -> Option<bool> {
        let stage = std::mem::replace(&mut self.stage, Stage::Intake);
        if let Some(why) = self.parts.health.poisoned().map(str::to_string) {
            return Some(self.halt(&why));
        }
        match stage {
            Stage::Intake => {
                let completions = Box::new(self.parts.inbox.take());
                self.parts.mailbox.take(self.parts.config.turn_messages, &mut self.messages);
                self.stage = Stage::Decide(completions);
                None
            }
            Stage::Decide(completions) => {
                let now = self.read_clock(clock);
                let mut busy = self.take_completions(*completions, now);
                busy |= self.take_messages(now);
                busy |= self.tick(now);
                self.stage = Stage::CarryOut { now, busy };
                None
            }
            Stage::CarryOut { now, busy } => {
                let busy = self.execute(now) || busy;
                Some(self.request_apply_wakeup() || busy)
            }
        }
    }

    /// The time by which this turn judges its input.
    fn read_clock(&mut self, clock: &dyn Clock) -> MonoTime {
        let now = clock.now();
        #[cfg(feature = "planted-bugs")]
        {
            let old = std::mem::replace(&mut self.old_clock, now);
            if self.parts.config.planted(crate::config::PlantedBug::ReadIndexUnderOldClock) {
                return old;
            }
        }
        now
    }

    /// At most one tick a turn, and never a tick for missed time: a follower counts its promise not to vote in ticks of
    /// full length.
    fn tick(&mut self, now: MonoTime) -> bool {
        if now.since(self.last_tick) < self.parts.config.tick_interval {
            return false;
        }
        self.last_tick = now;
        for (region, slot) in &mut self.peers {
            slot.peer.tick(now);
            self.dirty.insert(*region);
        }
        let backlog = self.parts.apply.backlog.load(Ordering::SeqCst);
        self.parts.metrics.apply_backlog.set(i64::try_from(backlog).unwrap_or(i64::MAX));
        self.parts.metrics.log_backlog.set(i64::try_from(self.log_backlog()).unwrap_or(i64::MAX));
        if self.handing_over {
            self.hand_over(now);
        }
        self.retry_full_log(now);
        if self.log_space.is_due() {
            self.purge();
        }
        self.scrub(now);
        self.ticks_to_log_gc = self.ticks_to_log_gc.saturating_sub(1);
        if self.ticks_to_log_gc == 0 {
            self.ticks_to_log_gc = self.parts.config.log_gc_ticks;
            self.start_log_gc(now);
        }
        true
    }
}
