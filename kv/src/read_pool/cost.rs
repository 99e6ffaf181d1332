//! What a statement has cost so far: it decides the level of its next job, and the size of its next slice.
//!
//! Pure: the time that a slice took is an argument.

use std::time::Duration;

/// The time that a slice is meant to take.
pub(super) const SLICE: Duration = Duration::from_micros(1_500);
/// Steps of the first slice of a statement, and the bounds of later ones.
const STEPS_FIRST: usize = 64;
const STEPS_MIN: usize = 16;
const STEPS_MAX: usize = 65_536;
/// The most by which a slice has more steps than the one before, as a factor, and the most by which it has fewer.
const GROWTH_MAX: usize = 2;
const CUT_MAX: usize = 8;
/// A scan whose statement has cost less is short, or of medium length. Longer ones are long.
const SHORT: Duration = Duration::from_millis(6);
const MEDIUM: Duration = Duration::from_millis(48);

/// The class of a job. Lower levels come later in this order, run when the higher ones leave time, and are shed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Work on few keys that others may wait for: the evaluation of a write, a cold point read.
    Point,
    /// Scans and reads of many keys that have just begun.
    Short,
    /// Those that have cost some slices.
    Medium,
    /// Those that have cost many slices.
    Long,
}

impl Level {
    /// All levels, in the order of their index.
    pub const ALL: [Level; 4] = [Level::Point, Level::Short, Level::Medium, Level::Long];

    /// The label of the level in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Level::Point => "point",
            Level::Short => "short",
            Level::Medium => "medium",
            Level::Long => "long",
        }
    }

    /// The index of the level in [`Level::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// What a statement has cost so far on this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    spent: Duration,
    /// Steps of the next slice.
    steps: usize,
}

impl Default for Cost {
    fn default() -> Cost {
        Cost { spent: Duration::ZERO, steps: STEPS_FIRST }
    }
}

impl Cost {
    /// The time that its slices took.
    pub fn spent(self) -> Duration {
        self.spent
    }

    /// Whether the statement has not used a whole slice yet.
    pub fn is_small(self) -> bool {
        self.spent < SLICE
    }

    /// The level of a scan of the statement.
    pub fn level(self) -> Level {
        match self.spent {
            spent if spent < SHORT => Level::Short,
            spent if spent < MEDIUM => Level::Medium,
            _ => Level::Long,
        }
    }

    /// About how many steps the next slice may have, from 16 to 65,536.
    pub fn steps(self) -> usize {
        self.steps
    }

    /// Adds a slice of at most `steps` steps that took `elapsed`. `is_full`: it has used them all. The next slice gets
    /// the steps that would have taken a millisecond and a half. A slice that was not full only proves that a step may
    /// take longer than thought.
    pub fn add(&mut self, steps: usize, elapsed: Duration, is_full: bool) {
        self.spent = self.spent.saturating_add(elapsed);
        let in_time = (steps as u128 * SLICE.as_nanos()).checked_div(elapsed.as_nanos());
        let in_time = in_time.and_then(|steps| usize::try_from(steps).ok()).unwrap_or(STEPS_MAX);
        let most = if is_full { self.steps.saturating_mul(GROWTH_MAX) } else { self.steps };
        self.steps = in_time.clamp((self.steps / CUT_MAX).min(most), most).clamp(STEPS_MIN, STEPS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs full slices of a scan whose steps take `step`; returns the time of each.
    fn slices(cost: &mut Cost, step: Duration, count: usize) -> Vec<Duration> {
        let slice = |_| {
            let (steps, elapsed) = (cost.steps(), step * cost.steps() as u32);
            cost.add(steps, elapsed, true);
            elapsed
        };
        (0..count).map(slice).collect()
    }

    #[test]
    fn slices_come_to_take_the_same_time_whatever_a_step_costs() {
        for step_ns in [50, 200, 3_000, 40_000, 90_000] {
            let times = slices(&mut Cost::default(), Duration::from_nanos(step_ns), 20);
            let last = times[19];
            assert!(last > SLICE / 2 && last <= SLICE * 2, "steps of {step_ns} ns: {last:?}");
        }
    }

    /// A scan of cached rows that comes to a cold part exceeds its time in a few slices, and then no more.
    #[test]
    fn a_scan_that_becomes_slower_is_cut_within_a_few_slices() {
        let mut cost = Cost::default();
        slices(&mut cost, Duration::from_nanos(200), 20);
        let times = slices(&mut cost, Duration::from_micros(50), 6);
        assert!(times[4..].iter().all(|time| *time <= SLICE * 2), "{times:?}");
    }

    #[test]
    fn steps_are_bounded_and_a_slice_that_ended_early_does_not_raise_them() {
        let mut cost = Cost::default();
        slices(&mut cost, Duration::from_secs(1), 10);
        assert_eq!(cost.steps(), STEPS_MIN);
        cost.add(cost.steps(), Duration::ZERO, false);
        assert_eq!(cost.steps(), STEPS_MIN);
        for _ in 0..40 {
            cost.add(cost.steps(), Duration::ZERO, true);
        }
        assert_eq!(cost.steps(), STEPS_MAX);
        cost.add(cost.steps(), Duration::from_secs(1), false);
        assert!(cost.steps() < STEPS_MAX, "a slice that took too long lowers them, full or not");
    }

    #[test]
    fn a_scan_falls_as_it_costs() {
        let mut cost = Cost::default();
        let mut levels = Vec::new();
        for _ in 0..200 {
            levels.push(cost.level());
            cost.add(100, SLICE, true);
        }
        assert!(levels.is_sorted());
        assert_eq!((levels[0], levels[4], levels[199]), (Level::Short, Level::Medium, Level::Long));
    }
}
