//! Where the functions of a query's clauses run that return sets.
//!
//! Calls leave placeholders where they stand. Those in GROUP BY run below the aggregation, those in the keys of windows
//! below the windows, all others over the rows that come out of both. As in PostgreSQL what equals such a key is its
//! value, and any other mention of the same call runs once more further up. The calls of one place advance together,
//! and a call whose arguments have other calls runs above these.

use super::found::{SetState, WindowState};
use super::rel::{Rel, SelectPlan, SetCall, SetValues, SortKey, Source};
use super::show::plain;
use super::windowed::set_windows;
use crate::expr::Expr;

/// The functions of a query that return sets.
pub(super) struct SetSteps {
    /// The calls over the source's row, if GROUP BY has some.
    below: Vec<SetCall>,
    /// The calls over the row of the aggregation, or of the source if there is none.
    pub(super) above: Vec<SetCall>,
}

impl SetSteps {
    /// The steps of calls that are over the source's row. `keys`: GROUP BY.
    pub(super) fn of(keys: &[Expr], found: SetState) -> SetSteps {
        let below = if keys.iter().any(Expr::returns_set) { found.calls.clone() } else { Vec::new() };
        SetSteps { below, above: found.calls }
    }

    /// Puts the calls and the windows into a plan with this width of the source's row.
    pub(super) fn run(mut self, plan: &mut SelectPlan, mut windows: WindowState, width: usize) {
        let mut width = width;
        if let Some(mut aggregation) = plan.aggregation.take() {
            run(plan, aggregation.keys.iter_mut().collect(), &self.below, width);
            width = aggregation.keys.len() + aggregation.calls.len();
            plan.aggregation = Some(aggregation);
        }
        let mut is_sorted_by_sets = !self.below.is_empty();
        if !windows.calls.is_empty() {
            is_sorted_by_sets |= windows.keys_mut().any(|key| key.returns_set());
            width = self.run_below_windows(plan, &mut windows, width);
            width = set_windows(plan, (windows.found, windows.calls), &mut self.above, width);
        }
        let mut output = std::mem::take(&mut plan.output);
        let is_key = |at: usize| plan.distinct_on.contains(&at) || plan.sort.iter().any(|key| key.column == at);
        is_sorted_by_sets |= output.iter().enumerate().any(|(at, expr)| is_key(at) && expr.returns_set());
        let is_distinct_first = !plan.distinct_on.is_empty() && !plan.sort.is_empty() && !is_sorted_by_sets;
        if is_distinct_first && output.iter().any(Expr::returns_set) {
            width = choose_first(plan, &mut output, width);
        }
        run(plan, output.iter_mut().collect(), &self.above, width);
        plan.output = output;
    }

    /// Runs the calls in the keys of windows. Returns the width of the row with their values.
    fn run_below_windows(&mut self, plan: &mut SelectPlan, windows: &mut WindowState, width: usize) -> usize {
        let keys: Vec<Expr> = windows.keys_mut().filter(|key| key.returns_set()).map(|key| key.clone()).collect();
        let mut values = keys.clone();
        let width = run(plan, values.iter_mut().collect(), &self.above, width);
        let args = self.above.iter_mut().flat_map(SetCall::args_mut);
        for expr in plan.output.iter_mut().chain(windows.keys_mut()).chain(args) {
            expr.replace_with(&mut |part| {
                let key = keys.iter().position(|key| key == part)?;
                values.get(key).cloned()
            });
        }
        width
    }
}

/// Runs the calls that expressions over the row of a plan's source or aggregation have, above these. Their placeholders
/// become columns. Returns the width of the row with their values.
fn run(plan: &mut SelectPlan, exprs: Vec<&mut Expr>, calls: &[SetCall], width: usize) -> usize {
    let levels = levels(&exprs, calls);
    let highest = levels.iter().copied().max().unwrap_or(0);
    if highest == 0 {
        return width;
    }
    let source = std::mem::replace(&mut plan.source, Source::Single);
    let mut input = SelectPlan::of(source, width, std::mem::take(&mut plan.names));
    (input.filter, input.aggregation) = (plan.filter.take(), plan.aggregation.take());
    let mut names = input.row_names();
    let mut rel = Rel::Query(Box::new(input));
    let (mut places, mut next) = (vec![0; calls.len()], width);
    for level in 1..=highest {
        let mut running = Vec::new();
        let of_level = levels.iter().enumerate().filter(|(_, of)| **of == level).map(|(at, _)| at);
        for at in of_level {
            let mut call = calls[at].clone();
            call.args_mut().iter_mut().for_each(|arg| put_columns(arg, &places));
            places[at] = next;
            next += call.width();
            running.push(call);
        }
        let shown: Vec<String> = running.iter().map(|call| call.shown(&names)).collect();
        names.extend(shown);
        rel = Rel::SetValues(Box::new(SetValues { input: rel, calls: running, ordinality: false }));
    }
    exprs.into_iter().for_each(|expr| put_columns(expr, &places));
    plan.names = names;
    plan.source = Source::Rel(Box::new(rel));
    next
}

/// The levels of calls from 1, of those that expressions need; 0 of the others. A call has only earlier ones in its
/// arguments.
fn levels(exprs: &[&mut Expr], calls: &[SetCall]) -> Vec<usize> {
    let mut is_used = vec![false; calls.len()];
    exprs.iter().for_each(|expr| mark(expr, &mut is_used));
    for (at, call) in calls.iter().enumerate().rev() {
        if is_used[at] {
            call.args().iter().for_each(|arg| mark(arg, &mut is_used));
        }
    }
    let mut levels: Vec<usize> = Vec::with_capacity(calls.len());
    for (call, is_used) in calls.iter().zip(is_used) {
        let mut inner = vec![false; levels.len()];
        call.args().iter().for_each(|arg| mark(arg, &mut inner));
        let below = levels.iter().zip(inner).filter(|(_, is_inner)| *is_inner).map(|(level, _)| *level);
        levels.push(if is_used { 1 + below.max().unwrap_or(0) } else { 0 });
    }
    levels
}

/// Marks the calls whose placeholders an expression has.
fn mark(expr: &Expr, calls: &mut [bool]) {
    if let Expr::SetValue(at) = expr
        && let Some(is_used) = calls.get_mut(*at)
    {
        *is_used = true;
    }
    expr.children().into_iter().for_each(|child| mark(child, calls));
}

fn put_columns(expr: &mut Expr, places: &[usize]) {
    expr.replace_with(&mut |part| match part {
        Expr::SetValue(at) => places.get(*at).map(|place| Expr::Column(*place)),
        _ => None,
    });
}

/// Puts DISTINCT ON and ORDER BY below the calls, as PostgreSQL does if their keys have none: the calls run over the
/// rows that are chosen. Returns the width of the row with the keys.
fn choose_first(plan: &mut SelectPlan, output: &mut [Expr], width: usize) -> usize {
    let mut keys: Vec<usize> = Vec::new();
    for column in plan.sort.iter().map(|key| key.column).chain(plan.distinct_on.iter().copied()) {
        if !keys.contains(&column) {
            keys.push(column);
        }
    }
    let place = |column: usize| width + keys.iter().position(|key| *key == column).unwrap_or(0);
    let mut values: Vec<Expr> = (0..width).map(Expr::Column).collect();
    values.extend(keys.iter().map(|key| std::mem::replace(&mut output[*key], Expr::Column(place(*key)))));
    let total = values.len();
    let sort = std::mem::take(&mut plan.sort).into_iter().map(|key| SortKey { column: place(key.column), ..key });
    let distinct_on = std::mem::take(&mut plan.distinct_on).into_iter().map(place);
    let chosen = SelectPlan {
        source: std::mem::replace(&mut plan.source, Source::Single),
        filter: plan.filter.take(),
        aggregation: plan.aggregation.take(),
        output: values,
        visible: total,
        distinct_on: distinct_on.collect(),
        sort: sort.collect(),
        names: std::mem::take(&mut plan.names),
        ..SelectPlan::single()
    };
    let names = chosen.row_names();
    plan.names = chosen.output.iter().map(|value| plain(value, &names)).collect();
    plan.source = Source::Rel(Box::new(Rel::Query(Box::new(chosen))));
    total
}
