//! The precision of `float(p)`, which PostgreSQL's grammar checks: before it looks at what a statement means, and in a
//! transaction that has failed, too.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::SourceText;
use crate::error::{SqlError, SqlState};

/// Bits of the longest float, plus one.
const BITS_END: u64 = 54;

/// The error of the first `float(p)` whose precision is out of range: 22023 at the number. `tokens` have no whitespace.
pub(super) fn bad_float(text: &SourceText, tokens: &[TokenWithSpan]) -> Option<SqlError> {
    tokens.windows(3).enumerate().find_map(|(at, window)| {
        let [name, open, number] = window else { return None };
        let (Token::Word(name), Token::LParen, Token::Number(digits, _)) = (&name.token, &open.token, &number.token)
        else {
            return None;
        };
        let is_qualified = at.checked_sub(1).is_some_and(|before| tokens[before].token == Token::Period);
        if name.keyword != Keyword::FLOAT || name.quote_style.is_some() || is_qualified {
            return None;
        }
        let error = precision_error(digits.parse().ok()?)?;
        Some(error.at(text.position(number.span.start)))
    })
}

/// 22023 for a precision that no float has, in bits.
pub(crate) fn precision_error(bits: u64) -> Option<SqlError> {
    let message = match bits {
        0 => "precision for type float must be at least 1 bit",
        1..BITS_END => return None,
        _ => "precision for type float must be less than 54 bits",
    };
    Some(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}
