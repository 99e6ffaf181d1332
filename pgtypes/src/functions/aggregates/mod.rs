//! Aggregates.
//!
//! Sums and variances of integers and `numeric` are exact; those of floats depend on the order of rows, as in
//! PostgreSQL.
//!
//! # Layers
//!
//! 1. `fold`: states of one value
//! 2. `collect`, `json`, `moments`, `numbers`: states that collect values; JSON; sums and squares of floats; exact ones
//! 3. `ordered`: over ordered rows

mod collect;
mod fold;
mod json;
mod moments;
mod numbers;
mod ordered;

use std::cmp::Ordering;

pub use collect::array_of_arrays;
use collect::{Arrays, Elements, Joined};
use fold::{
    Count, Extreme, Fold, Step, add_floats, add_intervals, add_ints, add_reals, bit_and, bit_or, bit_xor, bool_and,
    bool_or,
};
use json::{JsonElements, JsonMembers, JsonbElements, JsonbMembers};
use moments::{Moments, Regression};
use numbers::{IntervalAverage, Sum, Variance};
use ordered::{Mode, Percentile};

use super::aggregate::Aggregate;
use super::row::{AggregateFn, ProcRow, aggregate};
use crate::numeric::{Population, SumState};
use crate::sql_type::SqlType as T;

fn fold(step: Step) -> Box<dyn Aggregate> {
    Box::new(Fold::new(step))
}

fn moments(result: fn(&Moments) -> Option<f64>) -> Box<dyn Aggregate> {
    Box::new(Moments::new(result))
}

fn regression(result: fn(&Regression) -> Option<f64>) -> Box<dyn Aggregate> {
    Box::new(Regression::new(result))
}

fn count(_: &[T], _: T) -> Box<dyn Aggregate> {
    Box::<Count>::default()
}

fn min(types: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Extreme::new(types, Ordering::Less))
}

fn max(types: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Extreme::new(types, Ordering::Greater))
}

fn var_pop(_: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Variance::new(|state| state.variance(Population::Whole)))
}

fn var_samp(_: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Variance::new(|state| state.variance(Population::Sample)))
}

fn stddev_pop(_: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Variance::new(|state| state.stddev(Population::Whole)))
}

fn stddev_samp(_: &[T], _: T) -> Box<dyn Aggregate> {
    Box::new(Variance::new(|state| state.stddev(Population::Sample)))
}

/// An aggregate over ordered rows, with so many direct arguments.
const fn ordered(oid: u32, name: &'static str, args: &'static [T], result: T, direct: u8, run: AggregateFn) -> ProcRow {
    aggregate(oid, name, args, result, run).ordered_set(direct, run)
}

/// Counts, bits, collections, ordered rows.
pub(super) static ROWS: &[ProcRow] = &[
    aggregate(2147, "count", &[T::ANY], T::INT8, count),
    aggregate(2236, "bit_and", &[T::INT2], T::INT2, |_, _| fold(bit_and)),
    aggregate(2237, "bit_or", &[T::INT2], T::INT2, |_, _| fold(bit_or)),
    aggregate(2238, "bit_and", &[T::INT4], T::INT4, |_, _| fold(bit_and)),
    aggregate(2239, "bit_or", &[T::INT4], T::INT4, |_, _| fold(bit_or)),
    aggregate(2240, "bit_and", &[T::INT8], T::INT8, |_, _| fold(bit_and)),
    aggregate(2241, "bit_or", &[T::INT8], T::INT8, |_, _| fold(bit_or)),
    aggregate(2335, "array_agg", &[T::ANYNONARRAY], T::ANYARRAY, |_, result| Box::new(Elements::new(result))).on_null(),
    aggregate(2517, "bool_and", &[T::BOOL], T::BOOL, |_, _| fold(bool_and)),
    aggregate(2518, "bool_or", &[T::BOOL], T::BOOL, |_, _| fold(bool_or)),
    aggregate(2519, "every", &[T::BOOL], T::BOOL, |_, _| fold(bool_and)),
    aggregate(2803, "count", &[], T::INT8, count),
    aggregate(3538, "string_agg", &[T::TEXT, T::TEXT], T::TEXT, |_, _| Box::new(Joined::texts())).on_null(),
    aggregate(3545, "string_agg", &[T::BYTEA, T::BYTEA], T::BYTEA, |_, _| Box::new(Joined::bytes())).on_null(),
    ordered(3972, "percentile_disc", &[T::FLOAT8, T::ANYELEMENT], T::ANYELEMENT, 1, |_, result| {
        Box::new(Percentile::discrete(result))
    }),
    ordered(3974, "percentile_cont", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, 1, |_, result| {
        Box::new(Percentile::continuous(result))
    }),
    ordered(3976, "percentile_cont", &[T::FLOAT8, T::INTERVAL], T::INTERVAL, 1, |_, result| {
        Box::new(Percentile::continuous(result))
    }),
    ordered(3978, "percentile_disc", &[T::FLOAT8_ARRAY, T::ANYELEMENT], T::ANYARRAY, 1, |_, result| {
        Box::new(Percentile::discrete(result))
    }),
    ordered(3980, "percentile_cont", &[T::FLOAT8_ARRAY, T::FLOAT8], T::FLOAT8_ARRAY, 1, |_, result| {
        Box::new(Percentile::continuous(result))
    }),
    ordered(3982, "percentile_cont", &[T::FLOAT8_ARRAY, T::INTERVAL], T::INTERVAL_ARRAY, 1, |_, result| {
        Box::new(Percentile::continuous(result))
    }),
    ordered(3984, "mode", &[T::ANYELEMENT], T::ANYELEMENT, 0, |_, _| Box::<Mode>::default()),
    aggregate(4053, "array_agg", &[T::ANYARRAY], T::ANYARRAY, |_, _| Box::<Arrays>::default()).on_null(),
    aggregate(6164, "bit_xor", &[T::INT2], T::INT2, |_, _| fold(bit_xor)),
    aggregate(6165, "bit_xor", &[T::INT4], T::INT4, |_, _| fold(bit_xor)),
    aggregate(6166, "bit_xor", &[T::INT8], T::INT8, |_, _| fold(bit_xor)),
];

/// To `json` and `jsonb`.
pub(super) static JSON: &[ProcRow] = &[
    aggregate(3175, "json_agg", &[T::ANYELEMENT], T::JSON, |_, _| Box::<JsonElements>::default()).stable().on_null(),
    aggregate(3197, "json_object_agg", &[T::ANY, T::ANY], T::JSON, |_, _| Box::<JsonMembers>::default())
        .stable()
        .on_null(),
    aggregate(3267, "jsonb_agg", &[T::ANYELEMENT], T::JSONB, |_, _| Box::<JsonbElements>::default()).stable().on_null(),
    aggregate(3270, "jsonb_object_agg", &[T::ANY, T::ANY], T::JSONB, |_, _| Box::<JsonbMembers>::default()).on_null(),
];

/// `min` and `max`.
pub(super) static EXTREMES: &[ProcRow] = &[
    aggregate(2797, "max", &[T::TID], T::TID, max),
    aggregate(2798, "min", &[T::TID], T::TID, min),
    aggregate(4189, "max", &[T::PG_LSN], T::PG_LSN, max),
    aggregate(4190, "min", &[T::PG_LSN], T::PG_LSN, min),
    aggregate(2050, "max", &[T::ANYARRAY], T::ANYARRAY, max),
    aggregate(2051, "min", &[T::ANYARRAY], T::ANYARRAY, min),
    aggregate(2115, "max", &[T::INT8], T::INT8, max),
    aggregate(2116, "max", &[T::INT4], T::INT4, max),
    aggregate(2117, "max", &[T::INT2], T::INT2, max),
    aggregate(2118, "max", &[T::OID], T::OID, max),
    aggregate(2119, "max", &[T::FLOAT4], T::FLOAT4, max),
    aggregate(2120, "max", &[T::FLOAT8], T::FLOAT8, max),
    aggregate(2122, "max", &[T::DATE], T::DATE, max),
    aggregate(2123, "max", &[T::TIME], T::TIME, max),
    aggregate(2124, "max", &[T::TIMETZ], T::TIMETZ, max),
    aggregate(2126, "max", &[T::TIMESTAMP], T::TIMESTAMP, max),
    aggregate(2127, "max", &[T::TIMESTAMPTZ], T::TIMESTAMPTZ, max),
    aggregate(2128, "max", &[T::INTERVAL], T::INTERVAL, max),
    aggregate(2129, "max", &[T::TEXT], T::TEXT, max),
    aggregate(2130, "max", &[T::NUMERIC], T::NUMERIC, max),
    aggregate(2131, "min", &[T::INT8], T::INT8, min),
    aggregate(2132, "min", &[T::INT4], T::INT4, min),
    aggregate(2133, "min", &[T::INT2], T::INT2, min),
    aggregate(2134, "min", &[T::OID], T::OID, min),
    aggregate(2135, "min", &[T::FLOAT4], T::FLOAT4, min),
    aggregate(2136, "min", &[T::FLOAT8], T::FLOAT8, min),
    aggregate(2138, "min", &[T::DATE], T::DATE, min),
    aggregate(2139, "min", &[T::TIME], T::TIME, min),
    aggregate(2140, "min", &[T::TIMETZ], T::TIMETZ, min),
    aggregate(2142, "min", &[T::TIMESTAMP], T::TIMESTAMP, min),
    aggregate(2143, "min", &[T::TIMESTAMPTZ], T::TIMESTAMPTZ, min),
    aggregate(2144, "min", &[T::INTERVAL], T::INTERVAL, min),
    aggregate(2145, "min", &[T::TEXT], T::TEXT, min),
    aggregate(2146, "min", &[T::NUMERIC], T::NUMERIC, min),
    aggregate(2244, "max", &[T::BPCHAR], T::BPCHAR, max),
    aggregate(2245, "min", &[T::BPCHAR], T::BPCHAR, min),
    aggregate(3526, "max", &[T::ANYENUM], T::ANYENUM, max),
    aggregate(3527, "min", &[T::ANYENUM], T::ANYENUM, min),
    aggregate(5099, "max", &[T::XID8], T::XID8, max),
    aggregate(5100, "min", &[T::XID8], T::XID8, min),
];

/// Sums and averages.
pub(super) static SUMS: &[ProcRow] = &[
    aggregate(2100, "avg", &[T::INT8], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::avg))),
    aggregate(2101, "avg", &[T::INT4], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::avg))),
    aggregate(2102, "avg", &[T::INT2], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::avg))),
    aggregate(2103, "avg", &[T::NUMERIC], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::avg))),
    aggregate(2104, "avg", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::average)),
    aggregate(2105, "avg", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::average)),
    aggregate(2106, "avg", &[T::INTERVAL], T::INTERVAL, |_, _| Box::new(IntervalAverage::new())),
    aggregate(2107, "sum", &[T::INT8], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::sum))),
    aggregate(2108, "sum", &[T::INT4], T::INT8, |_, _| fold(add_ints)),
    aggregate(2109, "sum", &[T::INT2], T::INT8, |_, _| fold(add_ints)),
    aggregate(2110, "sum", &[T::FLOAT4], T::FLOAT4, |_, _| fold(add_reals)),
    aggregate(2111, "sum", &[T::FLOAT8], T::FLOAT8, |_, _| fold(add_floats)),
    aggregate(2113, "sum", &[T::INTERVAL], T::INTERVAL, |_, _| fold(add_intervals)),
    aggregate(2114, "sum", &[T::NUMERIC], T::NUMERIC, |_, _| Box::new(Sum::new(SumState::sum))),
];

/// Variances and standard deviations.
pub(super) static VARIANCES: &[ProcRow] = &[
    aggregate(2148, "variance", &[T::INT8], T::NUMERIC, var_samp),
    aggregate(2149, "variance", &[T::INT4], T::NUMERIC, var_samp),
    aggregate(2150, "variance", &[T::INT2], T::NUMERIC, var_samp),
    aggregate(2151, "variance", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::var_samp)),
    aggregate(2152, "variance", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::var_samp)),
    aggregate(2153, "variance", &[T::NUMERIC], T::NUMERIC, var_samp),
    aggregate(2154, "stddev", &[T::INT8], T::NUMERIC, stddev_samp),
    aggregate(2155, "stddev", &[T::INT4], T::NUMERIC, stddev_samp),
    aggregate(2156, "stddev", &[T::INT2], T::NUMERIC, stddev_samp),
    aggregate(2157, "stddev", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::stddev_samp)),
    aggregate(2158, "stddev", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::stddev_samp)),
    aggregate(2159, "stddev", &[T::NUMERIC], T::NUMERIC, stddev_samp),
    aggregate(2641, "var_samp", &[T::INT8], T::NUMERIC, var_samp),
    aggregate(2642, "var_samp", &[T::INT4], T::NUMERIC, var_samp),
    aggregate(2643, "var_samp", &[T::INT2], T::NUMERIC, var_samp),
    aggregate(2644, "var_samp", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::var_samp)),
    aggregate(2645, "var_samp", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::var_samp)),
    aggregate(2646, "var_samp", &[T::NUMERIC], T::NUMERIC, var_samp),
    aggregate(2712, "stddev_samp", &[T::INT8], T::NUMERIC, stddev_samp),
    aggregate(2713, "stddev_samp", &[T::INT4], T::NUMERIC, stddev_samp),
    aggregate(2714, "stddev_samp", &[T::INT2], T::NUMERIC, stddev_samp),
    aggregate(2715, "stddev_samp", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::stddev_samp)),
    aggregate(2716, "stddev_samp", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::stddev_samp)),
    aggregate(2717, "stddev_samp", &[T::NUMERIC], T::NUMERIC, stddev_samp),
    aggregate(2718, "var_pop", &[T::INT8], T::NUMERIC, var_pop),
    aggregate(2719, "var_pop", &[T::INT4], T::NUMERIC, var_pop),
    aggregate(2720, "var_pop", &[T::INT2], T::NUMERIC, var_pop),
    aggregate(2721, "var_pop", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::var_pop)),
    aggregate(2722, "var_pop", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::var_pop)),
    aggregate(2723, "var_pop", &[T::NUMERIC], T::NUMERIC, var_pop),
    aggregate(2724, "stddev_pop", &[T::INT8], T::NUMERIC, stddev_pop),
    aggregate(2725, "stddev_pop", &[T::INT4], T::NUMERIC, stddev_pop),
    aggregate(2726, "stddev_pop", &[T::INT2], T::NUMERIC, stddev_pop),
    aggregate(2727, "stddev_pop", &[T::FLOAT4], T::FLOAT8, |_, _| moments(Moments::stddev_pop)),
    aggregate(2728, "stddev_pop", &[T::FLOAT8], T::FLOAT8, |_, _| moments(Moments::stddev_pop)),
    aggregate(2729, "stddev_pop", &[T::NUMERIC], T::NUMERIC, stddev_pop),
];

/// Of two variables.
pub(super) static PAIRS: &[ProcRow] = &[
    aggregate(2818, "regr_count", &[T::FLOAT8, T::FLOAT8], T::INT8, count),
    aggregate(2819, "regr_sxx", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::sxx)),
    aggregate(2820, "regr_syy", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::syy)),
    aggregate(2821, "regr_sxy", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::sxy)),
    aggregate(2822, "regr_avgx", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::average_x)),
    aggregate(2823, "regr_avgy", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::average_y)),
    aggregate(2824, "regr_r2", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::r2)),
    aggregate(2825, "regr_slope", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::slope)),
    aggregate(2826, "regr_intercept", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::intercept)),
    aggregate(2827, "covar_pop", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::covar_pop)),
    aggregate(2828, "covar_samp", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::covar_samp)),
    aggregate(2829, "corr", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, |_, _| regression(Regression::corr)),
];
