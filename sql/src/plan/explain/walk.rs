//! From a plan, and what a run of it has counted, to the tree that EXPLAIN shows.
//!
//! A query is one node of the plan, but several of the tree: Limit, LockRows, Sort, Unique, Aggregate over its source.
//! Times are taken of the query and of its source, so the stages between have none.

use super::keys::{index_conditions, points, range};
use super::profile::{NodeKey, NodeRun, StatementRun};
use super::report::show_report;
use super::tree::{ExplainNode, NodeTotals, Relation, Value};
use crate::catalog::shown_text;
use crate::expr::Expr;
use crate::plan::access::{AccessPath, TableAccess};
use crate::plan::explained::ExplainOptions;
use crate::plan::join_method::limit_of;
use crate::plan::node::{Body, Conflict, Joined, RowCounts, Whole, WithBody};
use crate::plan::rel::{
    FunctionScan, Join, JoinKind, JoinMethod, Rel, SelectPlan, SetCall, SetKind, SetOperation, SortKey, Source,
    Windows, WithScan, column_names,
};
use crate::plan::show::{plain, show};
use crate::table::{Table, quote_identifier};
use pgtypes::Names;

/// The tree of a statement.
pub(super) fn tree(
    whole: &Whole<'_>,
    (options, names): (&ExplainOptions, &dyn Names),
    run: Option<&StatementRun<'_>>,
) -> ExplainNode {
    let walk = Walk { whole, options, names, run };
    let mut root = walk.body(whole.body, true);
    let with = whole.with.iter().map(|with| {
        let node = match &with.body {
            WithBody::Query(plan) => walk.select(plan),
            WithBody::Change(body) => walk.body(body, false),
            WithBody::Recursive { first, step, .. } => {
                let mut union = ExplainNode::of("Recursive Union");
                union.add(Relation::Outer, walk.select(first));
                union.add(Relation::Inner, walk.select(step));
                union
            }
        };
        let title = format!("CTE {}", quote_identifier(&with.name));
        ExplainNode { relation: Some(Relation::InitPlan(title)), ..node }
    });
    root.children.splice(0..0, with.collect::<Vec<_>>());
    for (at, subplan) in whole.subplans.iter().enumerate() {
        let kept = if subplan.kept.is_some() { " (rows kept by key)" } else { "" };
        root.add(Relation::SubPlan(format!("SubPlan {}{kept}", at + 1)), walk.select(&subplan.plan));
    }
    root
}

struct Walk<'a> {
    whole: &'a Whole<'a>,
    options: &'a ExplainOptions,
    /// The names of types.
    names: &'a dyn Names,
    run: Option<&'a StatementRun<'a>>,
}

/// A table, and its alias.
type Named<'n> = (&'n Table, Option<&'n str>);

/// The rows of a stage of a query.
type StageRows = fn(&RowCounts) -> u64;

impl Walk<'_> {
    /// What was counted of a node. With a run, one that has not begun has no loops.
    fn counted(&self, key: NodeKey) -> Option<NodeRun> {
        self.run.map(|run| run.profile.get(key).unwrap_or_default())
    }

    fn totals(&self, node: &NodeRun, rows: u64, is_timed: bool) -> NodeTotals {
        let per_loop = |time: std::time::Duration| time.as_secs_f64() * 1_000.0 / node.loops.max(1) as f64;
        let times = (is_timed && self.options.timing).then(|| (per_loop(node.first), per_loop(node.total)));
        NodeTotals { times, rows, loops: node.loops }
    }

    /// A statement, or a change inside WITH.
    fn body(&self, body: &Body, is_root: bool) -> ExplainNode {
        match body {
            Body::Select(select) => self.select(select),
            Body::CreateTableAs(parts) => self.select(&parts.1),
            Body::Insert(plan) => {
                let mut node = self.change("Insert", (&plan.write.table, None), is_root);
                match &*plan.conflict {
                    Conflict::Fail => {}
                    Conflict::DoNothing(_) => node.detail("Conflict Resolution", "NOTHING"),
                    Conflict::DoUpdate { .. } => node.detail("Conflict Resolution", "UPDATE"),
                }
                node.add(Relation::Outer, self.select(&plan.source));
                node
            }
            Body::Update(plan) => {
                self.over_target("Update", (&plan.access, plan.filter.as_ref(), plan.joined.as_deref()), is_root)
            }
            Body::Delete(plan) => {
                self.over_target("Delete", (&plan.access, plan.filter.as_ref(), plan.joined.as_deref()), is_root)
            }
            _ => ExplainNode::of("Utility Statement"),
        }
    }

    fn change(&self, operation: &'static str, (table, alias): Named<'_>, is_root: bool) -> ExplainNode {
        let title = format!("{operation} on {}", shown_name((table, alias)));
        let node = ExplainNode::titled("ModifyTable", title).attribute("Operation", operation);
        let node = with_name(node, (table, alias));
        let run = self.run.filter(|_| is_root).map(|run| {
            let all = NodeRun { loops: 1, first: run.elapsed, total: run.elapsed, ..NodeRun::default() };
            self.totals(&all, run.returning, true)
        });
        ExplainNode { run, ..node }
    }

    fn over_target(
        &self,
        operation: &'static str,
        (access, filter, joined): (&TableAccess, Option<&Expr>, Option<&Joined>),
        is_root: bool,
    ) -> ExplainNode {
        let mut node = self.change(operation, (&access.table, access.alias.as_deref()), is_root);
        let input = match joined {
            Some(joined) => self.select(&joined.source),
            None => self.target(access, filter),
        };
        node.add(Relation::Outer, input);
        node
    }

    /// The rows that UPDATE or DELETE changes.
    fn target(&self, access: &TableAccess, filter: Option<&Expr>) -> ExplainNode {
        let mut node = self.table(access);
        if let Some(counted) = self.counted(NodeKey::table(access)) {
            node.run = Some(self.totals(&counted, counted.rows.passed, true));
            self.filter(&mut node, filter, &column_names(&access.table), Some(&counted.rows));
            show_read(&mut node, &counted);
        } else {
            self.filter(&mut node, filter, &column_names(&access.table), None);
        }
        node
    }

    /// A query: its stages over its source.
    fn select(&self, plan: &SelectPlan) -> ExplainNode {
        let counted = self.counted(NodeKey::query(plan));
        let stages = self.stages(plan);
        let mut node = self.source(plan, counted.as_ref(), stages.is_empty());
        if stages.is_empty() {
            self.output(&mut node, plan);
        }
        let last = stages.len();
        for (at, (mut stage, rows)) in stages.into_iter().enumerate() {
            let is_top = at + 1 == last;
            stage.estimate = estimate_of_stage(stage.kind, plan, node.estimate);
            stage.run = counted.as_ref().map(|counted| self.totals(counted, rows(&counted.rows), is_top));
            if is_top {
                self.output(&mut stage, plan);
            }
            stage.add(Relation::Outer, node);
            node = stage;
        }
        node
    }

    /// An estimate, if they are shown.
    fn estimate(&self, rows: Option<f64>) -> Option<f64> {
        rows.filter(|_| self.options.costs)
    }

    /// The stages of a query, from the lowest to the highest, with their rows.
    fn stages(&self, plan: &SelectPlan) -> Vec<(ExplainNode, StageRows)> {
        let pulled: StageRows = |rows| rows.skipped + rows.returned;
        let mut stages: Vec<(ExplainNode, StageRows)> = Vec::new();
        if let Some(aggregation) = &plan.aggregation {
            let (name, strategy) =
                if aggregation.keys.is_empty() { ("Aggregate", "Plain") } else { ("HashAggregate", "Hashed") };
            let mut node = ExplainNode::titled("Aggregate", name.to_owned()).attribute("Strategy", strategy);
            if !aggregation.keys.is_empty() {
                let names = plan.source_names();
                let keys = aggregation.keys.iter().map(|key| plain(key, &names));
                node.detail("Group Key", keys.collect::<Vec<_>>());
            }
            if let Some(having) = &aggregation.having {
                node.detail("Filter", show(having, &plan.row_names()));
            }
            stages.push((node, |rows| rows.grouped));
        }
        if plan.distinct {
            stages.push((ExplainNode::of("Unique"), |rows| rows.distinct));
        }
        if !plan.sort.is_empty() {
            let mut node = ExplainNode::of("Sort");
            let names = plan.row_names();
            node.detail("Sort Key", plan.sort.iter().map(|key| sort_key(key, plan, &names)).collect::<Vec<_>>());
            stages.push((node, pulled));
        }
        if plan.lock.is_some() {
            stages.push((ExplainNode::of("LockRows"), pulled));
        }
        if plan.limit.is_some() || plan.offset.is_some() {
            stages.push((ExplainNode::of("Limit"), |rows| rows.returned));
        }
        stages
    }

    /// VERBOSE: the output columns of a query. The node may have those of a query that this one only passes on.
    fn output(&self, node: &mut ExplainNode, plan: &SelectPlan) {
        if self.options.verbose {
            node.details.retain(|(name, _)| *name != "Output");
            let names = passed_names(plan);
            let columns = plan.output.iter().take(plan.visible).map(|expr| plain(expr, &names));
            node.detail("Output", columns.collect::<Vec<_>>());
        }
    }

    /// The source of a query, with its filter. `is_alone`: the query has no other stages.
    fn source(&self, plan: &SelectPlan, counted: Option<&NodeRun>, is_alone: bool) -> ExplainNode {
        let mut node = match &plan.source {
            Source::Single => ExplainNode::of("Result"),
            Source::Values(rows) if rows.len() == 1 => ExplainNode::of("Result"),
            Source::Values(_) => ExplainNode::titled("Values Scan", "Values Scan on \"*VALUES*\"".to_owned()),
            Source::System(relation) => {
                ExplainNode::titled("System Scan", format!("System Scan on {}", relation.full_name()))
                    .attribute("Relation Name", relation.table.name.as_str())
            }
            Source::Table(access) => self.table(access),
            Source::Rel(rel) => match (&**rel, &plan.filter) {
                (rel, None) => return self.rel(rel, &plan.names),
                (Rel::Query(_) | Rel::Set(_) | Rel::SetValues(_) | Rel::Windows(_), Some(_)) => {
                    let mut node = ExplainNode::of("Subquery Scan");
                    node.add(Relation::Outer, self.rel(rel, &plan.names));
                    node
                }
                (rel, Some(_)) => self.rel(rel, &plan.names),
            },
        };
        let names = match &plan.source {
            // The key shows the names of the table too, not those of an alias.
            Source::Table(access) => column_names(&access.table),
            _ => plan.source_names(),
        };
        self.filter(&mut node, plan.filter.as_ref(), &names, counted.map(|counted| &counted.rows));
        if plan.filter.is_some() && matches!(plan.source, Source::Rel(_)) {
            // That of the node is from before the filter.
            node.estimate = None;
        }
        let Some(counted) = counted else { return node };
        let read = self.counted(NodeKey::source(&plan.source)).unwrap_or_default();
        let measured = NodeRun { first: read.first, total: read.total, ..counted.clone() };
        node.run = Some(self.totals(if is_alone { counted } else { &measured }, counted.rows.passed, true));
        show_read(&mut node, &read);
        node
    }

    /// Adds the filter of a node, over columns with these names.
    fn filter(&self, node: &mut ExplainNode, filter: Option<&Expr>, names: &[String], rows: Option<&RowCounts>) {
        let Some(filter) = filter else { return };
        node.detail("Filter", show(filter, names));
        let removed = rows.map_or(0, |rows| rows.source.saturating_sub(rows.passed));
        if removed > 0 {
            node.detail("Rows Removed by Filter", removed);
        }
    }

    /// A node that is no query itself, or one below another query.
    fn rel(&self, rel: &Rel, names: &[String]) -> ExplainNode {
        let node = match rel {
            Rel::Query(plan) => return self.select(plan),
            Rel::Join(join) => self.join(join, names),
            Rel::Set(set) => self.set(set),
            Rel::Function(scan) => function(scan),
            Rel::SetValues(values) => {
                let mut node = ExplainNode::of("ProjectSet");
                node.add(Relation::Outer, self.rel(&values.input, names));
                node
            }
            Rel::Windows(windows) => self.windows(windows),
            Rel::With(scan) => self.with(scan),
        };
        let run = self.counted(NodeKey::rel(rel)).map(|counted| self.totals(&counted, counted.rows.returned, true));
        ExplainNode { run, ..node }
    }

    fn set(&self, set: &SetOperation) -> ExplainNode {
        let (kind, title) = match set.kind {
            SetKind::Union if set.all => ("Append", "Append"),
            SetKind::Union => ("Append", "HashAggregate Append"),
            SetKind::Intersect => ("SetOp", "HashSetOp Intersect"),
            SetKind::Except => ("SetOp", "HashSetOp Except"),
        };
        let mut node = ExplainNode::titled(kind, title.to_owned());
        if kind == "SetOp" {
            let command = title.trim_start_matches("HashSetOp ");
            let command = if set.all { format!("{command} All") } else { command.to_owned() };
            node = node.attribute("Strategy", "Hashed").attribute("Command", command);
        }
        node.add(Relation::Member, self.rel(&set.left, &[]));
        node.add(Relation::Member, self.rel(&set.right, &[]));
        node
    }

    /// Windows, the last one above the others.
    fn windows(&self, windows: &Windows) -> ExplainNode {
        let names = windows.input_names();
        let name = |at: &usize| names.get(*at).cloned().unwrap_or_default();
        let mut below = self.rel(&windows.input, &[]);
        for window in &windows.windows {
            let mut node = ExplainNode::of("WindowAgg");
            if !window.partition.is_empty() {
                node.detail("Partition Key", window.partition.iter().map(name).collect::<Vec<_>>());
            }
            if !window.order.is_empty() {
                let keys = window.order.iter().map(|key| shown_key(key, name(&key.column)));
                node.detail("Sort Key", keys.collect::<Vec<_>>());
            }
            node.add(Relation::Outer, below);
            below = node;
        }
        below
    }

    fn with(&self, scan: &WithScan) -> ExplainNode {
        let name = self.whole.with.get(scan.query).map_or("", |with| with.name.as_str());
        let kind = if scan.is_recursion { "WorkTable Scan" } else { "CTE Scan" };
        ExplainNode::titled(kind, format!("{kind} on {}", quote_identifier(name))).attribute("CTE Name", name)
    }

    fn join(&self, join: &Join, names: &[String]) -> ExplainNode {
        let kind = match join.kind {
            JoinKind::Inner => "Inner",
            JoinKind::Left => "Left",
            JoinKind::Right => "Right",
            JoinKind::Full => "Full",
        };
        let word = if join.kind == JoinKind::Inner { String::new() } else { format!(" {kind}") };
        let (left, right) = names.split_at(join.left_width.min(names.len()));
        let keys = match &join.method {
            JoinMethod::Hash(keys) => keys.as_slice(),
            JoinMethod::Loop(_) | JoinMethod::Reverse(_) => &[],
        };
        let mut node = if keys.is_empty() {
            let end = if word.is_empty() { "" } else { " Join" };
            ExplainNode::titled("Nested Loop", format!("Nested Loop{word}{end}"))
        } else {
            ExplainNode::titled("Hash Join", format!("Hash{word} Join"))
        };
        node = node.attribute("Join Type", kind);
        node.estimate = self.estimate(join.estimate);
        if !keys.is_empty() {
            let shown = keys.iter().map(|(l, r)| format!("({} = {})", show(l, left), show(r, right)));
            node.detail("Hash Cond", shown.collect::<Vec<_>>().join(" AND "));
        }
        if let Some(condition) = &join.condition {
            node.detail("Join Filter", show(condition, names));
        }
        let (left, right) = (self.rel(&join.left, left), self.rel(&join.right, right));
        // The side that runs once is the first one, and that of a hash table the second one.
        let is_reverse = join.builds_left || matches!(join.method, JoinMethod::Reverse(_));
        let (outer, inner) = if is_reverse { (right, left) } else { (left, right) };
        node.add(Relation::Outer, outer);
        node.add(Relation::Inner, inner);
        node
    }

    /// The access to a table.
    fn table(&self, access: &TableAccess) -> ExplainNode {
        let table = &access.table;
        let names = column_names(table);
        let named = (&**table, access.alias.as_deref());
        let name = shown_name(named);
        let backward = if access.reverse { " Backward" } else { "" };
        let direction = if access.reverse { "Backward" } else { "Forward" };
        let node = match &access.path {
            AccessPath::Points(keys) => {
                let node = ExplainNode::titled("Point Get", format!("Point Get on {name}"));
                let mut node = with_name(node, named);
                node.detail("Key", points(table, keys, &names));
                node
            }
            AccessPath::Range { prefix, lower, upper } => {
                let node = ExplainNode::titled("Range Scan", format!("Range Scan{backward} on {name}"))
                    .attribute("Scan Direction", direction);
                let mut node = with_name(node, named);
                node.detail("Key", range(table, prefix, lower, upper, &names));
                node
            }
            AccessPath::Index(scan) => {
                let kind = if scan.covers { "Index Only Scan" } else { "Index Scan" };
                let index = table.indexes.get(scan.index);
                let index_name = index.map_or("", |index| index.name.as_str());
                let title = format!("{kind}{backward} using {} on {name}", quote_identifier(index_name));
                let node = ExplainNode::titled(kind, title)
                    .attribute("Scan Direction", direction)
                    .attribute("Index Name", index_name);
                let mut node = with_name(node, named);
                if let Some(conditions) = index.and_then(|index| index_conditions(table, index, scan, &names)) {
                    node.detail("Index Cond", shown_text(&conditions, self.names).into_owned());
                }
                node
            }
            AccessPath::Full => {
                let node = ExplainNode::titled("Full Scan", format!("Full Scan{backward} on {name}"))
                    .attribute("Scan Direction", direction);
                with_name(node, named)
            }
        };
        ExplainNode { estimate: self.estimate(access.estimate), ..node }
    }
}

/// A table as a title names it.
fn shown_name((table, alias): Named<'_>) -> String {
    let name = quote_identifier(&table.name);
    alias.map_or(name.clone(), |alias| format!("{name} {}", quote_identifier(alias)))
}

/// Adds the name of a table, and that which the statement has for it.
fn with_name(node: ExplainNode, (table, alias): Named<'_>) -> ExplainNode {
    node.attribute("Relation Name", table.name.as_str()).attribute("Alias", alias.unwrap_or(&table.name))
}

/// Names for the row of a query: if it only passes on what another one computes, the expressions of that.
fn passed_names(plan: &SelectPlan) -> Vec<String> {
    match &plan.source {
        Source::Rel(rel) if plan.aggregation.is_none() && plan.filter.is_none() => match &**rel {
            Rel::Query(inner) => {
                let names = passed_names(inner);
                inner.output.iter().map(|expr| show(expr, &names)).collect()
            }
            _ => plan.row_names(),
        },
        _ => plan.row_names(),
    }
}

/// The rows that a stage is expected to give over so many.
fn estimate_of_stage(kind: &str, plan: &SelectPlan, below: Option<f64>) -> Option<f64> {
    let has_keys = plan.aggregation.as_ref().is_some_and(|aggregation| !aggregation.keys.is_empty());
    match kind {
        "Aggregate" => (!has_keys && below.is_some()).then_some(1.0),
        "Unique" => None,
        "Limit" if plan.offset.is_none() => below.zip(limit_of(plan)).map(|(below, limit)| below.min(limit)),
        "Limit" => None,
        _ => below,
    }
}

/// Adds how the reads of a node were served.
fn show_read(node: &mut ExplainNode, counted: &NodeRun) {
    if let Some(report) = &counted.read {
        node.detail("Read", format!("{} regions={}", show_report(report), counted.regions.count()));
    }
}

fn function(scan: &FunctionScan) -> ExplainNode {
    let name = match &scan.call {
        SetCall::Set { function, .. } => function.name.to_owned(),
        SetCall::One(expr) => plain(expr, &[]),
    };
    ExplainNode::titled("Function Scan", format!("Function Scan on {name}"))
        .attribute("Function Name", Value::Text(name))
}

fn sort_key(key: &SortKey, plan: &SelectPlan, names: &[String]) -> String {
    shown_key(key, plain(&plan.output[key.column], names))
}

/// A sort key whose expression is shown.
fn shown_key(key: &SortKey, shown: String) -> String {
    let direction = if key.descending { " DESC" } else { "" };
    let nulls = match (key.descending, key.nulls_first) {
        (false, true) => " NULLS FIRST",
        (true, false) => " NULLS LAST",
        _ => "",
    };
    format!("{shown}{direction}{nulls}")
}
