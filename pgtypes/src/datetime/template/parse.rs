//! Splits a template into patterns and text.

use super::patterns::{Pattern, find};
use crate::letters::is_space;

/// A part of a template.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Pattern {
        pattern: Pattern,
        /// `FM`: without blanks and zeros that fill
        fill: bool,
        /// `TM`: in the language of the session, which is English
        translated: bool,
        /// `th` is false, `TH` is true
        ordinal: Option<bool>,
    },
    /// White space
    Space(char),
    /// Punctuation
    Separator(char),
    /// Other characters, and all characters in quotes
    Text(char),
}

/// Whether a character separates fields.
pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// The parts of a template.
pub(super) fn nodes(template: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let (fill, translated, after) = prefix(rest);
        rest = after;
        if let Some(pattern) = find(rest) {
            rest = rest.get(pattern.name.len()..).unwrap_or("");
            let ordinal = if rest.starts_with("TH") { Some(true) } else { rest.starts_with("th").then_some(false) };
            if ordinal.is_some() || rest.starts_with("SP") {
                rest = rest.get(2..).unwrap_or("");
            }
            nodes.push(Node::Pattern { pattern, fill, translated, ordinal });
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quote(quoted, &mut nodes);
            continue;
        }
        // A backslash before a quote takes its meaning.
        if rest.starts_with("\\\"") {
            rest = rest.get(1..).unwrap_or("");
        }
        let mut chars = rest.chars();
        let Some(c) = chars.next() else { break };
        rest = chars.as_str();
        nodes.push(match c {
            _ if is_separator(c) => Node::Separator(c),
            _ if is_space(c) => Node::Space(c),
            _ => Node::Text(c),
        });
    }
    nodes
}

/// The modifier before a pattern: `FM` and `TM`.
fn prefix(text: &str) -> (bool, bool, &str) {
    let after = |name: &str| text.strip_prefix(name).or_else(|| text.strip_prefix(name.to_ascii_lowercase().as_str()));
    if let Some(rest) = after("FM") {
        (true, false, rest)
    } else if let Some(rest) = after("TM") {
        (false, true, rest)
    } else {
        (false, false, text)
    }
}

/// Takes text in quotes. Returns what follows the closing quote.
fn quote<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let mut chars = text.chars();
    while let Some(mut c) = chars.next() {
        if c == '"' {
            break;
        }
        if c == '\\' {
            c = match chars.next() {
                Some(next) => next,
                None => c,
            };
        }
        nodes.push(Node::Text(c));
    }
    chars.as_str()
}
