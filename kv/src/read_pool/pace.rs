//! How long a thread rests between two slices of long scans.
//!
//! A low priority alone does not bound what a long scan costs others: its pages keep threads busy that have no such
//! priority, those of sessions and of the network, here and at the gateway. So the scan itself slows down where the
//! processors are wanted by other threads of the node, and only there. After each slice its thread offers its processor
//! to whoever waits for it; how long that takes tells whether anybody does. Where the system gives groups of processes
//! shares of their own, those of other groups do not count.
//!
//! Pure: the times are arguments.

use std::time::Duration;

use super::cost::SLICE;

/// A thread that gets its processor back later than this has given it to somebody.
const CONTENDED: Duration = Duration::from_micros(100);
/// The longest rest, in relation to the slice before it.
const LONGEST: u32 = 16;

/// The rests of one thread: doubled while the processors are contended, halved while they are not.
///
/// Invariant: a rest takes at most 16 times what its slice took, and at most 16 slices of the time that is meant.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The next rest, in relation to its slice.
    rest: u32,
}

impl Pace {
    /// Whether the last slice was followed by a rest.
    pub(super) fn is_contended(&self) -> bool {
        self.rest > 0
    }

    /// The rest after a slice that took `elapsed`. `offered`: how long the thread was without its processor when it
    /// offered it to others.
    pub(super) fn rest(&mut self, elapsed: Duration, offered: Duration) -> Duration {
        self.rest = if offered >= CONTENDED { (self.rest * 2).clamp(1, LONGEST) } else { self.rest / 2 };
        // A slice that lasted longer than it is meant to waited itself, for a processor or a disk.
        elapsed.min(SLICE) * self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_micros(20);

    fn rests(elapsed: Duration, offered: &[Duration]) -> Vec<u128> {
        let mut pace = Pace::default();
        offered.iter().map(|offered| pace.rest(elapsed, *offered).as_micros()).collect()
    }

    #[test]
    fn a_scan_on_an_idle_machine_never_rests() {
        assert_eq!(rests(SLICE, &[IDLE; 5]), [0; 5]);
    }

    #[test]
    fn rests_grow_while_others_want_the_processor_and_end_when_they_do_not() {
        let offered = [[CONTENDED; 6], [IDLE; 6]].concat();
        let slice = Duration::from_micros(10);
        assert_eq!(rests(slice, &offered), [10, 20, 40, 80, 160, 160, 80, 40, 20, 10, 0, 0]);
    }

    #[test]
    fn a_slice_that_waited_is_not_followed_by_a_longer_rest() {
        assert_eq!(rests(Duration::from_secs(1), &[CONTENDED]), [SLICE.as_micros()]);
    }
}
