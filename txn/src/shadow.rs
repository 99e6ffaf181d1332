//! The shadow oracle: reads at replicas are read again on the leader, at the same start_ts, and compared.
//!
//! A read at a timestamp never changes: what commits after it commits above it. So any difference is a defect, in the
//! proof of one of the two reads or below it. It is logged as an error with both proofs, and counted.
//!
//! A fraction of the reads with options is sampled ([`crate::TxnConfig::shadow_reads`]). The comparison runs in the
//! background, some time after the read: a read on the leader raises `max_ts` there, which would hide that the first
//! one did not. The samples that wait are bounded in number and size; what exceeds that is not sampled. Reads without a
//! proof are not: nobody promised that they are right.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::client::{HedgePolicy, Page, ProofPolicy, ReadOptions, ReadReport, ReplicaPolicy, ScanRange, Snapshot};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tso::Timestamp;

use crate::coordinator::Coordinator;
use crate::error::TxnError;

/// The time between a read and its comparison. A commit that an earlier timestamp hides is applied within it.
const DELAY: Duration = Duration::from_millis(100);
/// What a sample weighs besides its keys and values, in KiB.
const WEIGHT_EACH: usize = 8;
/// Pairs of a page of a scan that is repeated.
const PAGE: u32 = 1_024;

/// The pairs of a read, in any order.
type Pairs = Vec<(Key, Bytes)>;

/// What was read at a replica, to be read again.
#[derive(Debug)]
pub(crate) enum Sample {
    /// Of all these keys, those that exist.
    Keys(Vec<Key>, Pairs),
    /// All of this range.
    Range(ScanRange, Pairs),
}

/// A sample with its proof, and the room that it takes.
#[derive(Debug)]
struct Shadow {
    sample: Sample,
    start_ts: Timestamp,
    /// Of the last request of the read.
    report: Option<ReadReport>,
    _room: OwnedSemaphorePermit,
}

impl Sample {
    /// A page of a batch get: the keys before the one where it resumes.
    pub(crate) fn keys_of_page(keys: &[Key], page: &Page) -> Sample {
        let covered = |key: &&Key| page.resume.as_ref().is_none_or(|resume| *key < resume);
        Sample::Keys(keys.iter().filter(covered).cloned().collect(), page.pairs.clone())
    }

    /// A page of a scan: the part of the range before the key where it resumes.
    pub(crate) fn page(range: &ScanRange, page: &Page) -> Sample {
        let covered = match &page.resume {
            None => range.clone(),
            Some(resume) if range.reverse => ScanRange { start: resume.clone(), ..range.clone() },
            Some(resume) => ScanRange { end: resume.clone(), ..range.clone() },
        };
        Sample::Range(covered, page.pairs.clone())
    }

    /// In KiB, rounded up.
    fn weight(&self) -> usize {
        let (Sample::Keys(_, pairs) | Sample::Range(_, pairs)) = self;
        let keys = if let Sample::Keys(keys, _) = self { keys.iter().map(|key| key.as_bytes().len()).sum() } else { 0 };
        let bytes: usize = pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
        WEIGHT_EACH + (keys + bytes).div_ceil(1 << 10)
    }

    /// Reads it on the leader, past the locks of others.
    async fn read_again(&self, coordinator: &Coordinator, at: &Snapshot) -> Result<Pairs, TxnError> {
        let kv = &coordinator.kv;
        match self {
            Sample::Keys(keys, _) => coordinator.read(at.clone(), Vec::new(), |at| kv.batch_get(keys, at)).await,
            Sample::Range(range, _) => read_range(coordinator, range, at).await,
        }
    }
}

async fn read_range(coordinator: &Coordinator, range: &ScanRange, at: &Snapshot) -> Result<Pairs, TxnError> {
    let kv = &coordinator.kv;
    let (mut rest, mut pairs) = (range.clone(), Vec::new());
    loop {
        let page = coordinator.read(at.clone(), Vec::new(), |at| kv.scan(&rest, at, PAGE)).await?;
        pairs.extend(page.pairs);
        let Some(resume) = page.resume else { return Ok(pairs) };
        rest = rest.resume_at(resume);
    }
}

/// Whether reads with these options are sampled: a replica that does not lead may have served, with a proof.
fn is_sampled(options: &ReadOptions) -> bool {
    let is_plain = options.replica == ReplicaPolicy::Leader && options.hedge == HedgePolicy::Off;
    !is_plain && options.proof != ProofPolicy::Unproven
}

impl Coordinator {
    /// Draws whether a read with these options, which has found something at `start_ts`, is compared, and if so begins
    /// it in the background. Never waits.
    pub(crate) fn shadow(
        self: &Arc<Self>,
        options: Option<&Arc<ReadOptions>>,
        start_ts: Timestamp,
        sample: impl FnOnce() -> Sample,
    ) {
        let fraction = self.config.shadow_reads;
        let Some(options) = options.filter(|options| fraction > 0.0 && is_sampled(options)) else { return };
        if !self.draws(fraction) || Handle::try_current().is_err() {
            return;
        }
        let sample = sample();
        let weight = u32::try_from(sample.weight()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.shadows).try_acquire_many_owned(weight) else { return };
        let shadow = Shadow { sample, start_ts, report: options.trace.last(), _room: room };
        let coordinator = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::time::sleep(DELAY).await;
            coordinator.compare(shadow).await;
        });
    }

    /// Reads a sample again and reports a difference. One that cannot be read is not counted.
    async fn compare(&self, shadow: Shadow) {
        let Shadow { sample, start_ts, report, .. } = shadow;
        let options = Arc::new(ReadOptions::default());
        let at = Snapshot { options: Some(Arc::clone(&options)), ..Snapshot::from(start_ts) };
        let again = match sample.read_again(self, &at).await {
            Ok(again) => again,
            Err(error) => {
                tracing::debug!(%start_ts, %error, "a shadow read failed");
                return;
            }
        };
        self.metrics.shadow_reads.inc();
        let (Sample::Keys(_, found) | Sample::Range(_, found)) = &sample;
        if let Some(difference) = difference(found.clone(), again) {
            self.metrics.shadow_differences.inc();
            tracing::error!(
                replica = %proof(report),
                leader = %proof(options.trace.last()),
                "the read at {start_ts} differs on the leader: {difference}"
            );
        }
    }
}

/// The first pair in which two reads differ, with the values of both.
fn difference(mut found: Pairs, mut again: Pairs) -> Option<String> {
    for pairs in [&mut found, &mut again] {
        pairs.sort_unstable();
        pairs.dedup();
    }
    let only = |a: &Pairs, b: &Pairs| a.iter().find(|pair| b.binary_search(pair).is_err()).map(|(key, _)| key.clone());
    let key = only(&found, &again).or_else(|| only(&again, &found))?;
    let value = |pairs: &Pairs| pairs.iter().find(|(at, _)| *at == key).map(|(_, value)| value.clone());
    Some(format!("{key:?} is {:?} at the replica, {:?} on the leader", value(&found), value(&again)))
}

/// How a read was proven.
fn proof(report: Option<ReadReport>) -> String {
    report.map_or_else(
        || "unknown".to_owned(),
        |ReadReport { path, store, start_ts, safe_ts, .. }| {
            format!("{path:?} of store {store}, start_ts {start_ts}, safe_ts {safe_ts}")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&'static str, &'static str)]) -> Pairs {
        of.iter().map(|(key, value)| (Key::new(*key), Bytes::from_static(value.as_bytes()))).collect()
    }

    #[test]
    fn a_difference_names_the_key_and_both_values() {
        let found = pairs(&[("b", "2"), ("a", "1"), ("a", "1")]);
        assert_eq!(difference(found.clone(), pairs(&[("a", "1"), ("b", "2")])), None);
        for (again, expected) in [
            (pairs(&[("a", "1"), ("b", "3")]), [r#""2""#, r#""3""#]),
            (pairs(&[("a", "1")]), [r#""2""#, "None"]),
            (pairs(&[("a", "1"), ("b", "2"), ("c", "4")]), ["None", r#""4""#]),
        ] {
            let told = difference(found.clone(), again).unwrap();
            assert!(expected.iter().all(|value| told.contains(value)), "{told}");
        }
    }

    #[test]
    fn a_page_covers_its_range_up_to_where_it_resumes() {
        let range = ScanRange { start: Key::new("a"), end: Key::new("m"), reverse: false };
        let page = |resume: Option<&Key>| Page { pairs: Vec::new(), resume: resume.cloned() };
        let covered = |range: &ScanRange, resume: Option<&Key>| match Sample::page(range, &page(resume)) {
            Sample::Range(ScanRange { start, end, .. }, _) => (start, end),
            Sample::Keys(..) => unreachable!("a page of a scan is a range"),
        };
        let resume = Key::new("f");
        assert_eq!(covered(&range, None), (Key::new("a"), Key::new("m")));
        assert_eq!(covered(&range, Some(&resume)), (Key::new("a"), Key::new("f")));
        let reverse = ScanRange { reverse: true, ..range };
        assert_eq!(covered(&reverse, Some(&resume)), (Key::new("f"), Key::new("m")));
        let keys = ["b", "f", "g"].map(Key::new);
        match Sample::keys_of_page(&keys, &page(Some(&resume))) {
            Sample::Keys(keys, _) => assert_eq!(keys, [Key::new("b")]),
            Sample::Range(..) => unreachable!("a page of a batch get is keys"),
        }
    }
}
