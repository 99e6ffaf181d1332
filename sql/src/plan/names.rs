//! Names: reserved words, keywords, folding.

use std::borrow::Cow;

use sqlparser::ast::{Expr as Ast, Ident, ObjectName, ObjectNamePart, OrderByOptions, Spanned};

use super::binder::Binder;
use crate::error::{SqlError, SqlState};
use pgtypes::{Category, SqlType};

/// Limit of identifiers, in bytes. Longer ones are truncated, as in PostgreSQL.
const MAX_IDENTIFIER: usize = 63;

/// PostgreSQL's collations that do not come from the system.
const COLLATIONS: [&str; 4] = ["C", "POSIX", "default", "ucs_basic"];

/// Whether a key of an order descends, and whether NULLs come first. By default NULL counts as the greatest value.
pub(super) fn sort_options(options: &OrderByOptions) -> (bool, bool) {
    let descends = options.asc == Some(false);
    (descends, options.nulls_first.unwrap_or(descends))
}

/// The identifiers of a name.
pub(super) fn idents(name: &ObjectName) -> Vec<Ident> {
    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect()
}

impl Binder<'_> {
    /// 42601 for a reserved word or a string in place of a name.
    pub(super) fn check_name(&self, ident: &Ident) -> Result<(), SqlError> {
        self.check_no_string(ident)?;
        if ident.quote_style.is_some() || !is_reserved(&ident.value) {
            return Ok(());
        }
        let message = format!("syntax error at or near \"{}\"", ident.value);
        Err(self.error(SqlState::SYNTAX_ERROR, message, ident.span.start))
    }

    /// The name of an alias: any word, but no string.
    pub(super) fn alias(&self, ident: &Ident) -> Result<String, SqlError> {
        self.folded(ident).map(Cow::into_owned)
    }

    /// The same, borrowed if it is written so.
    pub(super) fn folded<'i>(&self, ident: &'i Ident) -> Result<Cow<'i, str>, SqlError> {
        self.check_no_string(ident)?;
        Ok(folded(ident))
    }

    /// 42601 for a string: sqlparser accepts them as names.
    fn check_no_string(&self, ident: &Ident) -> Result<(), SqlError> {
        if ident.quote_style != Some('\'') {
            return Ok(());
        }
        let message = format!("syntax error at or near \"'{}'\"", ident.value.replace('\'', "''"));
        Err(self.error(SqlState::SYNTAX_ERROR, message, ident.span.start))
    }

    /// As `check_name`, for the name of a new table or column: words with a value are not allowed either.
    pub(super) fn check_new_name(&self, ident: &Ident) -> Result<(), SqlError> {
        let has_value = ident.quote_style.is_none() && VALUES.iter().any(|word| ident.value.eq_ignore_ascii_case(word));
        if has_value {
            let message = format!("syntax error at or near \"{}\"", ident.value);
            return Err(self.error(SqlState::SYNTAX_ERROR, message, ident.span.start));
        }
        self.check_name(ident)
    }

    /// 42704 for a collation that does not exist. Those that do order text by its bytes.
    pub(super) fn check_collation(&self, name: &ObjectName) -> Result<(), SqlError> {
        let parts = self.name_parts(name)?;
        let known = match parts.as_slice() {
            [name] => Some(name),
            [schema, name] if schema == "pg_catalog" => Some(name),
            _ => None,
        };
        if known.is_some_and(|name| COLLATIONS.contains(&name.as_str())) {
            return Ok(());
        }
        let message = format!("collation \"{}\" for encoding \"UTF8\" does not exist", parts.join("."));
        let position = self.position_before(name.span().start, "collate");
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(position))
    }

    /// 42804 for a type without a collation. `name`: the collation that is given.
    pub(super) fn check_has_collation(&self, ty: SqlType, name: &ObjectName) -> Result<(), SqlError> {
        if ty.scalar().row().category == Category::String {
            return Ok(());
        }
        let message = format!("collations are not supported by type {}", self.type_text(ty));
        let position = self.position_before(name.span().start, "collate");
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(position))
    }

    /// The folded parts of a name, without the name of the session's database.
    pub(super) fn name_parts(&self, name: &ObjectName) -> Result<Vec<String>, SqlError> {
        if let Some(ObjectNamePart::Identifier(first)) = name.0.first() {
            self.check_name(first)?;
        }
        let folded = name.0.iter().map(|part| match part {
            ObjectNamePart::Identifier(ident) => self.alias(ident),
            ObjectNamePart::Function(_) => Err(self.unsupported("a computed name is", name.span().start)),
        });
        let mut parts = folded.collect::<Result<Vec<String>, SqlError>>()?;
        if let [database, _, _] = parts.as_slice()
            && self.catalog.is_own_database(database)
        {
            parts.remove(0);
        }
        Ok(parts)
    }
}

/// Whether a word, in any case, is reserved.
fn is_reserved(word: &str) -> bool {
    let mut folded = [0_u8; LONGEST_RESERVED];
    let Some(folded) = folded.get_mut(..word.len()) else { return false };
    folded.copy_from_slice(word.as_bytes());
    folded.make_ascii_lowercase();
    let Some(letter) = folded.first().filter(|letter| letter.is_ascii_lowercase()) else { return false };
    let letter = usize::from(letter - b'a');
    let same = usize::from(STARTS[letter])..usize::from(STARTS[letter + 1]);
    RESERVED[same].iter().any(|reserved| reserved.as_bytes() == folded)
}

/// Where the words of each letter begin in [`RESERVED`], and behind the last letter its end. Every name of a statement
/// is compared with them.
const STARTS: [u8; 27] = starts();

const fn starts() -> [u8; 27] {
    let mut starts = [0; 27];
    let mut letter = 0;
    while letter < starts.len() {
        let mut at = 0;
        while at < RESERVED.len() && RESERVED[at].as_bytes()[0] < b'a' + letter as u8 {
            at += 1;
        }
        starts[letter] = at as u8;
        letter += 1;
    }
    starts
}

/// The bytes of the longest reserved word.
const LONGEST_RESERVED: usize = 10;

/// Words that PostgreSQL accepts as names only in quotes. sqlparser is more lenient. Sorted.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "not",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "some",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "union",
    "unique",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Reserved words with a value.
const VALUES: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "false",
    "localtime",
    "localtimestamp",
    "null",
    "session_user",
    "true",
    "user",
];

/// An identifier as in the catalog: folded to lower case unless quoted, truncated to 63 bytes.
pub(super) fn fold_ident(ident: &Ident) -> String {
    folded(ident).into_owned()
}

fn folded(ident: &Ident) -> Cow<'_, str> {
    let value = truncated(&ident.value, MAX_IDENTIFIER);
    if ident.quote_style.is_some() || !value.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.to_ascii_lowercase())
}

/// Whether an expression is the keyword DEFAULT.
pub(super) fn is_default(ast: &Ast) -> bool {
    matches!(ast, Ast::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}

/// The names of an index's columns in its own name. A name that occurs again gets a number.
pub(super) fn index_columns_name(columns: &[String]) -> String {
    let mut names: Vec<String> = Vec::with_capacity(columns.len());
    for column in columns {
        let mut name = column.clone();
        let mut number = 1;
        while names.contains(&name) {
            name = format!("{column}{number}");
            number += 1;
        }
        names.push(name);
    }
    let mut joined = String::new();
    for name in names {
        if joined.len() >= MAX_IDENTIFIER {
            break;
        }
        if !joined.is_empty() {
            joined.push('_');
        }
        joined.push_str(&name);
    }
    truncated(&joined, MAX_IDENTIFIER).to_owned()
}

/// `{first}_{second}_{label}`. If it is too long, the longer of the two names is shortened.
pub(super) fn object_name(first: &str, second: Option<&str>, label: &str) -> String {
    let room = MAX_IDENTIFIER.saturating_sub(label.len() + 1 + second.map_or(0, |_| 1));
    let (mut one, mut two) = (first.len(), second.map_or(0, str::len));
    while one + two > room {
        if one > two {
            one -= 1;
        } else {
            two -= 1;
        }
    }
    let first = truncated(first, one);
    match second {
        Some(second) => format!("{first}_{}_{label}", truncated(second, two)),
        None => format!("{first}_{label}"),
    }
}

fn truncated(text: &str, length: usize) -> &str {
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_postgresql() {
        assert_eq!(object_name("t", Some("a_b"), "idx"), "t_a_b_idx");
        assert_eq!(object_name("t", None, "pkey"), "t_pkey");
        let long = "x".repeat(63);
        assert_eq!(object_name(&long, None, "pkey"), format!("{}_pkey", "x".repeat(58)));
        assert_eq!(object_name(&long, Some("abc"), "idx"), format!("{}_abc_idx", "x".repeat(55)));
        assert_eq!(object_name(&long, Some(&long), "idx"), format!("{}_{}_idx", "x".repeat(29), "x".repeat(29)));
        assert_eq!(object_name("é".repeat(31).as_str(), None, "pkey"), format!("{}_pkey", "é".repeat(29)));
        let columns = ["a", "expr", "expr"].map(str::to_owned);
        assert_eq!(index_columns_name(&columns), "a_expr_expr1");
    }

    #[test]
    fn reserved_words_are_found_in_any_case() {
        assert!(RESERVED.is_sorted());
        assert_eq!(RESERVED.iter().map(|word| word.len()).max(), Some(LONGEST_RESERVED));
        assert!(RESERVED.iter().all(|word| is_reserved(word) && is_reserved(&word.to_ascii_uppercase())));
        for word in ["", "sbtest1", "selects", "a_name_longer_than_all_of_them", "äs"] {
            assert!(!is_reserved(word), "{word}");
        }
    }
}
