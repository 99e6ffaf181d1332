//! What the parts of the binder share: names in scope, parameters and their inference, positions of errors, coercion.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Spanned};
use sqlparser::tokenizer::{Location, Span};

use super::aggregate::AggregateState;
use super::expr::{ContextValue, Expr};
use super::fold;
use crate::catalog::{Catalog, Table};
use crate::error::SqlError;
use crate::parse::{self, NOWHERE, Parsed};
use crate::types::cast::{CastContext, cast_context};
use crate::types::timestamp::Now;
use crate::types::{Datum, SqlType, TimeZone, codes, input};

/// Longest identifier in bytes; more is cut off, as in PostgreSQL.
const MAX_IDENTIFIER: usize = 63;
/// Highest parameter number that the protocol can carry values for.
const MAX_PARAMS: usize = 65_535;
/// Deepest nesting of expressions; the parser's own limit is below it, this one guards the recursion here.
const MAX_DEPTH: usize = 250;

/// A bound expression with its type and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) expr: Expr,
    pub(super) ty: SqlType,
    pub(super) at: Location,
    /// A literal with a decimal point: PostgreSQL's `numeric`, here a float that remembers how such a literal rounds.
    pub(super) decimal: bool,
}

impl Typed {
    pub(super) fn new(expr: Expr, ty: SqlType, at: Location) -> Typed {
        Typed { expr, ty, at, decimal: false }
    }
}

/// A table whose columns can be named.
#[derive(Clone, Debug)]
pub(super) struct ScopeTable {
    /// The alias, or the table's name.
    pub(super) name: String,
    /// The table's own name where an alias hides it.
    pub(super) hidden_name: Option<String>,
    /// Names, types and numbers of its columns.
    pub(super) columns: Vec<ScopeColumn>,
    /// Where its columns begin in the input row.
    pub(super) offset: usize,
    /// OID of the table.
    pub(super) oid: u32,
}

/// A column that can be named.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    pub(super) ty: SqlType,
    pub(super) number: i16,
}

/// The tables whose columns can be named; the input row has their columns one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) tables: Vec<ScopeTable>,
}

impl Scope {
    /// The scope of one table.
    pub(super) fn of(table: &Table, alias: Option<&str>) -> Scope {
        Scope { tables: vec![ScopeTable::new(table, alias, 0)] }
    }

    /// All columns, with their places in the input row.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &ScopeTable, &ScopeColumn)> {
        self.tables.iter().flat_map(|t| t.columns.iter().enumerate().map(move |(i, c)| (t.offset + i, t, c)))
    }

    /// Names for EXPLAIN, by place in the input row.
    pub(super) fn names(&self) -> Vec<String> {
        self.columns().map(|(_, _, column)| crate::catalog::quote(&column.name)).collect()
    }
}

impl ScopeTable {
    pub(super) fn new(table: &Table, alias: Option<&str>, offset: usize) -> ScopeTable {
        let columns = table.columns.iter().map(|column| ScopeColumn {
            name: column.name.clone(),
            ty: column.ty,
            number: i16::try_from(column.id.0).unwrap_or(0),
        });
        ScopeTable {
            name: alias.unwrap_or(&table.name).to_owned(),
            hidden_name: alias.filter(|alias| *alias != table.name).map(|_| table.name.clone()),
            columns: columns.collect(),
            offset,
            oid: table.id.0,
        }
    }
}

/// The state of binding one statement.
pub(super) struct Binder<'a> {
    pub(super) statement: &'a Parsed,
    pub(super) catalog: &'a Catalog,
    /// Types of `$1`, ...; `Unknown` until something fixes them.
    pub(super) params: Vec<SqlType>,
    declared: &'a [SqlType],
    pub(super) aggregates: AggregateState,
    /// The clause at hand, for errors about aggregates.
    pub(super) clause: &'static str,
    pub(super) depth: usize,
    /// Types of the columns that INSERT puts the select list of its query into.
    pub(super) targets: Vec<SqlType>,
}

impl<'a> Binder<'a> {
    pub(super) fn new(statement: &'a Parsed, declared: &'a [SqlType], catalog: &'a Catalog) -> Binder<'a> {
        let params = declared.iter().map(|ty| ty.base()).collect();
        Binder {
            statement,
            catalog,
            params,
            declared,
            aggregates: AggregateState::default(),
            clause: "",
            depth: 0,
            targets: Vec::new(),
        }
    }

    /// An error at a location.
    pub(super) fn error(&self, code: crate::error::SqlState, message: impl Into<String>, at: Location) -> SqlError {
        SqlError::new(code, message).at(self.statement.position(at))
    }

    /// 0A000 for what PostgreSQL has and we do not.
    pub(super) fn unsupported(&self, what: &str, at: Location) -> SqlError {
        self.error(codes::FEATURE_NOT_SUPPORTED, format!("{what} not supported yet"), at)
    }

    /// Where the first occurrence of `symbol` between two spans is; the start of the first if there is none.
    pub(super) fn between(&self, left: Span, symbol: &str, right: Span) -> u32 {
        let text = &*self.statement.text;
        let Some(start) = parse::offset(text, left.end) else { return self.statement.position(left.start) };
        let end = parse::offset(text, right.start).unwrap_or(text.len());
        let gap = text.get(start..end).unwrap_or_default().to_ascii_lowercase();
        match gap.find(&symbol.to_ascii_lowercase()) {
            Some(at) => u32::try_from(text[..start + at].chars().count() + 1).unwrap_or(0),
            None => self.statement.position(left.start),
        }
    }

    /// Where the last occurrence of `symbol` before a location is, if only blanks and words lie between; the location
    /// itself otherwise.
    pub(super) fn before(&self, at: Location, symbol: &str) -> u32 {
        let text = &*self.statement.text;
        let Some(end) = parse::offset(text, at) else { return self.statement.position(at) };
        match text[..end].to_ascii_lowercase().rfind(symbol) {
            Some(start) => u32::try_from(text[..start].chars().count() + 1).unwrap_or(0),
            None => self.statement.position(at),
        }
    }

    /// Enters a nested expression; the caller leaves by lowering `depth`.
    pub(super) fn descend(&mut self) -> Result<(), SqlError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SqlError::new(codes::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        Ok(())
    }

    /// A parameter by its number.
    pub(super) fn param(&mut self, name: &str, at: Location) -> Result<Typed, SqlError> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let Some(number) = number.filter(|n| (1..=MAX_PARAMS).contains(n)) else {
            return Err(self.error(codes::UNDEFINED_PARAMETER, format!("there is no parameter {name}"), at));
        };
        if self.params.len() < number {
            self.params.resize(number, SqlType::Unknown);
        }
        Ok(Typed::new(Expr::Param(number - 1), self.params[number - 1], at))
    }

    /// The types of all parameters, once the statement is bound.
    pub(super) fn finish_params(&self) -> Result<Vec<SqlType>, SqlError> {
        match self.params.iter().position(|ty| *ty == SqlType::Unknown) {
            Some(at) if at >= self.declared.len() || self.declared[at] == SqlType::Unknown => {
                let message = format!("could not determine data type of parameter ${}", at + 1);
                Err(SqlError::new(codes::INDETERMINATE_DATATYPE, message))
            }
            _ => Ok(self.params.clone()),
        }
    }

    /// Converts a value to a type, if the context allows it; `None` if it does not. A literal of unknown type is read
    /// as the type, an untyped parameter gets it.
    pub(super) fn coerce(
        &mut self,
        value: Typed,
        to: SqlType,
        context: CastContext,
    ) -> Result<Option<Typed>, SqlError> {
        let at = value.at;
        let explicit = context == CastContext::Explicit;
        if value.ty == SqlType::Unknown {
            return self.coerce_unknown(value, to, explicit).map(Some);
        }
        let Some(needed) = cast_context(value.ty, to) else { return Ok(None) };
        if needed > context {
            return Ok(None);
        }
        let same_values = match (value.ty, to) {
            (SqlType::Int2, SqlType::Int4 | SqlType::Int8) | (SqlType::Int4, SqlType::Int8) => true,
            (from, SqlType::Text | SqlType::Varchar(None)) => from.is_text(),
            (from, to) => from == to,
        };
        if same_values {
            return Ok(Some(Typed { ty: to, ..value }));
        }
        if value.decimal && to.is_integer() {
            return Ok(Some(Typed::new(fold::fold(round_decimal(value.expr, to, explicit)), to, at)));
        }
        let expr = Expr::Cast { expr: Box::new(value.expr), to, explicit };
        Ok(Some(Typed::new(fold::fold(expr), to, at)))
    }

    fn coerce_unknown(&mut self, value: Typed, to: SqlType, explicit: bool) -> Result<Typed, SqlError> {
        let at = value.at;
        let expr = match value.expr {
            Expr::Const(Datum::Text(text)) => self.literal(&text, to, at)?,
            Expr::Param(number) => {
                if self.params[number] == SqlType::Unknown {
                    self.params[number] = to.base();
                }
                Expr::Param(number)
            }
            other => other,
        };
        let limited = matches!(to, SqlType::Varchar(Some(_))) && expr != Expr::Const(Datum::Null);
        let expr = if limited { fold::fold(Expr::Cast { expr: Box::new(expr), to, explicit }) } else { expr };
        Ok(Typed::new(expr, to, at))
    }

    /// Reads a literal as a type. A time that depends on the session stays a text until execution.
    fn literal(&self, text: &str, ty: SqlType, at: Location) -> Result<Expr, SqlError> {
        let position = self.statement.position(at);
        let read = |zone: &TimeZone| input::parse(ty, text, zone, Now::At(0)).map_err(|e| e.at(position));
        let value = read(&TimeZone::utc())?;
        if ty != SqlType::Timestamptz {
            return Ok(Expr::Const(value));
        }
        let elsewhere = read(&TimeZone(jiff::tz::TimeZone::fixed(jiff::tz::offset(5))))?;
        let word = text.trim_matches(input::is_space).to_ascii_lowercase();
        let relative = ["now", "today", "tomorrow", "yesterday"].contains(&word.as_str());
        if value == elsewhere && !relative {
            return Ok(Expr::Const(value));
        }
        Ok(Expr::Input { ty, text: text.into(), position })
    }

    /// Converts a condition to boolean, or fails with 42804 naming the construct it stands in.
    pub(super) fn boolean(&mut self, value: Typed, construct: &str) -> Result<Expr, SqlError> {
        let (ty, at) = (value.ty, value.at);
        match self.coerce(value, SqlType::Bool, CastContext::Implicit)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!("argument of {construct} must be type boolean, not type {}", ty.base_name());
                Err(self.error(codes::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// Gives a value that is still of unknown type the type `text`.
    pub(super) fn settle(&mut self, value: Typed) -> Result<Typed, SqlError> {
        if value.ty == SqlType::Unknown { self.coerce_unknown(value, SqlType::Text, false) } else { Ok(value) }
    }

    /// The type that all values can take implicitly, as PostgreSQL chooses it for CASE, COALESCE, VALUES and the like.
    pub(super) fn common_type(&self, values: &[Typed], construct: &str) -> Result<SqlType, SqlError> {
        let mut chosen = SqlType::Unknown;
        for value in values {
            let ty = value.ty.base();
            if ty == SqlType::Unknown || ty == chosen {
                continue;
            }
            if chosen == SqlType::Unknown {
                chosen = ty;
                continue;
            }
            let same_category = (chosen.is_number() && ty.is_number()) || (chosen.is_text() && ty.is_text());
            if !same_category {
                let message =
                    format!("{construct} types {} and {} cannot be matched", chosen.base_name(), ty.base_name());
                return Err(self.error(codes::DATATYPE_MISMATCH, message, value.at));
            }
            let widens = cast_context(chosen, ty) == Some(CastContext::Implicit);
            let back = cast_context(ty, chosen) == Some(CastContext::Implicit);
            if widens && !back {
                chosen = ty;
            }
        }
        Ok(if chosen == SqlType::Unknown { SqlType::Text } else { chosen })
    }

    /// Converts all values to their common type.
    pub(super) fn unify(&mut self, values: Vec<Typed>, construct: &str) -> Result<(Vec<Expr>, SqlType), SqlError> {
        let ty = self.common_type(&values, construct)?;
        let mut out = Vec::with_capacity(values.len());
        for value in values {
            let (from, at) = (value.ty, value.at);
            match self.coerce(value, ty, CastContext::Implicit)? {
                Some(value) => out.push(value.expr),
                None => {
                    let message =
                        format!("{construct} could not convert type {} to {}", from.base_name(), ty.base_name());
                    return Err(self.error(codes::CANNOT_COERCE, message, at));
                }
            }
        }
        Ok((out, ty))
    }

    /// A column by its possibly qualified name.
    pub(super) fn column(&mut self, parts: &[Ident], scope: &Scope) -> Result<Typed, SqlError> {
        let at = parts.first().map_or(NOWHERE, |ident| ident.span.start);
        parts.first().map_or(Ok(()), |ident| self.check_name(ident))?;
        let names: Vec<String> = parts.iter().map(fold_ident).collect();
        let (table, name) = match names.as_slice() {
            [name] => (None, name),
            [table, name] => (Some(table), name),
            [schema, table, name] if schema == crate::catalog::PUBLIC => (Some(table), name),
            _ => return Err(self.unsupported(&format!("the name {} is", names.join(".")), at)),
        };
        if let Some(table) = table {
            self.known_table(table, scope, at)?;
        }
        let mut found = scope
            .columns()
            .filter(|(_, owner, column)| column.name == *name && table.is_none_or(|table| owner.name == *table));
        let first = found.next();
        if found.next().is_some() && table.is_none() {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(self.error(codes::AMBIGUOUS_COLUMN, message, at));
        }
        let Some((place, _, column)) = first else {
            // The one function that is written without parentheses and that the parser takes for a name.
            if table.is_none() && name == "current_schema" {
                return Ok(Typed::new(Expr::Context(ContextValue::Schema), SqlType::Text, at));
            }
            let message = match table {
                Some(table) => format!("column {table}.{name} does not exist"),
                None => format!("column \"{name}\" does not exist"),
            };
            return Err(self.error(codes::UNDEFINED_COLUMN, message, at));
        };
        if !self.aggregates.inside && self.aggregates.bare.is_none() {
            let owner = scope.tables.iter().rev().find(|t| t.offset <= place).map_or("", |t| &t.name);
            self.aggregates.bare = Some((format!("{owner}.{name}"), at));
        }
        Ok(Typed::new(Expr::Column(place), column.ty, at))
    }

    fn known_table(&self, table: &str, scope: &Scope, at: Location) -> Result<(), SqlError> {
        if scope.tables.iter().any(|t| t.name == table) {
            return Ok(());
        }
        match scope.tables.iter().find(|t| t.hidden_name.as_deref() == Some(table)) {
            Some(alias) => {
                let message = format!("invalid reference to FROM-clause entry for table \"{table}\"");
                let hint = format!("Perhaps you meant to reference the table alias \"{}\".", alias.name);
                Err(self.error(codes::UNDEFINED_TABLE, message, at).hint(hint))
            }
            None => {
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                Err(self.error(codes::UNDEFINED_TABLE, message, at))
            }
        }
    }

    /// The table of a name; 42P01 if there is none.
    pub(super) fn table(&self, name: &ObjectName) -> Result<std::sync::Arc<Table>, SqlError> {
        let at = name.span().start;
        let parts = self.name_parts(name)?;
        let found = match parts.as_slice() {
            [table] => self.catalog.table(table),
            [schema, table] if schema == crate::catalog::PUBLIC => self.catalog.table(table),
            [_, _] => None,
            _ => {
                let message = format!("cross-database references are not implemented: \"{}\"", parts.join("."));
                return Err(self.error(codes::FEATURE_NOT_SUPPORTED, message, at));
            }
        };
        found.cloned().ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            self.error(codes::UNDEFINED_TABLE, message, at)
        })
    }

    /// 42601 for a reserved word where a name must stand.
    pub(super) fn check_name(&self, ident: &Ident) -> Result<(), SqlError> {
        let reserved =
            ident.quote_style.is_none() && RESERVED.iter().any(|word| ident.value.eq_ignore_ascii_case(word));
        if !reserved {
            return Ok(());
        }
        let message = format!("syntax error at or near \"{}\"", ident.value);
        Err(self.error(codes::SYNTAX_ERROR, message, ident.span.start))
    }

    /// The same where a table or column gets its name: words that mean something as expressions are no names either.
    pub(super) fn check_new_name(&self, ident: &Ident) -> Result<(), SqlError> {
        let meaningful =
            ident.quote_style.is_none() && VALUES.iter().any(|word| ident.value.eq_ignore_ascii_case(word));
        if meaningful {
            let message = format!("syntax error at or near \"{}\"", ident.value);
            return Err(self.error(codes::SYNTAX_ERROR, message, ident.span.start));
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
                ObjectNamePart::Identifier(ident) => Ok(fold_ident(ident)),
                ObjectNamePart::Function(_) => Err(self.unsupported("a computed name is", name.span().start)),
            })
            .collect()
    }
}

/// Words that PostgreSQL takes as names only in quotes, where sqlparser is more lenient.
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

/// Reserved words that stand for values.
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

/// A decimal literal becomes an integer by rounding half away from zero, as PostgreSQL's `numeric` does.
fn round_decimal(expr: Expr, to: SqlType, explicit: bool) -> Expr {
    let expr = match expr {
        Expr::Const(Datum::Float(value)) => Expr::Const(Datum::Float(value.round())),
        other => other,
    };
    Expr::Cast { expr: Box::new(expr), to, explicit }
}

/// An identifier as the catalog has it: folded to lower case unless quoted, cut to 63 bytes.
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
