//! The table of settings: every name that SHOW and SET accept, with its allowed values.
//!
//! A setting is listed if it has an effect, if clients read it, or if clients set it on connecting. A setting without
//! effect here accepts only the values that describe Cortado's behaviour. Others are refused with 0A000, so that no
//! client relies on a missing feature.

use crate::system::SettingInfo;

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: it can only be shown.
    Internal,
    /// None: it is one of the cluster, which ALTER SYSTEM sets.
    Cluster,
    /// A boolean.
    Bool,
    /// An integer in a range.
    Int(i64, i64),
    /// A time in milliseconds, with units. 0 is off.
    Millis,
    /// A time in milliseconds, with units, of at least one.
    MillisAbove0,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words, which describe Cortado's behaviour. PostgreSQL accepts others.
    Fixed(&'static [&'static str]),
    /// A name: ASCII, truncated to 63 bytes.
    Name,
    /// A list of schemas. `public` is the only one.
    SearchPath,
    /// A time zone.
    Zone,
    /// An encoding. UTF-8 is the only one.
    Encoding,
    /// A date style.
    DateStyle,
    /// How old a snapshot may be.
    Staleness,
    /// When a second replica is asked.
    Hedge,
    /// A session's token. Kept apart from the other values: no transaction undoes it.
    Token,
    /// An isolation level.
    Isolation,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The display name.
    pub(crate) name: &'static str,
    /// The accepted values.
    pub(crate) kind: Kind,
    /// The default value.
    pub(crate) default: &'static str,
    /// Whether ParameterStatus reports it on connecting and on changes.
    pub(crate) report: bool,
    /// The description in SHOW ALL.
    pub(crate) about: &'static str,
}

const fn shown(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting { name, kind: Kind::Internal, default, report: false, about }
}

const fn takes(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Setting {
    Setting { name, kind, default, report: false, about }
}

const fn reported(setting: Setting) -> Setting {
    Setting { report: true, ..setting }
}

/// The version reported to clients. psql and drivers choose their catalog queries by the leading number.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Cortado ", env!("CARGO_PKG_VERSION"), ")");

const ON: Kind = Kind::Fixed(&["on"]);
const OFF: Kind = Kind::Fixed(&["off"]);
const C_LOCALE: Kind = Kind::Fixed(&["C", "POSIX", "C.UTF-8"]);
const LEVELS: Kind =
    Kind::OneOf(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]);
const INTERVALS: Kind = Kind::OneOf(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]);
const REPLICAS: Kind = Kind::OneOf(&["leader", "follower", "closest", "any", "learner"]);
const DURABILITY: Kind = Kind::OneOf(&["on", "off", "local", "remote_write", "remote_apply"]);

/// The setting that shows how the last statement read.
pub(crate) const LAST_READ: &str = "cortado.last_read";
/// The setting of the cluster that says how long old versions are kept.
pub(crate) const GC_TTL: &str = "cortado.gc_ttl";
/// The setting that is the session's token.
pub(crate) const SESSION_TOKEN: &str = "cortado.session_token";

/// All settings, in the order of SHOW ALL.
pub(crate) const SETTINGS: &[Setting] = &[
    reported(takes("application_name", Kind::Name, "", "Name of the client's application.")),
    takes("array_nulls", ON, "on", "NULL in array input."),
    takes("bytea_output", Kind::Fixed(&["hex"]), "hex", "Text form of bytea."),
    takes("check_function_bodies", Kind::Bool, "on", "No effect: there are no user functions."),
    reported(takes("client_encoding", Kind::Encoding, "UTF8", "Encoding of the client's text.")),
    takes("client_min_messages", LEVELS, "notice", "Lowest level of messages sent to the client."),
    takes(GC_TTL, Kind::Cluster, "10min", "How long old versions of rows are kept."),
    takes("cortado.grants", Kind::Bool, "on", "Grants prove replica reads; off: a read index for each."),
    takes("cortado.hedge", Kind::Hedge, "off", "When a slow read is sent to a second replica too."),
    shown(LAST_READ, "none", "How the last statement read."),
    takes("cortado.read_staleness", Kind::Staleness, "", "How old the snapshots of reads are."),
    takes("cortado.replica_read", REPLICAS, "leader", "The replicas that serve read-only statements."),
    takes("cortado.replica_wait", Kind::Millis, "5s", "Longest wait for a replica that can prove a read."),
    takes("cortado.session_snapshot", Kind::Bool, "off", "Reads see the session's own past, not the newest data."),
    takes(SESSION_TOKEN, Kind::Token, "", "The session's newest commit or snapshot."),
    reported(takes("DateStyle", Kind::DateStyle, "ISO, MDY", "Text form of dates and times.")),
    takes("deadlock_timeout", Kind::MillisAbove0, "1s", "No effect: deadlocks are found within one to three seconds."),
    takes("default_table_access_method", Kind::Fixed(&["heap"]), "heap", "Storage of new tables."),
    takes("default_tablespace", Kind::Fixed(&["", "pg_default"]), "", "There are no tablespaces."),
    takes("default_transaction_deferrable", Kind::Bool, "off", "No effect: snapshots never wait."),
    takes("default_transaction_isolation", Kind::Isolation, "read committed", "Isolation of new transactions."),
    reported(takes("default_transaction_read_only", Kind::Bool, "off", "New transactions refuse writes.")),
    takes("escape_string_warning", Kind::Bool, "on", "No effect: backslashes are plain characters."),
    takes("extra_float_digits", Kind::Int(1, 3), "1", "Floats print in their shortest exact form."),
    takes("idle_in_transaction_session_timeout", Kind::Millis, "0", "Longest idle time in a transaction."),
    takes("idle_session_timeout", Kind::Millis, "0", "Longest idle time outside of a transaction."),
    reported(shown("in_hot_standby", "off", "Every node takes writes.")),
    reported(shown("integer_datetimes", "on", "Times are 64-bit integers.")),
    reported(takes("IntervalStyle", INTERVALS, "postgres", "Text form of intervals.")),
    reported(shown("is_superuser", "on", "Whether the role may do everything.")),
    takes("jit", Kind::Bool, "off", "No effect: nothing is compiled."),
    shown("lc_collate", "C", "Text sorts by its bytes."),
    shown("lc_ctype", "C.UTF-8", "Case of letters: the simple mappings of Unicode."),
    takes("lc_messages", C_LOCALE, "C", "Language of messages."),
    takes("lc_monetary", C_LOCALE, "C", "Form of amounts."),
    takes("lc_numeric", C_LOCALE, "C", "Form of numbers."),
    takes("lc_time", C_LOCALE, "C", "Form of times."),
    takes("lock_timeout", Kind::Millis, "0", "Longest wait for the lock of a row, or an advisory lock."),
    shown("max_identifier_length", "63", "Longest identifier, in bytes."),
    shown("max_index_keys", "32", "Most columns of a key."),
    shown("max_prepared_transactions", "0", "There are no prepared transactions."),
    takes("row_security", Kind::Bool, "on", "No effect: there are no row policies."),
    takes("search_path", Kind::SearchPath, "\"$user\", public", "Where unqualified names are looked up."),
    reported(shown("server_encoding", "UTF8", "Encoding of stored text.")),
    reported(shown("server_version", SERVER_VERSION, "Version of the protocol and dialect, and of Cortado.")),
    shown("server_version_num", "150000", "The same as a number."),
    reported(shown("session_authorization", "", "The role of the session.")),
    reported(takes("standard_conforming_strings", ON, "on", "Backslashes are plain characters.")),
    takes("statement_timeout", Kind::Millis, "0", "Longest run of a statement."),
    takes("synchronous_commit", DURABILITY, "on", "No effect: every commit is on a majority's disks."),
    takes("synchronize_seqscans", Kind::Bool, "on", "No effect: scans are in key order."),
    takes("temp_tablespaces", Kind::Fixed(&[""]), "", "There are no tablespaces."),
    reported(takes("TimeZone", Kind::Zone, "UTC", "Zone in which times are read and shown.")),
    takes("transaction_deferrable", Kind::Bool, "off", "No effect: snapshots never wait."),
    takes("transaction_isolation", Kind::Isolation, "read committed", "Isolation of the transaction."),
    takes("transaction_read_only", Kind::Bool, "off", "The transaction refuses writes."),
    takes("transform_null_equals", OFF, "off", "x = NULL is never true."),
    takes("xmloption", Kind::OneOf(&["content", "document"]), "content", "No effect: there is no xml type."),
];

impl Setting {
    /// What `pg_settings` says about it beside its value.
    pub(crate) fn info(&self) -> SettingInfo {
        let (kind, words, range): (_, &'static [&'static str], _) = match self.kind {
            Kind::Bool => ("bool", &[], None),
            Kind::Fixed(["on"] | ["off"]) => ("bool", &[], None),
            Kind::Int(least, greatest) => ("integer", &[], Some((least, greatest))),
            Kind::OneOf(words) => ("enum", words, None),
            _ => ("string", &[], None),
        };
        let context = match self.kind {
            Kind::Internal => "internal",
            Kind::Cluster => "sighup",
            _ => "user",
        };
        SettingInfo { kind, words, range, context, about: self.about, default: self.default, ..SettingInfo::default() }
    }
}

/// The index of a setting by name, ignoring case.
pub(crate) fn find(name: &str) -> Option<usize> {
    SETTINGS.iter().position(|s| s.name.eq_ignore_ascii_case(name))
}
