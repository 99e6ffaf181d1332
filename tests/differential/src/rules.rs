//! The differences that are known: each names its line in `docs/compatibility.md`.

use crate::compare::{Class, Difference, NOT_SUPPORTED, sorted};
use crate::wire::{Answer, Row};

/// A known difference.
pub struct Rule {
    /// Words of `docs/compatibility.md` that say it.
    pub documented: &'static str,
    /// Whether a difference is this one: the text of the statement, the difference, the answers of PostgreSQL and of
    /// Cortado.
    pub applies: fn(&str, &Difference, &[Answer; 2]) -> bool,
}

/// What a case is known for that has the errors of both servers ([`crate::shrink::has_both_errors`]).
pub const OTHER_ERROR: &str = "Of several errors in one statement another one may be reported";

/// All other known differences.
const RULES: &[Rule] = &[
    Rule {
        documented: "`cbrt` is rounded correctly; PostgreSQL's depends on the C library.",
        applies: |text, difference, answers| {
            let has_root = text.contains("cbrt(") || text.contains("||/");
            difference.class == Class::Rows && has_root && differ_in(answers, is_last_digit)
        },
    },
    Rule {
        documented: "An escape `\\x` with more digits than a character has is refused",
        applies: |text, difference, _| {
            difference.class == Class::Refused && text.contains("regexp") && text.contains("\\x")
        },
    },
    Rule {
        documented: "`jsonb_cmp` tells an order by its sign alone",
        applies: |text, difference, _| difference.class == Class::Rows && text.contains("jsonb_cmp("),
    },
    Rule {
        documented: "The operand of CASE is evaluated even if no WHEN can be equal to it",
        applies: |text, difference, _| {
            let text = text.to_ascii_uppercase();
            let is_null = ["WHEN NULL", "CASE NULL", "=\"NULL\""].iter().any(|word| text.contains(word));
            difference.class == Class::Refused && text.contains("CASE ") && text.contains("WHEN ") && is_null
        },
    },
    Rule {
        documented: "`\"char\"` as `character` is the text that it is shown by.",
        applies: |text, difference, answers| {
            let is_cast = text.contains("\"char\"") && CHARACTER.iter().any(|name| text.contains(name));
            let is_parameter = text.contains(":18=");
            let is_byte = |value: &[u8], _: &[u8], _| matches!(value.trim_ascii_end(), [] | [0 | 0x80..=0xff]);
            let is_invalid = difference.class == Class::Accepted && difference.codes[0] == "22021";
            (is_cast || is_parameter) && (is_invalid || difference.class == Class::Rows && differ_in(answers, is_byte))
        },
    },
    Rule {
        documented: "The columns of a simple query have the modifiers that its analysis gives them",
        applies: |text, difference, answers| {
            let is_simple = !text.contains("; -- Extended") && !text.contains("; -- Binary");
            let without = |answer: &Answer| {
                let columns = answer.columns.iter().map(|column| (column.name.clone(), column.type_oid));
                columns.collect::<Vec<_>>()
            };
            let [expected, found] = answers;
            let is_less = expected
                .columns
                .iter()
                .zip(&found.columns)
                .all(|(one, other)| one.modifier == other.modifier || other.modifier == -1);
            difference.class == Class::Types && is_simple && without(expected) == without(found) && is_less
        },
    },
    Rule {
        documented: "Functions and operators lack the variants for missing types.",
        applies: |_, difference, answers| {
            let Some(error) = &answers[0].error else { return false };
            let is_ambiguous = error.code == "42725" && AMBIGUOUS.iter().any(|call| error.message.contains(call));
            let is_bit = error.code == "22P02" && error.message.contains("is not a valid binary digit");
            difference.class <= Class::SqlState && (is_ambiguous || is_bit)
        },
    },
    Rule {
        documented: "So are defaults, indexes and generated columns",
        applies: |text, difference, answers| {
            const SHOWN: &str = "column_default";
            let is_default = text.contains(" DEFAULT ") && answers[0].columns.iter().any(|column| column.name == SHOWN);
            let without = |answer: &Answer| {
                let mut rows = answer.rows.clone();
                for (at, _) in answer.columns.iter().enumerate().filter(|(_, column)| column.name == SHOWN) {
                    // A default that is not there is another difference.
                    rows.iter_mut().for_each(|row| row[at] = row[at].as_ref().map(|_| Vec::new()));
                }
                rows
            };
            difference.class == Class::Rows && is_default && without(&answers[0]) == without(&answers[1])
        },
    },
    Rule {
        documented: "A comparison as the lower bound of BETWEEN needs parentheses (42601).",
        applies: |text, difference, answers| {
            let is_comparison = |answer: &Answer| {
                let message = message(answer);
                ["<", ">", "=", "<=", ">=", "<>"]
                    .iter()
                    .any(|op| message == format!("syntax error at or near \"{op}\""))
            };
            let is_error = matches!(difference.class, Class::SqlState | Class::Refused);
            is_error && text.contains("BETWEEN ") && is_comparison(&answers[1])
        },
    },
    Rule {
        documented: "INSERT evaluates and checks many rows before it looks for duplicate keys (23505)",
        applies: |text, difference, _| {
            let last = text.rsplit('\n').next().unwrap_or(text);
            let [expected, found] = difference.codes.each_ref().map(String::as_str);
            let is_of_row = |code: &str| ["22", "23", "53", "54"].iter().any(|class| code.starts_with(class));
            let is_duplicate = |one: &str, other: &str| one == "23505" && is_of_row(other);
            let is_pair = is_duplicate(expected, found) || is_duplicate(found, expected);
            difference.class == Class::SqlState && is_pair && last.starts_with("INSERT INTO ")
        },
    },
    Rule {
        documented: "Where a function in the select list returns no row, its other expressions are not evaluated",
        applies: |text, difference, answers| {
            let is_of_value = difference.codes[0].starts_with("22");
            let is_set = SETS.iter().any(|name| text.starts_with(&format!("SELECT {name}(")));
            difference.class == Class::Accepted && is_of_value && is_set && answers[1].rows.is_empty()
        },
    },
    Rule {
        documented: "A condition that is false by its parameters alone does not hide the errors of others",
        applies: |text, difference, answers| {
            let is_of_value = ["22", "54"].iter().any(|class| difference.codes[1].starts_with(class));
            let has_others = text.contains(" AND ") || text.contains(") = (");
            let is_empty = answers[0].tags == ["SELECT 0"] && answers[0].rows.is_empty();
            difference.class == Class::Refused && is_of_value && is_empty && text.contains('$') && has_others
        },
    },
    Rule {
        documented: "`convert` and its kin, and `length(bytea, name)`, know the encodings UTF8, LATIN1 and SQL_ASCII",
        applies: |text, difference, answers| {
            let message = message(&answers[1]);
            let is_encoding = message.starts_with("invalid ") && message.contains("encoding name \"");
            let is_call = ["convert", "length"].iter().any(|name| text.contains(name));
            difference.class == Class::Refused && is_call && is_encoding
        },
    },
    Rule {
        documented: "`(a, b) < (c, d)` and its kin compare arrays of `json`",
        applies: |text, difference, answers| {
            let message = message(&answers[0]);
            let has_no_order = message == "could not identify a comparison function for type json";
            difference.class == Class::Accepted && has_no_order && compares_rows(text) && text.contains("json[]")
        },
    },
    Rule {
        documented: "A row beyond `--max-transaction-size` is error 54000, before the errors of later rows.",
        applies: |_, difference, answers| {
            let message = message(&answers[1]);
            let is_error = matches!(difference.class, Class::SqlState | Class::Refused);
            is_error && message.starts_with("row is too large")
        },
    },
    Rule {
        documented: "ADD COLUMN evaluates a DEFAULT for the rows of the table",
        applies: |text, difference, _| {
            let is_of_value = difference.codes[0].starts_with("22");
            let adds_default = text.contains("ADD COLUMN ") && text.contains(" DEFAULT ");
            difference.class == Class::Accepted && is_of_value && adds_default
        },
    },
    Rule {
        documented: "A comparison of rows is evaluated before what CASE or COALESCE do not reach by it",
        applies: |text, difference, _| {
            let is_skipped = ["CASE ", "COALESCE("].iter().any(|word| text.contains(word));
            let is_of_value = difference.codes[0].starts_with("22");
            difference.class == Class::Accepted && is_of_value && is_skipped && compares_rows(text)
        },
    },
    Rule {
        documented: "In binary, an array tells whether it has a NULL.",
        applies: |text, difference, answers| {
            let is_slice = text.contains("; -- Binary") && text.contains(")[") && text.contains(':');
            difference.class == Class::Rows && is_slice && differ_in(answers, is_flag_of_nulls)
        },
    },
    Rule {
        documented: "A regular expression whose compiled form is large is error 2201B.",
        applies: |_, difference, answers| {
            let is_large = |answer: &Answer| {
                answer.error.as_ref().is_some_and(|error| error.message.ends_with("regular expression is too complex"))
            };
            difference.class == Class::Refused && is_large(&answers[1])
        },
    },
];

/// Names of the type `character`.
const CHARACTER: &[&str] = &["character", "\"bpchar\"", "char("];

/// Calls and operators that PostgreSQL has for missing types too: parts of its messages.
const AMBIGUOUS: &[&str] = &[
    "operator is not unique: unknown && unknown",
    "function bit_count(unknown",
    "function get_bit(unknown",
    "function set_bit(unknown",
    "function trunc(unknown)",
    "function unnest(unknown)",
];

/// Functions that return sets.
const SETS: &[&str] = &[
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_keys",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

/// What Cortado refuses with 0A000: a part of the message, and the words of `docs/compatibility.md`.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("another type of an identity column is not supported", "another type of an identity column."),
    ("this DEFAULT is not supported", "A DEFAULT in which a constant is `NaN` may be 0A000."),
    ("that a view reads is not supported", "What a view reads cannot be renamed (0A000)"),
];

/// Whether values differ only where it is so of both: PostgreSQL's value, Cortado's, the OID of their type. The rows
/// may be in another order.
fn differ_in(answers: &[Answer; 2], is_so: fn(&[u8], &[u8], u32) -> bool) -> bool {
    let [expected, found] = answers;
    let differ = |expected: &[Row], found: &[Row]| {
        let values = |(one, other): (&Row, &Row)| {
            let mut values = one.iter().zip(other).zip(&answers[0].columns);
            let is_known = |one: &Option<Vec<u8>>, other: &Option<Vec<u8>>, ty: u32| match (one, other) {
                (Some(one), Some(other)) => one == other || is_so(one, other, ty),
                (one, other) => one == other,
            };
            one.len() == other.len() && values.all(|((one, other), column)| is_known(one, other, column.type_oid))
        };
        expected.len() == found.len() && expected.iter().zip(found).all(values)
    };
    differ(&expected.rows, &found.rows) || differ(&sorted(expected, false), &sorted(found, false))
}

/// The message of an error, empty for none.
fn message(answer: &Answer) -> &str {
    answer.error.as_ref().map_or("", |error| &error.message)
}

/// Whether a statement has an order of rows, `(a, b) < (c, d)`.
fn compares_rows(text: &str) -> bool {
    [") < (", ") <= (", ") > (", ") >= ("].iter().any(|op| text.contains(op))
}

/// Whether two arrays in binary differ only in that PostgreSQL's one may have a NULL.
fn is_flag_of_nulls(one: &[u8], other: &[u8], _: u32) -> bool {
    // Behind the number of dimensions.
    const FLAG: usize = 7;
    let mut without = one.to_vec();
    one.get(FLAG) == Some(&1) && other.get(FLAG) == Some(&0) && {
        without[FLAG] = 0;
        without == other
    }
}

/// Whether two floats are next to each other, up to some units of the last place.
fn is_last_digit(one: &[u8], other: &[u8], _: u32) -> bool {
    const NEAR: f64 = 1e-13;
    let number = |bytes: &[u8]| match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) if !bytes.is_ascii() => Some(f64::from_be_bytes(bytes)),
        _ => std::str::from_utf8(bytes).ok()?.parse().ok(),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => (one - other).abs() <= NEAR * one.abs(),
        _ => false,
    }
}

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
    let rules = RULES.iter().map(|rule| rule.documented);
    rules.chain([OTHER_ERROR]).chain(UNSUPPORTED.iter().map(|(_, documented)| *documented))
}
