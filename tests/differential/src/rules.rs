//! The differences that are known: each names its line in `docs/compatibility.md`.

use crate::compare::{Difference, NOT_SUPPORTED};
use crate::wire::Answer;

/// A known difference.
pub struct Rule {
    /// Words of `docs/compatibility.md` that say it.
    pub documented: &'static str,
    /// Whether a difference is this one: the text of the statement, the difference, both answers.
    pub applies: fn(&str, &Difference, &[Answer; 2]) -> bool,
}

/// All known differences.
const RULES: &[Rule] = &[];

/// What Cortado refuses with 0A000: a part of the message, and the words of `docs/compatibility.md`.
const UNSUPPORTED: &[(&str, &str)] = &[];

/// The rule of a difference, by its words.
pub fn known(text: &str, difference: &Difference, answers: &[Answer; 2]) -> Option<&'static str> {
    RULES.iter().find(|rule| (rule.applies)(text, difference, answers)).map(|rule| rule.documented)
}

/// Whether Cortado refuses a statement as not supported that PostgreSQL knows.
pub fn is_unsupported(difference: &Difference) -> bool {
    difference.codes[1] == NOT_SUPPORTED && difference.codes[0] != NOT_SUPPORTED
}

/// Whether a refusal with 0A000 is documented.
pub fn is_listed(message: &str) -> bool {
    UNSUPPORTED.iter().any(|(part, _)| message.contains(part))
}

/// The words of all rules.
#[cfg(test)]
pub fn documented() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.documented).chain(UNSUPPORTED.iter().map(|(_, documented)| *documented))
}
