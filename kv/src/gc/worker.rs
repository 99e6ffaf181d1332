//! The background work of the collection: finds ranges with garbage and has them compacted, one after the other.
//!
//! Each [`Worker::turn`] does one thing that takes seconds at most: it flushes, so that the bound may follow the
//! published safe point; it examines a range; or it compacts a piece of one. After a compaction the worker rests three
//! times as long as it took, and it does nothing while flushes or compactions lag behind.
//!
//! There are two sources of ranges. The [`Tracker`] says where the safe point has passed many writes. The *survey*
//! examines the whole store, a sample of each piece: after the start, because the tracker's counts are lost then, and
//! every few hours, for whatever was missed. So neither a crash nor a mistake of the tracker hides garbage for ever.
//!
//! A range is compacted in `Cf::Write` first. That leaves deletes whose older records went at the same time, and long
//! values that nobody names any more. So the sample is examined again, and the compaction repeated if it is still worth
//! it; then the same is done with `Cf::Default`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use engine::Cf;
use engine::Op;
use engine::store::hooks::WriteObserver;
use engine::store::{Hooks, Store};
use parking_lot::Mutex;
use tso::Timestamp;

use super::bound::CollectBound;
use super::examine::examine;
use super::filter::new_filter;
use super::metrics::GcMetrics;
use super::tracker::{StorageRange, Tracker, TrackerConfig};
use crate::error::Result;

/// Settings of the collection on one store.
#[derive(Clone, Copy, Debug)]
pub struct GcConfig {
    /// When a bucket is examined.
    pub tracker: TrackerConfig,
    /// The interval between two surveys. Default 6 hours.
    pub survey_interval: Duration,
    /// After so long the bound follows the published safe point, with a flush, although no bucket is due: compactions
    /// that run anyway can collect more. Default 10 min: on an idle node, each flush has compactions of its own in its
    /// wake.
    pub settle_interval: Duration,
    /// The bytes on disk that one turn compacts, about. Default 128 MiB.
    pub piece_bytes: u64,
}

impl Default for GcConfig {
    fn default() -> GcConfig {
        GcConfig {
            tracker: TrackerConfig::default(),
            survey_interval: Duration::from_secs(6 * 3_600),
            settle_interval: Duration::from_secs(600),
            piece_bytes: 128 << 20,
        }
    }
}

/// The wait until the next turn if there is nothing to do, and if the store is strained.
const IDLE: Duration = Duration::from_secs(1);
/// The rest after an examination of the survey, which nobody waits for.
const SURVEY_REST: Duration = Duration::from_millis(20);
/// The rest after a compaction, as a multiple of the time it took.
const REST_FACTOR: u32 = 3;
/// Compactions of one range of one family in a row.
const PASSES_MAX: u32 = 3;
/// Bytes on disk of a piece of the survey.
const SURVEY_BYTES: u64 = 64 << 20;
/// The families with garbage, in the order of their compaction.
const FAMILIES: [Cf; 2] = [Cf::Write, Cf::Default];

/// The collection on one store, before the store is opened: what the store's hooks and the worker share.
#[derive(Clone)]
pub struct Collection {
    config: GcConfig,
    bound: CollectBound,
    metrics: GcMetrics,
    tracker: Arc<Mutex<Tracker>>,
}

impl Collection {
    /// A collection that has seen nothing.
    pub fn new(config: GcConfig, bound: CollectBound, metrics: GcMetrics) -> Collection {
        let tracker = Arc::new(Mutex::new(Tracker::new(config.tracker)));
        Collection { config, bound, metrics, tracker }
    }

    /// The hooks to open the store with.
    pub fn hooks(&self) -> Hooks {
        let tracker = Arc::clone(&self.tracker);
        let observer: WriteObserver = Arc::new(move |ops: &mut dyn Iterator<Item = Op<'_>>| {
            let mut tracker = tracker.lock();
            for op in ops {
                if let Op::Put { cf: Cf::Write | Cf::Default, key, .. } = op {
                    tracker.put(key);
                }
            }
        });
        let new_filter = new_filter(self.bound.clone(), self.metrics.clone());
        Hooks { new_filter: Some(new_filter), observer: Some(observer) }
    }

    /// The worker of the opened store.
    pub fn worker<S: Store>(&self, store: S) -> Worker<S> {
        Worker {
            store,
            shared: self.clone(),
            job: None,
            survey: VecDeque::new(),
            next_survey: Duration::ZERO,
            next_settle: Duration::ZERO,
            rests_until: Duration::ZERO,
        }
    }
}

/// See the module documentation.
pub struct Worker<S: Store> {
    store: S,
    shared: Collection,
    job: Option<Job>,
    /// What the survey has not examined yet.
    survey: VecDeque<(Cf, StorageRange)>,
    next_survey: Duration,
    next_settle: Duration,
    rests_until: Duration,
}

/// A range that is being compacted.
struct Job {
    range: StorageRange,
    /// The families that are not done. The first one is being compacted.
    families: VecDeque<Cf>,
    /// The compactions of the whole range in the first family so far.
    passes: u32,
    /// The pieces that are left of this one.
    pieces: VecDeque<StorageRange>,
}

impl<S: Store> Worker<S> {
    /// Does one piece of work. Returns after which time to call again. `clock` reads the time since the start.
    ///
    /// # Errors
    ///
    /// The store fails. The work may be tried again later.
    pub fn turn(&mut self, clock: &dyn Fn() -> Duration) -> Result<Duration> {
        let now = clock();
        self.settle(now)?;
        let safe_point = self.shared.bound.get();
        let ms = |ts: Timestamp| i64::try_from(ts.physical_ms()).unwrap_or(i64::MAX);
        self.shared.metrics.bound_ms.set(ms(safe_point));
        self.shared.metrics.published_ms.set(ms(self.shared.bound.published()));
        if safe_point == Timestamp::ZERO || self.store.is_strained() {
            return Ok(IDLE);
        }
        if now < self.rests_until {
            return Ok(self.rests_until.saturating_sub(now).min(IDLE));
        }
        if self.job.is_some() {
            self.go_on(safe_point, clock)?;
            return Ok(Duration::ZERO);
        }
        let due = self.shared.tracker.lock().next_due(safe_point, now);
        if let Some(range) = due {
            self.begin(safe_point, range, &FAMILIES)?;
            return Ok(Duration::ZERO);
        }
        if now >= self.next_survey {
            self.next_survey = now + self.shared.config.survey_interval;
            self.plan_survey()?;
        }
        let Some((cf, range)) = self.survey.pop_front() else { return Ok(IDLE) };
        self.begin(safe_point, range, &[cf])?;
        Ok(SURVEY_REST)
    }

    /// Whether nothing is left to do at the published safe point.
    pub fn is_idle(&self, now: Duration) -> bool {
        let published = self.shared.bound.published();
        let is_due = || self.shared.tracker.lock().has_due(published, now);
        self.job.is_none() && self.survey.is_empty() && now < self.next_survey && !is_due()
    }

    /// Flushes, so that the bound follows what was published, if somebody has use for it.
    fn settle(&mut self, now: Duration) -> Result<()> {
        let Collection { bound, tracker, config, .. } = &self.shared;
        let published = bound.published();
        if published == bound.get() || self.job.is_some() {
            return Ok(());
        }
        if now >= self.next_settle || tracker.lock().has_due(published, now) {
            bound.settle(|| self.store.flush())?;
            self.next_settle = now + config.settle_interval;
        }
        Ok(())
    }

    /// Divides the store into pieces for the survey.
    fn plan_survey(&mut self) -> Result<()> {
        let all = StorageRange { start: Vec::new(), end: Vec::new() };
        for cf in FAMILIES {
            let pieces = divide(&self.store, cf, &all, SURVEY_BYTES)?;
            self.survey.extend(pieces.into_iter().map(|piece| (cf, piece)));
        }
        Ok(())
    }

    /// Examines the range, and begins to compact the families with much garbage.
    fn begin(&mut self, safe_point: Timestamp, range: StorageRange, families: &[Cf]) -> Result<()> {
        self.shared.metrics.examined.inc();
        let mut worth = VecDeque::new();
        for cf in families {
            if examine(&self.store, safe_point, *cf, &range)?.is_worth_a_compaction() {
                worth.push_back(*cf);
            }
        }
        // Compacted write records leave values that nobody names.
        if worth.front() == Some(&Cf::Write) && !worth.contains(&Cf::Default) {
            worth.push_back(Cf::Default);
        }
        if !worth.is_empty() {
            self.job = Some(Job { range, families: worth, passes: 0, pieces: VecDeque::new() });
        }
        Ok(())
    }

    /// Compacts the next piece of the job, or ends it.
    fn go_on(&mut self, safe_point: Timestamp, clock: &dyn Fn() -> Duration) -> Result<()> {
        let Some(mut job) = self.job.take() else { return Ok(()) };
        while let Some(cf) = job.families.front().copied() {
            if let Some(piece) = job.pieces.pop_front() {
                self.compact(cf, &piece, clock)?;
                self.job = Some(job);
                return Ok(());
            }
            if job.passes < PASSES_MAX && examine(&self.store, safe_point, cf, &job.range)?.is_worth_a_compaction() {
                job.passes += 1;
                job.pieces = divide(&self.store, cf, &job.range, self.shared.config.piece_bytes)?;
            } else {
                job.families.pop_front();
                job.passes = 0;
            }
        }
        self.shared.tracker.lock().collected(&job.range, safe_point, clock());
        Ok(())
    }

    fn compact(&mut self, cf: Cf, piece: &StorageRange, clock: &dyn Fn() -> Duration) -> Result<()> {
        let bytes = || self.store.bytes_on_disk(cf, &piece.start, &piece.end);
        let (began, before) = (clock(), bytes()?);
        self.store.compact_range(cf, &piece.start, &piece.end)?;
        let (took, after) = (clock().saturating_sub(began), bytes()?);
        let metrics = &self.shared.metrics;
        metrics.ranges.inc();
        metrics.seconds.inc_by(took.as_secs_f64());
        metrics.reclaimed_bytes.inc_by(before.saturating_sub(after));
        tracing::debug!(family = cf.name(), ?took, before, after, "compacted a range to collect old versions");
        self.rests_until = clock() + took * REST_FACTOR;
        Ok(())
    }
}

/// The range in pieces of about `bytes` bytes on disk.
fn divide<S: Store>(store: &S, cf: Cf, range: &StorageRange, bytes: u64) -> Result<VecDeque<StorageRange>> {
    let cuts = store.divide(cf, &range.start, &range.end, bytes)?;
    let mut pieces = VecDeque::with_capacity(cuts.len() + 1);
    let mut start = range.start.clone();
    for end in cuts {
        pieces.push_back(StorageRange { start: std::mem::replace(&mut start, end.clone()), end });
    }
    pieces.push_back(StorageRange { start, end: range.end.clone() });
    Ok(pieces)
}
