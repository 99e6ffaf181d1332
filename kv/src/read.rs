//! Reads on one region.
//!
//! Every read takes its snapshot first, as the store's handle proves it fit (lease, or read index), and then checks its keys against the
//! range of that snapshot's region. A point get runs where it is called. A scan reads a first slice there, which is all that a short
//! one needs; what is left goes to the read pool slice by slice, so that a long scan blocks no worker of the runtime, takes turns with others, and ends
//! soon after its caller went away.

use engine::store::Reader;
use raftstore::RegionError;

use crate::api::{KeyError, Request, RequestBody, Response, ScanRequest, ServerError};
use crate::error::ActionError;
use crate::mvcc::reader::{batch_get, get};
use crate::mvcc::scanner::{PageEnd, ScanPage, scan};
use crate::port::{self, RegionStore, RegionView};
use crate::read_pool::{PoolError, ReadPool};

/// The most pairs in one page of a scan, whatever is asked for.
pub const SCAN_PAIRS_MAX: u32 = 10_000;
/// The most bytes in one page of a scan, or of a batch get, about, whatever is asked for: the last value may exceed it.
pub const SCAN_BYTES_MAX: u32 = 2 << 20;
/// Cursor movements after which a page of a scan ends, however little it found.
pub const SCAN_STEPS_MAX: usize = 200_000;

/// Cursor movements of the slice that runs where the scan is called.
const FIRST_SLICE_STEPS: usize = 512;
/// Cursor movements of each slice in the read pool.
const POOL_SLICE_STEPS: usize = 8_192;
/// Keys of a batch get that runs where it is called; more go to the read pool.
const INLINE_KEYS: usize = 64;

/// Answers a read from one snapshot, in one go.
pub fn answer_at_once<R: Reader + ?Sized>(reader: &R, body: &RequestBody) -> Result<Response, ActionError> {
    match body {
        RequestBody::Get { key, start_ts } => get(reader, key, *start_ts).map(Response::Value),
        RequestBody::BatchGet { keys, start_ts } => {
            let page = batch_get(reader, keys, *start_ts, SCAN_BYTES_MAX as usize)?;
            Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
        }
        RequestBody::Scan(request) => {
            let page = scan(reader, &bounded(request), SCAN_STEPS_MAX)?;
            Ok(Response::Pairs { pairs: page.pairs, resume: page.resume })
        }
        _ => Err(ActionError::Invalid("an action is not a read")),
    }
}

/// Serves reads from a store.
#[derive(Clone)]
pub struct Reads<H> {
    store: H,
    pool: ReadPool,
}

impl<H: RegionStore> Reads<H> {
    /// Over a store, with the pool for what takes long.
    pub fn new(store: H, pool: ReadPool) -> Reads<H> {
        Reads { store, pool }
    }

    /// Carries out a read.
    pub async fn run(&self, request: Request) -> Result<Response, ServerError> {
        let view = match self.store.try_read(request.context)? {
            Some(view) => view,
            None => self.store.read(request.context).await?,
        };
        request.body.check_range(view.region())?;
        match request.body {
            RequestBody::Scan(scan) => self.scan(view, bounded(&scan)).await,
            RequestBody::BatchGet { ref keys, .. } if keys.len() > INLINE_KEYS => {
                self.in_pool(move || answer_at_once(&view, &request.body)).await
            }
            body => answer_at_once(&view, &body).map_err(|error| self.refusal(error)),
        }
    }

    async fn scan(&self, view: H::View, request: ScanRequest) -> Result<Response, ServerError> {
        let mut joined = Joined::new(request);
        let first = scan(&view, &joined.rest, FIRST_SLICE_STEPS);
        let mut more = joined.add(first).map_err(|error| self.refusal(error))?;
        let mut steps = FIRST_SLICE_STEPS;
        while more && steps < SCAN_STEPS_MAX {
            let (view, rest) = (view.clone(), joined.rest.clone());
            let slice = self.in_pool(move || Ok(scan(&view, &rest, POOL_SLICE_STEPS))).await?;
            more = joined.add(slice).map_err(|error| self.refusal(error))?;
            steps += POOL_SLICE_STEPS;
        }
        Ok(Response::Pairs { pairs: joined.page.pairs, resume: joined.page.resume })
    }

    fn refusal(&self, error: ActionError) -> ServerError {
        port::refusal(&self.store, error)
    }

    async fn in_pool<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
    ) -> Result<T, ServerError> {
        match self.pool.run(job).await {
            Ok(result) => result.map_err(|error| self.refusal(error)),
            Err(PoolError::Full) => {
                let busy = RegionError::ServerBusy { store: self.store.store_id(), what: "read pool".to_owned() };
                Err(busy.into())
            }
            Err(PoolError::Lost) => Err(ServerError::Failed(PoolError::Lost.to_string())),
        }
    }
}

/// The slices of a scan put together.
struct Joined {
    page: ScanPage,
    /// The part of the scan that is left.
    rest: ScanRequest,
}

impl Joined {
    fn new(request: ScanRequest) -> Joined {
        let page = ScanPage { pairs: Vec::new(), resume: None, end: PageEnd::Work };
        Joined { page, rest: request }
    }

    /// Takes in the next slice. Says whether the scan goes on.
    fn add(&mut self, slice: Result<ScanPage, ActionError>) -> Result<bool, ActionError> {
        let slice = match slice {
            Ok(slice) => slice,
            // The page ends before the lock; `resume` says where this slice began.
            Err(ActionError::Key(KeyError::Locked(_))) if !self.page.pairs.is_empty() => return Ok(false),
            Err(error) => return Err(error),
        };
        let bytes: usize = slice.pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
        let pairs = u32::try_from(slice.pairs.len()).unwrap_or(u32::MAX);
        self.rest.limit = self.rest.limit.saturating_sub(pairs);
        self.rest.max_bytes = self.rest.max_bytes.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        if let Some(resume) = &slice.resume {
            let bound = if self.rest.reverse { &mut self.rest.end } else { &mut self.rest.start };
            *bound = resume.clone();
        }
        self.page.pairs.extend(slice.pairs);
        self.page.resume = slice.resume;
        self.page.end = slice.end;
        Ok(slice.end == PageEnd::Work)
    }
}

/// The request within the server's limits.
fn bounded(request: &ScanRequest) -> ScanRequest {
    ScanRequest {
        limit: request.limit.clamp(1, SCAN_PAIRS_MAX),
        max_bytes: request.max_bytes.clamp(1, SCAN_BYTES_MAX),
        ..request.clone()
    }
}
