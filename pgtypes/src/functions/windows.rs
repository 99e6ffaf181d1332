//! The functions that only windows have. The executor computes them: they look at other rows of the partition.

use super::row::{ProcRow, WindowFn, window};
use crate::sql_type::SqlType as T;

/// Functions that are called with OVER only.
pub(super) static ROWS: &[ProcRow] = &[
    window(3100, "row_number", &[], T::INT8, WindowFn::RowNumber).on_null(),
    window(3101, "rank", &[], T::INT8, WindowFn::Rank).on_null(),
    window(3102, "dense_rank", &[], T::INT8, WindowFn::DenseRank).on_null(),
    window(3103, "percent_rank", &[], T::FLOAT8, WindowFn::PercentRank).on_null(),
    window(3104, "cume_dist", &[], T::FLOAT8, WindowFn::CumeDist).on_null(),
    window(3105, "ntile", &[T::INT4], T::INT4, WindowFn::Ntile),
    window(3106, "lag", &[T::ANYELEMENT], T::ANYELEMENT, WindowFn::Lag),
    window(3107, "lag", &[T::ANYELEMENT, T::INT4], T::ANYELEMENT, WindowFn::Lag),
    window(3108, "lag", &[T::ANYCOMPATIBLE, T::INT4, T::ANYCOMPATIBLE], T::ANYCOMPATIBLE, WindowFn::Lag),
    window(3109, "lead", &[T::ANYELEMENT], T::ANYELEMENT, WindowFn::Lead),
    window(3110, "lead", &[T::ANYELEMENT, T::INT4], T::ANYELEMENT, WindowFn::Lead),
    window(3111, "lead", &[T::ANYCOMPATIBLE, T::INT4, T::ANYCOMPATIBLE], T::ANYCOMPATIBLE, WindowFn::Lead),
    window(3112, "first_value", &[T::ANYELEMENT], T::ANYELEMENT, WindowFn::FirstValue),
    window(3113, "last_value", &[T::ANYELEMENT], T::ANYELEMENT, WindowFn::LastValue),
    window(3114, "nth_value", &[T::ANYELEMENT, T::INT4], T::ANYELEMENT, WindowFn::NthValue),
];
