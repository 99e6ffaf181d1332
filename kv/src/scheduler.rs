//! Writes on one region: latches, snapshot, evaluation, replication, answer.
//!
//! 1. Take the latches of the keys: from here to the end nobody else evaluates against them.
//! 2. Take a snapshot of the region, as its leader, in a term that has applied its first entry.
//! 3. Evaluate (`percolator`).
//! 4. Replicate the batch, in the term and the epoch of the snapshot.
//! 5. Answer when it is applied, and give the latches back.
//!
//! What evaluation finds is only as good as the snapshot. A batch carries its own proof: it is refused unless the term still holds.
//! An answer without a batch (an echo, an error, a status) would be taken on trust, so that leadership is confirmed after the evaluation: within
//! one confirmed term every write to our keys went through our latches.
//!
//! A proposal whose fate is unknown may still take effect, after the latches are back. Therefore its region is *fenced* at its term: nothing is
//! evaluated there until a later term, whose first entry comes after whatever became of it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::WriteBatch;
use parking_lot::Mutex;
use raftstore::{ProposeError, RegionContext, RegionError, RegionId, Term};

use crate::api::{Request, RequestBody, Response, ServerError};
use crate::error::ActionError;
use crate::latch::{LatchGuard, LatchTable};
use crate::percolator::{self, Effects};
use crate::port::{RegionStore, RegionView, refusal};
use crate::read_pool::{PoolError, ReadPool};

/// Keys of a write that is evaluated where it is called; one with more goes to the read pool.
const INLINE_KEYS: usize = 256;

/// Carries out writes. Clones share latches and fences.
#[derive(Clone)]
pub struct Scheduler<H> {
    store: H,
    latches: LatchTable,
    pool: ReadPool,
    fences: Fences,
}

impl<H: RegionStore> Scheduler<H> {
    /// Over a store, for at most `latch_capacity` writes at a time, with the pool for what takes long to evaluate.
    pub fn new(store: H, latch_capacity: usize, pool: ReadPool) -> Scheduler<H> {
        Scheduler { store, latches: LatchTable::new(latch_capacity), pool, fences: Fences::default() }
    }

    /// How many writes hold latches or wait for them.
    pub fn in_latches(&self) -> usize {
        self.latches.len()
    }

    /// Carries out a write. `held` is kept until its fate is known. The future may be dropped at any time: a proposal under way then keeps its latches until it is
    /// applied or lost, in a task of its own. Must be polled within a tokio runtime.
    pub async fn run<T: Send + 'static>(&self, request: Request, held: T) -> Result<Response, ServerError> {
        let Ok(latches) = self.latches.acquire(&request.body.keys()).await else { return Err(self.busy("latches")) };
        let context = request.context;
        let view = self.store.evaluate(context)?;
        self.fences.check(context.region, view.term())?;
        request.body.check_range(view.region())?;
        let evaluated = self.evaluate(&view, request.body).await?;
        match evaluated {
            Ok((batch, response)) if !batch.is_empty() => {
                let proposal = self.clone().propose(context, view, batch, (latches, held));
                RunToEnd::new(proposal).await.map(|()| response)
            }
            Ok((_, response)) => {
                self.confirm(context, view.term()).await?;
                Ok(response)
            }
            Err(error) if error.is_damage() => Err(refusal(&self.store, error)),
            Err(error) => {
                self.confirm(context, view.term()).await?;
                Err(error.into())
            }
        }
    }

    /// The outer error is of the server, the inner one a finding of the evaluation.
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

    /// Whether this store still leads in `term`, at some moment after the call.
    async fn confirm(&self, context: RegionContext, term: Term) -> Result<(), RegionError> {
        let view = match self.store.try_read(context)? {
            Some(view) => view,
            None => self.store.read(context).await?,
        };
        if view.term() == term { Ok(()) } else { Err(RegionError::StaleCommand { region: context.region }) }
    }

    async fn propose<T>(
        self,
        context: RegionContext,
        view: H::View,
        batch: WriteBatch,
        held: (LatchGuard, T),
    ) -> Result<(), ServerError> {
        let region = context.region;
        let result = match self.store.propose(&view, batch).await {
            Ok(_) => Ok(()),
            Err(ProposeError::Region(error)) => Err(error.into()),
            Err(ProposeError::TooLarge { bytes, limit }) => Err(ServerError::TooLarge { bytes, limit }),
            Err(ProposeError::Undetermined { .. }) => Err(ServerError::Undetermined(region)),
            Err(ProposeError::Poisoned(why)) => {
                // Ours is broken, but others may have the entry: it can still be committed by them.
                tracing::error!(%region, why, "a proposal met a poisoned store");
                Err(ServerError::Undetermined(region))
            }
        };
        if matches!(result, Err(ServerError::Undetermined(_))) {
            self.fences.raise(region, view.term());
        }
        // Only now, with the fence up.
        drop(held);
        result
    }

    fn busy(&self, what: &str) -> ServerError {
        RegionError::ServerBusy { store: self.store.store_id(), what: what.to_owned() }.into()
    }
}

/// Terms in which a proposal's fate is unknown, by region.
///
/// Invariant: while a proposal of a term may still take effect without its latches, its region is fenced at that term or a later one.
#[derive(Clone, Debug, Default)]
struct Fences {
    terms: Arc<Mutex<HashMap<RegionId, Term>>>,
}

impl Fences {
    fn raise(&self, region: RegionId, term: Term) {
        let mut terms = self.terms.lock();
        let fence = terms.entry(region).or_insert(term);
        *fence = (*fence).max(term);
    }

    /// Refuses a snapshot that may miss a proposal under way; a later term ends the fence.
    fn check(&self, region: RegionId, term: Term) -> Result<(), RegionError> {
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

/// A future that is run to its end: dropped earlier, it goes on as a task.
struct RunToEnd<F: Future<Output: Send> + Send + 'static> {
    future: Option<Pin<Box<F>>>,
}

impl<F: Future<Output: Send> + Send + 'static> RunToEnd<F> {
    fn new(future: F) -> RunToEnd<F> {
        RunToEnd { future: Some(Box::pin(future)) }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for RunToEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.future else { panic!("polled after its end") };
        let result = future.as_mut().poll(cx);
        if result.is_ready() {
            self.future = None;
        }
        result
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for RunToEnd<F> {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the latches with it.
        if let (Some(future), Ok(runtime)) = (self.future.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests;
