//! When a read is hedged: the delay of each class, and the budget.
//!
//! Pure. The delay is the 95th percentile of the class's own times, within bounds. So about one read in twenty is slow
//! enough, and the budget holds the share at that even when many are: each read adds a twentieth of a hedge to it.

use std::time::Duration;

use super::options::HedgePolicy;
use crate::api::RequestBody;

/// The least delay: below it a hedge costs more than it can save.
const DELAY_MIN: Duration = Duration::from_micros(500);
/// The greatest delay: a slow store must not raise the delay to its own slowness.
const DELAY_MAX: Duration = Duration::from_millis(50);
/// Reads of a class that are measured before it is hedged.
const SAMPLES_MIN: u32 = 100;
/// Samples after which older ones count half.
const SAMPLES_MAX: u32 = 2_048;
/// Samples between two computations of the percentile.
const REFRESH: u32 = 32;

/// Reads that pay for one hedge.
const READS_PER_HEDGE: u32 = 20;
/// The most hedges that the budget holds: those of one stall of a busy store.
const BUDGET_MAX: u32 = 100;
/// The hedges in the budget at the start.
const BUDGET_START: u32 = 10;

/// Pairs up to which a scan is short.
const SHORT_SCAN: u32 = 100;

/// Reads whose times are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadClass {
    Point,
    Batch,
    ShortScan,
    LongScan,
}

impl ReadClass {
    const COUNT: usize = 4;

    /// The class of a read; `None` for every other request.
    pub(super) fn of(body: &RequestBody) -> Option<ReadClass> {
        match body {
            RequestBody::Get { .. } => Some(ReadClass::Point),
            RequestBody::BatchGet { .. } => Some(ReadClass::Batch),
            RequestBody::Scan(scan) if scan.limit <= SHORT_SCAN => Some(ReadClass::ShortScan),
            RequestBody::Scan(_) => Some(ReadClass::LongScan),
            _ => None,
        }
    }

    fn index(self) -> usize {
        match self {
            ReadClass::Point => 0,
            ReadClass::Batch => 1,
            ReadClass::ShortScan => 2,
            ReadClass::LongScan => 3,
        }
    }
}

/// The delays and the budget of a client.
#[derive(Debug)]
pub(super) struct Hedges {
    times: [Times; ReadClass::COUNT],
    /// In reads: [`READS_PER_HEDGE`] make one hedge.
    budget: u32,
}

impl Default for Hedges {
    fn default() -> Hedges {
        Hedges { times: std::array::from_fn(|_| Times::default()), budget: BUDGET_START * READS_PER_HEDGE }
    }
}

impl Hedges {
    /// Counts a read that may be hedged. Returns the delay after which it is; `None` if its class is not measured yet.
    pub(super) fn begin(&mut self, policy: HedgePolicy, class: ReadClass) -> Option<Duration> {
        self.budget = self.budget.saturating_add(1).min(BUDGET_MAX * READS_PER_HEDGE);
        match policy {
            HedgePolicy::Off => None,
            HedgePolicy::After(delay) => Some(delay),
            HedgePolicy::Auto => self.times.get(class.index())?.p95.map(|p95| p95.clamp(DELAY_MIN, DELAY_MAX)),
        }
    }

    /// Takes a hedge from the budget. `false` if there is none.
    pub(super) fn take(&mut self) -> bool {
        let left = self.budget.checked_sub(READS_PER_HEDGE);
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }

    /// Measures a read.
    pub(super) fn observe(&mut self, class: ReadClass, time: Duration) {
        if let Some(times) = self.times.get_mut(class.index()) {
            times.add(time);
        }
    }
}

/// log2 of the least time in microseconds that is told from shorter ones.
const LEAST_LOG2: u32 = 6;
/// Powers of two above it that are told apart, up to 16 s.
const OCTAVES: u32 = 18;
/// Buckets of each power of two: a bucket's bounds differ by at most an eighth.
const PER_OCTAVE: u32 = 8;
const BUCKETS: usize = (OCTAVES * PER_OCTAVE + 1) as usize;

/// The recent times of a class, in buckets that grow with the time.
#[derive(Debug)]
struct Times {
    counts: [u32; BUCKETS],
    total: u32,
    /// Samples since the percentile was computed.
    since: u32,
    /// The 95th percentile, rounded up to its bucket's bound.
    p95: Option<Duration>,
}

impl Default for Times {
    fn default() -> Times {
        Times { counts: [0; BUCKETS], total: 0, since: 0, p95: None }
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        let Some(count) = self.counts.get_mut(bucket(time)) else { return };
        *count += 1;
        self.total += 1;
        self.since += 1;
        if self.total >= SAMPLES_MIN && (self.p95.is_none() || self.since >= REFRESH) {
            self.p95 = Some(self.percentile_95());
            self.since = 0;
        }
        if self.total >= SAMPLES_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    fn percentile_95(&self) -> Duration {
        let mut above = self.total / 20;
        for (index, count) in self.counts.iter().enumerate().rev() {
            if *count > above {
                return upper_bound(index);
            }
            above -= count;
        }
        upper_bound(0)
    }
}

/// The bucket of a time. Bucket 0 holds all below 64 us, the last one also all above.
fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let Some(log2) = micros.checked_ilog2().filter(|log2| *log2 >= LEAST_LOG2) else { return 0 };
    let within = (micros >> (log2 - PER_OCTAVE.ilog2())) as u32 % PER_OCTAVE;
    (((log2 - LEAST_LOG2) * PER_OCTAVE + within + 1) as usize).min(BUCKETS - 1)
}

/// The least time above a bucket.
fn upper_bound(bucket: usize) -> Duration {
    let steps = bucket as u64;
    let (octave, within) = (steps / u64::from(PER_OCTAVE), steps % u64::from(PER_OCTAVE));
    Duration::from_micros((u64::from(PER_OCTAVE) + within) << (octave + u64::from(LEAST_LOG2 - PER_OCTAVE.ilog2())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// A time lies below the bound of its bucket, at most an eighth, and not below that of the bucket before.
    #[test]
    fn buckets_hold_the_times_up_to_their_bounds() {
        for time in (0..24).flat_map(|log2| [1u64 << log2, (1 << log2) + 1, (3 << log2) / 2, (2 << log2) - 1]) {
            let (time, index) = (micros(time), bucket(micros(time)));
            if time < micros(16 << 20) {
                assert!(time < upper_bound(index), "{time:?} in bucket {index}");
            }
            if index > 0 {
                assert!(time >= upper_bound(index - 1), "{time:?} in bucket {index}");
                assert!(
                    time < micros(16 << 20) && upper_bound(index) <= time * 9 / 8 + micros(1) || index == BUCKETS - 1
                );
            }
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    fn measured(times: impl IntoIterator<Item = u64>) -> Hedges {
        let mut hedges = Hedges::default();
        times.into_iter().for_each(|time| hedges.observe(ReadClass::Point, micros(time)));
        hedges
    }

    #[test]
    fn the_delay_is_the_95th_percentile_of_its_own_class() {
        // 1 ms to 10 ms in even steps: the percentile is 9.55 ms.
        let mut hedges = measured((0..1_000).map(|n| 1_000 + (n * 7) % 1_000 * 9));
        let delay = hedges.begin(HedgePolicy::Auto, ReadClass::Point).expect("measured");
        assert!((micros(9_500)..micros(10_750)).contains(&delay), "{delay:?}");
        assert_eq!(hedges.begin(HedgePolicy::Auto, ReadClass::Batch), None, "another class");
        assert_eq!(hedges.begin(HedgePolicy::After(micros(7)), ReadClass::Batch), Some(micros(7)));
        assert_eq!(hedges.begin(HedgePolicy::Off, ReadClass::Point), None);
    }

    #[test]
    fn the_delay_has_bounds_and_needs_samples() {
        let delay = |times: &mut Hedges| times.begin(HedgePolicy::Auto, ReadClass::Point);
        assert_eq!(delay(&mut measured([10; 99])), None);
        assert_eq!(delay(&mut measured([10; 100])), Some(DELAY_MIN));
        assert_eq!(delay(&mut measured([5_000_000; 100])), Some(DELAY_MAX));
        // One read in 25 is slow: the delay stays below its time.
        let mut rare = measured((0..400).map(|n| if n % 25 == 0 { 40_000 } else { 1_000 }));
        assert!(delay(&mut rare).expect("measured") < micros(1_200));
    }

    /// Old samples fade: a class that has become fast is hedged sooner.
    #[test]
    fn the_delay_follows_the_times() {
        let mut hedges = measured([20_000; 2_000]);
        assert!(hedges.begin(HedgePolicy::Auto, ReadClass::Point) >= Some(micros(20_000)));
        (0..40_000).for_each(|_| hedges.observe(ReadClass::Point, micros(2_000)));
        assert!(hedges.begin(HedgePolicy::Auto, ReadClass::Point) < Some(micros(2_500)));
    }

    /// Whatever the order of reads and hedges, there is at most one hedge for twenty reads, but for those at the start.
    #[test]
    fn the_budget_holds_hedges_at_a_twentieth() {
        let mut hedges = Hedges::default();
        let (mut sent, mut refused) = (0u32, 0u32);
        for read in 1..=10_000u32 {
            hedges.begin(HedgePolicy::Auto, ReadClass::Point);
            if hedges.take() {
                sent += 1
            } else {
                refused += 1
            }
            assert!(sent <= BUDGET_START + read / READS_PER_HEDGE, "{sent} hedges of {read} reads");
        }
        assert_eq!((sent, refused), (BUDGET_START + 500, 9_500 - BUDGET_START));
        // An idle budget does not grow for ever.
        for _ in 0..100_000 {
            hedges.begin(HedgePolicy::Auto, ReadClass::Point);
        }
        assert_eq!((0..1_000).filter(|_| hedges.take()).count(), BUDGET_MAX as usize);
    }
}
