//! Wire form of the requests for row locks in memory, and of their answers.

use tso::Timestamp;

use super::message::{MalformedMessage, malformed, pb, required};
use super::request::{from_keys, to_keys};
use crate::api::{
    AcquireRequest, Acquired, Blocked, DetectorClock, LockId, LockInfo, LockMode, LockRef, LockedRow, Presence,
    RowFound, WaitReport, Waiting,
};
use crate::key::Key;

impl From<LockRef> for pb::LockRef {
    fn from(lock: LockRef) -> pb::LockRef {
        pb::LockRef { key: lock.key.into_bytes(), start_ts: lock.start_ts.raw() }
    }
}

impl From<pb::LockRef> for LockRef {
    fn from(lock: pb::LockRef) -> LockRef {
        LockRef { key: Key::new(lock.key), start_ts: Timestamp::from_raw(lock.start_ts) }
    }
}

impl From<WaitReport> for pb::WaitReport {
    fn from(report: WaitReport) -> pb::WaitReport {
        pb::WaitReport {
            at: report.at.into_bytes(),
            waiter: report.waiter.raw(),
            holders: report.holders.into_iter().map(Timestamp::raw).collect(),
            session: report.session,
            row: report.row.into_bytes(),
            as_of: report.as_of.0,
        }
    }
}

impl From<pb::WaitReport> for WaitReport {
    fn from(report: pb::WaitReport) -> WaitReport {
        WaitReport {
            at: Key::new(report.at),
            waiter: Timestamp::from_raw(report.waiter),
            holders: report.holders.into_iter().map(Timestamp::from_raw).collect(),
            session: report.session,
            row: Key::new(report.row),
            as_of: DetectorClock(report.as_of),
        }
    }
}

impl From<LockMode> for pb::LockMode {
    fn from(mode: LockMode) -> pb::LockMode {
        match mode {
            LockMode::KeyShare => pb::LockMode::KeyShare,
            LockMode::Share => pb::LockMode::Share,
            LockMode::NoKeyUpdate => pb::LockMode::NoKeyUpdate,
            LockMode::Update => pb::LockMode::Update,
        }
    }
}

impl TryFrom<pb::LockMode> for LockMode {
    type Error = MalformedMessage;

    fn try_from(mode: pb::LockMode) -> Result<LockMode, MalformedMessage> {
        Ok(match mode {
            pb::LockMode::KeyShare => LockMode::KeyShare,
            pb::LockMode::Share => LockMode::Share,
            pb::LockMode::NoKeyUpdate => LockMode::NoKeyUpdate,
            pb::LockMode::Update => LockMode::Update,
            pb::LockMode::Unspecified => return Err(malformed("Acquire", "no known mode")),
        })
    }
}

impl From<AcquireRequest> for pb::Acquire {
    fn from(request: AcquireRequest) -> pb::Acquire {
        let presence = match request.presence {
            Presence::Any => pb::Presence::Any,
            Presence::Present => pb::Presence::Present,
            Presence::Absent => pb::Presence::Absent,
            Presence::MustBeAbsent => pb::Presence::MustBeAbsent,
        };
        pb::Acquire {
            keys: from_keys(request.keys),
            start_ts: request.start_ts.raw(),
            mode: pb::LockMode::from(request.mode).into(),
            presence: presence.into(),
            snapshot: request.snapshot.map(Timestamp::raw),
            seen_ts: request.seen_ts.raw(),
            waiting: Some(match request.waiting {
                Waiting::Queue { ms } => pb::acquire::Waiting::QueueMs(ms),
                Waiting::Fail => pb::acquire::Waiting::Fail(pb::Done {}),
                Waiting::Skip => pb::acquire::Waiting::Skip(pb::Done {}),
            }),
        }
    }
}

impl TryFrom<pb::Acquire> for AcquireRequest {
    type Error = MalformedMessage;

    fn try_from(request: pb::Acquire) -> Result<AcquireRequest, MalformedMessage> {
        let mode = request.mode().try_into()?;
        let presence = match request.presence() {
            pb::Presence::Any => Presence::Any,
            pb::Presence::Present => Presence::Present,
            pb::Presence::Absent => Presence::Absent,
            pb::Presence::MustBeAbsent => Presence::MustBeAbsent,
            pb::Presence::Unspecified => return Err(malformed("Acquire", "no known presence")),
        };
        let waiting = match required(request.waiting, "Acquire", "no known way to wait")? {
            pb::acquire::Waiting::QueueMs(ms) => Waiting::Queue { ms },
            pb::acquire::Waiting::Fail(pb::Done {}) => Waiting::Fail,
            pb::acquire::Waiting::Skip(pb::Done {}) => Waiting::Skip,
        };
        Ok(AcquireRequest {
            keys: to_keys(request.keys),
            start_ts: Timestamp::from_raw(request.start_ts),
            mode,
            presence,
            snapshot: request.snapshot.map(Timestamp::from_raw),
            seen_ts: Timestamp::from_raw(request.seen_ts),
            waiting,
        })
    }
}

impl From<Acquired> for pb::Acquired {
    fn from(acquired: Acquired) -> pb::Acquired {
        let blocked = acquired.blocked.map(|blocked| pb::Blocked {
            holders: blocked.holders.into_iter().map(Timestamp::raw).collect(),
            record: blocked.record.map(pb::LockInfo::from),
        });
        pb::Acquired { rows: acquired.rows.into_iter().map(pb::LockedRow::from).collect(), blocked }
    }
}

impl TryFrom<pb::Acquired> for Acquired {
    type Error = MalformedMessage;

    fn try_from(acquired: pb::Acquired) -> Result<Acquired, MalformedMessage> {
        let blocked = acquired.blocked.map(|blocked| Blocked {
            holders: blocked.holders.into_iter().map(Timestamp::from_raw).collect(),
            record: blocked.record.map(LockInfo::from),
        });
        let rows = acquired.rows.into_iter().map(LockedRow::try_from).collect::<Result<_, _>>()?;
        Ok(Acquired { rows, blocked })
    }
}

impl From<LockedRow> for pb::LockedRow {
    fn from(row: LockedRow) -> pb::LockedRow {
        use pb::locked_row::Row;
        let found = match row.row {
            RowFound::Unchanged => Row::Unchanged(pb::Done {}),
            RowFound::Absent => Row::Absent(pb::Done {}),
            RowFound::Present(value) => Row::Value(value),
            RowFound::Skipped => Row::Skipped(pb::Done {}),
        };
        pb::LockedRow {
            is_locked: row.is_locked,
            commit_ts: row.commit_ts.raw(),
            row: Some(found),
            lock: row.lock.raw(),
        }
    }
}

impl TryFrom<pb::LockedRow> for LockedRow {
    type Error = MalformedMessage;

    fn try_from(row: pb::LockedRow) -> Result<LockedRow, MalformedMessage> {
        use pb::locked_row::Row;
        let found = match required(row.row, "Acquired", "no known row")? {
            Row::Unchanged(pb::Done {}) => RowFound::Unchanged,
            Row::Absent(pb::Done {}) => RowFound::Absent,
            Row::Value(value) => RowFound::Present(value),
            Row::Skipped(pb::Done {}) => RowFound::Skipped,
        };
        if row.is_locked == (row.lock == 0) {
            return Err(malformed("Acquired", "a lock without a number, or a number without a lock"));
        }
        let (commit_ts, lock) = (Timestamp::from_raw(row.commit_ts), LockId::from_raw(row.lock));
        Ok(LockedRow { is_locked: row.is_locked, lock, commit_ts, row: found })
    }
}
