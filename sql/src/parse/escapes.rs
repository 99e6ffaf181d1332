//! Escapes of Unicode in `E'...'` and `U&'...'` on which the parser's tokenizer fails: characters that are written as
//! two surrogates, and what is an error in PostgreSQL too.

use super::text::SourceText;
use super::unicode::{self, HIGH, LOW, Pair, character};
use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token};

const BAD_PAIR: &str = "invalid Unicode surrogate pair";

/// The text with each pair of surrogates written as one escape; `None` if there is no pair. All tokens stay where they
/// are: blanks behind the strings make up for what these lose. Errors are PostgreSQL's.
pub(super) fn without_pairs(text: &SourceText) -> Result<Option<String>, SqlError> {
    let source = text.as_str();
    let (mut out, mut copied) = (String::new(), 0);
    let (mut lexer, mut before) = (Lexer::new(source), [None, None]);
    while let Some(found) = lexer.next() {
        let literal = &source[found.start..found.end];
        let pairs = match &found.token {
            Token::Text(_) if literal.starts_with(['e', 'E']) => escaped_pairs(text, found.start)?,
            Token::Text(_) if literal.starts_with('\'') && is_unicode_prefix(&before, found.start) => {
                match lexer.clone().next().map(|next| next.token) {
                    // The backslash may not be the escape.
                    Some(Token::Word(word)) if word.eq_ignore_ascii_case("uescape") => Vec::new(),
                    _ => unicode::pairs(text, found.start, found.end)?,
                }
            }
            _ => Vec::new(),
        };
        let mut lost = 0;
        for Pair { start, end, escape } in pairs {
            let kept = &source[copied.max(found.start)..start];
            // Blanks do not make up for what another line loses.
            lost = if kept.contains('\n') { 0 } else { lost } + (end - start - escape.len());
            out.push_str(&source[copied..start]);
            out.push_str(&escape);
            copied = end;
        }
        if copied > found.start {
            let kept = &source[copied..found.end];
            out.push_str(kept);
            out.push_str(&" ".repeat(if kept.contains('\n') { 0 } else { lost }));
            copied = found.end;
        }
        before = [before[1].take(), Some(found)];
    }
    out.push_str(&source[copied..]);
    Ok((copied > 0).then_some(out))
}

/// Whether tokens are `U&` just before a byte.
fn is_unicode_prefix(before: &[Option<Spanned<'_>>; 2], at: usize) -> bool {
    match before {
        [
            Some(Spanned { token: Token::Word(word), end, .. }),
            Some(Spanned { token: Token::Symbol('&'), start, .. }),
        ] => word.eq_ignore_ascii_case("u") && end == start && start + 1 == at,
        _ => false,
    }
}

/// The pairs of an `E'...'` that begins at a byte.
fn escaped_pairs(text: &SourceText, start: usize) -> Result<Vec<Pair>, SqlError> {
    let source = text.as_str();
    let (mut pairs, mut high, mut at) = (Vec::new(), None, start + 2);
    loop {
        let rest = &source[at..];
        let Some(first) = rest.chars().next() else { return Ok(pairs) };
        let is_end = first == '\'' && !rest.starts_with("''");
        let escape = unicode_escape(text, at)?;
        match (high.take(), escape) {
            (Some((start, high)), Some((end, code))) if LOW.contains(&code) => {
                pairs.push(Pair { start, end, escape: format!("\\U{:08X}", character(high, code)) });
                at = end;
            }
            (Some(_), escape) => {
                let end = escape.map_or(at + first.len_utf8(), |(end, _)| end);
                return Err(syntax(text, BAD_PAIR, at, end));
            }
            (None, Some((end, code))) if HIGH.contains(&code) => {
                high = Some((at, code));
                at = end;
            }
            (None, Some((end, code))) if LOW.contains(&code) => return Err(syntax(text, BAD_PAIR, at, end)),
            (None, Some((end, code))) if code == 0 || char::from_u32(code).is_none() => {
                return Err(syntax(text, "invalid Unicode escape value", at, end));
            }
            (None, Some((end, _))) => at = end,
            (None, None) if is_end => return Ok(pairs),
            (None, None) => {
                let is_pair = first == '\\' || first == '\'';
                at += rest.chars().take(1 + usize::from(is_pair)).map(char::len_utf8).sum::<usize>();
            }
        }
    }
}

/// The end and the code of the `\uXXXX` or `\UXXXXXXXX` at a byte; `None` for anything else. 22025 without the digits.
fn unicode_escape(text: &SourceText, at: usize) -> Result<Option<(usize, u32)>, SqlError> {
    let rest = &text.as_str()[at..];
    let count = match rest.as_bytes() {
        [b'\\', b'u', ..] => 4,
        [b'\\', b'U', ..] => 8,
        _ => return Ok(None),
    };
    let digits = rest.get(2..2 + count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(code) => Ok(Some((at + 2 + count, code))),
        None => {
            let error = SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape");
            let hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.";
            Err(error.at(text.position_of_byte(at)).hint(hint))
        }
    }
}

fn syntax(text: &SourceText, what: &str, start: usize, end: usize) -> SqlError {
    let message = format!("{what} at or near \"{}\"", &text.as_str()[start..end]);
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position_of_byte(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(sql: &str) -> Option<String> {
        without_pairs(&SourceText::new(sql)).unwrap()
    }

    #[test]
    fn pairs_become_one_escape_and_nothing_moves() {
        assert_eq!(repaired(r"select E'\u0041', 'é\uD83D'"), None);
        assert_eq!(repaired(r"select E'é\uD83D\uDE00', 1").as_deref(), Some(r"select E'é\U0001F600'  , 1"));
        assert_eq!(repaired(r"e'\\\u00e4\uD83D\U0000DE00''' x").as_deref(), Some(r"e'\\\u00e4\U0001F600'''       x"));
        assert_eq!(repaired("E'\\uD83D\\uDE00\n' x").as_deref(), Some("E'\\U0001F600\n' x"));
        assert_eq!(repaired(r"U&'a\d83d\de00', 2").as_deref(), Some(r"U&'a\+01F600'  , 2"));
        assert_eq!(repaired(r"U&'\+00d83d\de00' x").as_deref(), Some(r"U&'\+01F600'      x"));
        assert_eq!(repaired(r"U&'\d83d\de00' uescape '!'"), None);
        assert_eq!(repaired(r"U & '\d83d\de00'"), None);
    }

    #[test]
    fn errors_are_those_of_postgresql() {
        for (sql, code, message, position) in [
            (r"select E'\u00'", SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape", 10),
            (r"'x', E'ab\U001zz'", SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape", 10),
            (r"E'\uD83D'", SqlState::SYNTAX_ERROR, r#"invalid Unicode surrogate pair at or near "'""#, 9),
            (r"E'\uD83Dab'", SqlState::SYNTAX_ERROR, r#"invalid Unicode surrogate pair at or near "a""#, 9),
            (r"E'é\uDE00'", SqlState::SYNTAX_ERROR, r#"invalid Unicode surrogate pair at or near "\uDE00""#, 4),
            (r"E'\u0000'", SqlState::SYNTAX_ERROR, r#"invalid Unicode escape value at or near "\u0000""#, 3),
            (r"U&'é\zz'", SqlState::SYNTAX_ERROR, "invalid Unicode escape", 5),
            (r"U&'\d83d'", SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair", 9),
        ] {
            let error = without_pairs(&SourceText::new(sql)).unwrap_err();
            assert_eq!((error.code, error.message.as_str(), error.position), (code, message, Some(position)), "{sql}");
        }
    }
}
