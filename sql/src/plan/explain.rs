//! EXPLAIN: prints a plan as PostgreSQL's indented tree, without costs. EXPLAIN ANALYZE adds the rows of a run and how
//! they were read.

use sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Expr as Ast, UtilityOption};

use super::access::{AccessPath, TableAccess};
use super::binder::Binder;
use super::conditions::KeyBound;
use super::index_path::{IndexScan, PrefixValue};
use super::node::{Actual, Analyze, Body, Conflict, DeletePlan, InsertPlan, ResultColumn, UpdatePlan, Whole, WithBody};
use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, SetCall, SetKind, Source};
use super::show::{plain, show};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::parse::NO_LOCATION;
use crate::table::{Index, Table, quote_identifier};
use pgtypes::SqlType;

impl Binder<'_> {
    /// Refuses the options of EXPLAIN that are not supported. Returns those of ANALYZE.
    pub(super) fn check_explain(
        &self,
        analyze: bool,
        format: Option<&AnalyzeFormatKind>,
        options: &[UtilityOption],
    ) -> Result<Option<Analyze>, SqlError> {
        let at = NO_LOCATION;
        // Only words are known values.
        let value = |option: &UtilityOption| match &option.arg {
            None => String::new(),
            Some(Ast::Identifier(word)) => word.value.to_ascii_lowercase(),
            Some(Ast::Value(value)) => value.to_string().trim_matches('\'').to_ascii_lowercase(),
            Some(_) => "?".to_owned(),
        };
        let is_on = |name: &str| {
            let option = options.iter().rfind(|option| option.name.value.eq_ignore_ascii_case(name))?;
            Some(!["false", "off", "0"].contains(&value(option).as_str()))
        };
        let other_format = match format {
            None => false,
            Some(AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format)) => {
                *format != AnalyzeFormat::TEXT
            }
        };
        let other_option =
            options.iter().any(|option| option.name.value.eq_ignore_ascii_case("format") && value(option) != "text");
        if other_format || other_option {
            return Err(self.unsupported("this format of EXPLAIN is", at));
        }
        let is_analyzed = is_on("analyze").unwrap_or(analyze);
        Ok(is_analyzed.then(|| Analyze { summary: is_on("summary").unwrap_or(true) }))
    }
}

/// The column of EXPLAIN's result.
pub(crate) fn column() -> ResultColumn {
    ResultColumn { name: "QUERY PLAN".to_owned(), ty: SqlType::TEXT, origin: (0, 0) }
}

/// The lines that EXPLAIN prints for a plan.
pub(super) fn lines(whole: &Whole<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    Printer { lines: &mut lines, actual: None }.whole(whole);
    lines
}

/// The lines that EXPLAIN ANALYZE prints for a plan and a run of it.
pub(crate) fn analyzed_lines(whole: &Whole<'_>, actual: &Actual) -> Vec<String> {
    let mut lines = Vec::new();
    Printer { lines: &mut lines, actual: Some(actual) }.whole(whole);
    lines
}

/// Collects the lines of a plan.
struct Printer<'a> {
    lines: &'a mut Vec<String>,
    /// What a run has counted.
    actual: Option<&'a Actual>,
}

impl Printer<'_> {
    /// Adds a node at a depth, which gives `rows`. The root has no arrow.
    fn node(&mut self, depth: usize, text: String, rows: fn(&Actual) -> u64) {
        let actual = self.actual.map_or_else(String::new, |run| format!(" (actual rows={} loops=1)", rows(run)));
        self.lines.push(match depth {
            0 => format!("{text}{actual}"),
            _ => format!("{}->  {text}{actual}", " ".repeat(depth * 6 - 4)),
        });
    }

    /// Adds a filter of the scan at a depth.
    fn filter(&mut self, depth: usize, filter: &Expr, names: &[String]) {
        self.detail(depth, format!("Filter: {}", show(filter, names)));
        let removed = self.actual.map_or(0, |run| run.rows.source.saturating_sub(run.rows.passed));
        if removed > 0 {
            self.detail(depth, format!("Rows Removed by Filter: {removed}"));
        }
    }

    /// Adds a detail of the node at a depth.
    fn detail(&mut self, depth: usize, text: String) {
        self.lines.push(format!("{}{text}", " ".repeat(depth * 6 + 2)));
    }

    /// The statement, then what it runs beside: queries of WITH, sub-queries of expressions.
    fn whole(&mut self, whole: &Whole<'_>) {
        self.body(whole.body, 0);
        let actual = self.actual.take();
        for with in whole.with {
            self.detail(0, format!("CTE {}", quote_identifier(&with.name)));
            match &with.body {
                WithBody::Query(plan) => self.select(plan, 1),
                WithBody::Change(body) => self.body(body, 1),
                WithBody::Recursive { first, step, .. } => {
                    self.node(1, "Recursive Union".to_owned(), |_| 0);
                    self.select(first, 2);
                    self.select(step, 2);
                }
            }
        }
        for (at, subplan) in whole.subplans.iter().enumerate() {
            let kept = if subplan.kept.is_some() { " (rows kept by key)" } else { "" };
            self.detail(0, format!("SubPlan {}{kept}", at + 1));
            self.select(&subplan.plan, 1);
        }
        self.actual = actual;
    }

    fn body(&mut self, body: &Body, depth: usize) {
        match body {
            Body::Select(select) => self.select(select, depth),
            Body::Insert(insert) => self.insert(insert, depth),
            Body::Update(update) => self.update(update, depth),
            Body::Delete(delete) => self.delete(delete, depth),
            Body::Explain(lines) => self.lines.extend(lines.iter().cloned()),
            Body::CreateTableAs(parts) => self.select(&parts.1, depth),
            Body::CopyFrom(_)
            | Body::Truncate(..)
            | Body::CreateTable(_)
            | Body::CreateObject(..)
            | Body::AlterObject(..)
            | Body::Drop(..)
            | Body::AlterTables(..)
            | Body::Nothing(_) => {
                self.node(depth, "Utility Statement".to_owned(), |_| 0);
            }
        }
    }

    fn select(&mut self, plan: &SelectPlan, mut depth: usize) {
        let mut wrap = |printer: &mut Self, text: &str, rows: fn(&Actual) -> u64| {
            printer.node(depth, text.to_owned(), rows);
            depth += 1;
        };
        let pulled: fn(&Actual) -> u64 = |run| run.rows.skipped + run.rows.returned;
        if plan.limit.is_some() || plan.offset.is_some() {
            wrap(self, "Limit", |run| run.rows.returned);
        }
        if plan.lock.is_some() {
            wrap(self, "LockRows", pulled);
        }
        if !plan.sort.is_empty() {
            wrap(self, "Sort", pulled);
            let keys: Vec<String> = plan
                .sort
                .iter()
                .map(|key| {
                    let direction = if key.descending { " DESC" } else { "" };
                    let nulls = match (key.descending, key.nulls_first) {
                        (false, true) => " NULLS FIRST",
                        (true, false) => " NULLS LAST",
                        _ => "",
                    };
                    format!("{}{direction}{nulls}", plain(&plan.output[key.column], &self.output_names(plan)))
                })
                .collect();
            self.detail(depth - 1, format!("Sort Key: {}", keys.join(", ")));
        }
        let mut wrap = |printer: &mut Self, text: &str, rows: fn(&Actual) -> u64| {
            printer.node(depth, text.to_owned(), rows);
            depth += 1;
        };
        if plan.distinct {
            wrap(self, "Unique", |run| run.rows.distinct);
        }
        if let Some(aggregation) = &plan.aggregation {
            let name = if aggregation.keys.is_empty() { "Aggregate" } else { "HashAggregate" };
            wrap(self, name, |run| run.rows.grouped);
            if !aggregation.keys.is_empty() {
                let keys: Vec<String> = aggregation.keys.iter().map(|key| plain(key, &plan.names)).collect();
                self.detail(depth - 1, format!("Group Key: {}", keys.join(", ")));
            }
            if let Some(having) = &aggregation.having {
                let names = self.output_names(plan);
                self.detail(depth - 1, format!("Filter: {}", show(having, &names)));
            }
        }
        let passed: fn(&Actual) -> u64 = |run| run.rows.passed;
        match &plan.source {
            Source::Single => self.node(depth, "Result".to_owned(), passed),
            Source::Values(rows) if rows.len() == 1 => self.node(depth, "Result".to_owned(), passed),
            Source::System(relation) => self.node(depth, format!("System Scan on {}", relation.full_name()), passed),
            Source::Values(_) => self.node(depth, "Values Scan on \"*VALUES*\"".to_owned(), passed),
            Source::Table(access) => return self.table(access, plan.filter.as_ref(), depth),
            Source::Rel(rel) => {
                if let Some(filter) = &plan.filter {
                    self.detail(depth.saturating_sub(1), format!("Filter: {}", show(filter, &plan.names)));
                }
                return self.rel(rel, &plan.names, depth);
            }
        }
        if let Some(filter) = &plan.filter {
            self.filter(depth, filter, &plan.names);
        }
    }

    fn rel(&mut self, rel: &Rel, names: &[String], depth: usize) {
        match rel {
            Rel::Query(plan) => self.select(plan, depth),
            Rel::Join(join) => self.join(join, names, depth),
            Rel::Set(set) => {
                let name = match set.kind {
                    SetKind::Union if set.all => "Append",
                    SetKind::Union => "HashAggregate Append",
                    SetKind::Intersect => "HashSetOp Intersect",
                    SetKind::Except => "HashSetOp Except",
                };
                self.node(depth, name.to_owned(), |_| 0);
                self.rel(&set.left, &[], depth + 1);
                self.rel(&set.right, &[], depth + 1);
            }
            Rel::Function(scan) => {
                let name = match &scan.call {
                    SetCall::Set { function, .. } => function.name.to_owned(),
                    SetCall::One(expr) => plain(expr, &[]),
                };
                self.node(depth, format!("Function Scan on {name}"), |_| 0);
            }
            Rel::SetValues(values) => {
                self.node(depth, "ProjectSet".to_owned(), |_| 0);
                self.rel(&values.input, names, depth + 1);
            }
            Rel::With(scan) => {
                let name = if scan.is_recursion { "WorkTable Scan" } else { "CTE Scan" };
                self.node(depth, name.to_owned(), |_| 0);
            }
        }
    }

    fn join(&mut self, join: &Join, names: &[String], depth: usize) {
        let kind = match join.kind {
            JoinKind::Inner => "",
            JoinKind::Left => " Left",
            JoinKind::Right => " Right",
            JoinKind::Full => " Full",
        };
        let (left, right) = names.split_at(join.left_width.min(names.len()));
        match &join.method {
            JoinMethod::Hash(keys) if keys.is_empty() => {
                let word = if kind.is_empty() { "" } else { " Join" };
                self.node(depth, format!("Nested Loop{kind}{word}"), |_| 0);
            }
            JoinMethod::Hash(keys) => {
                self.node(depth, format!("Hash{kind} Join"), |_| 0);
                let shown = keys.iter().map(|(l, r)| format!("({} = {})", show(l, left), show(r, right)));
                let shown: Vec<String> = shown.collect();
                self.detail(depth, format!("Hash Cond: {}", shown.join(" AND ")));
            }
            JoinMethod::Loop(_) | JoinMethod::Reverse(_) => {
                let word = if kind.is_empty() { "" } else { " Join" };
                self.node(depth, format!("Nested Loop{kind}{word}"), |_| 0);
            }
        }
        if let Some(condition) = &join.condition {
            self.detail(depth, format!("Join Filter: {}", show(condition, names)));
        }
        // The side that runs once is the first one.
        if matches!(join.method, JoinMethod::Reverse(_)) {
            self.rel(&join.right, right, depth + 1);
            self.rel(&join.left, left, depth + 1);
        } else {
            self.rel(&join.left, left, depth + 1);
            self.rel(&join.right, right, depth + 1);
        }
    }

    /// Names of the columns that the output expressions refer to.
    fn output_names(&self, plan: &SelectPlan) -> Vec<String> {
        let Some(aggregation) = &plan.aggregation else { return plan.names.clone() };
        let keys = aggregation.keys.iter().map(|key| plain(key, &plan.names));
        let calls = aggregation.calls.iter().map(|call| {
            let args: Vec<String> = call.args.iter().map(|arg| plain(arg, &plan.names)).collect();
            let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
            format!("{}({}{args})", call.function.name, if call.distinct { "DISTINCT " } else { "" })
        });
        keys.chain(calls).collect()
    }

    fn table(&mut self, access: &TableAccess, filter: Option<&Expr>, depth: usize) {
        let table = &access.table;
        let names: Vec<String> = table.columns.iter().map(|column| quote_identifier(&column.name)).collect();
        let name = quote_identifier(&table.name);
        let backward = if access.reverse { " Backward" } else { "" };
        let passed: fn(&Actual) -> u64 = |run| run.rows.passed;
        match &access.path {
            AccessPath::Points(keys) => {
                self.node(depth, format!("Point Get on {name}"), passed);
                self.detail(depth, format!("Key: {}", points(table, keys, &names)));
            }
            AccessPath::Range { prefix, lower, upper } => {
                self.node(depth, format!("Range Scan{backward} on {name}"), passed);
                let conditions = range(table, prefix, lower, upper, &names);
                self.detail(depth, format!("Key: {conditions}"));
            }
            AccessPath::Index(scan) => {
                let only = if scan.covers { " Only" } else { "" };
                let index = table.indexes.get(scan.index);
                let using = quote_identifier(index.map_or("", |index| &index.name));
                self.node(depth, format!("Index{only} Scan{backward} using {using} on {name}"), passed);
                if let Some(conditions) = index.and_then(|index| index_conditions(table, index, scan, &names)) {
                    self.detail(depth, format!("Index Cond: {conditions}"));
                }
            }
            AccessPath::Full => self.node(depth, format!("Full Scan{backward} on {name}"), passed),
        }
        if let Some(filter) = filter {
            self.filter(depth, filter, &names);
        }
        if let Some(read) = self.actual.and_then(|run| run.read.as_ref()) {
            self.detail(depth, format!("Read: {read}"));
        }
    }

    fn insert(&mut self, plan: &InsertPlan, depth: usize) {
        self.node(depth, format!("Insert on {}", quote_identifier(&plan.write.table.name)), |run| run.returning);
        match &*plan.conflict {
            Conflict::Fail => {}
            Conflict::DoNothing(_) => self.detail(depth, "Conflict Resolution: NOTHING".to_owned()),
            Conflict::DoUpdate { .. } => self.detail(depth, "Conflict Resolution: UPDATE".to_owned()),
        }
        self.select(&plan.source, depth + 1);
    }

    fn update(&mut self, plan: &UpdatePlan, depth: usize) {
        self.node(depth, format!("Update on {}", quote_identifier(&plan.access.table.name)), |run| run.returning);
        match &plan.joined {
            Some(joined) => self.select(&joined.source, depth + 1),
            None => self.table(&plan.access, plan.filter.as_ref(), depth + 1),
        }
    }

    fn delete(&mut self, plan: &DeletePlan, depth: usize) {
        self.node(depth, format!("Delete on {}", quote_identifier(&plan.access.table.name)), |run| run.returning);
        match &plan.joined {
            Some(joined) => self.select(&joined.source, depth + 1),
            None => self.table(&plan.access, plan.filter.as_ref(), depth + 1),
        }
    }
}

fn points(table: &Table, keys: &[Vec<Expr>], names: &[String]) -> String {
    let columns: Vec<&str> = table.primary_key.iter().map(|at| names[*at].as_str()).collect();
    let key = |values: &Vec<Expr>| {
        let values: Vec<String> = values.iter().map(|value| show(value, names)).collect();
        if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
    };
    let columns = if columns.len() == 1 { columns.concat() } else { format!("({})", columns.join(", ")) };
    match keys {
        [single] => format!("({columns} = {})", key(single)),
        several => format!("({columns} IN ({}))", listed(several, key)),
    }
}

fn range(table: &Table, prefix: &[Expr], lower: &[KeyBound], upper: &[KeyBound], names: &[String]) -> String {
    let name = |at: usize| table.primary_key.get(at).map_or("", |column| names[*column].as_str());
    let mut parts: Vec<String> =
        prefix.iter().enumerate().map(|(at, value)| format!("({} = {})", name(at), show(value, names))).collect();
    parts.extend(bound_texts(name(prefix.len()), lower, upper, names));
    if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(" AND ")) }
}

/// The conditions of a scan of an index; `None` without one.
fn index_conditions(table: &Table, index: &Index, scan: &IndexScan, names: &[String]) -> Option<String> {
    let columns = index.column_names(table);
    let column = |at: usize| columns.get(at).map_or("", String::as_str);
    let value = |value: &PrefixValue| value.as_ref().map_or_else(|| "NULL".to_owned(), |value| show(value, names));
    let mut parts: Vec<String> = Vec::new();
    match scan.prefixes.as_slice() {
        [only] => parts.extend(only.iter().enumerate().map(|(at, found)| match found {
            Some(found) => format!("({} = {})", column(at), show(found, names)),
            None => format!("({} IS NULL)", column(at)),
        })),
        several => {
            let width = several.first().map_or(0, Vec::len);
            let key = |prefix: &Vec<PrefixValue>| {
                let values: Vec<String> = prefix.iter().map(value).collect();
                if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
            };
            let left: Vec<&str> = (0..width).map(column).collect();
            let left = if width == 1 { left.concat() } else { format!("({})", left.join(", ")) };
            parts.push(format!("({left} IN ({}))", listed(several, key)));
        }
    }
    let next = column(scan.prefixes.first().map_or(0, Vec::len));
    parts.extend(bound_texts(next, &scan.lower, &scan.upper, names));
    parts.extend(scan.skips_null.then(|| format!("({next} IS NOT NULL)")));
    match parts.len() {
        0 => None,
        1 => Some(parts.concat()),
        _ => Some(format!("({})", parts.join(" AND "))),
    }
}

/// The first keys of a list.
fn listed<K>(keys: &[K], key: impl Fn(&K) -> String) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = keys.iter().take(SHOWN).map(key).collect();
    if keys.len() > SHOWN {
        shown.push(format!("... {} keys", keys.len()));
    }
    shown.join(", ")
}

/// The bounds of a column: `(a > 1)`, `(a <= 5)`.
fn bound_texts(name: &str, lower: &[KeyBound], upper: &[KeyBound], names: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for (bounds, symbol) in [(lower, ">"), (upper, "<")] {
        for bound in bounds {
            let equal = if bound.inclusive { "=" } else { "" };
            parts.push(format!("({name} {symbol}{equal} {})", show(&bound.value, names)));
        }
    }
    parts
}
