//! EXPLAIN: prints a plan as PostgreSQL's indented tree, without costs. EXPLAIN ANALYZE adds the rows of a run and how
//! they were read.

use sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Expr as Ast, UtilityOption};

use super::access::{AccessPath, KeyBound, TableAccess};
use super::binder::Binder;
use super::node::{
    Actual, Analyze, Body, Conflict, DeletePlan, InsertPlan, ResultColumn, SelectPlan, Source, UpdatePlan,
};
use crate::error::SqlError;
use crate::expr::{Call, ContextValue, Expr, SessionCall, Subscript};
use crate::parse::NO_LOCATION;
use crate::table::{Table, quote_identifier};
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone, functions, wire};

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
pub(super) fn column() -> ResultColumn {
    ResultColumn { name: "QUERY PLAN".to_owned(), ty: SqlType::TEXT, origin: (0, 0) }
}

/// The lines that EXPLAIN prints for a plan.
pub(super) fn lines(body: &Body) -> Vec<String> {
    let mut lines = Vec::new();
    Printer { lines: &mut lines, actual: None }.body(body);
    lines
}

/// The lines that EXPLAIN ANALYZE prints for a plan and a run of it.
pub(crate) fn analyzed_lines(body: &Body, actual: &Actual) -> Vec<String> {
    let mut lines = Vec::new();
    Printer { lines: &mut lines, actual: Some(actual) }.body(body);
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

    fn body(&mut self, body: &Body) {
        match body {
            Body::Select(select) => self.select(select, 0),
            Body::Insert(insert) => self.insert(insert),
            Body::Update(update) => self.update(update),
            Body::Delete(delete) => self.delete(delete),
            Body::Explain(lines) => self.lines.extend(lines.iter().cloned()),
            Body::Truncate(_) | Body::CreateTable(_) | Body::DropTable(_) | Body::Nothing(_) => {
                self.node(0, "Utility Statement".to_owned(), |_| 0);
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
            wrap(self, "Aggregate", |run| run.rows.grouped);
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
        }
        if let Some(filter) = &plan.filter {
            self.filter(depth, filter, &plan.names);
        }
    }

    /// Names of the columns that the output expressions refer to.
    fn output_names(&self, plan: &SelectPlan) -> Vec<String> {
        let Some(aggregation) = &plan.aggregation else { return plan.names.clone() };
        aggregation
            .calls
            .iter()
            .map(|call| {
                let args: Vec<String> = call.args.iter().map(|arg| plain(arg, &plan.names)).collect();
                let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
                format!("{}({}{args})", call.function.name, if call.distinct { "DISTINCT " } else { "" })
            })
            .collect()
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
            AccessPath::Full => self.node(depth, format!("Full Scan{backward} on {name}"), passed),
        }
        if let Some(filter) = filter {
            self.filter(depth, filter, &names);
        }
        if let Some(read) = self.actual.and_then(|run| run.read.as_ref()) {
            self.detail(depth, format!("Read: {read}"));
        }
    }

    fn insert(&mut self, plan: &InsertPlan) {
        self.node(0, format!("Insert on {}", quote_identifier(&plan.table.name)), |run| run.returning);
        match &plan.conflict {
            Conflict::Fail => {}
            Conflict::DoNothing => self.detail(0, "Conflict Resolution: NOTHING".to_owned()),
            Conflict::DoUpdate { .. } => self.detail(0, "Conflict Resolution: UPDATE".to_owned()),
        }
        self.select(&plan.source, 1);
    }

    fn update(&mut self, plan: &UpdatePlan) {
        self.node(0, format!("Update on {}", quote_identifier(&plan.access.table.name)), |run| run.returning);
        self.table(&plan.access, plan.filter.as_ref(), 1);
    }

    fn delete(&mut self, plan: &DeletePlan) {
        self.node(0, format!("Delete on {}", quote_identifier(&plan.access.table.name)), |run| run.returning);
        self.table(&plan.access, plan.filter.as_ref(), 1);
    }
}

fn points(table: &Table, keys: &[Vec<Expr>], names: &[String]) -> String {
    const SHOWN: usize = 10;
    let columns: Vec<&str> = table.primary_key.iter().map(|at| names[*at].as_str()).collect();
    let key = |values: &Vec<Expr>| {
        let values: Vec<String> = values.iter().map(|value| show(value, names)).collect();
        if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) }
    };
    let columns = if columns.len() == 1 { columns.concat() } else { format!("({})", columns.join(", ")) };
    match keys {
        [single] => format!("({columns} = {})", key(single)),
        several => {
            let mut shown: Vec<String> = several.iter().take(SHOWN).map(key).collect();
            if several.len() > SHOWN {
                shown.push(format!("... {} keys", several.len()));
            }
            format!("({columns} IN ({}))", shown.join(", "))
        }
    }
}

fn range(table: &Table, prefix: &[Expr], lower: &[KeyBound], upper: &[KeyBound], names: &[String]) -> String {
    let name = |at: usize| table.primary_key.get(at).map_or("", |column| names[*column].as_str());
    let mut parts: Vec<String> =
        prefix.iter().enumerate().map(|(at, value)| format!("({} = {})", name(at), show(value, names))).collect();
    for (bounds, symbol) in [(lower, ">"), (upper, "<")] {
        for bound in bounds {
            let equal = if bound.inclusive { "=" } else { "" };
            parts.push(format!("({} {symbol}{equal} {})", name(prefix.len()), show(&bound.value, names)));
        }
    }
    if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(" AND ")) }
}

/// An expression with a single pair of outer parentheses.
fn plain(expr: &Expr, names: &[String]) -> String {
    let text = show(expr, names);
    match (expr, text.strip_prefix('(').and_then(|t| t.strip_suffix(')'))) {
        (Expr::Call(Call { operator: Some(_), .. }) | Expr::Compare { .. }, Some(inner)) => format!("({inner})"),
        _ => text,
    }
}

/// An expression as SQL with explicit parentheses. `names` are those of its columns.
fn show(expr: &Expr, names: &[String]) -> String {
    let each = |items: &[Expr]| items.iter().map(|item| show(item, names)).collect::<Vec<_>>();
    match expr {
        Expr::Const(value) => constant(value),
        Expr::Column(at) => names.get(*at).cloned().unwrap_or_else(|| format!("column{}", at + 1)),
        Expr::Param(at) => format!("${}", at + 1),
        Expr::Input { ty, text, .. } => format!("'{}'::{}", text.replace('\'', "''"), ty.name()),
        Expr::Cast { expr, cast } => match &**expr {
            simple @ (Expr::Column(_) | Expr::Param(_)) => format!("({})::{}", show(simple, names), cast.to.name()),
            other => format!("({})::{}", show(other, names).trim_matches(['(', ')']), cast.to.name()),
        },
        Expr::Compare { op, left, right } => format!("({} {} {})", show(left, names), op.symbol(), show(right, names)),
        Expr::And(items) => format!("({})", each(items).join(" AND ")),
        Expr::Or(items) => format!("({})", each(items).join(" OR ")),
        Expr::Not(expr) => format!("(NOT {})", show(expr, names)),
        Expr::IsNull { expr, negated } => format!("({} IS {}NULL)", show(expr, names), not(*negated)),
        Expr::IsBool { expr, value, negated } => {
            let word = if *value { "TRUE" } else { "FALSE" };
            format!("({} IS {}{word})", show(expr, names), not(*negated))
        }
        Expr::Distinct { left, right, negated } => {
            format!("({} IS {}DISTINCT FROM {})", show(left, names), not(*negated), show(right, names))
        }
        Expr::InList { expr, list, negated } => {
            format!("({} {}IN ({}))", show(expr, names), not(*negated), each(list).join(", "))
        }
        Expr::InSet { expr, values, with_null, negated } => {
            let mut list: Vec<String> = values.iter().map(constant).collect();
            list.extend(with_null.then(|| "NULL".to_owned()));
            format!("({} {}IN ({}))", show(expr, names), not(*negated), list.join(", "))
        }
        Expr::Case { branches, otherwise } => {
            let arms: Vec<String> =
                branches.iter().map(|(c, r)| format!("WHEN {} THEN {}", show(c, names), show(r, names))).collect();
            format!("CASE {} ELSE {} END", arms.join(" "), show(otherwise, names))
        }
        Expr::Coalesce(items) => format!("COALESCE({})", each(items).join(", ")),
        Expr::Extreme { greatest, items } => {
            format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, each(items).join(", "))
        }
        Expr::Call(call) => show_call(call, names),
        Expr::Elements { function, left, array } => {
            let word = if function.all { "ALL" } else { "ANY" };
            format!("({} {} {word} ({}))", show(left, names), function.operator, show(array, names))
        }
        Expr::Array { items, .. } => format!("ARRAY[{}]", each(items).join(", ")),
        Expr::Row { items, .. } => format!("ROW({})", each(items).join(", ")),
        Expr::Subscript { array, subscripts } => {
            let bound = |expr: &Option<Expr>| expr.as_ref().map(|expr| show(expr, names)).unwrap_or_default();
            let shown = subscripts.iter().map(|subscript| match subscript {
                Subscript::Index(index) => format!("[{}]", show(index, names)),
                Subscript::Slice(lower, upper) => format!("[{}:{}]", bound(lower), bound(upper)),
            });
            format!("{}{}", show(array, names), shown.collect::<String>())
        }
        Expr::Session { call, args } => format!("{}({})", session_call(*call), each(args).join(", ")),
        Expr::Context(value) => context(*value).to_owned(),
        Expr::Let { values, body } => {
            let values: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(at, value)| format!("{} = {}", local(at), show(value, names)))
                .collect();
            format!("({} WHERE {})", show(body, names), values.join(", "))
        }
        Expr::Local(at) => local(*at),
    }
}

fn show_call(call: &Call, names: &[String]) -> String {
    let args: Vec<String> = call
        .args
        .iter()
        .zip(&call.types)
        .map(|(arg, ty)| match arg {
            Expr::Const(value) => typed_constant(value, *ty),
            arg => show(arg, names),
        })
        .collect();
    match (call.operator, args.as_slice()) {
        (Some(operator), [left, right]) => format!("({left} {operator} {right})"),
        (Some(operator), [only]) => format!("({operator} {only})"),
        _ => format!("{}({})", call.function.name, args.join(", ")),
    }
}

/// The name of a `Let` value.
fn local(at: usize) -> String {
    format!("value{}", at + 1)
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

fn session_call(call: SessionCall) -> &'static str {
    match call {
        SessionCall::CurrentSetting => "current_setting",
        SessionCall::SetConfig => "set_config",
        SessionCall::Sleep => "pg_sleep",
        SessionCall::Advisory(call) => call.function(),
        SessionCall::System(function) => functions::find(function).map_or("", |row| row.name),
    }
}

fn context(value: ContextValue) -> &'static str {
    match value {
        ContextValue::Now => "now()",
        ContextValue::User => "CURRENT_USER",
        ContextValue::Database => "current_database()",
        ContextValue::Schema => "current_schema()",
        ContextValue::Version => "version()",
        ContextValue::BackendPid => "pg_backend_pid()",
    }
}

/// A constant of a known type.
fn typed_constant(value: &Datum, ty: SqlType) -> String {
    let plain = matches!(ty.base(), SqlType::BOOL | SqlType::INT2 | SqlType::INT4 | SqlType::INT8 | SqlType::NUMERIC);
    if plain || value.is_null() { constant(value) } else { quoted(value, ty) }
}

fn quoted(value: &Datum, ty: SqlType) -> String {
    let text = wire::show(value, ty, &IoEnv::new(&TimeZone::utc(), Now(0)));
    format!("'{}'::{}", text.replace('\'', "''"), ty.base_name())
}

/// A constant whose type the kind of its value tells.
fn constant(value: &Datum) -> String {
    match value {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(value) if *value < 0 => format!("({value})"),
        Datum::Int(value) => value.to_string(),
        Datum::Numeric(value) if value.signum() == Some(-1) => format!("({})", value.to_text()),
        Datum::Numeric(value) => value.to_text(),
        Datum::Float(_) => quoted(value, SqlType::FLOAT8),
        Datum::Text(_) => quoted(value, SqlType::TEXT),
        Datum::Padded(_) => quoted(value, SqlType::BPCHAR),
        Datum::Bytes(_) => quoted(value, SqlType::BYTEA),
        Datum::Interval(_) => quoted(value, SqlType::INTERVAL),
        Datum::TimeTz(_) => quoted(value, SqlType::TIMETZ),
        Datum::Uuid(_) => quoted(value, SqlType::UUID),
        Datum::Jsonb(_) => quoted(value, SqlType::JSONB),
        Datum::Record(_) => quoted(value, SqlType::RECORD),
        Datum::Array(array) => {
            let ty = SqlType::new(array.element()).array().unwrap_or(SqlType::TEXT_ARRAY);
            quoted(value, ty)
        }
    }
}
