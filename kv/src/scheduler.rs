//! The write path on one region: latches, snapshot, evaluation, replication, response.
//!
//! 1. Acquire the latches of the keys. Until they are released no other request is evaluated on these keys.
//! 2. Take a snapshot of the region on its leader, in a term whose first entry is applied.
//! 3. Evaluate the action (`percolator`).
//! 4. Replicate the batch, under the term and the epoch of the snapshot.
//! 5. Once the batch is applied, respond and release the latches.
//!
//! A batch proves its own validity: the store refuses it unless the term and the epoch still hold. A response without a
//! batch (a repeated request, an error, a status) has no such proof, so leadership is confirmed after the evaluation.
//! Within one confirmed term, every write to our keys went through our latches.
//!
//! A proposal whose outcome is unknown may take effect after its latches are released. So its region is *fenced* at its
//! term: no write is evaluated there until a later term. The first entry of a later term comes after the proposal, or
//! the proposal is lost. A proposal whose task is lost, with its runtime or by a panic, has an unknown outcome too.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::WriteBatch;
use parking_lot::Mutex;
use raftstore::{ProposeError, RegionContext, RegionError, RegionId, Term};
use tokio::runtime::Handle;

use crate::api::{Request, RequestBody, Response, ServerError};
use crate::error::ActionError;
use crate::latch::{LatchGuard, LatchTable};
use crate::percolator::{self, Effects};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read_pool::{PoolError, ReadPool};
use crate::region_store::{RegionStore, RegionView, into_server_error};

/// A write of more keys than this is evaluated in the read pool, others in the caller's task.
const INLINE_KEYS: usize = 256;

/// Executes writes. Clones share latches and fences.
#[derive(Clone)]
pub struct Scheduler<H> {
    store: H,
    latches: LatchTable,
    pool: ReadPool,
    fences: Fences,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

impl<H: RegionStore> Scheduler<H> {
    /// A scheduler over `store`. At most `latch_capacity` writes hold latches or wait for them. `pool` evaluates large
    /// writes.
    pub fn new(store: H, latch_capacity: usize, pool: ReadPool) -> Scheduler<H> {
        Scheduler {
            store,
            latches: LatchTable::new(latch_capacity),
            pool,
            fences: Fences::default(),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The scheduler with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> Scheduler<H> {
        self.planted_bug = bug;
        self.fences.is_missing = bug == Some(PlantedBug::MissingFence);
        self
    }

    /// The number of writes that hold latches or wait for them.
    #[cfg(test)]
    fn latched_writes(&self) -> usize {
        self.latches.len()
    }

    /// Executes a write. `permit` is dropped once the outcome of the write is known. Must be polled within a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: this store cannot serve the region now. `ServerBusy`: too many writes hold latches,
    ///   or the read pool is full. `NotReady`: the region is fenced. The write had no effect.
    /// - [`ServerError::Key`], [`ServerError::Invalid`]: the evaluation refused the write. It had no effect.
    /// - [`ServerError::TooLarge`]: the batch exceeds the largest proposal. It had no effect.
    /// - [`ServerError::Undetermined`]: the write was proposed and its outcome is unknown.
    /// - [`ServerError::Failed`]: the store failed before the proposal. The write had no effect.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time. Before the proposal, nothing takes effect and the latches are released. A
    /// proposal under way continues in its own task and keeps latches and `permit` until it is applied or lost.
    pub async fn run<T: Send + 'static>(&self, request: Request, permit: T) -> Result<Response, ServerError> {
        let Ok(latches) = self.latches.acquire(&request.body.keys()).await else { return Err(self.busy("latches")) };
        let context = request.context;
        let view = self.store.evaluate(context)?;
        self.fences.check(context.region, view.term())?;
        request.body.check_range(view.region())?;
        let evaluated = self.evaluate(&view, request.body).await?;
        match evaluated {
            Ok((batch, response)) if !batch.is_empty() => {
                #[cfg(feature = "planted-bugs")]
                let latches = self.planted_release(latches).await;
                let held = HeldProposal::new(&self.fences, context.region, view.term(), (latches, permit));
                let proposal = propose(self.store.clone(), view, batch, held);
                DetachOnDrop::new(proposal).await.map(|()| response)
            }
            Ok((_, response)) => {
                self.confirm_term(context, view.term()).await?;
                Ok(response)
            }
            Err(error) if error.is_corruption() => Err(into_server_error(&self.store, error)),
            Err(error) => {
                self.confirm_term(context, view.term()).await?;
                Err(error.into())
            }
        }
    }

    /// Evaluates the action on a view. The outer error is the server's, the inner one the result of the evaluation.
    async fn evaluate(
        &self,
        view: &H::View,
        body: RequestBody,
    ) -> Result<Result<Effects<Response>, ActionError>, ServerError> {
        if body.keys().len() <= INLINE_KEYS {
            return Ok(percolator::evaluate(view, &body));
        }
        let view = view.clone();
        match self.pool.run(move || percolator::evaluate(&view, &body)).await {
            Ok(evaluated) => Ok(evaluated),
            Err(PoolError::Full) => Err(self.busy("read pool")),
            Err(PoolError::Lost) => Err(ServerError::Failed(PoolError::Lost.to_string())),
        }
    }

    /// Confirms that this store still leads the region in `term`, at some moment after the call.
    async fn confirm_term(&self, context: RegionContext, term: Term) -> Result<(), RegionError> {
        let view = match self.store.try_read(context)? {
            Some(view) => view,
            None => self.store.read(context).await?,
        };
        if view.term() == term { Ok(()) } else { Err(RegionError::StaleCommand { region: context.region }) }
    }

    /// Exchanges the latches for none if the planted bug says so.
    #[cfg(feature = "planted-bugs")]
    async fn planted_release(&self, latches: LatchGuard) -> LatchGuard {
        if self.planted_bug != Some(PlantedBug::EarlyLatchRelease) {
            return latches;
        }
        self.latches.acquire(&[]).await.unwrap_or(latches)
    }

    fn busy(&self, what: &str) -> ServerError {
        RegionError::ServerBusy { store: self.store.store_id(), what: what.to_owned() }.into()
    }
}

/// Replicates a batch and waits for its outcome. `held` is released at the end, after a fence if the outcome is
/// unknown.
async fn propose<H: RegionStore, T>(
    store: H,
    view: H::View,
    batch: WriteBatch,
    mut held: HeldProposal<T>,
) -> Result<(), ServerError> {
    let region = held.region;
    let result = match store.propose(&view, batch).await {
        Ok(_) => Ok(()),
        Err(ProposeError::Region(error)) => Err(error.into()),
        Err(ProposeError::TooLarge { bytes, limit }) => Err(ServerError::TooLarge { bytes, limit }),
        Err(ProposeError::Undetermined { .. }) => Err(ServerError::Undetermined(region)),
        Err(ProposeError::Poisoned(why)) => {
            // Other replicas may hold the entry and can still commit it.
            tracing::error!(%region, why, "a proposal met a poisoned store");
            Err(ServerError::Undetermined(region))
        }
    };
    held.is_settled = !matches!(result, Err(ServerError::Undetermined(_)));
    result
}

/// Holds the latches of a proposal. If it is dropped before the outcome is known, for whatever reason, it fences the
/// region before it releases them.
struct HeldProposal<T> {
    fences: Fences,
    region: RegionId,
    term: Term,
    /// Whether the proposal is applied, or certainly never will be.
    is_settled: bool,
    /// The latches, and what else ends with the proposal. Dropped after `drop`.
    _guards: (LatchGuard, T),
}

impl<T> HeldProposal<T> {
    fn new(fences: &Fences, region: RegionId, term: Term, guards: (LatchGuard, T)) -> HeldProposal<T> {
        HeldProposal { fences: fences.clone(), region, term, is_settled: false, _guards: guards }
    }
}

impl<T> Drop for HeldProposal<T> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.fences.raise(self.region, self.term);
        }
    }
}

/// For each region, the newest term in which a proposal has an unknown outcome.
///
/// Invariant: while a proposal of a term may still take effect without its latches, its region is fenced at that term
/// or a later one.
#[derive(Clone, Debug, Default)]
struct Fences {
    terms: Arc<Mutex<HashMap<RegionId, Term>>>,
    /// A planted bug: no write is refused.
    #[cfg(feature = "planted-bugs")]
    is_missing: bool,
}

impl Fences {
    /// Fences the region at `term`, unless it is fenced at a later one.
    fn raise(&self, region: RegionId, term: Term) {
        let mut terms = self.terms.lock();
        let fence = terms.entry(region).or_insert(term);
        *fence = (*fence).max(term);
    }

    /// Refuses a snapshot of a fenced term, because it may miss a proposal under way. A later term removes the fence.
    fn check(&self, region: RegionId, term: Term) -> Result<(), RegionError> {
        #[cfg(feature = "planted-bugs")]
        if self.is_missing {
            return Ok(());
        }
        let mut terms = self.terms.lock();
        match terms.get(&region) {
            Some(fence) if term <= *fence => {
                let why = format!("the outcome of a write in term {fence} is unknown");
                Err(RegionError::NotReady { region, why })
            }
            Some(_) => {
                terms.remove(&region);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Runs a future to completion: if dropped earlier, it spawns the future as a task on the runtime that it was created
/// in. It may be dropped anywhere, also outside of a runtime.
struct DetachOnDrop<F: Future<Output: Send> + Send + 'static> {
    future: Option<Pin<Box<F>>>,
    runtime: Handle,
}

impl<F: Future<Output: Send> + Send + 'static> DetachOnDrop<F> {
    fn new(future: F) -> DetachOnDrop<F> {
        DetachOnDrop { future: Some(Box::pin(future)), runtime: Handle::current() }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.future else { panic!("polled after completion") };
        let result = future.as_mut().poll(cx);
        if result.is_ready() {
            self.future = None;
        }
        result
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            // A runtime that is shutting down drops the future at once, which raises the fence.
            self.runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests;
