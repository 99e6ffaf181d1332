//! Readers beside the writers: they pass or resolve the locks that they meet, as a coordinator does for them.

use kv::Key;
use kv::api::ScanRequest;
use kv::api::{
    CheckLocksRequest, CheckTxnStatusRequest, KeyError, LockInfo, LocksStatus, RequestBody, Response, TxnStatus,
};
use rand::Rng;
use rand::rngs::StdRng;
use tso::Timestamp;

use super::{KEYS, World};

/// The most times that a read is repeated past the locks that it meets.
const ATTEMPTS: usize = 40;

impl World {
    /// Reads some keys at a new timestamp: by points, together, or by a scan.
    pub(crate) async fn read(&self, rng: &mut StdRng) {
        let start_ts = self.timestamp();
        let mut pass = Vec::new();
        let keys: Vec<Key> = KEYS.iter().map(|key| Key::from_static(key)).collect();
        let shape = rng.random_range(0..3);
        for _ in 0..rng.random_range(0..3) {
            tokio::task::yield_now().await;
        }
        for _ in 0..ATTEMPTS {
            let pass_now = pass.clone();
            let body = match shape {
                0 => RequestBody::Get { key: keys[0].clone(), start_ts, pass: pass_now },
                1 => RequestBody::BatchGet { keys: keys.clone(), start_ts, pass: pass_now },
                _ => RequestBody::Scan(ScanRequest {
                    start: keys[0].clone(),
                    end: Key::default(),
                    start_ts,
                    limit: 10,
                    max_bytes: 1_000,
                    reverse: false,
                    keys_only: false,
                    pass: pass_now,
                }),
            };
            match self.send(rng, &body, 0.0).await {
                Some(Ok(Response::Value(value))) => {
                    self.stats.borrow_mut().reads += 1;
                    return self.reads.borrow_mut().push((start_ts, keys[0].clone(), value));
                }
                Some(Ok(Response::Pairs { pairs, resume: None })) => {
                    self.stats.borrow_mut().reads += 1;
                    let found = |key: &Key| pairs.iter().find(|(at, _)| at == key).map(|(_, value)| value.clone());
                    let read = keys.iter().map(|key| (start_ts, key.clone(), found(key)));
                    return self.reads.borrow_mut().extend(read);
                }
                Some(Err(KeyError::Locked(locks))) => {
                    for lock in locks {
                        pass.extend(self.resolve(rng, lock, start_ts).await);
                    }
                }
                // A page ends before a lock.
                Some(Ok(Response::Pairs { .. })) => {}
                other => return self.report(format!("a read fails: {other:?}")),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Finds out about the holder of a lock. Returns it if the read may pass it.
    async fn resolve(&self, rng: &mut StdRng, lock: LockInfo, reader_ts: Timestamp) -> Option<Timestamp> {
        let lock_ts = lock.start_ts;
        let status = self.check_primary(rng, &lock, reader_ts, false).await?;
        let commit_ts = match status {
            TxnStatus::Committed { commit_ts } => Some(commit_ts),
            TxnStatus::RolledBack => None,
            TxnStatus::Missing => return self.passed(lock_ts),
            TxnStatus::Alive { min_commit_ts, .. } if min_commit_ts > reader_ts => return self.passed(lock_ts),
            TxnStatus::Alive { .. } => {
                self.report(format!("{lock_ts} was not pushed above {reader_ts}"));
                return None;
            }
            TxnStatus::Async { secondaries, .. } => {
                let keys = secondaries.into_iter().chain([lock.primary.clone()]).collect();
                let check = CheckLocksRequest { keys, lock_ts, reader_ts, mark_missing: false };
                match self.send(rng, &RequestBody::CheckLocks(check), 0.0).await? {
                    Ok(Response::Locks(LocksStatus::Locked { min_commit_ts: commit_ts })) => Some(commit_ts),
                    Ok(Response::Locks(LocksStatus::Committed { commit_ts })) => Some(commit_ts),
                    Ok(Response::Locks(LocksStatus::RolledBack)) => None,
                    Ok(Response::Locks(LocksStatus::Missing)) => return self.passed(lock_ts),
                    Ok(Response::Locks(LocksStatus::TwoPhase)) => {
                        let status = self.check_primary(rng, &lock, reader_ts, true).await?;
                        let is_alive = matches!(status, TxnStatus::Alive { .. });
                        return if is_alive { self.passed(lock_ts) } else { None };
                    }
                    other => {
                        self.report(format!("the check of {lock_ts} fails: {other:?}"));
                        return None;
                    }
                }
            }
        };
        self.stats.borrow_mut().resolved += 1;
        let resolve = RequestBody::ResolveLock { keys: vec![lock.key], start_ts: lock_ts, commit_ts };
        if let Some(Err(error)) = self.send(rng, &resolve, 0.0).await {
            self.report(format!("resolving {lock_ts} fails: {error}"));
        }
        None
    }

    async fn check_primary(
        &self,
        rng: &mut StdRng,
        lock: &LockInfo,
        reader_ts: Timestamp,
        fell_back: bool,
    ) -> Option<TxnStatus> {
        let check = CheckTxnStatusRequest {
            primary: lock.primary.clone(),
            lock_ts: lock.start_ts,
            // No lock expires: only its transaction ends it.
            current_ts: lock.start_ts,
            rollback_if_missing: false,
            reader_ts,
            fell_back,
        };
        match self.send(rng, &RequestBody::CheckTxnStatus(check), 0.0).await? {
            Ok(Response::Status(status)) => Some(status),
            other => {
                self.report(format!("the check of {} fails: {other:?}", lock.start_ts));
                None
            }
        }
    }

    fn passed(&self, lock_ts: Timestamp) -> Option<Timestamp> {
        self.stats.borrow_mut().passed += 1;
        Some(lock_ts)
    }
}
