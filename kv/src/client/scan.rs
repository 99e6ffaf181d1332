//! Pages of a range, region by region.

use bytes::Bytes;
use tso::Timestamp;

use super::Shared;
use super::bound;
use super::error::ClientError;
use super::region_cache::Route;
use super::retry::{Nature, Retry, pause};
use crate::api::{Request, RequestBody, Response, ScanRequest};
use crate::key::Key;

/// A page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Pairs in the order of the scan.
    pub pairs: Vec<(Key, Bytes)>,
    /// Where to go on (new start, or new exclusive end of a reverse scan); `None` at the end of the range.
    pub resume: Option<Key>,
}

/// Parameters of a scan; an empty `end` is after every key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// First key of the range.
    pub start: Key,
    /// First key after the range.
    pub end: Key,
    /// From the end backwards.
    pub reverse: bool,
}

impl ScanRange {
    /// Whether no key can be in the range.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }

    /// What is left after a page that ended at `resume`.
    pub fn resume_at(&self, resume: Key) -> ScanRange {
        if self.reverse {
            ScanRange { end: resume, ..self.clone() }
        } else {
            ScanRange { start: resume, ..self.clone() }
        }
    }

    /// The part of the range that lies in a region of storage keys.
    fn clip(&self, route: &Route) -> ScanRange {
        let start = bound::ceil(&route.region.start).max(self.start.clone());
        let end = if route.region.end.is_empty() {
            self.end.clone()
        } else {
            let region_end = bound::ceil(&route.region.end);
            if self.end.is_empty() { region_end } else { region_end.min(self.end.clone()) }
        };
        ScanRange { start, end, reverse: self.reverse }
    }

    /// What is left of the range once `part`, a clip of it, was read to its end; `None` when nothing is.
    fn beyond(&self, part: &ScanRange) -> Option<ScanRange> {
        if self.reverse {
            // An empty key is before every other, but as an end it would be after all of them.
            (part.start > self.start).then(|| self.resume_at(part.start.clone()))
        } else {
            (part.end != self.end).then(|| self.resume_at(part.end.clone()))
        }
    }
}

impl Shared {
    /// Reads on from region to region until there are `limit` pairs, a page is full of bytes, or the range ends.
    pub(super) async fn scan(&self, range: &ScanRange, start_ts: Timestamp, limit: u32) -> Result<Page, ClientError> {
        let mut pairs: Vec<(Key, Bytes)> = Vec::new();
        let mut bytes_left = self.config.page_bytes;
        let mut rest = range.clone();
        let mut retry = Retry::new(self.config.deadline, Nature::Repeatable);
        if rest.is_empty() {
            return Ok(Page { pairs, resume: None });
        }
        loop {
            let left = limit.saturating_sub(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
            if left == 0 || bytes_left == 0 {
                let resume = if rest.reverse { rest.end } else { rest.start };
                return Ok(Page { pairs, resume: Some(resume) });
            }
            let route = self.scan_route(&rest, &mut retry).await?;
            let part = rest.clip(&route);
            let body = RequestBody::Scan(ScanRequest {
                start: part.start.clone(),
                end: part.end.clone(),
                start_ts,
                limit: left,
                max_bytes: bytes_left,
                reverse: part.reverse,
                keys_only: false,
            });
            match self.send(&route, Request { context: route.context(), body }).await {
                Ok(Response::Pairs { pairs: more, resume }) => {
                    let size: usize = more.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
                    bytes_left = bytes_left.saturating_sub(u32::try_from(size).unwrap_or(u32::MAX));
                    pairs.extend(more);
                    let next = match resume {
                        Some(resume) => Some(rest.resume_at(resume)),
                        None => rest.beyond(&part),
                    };
                    match next.filter(|next| !next.is_empty()) {
                        Some(next) => rest = next,
                        None => return Ok(Page { pairs, resume: None }),
                    }
                    retry = Retry::new(self.config.deadline, Nature::Repeatable);
                }
                Ok(other) => return Err(super::unexpected("Scan", &other)),
                Err(error) => pause(retry.after_call(self, &route, error)?).await,
            }
        }
    }

    async fn scan_route(&self, range: &ScanRange, retry: &mut Retry) -> Result<Route, ClientError> {
        if !range.reverse {
            return self.route(&range.start.to_storage(), retry).await;
        }
        let bound = if range.end.is_empty() { Vec::new() } else { range.end.to_storage() };
        self.route_before(&bound, retry).await
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
        Route { region: Arc::new(region), store: StoreId::new(1), unproven: false }
    }

    #[test]
    fn clip_and_beyond_walk_a_range_forwards() {
        let whole = range("b", "", false);
        let part = whole.clip(&route("", "g"));
        assert_eq!(part, range("b", "g", false));
        let rest = whole.beyond(&part).expect("there is more");
        assert_eq!(rest, range("g", "", false));
        let part = rest.clip(&route("g", ""));
        assert_eq!(part, range("g", "", false));
        assert_eq!(rest.beyond(&part), None);
    }

    #[test]
    fn clip_and_beyond_walk_a_range_backwards() {
        let whole = range("", "", true);
        let part = whole.clip(&route("g", ""));
        assert_eq!(part, range("g", "", true));
        let rest = whole.beyond(&part).expect("there is more");
        assert_eq!(rest, range("", "g", true));
        let part = rest.clip(&route("", "g"));
        assert_eq!(part, range("", "g", true));
        assert_eq!(rest.beyond(&part), None);
    }

    #[test]
    fn a_range_within_one_region_ends_there() {
        for reverse in [false, true] {
            let whole = range("h", "k", reverse);
            let part = whole.clip(&route("g", "p"));
            assert_eq!(part, whole);
            assert_eq!(whole.beyond(&part), None);
        }
        assert!(
            range("k", "h", false).is_empty() && range("k", "k", true).is_empty() && !range("k", "", true).is_empty()
        );
    }
}
