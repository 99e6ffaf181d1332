//! UNION, INTERSECT, EXCEPT, and WITH.

use sqlparser::ast::{Cte, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, With};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Frame, Scope, Typed};
use super::found::AggregateState;
use super::names::fold_ident;
use super::node::{ResultColumn, WithBody, WithQuery};
use super::recursion::{Item, layers, union_of};
use super::rel::{Rel, SelectPlan, SetKind, SetOperation, Source};
use super::with_name::{WithName, changing};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{query_start, start_of};
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

impl Binder<'_> {
    /// Binds a set operation.
    pub(super) fn set_operation(
        &mut self,
        (op, quantifier): (SetOperator, SetQuantifier),
        left: &SetExpr,
        right: &SetExpr,
        at: Location,
    ) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let kind = match op {
            SetOperator::Union => SetKind::Union,
            SetOperator::Intersect => SetKind::Intersect,
            SetOperator::Except | SetOperator::Minus => SetKind::Except,
        };
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::Distinct | SetQuantifier::None => false,
            _ => return Err(self.unsupported("this form of a set operation is", at)),
        };
        let targets = std::mem::take(&mut self.targets);
        let operands = self.operand(left).and_then(|left| Ok((left, self.operand(right)?)));
        self.targets = targets;
        let (bound_left, bound_right) = operands?;
        let items = (item_locations(left), item_locations(right));
        self.combined((kind, all), bound_left, bound_right, (at, items))
    }

    /// Two bound queries under a set operation.
    fn combined(
        &mut self,
        (kind, all): (SetKind, bool),
        (mut left, left_columns): (SelectPlan, Vec<ResultColumn>),
        (mut right, right_columns): (SelectPlan, Vec<ResultColumn>),
        (at, (left_items, right_items)): (Location, (Vec<Location>, Vec<Location>)),
    ) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let word = match kind {
            SetKind::Union => "UNION",
            SetKind::Intersect => "INTERSECT",
            SetKind::Except => "EXCEPT",
        };
        if left_columns.len() != right_columns.len() {
            let message = format!("each {word} query must have the same number of columns");
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        let mut columns = Vec::with_capacity(left_columns.len());
        for (place, (l, r)) in left_columns.into_iter().zip(right_columns).enumerate() {
            let item = |items: &[Location]| items.get(place).copied().unwrap_or(at);
            let (l_at, r_at) = (item(&left_items), item(&right_items));
            let ty = self.common_type(&[typed(place, l.ty, l_at), typed(place, r.ty, r_at)], word)?;
            if !(all && word == "UNION") {
                self.check_groupable(ty, l_at)?;
            }
            self.convert_column(&mut left, typed(place, l.ty, l_at), ty, word)?;
            self.convert_column(&mut right, typed(place, r.ty, r_at), ty, word)?;
            columns.push(ResultColumn { ty, origin: (0, 0), ..l });
        }
        let width = columns.len();
        let (left, right) = (Rel::Query(Box::new(left)), Rel::Query(Box::new(right)));
        let rel = Rel::Set(Box::new(SetOperation { kind, all, left, right }));
        let names = columns.iter().map(|column| column.name.clone()).collect();
        Ok((SelectPlan::of(Source::Rel(Box::new(rel)), width, names), columns))
    }

    /// Converts an output column to the common type.
    fn convert_column(
        &mut self,
        plan: &mut SelectPlan,
        column: Typed,
        to: SqlType,
        word: &str,
    ) -> Result<(), SqlError> {
        let (Expr::Column(place), from, at) = (column.expr, column.ty, column.at) else { return Ok(()) };
        if from == to {
            return Ok(());
        }
        if !plan.is_simple() {
            let input = std::mem::replace(plan, SelectPlan::single());
            *plan = SelectPlan::over(input);
        }
        let Some(slot) = plan.output.get_mut(place) else { return Ok(()) };
        let expr = std::mem::replace(slot, Expr::Const(pgtypes::Datum::Null));
        let value = self.coerce(Typed::new(expr, from, at), to, CastContext::Implicit)?;
        let Some(value) = value else {
            let message = format!("{word} could not convert type {} to {}", self.type_text(from), self.type_text(to));
            return Err(self.error(SqlState::CANNOT_COERCE, message, at));
        };
        if let Some(slot) = plan.output.get_mut(place) {
            *slot = value.expr;
        }
        Ok(())
    }

    /// An operand of a set operation.
    fn operand(&mut self, body: &SetExpr) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        match body {
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                self.descend()?;
                let bound = self.set_operation((*op, *set_quantifier), left, right, crate::parse::NO_LOCATION);
                self.depth -= 1;
                bound
            }
            body => {
                // Its literals take their types from the other side.
                self.keeps_unknown = true;
                let bound = self.query(&plain_query(body));
                self.keeps_unknown = false;
                bound
            }
        }
    }

    /// Binds the queries of WITH. Their names are in reach until the caller drops them. `is_top`: whether it is the
    /// WITH of the statement, which may change rows.
    pub(super) fn with_clause(&mut self, with: &With, is_top: bool) -> Result<(), SqlError> {
        for Item { cte, is_recursive } in self.with_items(with)? {
            let name = fold_ident(&cte.alias.name);
            if let Some(change) = changing(&cte.query) {
                self.with_change(name, (cte, change), is_top)?;
                continue;
            }
            let names = self.with_names.len();
            let aggregates = std::mem::take(&mut self.aggregates);
            let targets = std::mem::take(&mut self.targets);
            self.begin_with();
            let bound = if is_recursive { self.recursive(name, cte) } else { self.not_recursive(name, cte) };
            let args = self.end_with();
            (self.aggregates, self.targets) = (aggregates, targets);
            bound?;
            let depth = self.frames.len();
            for known in self.with_names.iter_mut().skip(names) {
                (known.args, known.depth) = (args.clone(), depth);
            }
        }
        Ok(())
    }

    /// A query of WITH that does not read itself.
    fn not_recursive(&mut self, name: String, cte: &Cte) -> Result<(), SqlError> {
        let (plan, columns) = self.query(&cte.query)?;
        let columns = self.renamed(columns, cte, &name)?;
        let query = self.with.len();
        let body = WithBody::Query(Box::new(plan));
        self.with.push(WithQuery { name: name.clone(), body, is_read: false });
        self.add_with_name((name, columns), query, false);
        Ok(())
    }

    /// Begins a query of WITH, which may use values of the queries around it.
    fn begin_with(&mut self) {
        self.frames.push(Frame::of(Scope::default(), AggregateState::default(), self.clause));
    }

    /// Ends it. Returns the values that it uses.
    fn end_with(&mut self) -> Vec<Expr> {
        self.frames.pop().map(|frame| frame.args).unwrap_or_default()
    }

    /// Brings the name of a query of WITH into reach. `is_recursion`: for the query itself.
    fn add_with_name(&mut self, (name, columns): (String, Vec<ResultColumn>), query: usize, is_recursion: bool) {
        let (args, depth) = (Vec::new(), self.frames.len());
        self.with_names.push(WithName { name, columns, has_rows: true, query, is_recursion, args, depth });
    }

    /// The columns of a query of WITH, with the names that the list gives them.
    pub(super) fn renamed(
        &self,
        mut columns: Vec<ResultColumn>,
        cte: &Cte,
        name: &str,
    ) -> Result<Vec<ResultColumn>, SqlError> {
        let (available, given) = (columns.len(), cte.alias.columns.len());
        if given > available {
            let message =
                format!("WITH query \"{name}\" has {available} columns available but {given} columns specified");
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, cte.alias.name.span.start));
        }
        for (column, renamed) in columns.iter_mut().zip(&cte.alias.columns) {
            column.name = fold_ident(&renamed.name);
        }
        Ok(columns)
    }

    /// A query of WITH RECURSIVE that reads itself: `first UNION [ALL] step`.
    fn recursive(&mut self, name: String, cte: &Cte) -> Result<(), SqlError> {
        let Some((first, step, all)) = union_of(&cte.query) else {
            return Err(SqlError::internal("a recursive query without UNION"));
        };
        let at = query_start(&cte.query);
        let names = self.with_names.len();
        for with in layers(&cte.query).into_iter().filter_map(|query| query.with.as_ref()) {
            self.with_clause(with, false)?;
        }
        let items = item_locations(first);
        let (mut first, columns) = self.operand(first)?;
        let mut columns = self.renamed(columns, cte, &name)?;
        let written: Vec<SqlType> = columns.iter().map(|column| column.ty).collect();
        for (place, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.ty == SqlType::UNKNOWN) {
            let untyped = typed(place, column.ty, items.get(place).copied().unwrap_or(at));
            self.convert_column(&mut first, untyped, SqlType::TEXT, "UNION")?;
            column.ty = SqlType::TEXT;
        }
        let query = self.with.len();
        // Its place is taken before the queries that the step has.
        let body = WithBody::Query(Box::new(SelectPlan::single()));
        self.with.push(WithQuery { name: name.clone(), body, is_read: false });
        self.add_with_name((name.clone(), columns.clone()), query, true);
        let subplans = self.subplans.len();
        let bound = self.operand(step);
        self.with_names.truncate(names);
        let (mut step, step_columns) = bound?;
        let inner = (query + 1..self.with.len(), subplans..self.subplans.len());
        if step_columns.len() != columns.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        }
        for (place, (column, other)) in columns.iter().zip(&step_columns).enumerate() {
            // What has no type is text for the step, but takes the type of the step beside it.
            let ty = self.common_type(&[typed(place, written[place], at), typed(place, other.ty, at)], "UNION")?;
            if (ty.oid, ty.typmod) != (column.ty.oid, column.ty.typmod) {
                let message = format!(
                    "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                    place + 1,
                    self.catalog.type_text(column.ty),
                    self.catalog.type_text(ty)
                );
                let at = items.get(place).copied().unwrap_or(at);
                let error = self.error(SqlState::DATATYPE_MISMATCH, message, at);
                return Err(error.hint("Cast the output of the non-recursive term to the correct type."));
            }
            self.convert_column(&mut first, typed(place, column.ty, crate::parse::NO_LOCATION), ty, "UNION")?;
            self.convert_column(&mut step, typed(place, other.ty, crate::parse::NO_LOCATION), ty, "UNION")?;
        }
        if let Some(slot) = self.with.get_mut(query) {
            slot.body = WithBody::Recursive { first: Box::new(first), step: Box::new(step), all, inner };
        }
        self.add_with_name((name, columns), query, false);
        Ok(())
    }
}

/// A query of a body alone.
fn plain_query(body: &SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// The locations of the items of a select list without `*`; none of others.
fn item_locations(body: &SetExpr) -> Vec<Location> {
    let SetExpr::Select(select) = body else { return Vec::new() };
    let location = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(ast) | SelectItem::ExprWithAlias { expr: ast, .. } => Some(start_of(ast)),
        _ => None,
    };
    select.projection.iter().map(location).collect::<Option<_>>().unwrap_or_default()
}

fn typed(place: usize, ty: SqlType, at: Location) -> Typed {
    Typed::new(Expr::Column(place), ty, at)
}
