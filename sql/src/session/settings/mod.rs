//! The settings of a session: current values, values to restore at the end of the transaction, and values reported to
//! the client.
//!
//! SET is transactional. [`Settings`] holds up to three sets of values: the current one, the one after a commit (if SET
//! LOCAL makes it differ), and the one after a rollback. What the session has committed and read last ([`Live`]) is
//! shown as settings too, and no transaction undoes it. Pure.
//!
//! # Layers
//!
//! 1. `number`: values that are numbers
//! 2. `table`: the names and kinds of settings
//! 3. `value`: checks and display forms of values

mod number;
mod table;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tso::Timestamp;

use crate::error::{SqlError, SqlState};
use crate::expr::unknown_setting as unknown;
use crate::protocol::output::Level;
use crate::session::control::{Isolation, Modes};
use crate::session::reads::{self, LastRead, ReadSettings, Staleness};
use crate::session::txn_state::Defaults;
use crate::system::SettingInfo;
use pgtypes::datetime::{DateOrder, IntervalStyle, Now};
use pgtypes::{DateFormat, DateStyle, IoEnv, Names, OutputStyle, TimeZone};
pub(crate) use table::{GC_TTL, LAST_READ, SESSION_TOKEN};
use table::{SETTINGS, Setting};
pub(crate) use value::{gc_ttl, on_off};

/// Limit of custom settings (`myapp.user_id`).
const MAX_CUSTOM: usize = 64;

/// The most bytes that `work_mem` gives.
const MAX_WORK_MEM: usize = 1 << 30;

/// The values of all settings.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    /// By index in [`SETTINGS`].
    known: Vec<String>,
    /// Custom settings: names with a dot, any text.
    custom: BTreeMap<String, String>,
}

/// Parsed values of the settings that the session uses.
#[derive(Clone, Debug)]
struct ParsedValues {
    zone: TimeZone,
    order: DateOrder,
    interval_style: IntervalStyle,
    style: OutputStyle,
    work_mem: usize,
    statement_timeout: Option<Duration>,
    idle_in_transaction_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    defaults: Defaults,
    search_path: Arc<[String]>,
    level: Option<Level>,
    reads: ReadSettings,
}

/// What the session has committed and read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    /// The newest commit or snapshot of the session.
    token: Timestamp,
    /// A token that the client gave. The oracle has not confirmed yet that it has issued it.
    claimed: Timestamp,
    /// How the last statement read.
    pub(crate) last_read: LastRead,
    /// `cortado.gc_ttl` of the cluster, as the session has last seen it. `None`: it has not looked.
    pub(crate) gc_ttl: Option<Duration>,
}

impl Live {
    /// Raises the token to a commit or a snapshot of the session.
    pub(crate) fn raise(&mut self, timestamp: Timestamp) {
        self.token = self.token.max(timestamp);
    }

    /// Takes a token over, which the oracle has not confirmed. An empty one forgets what the session has seen.
    fn claim(&mut self, timestamp: Timestamp) {
        if timestamp == Timestamp::ZERO {
            self.token = Timestamp::ZERO;
        }
        self.claimed = timestamp;
    }

    /// The claimed token, if it is to be confirmed.
    pub(crate) fn unconfirmed(&self) -> Option<Timestamp> {
        (self.claimed > self.token).then_some(self.claimed)
    }

    /// The oracle has issued the claimed token.
    pub(crate) fn confirm(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        self.raise(claimed);
    }

    /// The token.
    pub(crate) fn token(&self) -> Timestamp {
        self.token.max(self.claimed)
    }
}

/// A session's settings.
///
/// Invariants: `after_commit` and `after_rollback` exist only within a transaction, and `after_commit` only together
/// with `after_rollback`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    current: Values,
    after_commit: Option<Box<Values>>,
    after_rollback: Option<Box<Values>>,
    /// The values that RESET restores: defaults and those of the startup packet.
    initial: Values,
    /// The values last reported to the client, by index in [`SETTINGS`].
    reported: Vec<Option<String>>,
    parsed: ParsedValues,
    unreported: bool,
    pub(crate) live: Live,
}

/// Settings at a savepoint. `None`: the transaction had changed none.
#[derive(Debug)]
pub(crate) struct SavedSettings(Option<Box<SavedValues>>);

#[derive(Debug)]
struct SavedValues {
    current: Values,
    after_commit: Option<Box<Values>>,
    after_rollback: Option<Box<Values>>,
}

impl Settings {
    /// The default settings of a role.
    pub(crate) fn new(user: &str) -> Settings {
        let mut known: Vec<String> = SETTINGS.iter().map(|s| s.default.to_owned()).collect();
        if let Some(index) = table::find("session_authorization") {
            known[index] = user.to_owned();
        }
        let values = Values { known, custom: BTreeMap::new() };
        let parsed = parse_values(&values);
        Settings {
            current: values.clone(),
            after_commit: None,
            after_rollback: None,
            initial: values,
            reported: vec![None; SETTINGS.len()],
            parsed,
            unreported: true,
            live: Live::default(),
        }
    }

    /// What the configuration of the node gives: the most sessions, and the port of the connection, if it has one.
    pub(crate) fn set_node(&mut self, max_connections: usize, port: Option<u16>) {
        let most = Some(max_connections.to_string());
        for (name, value) in [("max_connections", most), ("port", port.map(|port| port.to_string()))] {
            if let (Some(index), Some(value)) = (table::find(name), value) {
                self.initial.known[index].clone_from(&value);
                self.current.known[index] = value;
            }
        }
    }

    /// Sets a value from the startup packet. RESET restores it.
    pub(crate) fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        if is_token(name) {
            return self.set_token(Some(&[value.to_owned()]));
        }
        let values = [value.to_owned()];
        assign(&mut self.initial, name, Some(&values), None)?;
        self.current = self.initial.clone();
        self.refresh();
        Ok(())
    }

    /// SET: to `values`, or to the initial value if `None`. `local`: until the end of the transaction.
    pub(crate) fn set(&mut self, name: &str, values: Option<&[String]>, local: bool) -> Result<(), SqlError> {
        if is_token(name) {
            return self.set_token(values);
        }
        let mut changed = self.current.clone();
        assign(&mut changed, name, values, Some(&self.initial))?;
        let before = std::mem::replace(&mut self.current, changed);
        if local {
            if self.after_commit.is_none() {
                self.after_commit = Some(Box::new(before.clone()));
            }
        } else if let Some(after) = &mut self.after_commit {
            assign(after, name, values, Some(&self.initial))?;
        }
        self.after_rollback.get_or_insert_with(|| Box::new(before));
        self.refresh();
        Ok(())
    }

    /// Takes over a session's token; `None` for none.
    fn set_token(&mut self, values: Option<&[String]>) -> Result<(), SqlError> {
        self.live.claim(match values {
            Some(values) => token(values)?,
            None => Timestamp::ZERO,
        });
        Ok(())
    }

    /// RESET ALL.
    pub(crate) fn reset_all(&mut self) {
        self.live.claim(Timestamp::ZERO);
        let before = std::mem::replace(&mut self.current, self.initial.clone());
        self.after_commit = None;
        self.after_rollback.get_or_insert_with(|| Box::new(before));
        self.refresh();
    }

    /// Applies the commit of the transaction.
    pub(crate) fn commit(&mut self) {
        self.after_rollback = None;
        if let Some(values) = self.after_commit.take() {
            self.current = *values;
            self.refresh();
        }
    }

    /// Applies the rollback of the transaction.
    pub(crate) fn rollback(&mut self) {
        self.after_commit = None;
        if let Some(values) = self.after_rollback.take() {
            self.current = *values;
            self.refresh();
        }
    }

    /// A setting's display name and value.
    pub(crate) fn show(&self, name: &str) -> Result<(String, Cow<'_, str>), SqlError> {
        if let Some(index) = table::find(name) {
            return Ok((SETTINGS[index].name.to_owned(), self.shown(index)));
        }
        match self.current.custom.get_key_value(name) {
            Some((name, value)) => Ok((name.clone(), value.into())),
            None => Err(unknown(name)),
        }
    }

    /// The value of a setting by its index.
    fn shown(&self, index: usize) -> Cow<'_, str> {
        match SETTINGS[index].name {
            LAST_READ => self.live.last_read.to_string().into(),
            SESSION_TOKEN => reads::show_token(self.live.token()).into(),
            GC_TTL => match self.live.gc_ttl {
                Some(ttl) => value::show_time(ttl).into(),
                None => self.current.known[index].as_str().into(),
            },
            _ => self.current.known[index].as_str().into(),
        }
    }

    /// Name, value and description of every setting.
    pub(crate) fn show_all(&self) -> Vec<[String; 3]> {
        let known = SETTINGS.iter().enumerate().filter(|(_, setting)| setting.is_listed());
        let known = known.map(|(at, s)| [s.name.to_owned(), self.shown(at).into_owned(), s.about.to_owned()]);
        let custom = self.current.custom.iter().map(|(n, v)| [n.clone(), v.clone(), String::new()]);
        known.chain(custom).collect()
    }

    /// Every setting as `pg_settings` has it.
    pub(crate) fn describe(&self) -> Vec<SettingInfo> {
        let listed = SETTINGS.iter().enumerate().filter(|(_, setting)| setting.is_listed());
        let known = listed.map(|(at, setting)| {
            let (value, initial) = (self.shown(at), &self.initial.known[at]);
            SettingInfo {
                name: setting.name.to_owned(),
                value: setting.in_its_unit(&value),
                reset: setting.in_its_unit(initial),
                source: match setting.kind {
                    table::Kind::Node(..) if initial != setting.default => "configuration file",
                    _ => source_of(value != *initial, initial != setting.default),
                },
                ..setting.info()
            }
        });
        let custom = self.current.custom.iter().map(|(name, value)| SettingInfo {
            name: name.clone(),
            value: value.clone(),
            reset: self.initial.custom.get(name).cloned().unwrap_or_default(),
            context: "user",
            group: "Customized Options",
            kind: "string",
            source: source_of(self.initial.custom.get(name) != Some(value), true),
            ..SettingInfo::default()
        });
        known.chain(custom).collect()
    }

    /// Reported settings whose value changed since the last report.
    pub(crate) fn take_unreported(&mut self) -> Vec<(&'static str, String)> {
        if !std::mem::take(&mut self.unreported) {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for (index, setting) in SETTINGS.iter().enumerate().filter(|(_, s)| s.report) {
            let value = &self.current.known[index];
            if self.reported[index].as_ref() != Some(value) {
                self.reported[index] = Some(value.clone());
                changes.push((setting.name, value.clone()));
            }
        }
        changes
    }

    /// What text forms and functions read of the session.
    pub(crate) fn io<'a>(&'a self, now: i64, names: &'a dyn Names) -> IoEnv<'a> {
        let ParsedValues { zone, order, interval_style, style, .. } = &self.parsed;
        IoEnv { zone, order: *order, interval_style: *interval_style, style: *style, now: Now(now), names }
    }

    /// `work_mem`, in bytes.
    pub(crate) fn work_mem(&self) -> usize {
        self.parsed.work_mem
    }

    /// The session's time zone and the style of its dates.
    pub(crate) fn zone(&self) -> &TimeZone {
        &self.parsed.zone
    }

    /// The names of the search path. The same address as long as the setting is the same.
    pub(crate) fn search_path(&self) -> &Arc<[String]> {
        &self.parsed.search_path
    }

    /// The statement timeout.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.parsed.statement_timeout
    }

    /// The idle timeout, in a transaction or outside of one.
    pub(crate) fn idle_timeout(&self, in_transaction: bool) -> Option<Duration> {
        if in_transaction { self.parsed.idle_in_transaction_timeout } else { self.parsed.idle_timeout }
    }

    /// The modes of new transactions.
    pub(crate) fn defaults(&self) -> Defaults {
        self.parsed.defaults
    }

    /// How long a statement waits for the lock of a row; `None` for ever.
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        self.parsed.lock_timeout
    }

    /// The values as they are, for [`Settings::rollback_to`].
    pub(crate) fn savepoint(&self) -> SavedSettings {
        let changed = || {
            let (after_commit, after_rollback) = (self.after_commit.clone(), self.after_rollback.clone());
            Box::new(SavedValues { current: self.current.clone(), after_commit, after_rollback })
        };
        SavedSettings(self.after_rollback.is_some().then(changed))
    }

    /// Undoes every change since a savepoint of the transaction.
    pub(crate) fn rollback_to(&mut self, saved: &SavedSettings) {
        match saved.0.as_deref() {
            None => self.rollback(),
            Some(SavedValues { current, after_commit, after_rollback }) => {
                self.current = current.clone();
                (self.after_commit, self.after_rollback) = (after_commit.clone(), after_rollback.clone());
                self.refresh();
            }
        }
    }

    /// How reads choose their snapshot and their replicas.
    pub(crate) fn reads(&self) -> ReadSettings {
        self.parsed.reads
    }

    /// Whether `client_min_messages` allows notices of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        self.parsed.level.is_some_and(|least| level >= least)
    }

    fn refresh(&mut self) {
        self.parsed = parse_values(&self.current);
        self.unreported = true;
    }
}

fn assign(values: &mut Values, name: &str, words: Option<&[String]>, initial: Option<&Values>) -> Result<(), SqlError> {
    if let Some(index) = table::find(name) {
        values.known[index] = match words {
            Some(words) => {
                let values =
                    value::Context { current: &values.known[index], initial: initial.map(|i| &*i.known[index]) };
                value::normalize(&SETTINGS[index], words, values)?
            }
            None => initial_value(&SETTINGS[index], index, initial)?,
        };
        return Ok(());
    }
    // The prefix `cortado.` is reserved: an unknown name in it is an error, not a custom setting.
    if !name.contains('.') || name.starts_with("cortado.") || name.len() > value::MAX_VALUE_BYTES {
        return Err(unknown(name));
    }
    match words {
        Some(words) => {
            let text = words.join(", ");
            if text.len() > value::MAX_VALUE_BYTES
                || (values.custom.len() >= MAX_CUSTOM && !values.custom.contains_key(name))
            {
                let message = format!("too many or too large settings: \"{name}\"");
                return Err(SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
            }
            values.custom.insert(name.to_owned(), text);
        }
        None => match initial.and_then(|i| i.custom.get(name)) {
            Some(value) => {
                values.custom.insert(name.to_owned(), value.clone());
            }
            // As in PostgreSQL it stays known, as an empty text.
            None => values.custom.get_mut(name).into_iter().for_each(String::clear),
        },
    }
    Ok(())
}

fn initial_value(setting: &Setting, index: usize, initial: Option<&Values>) -> Result<String, SqlError> {
    if setting.is_fixed() {
        return value::normalize(setting, &[String::new()], value::Context::default());
    }
    Ok(initial.map_or_else(|| setting.default.to_owned(), |i| i.known[index].clone()))
}

/// Where a value is from: `pg_settings.source`.
fn source_of(is_set: bool, is_given: bool) -> &'static str {
    match (is_set, is_given) {
        (true, _) => "session",
        (false, true) => "client",
        (false, false) => "default",
    }
}

fn is_token(name: &str) -> bool {
    name.eq_ignore_ascii_case(SESSION_TOKEN)
}

/// The timestamp of a session's token.
pub(crate) fn token(values: &[String]) -> Result<Timestamp, SqlError> {
    let found = table::find(SESSION_TOKEN).and_then(|index| SETTINGS.get(index));
    let setting = found.ok_or_else(|| unknown(SESSION_TOKEN))?;
    value::normalize(setting, values, value::Context::default())?;
    value::token(setting, values.first().map_or("", String::as_str))
}

fn parse_values(values: &Values) -> ParsedValues {
    let text = |name: &str| table::find(name).map_or("", |index| values.known[index].as_str());
    let duration = |name: &str| number::parse_millis(text(name)).filter(|ms| *ms > 0).map(Duration::from_millis);
    ParsedValues {
        zone: value::zone(text("TimeZone")).unwrap_or_else(TimeZone::utc).with_style(style_of(text("DateStyle"))),
        order: order_of(text("DateStyle")),
        interval_style: interval_style_of(text("IntervalStyle")),
        style: OutputStyle {
            float_digits: text("extra_float_digits").parse().unwrap_or(1),
            escapes_bytes: text("bytea_output") == "escape",
        },
        work_mem: usize::try_from(number::blocks(text("work_mem"), 1024) * 1024).unwrap_or(0).min(MAX_WORK_MEM),
        statement_timeout: duration("statement_timeout"),
        idle_in_transaction_timeout: duration("idle_in_transaction_session_timeout"),
        idle_timeout: duration("idle_session_timeout"),
        lock_timeout: duration("lock_timeout"),
        defaults: Defaults {
            isolation: Isolation::from_name(text("default_transaction_isolation")).unwrap_or(Isolation::ReadCommitted),
            read_only: text("default_transaction_read_only") == "on",
            deferrable: text("default_transaction_deferrable") == "on",
        },
        search_path: value::path_names(text("search_path")).into(),
        level: match text("client_min_messages") {
            "error" => None,
            "warning" => Some(Level::Warning),
            _ => Some(Level::Notice),
        },
        // The texts are normalized.
        reads: ReadSettings {
            replica: reads::replica(text("cortado.replica_read")).unwrap_or_default(),
            staleness: Staleness::parse(text("cortado.read_staleness")).unwrap_or_default(),
            session_snapshot: text("cortado.session_snapshot") == "on",
            hedge: reads::hedge(text("cortado.hedge")).unwrap_or_default(),
            grants: text("cortado.grants") == "on",
            wait: duration("cortado.replica_wait").unwrap_or_default(),
        },
    }
}

/// The style of a normalized value of DateStyle.
fn style_of(text: &str) -> DateStyle {
    let (format, order) = text.split_once(", ").unwrap_or((text, ""));
    let format = match format {
        "SQL" => DateFormat::Sql,
        "Postgres" => DateFormat::Postgres,
        "German" => DateFormat::German,
        _ => DateFormat::Iso,
    };
    DateStyle { format, day_first: order == "DMY" }
}

/// The order of fields of a normalized value of DateStyle.
fn order_of(text: &str) -> DateOrder {
    match text.split_once(", ").map_or("", |(_, order)| order) {
        "DMY" => DateOrder::Dmy,
        "YMD" => DateOrder::Ymd,
        _ => DateOrder::Mdy,
    }
}

fn interval_style_of(text: &str) -> IntervalStyle {
    match text {
        "postgres_verbose" => IntervalStyle::PostgresVerbose,
        "sql_standard" => IntervalStyle::SqlStandard,
        "iso_8601" => IntervalStyle::Iso8601,
        _ => IntervalStyle::Postgres,
    }
}

/// Checks a value for a setting. Returns it as SHOW would print it.
pub(crate) fn check(name: &str, values: &[String]) -> Result<String, SqlError> {
    match table::find(name) {
        Some(index) => value::normalize(&SETTINGS[index], values, value::Context::default()),
        None => Err(unknown(name)),
    }
}

/// The modes that a `transaction_*` setting sets; without a value, those at the start of a session. `None` for other
/// settings. Checks the value like that of any setting.
pub(crate) fn transaction_modes(name: &str, value: Option<&[String]>) -> Result<Option<Modes>, SqlError> {
    let lower = name.to_ascii_lowercase();
    let Some(index) = table::find(&lower).filter(|_| lower.starts_with("transaction_")) else { return Ok(None) };
    let value = value.map_or_else(|| Ok(SETTINGS[index].default.to_owned()), |value| check(&lower, value))?;
    let mut modes = Modes::default();
    match lower.as_str() {
        "transaction_isolation" => modes.isolation = Isolation::from_name(&value),
        "transaction_read_only" => modes.read_only = Some(value == "on"),
        _ => modes.deferrable = Some(value == "on"),
    }
    Ok(Some(modes))
}

/// A setting's display name. Unknown names are returned unchanged.
pub(crate) fn shown_name(name: &str) -> &str {
    table::find(name).map_or(name, |index| SETTINGS[index].name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &mut Settings, name: &str, value: &str, local: bool) {
        settings.set(name, Some(&[value.to_owned()]), local).unwrap();
    }

    fn shown<'a>(settings: &'a Settings, name: &str) -> Cow<'a, str> {
        settings.show(name).unwrap().1
    }

    #[test]
    fn a_rollback_undoes_set_and_a_commit_undoes_set_local() {
        let mut s = Settings::new("ann");
        set(&mut s, "statement_timeout", "1s", false);
        s.commit();
        set(&mut s, "statement_timeout", "2s", false);
        set(&mut s, "timezone", "Asia/Tokyo", true);
        set(&mut s, "my.app", "x", true);
        assert_eq!(s.statement_timeout(), Some(Duration::from_secs(2)));
        assert_eq!(s.show("MY.app").unwrap_err().code.0, "42704", "names of others keep their case");
        s.rollback();
        assert_eq!((shown(&s, "statement_timeout"), shown(&s, "TimeZone")), ("1s".into(), "UTC".into()));
        set(&mut s, "timezone", "Asia/Tokyo", true);
        set(&mut s, "statement_timeout", "3s", false);
        set(&mut s, "timezone", "Europe/Rome", true);
        s.commit();
        assert_eq!((shown(&s, "statement_timeout"), shown(&s, "TimeZone")), ("3s".into(), "UTC".into()));
        set(&mut s, "timezone", "Asia/Tokyo", true);
        set(&mut s, "timezone", "Europe/Rome", false);
        s.commit();
        assert_eq!(shown(&s, "timezone"), "Europe/Rome", "SET overrules an earlier SET LOCAL");
        assert_eq!(s.zone().name(), Some("Europe/Rome"));
    }

    #[test]
    fn a_rollback_to_a_savepoint_undoes_what_follows_it() {
        let mut s = Settings::new("ann");
        let unchanged = s.savepoint();
        set(&mut s, "statement_timeout", "1s", false);
        set(&mut s, "timezone", "Asia/Tokyo", true);
        let changed = s.savepoint();
        set(&mut s, "statement_timeout", "2s", false);
        set(&mut s, "timezone", "Europe/Rome", false);
        s.rollback_to(&changed);
        assert_eq!((shown(&s, "statement_timeout"), shown(&s, "TimeZone")), ("1s".into(), "Asia/Tokyo".into()));
        s.commit();
        assert_eq!((shown(&s, "statement_timeout"), shown(&s, "TimeZone")), ("1s".into(), "UTC".into()));
        set(&mut s, "statement_timeout", "3s", false);
        s.rollback_to(&unchanged);
        assert_eq!(shown(&s, "statement_timeout"), "1s");
    }

    #[test]
    fn reset_restores_the_startup_values() {
        let mut s = Settings::new("ann");
        s.set_initial("application_name", "psql").unwrap();
        set(&mut s, "application_name", "other", false);
        set(&mut s, "a.b", "1", false);
        s.set("application_name", None, false).unwrap();
        s.commit();
        assert_eq!(shown(&s, "application_name"), "psql");
        set(&mut s, "statement_timeout", "1s", false);
        s.reset_all();
        s.rollback();
        assert_eq!(shown(&s, "statement_timeout"), "0", "the whole transaction is undone");
        s.reset_all();
        s.commit();
        assert!(s.show("a.b").is_err());
        assert_eq!(s.set("server_version", None, false).unwrap_err().code.0, "55P02");
        assert_eq!(s.set("cortado.nonsense", Some(&["1".into()]), false).unwrap_err().code.0, "42704");
    }

    #[test]
    fn changes_are_reported_once() {
        let mut s = Settings::new("ann");
        let reported: Vec<&str> = s.take_unreported().into_iter().map(|(name, _)| name).collect();
        for name in ["server_version", "client_encoding", "DateStyle", "TimeZone", "integer_datetimes", "is_superuser"]
        {
            assert!(reported.contains(&name), "{name}");
        }
        assert!(s.take_unreported().is_empty());
        set(&mut s, "timezone", "Asia/Tokyo", false);
        set(&mut s, "statement_timeout", "1s", false);
        assert_eq!(s.take_unreported(), [("TimeZone", "Asia/Tokyo".to_owned())]);
        s.rollback();
        assert_eq!(s.take_unreported(), [("TimeZone", "UTC".to_owned())]);
    }

    #[test]
    fn the_token_only_rises_and_no_rollback_undoes_it() {
        let at = |ms| Timestamp::new(ms, 0);
        let mut s = Settings::new("ann");
        assert_eq!((shown(&s, SESSION_TOKEN), s.live.token()), ("".into(), Timestamp::ZERO));
        s.live.raise(at(7));
        s.live.raise(at(5));
        set(&mut s, SESSION_TOKEN, "6.0", false);
        assert_eq!((s.live.token(), s.live.unconfirmed()), (at(7), None), "the client gave an older one");
        set(&mut s, SESSION_TOKEN, &reads::show_token(at(9)), true);
        s.rollback();
        assert_eq!((shown(&s, SESSION_TOKEN), s.live.unconfirmed()), (reads::show_token(at(9)).into(), Some(at(9))));
        s.live.confirm();
        assert_eq!((s.live.token(), s.live.unconfirmed()), (at(9), None));
        assert_eq!(s.set(SESSION_TOKEN, Some(&["c1.7".into()]), false).unwrap_err().code.0, "22023");
        assert_eq!(s.set(SESSION_TOKEN, Some(&["7.0".into(), "8.0".into()]), false).unwrap_err().code.0, "22023");
        s.reset_all();
        assert_eq!(s.live.token(), Timestamp::ZERO, "another client of a pool has seen nothing");
        s.set_initial(SESSION_TOKEN, "8.0").unwrap();
        assert_eq!(s.live.unconfirmed(), Some(at(8)), "a connection begins with that of another");
        assert_eq!(s.set(LAST_READ, Some(&["none".into()]), false).unwrap_err().code.0, "55P02");
        assert_eq!(shown(&s, LAST_READ), "none");
    }

    #[test]
    fn custom_settings_are_bounded() {
        let mut s = Settings::new("ann");
        for n in 0..MAX_CUSTOM {
            set(&mut s, &format!("a.b{n}"), "1", false);
        }
        assert_eq!(s.set("a.one_more", Some(&["1".into()]), false).unwrap_err().code.0, "53400");
        let long = "x".repeat(5000);
        assert_eq!(s.set("a.b1", Some(&[long]), false).unwrap_err().code.0, "53400");
    }
}
