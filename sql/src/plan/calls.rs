//! Calls of functions: which one is meant, the conversion of its arguments, and the expression that it becomes.

use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Typed};
use super::rel::SetCall;
use crate::advisory::LockCall;
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{Call, ContextValue, Expr, SequenceCall, SessionCall};
use crate::parse::NO_LOCATION;
use pgtypes::cast::CastContext;
use pgtypes::functions::resolve::{self, Choice, Failure, Given, Source};
use pgtypes::functions::{self, ProcRow, Run};
use pgtypes::{Datum, SqlType};

/// What could not be found.
pub(super) enum Named<'a> {
    /// An operator with its operands, as errors show it, and how many they are.
    Operator(&'a str, usize),
    /// A call, as errors show it.
    Function(&'a str),
}

const NO_OPERATOR_HINT: &str =
    "No operator matches the given name and argument types. You might need to add explicit type casts.";
const NO_PREFIX_HINT: &str =
    "No operator matches the given name and argument type. You might need to add an explicit type cast.";
const OPERATOR_NOT_UNIQUE_HINT: &str =
    "Could not choose a best candidate operator. You might need to add explicit type casts.";
const NO_FUNCTION_HINT: &str =
    "No function matches the given name and argument types. You might need to add explicit type casts.";
const FUNCTION_NOT_UNIQUE_HINT: &str =
    "Could not choose a best candidate function. You might need to add explicit type casts.";

/// PostgreSQL's error for a call that means no function. The caller adds the position.
pub(super) fn failure(failed: &Failure, named: Named<'_>) -> SqlError {
    let missing = |what: &str, shown: &str, hint: &str| {
        SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("{what} does not exist: {shown}")).hint(hint)
    };
    match (failed, named) {
        (Failure::Mismatch(mismatch), _) => {
            let error = SqlError::new(mismatch.code, mismatch.message.clone());
            match &mismatch.detail {
                Some(detail) => error.detail(detail.clone()),
                None => error,
            }
        }
        (Failure::Ambiguous, Named::Operator(shown, _)) => {
            let message = format!("operator is not unique: {shown}");
            SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).hint(OPERATOR_NOT_UNIQUE_HINT)
        }
        (Failure::Ambiguous, Named::Function(shown)) => {
            let message = format!("function {shown} is not unique");
            SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).hint(FUNCTION_NOT_UNIQUE_HINT)
        }
        (_, Named::Operator(shown, 1)) => missing("operator", shown, NO_PREFIX_HINT),
        (_, Named::Operator(shown, _)) => missing("operator", shown, NO_OPERATOR_HINT),
        (_, Named::Function(shown)) => {
            let message = format!("function {shown} does not exist");
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(NO_FUNCTION_HINT)
        }
    }
}

/// The arguments of a call.
pub(super) struct Arguments<'a> {
    /// The values.
    pub(super) values: Vec<Typed>,
    /// The names of the last ones.
    pub(super) names: Vec<&'a str>,
    /// Whether the last one is the array of VARIADIC.
    pub(super) is_variadic: bool,
}

/// The name of a function without its schema, which only errors show.
fn unqualified(name: &str) -> &str {
    name.strip_prefix("pg_catalog.").unwrap_or(name)
}

impl Arguments<'_> {
    /// Arguments by their places.
    pub(super) fn of(values: Vec<Typed>) -> Arguments<'static> {
        Arguments { values, names: Vec::new(), is_variadic: false }
    }

    /// The function of a name that takes them.
    fn resolve(&self, name: &str) -> Result<Choice, Failure> {
        let types: Vec<SqlType> = self.values.iter().map(|arg| arg.ty).collect();
        let is_literal = match self.values.as_slice() {
            [only] => only.ty == SqlType::UNKNOWN && matches!(only.expr, Expr::Const(_)),
            _ => false,
        };
        let given = Given { types: &types, names: &self.names, is_variadic: self.is_variadic, is_literal };
        resolve::function(unqualified(name), given)
    }
}

impl Binder<'_> {
    /// The name of a function without its schema.
    pub(super) fn function_name(&self, name: &ObjectName, at: Location) -> Result<String, SqlError> {
        let mut parts = self.name_parts(name)?;
        let word = parts.pop().unwrap_or_default();
        match parts.as_slice() {
            [] => Ok(word),
            [schema] if schema == "pg_catalog" => Ok(word),
            [schema] if schema == "information_schema" => {
                let name = format!("{schema}.{word}");
                if !functions::named(&name).is_empty() {
                    return Ok(name);
                }
                Err(self.unsupported(&format!("function {schema}.{word} is"), at))
            }
            [schema] => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(self.error(SqlState::INVALID_SCHEMA_NAME, message, at))
            }
            _ => {
                parts.push(word);
                Err(SqlError::far_name(&parts, 3).at(self.position(at)))
            }
        }
    }

    /// Finds the function of a name.
    pub(super) fn choose(&self, name: &str, args: &Arguments<'_>, at: Location) -> Result<Choice, SqlError> {
        args.resolve(name).map_err(|failed| self.no_function(&failed, name, args, at))
    }

    fn no_function(&self, failed: &Failure, name: &str, args: &Arguments<'_>, at: Location) -> SqlError {
        let shown: Vec<String> = args.values.iter().map(|arg| self.type_text(arg.ty)).collect();
        let shown = format!("{name}({})", shown.join(", "));
        let error = failure(failed, Named::Function(&shown));
        // PostgreSQL gives no position to what polymorphic types lack.
        if matches!(failed, Failure::Mismatch(_)) { error } else { error.at(self.position(at)) }
    }

    /// Applies the function of a name to bound arguments. The name may be qualified with `pg_catalog`.
    pub(super) fn call(&mut self, written: &str, args: Arguments<'_>, at: Location) -> Result<Typed, SqlError> {
        let name = unqualified(written);
        if functions::named(name).first().is_some_and(|row| matches!(row.run, Run::Internal)) {
            return Err(self.unsupported(&format!("a call of function {name} is"), at));
        }
        let choice = match (args.resolve(name), args.values.as_slice()) {
            (Ok(choice), _) => choice,
            // The name of a type casts its one argument.
            (Err(Failure::Cast(ty)), [arg]) => {
                let value = self.coerce(arg.clone(), ty, CastContext::Explicit)?;
                return value.ok_or_else(|| self.unsupported("this cast is", at));
            }
            (Err(failed), _) => return Err(self.no_function(&failed, written, &args, at)),
        };
        if args.is_variadic && choice.function.is_variadic && choice.function.args.last() == Some(&SqlType::ANY) {
            return Err(self.unsupported(&format!("VARIADIC of function {name} is"), at));
        }
        if choice.function.returns_set() {
            return self.set_value(name, args, at);
        }
        let (args, types) = self.convert_arguments(args.values, &choice, at)?;
        let expr = self.call_expr(&choice, args, types, at)?;
        Ok(Typed::new(fold(expr), choice.result, at))
    }

    /// A function that returns a set, not in FROM.
    fn set_value(&mut self, name: &str, args: Arguments<'_>, at: Location) -> Result<Typed, SqlError> {
        self.check_set_place(at)?;
        let (mut call, mut ty) = self.set_call(name, args.values, at)?;
        if let SetCall::Set { function, types, width, fields, .. } = &mut call
            && *width > 1
        {
            let row = functions::row_type(function, types);
            let columns = row.and_then(functions::fields_of);
            let (Some(row), Some(columns)) = (row, columns) else {
                return Err(self.unsupported("a function that returns several columns here is", at));
            };
            // Its row is one value.
            (*width, *fields, ty) = (1, Some(columns.into_iter().map(|(_, ty)| ty).collect()), row);
        }
        let is_target = self.clause == "SELECT";
        Ok(Typed::new(self.aggregates.sets.add(call, is_target, at), ty, at))
    }

    /// 0A000 where no function that returns a set may stand.
    fn check_set_place(&self, at: Location) -> Result<(), SqlError> {
        let is_frame = self.aggregates.windows.in_definition;
        let message = match self.clause {
            _ if self.aggregates.sets.allowed => return Ok(()),
            "functions in FROM" => "set-returning functions must appear at top level of FROM".to_owned(),
            _ if is_frame => "set-returning functions are not allowed in window definitions".to_owned(),
            clause => format!("set-returning functions are not allowed in {clause}"),
        };
        Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at))
    }

    /// 0A000 if functions that return sets have been bound since there were `before` of them.
    pub(super) fn refuse_sets(&self, before: usize, message: &str) -> Result<(), SqlError> {
        let sets = &self.aggregates.sets;
        if sets.bound == before {
            return Ok(());
        }
        let error = self.error(SqlState::FEATURE_NOT_SUPPORTED, message, sets.last.unwrap_or(NO_LOCATION));
        Err(error.hint("You might be able to move the set-returning function into a LATERAL FROM item."))
    }

    /// Converts the arguments of a call: their expressions and types in the order of the function.
    pub(super) fn convert_arguments(
        &mut self,
        given: Vec<Typed>,
        choice: &Choice,
        at: Location,
    ) -> Result<(Vec<Expr>, Vec<SqlType>), SqlError> {
        let mut given: Vec<Option<Typed>> = given.into_iter().map(Some).collect();
        let (mut args, mut types) = (Vec::with_capacity(choice.args.len()), Vec::with_capacity(choice.args.len()));
        for (source, ty) in &choice.args {
            let value = match source {
                Source::Given(place) => given.get_mut(*place).and_then(Option::take),
                Source::Default(text) => Some(Typed::new(
                    Expr::Const(text.map_or(Datum::Null, |text| Datum::Text(text.into()))),
                    SqlType::UNKNOWN,
                    at,
                )),
            };
            let value = value.ok_or_else(|| self.unsupported("this function call is", at))?;
            let value = self.coerce(value, *ty, CastContext::Implicit)?;
            let value = value.ok_or_else(|| self.unsupported("this function call is", at))?;
            self.note_untyped(&value);
            args.push(value.expr);
            types.push(if ty.oid == SqlType::ANY.oid { value.ty } else { *ty });
        }
        if let Some((first, array)) = choice.collected {
            let element = array.element().unwrap_or(SqlType::UNKNOWN);
            let items = args.split_off(first);
            args.push(fold(Expr::Array { element, items, is_nested: false }));
            types.truncate(first);
            types.push(array);
        }
        Ok((args, types))
    }

    /// The expression of a call.
    fn call_expr(&self, choice: &Choice, args: Vec<Expr>, types: Vec<SqlType>, at: Location) -> Result<Expr, SqlError> {
        let function = choice.function;
        match function.run {
            Run::Scalar(_) => Ok(Expr::Call(Call { function, operator: None, args, types, result: choice.result })),
            Run::Session => Ok(match session_value(function) {
                SessionValue::Context(value) => Expr::Context(value),
                SessionValue::Call(call) => Expr::Session { call, args },
            }),
            _ => Err(self.unsupported(&format!("function {} here is", function.name), at)),
        }
    }
}

enum SessionValue {
    Context(ContextValue),
    Call(SessionCall),
}

/// What a function of the session becomes.
fn session_value(function: &ProcRow) -> SessionValue {
    if let Some(call) = LockCall::named(function.name) {
        return SessionValue::Call(SessionCall::Advisory(call));
    }
    if let Some(call) = SequenceCall::named(function.name) {
        return SessionValue::Call(SessionCall::Sequence(call));
    }
    match function.name {
        "current_user" | "session_user" => SessionValue::Context(ContextValue::User),
        "current_database" => SessionValue::Context(ContextValue::Database),
        "current_schema" => SessionValue::Context(ContextValue::Schema),
        "version" => SessionValue::Context(ContextValue::Version),
        "pg_backend_pid" => SessionValue::Context(ContextValue::BackendPid),
        "current_setting" => SessionValue::Call(SessionCall::CurrentSetting),
        "set_config" => SessionValue::Call(SessionCall::SetConfig),
        "pg_cancel_backend" => SessionValue::Call(SessionCall::CancelBackend),
        "pg_terminate_backend" => SessionValue::Call(SessionCall::TerminateBackend),
        "pg_blocking_pids" => SessionValue::Call(SessionCall::BlockingPids),
        "pg_sleep" => SessionValue::Call(SessionCall::Sleep),
        "pg_sleep_for" => SessionValue::Call(SessionCall::SleepFor),
        "pg_sleep_until" => SessionValue::Call(SessionCall::SleepUntil),
        _ => SessionValue::Call(SessionCall::System(function.oid)),
    }
}
