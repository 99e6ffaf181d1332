//! `generate_series` of numbers. The rows are computed as they are read.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, SetRows, set};
use crate::integer::int_range;
use crate::numeric::Numeric;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(super) static ROWS: &[ProcRow] = &[
    set(1066, "generate_series", &[T::INT4, T::INT4, T::INT4], T::INT4, of_integers),
    set(1067, "generate_series", &[T::INT4, T::INT4], T::INT4, of_integers),
    set(1068, "generate_series", &[T::INT8, T::INT8, T::INT8], T::INT8, of_integers),
    set(1069, "generate_series", &[T::INT8, T::INT8], T::INT8, of_integers),
    set(3259, "generate_series", &[T::NUMERIC, T::NUMERIC, T::NUMERIC], T::NUMERIC, of_decimals),
    set(3260, "generate_series", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, of_decimals),
];

fn invalid(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn zero_step() -> ValueError {
    invalid("step size cannot equal zero".to_owned())
}

/// The end of the type ends the series too.
fn of_integers(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let (start, stop) = (args.int(0)?, args.int(1)?);
    let step = if args.len() > 2 { args.int(2)? } else { 1 };
    if step == 0 {
        return Err(zero_step());
    }
    let (low, high) = int_range(args.result());
    let within = move |value: &i64| if step > 0 { *value <= stop } else { *value >= stop };
    let next = move |value: &i64| value.checked_add(step).filter(|next| (low..=high).contains(next) && within(next));
    let values = std::iter::successors(Some(start).filter(within), next);
    Ok(Box::new(values.map(|value| Ok(vec![Datum::Int(value)]))))
}

fn of_decimals(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let finite = |at: usize, name: &str| {
        let value = args.numeric(at)?;
        match value.is_finite() {
            true => Ok(value.clone()),
            false => {
                let what = if value.is_nan() { "NaN" } else { "infinity" };
                Err(invalid(format!("{name} cannot be {what}")))
            }
        }
    };
    let (start, stop) = (finite(0, "start value")?, finite(1, "stop value")?);
    let step = if args.len() > 2 { finite(2, "step size")? } else { Numeric::ONE };
    if step.is_zero() {
        return Err(zero_step());
    }
    let ascending = step.signum() == Some(1);
    let mut next = Some(Ok(start));
    Ok(Box::new(std::iter::from_fn(move || {
        let value = match next.take()? {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        if if ascending { value > stop } else { value < stop } {
            return None;
        }
        next = Some(value.add(&step));
        Some(Ok(vec![Datum::Numeric(value)]))
    })))
}
