//! Metrics of the read pool, by level.

use std::time::Duration;

use prometheus::{
    Counter, Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use super::cost::Level;

/// Upper bounds of the buckets of a slice, in seconds: 100 us to about 0.4 s.
const SLICE_BUCKETS: [f64; 7] = [1e-4, 4e-4, 1.6e-3, 6.4e-3, 2.56e-2, 0.1024, 0.4096];
/// Upper bounds of the buckets of a wait, in seconds: 100 us to about 6.5 s.
const WAIT_BUCKETS: [f64; 9] = [1e-4, 4e-4, 1.6e-3, 6.4e-3, 2.56e-2, 0.1024, 0.4096, 1.6384, 6.5536];

/// The metrics of one level.
#[derive(Clone, Debug)]
pub(super) struct LevelMetrics {
    pub(super) done: IntCounter,
    pub(super) shed: IntCounter,
    pub(super) waiting: IntGauge,
    slices: Histogram,
    waits: Histogram,
}

impl LevelMetrics {
    /// Counts a slice, and the wait before it.
    pub(super) fn observe(&self, waited: Duration, elapsed: Duration) {
        self.waits.observe(waited.as_secs_f64());
        self.slices.observe(elapsed.as_secs_f64());
    }
}

/// Counters of a read pool.
#[derive(Clone, Debug)]
pub struct PoolMetrics {
    levels: Vec<LevelMetrics>,
    /// Bytes that the results of admitted jobs may take.
    pub(super) bytes: IntGauge,
    /// Seconds that threads rested between slices of long scans.
    pub(super) rests: Counter,
}

impl PoolMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    ///
    /// Fails if `registry` already holds the metrics of a pool.
    pub fn new(registry: &Registry) -> Result<PoolMetrics, Error> {
        let labels = ["level"];
        let opts = Opts::new("cortado_kv_read_pool_jobs_total", "Jobs of the read pool that ended, by level.");
        let done = IntCounterVec::new(opts, &labels)?;
        registry.register(Box::new(done.clone()))?;
        let opts = Opts::new("cortado_kv_read_pool_shed_total", "Jobs that were refused or shed, by level.");
        let shed = IntCounterVec::new(opts, &labels)?;
        registry.register(Box::new(shed.clone()))?;
        let opts = Opts::new("cortado_kv_read_pool_waiting", "Jobs that wait for a thread, by level.");
        let waiting = IntGaugeVec::new(opts, &labels)?;
        registry.register(Box::new(waiting.clone()))?;
        let opts = HistogramOpts::new("cortado_kv_read_pool_slice_seconds", "Time of a slice, by level.");
        let slices = HistogramVec::new(opts.buckets(SLICE_BUCKETS.to_vec()), &labels)?;
        registry.register(Box::new(slices.clone()))?;
        let opts = HistogramOpts::new("cortado_kv_read_pool_wait_seconds", "Wait before a slice, by level.");
        let waits = HistogramVec::new(opts.buckets(WAIT_BUCKETS.to_vec()), &labels)?;
        registry.register(Box::new(waits.clone()))?;
        let bytes = IntGauge::new("cortado_kv_read_pool_result_bytes", "Bytes that results of jobs may take.")?;
        registry.register(Box::new(bytes.clone()))?;
        let help = "Seconds that threads of long scans rested, because others wanted the processors.";
        let rests = Counter::new("cortado_kv_read_pool_rest_seconds_total", help)?;
        registry.register(Box::new(rests.clone()))?;
        let levels = Level::ALL.iter().map(|level| [level.name()]).map(|label| LevelMetrics {
            done: done.with_label_values(&label),
            shed: shed.with_label_values(&label),
            waiting: waiting.with_label_values(&label),
            slices: slices.with_label_values(&label),
            waits: waits.with_label_values(&label),
        });
        Ok(PoolMetrics { levels: levels.collect(), bytes, rests })
    }

    /// The number of jobs that ended.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> u64 {
        self.levels.iter().map(|level| level.done.get()).sum()
    }

    /// The metrics of a level.
    pub(super) fn of(&self, level: Level) -> &LevelMetrics {
        &self.levels[level.index()]
    }
}
