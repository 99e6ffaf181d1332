//! A pattern in the syntax of the `regex` crate, which finds the start of a match much faster than `program`.
//!
//! The crate prefers the first alternative and takes greedy parts one by one, while PostgreSQL takes the longest match.
//! The start of the leftmost match, and whether there is one, are the same. So only these are asked for.

use std::fmt::Write;

use super::ast::{Assert, Ast, Parsed};

/// The bytes that a compiled expression may have.
const SIZE_LIMIT: usize = 4 << 20;
/// The longest text of an expression, as sets are written with all of their ranges.
const TEXT_LIMIT: usize = 1 << 18;

/// Compiles the pattern for the crate. `None` if it cannot say the same: lookaround, back references, the ends of
/// words in PostgreSQL's sense, or too large.
pub(super) fn compile(parsed: &Parsed) -> Option<regex::Regex> {
    let mut text = String::new();
    write(&parsed.ast, parsed, &mut text)?;
    regex::RegexBuilder::new(&text).size_limit(SIZE_LIMIT).build().ok()
}

fn write(ast: &Ast, parsed: &Parsed, out: &mut String) -> Option<()> {
    if out.len() > TEXT_LIMIT {
        return None;
    }
    match ast {
        Ast::Empty => {}
        Ast::Set(set) => write_set(parsed.sets.get(*set)?.ranges(), out),
        Ast::Assert(Assert::TextStart) => out.push_str("\\A"),
        Ast::Assert(Assert::TextEnd) => out.push_str("\\z"),
        Ast::Assert(Assert::LineStart) => out.push_str("(?m:^)"),
        Ast::Assert(Assert::LineEnd) => out.push_str("(?m:$)"),
        Ast::Assert(_) | Ast::Look(_) | Ast::Reference(..) => return None,
        Ast::Capture(_, inner) => {
            out.push_str("(?:");
            write(inner, parsed, out)?;
            out.push(')');
        }
        Ast::Concat(items) => {
            for item in items {
                let grouped = matches!(item, Ast::Alternate(_) | Ast::Concat(_));
                out.push_str(if grouped { "(?:" } else { "" });
                write(item, parsed, out)?;
                out.push_str(if grouped { ")" } else { "" });
            }
        }
        Ast::Alternate(branches) => {
            for (at, branch) in branches.iter().enumerate() {
                out.push_str(if at == 0 { "(?:" } else { "|(?:" });
                write(branch, parsed, out)?;
                out.push(')');
            }
        }
        Ast::Repeat { atom, min, max, .. } => {
            out.push_str("(?:");
            write(atom, parsed, out)?;
            // Writing to a String cannot fail.
            let _ = match max {
                Some(max) => write!(out, "){{{min},{max}}}"),
                None => write!(out, "){{{min},}}"),
            };
        }
    }
    Some(())
}

fn write_set(ranges: &[(u32, u32)], out: &mut String) {
    out.push('[');
    let before = out.len();
    for (start, end) in ranges {
        // Surrogates are no characters: a range goes around them.
        for (low, high) in [(*start, (*end).min(0xd7ff)), ((*start).max(0xe000), (*end).min(0x10_ffff))] {
            if low <= high {
                let _ = write!(out, "\\x{{{low:x}}}-\\x{{{high:x}}}");
            }
        }
    }
    if out.len() == before {
        // No character at all.
        out.push_str("^\\x{0}-\\x{10ffff}");
    }
    out.push(']');
}
