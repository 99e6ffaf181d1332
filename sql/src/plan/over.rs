//! Binding of window functions: calls with OVER, the windows of WINDOW, frames.
//!
//! Calls are bound where they stand, over the source's row, and leave a placeholder. When the groups of the query are
//! known, the node of the windows is put between the aggregation and the projection.

use sqlparser::ast::{
    Expr as Ast, Function as CallAst, FunctionArgumentClause, FunctionArguments, Ident, NamedWindowDefinition,
    NamedWindowExpr, OrderByExpr, Spanned, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Location;

use super::aggregation::{AggregateCall, AggregateOrder};
use super::binder::{Binder, Scope, Typed};
use super::calls::Arguments;
use super::found::{FoundCall, FoundFunction, FoundWindow, NamedWindow};
use super::functions::ArgumentList;
use super::names::fold_ident;
use super::rel::{Rel, SelectPlan, SetCall, SortKey, Source, Window, WindowCall, Windows};
use super::window::{Frame, FrameBound, FrameUnits, RangeBound, WindowFunction};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::start_of;
use pgtypes::SqlType;
use pgtypes::cast::CastContext;
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
                return Err(self.error(SqlState::WINDOWING_ERROR, message, at));
            }
            let Specified { partition, order, types, frame } = self.window_spec(spec, scope, at)?;
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
            Run::OrderedSet(..) => {
                let message = format!("OVER is not supported for ordered-set aggregate {name}");
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
            }
            _ => {
                let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
            }
        };
        let (window, frame) = self.window_of(over, scope, at)?;
        let state = &mut self.aggregates.windows;
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
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        if list.distinct {
            return Err(missing("DISTINCT is not implemented for window functions"));
        }
        if !call.within_group.is_empty() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
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
        let filter = match &call.filter {
            Some(filter) => Some(self.condition(filter, scope, "FILTER")?),
            None => None,
        };
        Ok((args, filter))
    }

    /// The window of a call, and its frame.
    fn window_of(&mut self, over: &WindowType, scope: &Scope, at: Location) -> Result<(usize, Frame), SqlError> {
        let (partition, order, frame) = match over {
            WindowType::NamedWindow(name) => {
                let window = self.named_window(name)?;
                (window.partition.clone(), window.order.clone(), window.frame.clone())
            }
            WindowType::WindowSpec(spec) => {
                let Specified { partition, order, frame, .. } = self.window_spec(spec, scope, at)?;
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

    fn window_spec(&mut self, spec: &WindowSpec, scope: &Scope, at: Location) -> Result<Specified, SqlError> {
        let clause = std::mem::replace(&mut self.clause, "window definitions");
        let outer = std::mem::replace(&mut self.aggregates.windows.in_definition, true);
        let bound = self.window_parts_of(spec, scope, at);
        (self.clause, self.aggregates.windows.in_definition) = (clause, outer);
        bound
    }

    fn window_parts_of(&mut self, spec: &WindowSpec, scope: &Scope, at: Location) -> Result<Specified, SqlError> {
        let (mut partition, mut order, mut types) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(name) = &spec.window_name {
            let shown = fold_ident(name);
            let refuse = |what: &str| {
                let message = format!("cannot {what} window \"{shown}\"");
                self.error(SqlState::WINDOWING_ERROR, message, name.span.start)
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
            Some(frame) => self.frame(frame, (&order, &types), scope, at)?,
            None => Frame::default_one(),
        };
        Ok(Specified { partition, order, types, frame })
    }

    fn window_key(&mut self, key: &OrderByExpr, scope: &Scope) -> Result<(AggregateOrder, SqlType), SqlError> {
        let value = self.expr(&key.expr, scope)?;
        let value = self.resolve_unknown(value)?;
        let descending = key.options.asc == Some(false);
        let nulls_first = key.options.nulls_first.unwrap_or(descending);
        Ok((AggregateOrder { expr: value.expr, descending, nulls_first }, value.ty))
    }

    fn frame(
        &mut self,
        ast: &WindowFrame,
        keys: (&[AggregateOrder], &[SqlType]),
        scope: &Scope,
        at: Location,
    ) -> Result<Frame, SqlError> {
        let units = match ast.units {
            WindowFrameUnits::Rows => FrameUnits::Rows,
            WindowFrameUnits::Range => FrameUnits::Range,
            WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        let end = ast.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        let refuse = |binder: &Self, message: &str| Err(binder.error(SqlState::WINDOWING_ERROR, message, at));
        match (&ast.start_bound, end) {
            (WindowFrameBound::Following(None), _) => {
                return refuse(self, "frame start cannot be UNBOUNDED FOLLOWING");
            }
            (_, WindowFrameBound::Preceding(None)) => return refuse(self, "frame end cannot be UNBOUNDED PRECEDING"),
            (WindowFrameBound::CurrentRow, WindowFrameBound::Preceding(_)) => {
                return refuse(self, "frame starting from current row cannot have preceding rows");
            }
            (WindowFrameBound::Following(_), WindowFrameBound::Preceding(_) | WindowFrameBound::CurrentRow) => {
                return refuse(self, "frame starting from following row cannot have preceding rows");
            }
            _ => {}
        }
        if units == FrameUnits::Groups && keys.0.is_empty() {
            return refuse(self, "GROUPS mode requires an ORDER BY clause");
        }
        let start = self.frame_bound(&ast.start_bound, (units, false), keys, scope, at)?;
        let end = self.frame_bound(end, (units, true), keys, scope, at)?;
        Ok(Frame { units, start, end })
    }

    fn frame_bound(
        &mut self,
        ast: &WindowFrameBound,
        (units, is_end): (FrameUnits, bool),
        (order, types): (&[AggregateOrder], &[SqlType]),
        scope: &Scope,
        at: Location,
    ) -> Result<FrameBound, SqlError> {
        let (offset, follows) = match ast {
            WindowFrameBound::CurrentRow => return Ok(FrameBound::Current),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => return Ok(FrameBound::Unbounded),
            WindowFrameBound::Preceding(Some(offset)) => (&**offset, false),
            WindowFrameBound::Following(Some(offset)) => (&**offset, true),
        };
        if units != FrameUnits::Range {
            let clause = if units == FrameUnits::Rows { "ROWS" } else { "GROUPS" };
            let offset = self.row_count(offset, scope, clause)?;
            return Ok(FrameBound::Offset { offset, follows, range: None });
        }
        let ([key], [ty]) = (order, types) else {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(self.error(SqlState::WINDOWING_ERROR, message, at));
        };
        self.range_bound(offset, (follows, is_end, key.descending), *ty, scope)
    }

    /// A bound by values: so much before the value of the row, or behind it.
    fn range_bound(
        &mut self,
        ast: &Ast,
        (follows, is_end, descending): (bool, bool, bool),
        key: SqlType,
        scope: &Scope,
    ) -> Result<FrameBound, SqlError> {
        let at = start_of(ast);
        self.clause = "RANGE";
        let offset = match ast {
            // The parser takes a string here for an interval.
            Ast::Interval(interval) if interval.leading_field.is_none() => match &*interval.value {
                literal @ Ast::Value(_) if start_of(literal) == at => self.expr(literal, scope)?,
                _ => self.expr(ast, scope)?,
            },
            ast => self.expr(ast, scope)?,
        };
        if !offset.expr.is_row_independent() {
            let message = "argument of RANGE must not contain variables";
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        let known: &[SqlType] = match key.base() {
            SqlType::INT2 | SqlType::INT4 => &[SqlType::INT2, SqlType::INT4, SqlType::INT8],
            SqlType::INT8 => &[SqlType::INT8],
            SqlType::FLOAT4 | SqlType::FLOAT8 => &[SqlType::FLOAT8],
            SqlType::NUMERIC => &[SqlType::NUMERIC],
            SqlType::DATE | SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ | SqlType::INTERVAL => &[SqlType::INTERVAL],
            SqlType::TIME | SqlType::TIMETZ => {
                return Err(self.unsupported("RANGE with an offset over times of day is", at));
            }
            _ => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    key.base_name()
                );
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
            }
        };
        let wanted = match known {
            [only] => *only,
            _ if offset.ty == SqlType::UNKNOWN => key.base(),
            several => several.iter().copied().find(|ty| *ty == offset.ty.base()).unwrap_or(SqlType::INT8),
        };
        let given = offset.type_name();
        let Some(offset) = self.coerce(offset, wanted, CastContext::Implicit)? else {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {given}",
                key.base_name()
            );
            let error = self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at);
            return Err(error.hint("Cast the offset value to an appropriate type."));
        };
        // Before the row is where values are smaller, unless the order descends.
        let subtracts = follows == descending;
        let is_less = is_end != descending;
        let symbol = if subtracts { "-" } else { "+" };
        let (value, by) = (Typed::new(Expr::Column(0), key, at), Typed::new(Expr::Column(1), wanted, at));
        let edge = self.operator(symbol, symbol, value, by, (ast, ast))?;
        let symbol = if is_less { "<=" } else { ">=" };
        let (value, bound) = (Typed::new(Expr::Column(0), key, at), Typed::new(Expr::Column(1), edge.ty, at));
        let test = self.operator(symbol, symbol, value, bound, (ast, ast))?;
        let range = RangeBound { edge: edge.expr, test: test.expr, beyond: subtracts != is_less };
        Ok(FrameBound::Offset { offset: offset.expr, follows, range: Some(range) })
    }

    /// Puts the windows of a query between its aggregation and its projection. They are over the row of the aggregation,
    /// or of the source, whose width is `width`. Functions that return sets follow. Returns the width of the new row.
    pub(super) fn set_windows(
        &self,
        plan: &mut SelectPlan,
        (windows, calls): (Vec<FoundWindow>, Vec<FoundCall>),
        sets: &mut [SetCall],
        width: usize,
    ) -> usize {
        let mut columns = Columns { width, extra: Vec::new() };
        let mut ranked: Vec<(Vec<(usize, bool, bool)>, Window)> = Vec::new();
        for window in windows {
            let partition: Vec<usize> = window.partition.into_iter().map(|key| columns.place(key)).collect();
            let order = window.order.into_iter().map(|AggregateOrder { expr, descending, nulls_first }| SortKey {
                column: columns.place(expr),
                descending,
                nulls_first,
            });
            let order: Vec<SortKey> = order.collect();
            let keys = partition.iter().map(|column| (*column, false, false));
            let keys = keys.chain(order.iter().map(|key| (key.column, key.descending, key.nulls_first))).collect();
            ranked.push((keys, Window { partition, order, calls: Vec::new() }));
        }
        for (place, FoundCall { window, function, frame }) in calls.into_iter().enumerate() {
            let function = match function {
                FoundFunction::Own(kind, args) => {
                    WindowFunction::Own(kind, args.into_iter().map(|arg| columns.place(arg)).collect())
                }
                FoundFunction::Aggregate(mut call) => {
                    call.args = call.args.into_iter().map(|arg| Expr::Column(columns.place(arg))).collect();
                    call.filter = call.filter.map(|filter| Expr::Column(columns.place(filter)));
                    WindowFunction::Aggregate(call)
                }
            };
            if let Some((_, window)) = ranked.get_mut(window) {
                window.calls.push(WindowCall { place, function, frame });
            }
        }
        // As in PostgreSQL the windows with the longest order run first, so that one whose order it begins with finds
        // its rows in that. A window that nobody uses does not run.
        ranked.retain(|(_, window)| !window.calls.is_empty());
        ranked.sort_by(|(a, _), (b, _)| b.cmp(a));
        let windows: Vec<Window> = ranked.into_iter().map(|(_, window)| window).collect();
        let total = width + columns.extra.len();
        let input = SelectPlan {
            source: std::mem::replace(&mut plan.source, Source::Single),
            filter: plan.filter.take(),
            aggregation: plan.aggregation.take(),
            output: (0..width).map(Expr::Column).chain(columns.extra).collect(),
            visible: total,
            names: plan.names.clone(),
            ..SelectPlan::single()
        };
        let args = sets.iter_mut().flat_map(SetCall::args_mut);
        for expr in plan.output.iter_mut().chain(args) {
            expr.replace_with(&mut |part| match part {
                Expr::WindowValue(call) => Some(Expr::Column(total + call)),
                _ => None,
            });
        }
        let windows = Windows { input: Rel::Query(Box::new(input)), width: total, windows };
        let values = windows.values();
        plan.source = Source::Rel(Box::new(Rel::Windows(Box::new(windows))));
        total + values
    }
}

/// The columns of the input of windows: those of the query, and behind them what is none of these.
struct Columns {
    width: usize,
    extra: Vec<Expr>,
}

impl Columns {
    fn place(&mut self, expr: Expr) -> usize {
        if let Expr::Column(at) = expr {
            return at;
        }
        let known = self.extra.iter().position(|known| *known == expr && !expr.is_volatile());
        self.width
            + known.unwrap_or_else(|| {
                self.extra.push(expr);
                self.extra.len() - 1
            })
    }
}
