//! Wire form of responses and errors.

use raftstore::{RegionId, StoreId};
use tso::Timestamp;

use super::message::pb::response::Outcome;
use super::message::{MalformedMessage, malformed, pb, required};
use crate::api::{
    DetectorClock, KeyError, LockInfo, LocksStatus, ReadPath, Response, Served, ServerError, TxnStatus, WaitReport,
};
use crate::key::Key;

impl From<Result<Response, ServerError>> for pb::Response {
    fn from(result: Result<Response, ServerError>) -> pb::Response {
        let outcome = match result {
            Ok(Response::Started { start_ts, asked, outcome }) => {
                let read = pb::Response::from((*outcome).map_err(ServerError::from));
                return pb::Response { start_ts: start_ts.raw(), asked, ..read };
            }
            Ok(Response::Replica { served, outcome }) => {
                let read = pb::Response::from((*outcome).map_err(ServerError::from));
                return pb::Response { served: Some(served.into()), ..read };
            }
            Ok(Response::Value(value)) => Outcome::Value(pb::Value { value }),
            Ok(Response::Pairs { pairs, resume }) => Outcome::Pairs(pb::Pairs {
                pairs: pairs.into_iter().map(|(key, value)| pb::Pair { key: key.into_bytes(), value }).collect(),
                resume: resume.map(Key::into_bytes),
            }),
            Ok(Response::Status(status)) => Outcome::Status(status.into()),
            Ok(Response::Locks(status)) => Outcome::Locks(status.into()),
            Ok(Response::AsyncLocked { min_commit_ts }) => Outcome::AsyncLockedTs(min_commit_ts.raw()),
            Ok(Response::Committed { commit_ts }) => Outcome::CommittedTs(commit_ts.raw()),
            Ok(Response::Ttl(ttl_ms)) => Outcome::Ttl(pb::Ttl { ttl_ms }),
            Ok(Response::Waits { cycle, clock }) => {
                let cycle = cycle.into_iter().map(pb::WaitReport::from).collect();
                Outcome::Waits(pb::Waits { cycle, clock: clock.0 })
            }
            Ok(Response::Acquired(acquired)) => Outcome::Acquired(acquired.into()),
            Ok(Response::OldLocks { locks, resume }) => Outcome::OldLocks(pb::LockPage {
                locks: locks.into_iter().map(pb::LockInfo::from).collect(),
                resume: resume.map(Key::into_bytes),
            }),
            Ok(Response::Done) => Outcome::Done(pb::Done {}),
            Err(error) => Outcome::Error(error.into()),
        };
        pb::Response { outcome: Some(outcome), start_ts: 0, asked: 0, served: None }
    }
}

impl TryFrom<pb::Response> for Result<Response, ServerError> {
    type Error = MalformedMessage;

    fn try_from(response: pb::Response) -> Result<Result<Response, ServerError>, MalformedMessage> {
        let (start_ts, asked) = (Timestamp::from_raw(response.start_ts), response.asked);
        let served = response.served.map(Served::try_from).transpose()?;
        let result = match required(response.outcome, "Response", "no known outcome")? {
            Outcome::Value(value) => Ok(Response::Value(value.value)),
            Outcome::Pairs(pairs) => Ok(Response::Pairs {
                pairs: pairs.pairs.into_iter().map(|pair| (Key::new(pair.key), pair.value)).collect(),
                resume: pairs.resume.map(Key::new),
            }),
            Outcome::Status(status) => Ok(Response::Status(status.try_into()?)),
            Outcome::Locks(status) => Ok(Response::Locks(status.try_into()?)),
            Outcome::AsyncLockedTs(ts) => Ok(Response::AsyncLocked { min_commit_ts: Timestamp::from_raw(ts) }),
            Outcome::CommittedTs(ts) => Ok(Response::Committed { commit_ts: Timestamp::from_raw(ts) }),
            Outcome::Ttl(ttl) => Ok(Response::Ttl(ttl.ttl_ms)),
            Outcome::Waits(waits) => Ok(Response::Waits {
                cycle: waits.cycle.into_iter().map(WaitReport::from).collect(),
                clock: DetectorClock(waits.clock),
            }),
            Outcome::Acquired(acquired) => Ok(Response::Acquired(acquired.try_into()?)),
            Outcome::OldLocks(page) => Ok(Response::OldLocks {
                locks: page.locks.into_iter().map(LockInfo::from).collect(),
                resume: page.resume.map(Key::new),
            }),
            Outcome::Done(pb::Done {}) => Ok(Response::Done),
            Outcome::Error(error) => Err(error.try_into()?),
        };
        let outcome = match result {
            result if start_ts == Timestamp::ZERO && served.is_none() => return Ok(result),
            Ok(response) => Ok(response),
            Err(ServerError::Key(error)) => Err(error),
            Err(error) => return Ok(Err(error)),
        };
        let outcome = Box::new(outcome);
        Ok(Ok(match served {
            Some(served) => Response::Replica { served, outcome },
            None => Response::Started { start_ts, asked, outcome },
        }))
    }
}

impl From<Served> for pb::Served {
    fn from(served: Served) -> pb::Served {
        let path = match served.path {
            ReadPath::Lease => pb::ReadPath::Lease,
            ReadPath::ReadIndex => pb::ReadPath::ReadIndex,
            ReadPath::Grant => pb::ReadPath::Grant,
            ReadPath::SessionSnapshot => pb::ReadPath::SessionSnapshot,
            ReadPath::Unproven => pb::ReadPath::Unproven,
        };
        pb::Served {
            store: served.store.get(),
            path: path.into(),
            start_ts: served.start_ts.raw(),
            safe_ts: served.safe_ts.raw(),
            asked: served.asked,
            load: served.load,
        }
    }
}

impl TryFrom<pb::Served> for Served {
    type Error = MalformedMessage;

    fn try_from(served: pb::Served) -> Result<Served, MalformedMessage> {
        let path = match served.path() {
            pb::ReadPath::Lease => ReadPath::Lease,
            pb::ReadPath::ReadIndex => ReadPath::ReadIndex,
            pb::ReadPath::Grant => ReadPath::Grant,
            pb::ReadPath::SessionSnapshot => ReadPath::SessionSnapshot,
            pb::ReadPath::Unproven => ReadPath::Unproven,
            pb::ReadPath::Unspecified => return Err(malformed("Served", "no known path")),
        };
        Ok(Served {
            store: StoreId::new(served.store),
            path,
            start_ts: Timestamp::from_raw(served.start_ts),
            safe_ts: Timestamp::from_raw(served.safe_ts),
            asked: served.asked,
            load: served.load,
        })
    }
}

impl From<TxnStatus> for pb::TxnStatus {
    fn from(status: TxnStatus) -> pb::TxnStatus {
        use pb::txn_status::Status;
        let mut alive_min_commit_ts = 0;
        let status = match status {
            TxnStatus::Alive { ttl_ms, min_commit_ts } => {
                alive_min_commit_ts = min_commit_ts.raw();
                Status::AliveTtlMs(ttl_ms)
            }
            TxnStatus::Async { ttl_ms, min_commit_ts, secondaries } => Status::AsyncCommit(pb::AsyncStatus {
                ttl_ms,
                min_commit_ts: min_commit_ts.raw(),
                secondaries: secondaries.into_iter().map(Key::into_bytes).collect(),
            }),
            TxnStatus::Committed { commit_ts } => Status::CommittedTs(commit_ts.raw()),
            TxnStatus::RolledBack => Status::RolledBack(pb::Done {}),
            TxnStatus::Missing => Status::Missing(pb::Done {}),
        };
        pb::TxnStatus { status: Some(status), alive_min_commit_ts }
    }
}

impl TryFrom<pb::TxnStatus> for TxnStatus {
    type Error = MalformedMessage;

    fn try_from(status: pb::TxnStatus) -> Result<TxnStatus, MalformedMessage> {
        use pb::txn_status::Status;
        let min_commit_ts = Timestamp::from_raw(status.alive_min_commit_ts);
        Ok(match required(status.status, "TxnStatus", "no known status")? {
            Status::AliveTtlMs(ttl_ms) => TxnStatus::Alive { ttl_ms, min_commit_ts },
            Status::AsyncCommit(pb::AsyncStatus { ttl_ms, min_commit_ts, secondaries }) => TxnStatus::Async {
                ttl_ms,
                min_commit_ts: Timestamp::from_raw(min_commit_ts),
                secondaries: secondaries.into_iter().map(Key::new).collect(),
            },
            Status::CommittedTs(ts) => TxnStatus::Committed { commit_ts: Timestamp::from_raw(ts) },
            Status::RolledBack(pb::Done {}) => TxnStatus::RolledBack,
            Status::Missing(pb::Done {}) => TxnStatus::Missing,
        })
    }
}

impl From<LocksStatus> for pb::LocksStatus {
    fn from(status: LocksStatus) -> pb::LocksStatus {
        use pb::locks_status::Status;
        let status = match status {
            LocksStatus::Locked { min_commit_ts } => Status::LockedTs(min_commit_ts.raw()),
            LocksStatus::Missing => Status::Missing(pb::Done {}),
            LocksStatus::TwoPhase => Status::TwoPhase(pb::Done {}),
            LocksStatus::RolledBack => Status::RolledBack(pb::Done {}),
            LocksStatus::Committed { commit_ts } => Status::CommittedTs(commit_ts.raw()),
        };
        pb::LocksStatus { status: Some(status) }
    }
}

impl TryFrom<pb::LocksStatus> for LocksStatus {
    type Error = MalformedMessage;

    fn try_from(status: pb::LocksStatus) -> Result<LocksStatus, MalformedMessage> {
        use pb::locks_status::Status;
        Ok(match required(status.status, "LocksStatus", "no known status")? {
            Status::LockedTs(ts) => LocksStatus::Locked { min_commit_ts: Timestamp::from_raw(ts) },
            Status::Missing(pb::Done {}) => LocksStatus::Missing,
            Status::TwoPhase(pb::Done {}) => LocksStatus::TwoPhase,
            Status::RolledBack(pb::Done {}) => LocksStatus::RolledBack,
            Status::CommittedTs(ts) => LocksStatus::Committed { commit_ts: Timestamp::from_raw(ts) },
        })
    }
}

impl From<LockInfo> for pb::LockInfo {
    fn from(lock: LockInfo) -> pb::LockInfo {
        pb::LockInfo {
            key: lock.key.into_bytes(),
            primary: lock.primary.into_bytes(),
            start_ts: lock.start_ts.raw(),
            ttl_ms: lock.ttl_ms,
        }
    }
}

impl From<pb::LockInfo> for LockInfo {
    fn from(lock: pb::LockInfo) -> LockInfo {
        LockInfo {
            key: Key::new(lock.key),
            primary: Key::new(lock.primary),
            start_ts: Timestamp::from_raw(lock.start_ts),
            ttl_ms: lock.ttl_ms,
        }
    }
}

impl From<ServerError> for pb::ServerError {
    fn from(error: ServerError) -> pb::ServerError {
        use pb::server_error::Error;
        let error = match error {
            ServerError::Region(error) => Error::Region(error.into()),
            ServerError::Key(error) => Error::Key(error.into()),
            ServerError::Undetermined(region) => Error::Undetermined(region.get()),
            ServerError::TooLarge { bytes, limit } => {
                Error::TooLarge(pb::TooLarge { bytes: bytes as u64, limit: limit as u64 })
            }
            ServerError::Invalid(why) => Error::Invalid(why),
            ServerError::Failed(why) => Error::Failed(why),
        };
        pb::ServerError { error: Some(error) }
    }
}

impl TryFrom<pb::ServerError> for ServerError {
    type Error = MalformedMessage;

    fn try_from(error: pb::ServerError) -> Result<ServerError, MalformedMessage> {
        use pb::server_error::Error;
        Ok(match required(error.error, "ServerError", "no known kind")? {
            Error::Region(error) => ServerError::Region(error.try_into()?),
            Error::Key(error) => ServerError::Key(error.try_into()?),
            Error::Undetermined(region) => ServerError::Undetermined(RegionId::new(region)),
            Error::TooLarge(pb::TooLarge { bytes, limit }) => {
                let size = |raw: u64| usize::try_from(raw).unwrap_or(usize::MAX);
                ServerError::TooLarge { bytes: size(bytes), limit: size(limit) }
            }
            Error::Invalid(why) => ServerError::Invalid(why),
            Error::Failed(why) => ServerError::Failed(why),
        })
    }
}

impl From<KeyError> for pb::KeyError {
    fn from(error: KeyError) -> pb::KeyError {
        use pb::key_error::Error;
        let error = match error {
            KeyError::Locked(locks) => {
                Error::Locked(pb::Locked { locks: locks.into_iter().map(pb::LockInfo::from).collect() })
            }
            KeyError::WriteConflict { key, start_ts, conflict_start_ts, conflict_commit_ts } => {
                Error::WriteConflict(pb::WriteConflict {
                    key: key.into_bytes(),
                    start_ts: start_ts.raw(),
                    conflict_start_ts: conflict_start_ts.raw(),
                    conflict_commit_ts: conflict_commit_ts.raw(),
                })
            }
            KeyError::Held { key, holder } => {
                Error::Held(pb::LockRef { key: key.into_bytes(), start_ts: holder.raw() })
            }
            KeyError::LockLost { key } => Error::LockLost(key.into_bytes()),
            KeyError::AlreadyExists { key } => Error::AlreadyExists(key.into_bytes()),
            KeyError::RolledBack { start_ts } => Error::RolledBack(start_ts.raw()),
            KeyError::Committed { start_ts, commit_ts } => {
                Error::Committed(pb::Committed { start_ts: start_ts.raw(), commit_ts: commit_ts.raw() })
            }
            KeyError::LockNotFound { start_ts, key } => {
                Error::LockNotFound(pb::LockNotFound { start_ts: start_ts.raw(), key: key.into_bytes() })
            }
            KeyError::CommitTsTooEarly { commit_ts, min_commit_ts } => Error::CommitTsTooEarly(pb::CommitTsTooEarly {
                commit_ts: commit_ts.raw(),
                min_commit_ts: min_commit_ts.raw(),
            }),
            KeyError::TooOld { start_ts, safe_point } => {
                Error::TooOld(pb::BelowSafePoint { start_ts: start_ts.raw(), safe_point: safe_point.raw() })
            }
            KeyError::Collected { start_ts, safe_point } => {
                Error::Collected(pb::BelowSafePoint { start_ts: start_ts.raw(), safe_point: safe_point.raw() })
            }
        };
        pb::KeyError { error: Some(error) }
    }
}

impl TryFrom<pb::KeyError> for KeyError {
    type Error = MalformedMessage;

    fn try_from(error: pb::KeyError) -> Result<KeyError, MalformedMessage> {
        use pb::key_error::Error;
        Ok(match required(error.error, "KeyError", "no known kind")? {
            Error::Locked(locked) => KeyError::Locked(locked.locks.into_iter().map(LockInfo::from).collect()),
            Error::WriteConflict(e) => KeyError::WriteConflict {
                key: Key::new(e.key),
                start_ts: Timestamp::from_raw(e.start_ts),
                conflict_start_ts: Timestamp::from_raw(e.conflict_start_ts),
                conflict_commit_ts: Timestamp::from_raw(e.conflict_commit_ts),
            },
            Error::Held(e) => KeyError::Held { key: Key::new(e.key), holder: Timestamp::from_raw(e.start_ts) },
            Error::LockLost(key) => KeyError::LockLost { key: Key::new(key) },
            Error::AlreadyExists(key) => KeyError::AlreadyExists { key: Key::new(key) },
            Error::RolledBack(start_ts) => KeyError::RolledBack { start_ts: Timestamp::from_raw(start_ts) },
            Error::Committed(e) => KeyError::Committed {
                start_ts: Timestamp::from_raw(e.start_ts),
                commit_ts: Timestamp::from_raw(e.commit_ts),
            },
            Error::LockNotFound(e) => {
                KeyError::LockNotFound { start_ts: Timestamp::from_raw(e.start_ts), key: Key::new(e.key) }
            }
            Error::CommitTsTooEarly(e) => KeyError::CommitTsTooEarly {
                commit_ts: Timestamp::from_raw(e.commit_ts),
                min_commit_ts: Timestamp::from_raw(e.min_commit_ts),
            },
            Error::TooOld(e) => KeyError::TooOld {
                start_ts: Timestamp::from_raw(e.start_ts),
                safe_point: Timestamp::from_raw(e.safe_point),
            },
            Error::Collected(e) => KeyError::Collected {
                start_ts: Timestamp::from_raw(e.start_ts),
                safe_point: Timestamp::from_raw(e.safe_point),
            },
        })
    }
}
