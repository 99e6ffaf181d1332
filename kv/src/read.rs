//! The read path on one region.
//!
//! A read that leaves its timestamp to the store takes it from the oracle when it arrives, which costs no message if
//! the oracle is on this node. A read first raises `max_ts` to its timestamp, then looks at the locks in memory
//! (`concurrency` has the proof of the order), and waits while one of them blocks it. Then a point get reads the newest
//! state in the caller's task, as far as it is in memory, and the lease proves it afterwards (`mvcc::point`). A read
//! that needs a file runs in the pool. Without a lease, and in all other cases, a read takes a snapshot, which the
//! store proves fit for a linearizable read (lease or read index), and checks its keys against the range of the
//! snapshot's region. A batch get of few keys, and the first slice of a statement's scan, read what is in memory in the
//! caller's task: all that a short scan needs. The rest runs slice by slice in the read pool, at the level to which the
//! statement has fallen (`scan_cost`). So no read of a file blocks a worker of the runtime, and a long scan takes turns
//! with other reads, falls behind them, and ends soon after its caller is dropped. The next page of a long scan
//! continues on the snapshot of the first one ([`scan_cache`](crate::scan_cache)): it passes the same checks, but takes
//! no snapshot for them.
//!
//! Old versions are collected at any time, whatever snapshots there are. So the safe point is checked last, after the
//! data was read: what a read may have missed was collected below a safe point that it sees then.

use std::ops::ControlFlow;

use bytes::Bytes;
use engine::store::NewestReader;
use prometheus::IntCounter;
use raftstore::{Floor, Region, RegionContext, RegionError};
use tokio::time::Instant;
use tso::Timestamp;

use crate::api::{KeyError, PASS_MAX, Request, RequestBody, Response, ScanRequest, ServerError};
use crate::concurrency::{ConcurrencyManager, Found};
use crate::error::ActionError;
use crate::grants::{Grants, Wanted};
use crate::key::Key;
use crate::mvcc::point::{PointRead, get_newest};
use crate::mvcc::reader::{BatchGet, BatchPage, batch_get, get};
use crate::mvcc::scanner::ScanPage;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read_pool::{Cost, Demand, Level, PoolError, ReadPool};
use crate::region_store::{RegionReads, RegionView, into_server_error, timestamp};
use crate::scan_cache::{KeepLimits, OpenScan, ScanCache};
use crate::scan_cost::ScanCosts;
use crate::scan_page::{PageJob, response};

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
    /// While the threads of long scans rest, their pages have this part of the bytes and steps: the threads that send
    /// them send the answers to others, too, and a page that rests often must still end before its caller gives up.
    /// Default 16, minimum 1.
    pub contended_part: u32,
    /// Steps of the first slice of a statement, which runs in the caller's task and reads no file. Default 256.
    pub first_slice_steps: usize,
    /// The most steps of each later slice, which runs in the read pool. The time that the slices take decides how many
    /// they have. Default 8,192.
    pub pool_slice_steps: usize,
    /// A batch get of more keys than this runs in the read pool as a scan does. Others run in the caller's task as far
    /// as their keys are in memory. Default 64.
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
            contended_part: 16,
            first_slice_steps: 256,
            pool_slice_steps: 8_192,
            inline_keys: 64,
            keeps_short_scans: false,
            keep: KeepLimits::default(),
        }
    }
}

/// What proves a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// This store leads, by its lease or a read index.
    Leader,
    /// A grant.
    Granted,
    /// Nothing.
    Unproven,
}

/// Executes reads on a store. Clones share the store, the pool and the kept scans.
#[derive(Clone)]
pub struct ReadExecutor<H: RegionReads> {
    pub(crate) store: H,
    pub(crate) concurrency: ConcurrencyManager,
    /// What lets replicas serve. Without it, only the leader does.
    pub(crate) grants: Option<Grants<H>>,
    pool: ReadPool,
    config: ReadConfig,
    scans: ScanCache<H::View>,
    /// What statements have cost. `None` if the pool runs its jobs in their callers' tasks, whose order no clock may
    /// change.
    costs: Option<ScanCosts>,
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
        let costs = if pool.has_threads() { Some(ScanCosts::default()) } else { None };
        ReadExecutor {
            store,
            concurrency,
            grants: None,
            pool,
            config,
            scans,
            costs,
            continued,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The executor, which serves also where a grant covers a read.
    pub fn with_grants(mut self, grants: Grants<H>) -> ReadExecutor<H> {
        self.grants = Some(grants);
        self
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
    /// - [`ServerError::Region`]: this store cannot serve the region now. `ServerBusy`: the pool has shed it, or it has
    ///   no timestamp and the oracle does not answer the store.
    /// - [`ServerError::Key`]: locks block the read. If the store took its timestamp, [`Response::Started`] says so.
    /// - [`ServerError::Invalid`]: the request is a write, its timestamp was not issued by the oracle, or it passes
    ///   more than [`PASS_MAX`] transactions.
    /// - [`ServerError::Failed`]: the store failed. If its data is corrupt, the store stops serving.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time; a read has no effect. A slice that runs in the pool completes, and is the
    /// last one.
    pub async fn run(&self, mut request: Request) -> Result<Response, ServerError> {
        let context = request.context;
        if let RequestBody::OldLocks(request) = request.body {
            return self.old_locks(context, request).await;
        }
        if let RequestBody::Replica(replica) = request.body {
            return self.replica(context, replica).await;
        }
        let Some(start_ts) = request.body.unset_start_ts() else { return self.read(request, Proof::Leader).await };
        #[cfg(feature = "planted-bugs")]
        self.look_at_lease_first(context).await?;
        let (taken, asked) = self.take_start_ts(context).await?;
        *start_ts = taken;
        let outcome = outcome_of(self.read(request, Proof::Leader).await)?;
        Ok(Response::Started { start_ts: taken, asked, outcome: Box::new(outcome) })
    }

    /// Takes the timestamp of a read that leaves it to this store. Returns how often another node was asked for it.
    pub(crate) async fn take_start_ts(&self, context: RegionContext) -> Result<(Timestamp, u32), RegionError> {
        if let Some(taken) = self.concurrency.try_timestamp() {
            return Ok((taken, 0));
        }
        let busy = || RegionError::ServerBusy { store: self.store.store_id(), what: "timestamps".to_owned() };
        let taken = self.concurrency.take_timestamp(&self.store, context).await?;
        taken.map(|taken| (taken, 1)).ok_or_else(busy)
    }

    /// Executes a read at its timestamp. Whatever it has found, it fails if the safe point has passed the timestamp.
    pub(crate) async fn read(&self, request: Request, proof: Proof) -> Result<Response, ServerError> {
        let (region, start_ts) = (request.context.region, snapshot_of(&request.body)?.0);
        let found = self.read_versions(request, proof).await;
        // After the data was read: what may be missing in it was collected below a safe point that shows by now.
        match found {
            found @ Err(ServerError::Region(_)) => found,
            found => self.check_age(start_ts, self.store.floors(region).reads).map_err(ServerError::from).and(found),
        }
    }

    async fn read_versions(&self, request: Request, proof: Proof) -> Result<Response, ServerError> {
        let Request { context, body } = request;
        match &body {
            RequestBody::Scan(request) => self.scan((context, proof), &body, self.clamp_limits(request)).await,
            RequestBody::BatchGet { keys, start_ts, pass } => {
                let view = self.proven_for((context, proof), &body).await?;
                let page = self.batch_get(view, keys, (*start_ts, pass)).await?;
                Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
            }
            RequestBody::Get { key, start_ts, pass } => {
                let newest = match proof {
                    Proof::Leader if pass.is_empty() => self.get_newest(context, (key, &key.to_storage()), *start_ts),
                    Proof::Granted if pass.is_empty() => {
                        let read = self.replica_newest(context, (key, &key.to_storage()), Wanted::At(*start_ts));
                        read.map(|(read, ..)| read)
                    }
                    Proof::Leader | Proof::Granted | Proof::Unproven => None,
                };
                let is_cold = match newest {
                    None => false,
                    Some(Err(error)) if error.is_not_cached() => true,
                    Some(read) => return read.map(Response::Value).map_err(|error| self.server_error(error)),
                };
                let view = self.proven_for((context, proof), &body).await?;
                if !is_cold {
                    match get(&view.cached(), key, *start_ts, pass) {
                        Err(error) if error.is_not_cached() => (),
                        read => return read.map(Response::Value).map_err(|error| self.server_error(error)),
                    }
                }
                let (key, start_ts, pass) = (key.clone(), *start_ts, pass.clone());
                let read = move |_| ControlFlow::Break(get(&view, &key, start_ts, &pass));
                Ok(Response::Value(self.in_pool(Demand::point(), read).await?.0))
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
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::LeaseCheckedFirst) {
            return None;
        }
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
        let (read, floor) = self.store.read_newest(context, read).ok()??;
        let read = read?;
        if let Err(error) = self.check_age(start_ts, floor) {
            return Some(Err(error.into()));
        }
        match read {
            Ok(PointRead::Value(value)) => Some(Ok(value)),
            Ok(PointRead::Locked(lock)) => Some(Err(KeyError::Locked(vec![lock]).into())),
            Ok(PointRead::Torn) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// [`check_safe_point`], unless a planted bug leaves it out.
    pub(crate) fn check_age(&self, start_ts: Timestamp, floor: Floor) -> Result<(), KeyError> {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::SafePointUnchecked) {
            return Ok(());
        }
        check_safe_point(start_ts, floor)
    }

    /// A view for a read, by its proof.
    async fn proven_for(
        &self,
        (context, proof): (RegionContext, Proof),
        body: &RequestBody,
    ) -> Result<H::View, ServerError> {
        match proof {
            Proof::Leader => self.view(context, body).await,
            Proof::Granted | Proof::Unproven => self.replica_view(context, body, proof),
        }
    }

    /// With a planted bug: the look at the lease, long before the read.
    #[cfg(feature = "planted-bugs")]
    async fn look_at_lease_first(&self, context: RegionContext) -> Result<(), RegionError> {
        if self.planted_bug != Some(PlantedBug::LeaseCheckedFirst) {
            return Ok(());
        }
        if !self.store.has_lease(context)? {
            let why = "no lease".to_owned();
            return Err(RegionError::NotReady { region: context.region, why });
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        Ok(())
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

    pub(crate) async fn proven_view(&self, context: RegionContext) -> Result<H::View, RegionError> {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::LeaseCheckedFirst)
            && let Some(view) = self.store.replica_view(context, |_| true)?
        {
            return Ok(view);
        }
        match self.store.try_read(context)? {
            Some(view) => Ok(view),
            None => self.store.read(context).await,
        }
    }

    /// Reads one page of a scan, slice by slice. Continues a kept scan if there is one. `request` is that of `body`
    /// with clamped limits.
    async fn scan(
        &self,
        (context, proof): (RegionContext, Proof),
        body: &RequestBody,
        mut request: ScanRequest,
    ) -> Result<Response, ServerError> {
        let mut cost = self.costs.as_ref().map_or_else(Cost::default, |costs| costs.before_page(&request));
        let part = self.page_part(cost);
        let steps_max = self.config.page_steps / part as usize;
        request.max_bytes = request.max_bytes.min(self.config.page_bytes / part).max(1);
        // What is not proven is not for others.
        let kept = if proof == Proof::Unproven { None } else { self.scans.take(context, &request, now()) };
        let is_continued = kept.is_some();
        let mut job = match kept {
            Some(scan) => {
                let scan = if proof == Proof::Leader { self.check_kept(context, scan).await? } else { scan };
                PageJob::on_scan(context, scan, request.clone(), steps_max)
            }
            None => {
                let view = self.proven_for((context, proof), body).await?;
                if request.is_empty() {
                    return Ok(response(ScanPage::empty()));
                }
                PageJob::on_view(context, (view, now()), request.clone(), steps_max)
            }
        };
        let mut is_short = false;
        // A statement that has cost a whole slice, or goes on with a scan, leaves this thread to others.
        if !is_continued && cost.is_small() {
            let (started, steps) = (now(), self.config.first_slice_steps);
            let done = job.first_slice(steps, self.config.keeps_short_scans);
            is_short = done.map_err(|error| self.server_error(error))?;
            cost.add(steps, now().duration_since(started), false);
        }
        if !is_short {
            let (mut taken, steps_max) = (Some(job), self.config.pool_slice_steps);
            let work = move |steps: usize| match taken.as_mut().map(|job| job.slice(steps.min(steps_max))) {
                Some(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Some(ControlFlow::Break(done)) => ControlFlow::Break(done.map(|()| taken.take())),
                None => ControlFlow::Break(Ok(None)),
            };
            let done;
            (done, cost) = self.in_pool(Demand::scan(cost, request.max_bytes as usize), work).await?;
            job = done.ok_or_else(|| ServerError::Failed(PoolError::Lost.to_string()))?;
        }
        let (page, scan) = job.into_parts();
        if let Some(costs) = self.costs.as_ref().filter(|_| page.resume.is_some() || !is_short) {
            costs.after_page(&request, page.resume.as_ref(), cost);
        }
        if let Some(scan) = scan.filter(|_| proof != Proof::Unproven) {
            self.scans.keep(scan, now());
        }
        Ok(response(page))
    }

    #[cfg(test)]
    pub(crate) fn pool(&self) -> &ReadPool {
        &self.pool
    }

    /// Notes what a statement has cost with this page.
    #[cfg(test)]
    pub(crate) fn note_cost(&self, page: &ScanRequest, resume: &Key, cost: Cost) {
        self.costs.iter().for_each(|costs| costs.after_page(page, Some(resume), cost));
    }

    /// Reads many keys, of a view that is proven for it: few of them from memory within this call, others in the pool.
    async fn batch_get(
        &self,
        view: H::View,
        keys: &[Key],
        (start_ts, pass): (Timestamp, &[Timestamp]),
    ) -> Result<BatchPage, ServerError> {
        let is_small = keys.len() <= self.config.inline_keys;
        let costs = self.costs.as_ref().filter(|_| !is_small);
        let cost = costs.map_or_else(Cost::default, |costs| costs.before_batch(start_ts));
        let page_bytes = (self.config.page_bytes / self.page_part(cost)).max(1) as usize;
        if is_small {
            match batch_get(&view.cached(), keys, (start_ts, pass), page_bytes) {
                Err(error) if error.is_not_cached() => (),
                page => return page.map_err(|error| self.server_error(error)),
            }
        }
        let mut batch = Some(BatchGet::new(keys.to_vec(), start_ts, pass.to_vec(), page_bytes));
        let work = move |steps| match batch.as_mut().map(|batch| batch.advance(&view, steps)) {
            Some(Ok(false)) => ControlFlow::Continue(()),
            Some(Ok(true)) | None => ControlFlow::Break(Ok(batch.take().map(BatchGet::into_page).unwrap_or_default())),
            Some(Err(error)) => ControlFlow::Break(Err(error)),
        };
        if is_small {
            return Ok(self.in_pool(Demand::point(), work).await?.0);
        }
        let (page, cost) = self.in_pool(Demand::scan(cost, page_bytes), work).await?;
        if let Some(costs) = costs {
            costs.after_batch(start_ts, cost);
        }
        Ok(page)
    }

    /// By what the limits of a page are divided, for a statement that has cost so much.
    fn page_part(&self, cost: Cost) -> u32 {
        let rests = cost.level() == Level::Long && self.pool.is_contended();
        if rests { self.config.contended_part.max(1) } else { 1 }
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

    pub(crate) fn server_error(&self, error: ActionError) -> ServerError {
        into_server_error(&self.store, error)
    }

    pub(crate) async fn in_pool<T: Send + 'static>(
        &self,
        demand: Demand,
        work: impl FnMut(usize) -> ControlFlow<Result<T, ActionError>> + Send + 'static,
    ) -> Result<(T, Cost), ServerError> {
        match self.pool.run(demand, work).await {
            Ok((result, cost)) => Ok((result.map_err(|error| self.server_error(error))?, cost)),
            Err(PoolError::Shed) => {
                let busy = RegionError::ServerBusy { store: self.store.store_id(), what: "read pool".to_owned() };
                Err(busy.into())
            }
            Err(PoolError::Lost) => Err(ServerError::Failed(PoolError::Lost.to_string())),
        }
    }
}

/// Fails if the safe point of the region is above the snapshot of a read. The floor is from after the read.
pub(crate) fn check_safe_point(start_ts: Timestamp, floor: Floor) -> Result<(), KeyError> {
    let safe_point = timestamp(floor);
    if start_ts < safe_point { Err(KeyError::TooOld { start_ts, safe_point }) } else { Ok(()) }
}

/// What a read has found at its timestamp: a response, or why the transaction cannot proceed. Other errors say nothing
/// of the timestamp.
pub(crate) fn outcome_of(result: Result<Response, ServerError>) -> Result<Result<Response, KeyError>, ServerError> {
    match result {
        Ok(response) => Ok(Ok(response)),
        Err(ServerError::Key(error)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// The timestamp of a read, and the transactions that it passes.
pub(crate) fn snapshot_of(body: &RequestBody) -> Result<(Timestamp, &[Timestamp]), ServerError> {
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
