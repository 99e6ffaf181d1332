//! Expressions with a syntax of their own that are calls of functions: EXTRACT, TRIM, AT TIME ZONE, LIKE, ...

use sqlparser::ast::{CeilFloorKind, DateTimeField, Expr as Ast, ExtractSyntax, Interval, TrimWhereField};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, Typed};
use super::calls::Arguments;
use super::comparison::Level;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::start_of;
use pgtypes::cast::CastContext;
use pgtypes::datetime::{self, IntervalTypmod};
use pgtypes::{Datum, SqlType};

/// The words of LIKE and its relatives.
struct LikeWords {
    /// The operator and its negation.
    operators: [&'static str; 2],
    /// The word in the text.
    word: &'static str,
    /// The function that makes a pattern of the operator from one with another escape character.
    escape_function: &'static str,
}

const LIKE: LikeWords = LikeWords { operators: ["~~", "!~~"], word: "like", escape_function: "like_escape" };
const ILIKE: LikeWords = LikeWords { operators: ["~~*", "!~~*"], word: "ilike", escape_function: "like_escape" };
const SIMILAR: LikeWords = LikeWords { operators: ["~", "!~"], word: "similar", escape_function: "similar_to_escape" };

fn word(text: &str, at: Location) -> Typed {
    Typed::new(Expr::Const(Datum::Text(text.into())), SqlType::TEXT, at)
}

impl Binder<'_> {
    /// Binds calls with special syntax.
    pub(super) fn special_function(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(ast);
        let (name, asts): (&str, Vec<&Ast>) = match ast {
            Ast::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => ("ceil", vec![expr]),
            Ast::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                ("floor", vec![expr])
            }
            Ast::Position { expr, r#in } => ("position", vec![r#in, expr]),
            Ast::Substring { expr, substring_from: Some(from), substring_for, shorthand, .. } => {
                let name = if *shorthand { "substr" } else { "substring" };
                let base: [&Ast; 2] = [expr, from];
                (name, base.into_iter().chain(substring_for.as_deref()).collect())
            }
            Ast::Substring { expr, substring_for: Some(length), .. } => {
                let mut args = vec![self.expr(expr, scope)?];
                args.push(Typed::new(Expr::Const(Datum::Int(1)), SqlType::INT4, at));
                args.push(self.expr(length, scope)?);
                return self.system_call("substring", args, at);
            }
            Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let base: [&Ast; 3] = [expr, overlay_what, overlay_from];
                ("overlay", base.into_iter().chain(overlay_for.as_deref()).collect())
            }
            Ast::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let characters = trim_what.as_deref().or(trim_characters.as_ref().and_then(|list| list.first()));
                (name, std::iter::once(&**expr).chain(characters).collect())
            }
            Ast::AtTimeZone { timestamp, time_zone } => ("timezone", vec![time_zone, timestamp]),
            Ast::Extract { field, syntax: ExtractSyntax::From, expr } => {
                let field = match field {
                    DateTimeField::Custom(ident) => ident.value.clone(),
                    field => field.to_string().to_ascii_lowercase(),
                };
                // The field is a literal without a type, as PostgreSQL's grammar makes it.
                let field = Typed { ty: SqlType::UNKNOWN, ..word(&field, at) };
                let value = self.expr(expr, scope)?;
                return self.system_call("extract", vec![field, value], at);
            }
            _ => return Err(self.unsupported_expr(ast)),
        };
        let mut args = Vec::with_capacity(asts.len());
        for ast in &asts {
            args.push(self.expr(ast, scope)?);
        }
        let is_plain =
            matches!(ast, Ast::Ceil { .. } | Ast::Floor { .. }) || matches!(ast, Ast::Substring { special: true, .. });
        if is_plain {
            return self.call(name, Arguments::of(args), at);
        }
        self.system_call(name, args, at)
    }

    /// A call that PostgreSQL's grammar makes of a construct. Errors show the function with its schema, at the
    /// construct.
    fn system_call(&mut self, name: &str, args: Vec<Typed>, at: Location) -> Result<Typed, SqlError> {
        let keyword = match name {
            "btrim" | "ltrim" | "rtrim" => "trim",
            "timezone" => "",
            name => name,
        };
        self.call(&format!("pg_catalog.{name}"), Arguments::of(args), at).map_err(|error| match keyword {
            "" => error,
            keyword => self.operator_at(error, self.position_before(at, keyword)),
        })
    }

    /// `INTERVAL '1' DAY`
    pub(super) fn interval(&mut self, interval: &Interval, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(&interval.value);
        let value = self.expr(&interval.value, scope)?;
        let name = DateTimeField::to_string;
        let fields = match (&interval.leading_field, &interval.last_field) {
            (None, _) => None,
            (Some(first), None) => Some(name(first)),
            (Some(first), Some(last)) => Some(format!("{} TO {}", name(first), name(last))),
        };
        let mut typmod = IntervalTypmod::NONE;
        let precision = interval.fractional_seconds_precision.or(interval.leading_precision);
        let is_plain = fields.is_none() && precision.is_none();
        if let Some(fields) = fields {
            let Some(named) = datetime::IntervalFields::named(&fields) else {
                let message = format!("syntax error at or near \"{fields}\"");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            };
            typmod.fields = named;
        }
        typmod.precision = precision.map(|digits| u8::try_from(digits).unwrap_or(6).min(6));
        let typmod = if is_plain { -1 } else { typmod.encode() };
        let value = self.coerce(value, SqlType { typmod, ..SqlType::INTERVAL }, CastContext::Explicit)?;
        value.ok_or_else(|| self.unsupported("this kind of interval is", at))
    }

    /// Binds LIKE, ILIKE and SIMILAR TO.
    pub(super) fn like_node(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let (words, negated, text, pattern, escape) = match ast {
            Ast::Like { negated, any: false, expr, pattern, escape_char } => {
                (LIKE, *negated, expr, pattern, escape_char)
            }
            Ast::ILike { negated, any: false, expr, pattern, escape_char } => {
                (ILIKE, *negated, expr, pattern, escape_char)
            }
            Ast::SimilarTo { negated, expr, pattern, escape_char } => (SIMILAR, *negated, expr, pattern, escape_char),
            other => return Err(self.unsupported_expr(other)),
        };
        let first_word = if negated { "not" } else { words.word };
        self.refuse_nonassociative(Level::Between, text, Some(pattern), first_word)?;
        let left = self.expr(text, scope)?;
        let mut right = self.expr(pattern, scope)?;
        let at = left.at;
        // A pattern of SIMILAR TO is always made one of a regular expression.
        if escape.is_some() || words.word == SIMILAR.word {
            let mut args = vec![right];
            if let Some(escape) = escape {
                args.push(self.value(escape, false)?);
            }
            right = self.call(words.escape_function, Arguments::of(args), at)?;
        }
        let operator = words.operators[usize::from(negated)];
        self.operator(operator, first_word, left, right, (text, pattern))
    }

    /// `[NOT] OVERLAPS` of two pairs.
    pub(super) fn overlaps(&mut self, left: &[Ast], right: &[Ast], scope: &Scope) -> Result<Typed, SqlError> {
        let at = left.first().map_or(crate::parse::NO_LOCATION, start_of);
        for (side, name) in [(left, "left"), (right, "right")] {
            if side.len() != 2 {
                let message = format!("wrong number of parameters on {name} side of OVERLAPS expression");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
        }
        let mut args = Vec::with_capacity(4);
        for ast in left.iter().chain(right) {
            args.push(self.expr(ast, scope)?);
        }
        self.call("overlaps", Arguments::of(args), at)
    }
}
