//! One page of a scan, read slice by slice: the first slice from memory in the caller's task, the others in the read
//! pool. The slices of a page are merged.

use std::ops::ControlFlow;

use raftstore::RegionContext;
use tokio::time::Instant;

use crate::api::{KeyError, Response, ScanRequest};
use crate::error::ActionError;
use crate::mvcc::scanner::{PageEnd, PageLimits, ScanPage};
use crate::region_store::RegionView;
use crate::scan_cache::OpenScan;

/// What a page is read from.
enum Source<V> {
    /// A view, on which a scan of the rest of the page is to be opened.
    View {
        view: V,
        opened: Instant,
        rest: ScanRequest,
    },
    Open(Box<OpenScan<V>>),
}

/// A page that is being read.
pub(crate) struct PageJob<V> {
    context: RegionContext,
    request: ScanRequest,
    source: Source<V>,
    merged: SliceMerger,
    steps: usize,
    /// Steps after which the page ends.
    steps_max: usize,
}

impl<V: RegionView> PageJob<V> {
    /// The page of `request` on `view`, which was taken at `opened` and is proven for it.
    pub(crate) fn on_view(
        context: RegionContext,
        (view, opened): (V, Instant),
        request: ScanRequest,
        steps_max: usize,
    ) -> PageJob<V> {
        let source = Source::View { view, opened, rest: request.clone() };
        let merged = SliceMerger::new(&request);
        PageJob { context, request, source, merged, steps: 0, steps_max }
    }

    /// The page of `request`, which continues `scan`.
    pub(crate) fn on_scan(
        context: RegionContext,
        scan: OpenScan<V>,
        request: ScanRequest,
        steps_max: usize,
    ) -> PageJob<V> {
        let merged = SliceMerger::new(&request);
        PageJob { context, request, source: Source::Open(Box::new(scan)), merged, steps: 0, steps_max }
    }

    /// Reads a first slice of a page on a view. Returns whether the page is done. If it is not, it goes on behind what
    /// was read, or at its start if that is not in memory. `is_kept`: the scan is to be kept in any case, so it reads
    /// files from the start.
    ///
    /// # Errors
    ///
    /// Those of [`OpenScan::next_page`].
    pub(crate) fn first_slice(&mut self, steps: usize, is_kept: bool) -> Result<bool, ActionError> {
        let Source::View { view, opened, rest } = &mut self.source else { return Ok(false) };
        let first = if is_kept { view.clone() } else { view.cached() };
        let mut scan = match OpenScan::open(self.context, first, rest, *opened).map_err(ActionError::from) {
            Err(error) if error.is_not_cached() => return Ok(false),
            scan => scan?,
        };
        let slice = match scan.next_page(self.merged.limits(steps)) {
            Err(error) if error.is_not_cached() => return Ok(false),
            slice => slice,
        };
        let needs_more = self.merged.add(slice)?;
        self.steps = steps;
        let is_enough = steps >= self.steps_max && scan.has_advanced_from(&self.request);
        if is_kept {
            self.source = Source::Open(Box::new(scan));
            self.pause()?;
        } else {
            *rest = scan.rest().clone();
        }
        Ok(!needs_more || is_enough)
    }

    /// Reads the next slice. Breaks when the page is done.
    pub(crate) fn slice(&mut self, steps: usize) -> ControlFlow<Result<(), ActionError>> {
        match self.try_slice(steps) {
            Ok(true) => ControlFlow::Break(self.pause()),
            Ok(false) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }

    fn try_slice(&mut self, steps: usize) -> Result<bool, ActionError> {
        if let Source::View { view, opened, rest } = &self.source {
            let scan = OpenScan::open(self.context, view.clone(), rest, *opened)?;
            self.source = Source::Open(Box::new(scan));
        }
        let Source::Open(scan) = &mut self.source else { return Ok(true) };
        let needs_more = self.merged.add(scan.next_page(self.merged.limits(steps)))?;
        self.steps = self.steps.saturating_add(steps);
        // A page advances, so that the next one asks for less.
        let is_enough = self.steps >= self.steps_max && scan.has_advanced_from(&self.request);
        Ok(!needs_more || is_enough)
    }

    /// Makes the scan ready to be kept, if another page can go on with it.
    fn pause(&mut self) -> Result<(), ActionError> {
        match &mut self.source {
            Source::Open(scan) if self.merged.can_go_on() => Ok(scan.pause()?),
            Source::Open(_) | Source::View { .. } => Ok(()),
        }
    }

    /// The page, and the scan with which the next one can go on, if there is one.
    pub(crate) fn into_parts(self) -> (ScanPage, Option<OpenScan<V>>) {
        let scan = match self.source {
            Source::Open(scan) if self.merged.can_go_on() => Some(*scan),
            Source::Open(_) | Source::View { .. } => None,
        };
        (self.merged.page, scan)
    }
}

/// The response that is a page.
pub(crate) fn response(page: ScanPage) -> Response {
    Response::Pairs { pairs: page.pairs, resume: page.resume }
}

/// Merges the slices of a scan into one page.
struct SliceMerger {
    page: ScanPage,
    /// How many pairs and bytes the page may still take.
    pairs_left: u32,
    bytes_left: u32,
}

impl SliceMerger {
    fn new(request: &ScanRequest) -> SliceMerger {
        SliceMerger { page: ScanPage::empty(), pairs_left: request.limit, bytes_left: request.max_bytes }
    }

    /// Whether the scan can go on behind the page. It cannot behind one that met a lock, which must be seen resolved.
    fn can_go_on(&self) -> bool {
        matches!(self.page.end, PageEnd::Limit | PageEnd::Work)
    }

    /// The limits of the next slice.
    fn limits(&self, steps: usize) -> PageLimits {
        PageLimits { pairs: self.pairs_left, bytes: self.bytes_left, steps }
    }

    /// Appends the next slice. Returns whether the page needs another one.
    fn add(&mut self, slice: Result<ScanPage, ActionError>) -> Result<bool, ActionError> {
        let slice = match slice {
            Ok(slice) => slice,
            // The page ends before the lock. Its `resume` is the start of this slice.
            Err(ActionError::Key(KeyError::Locked(_))) if !self.page.pairs.is_empty() => {
                self.page.end = PageEnd::Lock;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let bytes: usize = slice.pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
        let pairs = u32::try_from(slice.pairs.len()).unwrap_or(u32::MAX);
        self.pairs_left = self.pairs_left.saturating_sub(pairs);
        self.bytes_left = self.bytes_left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.page.pairs.extend(slice.pairs);
        self.page.resume = slice.resume;
        self.page.end = slice.end;
        Ok(slice.end == PageEnd::Work)
    }
}
