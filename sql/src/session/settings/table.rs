//! The table of settings: every name that SHOW and SET accept, with its allowed values.
//!
//! A setting is listed if it has an effect, if clients read it, or if clients set it on connecting. A setting without
//! effect here accepts only the values that describe Cortado's behaviour. Others are refused with 0A000, so that no
//! client relies on a missing feature.

use super::number::{self, parse_millis};
use crate::system::SettingInfo;
use pgtypes::float::show_with;

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// None: it can only be shown.
    Internal,
    /// None: it is one of the cluster, which ALTER SYSTEM sets.
    Cluster,
    /// None: an integer in a range, which the configuration of the node gives.
    Node(i64, i64),
    /// None: a fact that other servers are configured for.
    Configured,
    /// A boolean.
    Bool,
    /// An integer in a range.
    Int(i64, i64),
    /// A real number in a range.
    Real(f64, f64),
    /// A size in memory, with units: the bytes of a block, and the range in blocks.
    Size(u32, i64, i64),
    /// A time in milliseconds, with units. 0 is off.
    Millis,
    /// A time in milliseconds, with units, of at least one.
    MillisAbove0,
    /// A time in milliseconds, with units. -1 is off.
    MillisOrOff,
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

/// The chapter of settings to which one belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Authentication,
    Behavior,
    Connection,
    Cortado,
    Costs,
    Errors,
    Genetic,
    /// Shown by SHOW, and by no list.
    Hidden,
    Locale,
    Locks,
    Log,
    Logging,
    Memory,
    Methods,
    Monitoring,
    Older,
    Parallel,
    Platform,
    PlannerOther,
    Preset,
    Ssl,
    Statistics,
    Vacuum,
    WhenLogged,
}

impl Group {
    /// Its name in `pg_settings`.
    fn name(self) -> &'static str {
        match self {
            Group::Authentication => "Connections and Authentication / Authentication",
            Group::Behavior => "Client Connection Defaults / Statement Behavior",
            Group::Connection => "Connections and Authentication / Connection Settings",
            Group::Cortado => "Customized Options",
            Group::Costs => "Query Tuning / Planner Cost Constants",
            Group::Errors => "Error Handling",
            Group::Genetic => "Query Tuning / Genetic Query Optimizer",
            Group::Hidden => "",
            Group::Locale => "Client Connection Defaults / Locale and Formatting",
            Group::Locks => "Lock Management",
            Group::Log => "Write-Ahead Log / Settings",
            Group::Logging => "Reporting and Logging / What to Log",
            Group::Memory => "Resource Usage / Memory",
            Group::Methods => "Query Tuning / Planner Method Configuration",
            Group::Monitoring => "Statistics / Monitoring",
            Group::Older => "Version and Platform Compatibility / Previous PostgreSQL Versions",
            Group::Parallel => "Resource Usage / Asynchronous Behavior",
            Group::Platform => "Version and Platform Compatibility / Other Platforms and Clients",
            Group::PlannerOther => "Query Tuning / Other Planner Options",
            Group::Preset => "Preset Options",
            Group::Ssl => "Connections and Authentication / SSL",
            Group::Statistics => "Statistics / Cumulative Query and Index Statistics",
            Group::Vacuum => "Autovacuum",
            Group::WhenLogged => "Reporting and Logging / When to Log",
        }
    }
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
    /// Its chapter.
    pub(crate) group: Group,
    /// The description in SHOW ALL.
    pub(crate) about: &'static str,
}

const fn shown(name: &'static str, default: &'static str, group: Group, about: &'static str) -> Setting {
    Setting { name, kind: Kind::Internal, default, report: false, group, about }
}

const fn takes(name: &'static str, kind: Kind, default: &'static str, group: Group, about: &'static str) -> Setting {
    Setting { name, kind, default, report: false, group, about }
}

const fn reported(setting: Setting) -> Setting {
    Setting { report: true, ..setting }
}

/// The version reported to clients. psql and drivers choose their catalog queries by the leading number.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Cortado ", env!("CARGO_PKG_VERSION"), ")");

const ON: Kind = Kind::Fixed(&["on"]);
const OFF: Kind = Kind::Fixed(&["off"]);
const C_LOCALE: Kind = Kind::Fixed(&["C", "POSIX", "C.UTF-8"]);
const ISOLATION_LEVELS: [&str; 4] = ["serializable", "repeatable read", "read committed", "read uncommitted"];
const LEVELS: Kind =
    Kind::OneOf(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]);
const LOG_LEVELS: Kind = Kind::OneOf(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic",
]);
const COST: Kind = Kind::Real(0.0, f64::MAX);
const MOST: i64 = i32::MAX as i64;
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
    reported(takes("application_name", Kind::Name, "", Group::Logging, "Name of the client's application.")),
    takes("array_nulls", ON, "on", Group::Older, "NULL in array input."),
    shown(
        "autovacuum",
        "on",
        Group::Vacuum,
        "Old versions of rows are collected, whatever a session says: cortado.gc_ttl.",
    ),
    takes(
        "backslash_quote",
        Kind::OneOf(&["safe_encoding", "on", "off"]),
        "safe_encoding",
        Group::Older,
        "No effect: backslashes are plain characters.",
    ),
    shown("block_size", "8192", Group::Preset, "Unit of cost settings. There are no blocks."),
    takes("bytea_output", Kind::OneOf(&["escape", "hex"]), "hex", Group::Behavior, "Text form of bytea."),
    takes("check_function_bodies", Kind::Bool, "on", Group::Behavior, "No effect: there are no user functions."),
    takes(
        "client_connection_check_interval",
        Kind::Millis,
        "0",
        Group::Connection,
        "No effect: the end of a connection is seen at once.",
    ),
    reported(takes("client_encoding", Kind::Encoding, "UTF8", Group::Locale, "Encoding of the client's text.")),
    takes("client_min_messages", LEVELS, "notice", Group::Behavior, "Lowest level of messages sent to the client."),
    takes("commit_delay", Kind::Int(0, 100_000), "0", Group::Log, "No effect: commits share what they sync anyway."),
    takes("commit_siblings", Kind::Int(0, 1000), "5", Group::Log, "No effect: commits share what they sync anyway."),
    takes("compute_query_id", Kind::OneOf(&["auto", "off"]), "auto", Group::Monitoring, "There are no query ids."),
    takes(
        "constraint_exclusion",
        Kind::OneOf(&["partition", "on", "off"]),
        "partition",
        Group::PlannerOther,
        "No effect: plans do not look at checks.",
    ),
    takes(GC_TTL, Kind::Cluster, "10min", Group::Cortado, "How long old versions of rows are kept."),
    takes(
        "cortado.grants",
        Kind::Bool,
        "on",
        Group::Cortado,
        "Grants prove replica reads; off: a read index for each.",
    ),
    takes("cortado.hedge", Kind::Hedge, "off", Group::Cortado, "When a slow read is sent to a second replica too."),
    shown(LAST_READ, "none", Group::Cortado, "How the last statement read."),
    takes("cortado.read_staleness", Kind::Staleness, "", Group::Cortado, "How old the snapshots of reads are."),
    takes("cortado.replica_read", REPLICAS, "leader", Group::Cortado, "The replicas that serve read-only statements."),
    takes(
        "cortado.replica_wait",
        Kind::Millis,
        "5s",
        Group::Cortado,
        "Longest wait for a replica that can prove a read.",
    ),
    takes(
        "cortado.session_snapshot",
        Kind::Bool,
        "off",
        Group::Cortado,
        "Reads see the session's own past, not the newest data.",
    ),
    takes(SESSION_TOKEN, Kind::Token, "", Group::Cortado, "The session's newest commit or snapshot."),
    takes("cpu_index_tuple_cost", COST, "0.005", Group::Costs, "No effect."),
    takes("cpu_operator_cost", COST, "0.0025", Group::Costs, "No effect."),
    takes("cpu_tuple_cost", COST, "0.01", Group::Costs, "No effect."),
    takes("cursor_tuple_fraction", Kind::Real(0.0, 1.0), "0.1", Group::PlannerOther, "No effect."),
    reported(takes("DateStyle", Kind::DateStyle, "ISO, MDY", Group::Locale, "Text form of dates and times.")),
    takes(
        "deadlock_timeout",
        Kind::MillisAbove0,
        "1s",
        Group::Locks,
        "No effect: deadlocks are found within one to three seconds.",
    ),
    takes("default_statistics_target", Kind::Int(1, 10_000), "100", Group::PlannerOther, "No effect."),
    takes("default_table_access_method", Kind::Fixed(&["heap"]), "heap", Group::Behavior, "Storage of new tables."),
    takes("default_tablespace", Kind::Fixed(&["", "pg_default"]), "", Group::Behavior, "There are no tablespaces."),
    takes(
        "default_toast_compression",
        Kind::OneOf(&["pglz", "lz4"]),
        "pglz",
        Group::Behavior,
        "No effect: the store compresses.",
    ),
    takes("default_transaction_deferrable", Kind::Bool, "off", Group::Behavior, "No effect: snapshots never wait."),
    takes(
        "default_transaction_isolation",
        Kind::Isolation,
        "read committed",
        Group::Behavior,
        "Isolation of new transactions.",
    ),
    reported(takes(
        "default_transaction_read_only",
        Kind::Bool,
        "off",
        Group::Behavior,
        "New transactions refuse writes.",
    )),
    takes("effective_cache_size", Kind::Size(8192, 1, MOST), "4GB", Group::Costs, "No effect."),
    takes("effective_io_concurrency", Kind::Int(0, 1000), "1", Group::Parallel, "No effect."),
    takes("enable_bitmapscan", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_gathermerge", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_hashagg", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_hashjoin", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_incremental_sort", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_indexonlyscan", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_indexscan", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_material", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_memoize", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_mergejoin", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_nestloop", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_parallel_append", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_parallel_hash", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_partition_pruning", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_partitionwise_aggregate", Kind::Bool, "off", Group::Methods, "No effect."),
    takes("enable_partitionwise_join", Kind::Bool, "off", Group::Methods, "No effect."),
    takes("enable_seqscan", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_sort", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("enable_tidscan", Kind::Bool, "on", Group::Methods, "No effect."),
    takes("escape_string_warning", Kind::Bool, "on", Group::Older, "No effect: backslashes are plain characters."),
    takes("exit_on_error", OFF, "off", Group::Errors, "An error ends the statement, not the session."),
    takes(
        "extra_float_digits",
        Kind::Int(-15, 3),
        "1",
        Group::Locale,
        "Digits of floats beyond those that are always exact; above 0: the shortest exact form.",
    ),
    takes(
        "from_collapse_limit",
        Kind::Int(1, MOST),
        "8",
        Group::PlannerOther,
        "No effect: joins run in their order in FROM.",
    ),
    shown("fsync", "on", Group::Log, "Every commit is on a majority's disks."),
    shown("full_page_writes", "on", Group::Log, "No page can be torn."),
    takes("geqo", Kind::Bool, "on", Group::Genetic, "No effect."),
    takes("geqo_effort", Kind::Int(1, 10), "5", Group::Genetic, "No effect."),
    takes("geqo_threshold", Kind::Int(2, MOST), "12", Group::Genetic, "No effect."),
    takes("hash_mem_multiplier", Kind::Real(1.0, 1000.0), "2", Group::Memory, "No effect: hash tables have work_mem."),
    takes(
        "idle_in_transaction_session_timeout",
        Kind::Millis,
        "0",
        Group::Behavior,
        "Longest idle time in a transaction.",
    ),
    takes("idle_session_timeout", Kind::Millis, "0", Group::Behavior, "Longest idle time outside of a transaction."),
    reported(shown("in_hot_standby", "off", Group::Preset, "Every node takes writes.")),
    reported(shown("integer_datetimes", "on", Group::Preset, "Times are 64-bit integers.")),
    reported(takes("IntervalStyle", INTERVALS, "postgres", Group::Locale, "Text form of intervals.")),
    reported(shown("is_superuser", "on", Group::Hidden, "Whether the role may do everything.")),
    takes("jit", Kind::Bool, "off", Group::PlannerOther, "No effect: nothing is compiled."),
    takes(
        "join_collapse_limit",
        Kind::Int(1, MOST),
        "8",
        Group::PlannerOther,
        "No effect: joins run in their order in FROM.",
    ),
    shown("lc_collate", "C", Group::Preset, "Text sorts by its bytes."),
    shown("lc_ctype", "C.UTF-8", Group::Preset, "Case of letters: the simple mappings of Unicode."),
    takes("lc_messages", C_LOCALE, "C", Group::Locale, "Language of messages."),
    takes("lc_monetary", C_LOCALE, "C", Group::Locale, "Form of amounts."),
    takes("lc_numeric", C_LOCALE, "C", Group::Locale, "Form of numbers."),
    takes("lc_time", C_LOCALE, "C", Group::Locale, "Form of times."),
    takes(
        "lock_timeout",
        Kind::Millis,
        "0",
        Group::Behavior,
        "Longest wait for the lock of a row, or an advisory lock.",
    ),
    takes("log_duration", Kind::Bool, "off", Group::Logging, "No effect."),
    takes(
        "log_error_verbosity",
        Kind::OneOf(&["terse", "default", "verbose"]),
        "default",
        Group::Logging,
        "No effect.",
    ),
    takes("log_lock_waits", Kind::Bool, "off", Group::Logging, "No effect."),
    takes("log_min_duration_statement", Kind::MillisOrOff, "-1", Group::WhenLogged, "No effect."),
    takes("log_min_error_statement", LOG_LEVELS, "error", Group::WhenLogged, "No effect."),
    takes("log_min_messages", LOG_LEVELS, "warning", Group::WhenLogged, "No effect."),
    takes("log_statement", Kind::OneOf(&["none", "ddl", "mod", "all"]), "none", Group::Logging, "No effect."),
    takes(
        "maintenance_work_mem",
        Kind::Size(1024, 1024, MOST),
        "64MB",
        Group::Memory,
        "No effect: indexes are built in pages.",
    ),
    takes("max_connections", Kind::Node(1, 262_143), "1000", Group::Connection, "Most sessions of this node."),
    shown("max_function_args", "100", Group::Preset, "Most arguments of a function."),
    shown("max_identifier_length", "63", Group::Preset, "Longest identifier, in bytes."),
    shown("max_index_keys", "32", Group::Preset, "Most columns of a key."),
    takes("max_parallel_maintenance_workers", Kind::Int(0, 1024), "2", Group::Parallel, "No effect."),
    takes("max_parallel_workers", Kind::Int(0, 1024), "8", Group::Parallel, "No effect."),
    takes("max_parallel_workers_per_gather", Kind::Int(0, 1024), "2", Group::Parallel, "No effect."),
    shown("max_prepared_transactions", "0", Group::Memory, "There are no prepared transactions."),
    takes("min_parallel_index_scan_size", Kind::Size(8192, 0, 715_827_882), "512kB", Group::Costs, "No effect."),
    takes("min_parallel_table_scan_size", Kind::Size(8192, 0, 715_827_882), "8MB", Group::Costs, "No effect."),
    takes("parallel_leader_participation", Kind::Bool, "on", Group::Parallel, "No effect."),
    takes("parallel_setup_cost", COST, "1000", Group::Costs, "No effect."),
    takes("parallel_tuple_cost", COST, "0.1", Group::Costs, "No effect."),
    takes(
        "password_encryption",
        Kind::Fixed(&["scram-sha-256"]),
        "scram-sha-256",
        Group::Authentication,
        "There are no passwords.",
    ),
    takes(
        "plan_cache_mode",
        Kind::OneOf(&["auto", "force_generic_plan", "force_custom_plan"]),
        "auto",
        Group::PlannerOther,
        "No effect: plans do not depend on parameters.",
    ),
    takes("port", Kind::Node(1, 65_535), "5432", Group::Connection, "The port that the client has connected to."),
    takes("quote_all_identifiers", OFF, "off", Group::Older, "Names are quoted where they must be."),
    takes("random_page_cost", COST, "4", Group::Costs, "No effect."),
    takes("role", Kind::Fixed(&["none"]), "none", Group::Hidden, "There are no roles."),
    takes("row_security", Kind::Bool, "on", Group::Behavior, "No effect: there are no row policies."),
    takes(
        "search_path",
        Kind::SearchPath,
        "\"$user\", public",
        Group::Behavior,
        "Where unqualified names are looked up.",
    ),
    takes("seq_page_cost", COST, "1", Group::Costs, "No effect."),
    reported(shown("server_encoding", "UTF8", Group::Preset, "Encoding of stored text.")),
    reported(shown(
        "server_version",
        SERVER_VERSION,
        Group::Preset,
        "Version of the protocol and dialect, and of Cortado.",
    )),
    shown("server_version_num", "150000", Group::Preset, "The same as a number."),
    reported(shown("session_authorization", "", Group::Hidden, "The role of the session.")),
    takes(
        "session_replication_role",
        Kind::Fixed(&["origin"]),
        "origin",
        Group::Behavior,
        "Foreign keys are always checked.",
    ),
    takes("ssl", Kind::Configured, "off", Group::Ssl, "Connections are not encrypted."),
    reported(takes("standard_conforming_strings", ON, "on", Group::Older, "Backslashes are plain characters.")),
    takes("statement_timeout", Kind::Millis, "0", Group::Behavior, "Longest run of a statement."),
    takes(
        "superuser_reserved_connections",
        Kind::Node(0, 262_143),
        "0",
        Group::Connection,
        "No connections are kept for superusers.",
    ),
    takes("synchronize_seqscans", Kind::Bool, "on", Group::Older, "No effect: scans are in key order."),
    takes("synchronous_commit", DURABILITY, "on", Group::Log, "No effect: every commit is on a majority's disks."),
    takes(
        "temp_buffers",
        Kind::Size(8192, 100, 1_073_741_823),
        "8MB",
        Group::Memory,
        "No effect: temporary tables are like others.",
    ),
    takes("temp_tablespaces", Kind::Fixed(&[""]), "", Group::Behavior, "There are no tablespaces."),
    reported(takes("TimeZone", Kind::Zone, "UTC", Group::Locale, "Zone in which times are read and shown.")),
    takes("track_activities", ON, "on", Group::Statistics, "Sessions are shown."),
    takes("track_counts", Kind::Bool, "on", Group::Statistics, "No effect."),
    takes(
        "track_functions",
        Kind::OneOf(&["none", "pl", "all"]),
        "none",
        Group::Statistics,
        "No effect: there are no user functions.",
    ),
    takes("track_io_timing", Kind::Bool, "off", Group::Statistics, "No effect."),
    takes("transaction_deferrable", Kind::Bool, "off", Group::Behavior, "No effect: snapshots never wait."),
    takes("transaction_isolation", Kind::Isolation, "read committed", Group::Behavior, "Isolation of the transaction."),
    takes("transaction_read_only", Kind::Bool, "off", Group::Behavior, "The transaction refuses writes."),
    takes("transform_null_equals", OFF, "off", Group::Platform, "x = NULL is never true."),
    shown("wal_level", "replica", Group::Log, "The Raft log has what replicas need."),
    takes(
        "work_mem",
        Kind::Size(1024, 64, MOST),
        "128MB",
        Group::Memory,
        "Memory of a sort, a hash table or a set of groups; at most 1 GB is used.",
    ),
    takes("xmlbinary", Kind::OneOf(&["base64", "hex"]), "base64", Group::Behavior, "No effect: there is no xml type."),
    takes(
        "xmloption",
        Kind::OneOf(&["content", "document"]),
        "content",
        Group::Behavior,
        "No effect: there is no xml type.",
    ),
];

impl Setting {
    /// Whether no session changes it.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.kind, Kind::Internal | Kind::Cluster | Kind::Node(..) | Kind::Configured)
    }

    /// Whether lists of settings have it.
    pub(crate) fn is_listed(&self) -> bool {
        self.group != Group::Hidden
    }

    /// What `pg_settings` says about it beside its value.
    pub(crate) fn info(&self) -> SettingInfo {
        let text = |number: f64| show_with(number, -9);
        let (kind, words, range, unit): (_, &'static [&'static str], _, _) = match self.kind {
            Kind::Bool => ("bool", &[], None, ""),
            Kind::Fixed(["on"] | ["off"]) => ("bool", &[], None, ""),
            Kind::Node(least, greatest) | Kind::Int(least, greatest) => {
                ("integer", &[], Some((least.to_string(), greatest.to_string())), "")
            }
            Kind::Real(least, greatest) => ("real", &[], Some((text(least), text(greatest))), ""),
            Kind::Size(block, least, greatest) => {
                ("integer", &[], Some((least.to_string(), greatest.to_string())), number::unit_of(block))
            }
            Kind::Millis => ("integer", &[], Some(("0".to_owned(), MOST.to_string())), "ms"),
            Kind::MillisAbove0 => ("integer", &[], Some(("1".to_owned(), MOST.to_string())), "ms"),
            Kind::MillisOrOff => ("integer", &[], Some(("-1".to_owned(), MOST.to_string())), "ms"),
            Kind::OneOf(words) => ("enum", words, None, ""),
            Kind::Isolation => ("enum", &ISOLATION_LEVELS, None, ""),
            Kind::Internal if self.default.parse::<i64>().is_ok() => {
                ("integer", &[], Some((self.default.to_owned(), self.default.to_owned())), "")
            }
            Kind::Internal | Kind::Configured if matches!(self.default, "on" | "off") => ("bool", &[], None, ""),
            _ => ("string", &[], None, ""),
        };
        let context = match self.kind {
            Kind::Internal => "internal",
            Kind::Cluster | Kind::Configured => "sighup",
            Kind::Node(..) => "postmaster",
            _ => "user",
        };
        let default = self.in_its_unit(self.default);
        let group = self.group.name();
        SettingInfo { kind, words, range, unit, context, group, about: self.about, default, ..SettingInfo::default() }
    }

    /// A value as `pg_settings` has it: in the unit of the setting, which SHOW chooses.
    pub(crate) fn in_its_unit(&self, value: &str) -> String {
        match self.kind {
            Kind::Millis | Kind::MillisAbove0 | Kind::MillisOrOff => {
                parse_millis(value).map_or_else(|| value.to_owned(), |millis| millis.to_string())
            }
            Kind::Size(block, ..) => number::blocks(value, block).to_string(),
            _ => value.to_owned(),
        }
    }
}

/// The index of a setting by name, ignoring case.
pub(crate) fn find(name: &str) -> Option<usize> {
    SETTINGS.iter().position(|s| s.name.eq_ignore_ascii_case(name))
}
