//! Scans: reads a range in pages, region by region.

use std::sync::Arc;

use bytes::Bytes;
use tso::Timestamp;

use super::bound;
use super::error::ClientError;
use super::options::{ReadOptions, Reading};
use super::region_cache::Route;
use super::retry::{Retry, pause};
use super::router::Router;
use crate::api::{RequestBody, Response, ScanRequest};
use crate::key::Key;

/// A page of a scan or of a batch get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The pairs found, in the order of the scan; in key order for a batch get.
    pub pairs: Vec<(Key, Bytes)>,
    /// The start of the next page; for a reverse scan its exclusive end. `None` after the last page. Pass it to
    /// [`ScanRange::resume_at`]. For a batch get: the first key, in key order, that was not looked up.
    pub resume: Option<Key>,
}

/// What a read sees, the snapshot at a timestamp, and who may serve it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The timestamp, issued by the oracle.
    pub start_ts: Timestamp,
    /// Transactions whose locks the read passes: each certainly commits above `start_ts`, or never. At most
    /// [`PASS_MAX`](crate::api::PASS_MAX).
    pub pass: Vec<Timestamp>,
    /// How the read chooses its replicas. `None`: the leader.
    pub options: Option<Arc<ReadOptions>>,
    /// Whether an earlier attempt of the read met locks. It then goes to the leader: what resolves the locks reaches
    /// the other replicas later.
    pub locks_met: bool,
}

impl Snapshot {
    /// How the read chooses its replicas; `None` without options.
    pub(super) fn reading(&self) -> Option<Reading<'_>> {
        self.options.as_deref().map(|options| Reading::new(options, self.locks_met))
    }
}

impl From<Timestamp> for Snapshot {
    fn from(start_ts: Timestamp) -> Snapshot {
        Snapshot { start_ts, pass: Vec::new(), options: None, locks_met: false }
    }
}

/// The range of a scan. An empty `end` means "after every key".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// First key of the range.
    pub start: Key,
    /// First key after the range.
    pub end: Key,
    /// Whether to read from the end backwards.
    pub reverse: bool,
}

impl ScanRange {
    /// Whether the range holds no key: its end is not empty and not above its start.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }

    /// The rest of the range after a page that returned `resume`.
    pub fn resume_at(&self, resume: Key) -> ScanRange {
        if self.reverse {
            ScanRange { end: resume, ..self.clone() }
        } else {
            ScanRange { start: resume, ..self.clone() }
        }
    }

    /// The end as a storage bound; empty for "after every key".
    pub(super) fn storage_end(&self) -> Vec<u8> {
        if self.end.is_empty() { Vec::new() } else { self.end.to_storage() }
    }

    /// The resume key of a page that ended before this range, the rest.
    pub(super) fn into_resume(self) -> Key {
        if self.reverse { self.end } else { self.start }
    }

    /// The part of the range that lies in the route's region.
    pub(super) fn clip_to_region(&self, route: &Route) -> ScanRange {
        let start = bound::ceil(&route.region.start).max(self.start.clone());
        let end = if route.region.end.is_empty() {
            self.end.clone()
        } else {
            let region_end = bound::ceil(&route.region.end);
            if self.end.is_empty() { region_end } else { region_end.min(self.end.clone()) }
        };
        ScanRange { start, end, reverse: self.reverse }
    }

    /// The request for a page of this range, which lies in one region.
    pub(super) fn request(&self, at: &Snapshot, limit: u32, max_bytes: u32) -> RequestBody {
        RequestBody::Scan(ScanRequest {
            start: self.start.clone(),
            end: self.end.clone(),
            start_ts: at.start_ts,
            limit,
            max_bytes,
            reverse: self.reverse,
            keys_only: false,
            pass: at.pass.clone(),
        })
    }

    /// The rest of the range after a page of `part`, a clip of it, that ended at `resume`. `None` if nothing is left.
    pub(super) fn rest(&self, part: &ScanRange, resume: Option<Key>) -> Option<ScanRange> {
        let rest = match resume {
            Some(resume) => Some(self.resume_at(resume)),
            None => self.rest_after(part),
        };
        rest.filter(|rest| !rest.is_empty())
    }

    /// The rest of the range after `part`, a clip of it, was read completely. `None` if nothing is left.
    fn rest_after(&self, part: &ScanRange) -> Option<ScanRange> {
        if self.reverse {
            // An empty start is before every key, but an empty end is after every key: never resume there.
            (part.start > self.start).then(|| self.resume_at(part.start.clone()))
        } else {
            (part.end != self.end).then(|| self.resume_at(part.end.clone()))
        }
    }
}

impl Router {
    /// Reads one page: region after region until it has `limit` pairs or `page_bytes` bytes, or the range ends. A page
    /// that has pairs also ends before a lock; the next page begins with it.
    pub(super) async fn scan(&self, range: &ScanRange, at: &Snapshot, limit: u32) -> Result<Page, ClientError> {
        let mut pairs: Vec<(Key, Bytes)> = Vec::new();
        let mut bytes_left = self.config.page_bytes;
        let mut rest = range.clone();
        let reading = at.reading();
        let mut retry = self.read_retry(reading);
        if rest.is_empty() {
            return Ok(Page { pairs, resume: None });
        }
        loop {
            let left = limit.saturating_sub(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
            if left == 0 || bytes_left == 0 {
                return Ok(Page { pairs, resume: Some(rest.into_resume()) });
            }
            let route = self.scan_route(&rest, &mut retry).await?;
            let part = rest.clip_to_region(&route);
            let body = part.request(at, left, bytes_left);
            match self.attempt_read(&route, reading, retry.begin_read(), body).await {
                Ok(Response::Pairs { pairs: more, resume }) => {
                    let size: usize = more.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
                    bytes_left = bytes_left.saturating_sub(u32::try_from(size).unwrap_or(u32::MAX));
                    pairs.extend(more);
                    match rest.rest(&part, resume) {
                        Some(next) => rest = next,
                        None => return Ok(Page { pairs, resume: None }),
                    }
                    retry = self.read_retry(reading);
                }
                Ok(other) => return Err(ClientError::unexpected_response("Scan", &other)),
                Err(failure) => match retry.on_read_failure(self, &route, failure) {
                    Ok(wait) => pause(wait).await,
                    Err(ClientError::Key(_)) if !pairs.is_empty() => {
                        return Ok(Page { pairs, resume: Some(rest.into_resume()) });
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// The route to the region in which the range begins, in the direction of the scan.
    async fn scan_route(&self, range: &ScanRange, retry: &mut Retry) -> Result<Route, ClientError> {
        if range.reverse {
            self.route_before(&range.storage_end(), retry).await
        } else {
            self.route(&range.start.to_storage(), retry).await
        }
    }

    /// [`Router::scan_route`], if it is in the cache.
    pub(super) fn cached_scan_route(&self, range: &ScanRange) -> Option<Route> {
        let cache = self.cache.read();
        if range.reverse { cache.lookup_before(&range.storage_end()) } else { cache.lookup(&range.start.to_storage()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raftstore::{Epoch, Region, RegionId, StoreId};

    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text.to_owned())
    }

    fn range(start: &str, end: &str, reverse: bool) -> ScanRange {
        ScanRange { start: key(start), end: key(end), reverse }
    }

    fn route(start: &str, end: &str) -> Route {
        let bound = |text: &str| if text.is_empty() { Vec::new() } else { key(text).to_storage() };
        let epoch = Epoch { conf_ver: 1, version: 1 };
        let region = Region { id: RegionId::new(2), start: bound(start), end: bound(end), epoch, peers: Vec::new() };
        Route { region: Arc::new(region), store: StoreId::new(1), unproven: false, attempt: 0 }
    }

    #[test]
    fn a_forward_scan_visits_every_region_of_the_range() {
        let whole = range("b", "", false);
        let part = whole.clip_to_region(&route("", "g"));
        assert_eq!(part, range("b", "g", false));
        let rest = whole.rest_after(&part).expect("there is more");
        assert_eq!(rest, range("g", "", false));
        let part = rest.clip_to_region(&route("g", ""));
        assert_eq!(part, range("g", "", false));
        assert_eq!(rest.rest_after(&part), None);
    }

    #[test]
    fn a_reverse_scan_visits_every_region_of_the_range() {
        let whole = range("", "", true);
        let part = whole.clip_to_region(&route("g", ""));
        assert_eq!(part, range("g", "", true));
        let rest = whole.rest_after(&part).expect("there is more");
        assert_eq!(rest, range("", "g", true));
        let part = rest.clip_to_region(&route("", "g"));
        assert_eq!(part, range("", "g", true));
        assert_eq!(rest.rest_after(&part), None);
    }

    #[test]
    fn a_range_within_one_region_has_no_rest() {
        for reverse in [false, true] {
            let whole = range("h", "k", reverse);
            let part = whole.clip_to_region(&route("g", "p"));
            assert_eq!(part, whole);
            assert_eq!(whole.rest_after(&part), None);
        }
        assert!(
            range("k", "h", false).is_empty() && range("k", "k", true).is_empty() && !range("k", "", true).is_empty()
        );
    }
}
