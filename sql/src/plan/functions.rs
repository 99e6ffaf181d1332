//! Function calls: resolution by name and argument types, and calls with special syntax.

use sqlparser::ast::{
    CeilFloorKind, DateTimeField, DuplicateTreatment, Expr as Ast, Function as Call, FunctionArg, FunctionArgExpr,
    FunctionArguments, Spanned, TrimWhereField, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::aggregate::{self, AggregateCall, AggregateKind};
use super::binder::{Binder, Scope, Typed};
use super::coerce::Unified;
use super::comparison::SharedOperands;
use super::node::Notice;
use super::operators::Operands;
use crate::advisory::{Action, Level, LockCall};
use crate::error::{SqlError, SqlState};
use crate::expr::eval::fold;
use crate::expr::{CompareOp, ContextValue, Expr, Function, SessionCall};
use crate::lock_name::Mode;
use crate::parse::start_of;
use pgtypes::cast::{CastContext, cast_context};
use pgtypes::{Datum, SqlType};

/// A function signature.
struct Signature {
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
    target: Target,
}

/// What a call becomes.
#[derive(Clone, Copy)]
enum Target {
    /// A function of its arguments.
    Scalar(Function),
    /// A function of the session.
    Session(SessionCall),
}

const fn f(name: &'static str, args: &'static [SqlType], result: SqlType, function: Function) -> Signature {
    Signature { name, args, result, target: Target::Scalar(function) }
}

const fn s(name: &'static str, args: &'static [SqlType], result: SqlType, call: SessionCall) -> Signature {
    Signature { name, args, result, target: Target::Session(call) }
}

/// A function of advisory locks.
const fn a(args: &'static [SqlType], result: SqlType, (action, mode, level): (Action, Mode, Level)) -> Signature {
    let call = LockCall { action, mode, level };
    Signature { name: call.function(), args, result, target: Target::Session(SessionCall::Advisory(call)) }
}

const BIG: &[SqlType] = &[SqlType::INT8];
const PAIR: &[SqlType] = &[SqlType::INT4, SqlType::INT4];

/// The scalar functions with fixed argument lists. In ties the first overload wins.
static SIGNATURES: &[Signature] = &[
    f("abs", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Abs(SqlType::FLOAT8)),
    f("abs", &[SqlType::INT8], SqlType::INT8, Function::Abs(SqlType::INT8)),
    f("abs", &[SqlType::INT4], SqlType::INT4, Function::Abs(SqlType::INT4)),
    f("abs", &[SqlType::INT2], SqlType::INT2, Function::Abs(SqlType::INT2)),
    f("mod", &[SqlType::INT4, SqlType::INT4], SqlType::INT4, Function::Mod(SqlType::INT4)),
    f("mod", &[SqlType::INT8, SqlType::INT8], SqlType::INT8, Function::Mod(SqlType::INT8)),
    f("mod", &[SqlType::INT2, SqlType::INT2], SqlType::INT2, Function::Mod(SqlType::INT2)),
    f("sign", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Sign),
    f("round", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Round),
    f("floor", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Floor),
    f("ceil", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Ceil),
    f("ceiling", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Ceil),
    f("trunc", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Trunc),
    f("sqrt", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Sqrt),
    f("exp", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Exp),
    f("ln", &[SqlType::FLOAT8], SqlType::FLOAT8, Function::Ln),
    f("power", &[SqlType::FLOAT8, SqlType::FLOAT8], SqlType::FLOAT8, Function::Power),
    f("pow", &[SqlType::FLOAT8, SqlType::FLOAT8], SqlType::FLOAT8, Function::Power),
    f("length", &[SqlType::TEXT], SqlType::INT4, Function::Length),
    f("length", &[SqlType::BYTEA], SqlType::INT4, Function::OctetLength),
    f("char_length", &[SqlType::TEXT], SqlType::INT4, Function::Length),
    f("character_length", &[SqlType::TEXT], SqlType::INT4, Function::Length),
    f("octet_length", &[SqlType::TEXT], SqlType::INT4, Function::OctetLength),
    f("octet_length", &[SqlType::BYTEA], SqlType::INT4, Function::OctetLength),
    f("lower", &[SqlType::TEXT], SqlType::TEXT, Function::Lower),
    f("upper", &[SqlType::TEXT], SqlType::TEXT, Function::Upper),
    f("substr", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::Substring),
    f("substr", &[SqlType::TEXT, SqlType::INT4, SqlType::INT4], SqlType::TEXT, Function::Substring),
    f("substring", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::Substring),
    f("substring", &[SqlType::TEXT, SqlType::INT4, SqlType::INT4], SqlType::TEXT, Function::Substring),
    f("substr", &[SqlType::BYTEA, SqlType::INT4], SqlType::BYTEA, Function::SubstringBytes),
    f("substr", &[SqlType::BYTEA, SqlType::INT4, SqlType::INT4], SqlType::BYTEA, Function::SubstringBytes),
    f("substring", &[SqlType::BYTEA, SqlType::INT4], SqlType::BYTEA, Function::SubstringBytes),
    f("substring", &[SqlType::BYTEA, SqlType::INT4, SqlType::INT4], SqlType::BYTEA, Function::SubstringBytes),
    f("btrim", &[SqlType::TEXT], SqlType::TEXT, Function::TrimBoth),
    f("btrim", &[SqlType::TEXT, SqlType::TEXT], SqlType::TEXT, Function::TrimBoth),
    f("ltrim", &[SqlType::TEXT], SqlType::TEXT, Function::TrimLeft),
    f("ltrim", &[SqlType::TEXT, SqlType::TEXT], SqlType::TEXT, Function::TrimLeft),
    f("rtrim", &[SqlType::TEXT], SqlType::TEXT, Function::TrimRight),
    f("rtrim", &[SqlType::TEXT, SqlType::TEXT], SqlType::TEXT, Function::TrimRight),
    f("left", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::Left),
    f("right", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::Right),
    f("repeat", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::Repeat),
    f("replace", &[SqlType::TEXT, SqlType::TEXT, SqlType::TEXT], SqlType::TEXT, Function::Replace),
    f("reverse", &[SqlType::TEXT], SqlType::TEXT, Function::Reverse),
    f("strpos", &[SqlType::TEXT, SqlType::TEXT], SqlType::INT4, Function::Strpos),
    f("lpad", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::PadLeft),
    f("lpad", &[SqlType::TEXT, SqlType::INT4, SqlType::TEXT], SqlType::TEXT, Function::PadLeft),
    f("rpad", &[SqlType::TEXT, SqlType::INT4], SqlType::TEXT, Function::PadRight),
    f("rpad", &[SqlType::TEXT, SqlType::INT4, SqlType::TEXT], SqlType::TEXT, Function::PadRight),
    f("starts_with", &[SqlType::TEXT, SqlType::TEXT], SqlType::BOOL, Function::StartsWith),
    f("ascii", &[SqlType::TEXT], SqlType::INT4, Function::Ascii),
    f("chr", &[SqlType::INT4], SqlType::TEXT, Function::Chr),
    s("current_setting", &[SqlType::TEXT], SqlType::TEXT, SessionCall::CurrentSetting),
    s("current_setting", &[SqlType::TEXT, SqlType::BOOL], SqlType::TEXT, SessionCall::CurrentSetting),
    s("set_config", &[SqlType::TEXT, SqlType::TEXT, SqlType::BOOL], SqlType::TEXT, SessionCall::SetConfig),
    s("pg_sleep", &[SqlType::FLOAT8], SqlType::VOID, SessionCall::Sleep),
    a(BIG, SqlType::VOID, (Action::Lock, Mode::Exclusive, Level::Session)),
    a(PAIR, SqlType::VOID, (Action::Lock, Mode::Exclusive, Level::Session)),
    a(BIG, SqlType::VOID, (Action::Lock, Mode::Shared, Level::Session)),
    a(PAIR, SqlType::VOID, (Action::Lock, Mode::Shared, Level::Session)),
    a(BIG, SqlType::VOID, (Action::Lock, Mode::Exclusive, Level::Transaction)),
    a(PAIR, SqlType::VOID, (Action::Lock, Mode::Exclusive, Level::Transaction)),
    a(BIG, SqlType::VOID, (Action::Lock, Mode::Shared, Level::Transaction)),
    a(PAIR, SqlType::VOID, (Action::Lock, Mode::Shared, Level::Transaction)),
    a(BIG, SqlType::BOOL, (Action::TryLock, Mode::Exclusive, Level::Session)),
    a(PAIR, SqlType::BOOL, (Action::TryLock, Mode::Exclusive, Level::Session)),
    a(BIG, SqlType::BOOL, (Action::TryLock, Mode::Shared, Level::Session)),
    a(PAIR, SqlType::BOOL, (Action::TryLock, Mode::Shared, Level::Session)),
    a(BIG, SqlType::BOOL, (Action::TryLock, Mode::Exclusive, Level::Transaction)),
    a(PAIR, SqlType::BOOL, (Action::TryLock, Mode::Exclusive, Level::Transaction)),
    a(BIG, SqlType::BOOL, (Action::TryLock, Mode::Shared, Level::Transaction)),
    a(PAIR, SqlType::BOOL, (Action::TryLock, Mode::Shared, Level::Transaction)),
    a(BIG, SqlType::BOOL, (Action::Unlock, Mode::Exclusive, Level::Session)),
    a(PAIR, SqlType::BOOL, (Action::Unlock, Mode::Exclusive, Level::Session)),
    a(BIG, SqlType::BOOL, (Action::Unlock, Mode::Shared, Level::Session)),
    a(PAIR, SqlType::BOOL, (Action::Unlock, Mode::Shared, Level::Session)),
    a(&[], SqlType::VOID, (Action::UnlockAll, Mode::Exclusive, Level::Session)),
];

/// Functions that PostgreSQL has for `numeric` too.
const NUMERIC_FUNCTIONS: &[&str] =
    &["abs", "ceil", "ceiling", "exp", "floor", "ln", "mod", "pow", "power", "round", "sign", "sqrt", "trunc"];

/// Functions that PostgreSQL has for `numeric`, or computes in it, and that do not exist here. A `double precision` is
/// any number; the flag tells whether it may be a `double precision` there.
const MISSING_FUNCTIONS: &[(&str, &[SqlType], bool)] = &[
    ("div", &[SqlType::FLOAT8, SqlType::FLOAT8], false),
    ("factorial", &[SqlType::INT8], false),
    ("gcd", &[SqlType::FLOAT8, SqlType::FLOAT8], false),
    ("lcm", &[SqlType::FLOAT8, SqlType::FLOAT8], false),
    ("log", &[SqlType::FLOAT8], true),
    ("log", &[SqlType::FLOAT8, SqlType::FLOAT8], false),
    ("log10", &[SqlType::FLOAT8], true),
    ("min_scale", &[SqlType::FLOAT8], false),
    ("round", &[SqlType::FLOAT8, SqlType::INT4], false),
    ("scale", &[SqlType::FLOAT8], false),
    ("stddev", &[SqlType::FLOAT8], true),
    ("stddev_pop", &[SqlType::FLOAT8], true),
    ("stddev_samp", &[SqlType::FLOAT8], true),
    ("to_char", &[SqlType::FLOAT8, SqlType::TEXT], true),
    ("trim_scale", &[SqlType::FLOAT8], false),
    ("trunc", &[SqlType::FLOAT8, SqlType::INT4], false),
    ("var_pop", &[SqlType::FLOAT8], true),
    ("var_samp", &[SqlType::FLOAT8], true),
    ("variance", &[SqlType::FLOAT8], true),
    ("width_bucket", &[SqlType::FLOAT8, SqlType::FLOAT8, SqlType::FLOAT8, SqlType::INT4], true),
];

/// Functions of types that do not exist here, with the syntax of values.
const MISSING_VALUES: &[&str] = &["current_date", "current_time", "localtime", "localtimestamp"];

const NO_FUNCTION_HINT: &str =
    "No function matches the given name and argument types. You might need to add explicit type casts.";

impl Binder<'_> {
    /// Binds a call in ordinary syntax, or a keyword such as `current_user`.
    pub(super) fn function(&mut self, call: &Call, scope: &Scope) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        let mut parts = self.name_parts(&call.name)?;
        let name = parts.pop().unwrap_or_default();
        if parts.iter().any(|schema| schema != "pg_catalog") {
            let message = format!("schema \"{}\" does not exist", parts.join("."));
            return Err(self.error(SqlState::INVALID_SCHEMA_NAME, message, at));
        }
        if call.over.is_some() {
            return Err(self.unsupported("window functions are", at));
        }
        if !call.within_group.is_empty() || call.null_treatment.is_some() || call.parameters != FunctionArguments::None
        {
            return Err(self.unsupported("this form of function call is", at));
        }
        let (asts, star, distinct) = self.arguments(&call.args, at)?;
        if aggregate::is_aggregate(&name) {
            return self.aggregate(&name, call, (&asts, star, distinct), scope);
        }
        if star || distinct || call.filter.is_some() {
            let message = format!("DISTINCT specified, but {name} is not an aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        if MISSING_VALUES.contains(&&*name) {
            return Err(self.unsupported(&format!("{name} is"), at));
        }
        if name == "current_timestamp" && matches!(call.args, FunctionArguments::List(_)) {
            return self.rounded_timestamp(&asts, at);
        }
        if let Some(context) = context_value(&name, asts.len()) {
            let ty = match context {
                ContextValue::Now => SqlType::TIMESTAMPTZ,
                ContextValue::BackendPid => SqlType::INT4,
                _ => SqlType::TEXT,
            };
            return Ok(Typed::new(Expr::Context(context), ty, at));
        }
        let mut args = Vec::with_capacity(asts.len());
        for ast in &asts {
            args.push(self.expr(ast, scope)?);
        }
        self.call(&name, args, &asts, at)
    }

    /// Applies a function to bound arguments.
    fn call(&mut self, name: &str, args: Vec<Typed>, asts: &[&Ast], at: Location) -> Result<Typed, SqlError> {
        let args: Vec<Typed> = args.into_iter().map(|arg| self.refresh_type(arg)).collect();
        match (name, args.len()) {
            ("coalesce", 1..) => {
                let Unified { exprs, ty, numeric } = self.unify(args, "COALESCE")?;
                return Ok(Typed::new(fold(Expr::Coalesce(exprs)), ty, at).numeric(numeric));
            }
            ("greatest" | "least", 1..) => {
                let greatest = name == "greatest";
                let Unified { exprs: items, ty, numeric } =
                    self.unify(args, if greatest { "GREATEST" } else { "LEAST" })?;
                return Ok(Typed::new(fold(Expr::Extreme { greatest, items }), ty, at).numeric(numeric));
            }
            ("pg_typeof", 1) => return self.type_of(&args[0], at),
            ("nullif", 2) => return self.nullif(args, (asts[0], asts[1]), at),
            ("concat", 1..) => return self.concat_any(Function::Concat, args, at),
            ("concat_ws", 2..) => return self.concat_any(Function::ConcatWs, args, at),
            _ => {}
        }
        let of_numeric =
            args.iter().any(|arg| arg.numeric) && args.iter().all(|arg| arg.ty.is_number() && !arg.is_float());
        let takes = |signature: &Signature| signature.name == name && signature.args.len() == args.len();
        if of_numeric && NUMERIC_FUNCTIONS.contains(&name) && SIGNATURES.iter().any(takes) {
            return Err(self.needs_numeric(&format!("{name} of a value"), at));
        }
        let Some(chosen) = choose(name, &args) else {
            let types: Vec<&str> = args.iter().map(Typed::type_name).collect();
            let call = format!("function {name}({})", types.join(", "));
            if is_missing(name, &args) {
                return Err(self.unsupported(&format!("{call} is"), at));
            }
            let message = format!("{call} does not exist");
            return Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at).hint(NO_FUNCTION_HINT));
        };
        let mut bound = Vec::with_capacity(args.len());
        for (arg, ty) in args.into_iter().zip(chosen.args) {
            let arg = self.coerce(arg, *ty, CastContext::Implicit)?;
            bound.push(arg.ok_or_else(|| self.unsupported("this function call is", at))?.expr);
        }
        let expr = match chosen.target {
            Target::Scalar(function) => fold(Expr::Call { function, args: bound }),
            Target::Session(call) => Expr::Session { call, args: bound },
        };
        Ok(Typed::new(expr, chosen.result, at))
    }

    /// `current_timestamp(digits)`. The digits are a number in the text, as PostgreSQL's grammar wants it.
    fn rounded_timestamp(&mut self, asts: &[&Ast], at: Location) -> Result<Typed, SqlError> {
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
                error.position = error.position.map(|start| start + "current_timestamp(".len() as u32);
            }
            return Err(error);
        };
        if digits > 6 {
            let message = format!("TIMESTAMP({digits}) WITH TIME ZONE precision reduced to maximum allowed, 6");
            self.notices.push(Notice { code: SqlState::INVALID_PARAMETER_VALUE, message, is_warning: true });
        }
        let function = Function::RoundTimestamp(u8::try_from(digits).unwrap_or(6).min(6));
        let expr = Expr::Call { function, args: vec![Expr::Context(ContextValue::Now)] };
        Ok(Typed::new(expr, SqlType::TIMESTAMPTZ, at))
    }

    /// `pg_typeof(value)`, as text: there is no type `regtype`.
    fn type_of(&self, value: &Typed, at: Location) -> Result<Typed, SqlError> {
        if let (Expr::Param(number), SqlType::UNKNOWN) = (&value.expr, value.ty) {
            let message = format!("could not determine data type of parameter ${}", number + 1);
            return Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message));
        }
        Ok(Typed::new(Expr::Const(Datum::Text(value.type_name().into())), SqlType::TEXT, at))
    }

    /// `NULLIF(a, b)` is CASE WHEN a = b THEN NULL ELSE a END. `a` has its type in the comparison.
    fn nullif(&mut self, mut args: Vec<Typed>, ast: Operands<'_>, at: Location) -> Result<Typed, SqlError> {
        let (Some(right), Some(left)) = (args.pop(), args.pop()) else {
            return Err(self.unsupported("this function call is", at));
        };
        let left = if right.is_decimal() { self.numeric_text(left)? } else { left };
        let float = right.ty == SqlType::FLOAT8;
        let numeric = (left.numeric || right.numeric) && !left.is_float() && !right.is_float();
        if numeric {
            self.keeps_digits(&left, "NULLIF")?;
            if float && left.ty == SqlType::INT8 {
                return Err(self.needs_numeric("NULLIF over bigint and a value", left.at));
            }
        }
        let mut shared = SharedOperands::default();
        let left = self.share(left, &mut shared)?;
        let left = if left.ty == SqlType::UNKNOWN && right.ty == SqlType::UNKNOWN {
            self.resolve_unknown(left)?
        } else {
            left
        };
        let test = self.compare(CompareOp::Eq, left.clone(), right, ast);
        let test = test.map_err(|mut error| {
            error.position = Some(self.position(at));
            error
        })?;
        let left = self.resolve_unknown(left)?;
        let ty = match left.ty {
            ty if ty.is_text() => SqlType::TEXT,
            ty if ty.is_integer() && float => SqlType::FLOAT8,
            ty => ty,
        };
        let left = self.coerce(left, ty, CastContext::Implicit)?;
        let left = left.ok_or_else(|| self.unsupported("this function call is", at))?;
        let branches = vec![(test.expr, Expr::Const(Datum::Null))];
        let expr = Expr::Case { branches, otherwise: Box::new(left.expr) };
        Ok(Typed::new(shared.wrap(expr), ty, at).numeric(numeric))
    }

    fn concat_any(&mut self, function: Function, args: Vec<Typed>, at: Location) -> Result<Typed, SqlError> {
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            // Every type has a text form. A boolean's is `t` here, not the `true` of a cast.
            let arg = self.refresh_type(arg);
            let arg = if arg.ty == SqlType::BOOL {
                fold(Expr::Call { function: Function::BoolText, args: vec![arg.expr] })
            } else {
                let arg = self.coerce(arg, SqlType::TEXT, CastContext::Assignment)?;
                arg.ok_or_else(|| self.unsupported("this function call is", at))?.expr
            };
            bound.push(arg);
        }
        Ok(Typed::new(fold(Expr::Call { function, args: bound }), SqlType::TEXT, at))
    }

    /// The argument expressions, whether they are `*`, and whether they have DISTINCT.
    fn arguments<'e>(&self, args: &'e FunctionArguments, at: Location) -> Result<(Vec<&'e Ast>, bool, bool), SqlError> {
        let list = match args {
            FunctionArguments::None => return Ok((Vec::new(), false, false)),
            FunctionArguments::Subquery(_) => return Err(self.unsupported("subqueries are", at)),
            FunctionArguments::List(list) => list,
        };
        if !list.clauses.is_empty() {
            return Err(self.unsupported("this form of function call is", at));
        }
        let mut asts = Vec::with_capacity(list.args.len());
        let mut star = false;
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) => asts.push(ast),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => star = true,
                _ => return Err(self.unsupported("named arguments are", at)),
            }
        }
        Ok((asts, star, list.duplicate_treatment == Some(DuplicateTreatment::Distinct)))
    }

    /// Binds an aggregate. Records it with the query and returns a column of the aggregation's row.
    fn aggregate(
        &mut self,
        name: &str,
        call: &Call,
        (asts, star, distinct): (&[&Ast], bool, bool),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        if self.aggregates.inside {
            return Err(self.error(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested", at));
        }
        if !self.aggregates.allowed {
            let message = format!("aggregate functions are not allowed in {}", self.clause);
            return Err(self.error(SqlState::GROUPING_ERROR, message, at));
        }
        self.aggregates.inside = true;
        let bound = self.aggregate_parts(call, asts, scope);
        self.aggregates.inside = false;
        let (arg, filter) = bound?;
        let (kind, ty, shown) = match &arg {
            None if star && name == "count" => (AggregateKind::Count, SqlType::INT8, "count"),
            None if name == "count" => {
                let message = "count(*) must be used to call a parameterless aggregate function";
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
            }
            _ => {
                let ty = arg.as_ref().map(|arg| arg.ty);
                match ty.filter(|_| asts.len() == 1).and_then(|ty| aggregate::resolve(name, ty)) {
                    Some(resolved) => resolved,
                    None => {
                        let mut types: Vec<&str> = arg.iter().map(Typed::type_name).collect();
                        for ast in asts.iter().skip(1) {
                            types.push(self.expr(ast, scope)?.type_name());
                        }
                        let message = format!("function {name}({}) does not exist", types.join(", "));
                        return Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at).hint(NO_FUNCTION_HINT));
                    }
                }
            }
        };
        let of_numeric = arg.as_ref().is_some_and(|arg| arg.numeric);
        if of_numeric && matches!(name, "sum" | "avg") {
            return Err(self.needs_numeric(&format!("{name} of a value"), at));
        }
        let sum_of_bigint = kind == AggregateKind::SumInt && arg.as_ref().is_some_and(|arg| arg.ty == SqlType::INT8);
        let extreme = of_numeric && matches!(kind, AggregateKind::Min | AggregateKind::Max);
        if extreme && let Some(arg) = &arg {
            self.keeps_digits(arg, name)?;
        }
        let numeric = extreme || sum_of_bigint || kind == AggregateKind::AvgInt;
        let arg = arg.map(|arg| arg.expr);
        self.aggregates.calls.push(AggregateCall { kind, arg, distinct, filter, name: shown });
        Ok(Typed::new(Expr::Column(self.aggregates.calls.len() - 1), ty, at).numeric(numeric))
    }

    fn aggregate_parts(
        &mut self,
        call: &Call,
        asts: &[&Ast],
        scope: &Scope,
    ) -> Result<(Option<Typed>, Option<Expr>), SqlError> {
        let arg = match asts.first() {
            Some(ast) => {
                let value = self.expr(ast, scope)?;
                Some(self.resolve_unknown(value)?)
            }
            None => None,
        };
        let filter = match &call.filter {
            Some(filter) => Some(self.condition(filter, scope, "FILTER")?),
            None => None,
        };
        Ok((arg, filter))
    }

    /// Binds calls with special syntax.
    pub(super) fn special_function(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(ast);
        let (name, asts): (&str, Vec<&Ast>) = match ast {
            Ast::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => ("ceil", vec![expr]),
            Ast::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                ("floor", vec![expr])
            }
            Ast::Position { expr, r#in } => ("strpos", vec![r#in, expr]),
            Ast::Substring { expr, substring_from: Some(from), substring_for: Some(length), .. } => {
                ("substring", vec![expr, from, length])
            }
            Ast::Substring { expr, substring_from: Some(from), .. } => ("substring", vec![expr, from]),
            Ast::Substring { expr, substring_for: Some(length), .. } => {
                let mut args = vec![self.expr(expr, scope)?];
                args.push(Typed::new(Expr::Const(Datum::Int(1)), SqlType::INT4, at));
                args.push(self.expr(length, scope)?);
                return self.call("substring", args, &[], at);
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
            _ => return Err(self.unsupported("this expression is", at)),
        };
        let mut args = Vec::with_capacity(asts.len());
        for ast in &asts {
            args.push(self.expr(ast, scope)?);
        }
        self.call(name, args, &asts, at)
    }
}

/// Session and transaction values with the syntax of functions.
fn context_value(name: &str, args: usize) -> Option<ContextValue> {
    if args > 0 {
        return None;
    }
    Some(match name {
        "now" | "current_timestamp" | "transaction_timestamp" => ContextValue::Now,
        "current_user" | "session_user" | "user" | "current_role" => ContextValue::User,
        "current_database" | "current_catalog" => ContextValue::Database,
        "current_schema" => ContextValue::Schema,
        "version" => ContextValue::Version,
        "pg_backend_pid" => ContextValue::BackendPid,
        _ => return None,
    })
}

/// Whether PostgreSQL has the function, as in [`MISSING_FUNCTIONS`].
fn is_missing(name: &str, args: &[Typed]) -> bool {
    MISSING_FUNCTIONS.iter().any(|(missing, types, takes_floats)| {
        let takes = |(arg, ty): (&Typed, &SqlType)| {
            let is_implicit = arg.ty == SqlType::UNKNOWN || cast_context(arg.ty, *ty) == Some(CastContext::Implicit);
            is_implicit && (*takes_floats || !arg.is_float())
        };
        *missing == name && types.len() == args.len() && args.iter().zip(*types).all(takes)
    })
}

/// The overload with the fewest conversions.
fn choose(name: &str, args: &[Typed]) -> Option<&'static Signature> {
    let fits = |signature: &&Signature| {
        signature.name == name
            && signature.args.len() == args.len()
            && args.iter().zip(signature.args).all(|(arg, ty)| cast_context(arg.ty, *ty) == Some(CastContext::Implicit))
    };
    let exact = |signature: &Signature| {
        args.iter()
            .zip(signature.args)
            .filter(|(arg, ty)| arg.ty.base() == **ty || (arg.ty.is_text() && ty.is_text()))
            .count()
    };
    // `max_by_key` returns the last maximum; the table lists the preferred overload first.
    SIGNATURES.iter().filter(fits).rev().max_by_key(|signature| exact(signature))
}
