//! Reads that any replica may serve: which snapshot they get, and what proves it.
//!
//! A read that names its snapshot, or wants a fresh one, waits until a grant covers it ([`Grants`]); one that takes the
//! newest snapshot there is need not wait. Then it reads as a leader's read does, but on this store's replica, and
//! *after* the data was read the replica must still be the one for which the grant counted: a grant holds for ever, and
//! has no lease. Where this store leads, it reads as the leader.

use bytes::Bytes;
use engine::store::NewestReader;
use raftstore::{RegionContext, RegionError, ReplicaState};
use tso::Timestamp;

use crate::api::{
    KeyError, PASS_MAX, ReadPath, ReplicaProof, ReplicaRead, Request, RequestBody, Response, Served, ServerError,
};
use crate::error::ActionError;
use crate::grants::{Covered, Grants, Wanted};
use crate::key::Key;
use crate::mvcc::point::{PointRead, get_newest};
use crate::read::{Proof, ReadExecutor, outcome_of, snapshot_of};
use crate::region_store::RegionReads;

/// How often a read begins anew because its replica has changed under it.
const ATTEMPTS: usize = 4;

/// What a point read of the newest state found: the value, the snapshot and the safe_ts of the replica.
pub(crate) type NewestRead = (Result<Option<Bytes>, ActionError>, Timestamp, Timestamp);

impl<H: RegionReads> ReadExecutor<H> {
    /// Executes a read that any replica may serve.
    ///
    /// # Errors
    ///
    /// As [`ReadExecutor::run`]. `NotReady`: nothing proves the read in time.
    pub(crate) async fn replica(&self, context: RegionContext, replica: ReplicaRead) -> Result<Response, ServerError> {
        let ReplicaRead { read, proof, floor } = replica;
        let mut body = *read;
        let wanted = match (body.unset_start_ts().is_some(), floor) {
            (false, _) => Wanted::At(snapshot_of(&body)?.0),
            (true, None) => Wanted::Fresh,
            (true, Some(floor)) => Wanted::Newest(floor),
        };
        let Some(grants) = self.grants.as_ref().filter(|_| !self.store.leads(context.region)) else {
            return self.as_leader(context, body, wanted).await;
        };
        if proof == ReplicaProof::Unproven {
            return self.unproven(context, body, grants).await;
        }
        let mut refusal = RegionError::NotReady { region: context.region, why: "no grant covers the read".to_owned() };
        for attempt in 0..ATTEMPTS {
            let covered = match proof {
                ReplicaProof::Covered => {
                    let covered = grants.try_cover(context, wanted);
                    covered.map(|start_ts| Covered::Granted { start_ts, asked: 0 }).ok_or_else(|| refusal.clone())?
                }
                ReplicaProof::ReadIndex if attempt == 0 => {
                    self.check_wanted(context, wanted).await?;
                    grants.read_index(context, wanted).await?
                }
                _ => match grants.try_cover(context, wanted) {
                    Some(start_ts) => Covered::Granted { start_ts, asked: 0 },
                    None => {
                        self.check_wanted(context, wanted).await?;
                        grants.cover(context, wanted).await?
                    }
                },
            };
            let Covered::Granted { start_ts, asked } = covered else {
                return self.as_leader(context, body, wanted).await;
            };
            let mut body = body.clone();
            body.unset_start_ts().into_iter().for_each(|unset| *unset = start_ts);
            let path = match wanted {
                Wanted::Newest(_) => ReadPath::SessionSnapshot,
                _ if proof == ReplicaProof::ReadIndex => ReadPath::ReadIndex,
                _ => ReadPath::Grant,
            };
            match self.read(Request { context, body }, Proof::Granted).await {
                Err(ServerError::Region(error @ RegionError::NotReady { .. })) => refusal = error,
                outcome => {
                    let safe_ts = grants.safe_ts(context.region);
                    let served = Served { store: self.store.store_id(), path, start_ts, safe_ts, asked, load: 0 };
                    return served_as(served, outcome);
                }
            }
        }
        Err(refusal.into())
    }

    /// Refuses a snapshot that the oracle has not issued.
    async fn check_wanted(&self, context: RegionContext, wanted: Wanted) -> Result<(), ServerError> {
        match wanted {
            Wanted::At(ts) | Wanted::Newest(ts) => self.concurrency.check_issued(context.region, ts).await,
            Wanted::Fresh => Ok(()),
        }
    }

    /// Executes the read where this store leads.
    async fn as_leader(
        &self,
        context: RegionContext,
        mut body: RequestBody,
        wanted: Wanted,
    ) -> Result<Response, ServerError> {
        let (start_ts, asked) = match self.known_start_ts(wanted) {
            Some(known) => (known, 0),
            None => self.take_start_ts(context).await?,
        };
        body.unset_start_ts().into_iter().for_each(|unset| *unset = start_ts);
        let path = if matches!(wanted, Wanted::Newest(_)) { ReadPath::SessionSnapshot } else { ReadPath::Lease };
        let served = Served { store: self.store.store_id(), path, start_ts, safe_ts: start_ts, asked, load: 0 };
        served_as(served, self.read(Request { context, body }, Proof::Leader).await)
    }

    /// The snapshot of a read where this store leads, if that asks nobody: the one it names, or the newest that this
    /// node knows.
    fn known_start_ts(&self, wanted: Wanted) -> Option<Timestamp> {
        match wanted {
            Wanted::At(ts) => Some(ts),
            Wanted::Newest(floor) => {
                Some(self.concurrency.newest()).filter(|newest| *newest >= floor && *newest > Timestamp::ZERO)
            }
            Wanted::Fresh => None,
        }
    }

    /// Executes a read of what is applied here, past all locks.
    async fn unproven(
        &self,
        context: RegionContext,
        mut body: RequestBody,
        grants: &Grants<H>,
    ) -> Result<Response, ServerError> {
        let safe_ts = grants.safe_ts(context.region);
        let newest = self.concurrency.newest().max(safe_ts);
        if newest == Timestamp::ZERO {
            let why = "this node has never had a timestamp".to_owned();
            return Err(RegionError::NotReady { region: context.region, why }.into());
        }
        body.unset_start_ts().into_iter().for_each(|unset| *unset = newest);
        let start_ts = snapshot_of(&body)?.0;
        let served =
            Served { store: self.store.store_id(), path: ReadPath::Unproven, start_ts, safe_ts, asked: 0, load: 0 };
        loop {
            match self.read(Request { context, body: body.clone() }, Proof::Unproven).await {
                Err(ServerError::Key(KeyError::Locked(locks))) => {
                    let pass = pass_mut(&mut body)?;
                    let before = pass.len();
                    pass.extend(locks.into_iter().map(|lock| lock.start_ts));
                    pass.sort_unstable();
                    pass.dedup();
                    if pass.len() == before || pass.len() > PASS_MAX {
                        let why = "a read without proof met too many locks".to_owned();
                        return Err(RegionError::NotReady { region: context.region, why }.into());
                    }
                }
                outcome => return served_as(served, outcome),
            }
        }
    }

    /// A view of this store's replica that is proven for a read.
    pub(crate) fn replica_view(
        &self,
        context: RegionContext,
        body: &RequestBody,
        proof: Proof,
    ) -> Result<H::View, ServerError> {
        use crate::region_store::RegionView;
        let (start_ts, pass) = snapshot_of(body)?;
        if pass.len() > PASS_MAX {
            return Err(ServerError::Invalid("a read passes too many transactions".to_owned()));
        }
        let is_enough = |state: &ReplicaState| {
            proof == Proof::Unproven
                || self.grants.as_ref().is_some_and(|grants| grants.covers(state, start_ts).is_some())
        };
        let view = self.store.replica_view(context, is_enough)?;
        let not_covered = || RegionError::NotReady { region: context.region, why: "the grant has ended".to_owned() };
        let view = view.ok_or_else(not_covered)?;
        body.check_range(view.region())?;
        Ok(view)
    }

    /// Reads a key on the newest state of this store's replica, from memory alone, if a grant covers the snapshot.
    pub(crate) fn replica_newest(
        &self,
        context: RegionContext,
        (key, storage): (&Key, &[u8]),
        wanted: Wanted,
    ) -> Option<NewestRead> {
        let grants = self.grants.as_ref()?;
        let read = |state: &ReplicaState, reader: &dyn NewestReader| {
            let (start_ts, safe_ts) = match wanted {
                Wanted::At(ts) => (ts, grants.covers(state, ts)?),
                Wanted::Newest(floor) => grants.newest(state, floor).map(|ts| (ts, ts))?,
                Wanted::Fresh => return None,
            };
            state.region.contains(storage).then(|| (get_newest(reader, key, storage, start_ts), start_ts, safe_ts))
        };
        let ((read, start_ts, safe_ts), floor) = self.store.replica_newest(context, read).ok()??;
        if let Err(error) = self.check_age(start_ts, floor) {
            return Some((Err(error.into()), start_ts, safe_ts));
        }
        let value = match read {
            Ok(PointRead::Value(value)) => Ok(value),
            Ok(PointRead::Locked(lock)) => Err(KeyError::Locked(vec![lock]).into()),
            Ok(PointRead::Torn) => return None,
            Err(error) => Err(error.into()),
        };
        Some((value, start_ts, safe_ts))
    }

    /// Executes a point read of a key at this store's replica within this call: at `start_ts`, or, if that is
    /// [`Timestamp::ZERO`], at the newest snapshot at or above `floor`. `None` if that takes a message, a wait or a
    /// file, for locks and for errors: [`ReadExecutor::run`] is the way then.
    pub fn try_replica_get(
        &self,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        let store = self.store.store_id();
        let wanted = if start_ts == Timestamp::ZERO { Wanted::Newest(floor?) } else { Wanted::At(start_ts) };
        let path_of = |proof| if matches!(wanted, Wanted::Newest(_)) { ReadPath::SessionSnapshot } else { proof };
        if self.store.leads(context.region) {
            let (start_ts, path) = (self.known_start_ts(wanted)?, path_of(ReadPath::Lease));
            let value = self.try_get(context, key, start_ts)?.ok()?;
            return Some((value, Served { store, path, start_ts, safe_ts: start_ts, asked: 0, load: 0 }));
        }
        let (value, start_ts, safe_ts) = self.replica_newest(context, key, wanted)?;
        let path = path_of(ReadPath::Grant);
        Some((value.ok()?, Served { store, path, start_ts, safe_ts, asked: 0, load: 0 }))
    }
}

/// The response to a read that was served like this.
fn served_as(served: Served, outcome: Result<Response, ServerError>) -> Result<Response, ServerError> {
    Ok(Response::Replica { served, outcome: Box::new(outcome_of(outcome)?) })
}

/// The transactions that a read passes.
fn pass_mut(body: &mut RequestBody) -> Result<&mut Vec<Timestamp>, ServerError> {
    match body {
        RequestBody::Get { pass, .. } | RequestBody::BatchGet { pass, .. } => Ok(pass),
        RequestBody::Scan(scan) => Ok(&mut scan.pass),
        _ => Err(ServerError::Invalid("an action is not a read".to_owned())),
    }
}
