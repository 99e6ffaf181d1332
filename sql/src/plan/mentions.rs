//! The relations that a query names without a schema: each may be a query of WITH.
//!
//! Names that a WITH inside of the query gives are left out where they are in reach. The order is PostgreSQL's, which
//! reports the first mention that it does not allow. As there, the table that a change writes to counts, and so does a
//! name after FOR UPDATE OF, although neither ever means a query of WITH.

use sqlparser::ast::{
    AccessExpr, Assignment, AssignmentTarget, Cte, Delete, Distinct, Expr as Ast, FromTable, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Insert, Join, JoinConstraint,
    JoinOperator, LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectName, OnConflict, OnConflictAction,
    OnInsert, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    SetOperator, SetQuantifier, Spanned, Statement, Subscript, TableFactor, TableObject, TableWithJoins, Update,
    UpdateTableFromKind, WindowFrameBound, WindowSpec, WindowType, With,
};
use sqlparser::tokenizer::Location;

use super::names::fold_ident;
use crate::parse::subscript;

/// Where a relation is named.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Where a recursive query may name itself.
    Free,
    /// In the part of a recursive query that runs first.
    First,
    /// In a sub-query of an expression.
    Subquery,
    /// On the side of an outer join that NULLs may stand for.
    OuterJoin,
    /// Under INTERSECT ALL.
    Intersect,
    /// Under EXCEPT: what it takes away, or any of EXCEPT ALL.
    Except,
}

/// A relation that is named.
#[derive(Debug)]
pub(super) struct Mention {
    /// Its folded name.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) at: Location,
}

/// The mentions of a query.
pub(super) fn of_query(query: &Query) -> Vec<Mention> {
    found(Place::Free, |walk| walk.query(query))
}

/// The mentions of an operand of UNION, which stands in a place.
pub(super) fn of_operand(operand: &SetExpr, place: Place) -> Vec<Mention> {
    found(place, |walk| walk.body(operand))
}

/// The mentions of the queries of a WITH.
pub(super) fn of_with(with: &With) -> Vec<Mention> {
    found(Place::Subquery, |walk| walk.with(with))
}

fn found(place: Place, visit: impl FnOnce(&mut Walk)) -> Vec<Mention> {
    let mut walk = Walk { place, hidden: Vec::new(), found: Vec::new() };
    visit(&mut walk);
    walk.found
}

struct Walk {
    place: Place,
    /// The names of WITH in reach.
    hidden: Vec<String>,
    found: Vec<Mention>,
}

impl Walk {
    fn query(&mut self, query: &Query) {
        let known = self.hidden.len();
        query.with.iter().for_each(|with| self.with(with));
        self.body(&query.body);
        if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &query.order_by {
            self.keys(keys);
        }
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            self.exprs(offset.iter().map(|offset| &offset.value).chain(limit));
        }
        self.exprs(query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref()));
        query.locks.iter().filter_map(|lock| lock.of.as_ref()).for_each(|name| self.mention(name));
        self.hidden.truncate(known);
    }

    /// The queries of a WITH. Those of WITH RECURSIVE see each other, others the ones before them.
    fn with(&mut self, with: &With) {
        let name = |cte: &Cte| fold_ident(&cte.alias.name);
        if with.recursive {
            self.hidden.extend(with.cte_tables.iter().map(name));
        }
        for cte in &with.cte_tables {
            self.query(&cte.query);
            if !with.recursive {
                self.hidden.push(name(cte));
            }
        }
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.exprs(values.rows.iter().flat_map(|row| &row.content)),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let is_all = *set_quantifier == SetQuantifier::All;
                let (first, second) = match op {
                    SetOperator::Intersect if is_all => (Place::Intersect, Place::Intersect),
                    SetOperator::Except if is_all => (Place::Except, Place::Except),
                    SetOperator::Except => (Place::Free, Place::Except),
                    _ => (Place::Free, Place::Free),
                };
                self.within(first, |walk| walk.body(left));
                self.within(second, |walk| walk.body(right));
            }
            SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => self.change(change),
            _ => {}
        }
    }

    fn change(&mut self, change: &Statement) {
        match change {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            _ => {}
        }
    }

    fn insert(&mut self, insert: &Insert) {
        if let TableObject::TableName(name) = &insert.table {
            self.mention(name);
        }
        insert.columns.iter().for_each(|column| self.target(column));
        insert.source.iter().for_each(|query| self.query(query));
        if let Some(OnInsert::OnConflict(OnConflict { action: OnConflictAction::DoUpdate(update), .. })) = &insert.on {
            self.assignments(&update.assignments);
            self.exprs(&update.selection);
        }
        self.items(insert.returning.iter().flatten());
    }

    fn update(&mut self, update: &Update) {
        self.tables(std::slice::from_ref(&update.table));
        self.assignments(&update.assignments);
        self.exprs(&update.selection);
        if let Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) = &update.from {
            self.tables(from);
        }
        self.items(update.returning.iter().flatten());
    }

    fn delete(&mut self, delete: &Delete) {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        self.tables(from);
        self.tables(delete.using.as_deref().unwrap_or_default());
        self.exprs(&delete.selection);
        self.items(delete.returning.iter().flatten());
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            match &assignment.target {
                AssignmentTarget::ColumnName(column) => self.target(column),
                AssignmentTarget::Tuple(columns) => columns.iter().for_each(|column| self.target(column)),
            }
            self.expr(&assignment.value);
        }
    }

    /// A column that gets a value. It may have subscripts.
    fn target(&mut self, column: &ObjectName) {
        for (call, _) in column.0.iter().filter_map(subscript) {
            self.arguments(&call.args);
        }
    }

    fn tables(&mut self, tables: &[TableWithJoins]) {
        tables.iter().for_each(|item| self.joined(&item.relation, &item.joins));
    }

    fn items<'i>(&mut self, items: impl IntoIterator<Item = &'i SelectItem>) {
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr)
                | SelectItem::ExprWithAlias { expr, .. }
                | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => self.expr(expr),
                _ => {}
            }
        }
    }

    /// Visits a part that has a place of its own. What stands in a place that is refused stays there.
    fn within(&mut self, place: Place, visit: impl FnOnce(&mut Walk)) {
        let outer = self.place;
        if outer == Place::Free {
            self.place = place;
        }
        visit(self);
        self.place = outer;
    }

    fn select(&mut self, select: &Select) {
        if let Some(Distinct::On(items)) = &select.distinct {
            self.exprs(items);
        }
        self.items(&select.projection);
        self.tables(&select.from);
        self.exprs(&select.selection);
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            self.exprs(keys);
        }
        self.exprs(&select.having);
        for NamedWindowDefinition(_, window) in &select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = window {
                self.window(window);
            }
        }
    }

    /// An item of FROM with its joins. The last join is over all before it.
    fn joined(&mut self, first: &TableFactor, joins: &[Join]) {
        let Some((last, before)) = joins.split_last() else { return self.factor(first) };
        let (left, right, constraint) = match &last.join_operator {
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (Place::Free, Place::OuterJoin, Some(on)),
            JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (Place::OuterJoin, Place::Free, Some(on)),
            JoinOperator::FullOuter(on) => (Place::OuterJoin, Place::OuterJoin, Some(on)),
            JoinOperator::Join(on) | JoinOperator::Inner(on) => (Place::Free, Place::Free, Some(on)),
            _ => (Place::Free, Place::Free, None),
        };
        self.within(left, |walk| walk.joined(first, before));
        self.within(right, |walk| walk.factor(&last.relation));
        if let Some(JoinConstraint::On(condition)) = constraint {
            self.expr(condition);
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.mention(name),
            TableFactor::Table { args: Some(args), .. } => self.arguments(&args.args),
            TableFactor::Function { args, .. } => self.arguments(args),
            TableFactor::UNNEST { array_exprs, .. } => self.exprs(array_exprs),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins: inner, .. } => self.joined(&inner.relation, &inner.joins),
            _ => {}
        }
    }

    fn mention(&mut self, name: &ObjectName) {
        let [only] = name.0.as_slice() else { return };
        let Some(ident) = only.as_ident() else { return };
        let (name, at) = (fold_ident(ident), name.span().start);
        if !self.hidden.contains(&name) {
            self.found.push(Mention { name, place: self.place, at });
        }
    }

    fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Ast>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn keys(&mut self, keys: &[OrderByExpr]) {
        self.exprs(keys.iter().map(|key| &key.expr));
    }

    /// An expression. Chains of operators may be long: loops over the left spine.
    fn expr(&mut self, ast: &Ast) {
        let (mut first, mut others) = (ast, Vec::new());
        while let Ast::BinaryOp { left, right, .. } = first {
            others.push(&**right);
            first = left;
        }
        self.operand(first);
        self.exprs(others.into_iter().rev());
    }

    fn operand(&mut self, ast: &Ast) {
        match ast {
            Ast::Subquery(query) => self.subquery(query),
            Ast::Exists { subquery, .. } => self.subquery(subquery),
            Ast::InSubquery { expr, subquery, .. } => {
                self.subquery(subquery);
                self.expr(expr);
            }
            Ast::AnyOp { left, right, .. } | Ast::AllOp { left, right, .. } => {
                self.expr(right);
                self.expr(left);
            }
            Ast::Function(call) => self.call(call),
            other => self.exprs(operands(other)),
        }
    }

    fn subquery(&mut self, query: &Query) {
        let outer = std::mem::replace(&mut self.place, Place::Subquery);
        self.query(query);
        self.place = outer;
    }

    fn call(&mut self, call: &Function) {
        match &call.args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => self.subquery(query),
            FunctionArguments::List(list) => {
                self.arguments(&list.args);
                for clause in &list.clauses {
                    if let FunctionArgumentClause::OrderBy(keys) = clause {
                        self.keys(keys);
                    }
                }
            }
        }
        self.keys(&call.within_group);
        self.exprs(call.filter.as_deref());
        if let Some(WindowType::WindowSpec(window)) = &call.over {
            self.window(window);
        }
    }

    fn arguments(&mut self, args: &[FunctionArg]) {
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
                | FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. }
                | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(value), .. } => self.expr(value),
                _ => {}
            }
        }
    }

    fn window(&mut self, window: &WindowSpec) {
        self.exprs(&window.partition_by);
        self.keys(&window.order_by);
        let Some(frame) = &window.window_frame else { return };
        for bound in std::iter::once(&frame.start_bound).chain(&frame.end_bound) {
            if let WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) = bound {
                self.exprs(offset.as_deref());
            }
        }
    }
}

/// The operands of an expression that is neither a call nor has a sub-query of its own.
fn operands(ast: &Ast) -> Vec<&Ast> {
    match ast {
        Ast::Nested(only)
        | Ast::IsNull(only)
        | Ast::IsNotNull(only)
        | Ast::IsTrue(only)
        | Ast::IsNotTrue(only)
        | Ast::IsFalse(only)
        | Ast::IsNotFalse(only)
        | Ast::IsUnknown(only)
        | Ast::IsNotUnknown(only)
        | Ast::UnaryOp { expr: only, .. }
        | Ast::Cast { expr: only, .. }
        | Ast::Collate { expr: only, .. }
        | Ast::Extract { expr: only, .. }
        | Ast::Ceil { expr: only, .. }
        | Ast::Floor { expr: only, .. }
        | Ast::IsNormalized { expr: only, .. }
        | Ast::Prefixed { value: only, .. } => vec![&**only],
        Ast::IsDistinctFrom(left, right)
        | Ast::IsNotDistinctFrom(left, right)
        | Ast::Like { expr: left, pattern: right, .. }
        | Ast::ILike { expr: left, pattern: right, .. }
        | Ast::SimilarTo { expr: left, pattern: right, .. }
        | Ast::AtTimeZone { timestamp: left, time_zone: right }
        | Ast::Position { expr: left, r#in: right } => vec![&**left, &**right],
        Ast::Between { expr, low, high, .. } => vec![&**expr, &**low, &**high],
        Ast::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        Ast::Tuple(items) => items.iter().collect(),
        Ast::GroupingSets(sets) | Ast::Cube(sets) | Ast::Rollup(sets) => sets.iter().flatten().collect(),
        Ast::Array(array) => array.elem.iter().collect(),
        Ast::Interval(interval) => vec![&*interval.value],
        Ast::Substring { expr, substring_from, substring_for, .. } => {
            std::iter::once(&**expr).chain(substring_from.as_deref()).chain(substring_for.as_deref()).collect()
        }
        Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            [&**expr, &**overlay_what, &**overlay_from].into_iter().chain(overlay_for.as_deref()).collect()
        }
        Ast::Trim { expr, trim_what, trim_characters, .. } => {
            let characters = trim_characters.iter().flatten();
            std::iter::once(&**expr).chain(trim_what.as_deref()).chain(characters).collect()
        }
        Ast::Case { operand, conditions, else_result, .. } => {
            let branches = conditions.iter().flat_map(|when| [&when.condition, &when.result]);
            operand.as_deref().into_iter().chain(branches).chain(else_result.as_deref()).collect()
        }
        Ast::CompoundFieldAccess { root, access_chain } => {
            std::iter::once(&**root).chain(access_chain.iter().flat_map(bounds)).collect()
        }
        _ => Vec::new(),
    }
}

/// The expressions of a subscript.
fn bounds(access: &AccessExpr) -> Vec<&Ast> {
    match access {
        AccessExpr::Subscript(Subscript::Index { index }) => vec![index],
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
            lower_bound.iter().chain(upper_bound).collect()
        }
        AccessExpr::Dot(_) => Vec::new(),
    }
}
