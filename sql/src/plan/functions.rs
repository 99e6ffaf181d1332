//! Function calls in ordinary syntax, and constructs with the syntax of functions.

use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function as CallAst, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Spanned, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, Typed};
use super::calls::Arguments;
use super::coerce::Unified;
use super::comparison::SharedOperands;
use super::names::fold_ident;
use super::node::Notice;
use super::operators::Operands;
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{CompareOp, ContextValue, Expr};
use crate::parse::{start_of, variadic_argument};
use pgtypes::cast::{Cast, CastContext};
use pgtypes::functions::{self, resolve};
use pgtypes::{Datum, SqlType};

/// The parts of an argument list.
#[derive(Default)]
pub(super) struct ArgumentList<'e> {
    /// The expressions.
    pub(super) asts: Vec<&'e Ast>,
    /// The names of the last ones.
    pub(super) names: Vec<String>,
    /// Whether it is `*`.
    pub(super) star: bool,
    /// Whether it has DISTINCT.
    pub(super) distinct: bool,
    /// Whether it has ORDER BY.
    pub(super) ordered: bool,
    /// Whether the last one follows VARIADIC.
    pub(super) is_variadic: bool,
}

impl Binder<'_> {
    /// Binds a call in ordinary syntax, or a keyword such as `current_user`.
    pub(super) fn function(&mut self, call: &CallAst, scope: &Scope) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        if let FunctionArguments::Subquery(query) = &call.args
            && call.name.to_string().eq_ignore_ascii_case("array")
        {
            return self.array_subquery(query, scope);
        }
        let name = self.function_name(&call.name, at)?;
        if call.null_treatment.is_some() || call.parameters != FunctionArguments::None {
            return Err(self.unsupported("this form of function call is", at));
        }
        let list = self.argument_list(&call.args, at)?;
        if let Some(over) = &call.over {
            return self.window_call(&name, (call, over), &list, scope);
        }
        if functions::named(&name).iter().any(|row| row.is_window()) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        if functions::named(&name).iter().any(|row| row.is_aggregate()) {
            return self.aggregate(&name, call, &list, scope);
        }
        let is_sorted = list.ordered || !call.within_group.is_empty();
        if list.star || list.distinct || is_sorted || call.filter.is_some() {
            let what = match () {
                () if list.star => "(*) specified",
                () if list.distinct => "DISTINCT specified",
                () if list.ordered => "ORDER BY specified",
                () if is_sorted => "WITHIN GROUP specified",
                () => "FILTER specified",
            };
            let message = format!("{what}, but {name} is not an aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        let is_call = matches!(call.args, FunctionArguments::List(_));
        if let Some(value) = self.time_value(&name, is_call, &list.asts, at)? {
            return Ok(value);
        }
        if !is_call && let Some(value) = keyword_value(&name) {
            return Ok(Typed::new(Expr::Context(value), SqlType::NAME, at));
        }
        if name == "row" {
            let values = self.row_items(list.asts.iter().copied(), scope)?;
            return self.row_value(values, at);
        }
        let sets = self.aggregates.sets.bound;
        let mut values = Vec::with_capacity(list.asts.len());
        for ast in &list.asts {
            values.push(self.expr(ast, scope)?);
        }
        if let Some(value) = self.construct(&name, &values, &list.asts, at)? {
            if name == "coalesce" {
                self.refuse_sets(sets, "set-returning functions are not allowed in COALESCE")?;
            }
            return Ok(value);
        }
        let names = list.names.iter().map(String::as_str).collect();
        // Functions of `information_schema` have it in their names.
        let is_shown = call.name.0.len() > 1 && !name.starts_with("information_schema.");
        let written = if is_shown { format!("pg_catalog.{name}") } else { name };
        self.call(&written, Arguments { values, names, is_variadic: list.is_variadic }, at)
    }

    /// The constructs with the syntax of functions.
    fn construct(
        &mut self,
        name: &str,
        values: &[Typed],
        asts: &[&Ast],
        at: Location,
    ) -> Result<Option<Typed>, SqlError> {
        let typed = match (name, values.len()) {
            ("coalesce", 1..) => {
                let Unified { exprs, ty } = self.unify(values.to_vec(), "COALESCE")?;
                Typed::new(fold(Expr::Coalesce(exprs)), ty, at)
            }
            ("greatest" | "least", 1..) => {
                let greatest = name == "greatest";
                let Unified { exprs: items, ty } =
                    self.unify(values.to_vec(), if greatest { "GREATEST" } else { "LEAST" })?;
                Typed::new(fold(Expr::Extreme { greatest, items, ty }), ty, at)
            }
            ("nullif", 2) => self.nullif(values, (asts[0], asts[1]), at)?,
            _ => return Ok(None),
        };
        Ok(Some(typed))
    }

    /// `ROW(a, b)`
    pub(super) fn row_value(&mut self, values: Vec<Typed>, at: Location) -> Result<Typed, SqlError> {
        let (mut types, mut items) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        for value in values {
            let value = self.resolve_unknown(value)?;
            types.push(value.ty);
            items.push(value.expr);
        }
        Ok(Typed::new(fold(Expr::Row { types, items, names: None }), SqlType::RECORD, at))
    }

    /// `current_date`, `localtimestamp(3)` and the like.
    fn time_value(
        &mut self,
        name: &str,
        is_call: bool,
        asts: &[&Ast],
        at: Location,
    ) -> Result<Option<Typed>, SqlError> {
        let ty = match name {
            "current_timestamp" => SqlType::TIMESTAMPTZ,
            "localtimestamp" => SqlType::TIMESTAMP,
            "current_time" => SqlType::TIMETZ,
            "localtime" => SqlType::TIME,
            "current_date" if !is_call => SqlType::DATE,
            _ => return Ok(None),
        };
        let typmod = if is_call { self.time_digits(name, ty, asts, at)? } else { -1 };
        let now = Expr::Context(ContextValue::Now);
        let target = SqlType { typmod, ..ty };
        let expr = match Cast::find(SqlType::TIMESTAMPTZ, target, true) {
            Some(cast) if target != SqlType::TIMESTAMPTZ => Expr::Cast { expr: Box::new(now), cast },
            _ => now,
        };
        Ok(Some(Typed::new(expr, target, at)))
    }

    /// The digits of `current_timestamp(digits)`: a number in the text, as PostgreSQL's grammar wants it.
    fn time_digits(&mut self, name: &str, ty: SqlType, asts: &[&Ast], at: Location) -> Result<i32, SqlError> {
        let digits = match asts {
            [Ast::Value(ValueWithSpan { value: Value::Number(digits, _), .. })] => digits.parse::<u32>().ok(),
            _ => None,
        };
        let Some(digits) = digits else {
            let (found, near) = match asts.first() {
                Some(Ast::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr }) => {
                    let sign = op.to_string();
                    let message = format!("syntax error at or near \"{sign}\"");
                    let position = self.position_before(start_of(expr), &sign);
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
                Some(ast) => (self.statement.text.token_at(start_of(ast)), start_of(ast)),
                None => (")", at),
            };
            let message = format!("syntax error at or near \"{found}\"");
            let mut error = self.error(SqlState::SYNTAX_ERROR, message, near);
            if asts.is_empty() {
                let opening = u32::try_from(name.len() + 1).unwrap_or(0);
                error.position = error.position.map(|start| start + opening);
            }
            return Err(error);
        };
        if digits > 6 {
            let (kind, zone) = match ty {
                SqlType::TIMESTAMPTZ => ("TIMESTAMP", " WITH TIME ZONE"),
                SqlType::TIMETZ => ("TIME", " WITH TIME ZONE"),
                SqlType::TIMESTAMP => ("TIMESTAMP", ""),
                _ => ("TIME", ""),
            };
            let message = format!("{kind}({digits}){zone} precision reduced to maximum allowed, 6");
            self.notices.push(Notice { code: SqlState::INVALID_PARAMETER_VALUE, message, is_warning: true });
        }
        Ok(i32::try_from(digits.min(6)).unwrap_or(6))
    }

    /// `NULLIF(a, b)` is CASE WHEN a = b THEN NULL ELSE a END. `a` has its type in the comparison.
    fn nullif(&mut self, values: &[Typed], ast: Operands<'_>, at: Location) -> Result<Typed, SqlError> {
        let [left, right] = values else { return Err(self.unsupported("this function call is", at)) };
        let ty = match resolve::binary("=", left.ty, right.ty) {
            Ok((_, choice)) => choice.args.first().map_or(left.ty, |(_, ty)| *ty),
            Err(_) => left.ty,
        };
        let mut shared = SharedOperands::default();
        let left = if left.ty == SqlType::UNKNOWN {
            let left = self.coerce(left.clone(), ty, CastContext::Implicit)?;
            left.ok_or_else(|| self.unsupported("this function call is", at))?
        } else {
            left.clone()
        };
        let left = self.share(left, &mut shared)?;
        let test = self.compare(CompareOp::Eq, left.clone(), right.clone(), ast);
        let test = test.map_err(|mut error| {
            error.position = Some(self.position(at));
            error
        })?;
        // Its modifier stays.
        let ty = if left.ty.base() == ty.base() { left.ty } else { ty };
        let left = self.coerce(left, ty, CastContext::Implicit)?;
        let left = left.ok_or_else(|| self.unsupported("this function call is", at))?;
        let branches = vec![(test.expr, Expr::Const(Datum::Null))];
        let expr = Expr::Case { branches, otherwise: Box::new(left.expr) };
        Ok(Typed::new(shared.wrap(expr), left.ty, at))
    }

    /// The arguments of a call that has nothing else.
    pub(super) fn plain_arguments<'e>(&self, call: &'e CallAst) -> Result<Vec<&'e Ast>, SqlError> {
        let at = call.name.span().start;
        let list = self.argument_list(&call.args, at)?;
        let is_plain = list.names.is_empty() && !(list.star || list.distinct || list.ordered || list.is_variadic);
        if !is_plain || call.over.is_some() {
            return Err(self.unsupported("this form of call is", at));
        }
        Ok(list.asts)
    }

    /// The argument expressions of a call.
    fn argument_list<'e>(&self, args: &'e FunctionArguments, at: Location) -> Result<ArgumentList<'e>, SqlError> {
        let mut out = ArgumentList::default();
        let list = match args {
            FunctionArguments::None => return Ok(out),
            FunctionArguments::Subquery(_) => return Err(self.unsupported("a sub-query as an argument list is", at)),
            FunctionArguments::List(list) => list,
        };
        out.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        out.ordered = list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) if out.names.is_empty() && !out.is_variadic => {
                    let collected = variadic_argument(ast);
                    out.is_variadic = collected.is_some();
                    out.asts.push(collected.unwrap_or(ast));
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => out.star = true,
                FunctionArg::Unnamed(_) => {
                    let message = "positional argument cannot follow named argument";
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, arg.span().start));
                }
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(ast), .. } => {
                    out.asts.push(ast);
                    out.names.push(fold_ident(name));
                }
                _ => return Err(self.unsupported("this form of argument is", at)),
            }
        }
        Ok(out)
    }
}

/// Values with the syntax of names.
fn keyword_value(name: &str) -> Option<ContextValue> {
    Some(match name {
        "current_user" | "session_user" | "user" | "current_role" => ContextValue::User,
        "current_catalog" => ContextValue::Database,
        "current_schema" => ContextValue::Schema,
        _ => return None,
    })
}
