//! The read path on one region.
//!
//! A read first takes a snapshot, which the store proves fit for a linearizable read (lease or read index), and then
//! checks its keys against the range of the snapshot's region. A point get runs in the caller's task. A scan reads a
//! first slice there, which is all that a short scan needs, and the rest slice by slice in the read pool. So a long
//! scan blocks no worker of the runtime, takes turns with other reads, and ends soon after its caller is dropped. The
//! next page of a long scan continues on the snapshot of the first one ([`scan_cache`](crate::scan_cache)).

use engine::store::Reader;
use raftstore::{RegionContext, RegionError};

use crate::api::{KeyError, Request, RequestBody, Response, ScanRequest, ServerError};
use crate::error::ActionError;
use crate::mvcc::reader::{batch_get, get};
use crate::mvcc::scanner::{PageEnd, PageLimits, ScanPage, scan};
use crate::read_pool::{PoolError, ReadPool};
use crate::region_store::{RegionStore, RegionView, into_server_error};
use crate::scan_cache::ScanCache;

/// The most pairs in one page of a scan. A higher limit of the request is clamped.
pub const SCAN_PAIRS_MAX: u32 = 10_000;
/// The bytes after which a page of a scan or of a batch get ends. A higher limit of the request is clamped. The last
/// value may exceed it.
pub const SCAN_BYTES_MAX: u32 = 2 << 20;
/// Cursor movements after which a page of a scan ends, however few pairs it has.
pub const SCAN_STEPS_MAX: usize = 200_000;

/// Cursor movements of the first slice of a scan, which runs in the caller's task.
const FIRST_SLICE_STEPS: usize = 512;
/// Cursor movements of each later slice, which runs in the read pool.
const POOL_SLICE_STEPS: usize = 8_192;
/// A batch get of more keys than this runs in the read pool, others in the caller's task.
const INLINE_KEYS: usize = 64;

/// Evaluates a read on one snapshot, in one slice.
///
/// # Errors
///
/// - [`KeyError::Locked`]: locks block the read.
/// - [`ActionError::Invalid`]: the request is a write.
/// - [`ActionError::Mvcc`]: the store failed or its data is corrupt.
pub fn evaluate_read<R: Reader + ?Sized>(reader: &R, body: &RequestBody) -> Result<Response, ActionError> {
    match body {
        RequestBody::Get { key, start_ts } => get(reader, key, *start_ts).map(Response::Value),
        RequestBody::BatchGet { keys, start_ts } => {
            let page = batch_get(reader, keys, *start_ts, SCAN_BYTES_MAX as usize)?;
            Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
        }
        RequestBody::Scan(request) => {
            let page = scan(reader, &clamp_limits(request), SCAN_STEPS_MAX)?;
            Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
        }
        _ => Err(ActionError::Invalid("an action is not a read")),
    }
}

/// Executes reads on a store. Clones share the store, the pool and the kept scans.
#[derive(Clone)]
pub struct ReadExecutor<H: RegionStore> {
    store: H,
    pool: ReadPool,
    scans: ScanCache<H::View>,
}

impl<H: RegionStore> ReadExecutor<H> {
    /// An executor over `store`. Long reads run in `pool`.
    pub fn new(store: H, pool: ReadPool) -> ReadExecutor<H> {
        ReadExecutor { store, pool, scans: ScanCache::default() }
    }

    /// Executes a read. Must be polled within a tokio runtime.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: this store cannot serve the region now. `ServerBusy`: the read pool is full.
    /// - [`ServerError::Key`]: locks block the read.
    /// - [`ServerError::Failed`]: the store failed. If its data is corrupt, the store stops serving.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time; a read has no effect. A slice that runs in the pool completes.
    pub async fn run(&self, request: Request) -> Result<Response, ServerError> {
        let view = match self.store.try_read(request.context)? {
            Some(view) => view,
            None => self.store.read(request.context).await?,
        };
        request.body.check_range(view.region())?;
        match request.body {
            RequestBody::Scan(scan) => self.scan(request.context, view, clamp_limits(&scan)).await,
            RequestBody::BatchGet { ref keys, .. } if keys.len() > INLINE_KEYS => {
                self.in_pool(move || evaluate_read(&view, &request.body)).await
            }
            body => evaluate_read(&view, &body).map_err(|error| self.server_error(error)),
        }
    }

    /// Reads one page of a scan, slice by slice. Continues a kept scan if there is one; `view` is then not needed.
    async fn scan(&self, context: RegionContext, view: H::View, request: ScanRequest) -> Result<Response, ServerError> {
        let mut merged = SliceMerger::new(&request);
        if request.is_empty() {
            return Ok(merged.into_response());
        }
        let kept = self.scans.take(context, &request);
        let is_continued = kept.is_some();
        let mut scan = match kept {
            Some(scan) => scan,
            None => self.scans.open(context, view, &request).map_err(|error| self.server_error(error.into()))?,
        };
        let first = scan.next_page(merged.limits(FIRST_SLICE_STEPS));
        let mut more = merged.add(first).map_err(|error| self.server_error(error))?;
        let mut steps = FIRST_SLICE_STEPS;
        while more && steps < SCAN_STEPS_MAX {
            let limits = merged.limits(POOL_SLICE_STEPS);
            let job = move || {
                let slice = scan.next_page(limits);
                Ok((scan, slice))
            };
            let slice;
            (scan, slice) = self.in_pool(job).await?;
            more = merged.add(slice).map_err(|error| self.server_error(error))?;
            steps += POOL_SLICE_STEPS;
        }
        // A short page is most often the only one of its statement.
        let is_long = is_continued || steps > FIRST_SLICE_STEPS;
        if is_long && matches!(merged.page.end, PageEnd::Limit | PageEnd::Work) {
            self.scans.keep(scan);
        }
        Ok(merged.into_response())
    }

    fn server_error(&self, error: ActionError) -> ServerError {
        into_server_error(&self.store, error)
    }

    async fn in_pool<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
    ) -> Result<T, ServerError> {
        match self.pool.run(job).await {
            Ok(result) => result.map_err(|error| self.server_error(error)),
            Err(PoolError::Full) => {
                let busy = RegionError::ServerBusy { store: self.store.store_id(), what: "read pool".to_owned() };
                Err(busy.into())
            }
            Err(PoolError::Lost) => Err(ServerError::Failed(PoolError::Lost.to_string())),
        }
    }
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

    fn into_response(self) -> Response {
        Response::Pairs { pairs: self.page.pairs, resume: self.page.resume }
    }
}

/// The request with its limits clamped to the server's.
fn clamp_limits(request: &ScanRequest) -> ScanRequest {
    ScanRequest {
        limit: request.limit.clamp(1, SCAN_PAIRS_MAX),
        max_bytes: request.max_bytes.clamp(1, SCAN_BYTES_MAX),
        ..request.clone()
    }
}
