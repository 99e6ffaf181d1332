//! The node of a query's window functions: between its aggregation and its projection.

use super::aggregation::AggregateOrder;
use super::found::{FoundCall, FoundFunction, FoundWindow};
use super::rel::{Rel, SelectPlan, SetCall, SortKey, Source, Window, WindowCall, Windows, shown_call};
use super::window::WindowFunction;
use crate::expr::Expr;

/// The columns of an order, and whether each descends and has NULLs first.
type OrderKeys = Vec<(usize, bool, bool)>;

/// Puts the windows of a query between its aggregation and its projection. They are over the row of the aggregation,
/// or of the source, whose width is `width`. Functions that return sets follow. Returns the width of the new row.
pub(super) fn set_windows(
    plan: &mut SelectPlan,
    (windows, calls): (Vec<FoundWindow>, Vec<FoundCall>),
    sets: &mut [SetCall],
    width: usize,
) -> usize {
    let mut columns = Columns { width, extra: Vec::new() };
    let mut ranked: Vec<(OrderKeys, Window)> = Vec::new();
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
    plan.names = names_of(&windows);
    let values = windows.values();
    plan.source = Source::Rel(Box::new(Rel::Windows(Box::new(windows))));
    total + values
}

/// The names of the columns of a node's rows, for EXPLAIN.
fn names_of(windows: &Windows) -> Vec<String> {
    let mut names = windows.input_names();
    let name = |at: &usize| names.get(*at).cloned().unwrap_or_default();
    let calls = windows.windows.iter().flat_map(|window| &window.calls).map(|call| {
        let shown = match &call.function {
            WindowFunction::Own(kind, args) => {
                let args: Vec<String> = args.iter().map(name).collect();
                format!("{}({})", kind.name(), args.join(", "))
            }
            WindowFunction::Aggregate(call) => shown_call(call, &names),
        };
        (call.place, format!("{shown} OVER (?)"))
    });
    let mut calls: Vec<(usize, String)> = calls.collect();
    calls.sort_unstable();
    names.extend(calls.into_iter().map(|(_, name)| name));
    names
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
