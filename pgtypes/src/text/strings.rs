//! Parts of strings, padding, trimming, replacement of characters, code points.

use std::collections::{HashMap, HashSet};

use super::ctype;
use super::limit::{check_alloc, check_growth, check_length};
use crate::error::ValueError;
use crate::letters;
use crate::sqlstate::SqlState;

/// The bytes of a few characters.
const FEW: usize = 16;

/// 22011 for a length below zero.
pub(crate) fn negative_length() -> ValueError {
    ValueError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

/// The byte offset of the character `count` from the start, or the length.
fn offset(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// The first `count` characters.
fn head(text: &str, count: usize) -> &str {
    text.get(..offset(text, count)).unwrap_or(text)
}

/// The text after the first `count` characters.
fn tail(text: &str, count: usize) -> &str {
    text.get(offset(text, count)..).unwrap_or("")
}

fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// `initcap`: the first character of each word in upper case, the others in lower case.
pub fn initcap(text: &str) -> String {
    let mut inside = false;
    let map = |c| {
        let mapped = if inside { letters::lower_char(c) } else { letters::upper_char(c) };
        inside = ctype::is_alnum(c);
        mapped
    };
    text.chars().map(map).collect()
}

/// `translate`: replaces each character of `from` by that at the same place in `to`, or removes it.
pub fn translate(text: &str, from: &str, to: &str) -> String {
    let mut map = HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let replacement = to.next();
        map.entry(c).or_insert(replacement);
    }
    text.chars().filter_map(|c| map.get(&c).copied().unwrap_or(Some(c))).collect()
}

/// `replace`: all occurrences of a part, from the start; none of the empty part. 54000 for a result that is too large.
pub fn replace(text: &str, part: &str, new: &str) -> Result<String, ValueError> {
    if part.is_empty() {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut push = |piece: &str| {
        check_growth(out.len(), piece.len())?;
        out.push_str(piece);
        Ok(())
    };
    for (at, _) in text.match_indices(part) {
        push(text.get(copied..at).unwrap_or(""))?;
        push(new)?;
        copied = at + part.len();
    }
    push(text.get(copied..).unwrap_or(""))?;
    Ok(out)
}

/// `split_part`: a field between delimiters, counted from the end if `field` is negative. 22023 for field 0.
pub fn split_part<'a>(text: &'a str, delimiter: &str, field: i32) -> Result<&'a str, ValueError> {
    if field == 0 {
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    let at = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    if delimiter.is_empty() {
        return Ok(if at == 0 { text } else { "" });
    }
    let part = if field > 0 {
        text.split(delimiter).nth(at)
    } else {
        // Delimiters that overlap are found from the start.
        let count = text.matches(delimiter).count() + 1;
        count.checked_sub(at + 1).and_then(|from_start| text.split(delimiter).nth(from_start))
    };
    Ok(part.unwrap_or(""))
}

/// `overlay`: replaces `length` characters from `start` on; by default as many as the new text has. 22011 for a start
/// below 1, 22003 for an end that is no `integer`.
pub fn overlay(text: &str, new: &str, start: i32, length: Option<i32>) -> Result<String, ValueError> {
    let length = length.unwrap_or_else(|| i32::try_from(new.chars().count()).unwrap_or(i32::MAX));
    if start <= 0 {
        return Err(negative_length());
    }
    let Some(end) = start.checked_add(length) else {
        return Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    };
    let (before, after) = (head(text, size(i64::from(start) - 1)), tail(text, size(i64::from(end) - 1)));
    check_alloc(before.len() + new.len() + after.len())?;
    Ok([before, new, after].concat())
}

/// `substr` from a position to the end.
pub fn substr(text: &str, start: i32) -> &str {
    tail(text, size(i64::from(start) - 1))
}

/// `substr` of `length` characters from a position that may precede the text. 22011 for a negative length.
pub fn substr_to(text: &str, start: i32, length: i32) -> Result<&str, ValueError> {
    if length < 0 {
        return Err(negative_length());
    }
    let first = (i64::from(start) - 1).max(0);
    let end = i64::from(start) - 1 + i64::from(length);
    Ok(head(tail(text, size(first)), size(end - first)))
}

/// `left`: the first `count` characters, or all but the last ones if it is negative.
pub fn left(text: &str, count: i32) -> &str {
    if count >= 0 {
        return head(text, size(count.into()));
    }
    head(text, text.chars().count().saturating_sub(size(count.unsigned_abs().into())))
}

/// `right`: the last `count` characters, or all but the first ones if it is negative.
pub fn right(text: &str, count: i32) -> &str {
    if count == i32::MIN {
        // PostgreSQL negates the count, which leaves this one as it is.
        return text;
    }
    let skipped = size(count.unsigned_abs().into());
    tail(text, if count < 0 { skipped } else { text.chars().count().saturating_sub(skipped) })
}

fn one_of(characters: &str) -> impl Fn(char) -> bool {
    // A search through a few characters costs less than a set of them.
    let set = (characters.len() > FEW).then(|| characters.chars().collect::<HashSet<char>>());
    move |c| set.as_ref().map_or_else(|| characters.contains(c), |set| set.contains(&c))
}

/// `btrim`: without the characters at both ends. By default PostgreSQL trims the space.
pub fn btrim<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_matches(one_of(characters))
}

/// `ltrim`: without the characters at the start.
pub fn ltrim<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_start_matches(one_of(characters))
}

/// `rtrim`: without the characters at the end.
pub fn rtrim<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_end_matches(one_of(characters))
}

/// The filling of a text to a length, and the part of the text that is kept.
fn padding<'a>(text: &'a str, length: i32, fill: &str) -> Result<(String, &'a str), ValueError> {
    let wanted = size(length.into());
    let count = text.chars().count();
    let wanted = if fill.is_empty() { wanted.min(count) } else { wanted };
    // PostgreSQL counts four bytes for each character.
    check_length(wanted.checked_mul(4))?;
    let missing = wanted.saturating_sub(count);
    Ok((fill.chars().cycle().take(missing).collect(), head(text, wanted)))
}

/// `lpad`: fills the text at its start to a length, or cuts its end. 54000 for a length that is too large.
pub fn lpad(text: &str, length: i32, fill: &str) -> Result<String, ValueError> {
    let (padding, kept) = padding(text, length, fill)?;
    Ok(padding + kept)
}

/// `rpad`: fills or cuts the text at its end. 54000 for a length that is too large.
pub fn rpad(text: &str, length: i32, fill: &str) -> Result<String, ValueError> {
    let (padding, kept) = padding(text, length, fill)?;
    Ok([kept, &padding].concat())
}

/// `repeat`. 54000 for a result that is too large.
pub fn repeat(text: &str, count: i32) -> Result<String, ValueError> {
    let count = size(count.into());
    check_length(text.len().checked_mul(count))?;
    Ok(text.repeat(count))
}

/// `reverse`
pub fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// `position` and `strpos`: the position of the first occurrence, 0 if there is none.
pub fn position(text: &str, part: &str) -> i32 {
    let before = text.find(part).and_then(|at| text.get(..at));
    before.map_or(0, |before| i32::try_from(before.chars().count() + 1).unwrap_or(i32::MAX))
}

/// `starts_with` and `^@`
pub fn starts_with(text: &str, prefix: &str) -> bool {
    text.starts_with(prefix)
}

/// `ascii`: the code point of the first character, 0 for the empty text.
pub fn ascii(text: &str) -> i32 {
    text.chars().next().and_then(|c| i32::try_from(u32::from(c)).ok()).unwrap_or(0)
}

/// `chr`: the character of a code point. 54000 for 0 and for what is no character, 22023 below 0.
pub fn chr(code: i32) -> Result<String, ValueError> {
    let refused = |message: String| Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    let Ok(code) = u32::try_from(code) else {
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "character number must be positive"));
    };
    match char::from_u32(code) {
        Some('\0') => refused("null character not permitted".to_owned()),
        Some(c) => Ok(c.to_string()),
        None if code > u32::from(char::MAX) => refused(format!("requested character too large for encoding: {code}")),
        None => refused(format!("requested character not valid for encoding: {code}")),
    }
}

/// `to_hex(integer)`
pub fn to_hex_i32(value: i32) -> String {
    format!("{value:x}")
}

/// `to_hex(bigint)`
pub fn to_hex_i64(value: i64) -> String {
    format!("{value:x}")
}
