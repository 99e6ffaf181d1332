//! Conditions as PostgreSQL writes them back: all parentheses, and the casts that it has added.
//!
//! What is written is bound part by part, as the condition itself is, so that the types of all operands are known. The
//! caller binds the text that comes out again, and keeps it only if it means the same. What is not known here has no
//! such text.

use sqlparser::ast::{
    BinaryOperator, CastKind, Expr as Ast, Function as CallAst, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator,
};

use super::bind_expr::literal;
use super::binder::{Binder, Scope};
use super::operators::symbol_of;
use crate::catalog::NamedType;
use crate::expr::Expr;
use crate::parse::NO_LOCATION;
use crate::table::quote_identifier;
use pgtypes::functions::resolve::{self, Choice, Given, Source};
use pgtypes::functions::{Run, common_type};
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone, wire};

/// A condition as PostgreSQL writes it.
pub(super) struct Normal {
    pub(super) text: String,
    /// Whether a list of IN is an array in it: then it is bound to another expression than the condition.
    pub(super) has_list: bool,
}

/// A part: its text and its type. A literal without a type has its value.
struct Part {
    text: String,
    ty: SqlType,
    literal: Option<Box<str>>,
}

impl Part {
    fn new(text: String, ty: SqlType) -> Part {
        Part { text, ty, literal: None }
    }

    fn condition(text: String) -> Part {
        Part::new(text, SqlType::BOOL)
    }

    /// As PostgreSQL writes it where a type is wanted.
    fn converted(self, to: SqlType) -> Option<String> {
        let to = to.base();
        if let Some(literal) = self.literal {
            let zone = TimeZone::utc();
            let env = IoEnv::new(&zone, Now(0));
            let value = wire::parse(to, &literal, &env).ok()?;
            return Some(constant(&wire::show(&value, to, &env), to));
        }
        if self.ty == SqlType::UNKNOWN {
            return Some(typed_null(to));
        }
        if self.ty.base() == to {
            return Some(self.text);
        }
        Some(format!("({})::{}", self.text, to.name()))
    }
}

/// NULL of a type.
pub(super) fn typed_null(ty: SqlType) -> String {
    match ty.base() {
        // Without a modifier it is not `character(1)`.
        SqlType::BPCHAR => "NULL::bpchar".to_owned(),
        ty => format!("NULL::{}", ty.name()),
    }
}

/// A constant by the text form of its value.
fn constant(shown: &str, ty: SqlType) -> String {
    let is_digit = shown.starts_with(|c: char| c.is_ascii_digit());
    match ty.base() {
        SqlType::BOOL => (if shown == "t" { "true" } else { "false" }).to_owned(),
        SqlType::INT4 if is_digit => shown.to_owned(),
        SqlType::NUMERIC if is_digit && shown.contains('.') => shown.to_owned(),
        SqlType::UNKNOWN => format!("'{}'", shown.replace('\'', "''")),
        // Without a modifier it is not `character(1)`.
        SqlType::BPCHAR => format!("'{}'::bpchar", shown.replace('\'', "''")),
        ty => format!("'{}'::{}", shown.replace('\'', "''"), ty.name()),
    }
}

impl Binder<'_> {
    /// The text of a condition over the columns of a scope; `None` if it is not known how PostgreSQL writes it.
    pub(super) fn normal_text(&mut self, ast: &Ast, scope: &Scope) -> Option<Normal> {
        let mut deparser = Deparser { binder: self, scope, has_list: false };
        let text = deparser.part(ast)?.converted(SqlType::BOOL)?;
        Some(Normal { text, has_list: deparser.has_list })
    }

    /// The text of a DEFAULT for a column of a type; `None` if it is not known how PostgreSQL writes it. The cast to
    /// the column's type does not show.
    pub(super) fn normal_default(&mut self, ast: &Ast, ty: SqlType) -> Option<String> {
        self.normal_value(ast, &Scope::default(), ty)
    }

    /// The same of a value over the columns of a scope.
    pub(super) fn normal_value(&mut self, ast: &Ast, scope: &Scope, ty: SqlType) -> Option<String> {
        let part = Deparser { binder: self, scope, has_list: false }.part(ast)?;
        if part.ty == SqlType::UNKNOWN { part.converted(ty) } else { Some(part.text) }
    }
}

struct Deparser<'d, 'b> {
    binder: &'d mut Binder<'b>,
    scope: &'d Scope,
    has_list: bool,
}

impl Deparser<'_, '_> {
    fn part(&mut self, ast: &Ast) -> Option<Part> {
        match ast {
            Ast::Nested(inner) => self.part(inner),
            Ast::Identifier(_) | Ast::CompoundIdentifier(_) => self.column(ast),
            Ast::Value(_) | Ast::TypedString(_) => self.value(ast),
            Ast::UnaryOp { op: UnaryOperator::Minus, .. } if literal(ast).is_some() => self.value(ast),
            Ast::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => {
                let part = self.part(expr)?;
                let (_, choice) = resolve::prefix(&op.to_string(), part.ty).ok()?;
                let (_, ty) = choice.args.first()?;
                Some(Part::new(format!("({op} {})", part.converted(*ty)?), choice.result))
            }
            Ast::UnaryOp { op: UnaryOperator::Not, expr } => {
                Some(Part::condition(format!("(NOT {})", self.condition(expr)?)))
            }
            Ast::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => self.logical(ast, op),
            Ast::BinaryOp { left, op, right } => {
                let (left, right) = (self.part(left)?, self.part(right)?);
                self.operator(symbol_of(op)?, left, right)
            }
            Ast::IsNull(expr) => Some(Part::condition(format!("({} IS NULL)", self.plain(expr)?))),
            Ast::IsNotNull(expr) => Some(Part::condition(format!("({} IS NOT NULL)", self.plain(expr)?))),
            Ast::IsTrue(expr) => Some(Part::condition(format!("({} IS TRUE)", self.condition(expr)?))),
            Ast::IsNotTrue(expr) => Some(Part::condition(format!("({} IS NOT TRUE)", self.condition(expr)?))),
            Ast::IsFalse(expr) => Some(Part::condition(format!("({} IS FALSE)", self.condition(expr)?))),
            Ast::IsNotFalse(expr) => Some(Part::condition(format!("({} IS NOT FALSE)", self.condition(expr)?))),
            Ast::Between { expr, negated, low, high } => {
                let (first, second, word) = if *negated { ("<", ">", "OR") } else { (">=", "<=", "AND") };
                let (value, low) = (self.part(expr)?, self.part(low)?);
                let low = self.operator(first, value, low)?;
                let (value, high) = (self.part(expr)?, self.part(high)?);
                let high = self.operator(second, value, high)?;
                Some(Part::condition(format!("({} {word} {})", low.text, high.text)))
            }
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Ast::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let (value, pattern) = (self.part(expr)?, self.part(pattern)?);
                self.operator(if *negated { "!~~" } else { "~~" }, value, pattern)
            }
            Ast::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                let (value, pattern) = (self.part(expr)?, self.part(pattern)?);
                self.operator(if *negated { "!~~*" } else { "~~*" }, value, pattern)
            }
            Ast::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, format: None } => {
                let NamedType { ty, domain } = self.binder.type_named(data_type, NO_LOCATION).ok()?;
                let part = self.part(expr)?;
                // A length is a call of a function of its own.
                (ty.typmod == -1 && domain.is_none()).then_some(())?;
                Some(Part::new(part.converted(ty)?, ty))
            }
            Ast::Function(call) => self.call(call),
            _ => None,
        }
    }

    fn condition(&mut self, ast: &Ast) -> Option<String> {
        self.part(ast)?.converted(SqlType::BOOL)
    }

    /// A part whose type nothing else decides.
    fn plain(&mut self, ast: &Ast) -> Option<String> {
        let part = self.part(ast)?;
        let ty = if part.ty == SqlType::UNKNOWN { SqlType::TEXT } else { part.ty };
        part.converted(ty)
    }

    fn column(&mut self, ast: &Ast) -> Option<Part> {
        let bound = self.binder.expr(ast, self.scope).ok()?;
        let Expr::Column(place) = bound.expr else { return None };
        let (_, _, column) = self.scope.columns().find(|(at, ..)| *at == place)?;
        Some(Part::new(quote_identifier(&column.name), bound.ty))
    }

    fn value(&mut self, ast: &Ast) -> Option<Part> {
        let bound = self.binder.expr(ast, self.scope).ok()?;
        let Expr::Const(value) = bound.expr else { return None };
        Some(match (value, bound.ty) {
            (Datum::Null, _) => Part { text: "NULL".to_owned(), ty: SqlType::UNKNOWN, literal: None },
            (Datum::Text(text), SqlType::UNKNOWN) => {
                Part { text: String::new(), ty: SqlType::UNKNOWN, literal: Some(text) }
            }
            (value, ty) => {
                let zone = TimeZone::utc();
                let shown = wire::show(&value, ty, &IoEnv::new(&zone, Now(0)));
                Part::new(constant(&shown, ty), ty)
            }
        })
    }

    /// A chain of ANDs or of ORs.
    fn logical(&mut self, ast: &Ast, chain: &BinaryOperator) -> Option<Part> {
        let mut operands = Vec::new();
        let mut rest = ast;
        loop {
            match rest {
                Ast::BinaryOp { left, op, right } if op == chain => {
                    operands.push(&**right);
                    rest = left;
                }
                // The left side of a chain is a part of it, in parentheses too.
                Ast::Nested(inner) if matches!(&**inner, Ast::BinaryOp { op, .. } if op == chain) => rest = inner,
                _ => break,
            }
        }
        operands.push(rest);
        let shown =
            operands.into_iter().rev().map(|operand| self.condition(operand)).collect::<Option<Vec<String>>>()?;
        let word = if *chain == BinaryOperator::And { " AND " } else { " OR " };
        Some(Part::condition(format!("({})", shown.join(word))))
    }

    fn operator(&mut self, symbol: &str, left: Part, right: Part) -> Option<Part> {
        let (_, choice) = resolve::binary(symbol, left.ty, right.ty).ok()?;
        let [(_, first), (_, second)] = choice.args.as_slice() else { return None };
        let text = format!("({} {symbol} {})", left.converted(*first)?, right.converted(*second)?);
        Some(Part::new(text, choice.result))
    }

    /// `a IN (1, 2)` is `a = ANY (ARRAY[1, 2])`.
    fn in_list(&mut self, expr: &Ast, list: &[Ast], negated: bool) -> Option<Part> {
        let (symbol, word) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        let value = self.part(expr)?;
        let items = list.iter().map(|item| self.part(item)).collect::<Option<Vec<Part>>>()?;
        // Those that depend on the row are comparisons of their own.
        if !list.iter().all(|item| matches!(item, Ast::Value(_)) || literal(item).is_some()) {
            return None;
        }
        let items = match <[Part; 1]>::try_from(items) {
            Ok([only]) => return self.operator(symbol, value, only),
            Err(items) => items,
        };
        let types: Vec<SqlType> = std::iter::once(value.ty).chain(items.iter().map(|item| item.ty)).collect();
        let common = common_type(&types).ok()?.base();
        let (_, choice) = resolve::binary(symbol, value.ty, common).ok()?;
        let [(_, first), (_, second)] = choice.args.as_slice() else { return None };
        let items = items.into_iter().map(|item| item.converted(common)).collect::<Option<Vec<String>>>()?;
        self.has_list = true;
        let array = format!("ARRAY[{}]", items.join(", "));
        let array = match second.base() == common {
            true => array,
            false => format!("({array})::{}", second.array()?.name()),
        };
        Some(Part::condition(format!("({} {symbol} {word} ({array}))", value.converted(*first)?)))
    }

    fn call(&mut self, call: &CallAst) -> Option<Part> {
        if matches!(call.args, FunctionArguments::None) {
            // A word of SQL: CURRENT_DATE.
            let ty = self.binder.expr(&Ast::Function(call.clone()), self.scope).ok()?.ty;
            return Some(Part::new(call.name.to_string().to_ascii_uppercase(), ty));
        }
        let FunctionArguments::List(list) = &call.args else { return None };
        let is_plain = call.over.is_none()
            && call.filter.is_none()
            && call.within_group.is_empty()
            && list.clauses.is_empty()
            && list.duplicate_treatment.is_none();
        is_plain.then_some(())?;
        let name = self.binder.function_name(&call.name, NO_LOCATION).ok()?;
        let mut parts = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) = arg else { return None };
            parts.push(self.part(ast)?);
        }
        let types: Vec<SqlType> = parts.iter().map(|part| part.ty).collect();
        let construct = match name.as_str() {
            "coalesce" => "COALESCE",
            "greatest" => "GREATEST",
            "least" => "LEAST",
            _ => "",
        };
        if !construct.is_empty() {
            let common = common_type(&types).ok()?.base();
            let shown = parts.into_iter().map(|part| part.converted(common)).collect::<Option<Vec<String>>>()?;
            return Some(Part::new(format!("{construct}({})", shown.join(", ")), common));
        }
        let given = Given { types: &types, names: &[], is_variadic: false, is_literal: false };
        let choice: Choice = resolve::function(&name, given).ok()?;
        let is_scalar = matches!(choice.function.run, Run::Scalar(_));
        (is_scalar && choice.collected.is_none() && choice.args.len() == parts.len()).then_some(())?;
        let mut shown = Vec::with_capacity(parts.len());
        for (part, (source, ty)) in parts.into_iter().zip(&choice.args) {
            matches!(source, Source::Given(_)).then_some(())?;
            shown.push(part.converted(*ty)?);
        }
        Some(Part::new(format!("{}({})", quote_identifier(&name), shown.join(", ")), choice.result))
    }
}
