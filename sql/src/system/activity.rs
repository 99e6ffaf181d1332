//! The rows about the server and its sessions: databases, roles, settings, activity, prepared statements, time zones.
//!
//! `pg_stat_activity` and `pg_locks` are about the cluster: the executor asks the other nodes before the rows are
//! computed ([`super::env::ClusterSource`]).

use std::sync::Arc;

use super::env::{Rows, SystemEnv, array, int, maybe, oid, one_row, rows_of, text};
use super::objects::{DATABASE_OWNER, IndexView, all_roles, indexes, role_oid, roles};
use super::producer::Producer;
use super::tables::named_tables;
use crate::lock_name::{DATABASE_OID, LockName};
use crate::sessions::{SessionInfo, SessionState, SessionWait};
use crate::table::Table;
use kv::api::LockMode;
use pgtypes::datetime::{self, ZoneEntry};
use pgtypes::{Datum, Oid, SqlType};

/// What every role may do, as nothing is refused to anybody.
const ROLE: &[(&str, &str)] = &[("rolinherit", "t"), ("rolreplication", "f"), ("rolconnlimit", "-1")];
const HIDDEN_ROLE: &[(&str, &str)] =
    &[("rolinherit", "t"), ("rolreplication", "f"), ("rolconnlimit", "-1"), ("rolpassword", "********")];
const ROLE_COLUMNS: &[&str] =
    &["oid", "rolname", "rolsuper", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolbypassrls"];
const USER: &[(&str, &str)] = &[("usecreatedb", "t"), ("usesuper", "t"), ("userepl", "f"), ("usebypassrls", "t")];
const HIDDEN_USER: &[(&str, &str)] =
    &[("usecreatedb", "t"), ("usesuper", "t"), ("userepl", "f"), ("usebypassrls", "t"), ("passwd", "********")];

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_database",
        constants: &[
            ("datdba", "10"),
            ("encoding", "6"),
            ("datlocprovider", "c"),
            ("datistemplate", "f"),
            ("datallowconn", "t"),
            ("datconnlimit", "-1"),
            ("datfrozenxid", "0"),
            ("datminmxid", "0"),
            ("dattablespace", "1663"),
            ("datcollate", "C"),
            ("datctype", "C.UTF-8"),
        ],
        columns: &["oid", "datname"],
        rows: |env| {
            let databases = env.catalog().databases();
            rows_of(databases.map(|database| vec![int(database.id.0), text(&database.name)]).collect())
        },
    },
    Producer {
        relation: "pg_tablespace",
        constants: &[("oid", "1663"), ("spcname", "pg_default"), ("spcowner", "10")],
        columns: &[],
        rows: |_| one_row(Vec::new()),
    },
    Producer { relation: "pg_authid", constants: ROLE, columns: ROLE_COLUMNS, rows: role_rows },
    Producer { relation: "pg_roles", constants: HIDDEN_ROLE, columns: ROLE_COLUMNS, rows: role_rows },
    Producer { relation: "pg_shadow", constants: USER, columns: &["usesysid", "usename"], rows: user_rows },
    Producer { relation: "pg_user", constants: HIDDEN_USER, columns: &["usesysid", "usename"], rows: user_rows },
    Producer {
        relation: "pg_settings",
        constants: &[("pending_restart", "f")],
        columns: &[
            "name",
            "setting",
            "unit",
            "short_desc",
            "context",
            "vartype",
            "source",
            "min_val",
            "max_val",
            "enumvals",
            "boot_val",
            "reset_val",
            "category",
        ],
        rows: settings,
    },
    Producer {
        relation: "pg_stat_activity",
        constants: &[("backend_type", "client backend")],
        columns: &[
            "datid",
            "datname",
            "pid",
            "usesysid",
            "usename",
            "application_name",
            "client_addr",
            "client_port",
            "backend_start",
            "xact_start",
            "query_start",
            "state_change",
            "wait_event_type",
            "wait_event",
            "state",
            "query",
        ],
        rows: sessions,
    },
    Producer {
        relation: "pg_locks",
        constants: &[("fastpath", "f")],
        columns: &[
            "locktype",
            "database",
            "relation",
            "classid",
            "objid",
            "objsubid",
            "virtualtransaction",
            "pid",
            "mode",
            "granted",
            "waitstart",
        ],
        rows: locks,
    },
    Producer {
        relation: "pg_prepared_statements",
        constants: &[],
        columns: &["name", "statement", "prepare_time", "parameter_types", "from_sql"],
        rows: statements,
    },
    Producer {
        relation: "pg_cursors",
        constants: &[],
        columns: &["name", "statement", "is_holdable", "is_binary", "is_scrollable", "creation_time"],
        rows: cursors,
    },
    Producer {
        relation: "pg_timezone_names",
        constants: &[],
        columns: &["name", "abbrev", "utc_offset", "is_dst"],
        rows: |env| {
            let row = |zone: ZoneEntry| {
                let abbreviation = text(&zone.abbreviation);
                vec![text(&zone.name), abbreviation, Datum::Interval(zone.offset), Datum::Bool(zone.is_daylight)]
            };
            Box::new(datetime::zones(env.io.now).into_iter().map(row))
        },
    },
    Producer {
        relation: "pg_timezone_abbrevs",
        constants: &[],
        columns: &["abbrev", "utc_offset", "is_dst"],
        rows: |env| {
            let row =
                |zone: ZoneEntry| vec![text(&zone.name), Datum::Interval(zone.offset), Datum::Bool(zone.is_daylight)];
            Box::new(datetime::zone_abbreviations(env.io.now).into_iter().map(row))
        },
    },
    Producer { relation: "pg_stat_user_tables", constants: NEVER, columns: STATISTICS, rows: statistics },
    Producer { relation: "pg_stat_user_indexes", constants: &[], columns: INDEXES, rows: index_statistics },
];

/// Nothing is vacuumed or analyzed.
const NEVER: &[(&str, &str)] =
    &[("vacuum_count", "0"), ("autovacuum_count", "0"), ("analyze_count", "0"), ("autoanalyze_count", "0")];
/// No statistics are kept: all others are NULL.
const STATISTICS: &[&str] = &["relid", "schemaname", "relname"];
const INDEXES: &[&str] = &["relid", "indexrelid", "schemaname", "relname", "indexrelname"];

fn role_rows(env: &SystemEnv<'_>) -> Rows {
    let row = |(number, name): (Oid, &str)| {
        // Who can log in may do everything.
        let may = Datum::Bool(number != DATABASE_OWNER.0);
        vec![oid(number), text(name), may.clone(), may.clone(), may.clone(), may.clone(), may]
    };
    rows_of(all_roles(env.session.user()).into_iter().map(row).collect())
}

fn user_rows(env: &SystemEnv<'_>) -> Rows {
    rows_of(roles(env.session.user()).into_iter().map(|(number, name)| vec![oid(number), text(name)]).collect())
}

fn settings(env: &SystemEnv<'_>) -> Rows {
    let row = |setting: super::env::SettingInfo| {
        let words = match setting.words {
            [] => Datum::Null,
            words => array(SqlType::TEXT, words.iter().map(text).collect()),
        };
        let (least, greatest) =
            setting.range.map_or((Datum::Null, Datum::Null), |(least, greatest)| (text(least), text(greatest)));
        let unit = if setting.unit.is_empty() { Datum::Null } else { text(setting.unit) };
        vec![
            text(&setting.name),
            text(&setting.value),
            unit,
            text(setting.about),
            text(setting.context),
            text(setting.kind),
            text(setting.source),
            least,
            greatest,
            words,
            text(setting.default),
            text(setting.reset),
            text(setting.group),
        ]
    };
    Box::new(env.session.settings().into_iter().map(row))
}

fn sessions(env: &SystemEnv<'_>) -> Rows {
    let databases: Vec<(u32, String)> =
        env.catalog().databases().map(|database| (database.id.0, database.name.clone())).collect();
    let sessions = env.session.sessions();
    let row = move |at: usize| {
        let session = sessions.get(at)?;
        let database = databases.iter().find(|(_, name)| **name == *session.database);
        let time = |time: Option<i64>| time.map_or(Datum::Null, Datum::Int);
        let wait = wait_event(session).unzip();
        Some(vec![
            database.map_or(Datum::Null, |(id, _)| int(*id)),
            text(&session.database),
            int(session.pid),
            oid(role_oid(&session.user)),
            text(&session.user),
            text(&session.application),
            maybe(session.client.map(|address| address.ip().to_string())),
            session.client.map_or(Datum::Null, |address| int(address.port())),
            Datum::Int(session.started),
            time(session.transaction_start),
            time(session.query_start),
            Datum::Int(session.state_change),
            maybe(wait.0),
            maybe(wait.1),
            text(match session.state {
                SessionState::Active => "active",
                SessionState::Idle => "idle",
                SessionState::IdleInTransaction => "idle in transaction",
                SessionState::IdleInFailedTransaction => "idle in transaction (aborted)",
            }),
            text(&session.query),
        ])
    };
    Box::new((0..).map_while(row))
}

/// Type and name of what a session waits for.
fn wait_event(session: &SessionInfo) -> Option<(&'static str, &'static str)> {
    match (session.state, session.wait) {
        (SessionState::Active, None) => None,
        (SessionState::Active, Some(SessionWait::Row)) => Some(("Lock", "transactionid")),
        (SessionState::Active, Some(SessionWait::Advisory)) => Some(("Lock", "advisory")),
        (SessionState::Active, Some(SessionWait::Table)) => Some(("Lock", "relation")),
        (SessionState::Active, Some(SessionWait::Sleep)) => Some(("Timeout", "PgSleep")),
        _ => Some(("Client", "ClientRead")),
    }
}

/// The locks of rows are those of tuples. A row has no place in a table here: `page` and `tuple` are NULL.
fn locks(env: &SystemEnv<'_>) -> Rows {
    let (list, catalog, now) = (env.session.locks(), env.catalog().clone(), env.io.now.0);
    let row = move |at: usize| {
        let lock = list.locks.get(at)?;
        let pid = list.owners.get(&lock.owner);
        let advisory = LockName::of_key(&lock.key);
        let mut row = match advisory {
            Some(name) => {
                let (class, object, kind) = name.in_pg_locks();
                vec![text("advisory"), int(DATABASE_OID), Datum::Null, int(class), int(object), int(kind)]
            }
            None => {
                let table = catalog.table_of_key(&lock.key);
                let (database, relation) = table.map_or((Datum::Null, Datum::Null), |(database, table)| {
                    (database.map_or(Datum::Null, |id| int(id.0)), int(table.id.0))
                });
                vec![text("tuple"), database, relation, Datum::Null, Datum::Null, Datum::Null]
            }
        };
        row.extend([
            text(format!("{}/{}", pid.copied().unwrap_or(0), lock.owner.raw())),
            pid.map_or(Datum::Null, |pid| int(*pid)),
            text(lock_mode(lock.mode, advisory.is_some())),
            Datum::Bool(lock.wait.is_none()),
            lock.wait.as_ref().map_or(Datum::Null, |wait| {
                let micros = i64::try_from(wait.ms).unwrap_or(i64::MAX).saturating_mul(1_000);
                Datum::Int(now.saturating_sub(micros))
            }),
        ]);
        Some(row)
    };
    Box::new((0..).map_while(row))
}

/// The lock of a tuple or an advisory lock as PostgreSQL names its mode.
fn lock_mode(mode: LockMode, is_advisory: bool) -> &'static str {
    match mode {
        LockMode::Update if is_advisory => "ExclusiveLock",
        _ if is_advisory => "ShareLock",
        LockMode::KeyShare => "AccessShareLock",
        LockMode::Share => "RowShareLock",
        LockMode::NoKeyUpdate => "ExclusiveLock",
        LockMode::Update => "AccessExclusiveLock",
    }
}

fn statements(env: &SystemEnv<'_>) -> Rows {
    let row = |statement: super::env::StatementInfo| {
        let params = statement.parameter_types.iter().map(|ty| oid(ty.oid)).collect();
        vec![
            text(&statement.name),
            text(&statement.statement),
            Datum::Int(statement.prepared),
            array(SqlType::REGTYPE, params),
            Datum::Bool(statement.from_sql),
        ]
    };
    Box::new(env.session.statements().into_iter().map(row))
}

fn cursors(env: &SystemEnv<'_>) -> Rows {
    let row = |cursor: super::env::CursorInfo| {
        vec![
            text(&cursor.name),
            text(&cursor.statement),
            Datum::Bool(cursor.is_holdable),
            Datum::Bool(cursor.is_binary),
            Datum::Bool(cursor.is_scrollable),
            Datum::Int(cursor.created),
        ]
    };
    Box::new(env.session.cursors().into_iter().map(row))
}

fn statistics(env: &SystemEnv<'_>) -> Rows {
    let row = |(schema, table): (String, std::sync::Arc<Table>)| vec![int(table.id.0), text(schema), text(&table.name)];
    Box::new(named_tables(env).map(row))
}

fn index_statistics(env: &SystemEnv<'_>) -> Rows {
    let catalog = Arc::clone(env.catalog());
    let row = move |(schema, table): (String, Arc<Table>)| {
        let row = |index: &IndexView| {
            vec![int(table.id.0), oid(index.oid), text(&schema), text(&table.name), text(&index.name)]
        };
        indexes(&table, &catalog).iter().map(row).collect::<Vec<_>>()
    };
    Box::new(named_tables(env).flat_map(row))
}
