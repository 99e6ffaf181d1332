//! `format`: text with `%s`, `%I` and `%L`, positions and widths.

use super::limit::check_growth;
use super::quote::{quote_ident, quote_literal};
use crate::error::ValueError;
use crate::integer::parse_int;
use crate::sqlstate::SqlState;

/// A specifier after its `%`, without the conversion.
#[derive(Default)]
struct Specifier {
    /// The argument, from 1. By default the next one.
    argument: Option<usize>,
    /// The argument with the width, from 1; 0 is the next one.
    width_argument: Option<usize>,
    width: i32,
    left: bool,
}

/// A scanner over the format.
struct Scanner<'a> {
    rest: std::str::Chars<'a>,
    current: char,
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn out_of_range() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
}

const SINGLE: &str = "For a single \"%\" use \"%%\".";

impl Scanner<'_> {
    fn advance(&mut self) -> Result<(), ValueError> {
        let unterminated = || refused("unterminated format() type specifier").with_hint(SINGLE);
        self.current = self.rest.next().ok_or_else(unterminated)?;
        Ok(())
    }

    /// A number of at least one digit.
    fn number(&mut self) -> Result<Option<i32>, ValueError> {
        let mut value: Option<i32> = None;
        while let Some(digit) = self.current.to_digit(10).and_then(|digit| i32::try_from(digit).ok()) {
            let next = value.unwrap_or(0).checked_mul(10).and_then(|value| value.checked_add(digit));
            value = Some(next.ok_or_else(out_of_range)?);
            self.advance()?;
        }
        Ok(value)
    }

    fn position(&mut self, number: i32) -> Result<usize, ValueError> {
        if number == 0 {
            return Err(refused("format specifies argument 0, but arguments are numbered from 1"));
        }
        self.advance()?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn specifier(&mut self) -> Result<Specifier, ValueError> {
        let mut specifier = Specifier::default();
        if let Some(number) = self.number()? {
            if self.current != '$' {
                specifier.width = number;
                return Ok(specifier);
            }
            specifier.argument = Some(self.position(number)?);
        }
        while self.current == '-' {
            specifier.left = true;
            self.advance()?;
        }
        if self.current == '*' {
            self.advance()?;
            specifier.width_argument = Some(match self.number()? {
                None => 0,
                Some(_) if self.current != '$' => {
                    return Err(refused("width argument position must be ended by \"$\""));
                }
                Some(number) => self.position(number)?,
            });
        } else {
            specifier.width = self.number()?.unwrap_or(0);
        }
        Ok(specifier)
    }
}

/// The arguments, with the one that was used last.
struct Arguments<'a> {
    values: &'a [Option<&'a str>],
    used: usize,
}

impl<'a> Arguments<'a> {
    /// The argument at a position from 1, or the one after the last.
    fn take(&mut self, position: Option<usize>) -> Result<Option<&'a str>, ValueError> {
        let position = position.unwrap_or(self.used + 1);
        let value = position.checked_sub(1).and_then(|at| self.values.get(at));
        self.used = position;
        value.copied().ok_or_else(|| refused("too few arguments for format()"))
    }
}

/// Formats arguments in their text form. 22023 for a bad specifier or a missing argument, 22004 for an identifier that
/// is NULL, 22P02 for a width that is no integer, 22003 for one that is too large, 54000 for too large a result.
pub fn format(format: &str, arguments: &[Option<&str>]) -> Result<String, ValueError> {
    let mut scanner = Scanner { rest: format.chars(), current: ' ' };
    let mut arguments = Arguments { values: arguments, used: 0 };
    let mut out = String::with_capacity(format.len());
    while let Some(c) = scanner.rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        scanner.advance()?;
        if scanner.current == '%' {
            out.push('%');
            continue;
        }
        let mut specifier = scanner.specifier()?;
        let conversion = scanner.current;
        if !matches!(conversion, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{conversion}\"");
            return Err(refused(message).with_hint(SINGLE));
        }
        if let Some(position) = specifier.width_argument {
            let value = arguments.take((position > 0).then_some(position))?;
            specifier.width = value.map_or(Ok(0), integer)?;
        }
        if specifier.width < 0 {
            specifier.left = true;
            specifier.width = specifier.width.checked_neg().ok_or_else(out_of_range)?;
        }
        let value = convert(arguments.take(specifier.argument)?, conversion)?;
        append(&value, &specifier, &mut out)?;
    }
    Ok(out)
}

fn integer(text: &str) -> Result<i32, ValueError> {
    let value = parse_int(text, (i32::MIN.into(), i32::MAX.into()), "integer")?;
    i32::try_from(value).map_err(|_| out_of_range())
}

fn convert(value: Option<&str>, conversion: char) -> Result<String, ValueError> {
    match (conversion, value) {
        ('I', Some(value)) => Ok(quote_ident(value)),
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            Err(ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
        ('L', Some(value)) => Ok(quote_literal(value)),
        ('L', None) => Ok("NULL".to_owned()),
        (_, value) => Ok(value.unwrap_or("").to_owned()),
    }
}

fn append(value: &str, specifier: &Specifier, out: &mut String) -> Result<(), ValueError> {
    let width = usize::try_from(specifier.width).unwrap_or(0);
    let spaces = width.saturating_sub(value.chars().count());
    if spaces > 0 {
        check_growth(out.len(), spaces)?;
    }
    check_growth(out.len(), spaces + value.len())?;
    if specifier.left {
        out.push_str(value);
    }
    out.extend(std::iter::repeat_n(' ', spaces));
    if !specifier.left {
        out.push_str(value);
    }
    Ok(())
}
