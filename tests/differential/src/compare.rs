//! Compares the answers of two servers to one statement.

use std::fmt;

use crate::wire::{Answer, Row};

/// What differs, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// The connection broke, no answer came, or the server says that it is its own fault.
    Fault,
    /// Both have rows, and not the same.
    Rows,
    /// Cortado has an answer where PostgreSQL has an error.
    Accepted,
    /// Cortado has an error where PostgreSQL has an answer.
    Refused,
    /// The types of columns or parameters, or the names of columns.
    Types,
    /// Both have errors, and not of the same SQLSTATE.
    SqlState,
    /// The tags of commands.
    Tag,
    /// Both have the same error with another message.
    Message,
    /// The same message at another position.
    Position,
}

/// A difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What differs.
    pub class: Class,
    /// The SQLSTATEs of PostgreSQL and of Cortado, `00000` for none.
    pub codes: [String; 2],
    /// Both sides in words: what PostgreSQL has, what Cortado has.
    pub sides: [String; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}\n  PostgreSQL: {}\n  Cortado:    {}", self.class, self.sides[0], self.sides[1])
    }
}

/// The code of a feature that is not supported.
pub const NOT_SUPPORTED: &str = "0A000";
/// The code of a statement that took too long, or was canceled.
pub const CANCELED: &str = "57014";

/// The SQLSTATE of an answer.
pub fn code(answer: &Answer) -> &str {
    answer.error.as_ref().map_or("00000", |error| &error.code)
}

/// The worst difference. `ordered` says whether the rows have an order.
pub fn compare(expected: &Answer, found: &Answer, ordered: bool) -> Option<Difference> {
    let codes = [expected, found].map(|answer| code(answer).to_string());
    let differ = |class, sides| Some(Difference { class, codes: codes.clone(), sides });
    if found.is_lost || codes[1].starts_with("XX") && !codes[0].starts_with("XX") {
        return differ(Class::Fault, [show(expected), show(found)]);
    }
    match (&expected.error, &found.error) {
        (Some(_), None) => differ(Class::Accepted, [show(expected), show(found)]),
        (None, Some(_)) => differ(Class::Refused, [show(expected), show(found)]),
        (Some(one), Some(other)) if one.code != other.code => differ(Class::SqlState, [show(expected), show(found)]),
        (Some(one), Some(other)) if one.message != other.message => {
            differ(Class::Message, [show(expected), show(found)])
        }
        (Some(one), Some(other)) if one.position != other.position => {
            differ(Class::Position, [show(expected), show(found)])
        }
        (Some(_), Some(_)) => None,
        (None, None) => {
            if sorted(expected, ordered) != sorted(found, ordered) {
                return differ(Class::Rows, [show(expected), show(found)]);
            }
            if (&expected.columns, &expected.parameters) != (&found.columns, &found.parameters) {
                return differ(Class::Types, [show_types(expected), show_types(found)]);
            }
            if expected.tags != found.tags {
                return differ(Class::Tag, [expected.tags.join(";"), found.tags.join(";")]);
            }
            None
        }
    }
}

/// The rows of an answer, sorted unless they have an order. A float that is no number has one form: in binary its sign
/// is undefined.
pub fn sorted(answer: &Answer, ordered: bool) -> Vec<Row> {
    let mut rows = answer.rows.clone();
    for row in &mut rows {
        for (value, column) in row.iter_mut().zip(&answer.columns) {
            if let (Some(bytes), 700 | 701) = (value.as_mut(), column.type_oid)
                && is_not_a_number(bytes)
            {
                *bytes = b"NaN".to_vec();
            }
        }
    }
    if !ordered {
        rows.sort();
    }
    rows
}

fn is_not_a_number(bytes: &[u8]) -> bool {
    let double = <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| f64::from_be_bytes(bytes).is_nan());
    let single = <[u8; 4]>::try_from(bytes).is_ok_and(|bytes| f32::from_be_bytes(bytes).is_nan());
    double || single
}

/// An answer in one line.
fn show(answer: &Answer) -> String {
    const SHOWN: usize = 6;
    if answer.is_lost {
        return "the connection broke".to_string();
    }
    if let Some(error) = &answer.error {
        let at = if error.position.is_empty() { String::new() } else { format!(" at {}", error.position) };
        return format!("{} {}{at}", error.code, error.message);
    }
    let value = |value: &Option<Vec<u8>>| match value {
        None => "NULL".to_string(),
        Some(bytes) => format!("'{}'", bytes.escape_ascii()),
    };
    let rows = answer.rows.iter().take(SHOWN).map(|row| row.iter().map(value).collect::<Vec<_>>().join(" | "));
    let more = if answer.rows.len() > SHOWN { format!(" ... ({} rows)", answer.rows.len()) } else { String::new() };
    format!("[{}]{more} {}", rows.collect::<Vec<_>>().join("] ["), show_types(answer))
}

fn show_types(answer: &Answer) -> String {
    let column = |column: &crate::wire::Column| {
        let modifier = if column.modifier == -1 { String::new() } else { format!("({})", column.modifier) };
        format!("{} {}{modifier}", column.name, column.type_oid)
    };
    let columns: Vec<String> = answer.columns.iter().map(column).collect();
    let parameters: Vec<String> = answer.parameters.iter().map(u32::to_string).collect();
    let parameters =
        if parameters.is_empty() { String::new() } else { format!(" parameters: {}", parameters.join(", ")) };
    format!("columns: {}{parameters}", columns.join(", "))
}
