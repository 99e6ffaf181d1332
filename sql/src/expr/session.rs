//! The session as expressions see it: settings, the process id, and requests to sleep.
//!
//! Evaluation never waits. `pg_sleep` records its time, and the executor sleeps when the batch of rows is computed. A
//! call that takes an advisory lock fails as long as its answer is not in the log (`locks`): the executor takes the
//! lock and evaluates again.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::locks::{Answered, Asked, LockLog, SequenceAsk, SessionsCall};
use super::tree::{SequenceCall, SessionCall};
use crate::advisory::Answer;
use crate::error::{SqlError, SqlState};
use crate::lock_name::LockName;
use crate::object::{Object, ObjectId, Sequence};
use crate::sequence::SessionSequences;
use crate::sessions::Signal;
use crate::system::{self, ClusterSource, SystemEnv, SystemSession};
use pgtypes::{Datum, IoEnv, Oid, functions};

/// Access to the session of a statement.
pub trait SessionAccess: Sync {
    /// A setting's value as SHOW prints it; `None` if there is none of that name.
    fn setting(&self, name: &str) -> Option<String>;

    /// Sets a setting, to its initial value without `value`; until the end of the transaction if `local`. Returns the
    /// value as SHOW prints it.
    ///
    /// # Errors
    /// Those of SET.
    fn set(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError>;

    /// How many bytes a sort, a hash table or a set of groups may keep: `work_mem`.
    fn work_mem(&self) -> usize;

    /// The process id of BackendKeyData.
    fn backend_pid(&self) -> i32;

    /// Asks for a pause of this many seconds. Several requests add up.
    fn sleep(&self, seconds: f64);

    /// The calls that take advisory locks, and their answers. `None`: there is nobody who would hold them.
    fn lock_log(&self) -> Option<&LockLog> {
        None
    }

    /// The sequences. `None`: there is nobody who draws.
    fn sequences(&self) -> Option<&SessionSequences> {
        None
    }

    /// Asks the cluster about its sessions.
    ///
    /// # Errors
    /// Those of the function, and 57P03 if a node does not answer.
    fn ask(&self, _call: SessionsCall) -> BoxFuture<'_, Result<Datum, SqlError>> {
        Box::pin(async { Err(SqlError::internal("nobody can be asked here")) })
    }

    /// Asks the cluster for what the rows of a relation are computed from.
    ///
    /// # Errors
    /// 57P03 if that cannot be read.
    fn gather(&self, _source: ClusterSource) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(async { Ok(()) })
    }

    /// What the system catalog is computed from. `None`: it is not known here.
    fn system(&self) -> Option<&dyn SystemSession> {
        None
    }

    /// Sends a warning.
    fn warn(&self, _code: SqlState, _message: &str) {}
}

/// The absence of a session: no settings, process id 0, no sleep.
#[derive(Debug)]
pub struct NoSession;

impl SessionAccess for NoSession {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn set(&self, name: &str, _: Option<&str>, _: bool) -> Result<String, SqlError> {
        Err(unknown_setting(name))
    }

    fn work_mem(&self) -> usize {
        0
    }

    fn backend_pid(&self) -> i32 {
        0
    }

    fn sleep(&self, _: f64) {}
}

/// 42704 for an unknown setting.
pub(crate) fn unknown_setting(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// Evaluates a call. The binder has cast the arguments: texts, then a boolean; for `pg_sleep` a float.
pub(super) fn call(function: SessionCall, args: &[&Datum], session: &dyn SessionAccess) -> Result<Datum, SqlError> {
    match (function, args) {
        (SessionCall::SetConfig, [Datum::Null, ..]) => {
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name"))
        }
        (SessionCall::SetConfig, [Datum::Text(name), value, local]) => {
            let value = match value {
                Datum::Text(value) => Some(&**value),
                _ => None,
            };
            session.set(name, value, **local == Datum::Bool(true)).map(|shown| Datum::Text(shown.into()))
        }
        (_, args) if args.iter().any(|arg| arg.is_null()) => Ok(Datum::Null),
        (SessionCall::CurrentSetting, [Datum::Text(name), rest @ ..]) => match session.setting(name) {
            Some(value) => Ok(Datum::Text(value.into())),
            None if rest.first().is_some_and(|missing_ok| **missing_ok == Datum::Bool(true)) => Ok(Datum::Null),
            None => Err(unknown_setting(name)),
        },
        (SessionCall::Advisory(call), args) => {
            let lock = match args {
                [] => None,
                [Datum::Int(number)] => Some(LockName::Big(*number)),
                [Datum::Int(high), Datum::Int(low)] => Some(LockName::Pair(part(*high)?, part(*low)?)),
                _ => return Err(SqlError::internal("an advisory lock has a name of another type")),
            };
            let log = session.lock_log().ok_or_else(|| SqlError::internal("an advisory lock without a session"))?;
            match log.answer(Asked::Lock(call, lock))? {
                Answered::Lock(Answer::Done) => Ok(Datum::Text("".into())),
                Answered::Lock(Answer::Bool(value)) => Ok(Datum::Bool(value)),
                Answered::Lock(Answer::NotOwned(_)) => Ok(Datum::Bool(false)),
                Answered::Value(..) | Answered::Datum(_) => Err(SqlError::internal("the answer is of another call")),
            }
        }
        (SessionCall::Sequence(call), args) => sequence_call(call, args, session),
        (SessionCall::CancelBackend, [Datum::Int(pid)]) => {
            let signal = SessionsCall::Signal { pid: part(*pid)?, signal: Signal::Cancel, timeout_ms: 0 };
            answered(signal, session)
        }
        (SessionCall::TerminateBackend, [Datum::Int(pid), Datum::Int(timeout)]) => {
            let negative = |_| {
                let message = "\"timeout\" must not be negative";
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            };
            let timeout_ms = u64::try_from(*timeout).map_err(negative)?;
            answered(SessionsCall::Signal { pid: part(*pid)?, signal: Signal::Terminate, timeout_ms }, session)
        }
        (SessionCall::BlockingPids, [Datum::Int(pid)]) => answered(SessionsCall::Blockers(part(*pid)?), session),
        (SessionCall::Sleep, [Datum::Float(seconds)]) => {
            session.sleep(*seconds);
            Ok(Datum::Text("".into()))
        }
        (SessionCall::SleepFor, [Datum::Interval(span)]) => {
            let days = i64::from(span.months) * 30 + i64::from(span.days);
            session.sleep(days as f64 * 86_400.0 + span.micros as f64 / 1e6);
            Ok(Datum::Text("".into()))
        }
        (SessionCall::SleepUntil, [Datum::Int(until)]) => {
            let now = session.system().map_or(*until, SystemSession::clock);
            session.sleep(until.saturating_sub(now) as f64 / 1e6);
            Ok(Datum::Text("".into()))
        }
        _ => Err(SqlError::internal("a function of the session got arguments of other types")),
    }
}

/// A call about a sequence. What was answered in the rehearsal is answered again.
fn sequence_call(call: SequenceCall, args: &[&Datum], session: &dyn SessionAccess) -> Result<Datum, SqlError> {
    let missing = || SqlError::internal("a sequence without a session");
    let (log, sequences) = (session.lock_log().ok_or_else(missing)?, session.sequences().ok_or_else(missing)?);
    let find = || sequence_of(args, session);
    let at_once = |value: &dyn Fn() -> Result<i64, SqlError>| -> Result<Answered, SqlError> {
        if let Some(answer) = log.known() {
            return Ok(answer);
        }
        let answer = Answered::Value(value()?, true);
        log.answer_at_once(answer.clone());
        Ok(answer)
    };
    let answer = match (call, args) {
        (SequenceCall::Current, _) => at_once(&|| sequences.current(&find()?))?,
        (SequenceCall::Last, _) => at_once(&|| {
            let catalog = session.system().ok_or_else(missing)?.catalog();
            sequences.last(|id| catalog.object(id).is_some())
        })?,
        (SequenceCall::Next, _) => match log.known() {
            Some(answer) => answer,
            None => {
                let sequence = find()?;
                let ready = if log.is_rehearsal() { sequences.try_next(&sequence) } else { None };
                match ready {
                    Some(value) => {
                        let answer = Answered::Value(value, true);
                        log.answer_at_once(answer.clone());
                        answer
                    }
                    None => log.answer(Asked::Sequence(SequenceAsk::Next, Arc::new(sequence)))?,
                }
            }
        },
        (SequenceCall::Set, [_, Datum::Int(value), rest @ ..]) => {
            let is_called = rest.first().is_none_or(|called| **called == Datum::Bool(true));
            log.answer(Asked::Sequence(SequenceAsk::Set(*value, is_called), Arc::new(find()?)))?
        }
        (SequenceCall::LastValue | SequenceCall::IsCalled | SequenceCall::GivenValue, _) => {
            log.answer(Asked::Sequence(SequenceAsk::Values, Arc::new(find()?)))?
        }
        _ => return Err(SqlError::internal("a function of sequences got arguments of other types")),
    };
    match (answer, call) {
        (Answered::Value(_, is_called), SequenceCall::IsCalled) => Ok(Datum::Bool(is_called)),
        (Answered::Value(_, false), SequenceCall::GivenValue) => Ok(Datum::Null),
        (Answered::Value(value, _), _) => Ok(Datum::Int(value)),
        (Answered::Lock(_) | Answered::Datum(_), _) => Err(SqlError::internal("the answer is of another call")),
    }
}

/// The sequence of a `regclass`. 42809 for another relation.
fn sequence_of(args: &[&Datum], session: &dyn SessionAccess) -> Result<Sequence, SqlError> {
    let catalog = session.system().map(crate::system::SystemSession::catalog);
    let catalog = catalog.ok_or_else(|| SqlError::internal("a sequence without a session"))?;
    let Some(Datum::Int(oid)) = args.first() else {
        return Err(SqlError::internal("a function of sequences got arguments of other types"));
    };
    let id = u32::try_from(*oid).unwrap_or(0);
    if let Some(Object::Sequence(sequence)) = catalog.object(ObjectId(id)).map(|object| &**object) {
        return Ok(sequence.clone());
    }
    Err(match catalog.name_of_relation(id) {
        Some((_, name)) => SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")),
        None => SqlError::new(SqlState::UNDEFINED_TABLE, format!("could not open relation with OID {id}")),
    })
}

/// The value of a call that the executor has made.
fn answered(call: SessionsCall, session: &dyn SessionAccess) -> Result<Datum, SqlError> {
    let log = session.lock_log().ok_or_else(|| SqlError::internal("a signal without a session"))?;
    match log.answer(Asked::Sessions(call))? {
        Answered::Datum(value) => Ok(value),
        Answered::Lock(_) | Answered::Value(..) => Err(SqlError::internal("an answer is of another call")),
    }
}

fn part(number: i64) -> Result<i32, SqlError> {
    i32::try_from(number).map_err(|_| SqlError::internal("an integer is too large"))
}

/// Evaluates a call of a function of the system catalog.
pub(super) fn system(
    function: Oid,
    args: &[&Datum],
    (session, io): (&dyn SessionAccess, &IoEnv<'_>),
) -> Result<Datum, SqlError> {
    let function = functions::find(function).ok_or_else(|| SqlError::internal("a function is missing"))?;
    system::call(function, args, &system_env(session, io)?)
}

/// The environment of the system catalog.
pub(crate) fn system_env<'a>(session: &'a dyn SessionAccess, io: &IoEnv<'a>) -> Result<SystemEnv<'a>, SqlError> {
    let missing = || SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the system catalog cannot be read here");
    Ok(SystemEnv { session: session.system().ok_or_else(missing)?, io: *io })
}
