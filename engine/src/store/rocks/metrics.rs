//! Metrics of the store: gauges read from RocksDB properties.

use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};

use super::store::RocksStore;
use crate::cf::Cf;

const FAMILY: &str = "cf";

/// The gauges of one store. [`StoreMetrics::observe`] sets them. It only reads counters and may be called at any rate.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    memtable_bytes: IntGaugeVec,
    sst_bytes: IntGaugeVec,
    level0_files: IntGaugeVec,
    pending_compaction_bytes: IntGaugeVec,
    block_cache_bytes: IntGauge,
    snapshots: IntGauge,
    running_flushes: IntGauge,
    running_compactions: IntGauge,
    write_stopped: IntGauge,
}

impl StoreMetrics {
    /// Registers the gauges. Fails if the registry already has gauges with these names.
    pub fn new(registry: &Registry) -> prometheus::Result<StoreMetrics> {
        let single = |name: &str, help: &str| -> prometheus::Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let by_family = |name: &str, help: &str| -> prometheus::Result<IntGaugeVec> {
            let gauge = IntGaugeVec::new(Opts::new(name, help), &[FAMILY])?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        Ok(StoreMetrics {
            memtable_bytes: by_family("store_memtable_bytes", "Bytes of all memtables")?,
            sst_bytes: by_family("store_sst_bytes", "Bytes of all table files in use")?,
            level0_files: by_family("store_level0_files", "Table files not yet compacted once")?,
            pending_compaction_bytes: by_family("store_pending_compaction_bytes", "Bytes that compaction lags behind")?,
            block_cache_bytes: single("store_block_cache_bytes", "Bytes held by the block cache")?,
            snapshots: single("store_snapshots", "Snapshots not yet released")?,
            running_flushes: single("store_running_flushes", "Running flushes")?,
            running_compactions: single("store_running_compactions", "Running compactions")?,
            write_stopped: single("store_write_stopped", "1 while writes wait for flushes or compactions")?,
        })
    }

    /// Sets the gauges to the current values of `store`.
    pub fn observe(&self, store: &RocksStore) {
        for cf in Cf::ALL {
            for (gauge, property) in [
                (&self.memtable_bytes, "rocksdb.size-all-mem-tables"),
                (&self.sst_bytes, "rocksdb.live-sst-files-size"),
                (&self.level0_files, "rocksdb.num-files-at-level0"),
                (&self.pending_compaction_bytes, "rocksdb.estimate-pending-compaction-bytes"),
            ] {
                set(&gauge.with_label_values(&[cf.name()]), store.property(cf, property));
            }
        }
        for (gauge, property) in [
            (&self.block_cache_bytes, "rocksdb.block-cache-usage"),
            (&self.snapshots, "rocksdb.num-snapshots"),
            (&self.running_flushes, "rocksdb.num-running-flushes"),
            (&self.running_compactions, "rocksdb.num-running-compactions"),
            (&self.write_stopped, "rocksdb.is-write-stopped"),
        ] {
            set(gauge, store.property(Cf::Default, property));
        }
    }
}

fn set(gauge: &IntGauge, value: Option<u64>) {
    if let Some(value) = value {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }
}
