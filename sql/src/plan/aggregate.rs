//! Binding of aggregates.

use sqlparser::ast::{
    Expr as Ast, Function as CallAst, FunctionArgumentClause, FunctionArguments, OrderByExpr, Spanned,
};
use sqlparser::tokenizer::Location;

use super::aggregation::{AggregateCall, AggregateOrder};
use super::binder::{Binder, Scope, Typed};
use super::calls::Arguments;
use super::functions::ArgumentList;
use super::names::sort_options;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::start_of;
use pgtypes::SqlType;
use pgtypes::functions::resolve::Choice;
use pgtypes::functions::{ProcRow, Run};

/// The bound parts of an aggregate's call.
pub(super) struct Parts {
    pub(super) args: Vec<Typed>,
    pub(super) ordered: Vec<(Typed, bool, bool)>,
    pub(super) filter: Option<Expr>,
}

/// The message for WITHIN GROUP that is missing, or that is one too many.
fn wrong_within(name: &str, is_ordered_set: bool) -> String {
    match is_ordered_set {
        true => format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
        false => format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"),
    }
}

/// Takes the direct arguments, the first ones, from those of an ordered-set aggregate.
fn split_direct(exprs: &mut Vec<Expr>, types: &mut Vec<SqlType>, count: usize) -> Vec<(Expr, SqlType)> {
    let rest = exprs.split_off(count.min(exprs.len()));
    let rest_types = types.split_off(count.min(types.len()));
    std::mem::replace(exprs, rest).into_iter().zip(std::mem::replace(types, rest_types)).collect()
}

impl Binder<'_> {
    /// Binds an aggregate. Records it with the query and returns a column of the aggregation's row.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        call: &CallAst,
        list: &ArgumentList<'_>,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        let is_within = !call.within_group.is_empty();
        let mark = self.mark();
        let sets = self.aggregates.sets.bound;
        let parts = self.aggregate_parts(call, &list.asts, scope)?;
        if let Some(depth) = self.outer_level(&parts, is_within)? {
            return self.outer_aggregate(depth, &mark, (name, call, list));
        }
        let Parts { args, ordered, filter } = parts;
        let direct_count = args.len();
        let mut values = args;
        if is_within {
            values.extend(ordered.iter().map(|(value, _, _)| value.clone()));
        }
        let mut arguments = Arguments { values, names: Vec::new(), is_variadic: list.is_variadic };
        let mut choice = self.choose(name, &arguments, at)?;
        if list.distinct {
            self.settle_any(&mut arguments.values, &choice)?;
            choice = self.choose(name, &arguments, at)?;
        }
        if choice.function.args.is_empty() && !list.star {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, at));
        }
        let (mut exprs, mut types) = self.convert_arguments(arguments.values, &choice, at)?;
        let is_ordered_set = matches!(choice.function.run, Run::OrderedSet(..));
        if is_ordered_set != is_within {
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, wrong_within(name, is_ordered_set), at));
        }
        let direct = if is_within { split_direct(&mut exprs, &mut types, direct_count) } else { Vec::new() };
        let mut order = Vec::with_capacity(ordered.len());
        for (at_key, (value, descending, nulls_first)) in ordered.into_iter().enumerate() {
            // The keys of WITHIN GROUP are the converted arguments.
            let expr = match exprs.get(at_key).filter(|_| is_within) {
                Some(expr) => expr.clone(),
                None => {
                    let value = self.resolve_unknown(value)?;
                    self.check_sortable(value.ty, value.at)?;
                    value.expr
                }
            };
            order.push(AggregateOrder { expr, descending, nulls_first });
        }
        if list.distinct && order.iter().any(|key| !exprs.contains(&key.expr)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        if list.distinct {
            for (ty, ast) in types.iter().zip(&list.asts) {
                self.check_groupable(*ty, start_of(ast))?;
            }
            if depends_on_order(choice.function, &types) {
                sort_arguments(&exprs, &mut order);
            }
        }
        self.check_aggregate(at, sets)?;
        let (function, result, distinct) = (choice.function, choice.result, list.distinct);
        self.aggregates.first.get_or_insert(at);
        self.aggregates.calls.push(AggregateCall {
            function,
            args: exprs,
            types,
            direct,
            result,
            distinct,
            filter,
            order,
        });
        Ok(Typed::new(Expr::Aggregate(self.aggregates.calls.len() - 1), result, at))
    }

    /// 42803 where no aggregate may stand. 0A000 if functions that return sets are in it: more than `sets` by now.
    fn check_aggregate(&self, at: Location, sets: usize) -> Result<(), SqlError> {
        self.refuse_sets(sets, "aggregate function calls cannot contain set-returning function calls")?;
        if self.aggregates.inside {
            return Err(self.error(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested", at));
        }
        if !self.aggregates.allowed {
            let message = format!("aggregate functions are not allowed in {}", self.clause);
            return Err(self.error(SqlState::GROUPING_ERROR, message, at));
        }
        Ok(())
    }

    /// Arguments of any type that have none are text: DISTINCT compares them.
    fn settle_any(&mut self, values: &mut [Typed], choice: &Choice) -> Result<(), SqlError> {
        for (value, (_, declared)) in values.iter_mut().zip(&choice.args) {
            if declared.oid == SqlType::ANY.oid || declared.oid == SqlType::UNKNOWN.oid {
                *value = self.resolve_unknown(value.clone())?;
            }
        }
        Ok(())
    }

    fn aggregate_parts(&mut self, call: &CallAst, asts: &[&Ast], scope: &Scope) -> Result<Parts, SqlError> {
        let is_nested = std::mem::replace(&mut self.aggregates.inside, true);
        let parts = self.parts_inside(call, asts, scope);
        self.aggregates.inside = is_nested;
        parts
    }

    fn parts_inside(&mut self, call: &CallAst, asts: &[&Ast], scope: &Scope) -> Result<Parts, SqlError> {
        let mut args = Vec::with_capacity(asts.len());
        let in_direct = std::mem::replace(&mut self.aggregates.in_direct, !call.within_group.is_empty());
        for ast in asts {
            args.push(self.expr(ast, scope)?);
        }
        self.aggregates.in_direct = in_direct;
        let mut keys: Vec<&OrderByExpr> = call.within_group.iter().collect();
        if let FunctionArguments::List(list) = &call.args {
            for clause in &list.clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(order) => keys.extend(order),
                    _ => return Err(self.unsupported("this form of function call is", call.name.span().start)),
                }
            }
        }
        let mut ordered = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.expr(&key.expr, scope)?;
            let (descending, nulls_first) = sort_options(&key.options);
            ordered.push((value, descending, nulls_first));
        }
        let filter = self.aggregate_filter(call, scope)?;
        Ok(Parts { args, ordered, filter })
    }

    /// Binds FILTER.
    pub(super) fn aggregate_filter(&mut self, call: &CallAst, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        let Some(filter) = &call.filter else { return Ok(None) };
        let clause = std::mem::replace(&mut self.clause, "FILTER");
        let allowed = std::mem::replace(&mut self.aggregates.sets.allowed, false);
        let bound = self.condition(filter, scope, "FILTER");
        (self.clause, self.aggregates.sets.allowed) = (clause, allowed);
        bound.map(Some)
    }
}

/// Whether the result of an aggregate depends on the order of its rows.
fn depends_on_order(function: &ProcRow, types: &[SqlType]) -> bool {
    const FREE: [&str; 9] = ["count", "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor"];
    let is_float = |ty: &SqlType| matches!(ty.base(), SqlType::FLOAT4 | SqlType::FLOAT8);
    let is_sum = ["sum", "avg"].contains(&function.name) && !types.iter().any(is_float);
    !is_sum && !FREE.contains(&function.name)
}

/// DISTINCT sorts by the arguments, behind the keys of ORDER BY.
fn sort_arguments(args: &[Expr], order: &mut Vec<AggregateOrder>) {
    for arg in args {
        if !order.iter().any(|key| key.expr == *arg) {
            order.push(AggregateOrder { expr: arg.clone(), descending: false, nulls_first: false });
        }
    }
}
