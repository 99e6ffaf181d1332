//! The read path on one region.
//!
//! A read that leaves its timestamp to the store takes it from the oracle when it arrives, which costs no message if
//! the oracle is on this node. A read first raises `max_ts` to its timestamp, then looks at the locks in memory
//! (`concurrency` has the proof of the order), and waits while one of them blocks it. Then a point get reads the newest
//! state in the caller's task, as far as it is in memory, and the lease proves it afterwards (`mvcc::point`). A read
//! that needs a file runs in the pool. Without a lease, and in all other cases, a read takes a snapshot, which the
//! store proves fit for a linearizable read (lease or read index), and checks its keys against the range of the
//! snapshot's region. A scan reads a first slice in the caller's task, which is all that a short scan needs, and the
//! rest slice by slice in the read pool. So a long scan blocks no worker of the runtime, takes turns with other reads,
//! and ends soon after its caller is dropped. The next page of a long scan continues on the snapshot of the first one
//! ([`scan_cache`](crate::scan_cache)): it passes the same checks, but takes no snapshot for them.

use bytes::Bytes;
use engine::store::NewestReader;
use prometheus::IntCounter;
use raftstore::{Region, RegionContext, RegionError};
use tokio::time::Instant;
use tso::Timestamp;

use crate::api::{KeyError, PASS_MAX, Request, RequestBody, Response, ScanRequest, ServerError};
use crate::concurrency::{ConcurrencyManager, Found};
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::point::{PointRead, get_newest};
use crate::mvcc::reader::{batch_get, get};
use crate::mvcc::scanner::{PageEnd, PageLimits, ScanPage};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read_pool::{PoolError, ReadPool};
use crate::region_store::{RegionReads, RegionView, into_server_error};
use crate::scan_cache::{KeepLimits, OpenScan, ScanCache};

/// How reads are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadConfig {
    /// The most pairs in one page of a scan; a higher limit of the request is clamped. Default 10,000.
    pub page_pairs: u32,
    /// The bytes after which a page of a scan or of a batch get ends; a higher limit of the request is clamped. The
    /// last value may exceed it. Default 2 MiB.
    pub page_bytes: u32,
    /// Steps after which a page of a scan ends, however few pairs it has. Default 200,000.
    pub page_steps: usize,
    /// Steps of the first slice of a page, which runs in the caller's task. Default 512.
    pub first_slice_steps: usize,
    /// Steps of each later slice, which runs in the read pool. Default 8,192.
    pub pool_slice_steps: usize,
    /// A batch get of more keys than this runs in the read pool, others in the caller's task. Default 64.
    pub inline_keys: usize,
    /// Whether the scan of a first page is kept although its first slice was enough. Such a page is most often the only
    /// one of its statement. Default false.
    pub keeps_short_scans: bool,
    /// What is kept between the pages of a scan.
    pub keep: KeepLimits,
}

impl Default for ReadConfig {
    fn default() -> ReadConfig {
        ReadConfig {
            page_pairs: 10_000,
            page_bytes: 2 << 20,
            page_steps: 200_000,
            first_slice_steps: 512,
            pool_slice_steps: 8_192,
            inline_keys: 64,
            keeps_short_scans: false,
            keep: KeepLimits::default(),
        }
    }
}

/// Executes reads on a store. Clones share the store, the pool and the kept scans.
#[derive(Clone)]
pub struct ReadExecutor<H: RegionReads> {
    store: H,
    concurrency: ConcurrencyManager,
    pool: ReadPool,
    config: ReadConfig,
    scans: ScanCache<H::View>,
    /// Pages that were read on a kept scan.
    continued: IntCounter,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

impl<H: RegionReads> ReadExecutor<H> {
    /// An executor over `store`, whose writes share `concurrency`. Long reads run in `pool`. `continued` counts the
    /// pages that are read on a kept scan.
    pub fn new(
        store: H,
        concurrency: ConcurrencyManager,
        pool: ReadPool,
        config: ReadConfig,
        continued: IntCounter,
    ) -> ReadExecutor<H> {
        let scans = ScanCache::new(config.keep);
        ReadExecutor {
            store,
            concurrency,
            pool,
            config,
            scans,
            continued,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The executor with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> ReadExecutor<H> {
        self.planted_bug = bug;
        self
    }

    /// Executes a read, at a timestamp of its own if it has none. Must be polled within a tokio runtime.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: this store cannot serve the region now. `ServerBusy`: the read pool is full, or the
    ///   read has no timestamp and the oracle does not answer the store.
    /// - [`ServerError::Key`]: locks block the read. If the store took its timestamp, [`Response::Started`] says so.
    /// - [`ServerError::Invalid`]: the request is a write, its timestamp was not issued by the oracle, or it passes
    ///   more than [`PASS_MAX`] transactions.
    /// - [`ServerError::Failed`]: the store failed. If its data is corrupt, the store stops serving.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time; a read has no effect. A slice that runs in the pool completes.
    pub async fn run(&self, mut request: Request) -> Result<Response, ServerError> {
        let context = request.context;
        let Some(start_ts) = request.body.unset_start_ts() else { return self.read(request).await };
        let busy = || RegionError::ServerBusy { store: self.store.store_id(), what: "timestamps".to_owned() };
        let taken = self.concurrency.take_timestamp(&self.store, context).await?.ok_or_else(busy)?;
        *start_ts = taken;
        let outcome = match self.read(request).await {
            Ok(response) => Ok(response),
            Err(ServerError::Key(error)) => Err(error),
            Err(error) => return Err(error),
        };
        Ok(Response::Started { start_ts: taken, outcome: Box::new(outcome) })
    }

    /// Executes a read at its timestamp.
    async fn read(&self, request: Request) -> Result<Response, ServerError> {
        let Request { context, body } = request;
        let page_bytes = self.config.page_bytes as usize;
        match &body {
            RequestBody::Scan(request) => self.scan(context, &body, self.clamp_limits(request)).await,
            RequestBody::BatchGet { keys, start_ts, pass } => {
                let view = self.view(context, &body).await?;
                let page = if keys.len() > self.config.inline_keys {
                    let (keys, start_ts, pass) = (keys.clone(), *start_ts, pass.clone());
                    self.in_pool(move || batch_get(&view, &keys, (start_ts, &pass), page_bytes)).await?
                } else {
                    let page = batch_get(&view, keys, (*start_ts, pass), page_bytes);
                    page.map_err(|error| self.server_error(error))?
                };
                Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
            }
            RequestBody::Get { key, start_ts, pass } => {
                let newest =
                    if pass.is_empty() { self.get_newest(context, (key, &key.to_storage()), *start_ts) } else { None };
                let is_cold = match newest {
                    None => false,
                    Some(Err(error)) if error.is_not_cached() => true,
                    Some(read) => return read.map(Response::Value).map_err(|error| self.server_error(error)),
                };
                let view = self.view(context, &body).await?;
                if is_cold {
                    let (key, start_ts) = (key.clone(), *start_ts);
                    return self.in_pool(move || get(&view, &key, start_ts, &[])).await.map(Response::Value);
                }
                get(&view, key, *start_ts, pass).map(Response::Value).map_err(|error| self.server_error(error))
            }
            _ => Err(self.server_error(ActionError::Invalid("an action is not a read"))),
        }
    }

    /// Executes a point read of a key, given with its storage form, within this call, without a snapshot. `None` if it
    /// takes more: a lock in memory, a read index, a redirection, a file, a snapshot. Then [`ReadExecutor::run`] is the
    /// way.
    ///
    /// # Errors
    ///
    /// As [`ReadExecutor::run`].
    pub fn try_get(
        &self,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Result<Option<Bytes>, ServerError>> {
        match self.get_newest(context, key, start_ts)? {
            Err(error) if error.is_not_cached() => None,
            read => Some(read.map_err(|error| self.server_error(error))),
        }
    }

    /// Reads the newest state, from memory alone. `None` if that cannot be.
    fn get_newest(
        &self,
        context: RegionContext,
        (key, storage): (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Result<Option<Bytes>, ActionError>> {
        let concurrency = self.concurrency.known_region(context.region)?;
        if !self.concurrency.is_admitted(start_ts) {
            return None;
        }
        self.concurrency.raise_max_ts(&concurrency, start_ts);
        if concurrency.may_block(key) {
            return None;
        }
        let read = |reader: &dyn NewestReader, region: &Region| {
            region.contains(storage).then(|| get_newest(reader, key, storage, start_ts))
        };
        match self.store.read_newest(context, read).ok()??? {
            Ok(PointRead::Value(value)) => Some(Ok(value)),
            Ok(PointRead::Locked(lock)) => Some(Err(KeyError::Locked(vec![lock]).into())),
            Ok(PointRead::Torn) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// A view that is proven for a read, of the region that holds all keys of the request, and that holds every
    /// transaction that can commit at or below the read's timestamp.
    async fn view(&self, context: RegionContext, body: &RequestBody) -> Result<H::View, ServerError> {
        let (start_ts, pass) = snapshot_of(body)?;
        if pass.len() > PASS_MAX {
            return Err(ServerError::Invalid("a read passes too many transactions".to_owned()));
        }
        self.concurrency.check_issued(context.region, start_ts).await?;
        let region = match self.concurrency.known_region(context.region) {
            Some(region) => region,
            None => {
                // Requests for regions that are not led here leave nothing behind.
                self.store.has_lease(context)?;
                self.concurrency.region(context.region)
            }
        };
        self.concurrency.raise_max_ts(&region, start_ts);
        loop {
            // Before the look: what is released after it wakes us.
            let changed = region.changed();
            match region.look(body) {
                Found::Nothing => break,
                Found::InFlight => changed.await,
                Found::Doubtful(locks) => {
                    let view = self.proven_view(context).await?;
                    body.check_range(view.region())?;
                    if !region.retire_before(view.term()) {
                        return Err(KeyError::Locked(locks).into());
                    }
                }
            }
        }
        let view = self.proven_view(context).await?;
        body.check_range(view.region())?;
        Ok(view)
    }

    async fn proven_view(&self, context: RegionContext) -> Result<H::View, RegionError> {
        match self.store.try_read(context)? {
            Some(view) => Ok(view),
            None => self.store.read(context).await,
        }
    }

    /// Reads one page of a scan, slice by slice. Continues a kept scan if there is one. `request` is that of `body`
    /// with clamped limits.
    async fn scan(
        &self,
        context: RegionContext,
        body: &RequestBody,
        request: ScanRequest,
    ) -> Result<Response, ServerError> {
        let mut merged = SliceMerger::new(&request);
        let kept = self.scans.take(context, &request, now());
        let is_continued = kept.is_some();
        let mut scan = match kept {
            Some(scan) => self.check_kept(context, scan).await?,
            None => {
                let view = self.view(context, body).await?;
                if request.is_empty() {
                    return Ok(merged.into_response());
                }
                self.scans.open(context, view, &request, now()).map_err(|error| self.server_error(error.into()))?
            }
        };
        let (mut more, mut steps) = (true, 0);
        // A search that a kept scan goes on with may be long.
        if !scan.is_searching() {
            let first = scan.next_page(merged.limits(self.config.first_slice_steps));
            more = merged.add(first).map_err(|error| self.server_error(error))?;
            steps = self.config.first_slice_steps;
        }
        let is_short = !more;
        // A page advances, so that the next one asks for less.
        while more && (steps < self.config.page_steps || !scan.has_advanced_from(&request)) {
            let limits = merged.limits(self.config.pool_slice_steps);
            let job = move || {
                let slice = scan.next_page(limits);
                Ok((scan, slice))
            };
            let slice;
            (scan, slice) = self.in_pool(job).await?;
            more = merged.add(slice).map_err(|error| self.server_error(error))?;
            steps += self.config.pool_slice_steps;
        }
        let is_kept = is_continued || !is_short || self.config.keeps_short_scans;
        if is_kept && matches!(merged.page.end, PageEnd::Limit | PageEnd::Work) {
            self.scans.keep(scan, now()).map_err(|error| self.server_error(error.into()))?;
        }
        Ok(merged.into_response())
    }

    /// Passes the checks of the read path for a page of a kept scan. They need no new snapshot: the one of the scan is
    /// proven for its start_ts.
    async fn check_kept(
        &self,
        context: RegionContext,
        scan: OpenScan<H::View>,
    ) -> Result<OpenScan<H::View>, ServerError> {
        if !self.store.has_lease(context)? {
            drop(self.store.read(context).await?);
        }
        self.continued.inc();
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::StaleScanCursor) {
            let mut scan = scan;
            scan.replace_view(self.store.read(context).await?);
            return Ok(scan);
        }
        Ok(scan)
    }

    /// The request with its limits clamped to the server's.
    fn clamp_limits(&self, request: &ScanRequest) -> ScanRequest {
        ScanRequest {
            limit: request.limit.clamp(1, self.config.page_pairs.max(1)),
            max_bytes: request.max_bytes.clamp(1, self.config.page_bytes.max(1)),
            ..request.clone()
        }
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

/// The timestamp of a read, and the transactions that it passes.
fn snapshot_of(body: &RequestBody) -> Result<(Timestamp, &[Timestamp]), ServerError> {
    match body {
        RequestBody::Get { start_ts, pass, .. } | RequestBody::BatchGet { start_ts, pass, .. } => Ok((*start_ts, pass)),
        RequestBody::Scan(scan) => Ok((scan.start_ts, &scan.pass)),
        _ => Err(ServerError::Invalid("an action is not a read".to_owned())),
    }
}

#[expect(clippy::disallowed_methods, reason = "the read path is an edge: kept scans expire")]
fn now() -> Instant {
    Instant::now()
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
