//! Functions of arrays.
//!
//! Arrays of a type without an operator `=`, as `json[]`, have no functions that compare elements: 42883.

use std::fmt::Write;

use super::args::Args;
use super::compare::check_equality;
use super::row::{ProcRow, SetRows, scalar, set};
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, too_many_dimensions};
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(super) static ROWS: &[ProcRow] = &[
    scalar(378, "array_append", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE], T::ANYCOMPATIBLEARRAY, append).on_null(),
    scalar(379, "array_prepend", &[T::ANYCOMPATIBLE, T::ANYCOMPATIBLEARRAY], T::ANYCOMPATIBLEARRAY, prepend).on_null(),
    scalar(383, "array_cat", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLEARRAY], T::ANYCOMPATIBLEARRAY, concat).on_null(),
    scalar(747, "array_dims", &[T::ANYARRAY], T::TEXT, dims),
    scalar(748, "array_ndims", &[T::ANYARRAY], T::INT4, ndims),
    scalar(1193, "array_fill", &[T::ANYELEMENT, T::INT4_ARRAY], T::ANYARRAY, fill).on_null(),
    scalar(1286, "array_fill", &[T::ANYELEMENT, T::INT4_ARRAY, T::INT4_ARRAY], T::ANYARRAY, fill).on_null(),
    scalar(2091, "array_lower", &[T::ANYARRAY, T::INT4], T::INT4, |args| of_dimension(args, |it| it.lower.into())),
    scalar(2092, "array_upper", &[T::ANYARRAY, T::INT4], T::INT4, |args| of_dimension(args, Dimension::upper)),
    scalar(2176, "array_length", &[T::ANYARRAY, T::INT4], T::INT4, |args| of_dimension(args, |it| it.length.into())),
    scalar(2747, "arrayoverlap", &[T::ANYARRAY, T::ANYARRAY], T::BOOL, |args| {
        sets(args, |a, b| a.overlaps(b)) //
    }),
    scalar(2748, "arraycontains", &[T::ANYARRAY, T::ANYARRAY], T::BOOL, |args| {
        sets(args, |a, b| a.contains(b)) //
    }),
    scalar(2749, "arraycontained", &[T::ANYARRAY, T::ANYARRAY], T::BOOL, |args| {
        sets(args, |a, b| b.contains(a)) //
    }),
    scalar(3167, "array_remove", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE], T::ANYCOMPATIBLEARRAY, remove).on_null(),
    scalar(
        3168,
        "array_replace",
        &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE, T::ANYCOMPATIBLE],
        T::ANYCOMPATIBLEARRAY,
        replace,
    )
    .on_null(),
    scalar(3179, "cardinality", &[T::ANYARRAY], T::INT4, cardinality),
    scalar(3277, "array_position", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE], T::INT4, position).on_null(),
    scalar(3278, "array_position", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE, T::INT4], T::INT4, position).on_null(),
    scalar(3279, "array_positions", &[T::ANYCOMPATIBLEARRAY, T::ANYCOMPATIBLE], T::INT4_ARRAY, positions).on_null(),
    scalar(6172, "trim_array", &[T::ANYARRAY, T::INT4], T::ANYARRAY, trim),
    set(1191, "generate_subscripts", &[T::ANYARRAY, T::INT4, T::BOOL], T::INT4, subscripts),
    set(1192, "generate_subscripts", &[T::ANYARRAY, T::INT4], T::INT4, subscripts),
    set(2331, "unnest", &[T::ANYARRAY], T::ANYELEMENT, unnest),
];

fn datum(array: Array) -> Datum {
    Datum::Array(Box::new(array))
}

fn element(args: &Args<'_>, at: usize) -> Oid {
    args.ty(at).element().unwrap_or(T::UNKNOWN).oid
}

/// An array, which is empty in place of NULL.
fn array_or_empty(args: &Args<'_>, at: usize) -> Result<Array, ValueError> {
    if args.is_null(at) { Ok(Array::empty(element(args, at))) } else { args.array(at).cloned() }
}

fn append(args: &Args<'_>) -> Result<Datum, ValueError> {
    array_or_empty(args, 0)?.append(args.get(1).clone()).map(datum)
}

fn prepend(args: &Args<'_>) -> Result<Datum, ValueError> {
    array_or_empty(args, 1)?.prepend(args.get(0).clone()).map(datum)
}

fn concat(args: &Args<'_>) -> Result<Datum, ValueError> {
    match (args.is_null(0), args.is_null(1)) {
        (true, _) => Ok(args.get(1).clone()),
        (_, true) => Ok(args.get(0).clone()),
        _ => args.array(0)?.clone().concat(args.array(1)?.clone()).map(datum),
    }
}

fn check_element_equality(args: &Args<'_>) -> Result<(), ValueError> {
    args.ty(0).element().map_or(Ok(()), check_equality)
}

/// The dimensions of the first argument. An empty vector of the catalog has one.
fn shape<'a>(args: &Args<'a>) -> Result<&'a [Dimension], ValueError> {
    match args.array(0)?.dimensions() {
        [] if matches!(args.ty(0).base(), T::INT2VECTOR | T::OIDVECTOR) => Ok(&[Dimension { length: 0, lower: 0 }]),
        dimensions => Ok(dimensions),
    }
}

fn dims(args: &Args<'_>) -> Result<Datum, ValueError> {
    let mut text = String::new();
    for dimension in shape(args)? {
        // Writing to a String cannot fail.
        let _ = write!(text, "[{}:{}]", dimension.lower, dimension.upper());
    }
    Ok(if text.is_empty() { Datum::Null } else { Datum::text(text) })
}

fn int(value: usize) -> Datum {
    i64::try_from(value).map_or(Datum::Null, Datum::Int)
}

fn ndims(args: &Args<'_>) -> Result<Datum, ValueError> {
    let count = shape(args)?.len();
    Ok(if count == 0 { Datum::Null } else { int(count) })
}

fn cardinality(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(int(args.array(0)?.elements().len()))
}

/// The dimension that the second argument numbers, from 1.
fn dimension(args: &Args<'_>) -> Result<Option<Dimension>, ValueError> {
    let at = usize::try_from(args.int(1)?).ok().and_then(|at| at.checked_sub(1));
    Ok(shape(args)?.get(at.unwrap_or(usize::MAX)).copied())
}

fn of_dimension(args: &Args<'_>, field: fn(Dimension) -> i64) -> Result<Datum, ValueError> {
    Ok(dimension(args)?.map_or(Datum::Null, |dimension| Datum::Int(field(dimension))))
}

fn sets(args: &Args<'_>, test: fn(&Array, &Array) -> bool) -> Result<Datum, ValueError> {
    check_element_equality(args)?;
    Ok(Datum::Bool(test(args.array(0)?, args.array(1)?)))
}

fn remove(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) {
        return Ok(Datum::Null);
    }
    let array = args.array(0)?;
    if array.dimensions().len() == 1 {
        check_element_equality(args)?;
    }
    array.remove(args.get(1)).map(datum)
}

fn replace(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) {
        return Ok(Datum::Null);
    }
    let array = args.array(0)?;
    if !array.elements().is_empty() {
        check_element_equality(args)?;
    }
    Ok(datum(array.clone().replace(args.get(1), args.get(2))))
}

/// Whether a search has an array where something can be found. The types are checked where PostgreSQL does so.
fn is_searchable(args: &Args<'_>) -> Result<bool, ValueError> {
    if args.is_null(0) {
        return Ok(false);
    }
    let array = args.array(0)?;
    if array.dimensions().len() > 1 {
        return array.position(args.get(1), None).map(|_| false);
    }
    let is_searchable = match args.get(1) {
        Datum::Null => array.elements().iter().any(Datum::is_null),
        _ => !array.elements().is_empty(),
    };
    Ok(is_searchable)
}

fn position(args: &Args<'_>) -> Result<Datum, ValueError> {
    if !is_searchable(args)? {
        return Ok(Datum::Null);
    }
    let start = match args.len() {
        3 if args.is_null(2) => {
            let message = "initial position must not be null";
            return Err(ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        3 => Some(args.int(2)?),
        _ => None,
    };
    check_element_equality(args)?;
    Ok(args.array(0)?.position(args.get(1), start)?.map_or(Datum::Null, Datum::Int))
}

fn positions(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) {
        return Ok(Datum::Null);
    }
    if !is_searchable(args)? {
        return Ok(datum(Array::empty(T::INT4.oid)));
    }
    check_element_equality(args)?;
    let positions = args.array(0)?.positions(args.get(1))?.map(Datum::Int).collect();
    Ok(datum(Array::of(T::INT4.oid, positions)))
}

fn trim(args: &Args<'_>) -> Result<Datum, ValueError> {
    let array = args.array(0)?;
    let first = array.dimensions().first().copied();
    let (length, upper) = first.map_or((0, 0), |first| (i64::from(first.length), first.upper()));
    let count = args.int(1)?;
    if !(0..=length).contains(&count) {
        let message = format!("number of elements to trim must be between 0 and {length}");
        return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    }
    Ok(datum(array.slice(&[(None, Some(upper - count))])))
}

fn wrong_subscripts(detail: &'static str) -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").with_detail(detail)
}

/// The numbers of an array that has one for each dimension.
fn numbers(args: &Args<'_>, at: usize) -> Result<Vec<i32>, ValueError> {
    let array = args.array(at)?;
    if array.dimensions().len() > 1 {
        return Err(wrong_subscripts("Dimension array must be one dimensional."));
    }
    let number = |value: &Datum| match value {
        Datum::Int(number) => i32::try_from(*number).ok(),
        _ => None,
    };
    array.elements().iter().map(number).collect::<Option<_>>().ok_or_else(|| {
        let message = "dimension values cannot be null";
        ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
    })
}

/// The bytes of a value in an array of PostgreSQL.
pub(super) fn element_size(value: &Datum, ty: T) -> usize {
    match (value, usize::try_from(ty.row().len)) {
        (Datum::Null, _) => 0,
        (_, Ok(length)) => length,
        (value, Err(_)) => value.memory() - size_of::<Datum>() + 4,
    }
}

fn fill(args: &Args<'_>) -> Result<Datum, ValueError> {
    if (1..args.len()).any(|at| args.is_null(at)) {
        let message = "dimension array or low bound array cannot be null";
        return Err(ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let lengths = numbers(args, 1)?;
    if lengths.len() > MAX_DIMENSIONS {
        return Err(too_many_dimensions(lengths.len()));
    }
    let lowers = if args.len() > 2 { numbers(args, 2)? } else { vec![1; lengths.len()] };
    if lowers.len() != lengths.len() {
        return Err(wrong_subscripts("Low bound array has different size than dimensions array."));
    }
    let dimensions = lengths.into_iter().zip(lowers).map(|(length, lower)| Dimension { length, lower }).collect();
    let value = args.get(0);
    let size = element_size(value, args.ty(0));
    Array::fill(args.ty(0).oid, value, size, dimensions).map(datum)
}

fn subscripts(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let Some(dimension) = dimension(args)? else { return Ok(Box::new(std::iter::empty())) };
    let all = i64::from(dimension.lower)..=dimension.upper();
    let row = |at| Ok(vec![Datum::Int(at)]);
    if args.len() > 2 && args.bool(2)? { Ok(Box::new(all.rev().map(row))) } else { Ok(Box::new(all.map(row))) }
}

/// `information_schema._pg_expandarray`: the elements with their numbers.
pub(super) static EXPAND: ProcRow =
    set(13208, "_pg_expandarray", &[T::ANYARRAY], T::RECORD, expand).columns(&[("x", T::ANYELEMENT), ("n", T::INT4)]);

fn expand(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let elements = args.array(0)?.elements().to_vec();
    Ok(Box::new((1..).zip(elements).map(|(number, element)| Ok(vec![element, Datum::Int(number)]))))
}

fn unnest(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let elements = args.array(0)?.elements().to_vec();
    Ok(Box::new(elements.into_iter().map(|element| Ok(vec![element]))))
}
