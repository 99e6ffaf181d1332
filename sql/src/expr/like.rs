//! LIKE and ILIKE: `%` matches any run of characters, `_` one character. An escape character makes the next one
//! literal.

use crate::error::{SqlError, SqlState};
use pgtypes::letters;

/// The escape character of an ESCAPE clause. The empty string means none.
pub(crate) fn escape_character(text: &str) -> Result<Option<char>, SqlError> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (escape, None) => Ok(escape),
        _ => Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character.")),
    }
}

/// An element of a pattern.
enum Element {
    Literal(char),
    AnyOne,
    AnyRun,
}

/// Takes the next element of a pattern.
fn next(pattern: &mut std::str::Chars<'_>, escape: Option<char>) -> Result<Option<Element>, SqlError> {
    let Some(c) = pattern.next() else { return Ok(None) };
    if Some(c) == escape {
        return match pattern.next() {
            Some(c) => Ok(Some(Element::Literal(c))),
            None => {
                Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character"))
            }
        };
    }
    Ok(Some(match c {
        '%' => Element::AnyRun,
        '_' => Element::AnyOne,
        c => Element::Literal(c),
    }))
}

/// Whether a text matches a pattern; `fold` ignores case. At worst proportional to the product of the lengths: a
/// mismatch retries only the last `%`, one character further.
pub(crate) fn matches(text: &str, pattern: &str, escape: Option<char>, fold: bool) -> Result<bool, SqlError> {
    if fold {
        return matches(&letters::lower(text), &letters::lower(pattern), escape, false);
    }
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut after = pattern.clone();
        match next(&mut after, escape)? {
            Some(Element::AnyRun) => {
                retry = Some((text.clone(), after.clone()));
                pattern = after;
                continue;
            }
            None if text.as_str().is_empty() => return Ok(true),
            Some(Element::AnyOne) if text.next().is_some() => {
                pattern = after;
                continue;
            }
            Some(Element::Literal(wanted)) if text.clone().next() == Some(wanted) => {
                text.next();
                pattern = after;
                continue;
            }
            _ => {}
        }
        // On a mismatch the last `%` takes one more character.
        let Some((from, rest)) = &mut retry else { return Ok(false) };
        if from.next().is_none() {
            return Ok(false);
        }
        text = from.clone();
        pattern = rest.clone();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::matches;

    /// The definition, without optimisation.
    fn model(text: &[char], pattern: &[char]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            (['%', rest @ ..], _) => (0..=text.len()).any(|skip| model(&text[skip..], rest)),
            (['_', rest @ ..], [_, after @ ..]) => model(after, rest),
            ([c, rest @ ..], [d, after @ ..]) if c == d => model(after, rest),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(text in "[abä]{0,8}", pattern in "[abä%_]{0,6}") {
            let (t, p): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
            prop_assert_eq!(matches(&text, &pattern, Some('\\'), false).unwrap(), model(&t, &p));
        }
    }

    #[test]
    fn escapes() {
        assert!(matches("a%", "a\\%", Some('\\'), false).unwrap());
        assert!(!matches("ab", "a\\%", Some('\\'), false).unwrap());
        assert!(matches("a\\", "a\\", None, false).unwrap());
        assert!(matches("a", "a\\", Some('\\'), false).is_err());
        assert!(matches("ÄB", "äb", Some('\\'), true).unwrap());
    }
}
