//! Booleans in texts.

use crate::error::ValueError;
use crate::form::invalid;
use crate::letters::is_space;

/// Reads a boolean: `true`, `yes`, `on`, `1` and their opposites, or a prefix that is not ambiguous.
pub(crate) fn parse(text: &str) -> Result<bool, ValueError> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    let is_prefix = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(invalid("boolean", text))
    }
}
