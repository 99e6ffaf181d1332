//! Reads intervals of ISO 8601: `P1Y2M3DT4H5M6S`, and the alternative form `P0001-02-03T04:05:06`.

use super::fault::Fault;
use super::parts::Parts;
use super::units::{HOUR, MINUTE, SECOND};

/// Reads a text in capital letters that starts with `P`.
pub(super) fn read(text: &str) -> Result<Parts, Fault> {
    let rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Fault::Format)?;
    let mut reader = Reader { rest, parts: Parts::default() };
    let mut in_date = true;
    let mut has_field = false;
    while !reader.rest.is_empty() {
        if reader.eat('T') {
            in_date = false;
            has_field = false;
            continue;
        }
        let step = if in_date { reader.date_field(has_field)? } else { reader.time_field(has_field)? };
        match step {
            Step::Field => has_field = true,
            Step::Time => {
                in_date = false;
                has_field = false;
            }
            Step::End => break,
        }
    }
    Ok(reader.parts)
}

/// What follows a field.
enum Step {
    Field,
    /// The part of the time
    Time,
    End,
}

struct Reader<'a> {
    rest: &'a str,
    parts: Parts,
}

impl Reader<'_> {
    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// A number as an integer and a fraction of the same sign, and the count of its leading digits.
    fn number(&mut self) -> Result<(i64, f64, usize), Fault> {
        let text = self.rest;
        if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            return Err(Fault::Format);
        }
        let length = float_length(text).ok_or(Fault::Format)?;
        let (number, rest) = text.split_at(length);
        let value: f64 = number.parse().map_err(|_| Fault::Format)?;
        if value.is_infinite() {
            return Err(Fault::Format);
        }
        if !(-1.0e15..=1.0e15).contains(&value) {
            return Err(Fault::Field);
        }
        self.rest = rest;
        let width = number.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count();
        Ok((value.trunc() as i64, value - value.trunc(), width))
    }

    fn date_field(&mut self, has_field: bool) -> Result<Step, Fault> {
        let (value, part, width) = self.number()?;
        match self.next() {
            Some('Y') => self.parts.add_years(value, part, 1)?,
            Some('M') => self.parts.add_months(value, part)?,
            Some('W') => self.parts.add_days(value, part, 7)?,
            Some('D') => self.parts.add_days(value, part, 1)?,
            after @ (None | Some('T')) if width == 8 && !has_field => {
                self.parts.add_years(value / 10_000, 0.0, 1)?;
                self.parts.add_months(value / 100 % 100, 0.0)?;
                self.parts.add_days(value % 100, part, 1)?;
                return Ok(if after.is_none() { Step::End } else { Step::Time });
            }
            after @ (None | Some('T' | '-')) if !has_field => return self.dashed_date(value, part, after),
            _ => return Err(Fault::Format),
        }
        Ok(Step::Field)
    }

    /// `years-months-days`, from after the first number and the character that follows.
    fn dashed_date(&mut self, years: i64, part: f64, after: Option<char>) -> Result<Step, Fault> {
        self.parts.add_years(years, part, 1)?;
        match after {
            None => return Ok(Step::End),
            Some('T') => return Ok(Step::Time),
            _ => {}
        }
        let (months, part, _) = self.number()?;
        self.parts.add_months(months, part)?;
        match self.next() {
            None => return Ok(Step::End),
            Some('T') => return Ok(Step::Time),
            Some('-') => {}
            Some(_) => return Err(Fault::Format),
        }
        let (days, part, _) = self.number()?;
        self.parts.add_days(days, part, 1)?;
        match self.next() {
            None => Ok(Step::End),
            Some('T') => Ok(Step::Time),
            Some(_) => Err(Fault::Format),
        }
    }

    fn time_field(&mut self, has_field: bool) -> Result<Step, Fault> {
        let (value, part, width) = self.number()?;
        match self.next() {
            Some('H') => self.parts.add_micros(value, part, HOUR)?,
            Some('M') => self.parts.add_micros(value, part, MINUTE)?,
            Some('S') => self.parts.add_micros(value, part, SECOND)?,
            None if width == 6 && !has_field => {
                self.parts.add_micros(value / 10_000, 0.0, HOUR)?;
                self.parts.add_micros(value / 100 % 100, 0.0, MINUTE)?;
                // PostgreSQL takes the fraction for one of a microsecond.
                self.parts.add_micros(value % 100, 0.0, SECOND)?;
                self.parts.add_fraction(part, 1)?;
                return Ok(Step::End);
            }
            after @ (None | Some(':')) if !has_field => {
                self.parts.add_micros(value, part, HOUR)?;
                if after.is_none() {
                    return Ok(Step::End);
                }
                let (minutes, part, _) = self.number()?;
                self.parts.add_micros(minutes, part, MINUTE)?;
                match self.next() {
                    None => return Ok(Step::End),
                    Some(':') => {}
                    Some(_) => return Err(Fault::Format),
                }
                let (seconds, part, _) = self.number()?;
                self.parts.add_micros(seconds, part, SECOND)?;
                return if self.rest.is_empty() { Ok(Step::End) } else { Err(Fault::Format) };
            }
            _ => return Err(Fault::Format),
        }
        Ok(Step::Field)
    }
}

/// The length of the decimal number that a text starts with: a sign, digits with a point, an exponent.
fn float_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut count = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        count += fraction;
        end += 1 + fraction;
    }
    if count == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(end)
}
