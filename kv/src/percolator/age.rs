//! Transactions below the safe point: which requests still have an effect, and which answers stand.
//!
//! Two floors rise in a region, in this order: transactions that began at or below the floor of *writes* prewrite
//! nothing more; once their locks are resolved everywhere, the floor of *reads* follows, and their records may be
//! collected. A record that is missing then proves nothing: neither that a transaction was rolled back, nor that it
//! never came.
//!
//! The floors are looked at after the evaluation: whatever it missed because of a collection, the floor of that
//! collection had risen before. A prewrite that is proposed carries its date, and apply refuses it by the floor of that
//! moment.

use engine::WriteBatch;
use raftstore::Floors;
use tso::Timestamp;

use super::common::Effects;
use crate::api::{KeyError, LocksStatus, RequestBody, Response, TxnStatus};
use crate::error::ActionError;
use crate::region_store::timestamp;

/// How old the transaction of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It wants to write. It had its first timestamp at `date`: nothing that it has seen is older.
    Writes {
        /// See above.
        date: Timestamp,
    },
    /// It is asked about, or its decision is carried out.
    Decides {
        /// The transaction.
        start_ts: Timestamp,
    },
    /// The age does not matter.
    None,
}

impl Age {
    /// That of a request.
    pub fn of(body: &RequestBody) -> Age {
        match body {
            RequestBody::Prewrite(request) => {
                Age::Writes { date: request.locker.map_or(request.start_ts, |locker| locker.min(request.start_ts)) }
            }
            RequestBody::Commit { start_ts, .. }
            | RequestBody::Rollback { start_ts, .. }
            | RequestBody::ResolveLock { start_ts, .. } => Age::Decides { start_ts: *start_ts },
            RequestBody::CheckTxnStatus(request) => Age::Decides { start_ts: request.lock_ts },
            RequestBody::CheckLocks(request) => Age::Decides { start_ts: request.lock_ts },
            _ => Age::None,
        }
    }

    /// The date of the write that the request makes, if it has one.
    pub fn date(self) -> Option<Timestamp> {
        if let Age::Writes { date } = self { Some(date) } else { None }
    }

    /// The result of an evaluation as it stands under these floors, which are from after the evaluation.
    ///
    /// # Errors
    ///
    /// - That of the evaluation.
    /// - [`KeyError::TooOld`]: the transaction writes nothing any more. An answer that it has committed stands.
    /// - [`KeyError::Collected`]: the answer rests on a record that is not there.
    pub fn judge(
        self,
        floors: Floors,
        evaluated: Result<Effects<Response>, ActionError>,
    ) -> Result<Effects<Response>, ActionError> {
        let (writes, reads) = (timestamp(floors.writes), timestamp(floors.reads));
        match (self, evaluated) {
            (_, Err(error @ (ActionError::Mvcc(_) | ActionError::Invalid(_)))) => Err(error),
            (Age::Writes { date }, evaluated) if date <= writes => match evaluated {
                Ok((batch, response @ Response::Committed { .. })) if batch.is_empty() => Ok((batch, response)),
                _ => Err(KeyError::TooOld { start_ts: date, safe_point: writes }.into()),
            },
            (Age::Decides { start_ts }, evaluated) if start_ts <= reads && rests_on_absence(&evaluated) => {
                Err(KeyError::Collected { start_ts, safe_point: reads }.into())
            }
            (_, evaluated) => evaluated,
        }
    }
}

/// Whether an answer about a transaction rests on a record that is not there. Below the floor of reads there are no
/// locks, so whatever would be written is a mark.
fn rests_on_absence(evaluated: &Result<(WriteBatch, Response), ActionError>) -> bool {
    match evaluated {
        Ok((batch, response)) => {
            let is_missing =
                matches!(response, Response::Status(TxnStatus::Missing) | Response::Locks(LocksStatus::Missing));
            is_missing || !batch.is_empty()
        }
        Err(ActionError::Key(error)) => matches!(error, KeyError::LockNotFound { .. }),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use engine::store::memory::MemoryStore;
    use engine::store::{Reader, Store};
    use raftstore::Floor;

    use super::*;
    use crate::api::{CheckTxnStatusRequest, CommitMode, Mutation, MutationOp, PrewriteRequest};
    use crate::key::Key;
    use crate::percolator::{PrewriteAction, evaluate};

    const fn ts(ms: u64) -> Timestamp {
        Timestamp::new(ms, 0)
    }

    fn floors(writes: u64, reads: u64) -> Floors {
        Floors { writes: Floor::new(ts(writes).raw()), reads: Floor::new(ts(reads).raw()) }
    }

    fn key() -> Key {
        Key::new("k")
    }

    fn prewrite(start: u64, locker: Option<u64>) -> RequestBody {
        RequestBody::Prewrite(PrewriteRequest {
            mutations: vec![Mutation::new(key(), MutationOp::Put("v".into()))],
            primary: key(),
            start_ts: ts(start),
            ttl_ms: 1_000,
            commit: CommitMode::TwoPhase,
            locker: locker.map(ts),
        })
    }

    fn status(start: u64, rollback_if_missing: bool) -> RequestBody {
        RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
            primary: key(),
            lock_ts: ts(start),
            current_ts: Timestamp::ZERO,
            rollback_if_missing,
            reader_ts: Timestamp::ZERO,
            fell_back: false,
        })
    }

    struct Region(MemoryStore, Floors);

    impl Region {
        /// Evaluates a request and writes what it decided. Returns the answer, and whether anything was written.
        fn run(&self, body: &RequestBody, action: PrewriteAction<'_>) -> Result<(Response, bool), KeyError> {
            let evaluated = evaluate(&self.0.snapshot(), body, action);
            match Age::of(body).judge(self.1, evaluated) {
                Ok((batch, response)) => {
                    self.0.write(&batch).unwrap();
                    Ok((response, !batch.is_empty()))
                }
                Err(ActionError::Key(error)) => Err(error),
                Err(error) => panic!("{error}"),
            }
        }

        fn ask(&self, body: &RequestBody) -> Result<(Response, bool), KeyError> {
            self.run(body, PrewriteAction::Lock)
        }
    }

    #[test]
    fn a_transaction_below_the_floor_of_writes_writes_nothing() {
        let region = Region(MemoryStore::new(), floors(10, 0));
        let too_old = |start| Err(KeyError::TooOld { start_ts: ts(start), safe_point: ts(10) });
        assert_eq!(region.ask(&prewrite(10, None)), too_old(10));
        assert_eq!(region.ask(&prewrite(20, Some(9))), too_old(9), "it has seen what was there at 9");
        assert_eq!(region.ask(&prewrite(11, None)), Ok((Response::Done, true)));
        // Those that are decided there still are.
        assert_eq!(region.ask(&status(9, true)), Ok((Response::Status(TxnStatus::RolledBack), true)));
        assert_eq!(region.ask(&status(8, false)), Ok((Response::Status(TxnStatus::Missing), false)));
    }

    /// tikv#11187: a repeated prewrite of a transaction that has committed must not prewrite again, nor may anybody
    /// hear that it has not committed.
    #[test]
    fn late_copies_of_a_committed_transaction_are_never_answered_with_a_lie() {
        let mut region = Region(MemoryStore::new(), floors(0, 0));
        let whole = prewrite(5, None);
        let committed = Response::Committed { commit_ts: ts(7) };
        let commit = PrewriteAction::Commit(ts(7));
        assert_eq!(region.run(&whole, commit), Ok((committed.clone(), true)));
        region.1 = floors(20, 20);
        // While the record is there, all say so.
        assert_eq!(region.run(&whole, commit), Ok((committed, false)));
        assert_eq!(
            region.ask(&status(5, true)),
            Ok((Response::Status(TxnStatus::Committed { commit_ts: ts(7) }), false))
        );
        // Once it is collected, nobody knows.
        let region = Region(MemoryStore::new(), region.1);
        let collected = Err(KeyError::Collected { start_ts: ts(5), safe_point: ts(20) });
        assert_eq!(region.run(&whole, commit), Err(KeyError::TooOld { start_ts: ts(5), safe_point: ts(20) }));
        assert_eq!(region.ask(&status(5, true)), collected);
        assert_eq!(region.ask(&status(5, false)), collected);
        let (keys, start_ts) = (vec![key()], ts(5));
        assert_eq!(region.ask(&RequestBody::Rollback { keys: keys.clone(), start_ts }), collected);
        assert_eq!(region.ask(&RequestBody::Commit { keys: keys.clone(), start_ts, commit_ts: ts(7) }), collected);
        let resolve = RequestBody::ResolveLock { keys, start_ts, commit_ts: None };
        assert_eq!(region.ask(&resolve), Ok((Response::Done, false)), "there is nothing to resolve");
        // No mark was written, for whose removal nobody would look.
        let mut marks = region.0.snapshot().cursor(engine::Cf::Default, b"", b"").unwrap();
        assert!(!marks.seek_to_first().unwrap());
        assert!(region.ask(&status(21, true)).unwrap().1, "above it a mark keeps a late prewrite out");
    }
}
