//! `U&'...'` and `U&"..."` with escapes, and their UESCAPE, which the parser's tokenizer does not know.

use std::ops::{Range, RangeInclusive};

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use super::text::{SourceText, word};
use crate::error::{SqlError, SqlState};

/// The escape without UESCAPE.
const BACKSLASH: char = '\\';
/// The length of `U&` and a quote.
const PREFIX: usize = 3;
const NO_STRING: &str = "UESCAPE must be followed by a simple string literal";
/// Code points that come in pairs.
pub(super) const HIGH: RangeInclusive<u32> = 0xD800..=0xDBFF;
pub(super) const LOW: RangeInclusive<u32> = 0xDC00..=0xDFFF;

/// Decodes a `U&'...'` anew if UESCAPE follows, which becomes white space.
pub(super) fn read_string(
    text: &SourceText,
    token: &mut TokenWithSpan,
    behind: &mut [TokenWithSpan],
) -> Result<(), SqlError> {
    if let Some(escape) = take_escape(text, behind)? {
        token.token = Token::UnicodeStringLiteral(decoded(text, token.span, escape)?);
    }
    Ok(())
}

/// Reads a quoted word behind `U&`, which the tokenizer takes for an operation. Returns how many tokens stay before it;
/// `None` if it is no such name.
pub(super) fn read_name(
    text: &SourceText,
    before: &[TokenWithSpan],
    token: &mut TokenWithSpan,
    behind: &mut [TokenWithSpan],
) -> Result<Option<usize>, SqlError> {
    let [.., prefix, ampersand] = before else { return Ok(None) };
    let span = Span { start: prefix.span.start, end: token.span.end };
    let touches = (prefix.span.end, ampersand.span.end) == (ampersand.span.start, token.span.start);
    let is_prefix = word(&prefix.token).is_some_and(|word| word.eq_ignore_ascii_case("u"));
    if ampersand.token != Token::Ampersand || !touches || !is_prefix {
        return Ok(None);
    }
    let name = decoded(text, span, take_escape(text, behind)?.unwrap_or(BACKSLASH))?;
    if name.is_empty() {
        let message = format!("zero-length delimited identifier at or near \"{}\"", text.source(span));
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(span.start)));
    }
    *token = TokenWithSpan { token: Token::make_word(&name, Some('"')), span };
    Ok(Some(before.len() - 2))
}

/// The character of UESCAPE, if tokens begin with that. It becomes white space.
fn take_escape(text: &SourceText, behind: &mut [TokenWithSpan]) -> Result<Option<char>, SqlError> {
    let mut solid = behind.iter_mut().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let Some(keyword) = solid.next() else { return Ok(None) };
    if !matches!(&keyword.token, Token::Word(word) if word.keyword == Keyword::UESCAPE) {
        return Ok(None);
    }
    let refused = |what: &str, found: &TokenWithSpan| {
        let message = format!("{what} at or near \"{}\"", text.source(found.span));
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(found.span.start)))
    };
    let Some(string) = solid.next() else {
        let end = text.position_of_byte(text.as_str().len());
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{NO_STRING} at end of input")).at(end));
    };
    let (Token::SingleQuotedString(value) | Token::EscapedStringLiteral(value)) = &string.token else {
        return refused(NO_STRING, &*string);
    };
    let is_allowed = |c: &char| c.is_ascii() && !c.is_ascii_hexdigit() && !"+'\" \t\n\r\u{c}".contains(*c);
    let mut chars = value.chars();
    let (Some(escape), None) = (chars.next().filter(is_allowed), chars.next()) else {
        return refused("invalid Unicode escape character", &*string);
    };
    keyword.token = Token::Whitespace(Whitespace::Space);
    string.token = Token::Whitespace(Whitespace::Space);
    Ok(Some(escape))
}

/// A pair of surrogates, by its bytes, and the escape that is written instead, which is shorter.
pub(super) struct Pair {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) escape: String,
}

/// The character of two surrogates.
pub(super) fn character(high: u32, low: u32) -> u32 {
    0x1_0000 + ((high - HIGH.start()) << 10) + (low - LOW.start())
}

/// The pairs of surrogates of a `U&'...'` whose escape is the backslash. `start`: the byte of its quote; `end`: the
/// byte behind it.
pub(super) fn pairs(text: &SourceText, start: usize, end: usize) -> Result<Vec<Pair>, SqlError> {
    let source = text.as_str();
    decoded_bytes(text, start + 1 - PREFIX..end, BACKSLASH)?;
    let (mut pairs, mut high, mut at) = (Vec::new(), None, start + 1);
    // What is not well-formed was refused.
    while let Some(found) = source[at..end].find(BACKSLASH) {
        let escape = at + found;
        let rest = &source[escape + 1..end];
        let digits = if rest.starts_with('+') { 1..7 } else { 0..4 };
        at = escape + 1 + if rest.starts_with(BACKSLASH) { 1 } else { digits.end };
        let code = rest.get(digits).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
        match high.take() {
            Some((start, high)) => {
                pairs.push(Pair { start, end: at, escape: format!("\\+{:06X}", character(high, code)) });
            }
            None if HIGH.contains(&code) => high = Some((escape, code)),
            None => {}
        }
    }
    Ok(pairs)
}

/// The text of a token that begins with `U&` and a quote.
fn decoded(text: &SourceText, span: Span, escape: char) -> Result<String, SqlError> {
    match (text.offset(span.start), text.offset(span.end)) {
        (Some(start), Some(end)) => decoded_bytes(text, start..end, escape),
        _ => Err(SqlError::internal("a token has no source")),
    }
}

fn decoded_bytes(text: &SourceText, bytes: Range<usize>, escape: char) -> Result<String, SqlError> {
    let start = bytes.start + PREFIX;
    let source = text.as_str().get(bytes).unwrap_or_default();
    let Some((quote, body)) = source.get(PREFIX - 1..PREFIX).zip(source.get(PREFIX..source.len().saturating_sub(1)))
    else {
        return Err(SqlError::internal("a token has no source"));
    };
    let error =
        |message: &str, at: usize| SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position_of_byte(start + at));
    let lone = |at: usize| error("invalid Unicode surrogate pair", at);
    let (mut out, mut high, mut at) = (String::with_capacity(body.len()), None, 0);
    while let Some(first) = body[at..].chars().next() {
        let rest = &body[at + first.len_utf8()..];
        let is_doubled = rest.starts_with(first) && (first == escape || quote.starts_with(first));
        if first != escape || is_doubled {
            if high.is_some() {
                return Err(lone(at));
            }
            out.push(first);
            at += first.len_utf8() * (1 + usize::from(is_doubled));
            continue;
        }
        let digits = if rest.starts_with('+') { 1..7 } else { 0..4 };
        let length = 1 + digits.end;
        let digits = rest.get(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            let hint = "Unicode escapes must be \\XXXX or \\+XXXXXX.";
            return Err(error("invalid Unicode escape", at).hint(hint));
        };
        match high.take() {
            Some(high) if LOW.contains(&code) => {
                out.extend(char::from_u32(character(high, code)));
            }
            Some(_) => return Err(lone(at)),
            None if HIGH.contains(&code) => high = Some(code),
            None if LOW.contains(&code) => return Err(lone(at)),
            None => match char::from_u32(code).filter(|c| *c != '\0') {
                Some(found) => out.push(found),
                None => return Err(error("invalid Unicode escape value", at)),
            },
        }
        at += length;
    }
    match high {
        Some(_) => Err(lone(body.len())),
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, escape: char) -> Result<String, (String, Option<u32>)> {
        use sqlparser::tokenizer::Location;
        let text = SourceText::new(source);
        let end = Location { line: 1, column: source.chars().count() as u64 + 1 };
        let span = Span { start: Location { line: 1, column: 1 }, end };
        decoded(&text, span, escape).map_err(|error| (error.message, error.position))
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(of("U&'d!0061t!+000061'", '!'), Ok("data".into()));
        assert_eq!(of("u&\"a\"\"!!\\0061 ''\"", '!'), Ok("a\"!\\0061 ''".into()));
        assert_eq!(of("U&'ä''!d83d!de00'", '!'), Ok("ä'😀".into()));
        assert_eq!(of("U&''", '\\'), Ok(String::new()));
    }

    #[test]
    fn errors_have_positions() {
        for (source, message, position) in [
            ("U&'d!006'", "invalid Unicode escape", 5),
            ("U&'ä!zz'", "invalid Unicode escape", 5),
            ("U&'d!d83dx'", "invalid Unicode surrogate pair", 10),
            ("U&'d!d83d'", "invalid Unicode surrogate pair", 10),
            ("U&'d!de00'", "invalid Unicode surrogate pair", 5),
            ("U&'d!0000'", "invalid Unicode escape value", 5),
            ("U&'d!+110000'", "invalid Unicode escape value", 5),
        ] {
            assert_eq!(of(source, '!'), Err((message.to_owned(), Some(position))), "{source}");
        }
    }
}
