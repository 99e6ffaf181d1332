//! The session's own statements: transaction control, settings, prepared statements by name. They have their own parser
//! because they never reach the binder, because the common ones must be cheap, and because the general parser lacks
//! some of them (ABORT, DEFERRABLE). Pure: text in, a [`Control`] out.

use crate::error::{SqlError, SqlState};
use crate::metrics::StatementKind;
use crate::session::nested::{Fetch, fetch};
use crate::session::reader::Parser;
use crate::session::reads::Moment;

/// A statement that the session executes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// BEGIN or START TRANSACTION. The tag is either.
    Begin { tag: &'static str, modes: Modes, as_of: Option<Moment> },
    /// COMMIT, END.
    Commit { chain: bool },
    /// ROLLBACK, ABORT.
    Rollback { chain: bool },
    /// SAVEPOINT name.
    Savepoint(String),
    /// RELEASE name.
    Release(String),
    /// ROLLBACK TO name.
    RollbackTo(String),
    /// SET name = values; no values for DEFAULT.
    Set { name: String, values: Option<Vec<String>>, local: bool },
    /// SET TRANSACTION, or with `session` SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetTransaction { modes: Modes, as_of: Option<Moment>, session: bool },
    /// A SET without effect. Holds the tag.
    SetNoop(&'static str),
    /// SET CONSTRAINTS of these names; none for ALL. No constraint is deferrable.
    SetConstraints(Vec<String>),
    /// RESET name, or RESET ALL.
    Reset(Option<String>),
    /// SHOW name, or SHOW ALL.
    Show(Option<String>),
    /// ALTER SYSTEM SET name = values; no values for DEFAULT and for RESET. No name for RESET ALL.
    AlterSystem { name: Option<String>, values: Option<Vec<String>> },
    /// DISCARD.
    Discard(Discard),
    /// DEALLOCATE name, or DEALLOCATE ALL.
    Deallocate(Option<String>),
    /// CLOSE name, or CLOSE ALL.
    Close(Option<String>),
    /// UNLISTEN. No effect: LISTEN is not supported.
    Unlisten,
    /// FETCH or MOVE.
    Fetch(Fetch),
    /// CHECKPOINT. No effect: every commit is on a majority's disks.
    Checkpoint,
    /// Recognised but not supported. The error is raised at execution.
    Unsupported(Box<SqlError>),
}

/// The argument of DISCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discard {
    /// Everything of the session.
    All,
    /// Cached plans.
    Plans,
    /// What `currval` and `lastval` know.
    Sequences,
    /// Temporary tables. There are none.
    Temp,
}

/// Transaction modes; `None` where not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// ISOLATION LEVEL.
    pub(crate) isolation: Option<Isolation>,
    /// READ ONLY or READ WRITE.
    pub(crate) read_only: Option<bool>,
    /// DEFERRABLE or NOT DEFERRABLE.
    pub(crate) deferrable: Option<bool>,
}

/// Isolation levels by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Runs as READ COMMITTED, as in PostgreSQL.
    ReadUncommitted,
    /// Every statement has a snapshot of its own.
    ReadCommitted,
    /// Snapshot isolation: all statements have one snapshot.
    RepeatableRead,
    /// Not supported yet.
    Serializable,
}

impl Isolation {
    /// The level with this lower-case name.
    pub(crate) fn from_name(name: &str) -> Option<Isolation> {
        match name {
            "read uncommitted" => Some(Isolation::ReadUncommitted),
            "read committed" => Some(Isolation::ReadCommitted),
            "repeatable read" => Some(Isolation::RepeatableRead),
            "serializable" => Some(Isolation::Serializable),
            _ => None,
        }
    }
}

impl Isolation {
    /// The lower-case name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read uncommitted",
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }

    /// Whether every statement has a snapshot of its own.
    pub(crate) const fn is_by_statement(self) -> bool {
        matches!(self, Isolation::ReadUncommitted | Isolation::ReadCommitted)
    }
}

impl Control {
    /// Its kind in the metrics.
    pub(crate) fn kind(&self) -> StatementKind {
        match self {
            Control::Begin { .. }
            | Control::Commit { .. }
            | Control::Rollback { .. }
            | Control::Savepoint(_)
            | Control::Release(_)
            | Control::RollbackTo(_) => StatementKind::Transaction,
            Control::Set { .. }
            | Control::SetTransaction { .. }
            | Control::SetNoop(_)
            | Control::SetConstraints(_)
            | Control::Reset(_)
            | Control::AlterSystem { .. }
            | Control::Show(_) => StatementKind::Setting,
            _ => StatementKind::Other,
        }
    }

    /// Whether it ends the failure of a transaction block, which accepts nothing else.
    pub(crate) fn ends_failure(&self) -> bool {
        matches!(self, Control::Commit { .. } | Control::Rollback { .. } | Control::RollbackTo(_))
    }
}

/// Parses a session statement; `None` if the text is a statement of another kind.
pub(crate) fn parse_control(text: &str) -> Result<Option<Control>, SqlError> {
    let mut p = Parser::new(text);
    let Some(first) = p.word() else { return Ok(None) };
    let first = first.to_ascii_lowercase();
    let parse: fn(&mut Parser<'_>) -> Result<Control, SqlError> = match first.as_str() {
        "begin" => begin,
        "start" => start,
        "commit" | "end" => commit,
        "rollback" | "abort" => rollback,
        "set" => set,
        "alter" if p.is_next("system") => alter_system,
        "reset" => reset,
        "show" => show,
        "discard" => discard,
        "deallocate" => deallocate,
        "close" => close,
        "unlisten" => unlisten,
        "savepoint" => savepoint,
        "release" => release,
        "fetch" => |p| fetch(p, false).map(Control::Fetch),
        "move" => |p| fetch(p, true).map(Control::Fetch),
        "checkpoint" => |_| Ok(Control::Checkpoint),
        "prepare" => return Ok(Some(unsupported("prepared transactions are not supported"))),
        "listen" | "notify" => return Ok(Some(unsupported("LISTEN and NOTIFY are not supported"))),
        _ => return Ok(None),
    };
    p.advance();
    let control = parse(&mut p)?;
    if matches!(control, Control::Unsupported(_)) {
        return Ok(Some(control));
    }
    p.end()?;
    Ok(Some(control))
}

fn unsupported(message: &str) -> Control {
    Control::Unsupported(Box::new(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)))
}

fn begin(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    p.transaction_word();
    let (modes, as_of) = modes(p)?;
    Ok(Control::Begin { tag: "BEGIN", modes, as_of })
}

fn start(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    p.expect("transaction")?;
    let (modes, as_of) = modes(p)?;
    Ok(Control::Begin { tag: "START TRANSACTION", modes, as_of })
}

fn commit(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if p.take("prepared") {
        return Ok(unsupported("prepared transactions are not supported"));
    }
    p.transaction_word();
    Ok(Control::Commit { chain: chain(p)? })
}

fn rollback(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if p.take("prepared") {
        return Ok(unsupported("prepared transactions are not supported"));
    }
    p.transaction_word();
    if p.take("to") {
        p.take("savepoint");
        return Ok(Control::RollbackTo(p.identifier()?));
    }
    Ok(Control::Rollback { chain: chain(p)? })
}

fn savepoint(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    Ok(Control::Savepoint(p.identifier()?))
}

fn release(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    p.take("savepoint");
    Ok(Control::Release(p.identifier()?))
}

fn chain(p: &mut Parser<'_>) -> Result<bool, SqlError> {
    if !p.take("and") {
        return Ok(false);
    }
    let chain = !p.take("no");
    p.expect("chain")?;
    Ok(chain)
}

fn modes(p: &mut Parser<'_>) -> Result<(Modes, Option<Moment>), SqlError> {
    let (mut modes, mut as_of) = (Modes::default(), None);
    while !p.is_at_end() {
        if p.take("isolation") {
            p.expect("level")?;
            modes.isolation = Some(isolation(p)?);
        } else if p.take("read") {
            let read_only = p.take("only");
            if !read_only {
                p.expect("write")?;
            }
            modes.read_only = Some(read_only);
        } else if p.take("deferrable") {
            modes.deferrable = Some(true);
        } else if p.take("as") {
            p.expect("of")?;
            p.expect("system")?;
            p.expect("time")?;
            as_of = Some(moment(p)?);
        } else {
            p.expect("not")?;
            p.expect("deferrable")?;
            modes.deferrable = Some(false);
        }
        if p.take_symbol(',') && p.is_at_end() {
            return Err(p.error());
        }
    }
    Ok((modes, as_of))
}

/// The expression of AS OF SYSTEM TIME.
fn moment(p: &mut Parser<'_>) -> Result<Moment, SqlError> {
    let (moment, end) = Moment::parse(p.text(), p.start())?;
    p.skip_to(end);
    Ok(moment)
}

fn isolation(p: &mut Parser<'_>) -> Result<Isolation, SqlError> {
    if p.take("serializable") {
        return Ok(Isolation::Serializable);
    }
    if p.take("repeatable") {
        p.expect("read")?;
        return Ok(Isolation::RepeatableRead);
    }
    p.expect("read")?;
    if p.take("committed") {
        return Ok(Isolation::ReadCommitted);
    }
    p.expect("uncommitted")?;
    Ok(Isolation::ReadUncommitted)
}

fn set(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    let local = p.take("local");
    let session = !local && p.take("session");
    if session && p.take("characteristics") {
        p.expect("as")?;
        p.expect("transaction")?;
        let (modes, as_of) = some_modes(p)?;
        return Ok(Control::SetTransaction { modes, as_of, session: true });
    }
    if p.take("transaction") {
        if p.take("snapshot") {
            return Ok(unsupported("exported snapshots are not supported"));
        }
        let (modes, as_of) = some_modes(p)?;
        return Ok(Control::SetTransaction { modes, as_of, session: false });
    }
    if p.take("constraints") {
        return constraints(p);
    }
    if p.take("role") {
        return role(p, "none", "changing the role is not supported");
    }
    if p.take("session") || (session && p.is("authorization")) {
        p.expect("authorization")?;
        return role(p, "default", "changing the session authorization is not supported");
    }
    if p.take("time") {
        p.expect("zone")?;
        if p.is("interval") {
            return Ok(unsupported("time zones as intervals are not supported"));
        }
        return Ok(Control::Set { name: "timezone".to_owned(), values: time_zone(p)?, local });
    }
    if p.take("names") {
        let values = if p.is_at_end() || p.take("default") { None } else { Some(vec![p.value()?]) };
        return Ok(Control::Set { name: "client_encoding".to_owned(), values, local });
    }
    let name = p.name()?;
    if !p.take_symbol('=') {
        p.expect("to")?;
    }
    if p.take("default") {
        return Ok(Control::Set { name, values: None, local });
    }
    let mut values = vec![p.value()?];
    while p.take_symbol(',') {
        values.push(p.value()?);
    }
    Ok(Control::Set { name, values: Some(values), local })
}

fn constraints(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    let mut names = Vec::new();
    if !p.take("all") {
        names.push(p.name()?);
        while p.take_symbol(',') {
            names.push(p.name()?);
        }
    }
    if !p.take("deferred") {
        p.expect("immediate")?;
    }
    Ok(Control::SetConstraints(names))
}

fn alter_system(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    p.expect("system")?;
    if p.take("reset") {
        let name = if p.take("all") { None } else { Some(p.name()?) };
        return Ok(Control::AlterSystem { name, values: None });
    }
    p.expect("set")?;
    let name = p.name()?;
    if !p.take_symbol('=') {
        p.expect("to")?;
    }
    if p.take("default") {
        return Ok(Control::AlterSystem { name: Some(name), values: None });
    }
    let mut values = vec![p.value()?];
    while p.take_symbol(',') {
        values.push(p.value()?);
    }
    Ok(Control::AlterSystem { name: Some(name), values: Some(values) })
}

fn some_modes(p: &mut Parser<'_>) -> Result<(Modes, Option<Moment>), SqlError> {
    if p.is_at_end() { Err(p.error()) } else { modes(p) }
}

/// SET ROLE and SET SESSION AUTHORIZATION. Only the word for the role of the connection is accepted.
fn role(p: &mut Parser<'_>, own: &str, refusal: &str) -> Result<Control, SqlError> {
    if p.take(own) { Ok(Control::SetNoop("SET")) } else { Ok(unsupported(refusal)) }
}

fn time_zone(p: &mut Parser<'_>) -> Result<Option<Vec<String>>, SqlError> {
    if p.take("local") || p.take("default") {
        return Ok(None);
    }
    Ok(Some(vec![p.value()?]))
}

fn reset(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if p.take("all") {
        return Ok(Control::Reset(None));
    }
    if p.take("role") {
        return Ok(Control::SetNoop("RESET"));
    }
    if p.take("session") {
        p.expect("authorization")?;
        return Ok(Control::SetNoop("RESET"));
    }
    Ok(Control::Reset(Some(shown_name(p)?)))
}

fn show(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if p.take("all") {
        return Ok(Control::Show(None));
    }
    if p.take("session") {
        p.expect("authorization")?;
        return Ok(Control::Show(Some("session_authorization".to_owned())));
    }
    Ok(Control::Show(Some(shown_name(p)?)))
}

/// A setting's name, or the SQL-standard words for one.
fn shown_name(p: &mut Parser<'_>) -> Result<String, SqlError> {
    if p.take("time") {
        p.expect("zone")?;
        return Ok("timezone".to_owned());
    }
    if p.take("transaction") {
        p.expect("isolation")?;
        p.expect("level")?;
        return Ok("transaction_isolation".to_owned());
    }
    p.name()
}

fn discard(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    let kinds = [
        ("all", Discard::All),
        ("plans", Discard::Plans),
        ("sequences", Discard::Sequences),
        ("temp", Discard::Temp),
        ("temporary", Discard::Temp),
    ];
    for (word, kind) in kinds {
        if p.take(word) {
            return Ok(Control::Discard(kind));
        }
    }
    Err(p.error())
}

fn deallocate(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    p.take("prepare");
    if p.take("all") {
        return Ok(Control::Deallocate(None));
    }
    Ok(Control::Deallocate(Some(p.identifier()?)))
}

fn close(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if p.take("all") {
        return Ok(Control::Close(None));
    }
    Ok(Control::Close(Some(p.identifier()?)))
}

fn unlisten(p: &mut Parser<'_>) -> Result<Control, SqlError> {
    if !p.take_symbol('*') {
        p.identifier()?;
    }
    Ok(Control::Unlisten)
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
