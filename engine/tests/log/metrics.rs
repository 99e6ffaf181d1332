//! The metrics of the log: docs/metrics.md documents all of them, and their values are correct.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::disk::{Operation, SimDisk};
use engine::log::{
    Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter, PurgeOutcome, RecoveryMode,
};
use prometheus::Registry;
use prometheus::proto::MetricType;

const GROUP: GroupId = GroupId(7);

struct Fixture {
    disk: Arc<SimDisk>,
    registry: Registry,
    log: LogEngine,
    writer: LogWriter,
}

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 8 << 10,
        purge_threshold: 128 << 10,
        spare_files: 1,
        identity: Some(1),
        ..LogOptions::default()
    }
}

fn open(disk: &Arc<SimDisk>, options: LogOptions) -> Fixture {
    let registry = Registry::new();
    let options = LogOptions { registry: Some(registry.clone()), ..options };
    let (log, writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
    Fixture { disk: Arc::clone(disk), registry, log, writer }
}

impl Fixture {
    /// Appends an entry of 8 KiB that does not compress.
    fn append(&mut self, index: u64) -> Result<(), LogError> {
        let mixed = |at: u64| {
            (at + index * 1024).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let entry: Vec<u8> = (0..1024).flat_map(|at| mixed(at).to_le_bytes()).collect();
        let mut batch = LogBatch::new();
        batch.append(GROUP, index, vec![entry.into()]);
        self.write(batch)
    }

    fn write(&mut self, batch: LogBatch) -> Result<(), LogError> {
        let ticket = self.log.submit(batch, Durability::Synced)?;
        self.writer.turn();
        ticket.wait().map(|_| ())
    }

    /// The value of a counter or gauge, or the number of samples of a histogram.
    fn value(&self, name: &str) -> f64 {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == format!("cortado_log_{name}"));
        let metric = &family.unwrap_or_else(|| panic!("no {name}")).get_metric()[0];
        metric.get_counter().get_value()
            + metric.get_gauge().get_value()
            + metric.get_histogram().get_sample_count() as f64
    }
}

/// Names and kinds of the metrics of the log in the documented tables.
fn documented() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter(|row| row.starts_with("cortado_log_")).map(|row| {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_end_matches('`').to_owned());
        (cells.next().unwrap(), cells.next().unwrap())
    });
    cells.collect()
}

#[test]
fn the_documented_metrics_are_the_registered_ones() {
    let fixture = open(&SimDisk::new(), options());
    let kind = |kind: MetricType| match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        _ => "something else",
    };
    let families = fixture.registry.gather();
    let there: BTreeMap<String, String> =
        families.iter().map(|family| (family.name().to_owned(), kind(family.get_field_type()).to_owned())).collect();
    assert_eq!(documented(), there);
    for (name, kind) in there {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
}

/// Regression: only a successful purge set the gauges. So they were 0 after opening, and stale while purge failed.
#[test]
fn gauges_are_computed_when_gathered() {
    let mut fixture = open(&SimDisk::new(), options());
    assert_eq!(fixture.value("files"), 1.0, "right after opening");
    assert!(fixture.value("disk_bytes") > 0.0);
    (1..=20).for_each(|index| fixture.append(index).unwrap());
    let stats = fixture.log.stats();
    assert!(stats.files > 2 && stats.live_bytes > 150_000);
    assert_eq!(fixture.value("files"), stats.files as f64);
    assert_eq!(
        (fixture.value("disk_bytes"), fixture.value("live_bytes")),
        (stats.disk_bytes as f64, stats.live_bytes as f64)
    );
    let ticket = fixture.log.submit(LogBatch::new(), Durability::Synced).unwrap();
    assert_eq!(fixture.value("queued_batches"), 1.0);
    fixture.writer.turn();
    ticket.wait().unwrap();
    assert_eq!((fixture.value("queued_batches"), fixture.value("queued_bytes")), (0.0, 0.0));
    drop(fixture.writer);
    drop(fixture.log);
    let left = fixture.registry.gather();
    assert!(left.iter().all(|family| family.name() != "cortado_log_files"), "the registry does not keep the log open");
}

#[test]
fn raw_and_stored_bytes_are_counted() {
    let mut raw = Vec::new();
    for align_bytes in [8, 4096] {
        let mut fixture = open(&SimDisk::new(), LogOptions { align_bytes, ..options() });
        let mut batch = LogBatch::new();
        (1..=100u64).for_each(|key| batch.put(GROUP, &key.to_le_bytes(), &[7; 100]));
        fixture.write(batch).unwrap();
        let (stored, padding) = (fixture.value("stored_bytes_total"), fixture.value("padding_bytes_total"));
        raw.push(fixture.value("raw_bytes_total"));
        assert!(raw[0] > 10_000.0, "keys count as bytes");
        assert!(stored - padding < raw[0] / 2.0, "they were compressed");
        assert_eq!((stored as u64 % align_bytes, padding > 1000.0), (0, align_bytes == 4096));
        assert_eq!((fixture.value("write_seconds"), fixture.value("sync_seconds")), (1.0, 1.0));
    }
    assert_eq!(raw[0], raw[1], "padding is not included");
}

#[test]
fn full_disks_purge_and_pinning_groups_are_counted() {
    let mut fixture = open(&SimDisk::new(), options());
    (1..=40).for_each(|index| fixture.append(index).unwrap());
    fixture.log.purge(Budget::default()).unwrap();
    assert_eq!(fixture.value("lagging_groups"), 1.0);
    assert!(fixture.value("pinned_bytes") > 30_000.0);
    assert_eq!(fixture.value("spare_files"), 1.0);
    fixture.disk.set_capacity(Some(fixture.disk.used()));
    let refused = (41..60).find(|index| fixture.append(*index).is_err());
    assert!(refused.is_some());
    assert_eq!(fixture.value("no_space_total"), 1.0);
    let mut batch = LogBatch::new();
    batch.compact(GROUP, 40);
    fixture.write(batch).unwrap();
    let mut freed = 0;
    for _ in 0..10 {
        freed += fixture.log.purge(Budget::default()).unwrap().freed;
        fixture.writer.turn();
    }
    assert!(freed > 200_000);
    assert_eq!(fixture.value("freed_bytes_total"), freed as f64);
    assert_eq!((fixture.value("lagging_groups"), fixture.value("pinned_bytes")), (0.0, 0.0));
}

#[test]
fn a_block_is_a_cache_miss_once() {
    let disk = SimDisk::new();
    let mut fixture = open(&disk, options());
    (1..=3).for_each(|index| fixture.append(index).unwrap());
    drop((fixture.writer, fixture.log));
    let fixture = open(&disk, options());
    assert_eq!((fixture.value("cache_hits_total"), fixture.value("cache_misses_total")), (0.0, 0.0));
    (0..3).for_each(|_| assert!(fixture.log.entry(GROUP, 2).is_ok()));
    assert_eq!((fixture.value("cache_hits_total"), fixture.value("cache_misses_total")), (2.0, 1.0));
    assert!(fixture.value("cache_bytes") >= 8192.0);
    assert_eq!((fixture.value("recovery_groups"), fixture.value("recovery_entries")), (1.0, 3.0));
    assert_eq!((fixture.value("recovery_files"), fixture.value("recovery_truncated_bytes")), (1.0, 0.0));
    assert!(fixture.value("recovery_read_bytes") > 24_000.0 && fixture.value("recovery_seconds") > 0.0);
}

#[test]
fn a_poisoned_log_reports_it() {
    let mut fixture = open(&SimDisk::new(), options());
    assert_eq!(fixture.value("poisoned"), 0.0);
    (1..=40).for_each(|index| fixture.append(index).unwrap());
    fixture.log.purge(Budget::default()).unwrap();
    assert_eq!(fixture.value("lagging_groups"), 1.0);
    fixture.disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    assert!(fixture.append(41).is_err());
    assert_eq!(fixture.value("poisoned"), 1.0);
    // Purge no longer looks for them.
    assert_eq!((fixture.value("lagging_groups"), fixture.value("pinned_bytes")), (0.0, 0.0));
}

#[test]
fn commit_groups_batches_rotations_and_rewrites_are_counted() {
    let mut fixture = open(&SimDisk::new(), LogOptions { purge_threshold: 0, ..options() });
    let names = ["groups_total", "batches_total", "batches_per_group", "rotations_total", "rewritten_bytes_total"];
    let values = |fixture: &Fixture| names.map(|name| fixture.value(name));
    assert_eq!(values(&fixture), [0.0; 5]);
    let keep = |group: u64| {
        let mut batch = LogBatch::new();
        batch.append(GroupId(group), 1, vec![vec![group as u8; 10].into()]);
        batch
    };
    let tickets: Vec<_> =
        (100..103).map(|group| fixture.log.submit(keep(group), Durability::Synced).unwrap()).collect();
    fixture.writer.turn();
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(values(&fixture), [1.0, 3.0, 1.0, 0.0, 0.0], "three batches in one commit group");
    (1..=20).for_each(|index| fixture.append(index).unwrap());
    let sealed = fixture.log.stats().files - 1;
    assert!(sealed >= 2);
    assert_eq!(values(&fixture), [21.0, 23.0, 21.0, sealed as f64, 0.0]);
    let mut batch = LogBatch::new();
    batch.compact(GROUP, 20);
    fixture.write(batch).unwrap();
    let before = fixture.value("raw_bytes_total");
    while fixture.value("rewritten_bytes_total") == 0.0 {
        assert_ne!(
            fixture.log.purge(Budget::default()).unwrap().outcome,
            PurgeOutcome::Idle,
            "the live part of the first file is rewritten"
        );
        fixture.writer.turn();
    }
    let rewritten = fixture.value("rewritten_bytes_total");
    assert!(rewritten >= 30.0 && rewritten <= fixture.value("raw_bytes_total") - before, "{rewritten}");
}

/// Regression: a refused open had already registered its names, so no later open with the same registry could succeed.
#[test]
fn a_refused_open_registers_no_names() {
    let disk = SimDisk::new();
    let mut fixture = open(&disk, options());
    (1..=3).for_each(|index| fixture.append(index).unwrap());
    drop((fixture.writer, fixture.log));
    let name = "0000000000000001.log";
    let mut torn = disk.content(name).unwrap();
    let whole = torn.len();
    torn.iter_mut().skip(whole - (12 << 10)).for_each(|byte| *byte = 1);
    disk.set_content(name, torn);
    let registry = Registry::new();
    let attempt = |recovery| {
        let options = LogOptions { registry: Some(registry.clone()), recovery, ..options() };
        LogEngine::open_driven(disk.session(), options).map(drop)
    };
    let refused = attempt(RecoveryMode::Strict);
    assert!(matches!(refused, Err(LogError::TornTail { .. } | LogError::Corrupt { .. })), "{refused:?}");
    let salvaged = attempt(RecoveryMode::Salvage);
    assert!(salvaged.is_ok(), "{salvaged:?}");
}
