//! Names: reserved words, keywords, folding.

use sqlparser::ast::{Expr as Ast, Ident, ObjectName, ObjectNamePart, Spanned};

use super::binder::Binder;
use crate::error::{SqlError, SqlState};

/// Limit of identifiers, in bytes. Longer ones are truncated, as in PostgreSQL.
const MAX_IDENTIFIER: usize = 63;

impl Binder<'_> {
    /// 42601 for a reserved word or a string in place of a name.
    pub(super) fn check_name(&self, ident: &Ident) -> Result<(), SqlError> {
        self.check_no_string(ident)?;
        let reserved =
            ident.quote_style.is_none() && RESERVED.iter().any(|word| ident.value.eq_ignore_ascii_case(word));
        if !reserved {
            return Ok(());
        }
        let message = format!("syntax error at or near \"{}\"", ident.value);
        Err(self.error(SqlState::SYNTAX_ERROR, message, ident.span.start))
    }

    /// The name of an alias: any word, but no string.
    pub(super) fn alias(&self, ident: &Ident) -> Result<String, SqlError> {
        self.check_no_string(ident)?;
        Ok(fold_ident(ident))
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

    /// The folded parts of a name.
    pub(super) fn name_parts(&self, name: &ObjectName) -> Result<Vec<String>, SqlError> {
        if let Some(ObjectNamePart::Identifier(first)) = name.0.first() {
            self.check_name(first)?;
        }
        name.0
            .iter()
            .map(|part| match part {
                ObjectNamePart::Identifier(ident) => self.alias(ident),
                ObjectNamePart::Function(_) => Err(self.unsupported("a computed name is", name.span().start)),
            })
            .collect()
    }
}

/// Words that PostgreSQL accepts as names only in quotes. sqlparser is more lenient.
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
    let mut name = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() };
    if name.len() > MAX_IDENTIFIER {
        let mut end = MAX_IDENTIFIER;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}

/// Whether an expression is the keyword DEFAULT.
pub(super) fn is_default(ast: &Ast) -> bool {
    matches!(ast, Ast::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}
