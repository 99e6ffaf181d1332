//! Binding of window functions: calls with OVER, the windows of WINDOW, frames.
//!
//! Calls are bound where they stand, over the source's row, and leave a placeholder. When the groups of the query are
//! known, the node of the windows is made of them ([`super::windowed`]).

use sqlparser::ast::{
    Expr as Ast, Function as CallAst, FunctionArgumentClause, FunctionArguments, Ident, NamedWindowDefinition,
    NamedWindowExpr, OrderByExpr, Spanned, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Location;

use super::aggregation::{AggregateCall, AggregateOrder};
use super::binder::{Binder, Scope, Typed};
use super::calls::Arguments;
use super::found::{FoundCall, FoundFunction, FoundWindow, NamedWindow};
use super::frames::Places;
use super::functions::ArgumentList;
use super::names::{fold_ident, sort_options};
use super::window::Frame;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::start_of;
use pgtypes::SqlType;
use pgtypes::functions::{self, Run};

/// A window as it is written, with what it takes over of another one.
struct Specified {
    partition: Vec<Expr>,
    order: Vec<AggregateOrder>,
    types: Vec<SqlType>,
    frame: Frame,
}

impl Binder<'_> {
    /// Binds the windows of WINDOW.
    pub(super) fn named_windows(&mut self, asts: &[NamedWindowDefinition], scope: &Scope) -> Result<(), SqlError> {
        for NamedWindowDefinition(name, expr) in asts {
            let (name, at) = (fold_ident(name), name.span.start);
            let NamedWindowExpr::WindowSpec(spec) = expr else {
                return Err(self.unsupported("this form of WINDOW is", at));
            };
            if self.aggregates.windows.named.iter().any(|window| window.name == name) {
                let message = format!("window \"{name}\" is already defined");
                return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(self.places(at, "as").open));
            }
            let places = self.places(at, "as");
            let Specified { partition, order, types, frame } = self.window_spec(spec, scope, places)?;
            let frame = spec.window_frame.is_some().then_some(frame);
            self.aggregates.windows.named.push(NamedWindow { name, partition, order, types, frame });
        }
        Ok(())
    }

    /// Binds a call with OVER.
    pub(super) fn window_call(
        &mut self,
        name: &str,
        (call, over): (&CallAst, &WindowType),
        list: &ArgumentList<'_>,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        self.check_window_place(at)?;
        let rows = functions::named(name);
        let is_aggregate = rows.iter().any(|row| row.is_aggregate());
        let is_window = rows.iter().any(|row| row.is_window());
        self.check_window_form(name, call, list, (is_aggregate, is_window))?;
        let sets = self.aggregates.sets.bound;
        self.aggregates.windows.inside = true;
        let parts = self.window_parts(call, &list.asts, scope);
        self.aggregates.windows.inside = false;
        let (values, filter) = parts?;
        let arguments = Arguments { values, names: Vec::new(), is_variadic: list.is_variadic };
        let choice = self.choose(name, &arguments, at)?;
        if choice.function.is_aggregate() && choice.function.args.is_empty() && !list.star {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        let (args, types) = self.convert_arguments(arguments.values, &choice, at)?;
        let (function, result) = (choice.function, choice.result);
        let function = match function.run {
            Run::Window(kind) => FoundFunction::Own(kind, args),
            Run::Aggregate(_) => FoundFunction::Aggregate(AggregateCall {
                function,
                args,
                types,
                direct: Vec::new(),
                result,
                distinct: false,
                filter,
                order: Vec::new(),
            }),
            Run::OrderedSet(..) => return Err(self.over_ordered_set(name, at)),
            _ => return Err(self.over_other(name, at)),
        };
        self.refuse_sets(sets, "window function calls cannot contain set-returning function calls")?;
        let (window, frame) = self.window_of(over, scope, at)?;
        let state = &mut self.aggregates.windows;
        state.first.get_or_insert(at);
        state.calls.push(FoundCall { window, function, frame });
        Ok(Typed::new(Expr::WindowValue(state.calls.len() - 1), result, at))
    }

    fn check_window_place(&self, at: Location) -> Result<(), SqlError> {
        if self.aggregates.inside {
            let message = "aggregate function calls cannot contain window function calls";
            return Err(self.error(SqlState::GROUPING_ERROR, message, at));
        }
        if self.aggregates.windows.inside {
            return Err(self.error(SqlState::WINDOWING_ERROR, "window function calls cannot be nested", at));
        }
        if self.aggregates.windows.in_definition {
            let message = "window functions are not allowed in window definitions";
            return Err(self.error(SqlState::WINDOWING_ERROR, message, at));
        }
        if !self.aggregates.windows.allowed {
            let message = format!("window functions are not allowed in {}", self.clause);
            return Err(self.error(SqlState::WINDOWING_ERROR, message, at));
        }
        Ok(())
    }

    fn check_window_form(
        &self,
        name: &str,
        call: &CallAst,
        list: &ArgumentList<'_>,
        (is_aggregate, is_window): (bool, bool),
    ) -> Result<(), SqlError> {
        let at = call.name.span().start;
        let missing = |what: &str| self.error(SqlState::FEATURE_NOT_SUPPORTED, what, at);
        if !is_aggregate && !is_window {
            if functions::named(name).is_empty() {
                return Ok(());
            }
            return Err(self.over_other(name, at));
        }
        if list.distinct {
            return Err(missing("DISTINCT is not implemented for window functions"));
        }
        if !call.within_group.is_empty() {
            return Err(self.over_ordered_set(name, at));
        }
        if let FunctionArguments::List(list) = &call.args
            && !list.clauses.is_empty()
        {
            let is_order = list.clauses.iter().all(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
            return Err(match is_order {
                true => missing("aggregate ORDER BY is not implemented for window functions"),
                false => self.unsupported("this form of function call is", at),
            });
        }
        if call.filter.is_some() && !is_aggregate {
            return Err(missing("FILTER is not implemented for non-aggregate window functions"));
        }
        Ok(())
    }

    fn over_ordered_set(&self, name: &str, at: Location) -> SqlError {
        let message = format!("OVER is not supported for ordered-set aggregate {name}");
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at)
    }

    fn over_other(&self, name: &str, at: Location) -> SqlError {
        let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
        self.error(SqlState::WRONG_OBJECT_TYPE, message, at)
    }

    fn window_parts(
        &mut self,
        call: &CallAst,
        asts: &[&Ast],
        scope: &Scope,
    ) -> Result<(Vec<Typed>, Option<Expr>), SqlError> {
        let mut args = Vec::with_capacity(asts.len());
        for ast in asts {
            args.push(self.expr(ast, scope)?);
        }
        Ok((args, self.aggregate_filter(call, scope)?))
    }

    /// The window of a call, and its frame.
    fn window_of(&mut self, over: &WindowType, scope: &Scope, at: Location) -> Result<(usize, Frame), SqlError> {
        let (partition, order, frame) = match over {
            WindowType::NamedWindow(name) => {
                let window = self.named_window(name)?;
                (window.partition.clone(), window.order.clone(), window.frame.clone())
            }
            WindowType::WindowSpec(spec) => {
                let places = self.places(at, "over");
                let Specified { partition, order, frame, .. } = self.window_spec(spec, scope, places)?;
                (partition, order, Some(frame))
            }
        };
        let windows = &mut self.aggregates.windows.found;
        let same = |window: &FoundWindow| window.partition == partition && window.order == order;
        let place = match windows.iter().position(same) {
            Some(place) => place,
            None => {
                windows.push(FoundWindow { partition, order });
                windows.len() - 1
            }
        };
        Ok((place, frame.unwrap_or_else(Frame::default_one)))
    }

    fn named_window(&self, name: &Ident) -> Result<&NamedWindow, SqlError> {
        let (wanted, at) = (fold_ident(name), name.span.start);
        let found = self.aggregates.windows.named.iter().find(|window| window.name == wanted);
        found.ok_or_else(|| self.error(SqlState::UNDEFINED_OBJECT, format!("window \"{wanted}\" does not exist"), at))
    }

    fn window_spec(&mut self, spec: &WindowSpec, scope: &Scope, places: Places) -> Result<Specified, SqlError> {
        let clause = std::mem::replace(&mut self.clause, "window definitions");
        let outer = std::mem::replace(&mut self.aggregates.windows.in_definition, true);
        let bound = self.window_parts_of(spec, scope, places);
        (self.clause, self.aggregates.windows.in_definition) = (clause, outer);
        bound
    }

    fn window_parts_of(&mut self, spec: &WindowSpec, scope: &Scope, places: Places) -> Result<Specified, SqlError> {
        let (mut partition, mut order, mut types) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(name) = &spec.window_name {
            let shown = fold_ident(name);
            let refuse = |what: &str| {
                let message = format!("cannot {what} window \"{shown}\"");
                SqlError::new(SqlState::WINDOWING_ERROR, message).at(places.open)
            };
            let base = self.named_window(name)?;
            if !spec.partition_by.is_empty() {
                return Err(refuse("override PARTITION BY clause of"));
            }
            if !spec.order_by.is_empty() && !base.order.is_empty() {
                return Err(refuse("override ORDER BY clause of"));
            }
            if base.frame.is_some() {
                let error = SqlError {
                    message: format!("cannot copy window \"{shown}\" because it has a frame clause"),
                    ..refuse("copy")
                };
                let is_plain = spec.order_by.is_empty() && spec.window_frame.is_none();
                return Err(match is_plain {
                    true => error.hint("Omit the parentheses in this OVER clause."),
                    false => error,
                });
            }
            (partition, order, types) = (base.partition.clone(), base.order.clone(), base.types.clone());
        }
        for ast in &spec.partition_by {
            let value = self.expr(ast, scope)?;
            let value = self.resolve_unknown(value)?;
            self.check_groupable(value.ty, start_of(ast))?;
            if !partition.contains(&value.expr) {
                partition.push(value.expr);
            }
        }
        for key in &spec.order_by {
            let (key, ty) = self.window_key(key, scope)?;
            order.push(key);
            types.push(ty);
        }
        let frame = match &spec.window_frame {
            Some(frame) => self.frame(frame, (&order, &types), scope, places)?,
            None => Frame::default_one(),
        };
        Ok(Specified { partition, order, types, frame })
    }

    fn window_key(&mut self, key: &OrderByExpr, scope: &Scope) -> Result<(AggregateOrder, SqlType), SqlError> {
        let value = self.expr(&key.expr, scope)?;
        let value = self.resolve_unknown(value)?;
        self.check_sortable(value.ty, start_of(&key.expr))?;
        let (descending, nulls_first) = sort_options(&key.options);
        Ok((AggregateOrder { expr: value.expr, descending, nulls_first }, value.ty))
    }
}
