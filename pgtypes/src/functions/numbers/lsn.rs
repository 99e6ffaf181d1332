//! Arithmetic of `pg_lsn`, the positions in PostgreSQL's log.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::compare::lsn;
use crate::functions::row::{ProcRow, scalar};
use crate::numeric::{Class, Numeric};
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(super) static ROWS: &[ProcRow] = &[
    scalar(3237, "pg_lsn_mi", &[T::PG_LSN, T::PG_LSN], T::NUMERIC, |args| {
        let distance = i128::from(lsn(args.text(0)?)?) - i128::from(lsn(args.text(1)?)?);
        Ok(Datum::Numeric(Numeric::from(distance)))
    }),
    scalar(5022, "pg_lsn_pli", &[T::PG_LSN, T::NUMERIC], T::PG_LSN, |args| {
        moved(args.text(0)?, args.numeric(1)?, Numeric::add, "add NaN to")
    }),
    scalar(5023, "numeric_pl_pg_lsn", &[T::NUMERIC, T::PG_LSN], T::PG_LSN, |args: &Args<'_>| {
        moved(args.text(1)?, args.numeric(0)?, Numeric::add, "add NaN to")
    }),
    scalar(5024, "pg_lsn_mii", &[T::PG_LSN, T::NUMERIC], T::PG_LSN, |args| {
        moved(args.text(0)?, args.numeric(1)?, Numeric::sub, "subtract NaN from")
    }),
];

type Move = fn(&Numeric, &Numeric) -> Result<Numeric, ValueError>;

fn moved(position: &str, distance: &Numeric, by: Move, doing: &str) -> Result<Datum, ValueError> {
    let unsupported = |what: &str| ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot {what} pg_lsn"));
    if distance.is_nan() {
        return Err(unsupported(doing));
    }
    let position = by(&Numeric::from(i128::from(lsn(position)?)), distance)?;
    match position.class() {
        Class::Finite => {}
        Class::NaN => return Err(unsupported("convert NaN to")),
        Class::PosInfinity | Class::NegInfinity => return Err(unsupported("convert infinity to")),
    }
    let rounded = position.round(0)?.to_text();
    let position: u64 =
        rounded.parse().map_err(|_| ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range"))?;
    Ok(Datum::text(format!("{:X}/{:X}", position >> 32, position & u64::from(u32::MAX))))
}
