//! Functions of the session: settings, names, advisory locks. The front end computes them.

use super::row::{ProcRow, scalar, session};
use crate::datum::Datum;
use crate::sql_type::SqlType as T;

pub(super) static ROWS: &[ProcRow] = &[
    session(89, "version", &[], T::TEXT),
    session(745, "current_user", &[], T::NAME),
    session(746, "session_user", &[], T::NAME),
    session(861, "current_database", &[], T::NAME),
    session(1402, "current_schema", &[], T::NAME),
    session(2026, "pg_backend_pid", &[], T::INT4),
    session(2171, "pg_cancel_backend", &[T::INT4], T::BOOL).volatile(),
    session(2096, "pg_terminate_backend", &[T::INT4, T::INT8], T::BOOL)
        .volatile()
        .named(&["pid", "timeout"])
        .defaults(&[Some("0")]),
    session(2561, "pg_blocking_pids", &[T::INT4], T::INT4_ARRAY).volatile(),
    session(2077, "current_setting", &[T::TEXT], T::TEXT),
    session(2078, "set_config", &[T::TEXT, T::TEXT, T::BOOL], T::TEXT).volatile().on_null(),
    session(2880, "pg_advisory_lock", &[T::INT8], T::VOID).volatile(),
    session(2881, "pg_advisory_lock_shared", &[T::INT8], T::VOID).volatile(),
    session(2882, "pg_try_advisory_lock", &[T::INT8], T::BOOL).volatile(),
    session(2883, "pg_try_advisory_lock_shared", &[T::INT8], T::BOOL).volatile(),
    session(2884, "pg_advisory_unlock", &[T::INT8], T::BOOL).volatile(),
    session(2885, "pg_advisory_unlock_shared", &[T::INT8], T::BOOL).volatile(),
    session(2886, "pg_advisory_lock", &[T::INT4, T::INT4], T::VOID).volatile(),
    session(2887, "pg_advisory_lock_shared", &[T::INT4, T::INT4], T::VOID).volatile(),
    session(2888, "pg_try_advisory_lock", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(2889, "pg_try_advisory_lock_shared", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(2890, "pg_advisory_unlock", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(2891, "pg_advisory_unlock_shared", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(2892, "pg_advisory_unlock_all", &[], T::VOID).volatile(),
    session(3089, "pg_advisory_xact_lock", &[T::INT8], T::VOID).volatile(),
    session(3090, "pg_advisory_xact_lock_shared", &[T::INT8], T::VOID).volatile(),
    session(3091, "pg_try_advisory_xact_lock", &[T::INT8], T::BOOL).volatile(),
    session(3092, "pg_try_advisory_xact_lock_shared", &[T::INT8], T::BOOL).volatile(),
    session(3093, "pg_advisory_xact_lock", &[T::INT4, T::INT4], T::VOID).volatile(),
    session(3094, "pg_advisory_xact_lock_shared", &[T::INT4, T::INT4], T::VOID).volatile(),
    session(3095, "pg_try_advisory_xact_lock", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(3096, "pg_try_advisory_xact_lock_shared", &[T::INT4, T::INT4], T::BOOL).volatile(),
    session(3294, "current_setting", &[T::TEXT, T::BOOL], T::TEXT),
    scalar(1619, "pg_typeof", &[T::ANY], T::REGTYPE, |args| Ok(Datum::Int(args.ty(0).oid.0.into()))).stable().on_null(),
];
