//! The scalar functions.

use std::borrow::Cow;

use super::arithmetic::{bounded, check_range, division_by_zero, power};
use super::tree::Function;
use crate::error::{SqlError, SqlState};
use pgtypes::{Datum, letters, timestamp};

/// Limit of a function's result, in bytes, so that `repeat` cannot exhaust memory. PostgreSQL's is 1 GB.
const MAX_RESULT: usize = 64 << 20;

/// Calls a function. All but `concat` and `concat_ws` return NULL for a NULL argument.
pub(crate) fn call(function: Function, args: &[Cow<'_, Datum>]) -> Result<Datum, SqlError> {
    match function {
        Function::Concat => return concat("", args),
        Function::ConcatWs => {
            let Some((separator, rest)) = args.split_first() else { return Ok(Datum::Null) };
            let Datum::Text(separator) = &**separator else { return Ok(Datum::Null) };
            return concat(separator, rest);
        }
        _ => {}
    }
    if args.iter().any(|arg| arg.is_null()) {
        return Ok(Datum::Null);
    }
    let mut refs: [&Datum; 3] = [&Datum::Null; 3];
    for (place, arg) in refs.iter_mut().zip(args) {
        *place = arg;
    }
    match refs[0] {
        Datum::Bool(value) if function == Function::BoolText => Ok(text(if *value { "t" } else { "f" })),
        Datum::Int(micros) if let Function::RoundTimestamp(digits) = function => {
            Ok(Datum::Int(timestamp::round(*micros, digits)))
        }
        Datum::Int(_) => of_integer(function, refs[0], refs[1]),
        Datum::Float(value) => of_float(function, *value, refs[1]),
        Datum::Text(text) => of_text(function, text, refs[1], refs[2]),
        Datum::Bytes(bytes) => of_bytes(function, bytes, refs[1], refs[2]),
        _ => Err(mismatch()),
    }
}

fn mismatch() -> SqlError {
    SqlError::internal("a function got arguments of other types")
}

fn concat(separator: &str, args: &[Cow<'_, Datum>]) -> Result<Datum, SqlError> {
    let texts: Vec<&str> = args
        .iter()
        .filter_map(|arg| match &**arg {
            Datum::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    check_length(texts.iter().map(|text| text.len() + separator.len()).sum())?;
    Ok(text(texts.join(separator)))
}

fn text(value: impl Into<Box<str>>) -> Datum {
    Datum::Text(value.into())
}

fn check_length(bytes: usize) -> Result<(), SqlError> {
    if bytes <= MAX_RESULT {
        return Ok(());
    }
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"))
}

fn of_integer(function: Function, first: &Datum, second: &Datum) -> Result<Datum, SqlError> {
    match (function, first, second) {
        (Function::Abs(ty), Datum::Int(a), _) => bounded(a.checked_abs(), ty),
        (Function::Mod(_), Datum::Int(_), Datum::Int(0)) => Err(division_by_zero()),
        (Function::Mod(ty), Datum::Int(a), Datum::Int(b)) => bounded(Some(a.wrapping_rem(*b)), ty),
        (Function::Chr, Datum::Int(code), _) => chr(*code),
        _ => Err(mismatch()),
    }
}

fn chr(code: i64) -> Result<Datum, SqlError> {
    let refuse = |message: String| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    match u32::try_from(code) {
        Ok(0) => refuse("null character not permitted".to_owned()),
        Err(_) => refuse("character number must be positive".to_owned()),
        Ok(valid) => match char::from_u32(valid) {
            Some(c) => Ok(text(c.to_string())),
            None if valid > 0x10_ffff => refuse(format!("requested character too large for encoding: {code}")),
            None => refuse(format!("requested character not valid for encoding: {code}")),
        },
    }
}

fn of_float(function: Function, a: f64, second: &Datum) -> Result<Datum, SqlError> {
    Ok(Datum::Float(match function {
        Function::Abs(_) => a.abs(),
        Function::Sign if a == 0.0 || a.is_nan() => a,
        Function::Sign => a.signum(),
        Function::Round => a.round_ties_even(),
        Function::Floor => a.floor(),
        Function::Ceil => a.ceil(),
        Function::Trunc => a.trunc(),
        Function::Sqrt if a < 0.0 => {
            return Err(SqlError::new(SqlState::INVALID_POWER, "cannot take square root of a negative number"));
        }
        Function::Sqrt => a.sqrt(),
        Function::Exp => check_range(a.exp(), a.is_finite(), false)?,
        Function::Ln if a == 0.0 => {
            return Err(SqlError::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of zero"));
        }
        Function::Ln if a < 0.0 => {
            return Err(SqlError::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of a negative number"));
        }
        Function::Ln => a.ln(),
        Function::Power => match second {
            Datum::Float(b) => power(a, *b)?,
            _ => return Err(mismatch()),
        },
        _ => return Err(mismatch()),
    }))
}

fn of_text(function: Function, a: &str, second: &Datum, third: &Datum) -> Result<Datum, SqlError> {
    Ok(match (function, second, third) {
        (Function::Length, ..) => count(a.chars().count()),
        (Function::OctetLength, ..) => count(a.len()),
        (Function::Lower, ..) => text(letters::lower(a)),
        (Function::Upper, ..) => text(letters::upper(a)),
        (Function::Reverse, ..) => text(a.chars().rev().collect::<String>()),
        (Function::Ascii, ..) => Datum::Int(a.chars().next().map_or(0, |c| u32::from(c).into())),
        (Function::TrimBoth, set, _) => text(a.trim_matches(|c| in_set(set, c))),
        (Function::TrimLeft, set, _) => text(a.trim_start_matches(|c| in_set(set, c))),
        (Function::TrimRight, set, _) => text(a.trim_end_matches(|c| in_set(set, c))),
        (Function::Substring, Datum::Int(start), length) => {
            let (skip, take) = slice(*start, length)?;
            text(a.chars().skip(skip).take(take).collect::<String>())
        }
        (Function::ConcatText, Datum::Text(b), _) => {
            check_length(a.len() + b.len())?;
            text([a, b].concat())
        }
        (Function::Left, Datum::Int(n), _) => text(a.chars().take(kept_chars(*n, a)).collect::<String>()),
        (Function::Right, Datum::Int(n), _) => {
            let skip = a.chars().count() - kept_chars(*n, a);
            text(a.chars().skip(skip).collect::<String>())
        }
        (Function::Repeat, Datum::Int(n), _) => {
            let times = usize::try_from(*n).unwrap_or(0);
            check_length(a.len().saturating_mul(times))?;
            text(a.repeat(times))
        }
        (Function::Replace, Datum::Text(from), Datum::Text(to)) => replace(a, from, to)?,
        (Function::Strpos, Datum::Text(part), _) => match a.find(&**part) {
            Some(at) => count(a[..at].chars().count() + 1),
            None => Datum::Int(0),
        },
        (Function::StartsWith, Datum::Text(part), _) => Datum::Bool(a.starts_with(&**part)),
        (Function::PadLeft | Function::PadRight, Datum::Int(width), fill) => {
            pad(a, *width, fill, function == Function::PadLeft)?
        }
        _ => return Err(mismatch()),
    })
}

fn count(value: usize) -> Datum {
    Datum::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Whether to trim a character. Without a set, blanks are trimmed.
fn in_set(set: &Datum, c: char) -> bool {
    match set {
        Datum::Text(set) => set.contains(c),
        _ => c == ' ',
    }
}

/// How many characters `left` and `right` keep: `n`, or all but `-n`.
fn kept_chars(n: i64, text: &str) -> usize {
    let have = text.chars().count();
    let size = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    if n >= 0 { size.min(have) } else { have.saturating_sub(size) }
}

/// Converts a position from 1, possibly before the start, and a length into characters to skip and to take.
fn slice(start: i64, length: &Datum) -> Result<(usize, usize), SqlError> {
    let skip = usize::try_from(start - 1).unwrap_or(0);
    let Datum::Int(length) = length else { return Ok((skip, usize::MAX)) };
    if *length < 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let end = start.saturating_add(*length).max(1);
    Ok((skip, usize::try_from(end - start.max(1)).unwrap_or(0)))
}

fn replace(a: &str, from: &str, to: &str) -> Result<Datum, SqlError> {
    if from.is_empty() {
        return Ok(text(a));
    }
    let hits = a.matches(from).count();
    check_length(a.len().saturating_add(hits.saturating_mul(to.len())))?;
    Ok(text(a.replace(from, to)))
}

fn pad(a: &str, width: i64, fill: &Datum, left: bool) -> Result<Datum, SqlError> {
    let width = usize::try_from(width).unwrap_or(0);
    let fill = match fill {
        Datum::Text(fill) => fill,
        _ => " ",
    };
    let have = a.chars().count();
    if width <= have || fill.is_empty() {
        return Ok(text(a.chars().take(width).collect::<String>()));
    }
    check_length(width.saturating_mul(4))?;
    let padding: String = fill.chars().cycle().take(width - have).collect();
    Ok(text(if left { padding + a } else { [a, &padding].concat() }))
}

fn of_bytes(function: Function, a: &[u8], second: &Datum, third: &Datum) -> Result<Datum, SqlError> {
    match (function, second) {
        (Function::OctetLength, _) => Ok(count(a.len())),
        (Function::ConcatBytes, Datum::Bytes(b)) => {
            check_length(a.len() + b.len())?;
            Ok(Datum::Bytes([a, &b[..]].concat().into()))
        }
        (Function::SubstringBytes, Datum::Int(start)) => {
            let (skip, take) = slice(*start, third)?;
            let start = skip.min(a.len());
            let end = start.saturating_add(take).min(a.len());
            Ok(Datum::Bytes(a.get(start..end).unwrap_or_default().into()))
        }
        _ => Err(mismatch()),
    }
}
