//! Texts of numbers: `to_char`, `to_number`, `to_hex`. `to_char` and `to_number` depend on the locale in PostgreSQL, so
//! they are stable.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::float::narrow;
use crate::functions::row::{ProcRow, scalar};
use crate::numeric::format::{to_char, to_char_f32, to_char_f64, to_char_i32, to_char_i64, to_number};
use crate::sql_type::SqlType as T;

pub(super) static ROWS: &[ProcRow] = &[
    scalar(1772, "to_char", &[T::NUMERIC, T::TEXT], T::TEXT, |args| text(to_char(args.numeric(0)?, args.text(1)?)))
        .stable(),
    scalar(1773, "to_char", &[T::INT4, T::TEXT], T::TEXT, |args| text(to_char_i32(args.i32(0)?, args.text(1)?)))
        .stable(),
    scalar(1774, "to_char", &[T::INT8, T::TEXT], T::TEXT, |args| text(to_char_i64(args.int(0)?, args.text(1)?)))
        .stable(),
    scalar(1775, "to_char", &[T::FLOAT4, T::TEXT], T::TEXT, |args| {
        text(to_char_f32(narrow(args.float(0)?), args.text(1)?))
    })
    .stable(),
    scalar(1776, "to_char", &[T::FLOAT8, T::TEXT], T::TEXT, |args| text(to_char_f64(args.float(0)?, args.text(1)?)))
        .stable(),
    scalar(1777, "to_number", &[T::TEXT, T::TEXT], T::NUMERIC, |args| {
        Ok(to_number(args.text(0)?, args.text(1)?)?.map_or(Datum::Null, Datum::Numeric))
    })
    .stable(),
    // The digits are those of the bits.
    scalar(2089, "to_hex", &[T::INT4], T::TEXT, |args| Ok(Datum::text(format!("{:x}", args.i32(0)?)))),
    scalar(2090, "to_hex", &[T::INT8], T::TEXT, |args| Ok(Datum::text(format!("{:x}", args.int(0)?)))),
];

fn text(shown: Result<String, ValueError>) -> Result<Datum, ValueError> {
    shown.map(Datum::text)
}
