//! The options of a regular expression: those of a function's `flags` argument, and those inside of the pattern.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The syntax of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Syntax {
    /// ARE, the default
    Advanced,
    /// ERE
    Extended,
    /// BRE
    Basic,
    /// A literal string
    Literal,
}

/// How a pattern is read and matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegexOptions {
    pub(super) syntax: Syntax,
    pub(super) ignore_case: bool,
    /// White space and comments are ignored.
    pub(super) expanded: bool,
    /// `.` and negated brackets do not match a newline.
    pub(super) newline_stops: bool,
    /// `^` and `$` match at lines.
    pub(super) newline_anchors: bool,
    /// Whether the function looks for all matches.
    pub global: bool,
}

impl Default for RegexOptions {
    fn default() -> RegexOptions {
        RegexOptions {
            syntax: Syntax::Advanced,
            ignore_case: false,
            expanded: false,
            newline_stops: false,
            newline_anchors: false,
            global: false,
        }
    }
}

impl RegexOptions {
    /// The options of `~` and `!~`, or of `~*` and `!~*`.
    pub fn operator(ignore_case: bool) -> RegexOptions {
        RegexOptions { ignore_case, ..RegexOptions::default() }
    }

    /// Reads the `flags` argument of a function. 22023 for an unknown letter.
    pub fn parse(flags: &str) -> Result<RegexOptions, ValueError> {
        let mut options = RegexOptions::default();
        for letter in flags.chars() {
            if letter == 'g' {
                options.global = true;
            } else if letter == 'e' {
                // PostgreSQL 15 takes this letter for `b`, except inside of a pattern.
                options.syntax = Syntax::Basic;
            } else if !options.set(letter) {
                let message = format!("invalid regular expression option: \"{letter}\"");
                return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(options)
    }

    /// Reads the `flags` argument of a function that looks for one match, such as `regexp_count`. 22023 for the letter
    /// `g` as well.
    pub fn parse_single(flags: &str, function: &str) -> Result<RegexOptions, ValueError> {
        let options = RegexOptions::parse(flags)?;
        if !options.global {
            return Ok(options);
        }
        let message = format!("{function}() does not support the \"global\" option");
        let error = ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        Err(match function {
            "regexp_match" => error.with_hint("Use the regexp_matches function instead."),
            _ => error,
        })
    }

    /// Reads the `flags` argument of `regexp_replace(text, pattern, replacement, flags)`. 22023 with a hint for a
    /// digit, which may be meant for another argument.
    pub fn parse_replace(flags: &str) -> Result<RegexOptions, ValueError> {
        let Some(digit) = flags.chars().next().filter(char::is_ascii_digit) else { return RegexOptions::parse(flags) };
        let message = format!("invalid regular expression option: \"{digit}\"");
        Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer \
             explicitly.",
        ))
    }

    /// Sets an option by its letter. `false` for an unknown one.
    pub(super) fn set(&mut self, letter: char) -> bool {
        match letter {
            'b' => self.syntax = Syntax::Basic,
            'c' => self.ignore_case = false,
            'e' => self.syntax = Syntax::Extended,
            'i' => self.ignore_case = true,
            'm' | 'n' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'q' => self.syntax = Syntax::Literal,
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            't' => self.expanded = false,
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}
