//! Binding of FROM: tables, queries, functions, joins, and references to WITH.

use std::sync::Arc;

use sqlparser::ast::{
    Expr as Ast, FunctionArg, FunctionArgExpr, Join as JoinAst, JoinConstraint, JoinOperator, ObjectName, Query,
    Spanned, TableAlias, TableFactor, TableWithJoins,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Frame, Scope, ScopeColumn, ScopeTable, Typed, Visible};
use super::calls::Arguments;
use super::conditions::conjuncts;
use super::found::AggregateState;
use super::index::bind_indexes;
use super::joins::{join, rel_width, table_scan};
use super::locked_join::JoinTree;
use super::node::ResultColumn;
use super::rel::{FunctionScan, JoinKind, JoinMethod, Rel, SelectPlan, SetCall, SetValues, Source, WithScan};
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{Expr, SequenceCall, SessionCall};
use crate::object::{Object, ObjectId};
use crate::parse::{NO_LOCATION, ROWS, start_of};
use crate::table::Table;
use pgtypes::functions::Run;
use pgtypes::{Datum, SqlType};

/// What FROM gives.
pub(super) enum From {
    /// There is none.
    Nothing,
    /// One table.
    Table(Arc<Table>),
    /// Anything else.
    Rel(Rel),
}

/// An item with its columns.
struct Item {
    rel: Rel,
    scope: Scope,
    /// The values of the items before it that it uses, if it is one that may.
    lateral: Option<Vec<Expr>>,
    /// How it is joined, if its rows are to be locked.
    tree: JoinTree,
}

impl Item {
    fn new(rel: Rel, scope: Scope, lateral: Option<Vec<Expr>>) -> Item {
        Item { rel, scope, lateral, tree: JoinTree::Item }
    }
}

impl Binder<'_> {
    /// Binds FROM.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> Result<(From, Scope), SqlError> {
        let around = std::mem::take(&mut self.laterals);
        let bound = self.items(from);
        self.laterals = around;
        bound
    }

    fn items(&mut self, from: &[TableWithJoins]) -> Result<(From, Scope), SqlError> {
        if let [single] = from
            && single.joins.is_empty()
            && let Some((table, scope)) = self.single_table(&single.relation)?
        {
            return Ok((From::Table(table), scope));
        }
        let (mut whole, known): (Option<Item>, usize) = (None, self.beyond.len());
        for part in from {
            let before = whole.iter().flat_map(|item: &Item| &item.scope.tables).map(|table| table.name.clone());
            self.beyond.truncate(known);
            self.beyond.extend(before);
            let item = self.joined_part(part, whole.as_ref().map(|whole| &whole.scope))?;
            whole = Some(match whole {
                None => item,
                Some(before) => self.joined(JoinKind::Inner, before, item, None, NO_LOCATION)?,
            });
        }
        self.beyond.truncate(known);
        Ok(match whole {
            None => (From::Nothing, Scope::default()),
            Some(item) => {
                if let Some(locking) = &mut self.locking {
                    locking.joined = item.tree;
                }
                (From::Rel(item.rel), item.scope)
            }
        })
    }

    /// Binds an item and what it is joined with. If one of them may be lateral, the join has a frame of its own, whose
    /// columns are those before the join: lateral items alone see them.
    fn joined_part(&mut self, part: &TableWithJoins, before: Option<&Scope>) -> Result<Item, SqlError> {
        if part.joins.is_empty() {
            return self.factor(&part.relation, before);
        }
        let Some(before) = before.filter(|_| may_be_lateral(part)) else {
            let first = self.factor(&part.relation, None)?;
            return self.joins(first, &part.joins);
        };
        self.frames.push(Frame::of(Scope::default(), AggregateState::default(), self.clause));
        self.laterals.push((self.frames.len() - 1, before.clone()));
        let bound = self.factor(&part.relation, None).and_then(|first| self.joins(first, &part.joins));
        self.laterals.pop();
        let args = self.frames.pop().map(|frame| frame.args).unwrap_or_default();
        let mut item = bound?;
        item.tree.replace_outer(&args);
        Ok(Item { lateral: Some(args), ..item })
    }

    /// Binds a lateral item: it sees what is before the joins that it is in.
    fn lateral<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        self.exchange_laterals();
        let bound = bind(self);
        self.exchange_laterals();
        bound
    }

    fn exchange_laterals(&mut self) {
        for (depth, scope) in &mut self.laterals {
            if let Some(frame) = self.frames.get_mut(*depth) {
                std::mem::swap(&mut frame.scope, scope);
            }
        }
    }

    fn joins(&mut self, first: Item, joins: &[JoinAst]) -> Result<Item, SqlError> {
        let mut left = first;
        for ast in joins {
            let (kind, constraint) = self.join_kind(&ast.join_operator, ast.relation.span().start)?;
            let right = self.factor(&ast.relation, Some(&left.scope))?;
            left = self.joined(kind, left, right, constraint, ast.relation.span().start)?;
        }
        Ok(left)
    }

    fn join_kind<'j>(
        &self,
        operator: &'j JoinOperator,
        at: Location,
    ) -> Result<(JoinKind, Option<&'j JoinConstraint>), SqlError> {
        Ok(match operator {
            JoinOperator::Join(on) | JoinOperator::Inner(on) => (JoinKind::Inner, Some(on)),
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (JoinKind::Left, Some(on)),
            JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (JoinKind::Right, Some(on)),
            JoinOperator::FullOuter(on) => (JoinKind::Full, Some(on)),
            JoinOperator::CrossJoin(_) => (JoinKind::Inner, None),
            _ => return Err(self.unsupported("this kind of join is", at)),
        })
    }

    /// Joins two items.
    fn joined(
        &mut self,
        kind: JoinKind,
        left: Item,
        right: Item,
        constraint: Option<&JoinConstraint>,
        at: Location,
    ) -> Result<Item, SqlError> {
        for table in &right.scope.tables {
            if left.scope.tables.iter().any(|other| other.name == table.name && !table.name.is_empty()) {
                let message = format!("table name \"{}\" specified more than once", table.name);
                return Err(self.error(SqlState::DUPLICATE_ALIAS, message, at));
            }
        }
        let lateral = right.lateral.filter(|args| !args.is_empty());
        let uses_left = lateral.iter().flatten().any(|arg| !arg.is_row_independent());
        if uses_left && !matches!(kind, JoinKind::Inner | JoinKind::Left) {
            let message = "invalid reference to FROM-clause entry for table";
            let detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at).detail(detail));
        }
        if lateral.is_some() && !matches!(kind, JoinKind::Inner | JoinKind::Left) {
            return Err(self.unsupported("a lateral item that uses a query further out is here", at));
        }
        let (left_width, right_width) = (rel_width(&left.rel), rel_width(&right.rel));
        let (left_columns, right_columns) = (left.scope.clone(), right.scope.clone());
        let (mut scope, mut right_scope) = (left.scope, right.scope);
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            scope.tables.iter_mut().for_each(|table| table.may_be_missing = true);
        }
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            right_scope.tables.iter_mut().for_each(|table| table.may_be_missing = true);
        }
        scope.extend(right_scope);
        let mut conditions = Vec::new();
        match constraint {
            None | Some(JoinConstraint::None) => {}
            Some(JoinConstraint::On(ast)) => {
                self.clause = "JOIN conditions";
                let aggregates = std::mem::take(&mut self.aggregates);
                let condition = self.condition(ast, &scope, "JOIN/ON");
                self.aggregates = aggregates;
                conjuncts(condition?, &mut conditions);
            }
            Some(JoinConstraint::Using(names)) => {
                let mut words = Vec::with_capacity(names.len());
                for name in names {
                    words.push((self.name_parts(name)?.pop().unwrap_or_default(), name.span().start));
                }
                conditions = self.using(kind, &words, (&left_columns, &right_columns), &mut scope)?;
            }
            Some(JoinConstraint::Natural) => {
                let words = self.common_columns((&left_columns, &right_columns), at);
                conditions = self.using(kind, &words, (&left_columns, &right_columns), &mut scope)?;
            }
        }
        let tree = self.sides(kind, (&left.rel, left.tree), (&right.rel, right.tree), &conditions);
        let join = join(kind, (left.rel, left_width), (right.rel, right_width), conditions, lateral);
        let may_be_full = match (&join.method, &join.condition) {
            (_, None | Some(Expr::Const(_))) => true,
            (JoinMethod::Hash(keys), _) => !keys.is_empty(),
            _ => false,
        };
        if kind == JoinKind::Full && !may_be_full {
            let message = "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Item { tree, ..Item::new(Rel::Join(Box::new(join)), scope, None) })
    }

    /// A plain table without WITH of that name; `None` for anything else.
    fn single_table(&mut self, factor: &TableFactor) -> Result<Option<(Arc<Table>, Scope)>, SqlError> {
        let Some((name, alias)) = self.plain_name(factor)? else { return Ok(None) };
        if self.with_named(name)?.is_some() {
            return Ok(None);
        }
        let table = match self.readable(name)? {
            Relation::Object(object) if matches!(&*object, Object::View(_) | Object::Sequence(_)) => return Ok(None),
            other => self.as_table(other, name)?,
        };
        let scope = self.table_scope(&table, alias)?;
        Ok(Some((table, scope)))
    }

    /// The one row of a sequence.
    fn sequence_item(&self, sequence: ObjectId, alias: Option<&TableAlias>) -> Result<Item, SqlError> {
        let call = |call| Expr::Session {
            call: SessionCall::Sequence(call),
            args: vec![Expr::Const(Datum::Int(sequence.0.into()))],
        };
        let row = vec![call(SequenceCall::LastValue), Expr::Const(Datum::Int(0)), call(SequenceCall::IsCalled)];
        let names = [("last_value", SqlType::INT8), ("log_cnt", SqlType::INT8), ("is_called", SqlType::BOOL)];
        let column = |(at, (name, ty)): (usize, &(&str, SqlType))| ResultColumn {
            name: (*name).to_owned(),
            ty: *ty,
            origin: (sequence.0, i16::try_from(at + 1).unwrap_or(0)),
        };
        let columns: Vec<ResultColumn> = names.iter().enumerate().map(column).collect();
        let shown = self.catalog.object(sequence).map_or("", |object| object.name());
        let scope = self.result_scope(&columns, alias, shown)?;
        let rel = Rel::Query(Box::new(SelectPlan::of(Source::Values(vec![row]), names.len(), scope.names())));
        Ok(Item::new(rel, scope, None))
    }

    fn plain_name<'f>(
        &self,
        factor: &'f TableFactor,
    ) -> Result<Option<(&'f ObjectName, Option<&'f TableAlias>)>, SqlError> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                version: None,
                with_ordinality: false,
                partitions,
                sample: None,
                ..
            } if partitions.is_empty() => Ok(Some((name, alias.as_ref()))),
            _ => Ok(None),
        }
    }

    fn table_scope(&self, table: &Arc<Table>, alias: Option<&TableAlias>) -> Result<Scope, SqlError> {
        let alias_name = alias.map(|alias| self.alias(&alias.name)).transpose()?;
        let mut scope = Scope::of(table, alias_name.as_deref());
        if let (Some(alias), Some(table)) = (alias, scope.tables.first_mut()) {
            self.rename(table, alias)?;
        }
        Ok(scope)
    }

    /// Gives the names of an alias to columns.
    fn rename(&self, table: &mut ScopeTable, alias: &TableAlias) -> Result<(), SqlError> {
        let count = table.columns.len();
        if alias.columns.len() > count {
            let message = format!(
                "table \"{}\" has {count} columns available but {} columns specified",
                table.name,
                alias.columns.len()
            );
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        for (column, renamed) in table.columns.iter_mut().zip(&alias.columns) {
            column.name = self.alias(&renamed.name)?;
        }
        Ok(())
    }

    /// The query of WITH that a name means.
    fn with_named(&self, name: &ObjectName) -> Result<Option<super::with_name::WithName>, SqlError> {
        if self.with_names.is_empty() {
            return Ok(None);
        }
        let parts = self.name_parts(name)?;
        let [word] = parts.as_slice() else { return Ok(None) };
        Ok(self.with_names.iter().rev().find(|with| with.name == *word).cloned())
    }

    /// Binds an item of FROM. `before`: the columns of the items before it, for lateral ones.
    fn factor(&mut self, factor: &TableFactor, before: Option<&Scope>) -> Result<Item, SqlError> {
        let item = self.any_factor(factor, before)?;
        self.check_lockable(factor, &item.rel, &item.scope)?;
        Ok(item)
    }

    fn any_factor(&mut self, factor: &TableFactor, before: Option<&Scope>) -> Result<Item, SqlError> {
        let at = factor.span().start;
        if let Some((name, alias)) = self.plain_name(factor)? {
            if let Some(with) = self.with_named(name)? {
                self.check_has_rows(&with, at)?;
                if let Some(query) = self.with.get_mut(with.query) {
                    query.is_read = true;
                }
                let width = with.columns.len();
                let args = with.args.iter().map(|arg| self.passed(with.depth, arg.clone())).collect();
                let rel = Rel::With(WithScan { query: with.query, is_recursion: with.is_recursion, width, args });
                let scope = self.result_scope(&with.columns, alias, &with.name)?;
                return Ok(Item::new(rel, scope, None));
            }
            let found = self.readable(name)?;
            if let Relation::Object(object) = &found {
                match &**object {
                    Object::View(view) => {
                        let (plan, columns) = self.view_query(view)?;
                        let scope = self.result_scope(&columns, alias, &view.name)?;
                        return Ok(Item::new(Rel::Query(Box::new(plan)), scope, None));
                    }
                    Object::Sequence(sequence) => return self.sequence_item(sequence.id, alias),
                    _ => {}
                }
            }
            let table = self.as_table(found, name)?;
            let mut scope = self.table_scope(&table, alias)?;
            let has_key = scope.tables.iter().any(|item| self.carries_key(&table, &item.name));
            scope.tables.iter_mut().for_each(|item| item.has_key = has_key);
            let indexes = bind_indexes(&table, self.catalog)?;
            return Ok(Item::new(table_scan((table, indexes, scope.alias()), scope.names(), has_key), scope, None));
        }
        match factor {
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                self.derived(*lateral, subquery, alias.as_ref(), before, at)
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, sample: None, .. } => {
                let call = (name, args.args.as_slice(), *with_ordinality);
                self.function_item(call, alias.as_ref(), before)
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                self.function_item((name, args, *with_ordinality), alias.as_ref(), before)
            }
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, with_offset: false, .. } => {
                if array_exprs.len() > 1 {
                    return self.unnested_item((array_exprs, *with_ordinality), alias.as_ref(), before, at);
                }
                let asts: Vec<&Ast> = array_exprs.iter().collect();
                self.called_item(("unnest", &asts, *with_ordinality), alias.as_ref(), before, at)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                // The alias hides the tables, and so where the keys of their rows would be.
                let locking = self.locking.take_if(|_| alias.is_some());
                let item = self.joined_part(table_with_joins, before);
                self.locking = self.locking.take().or(locking);
                let mut item = item?;
                if let Some(alias) = alias {
                    item = self.aliased_join(item, alias)?;
                }
                Ok(item)
            }
            _ => Err(self.unsupported("this kind of table reference is", at)),
        }
    }

    /// A join with an alias, as a table of its columns.
    fn aliased_join(&self, item: Item, alias: &TableAlias) -> Result<Item, SqlError> {
        let Item { mut rel, scope, lateral, .. } = item;
        let visible = scope.visible().into_iter().map(|column| {
            let origin = match column {
                Visible::Merged(_) => (0, 0),
                Visible::Separate(_, table, column) => (table.oid, column.number),
            };
            let Typed { expr, ty, .. } = column.typed(NO_LOCATION);
            (expr, ResultColumn { name: column.name().to_owned(), ty, origin })
        });
        let (output, columns): (Vec<Expr>, Vec<ResultColumn>) = visible.unzip();
        if !scope.merged.is_empty() {
            let mut plan = SelectPlan::of(Source::Rel(Box::new(rel)), output.len(), scope.names());
            plan.output = output;
            rel = Rel::Query(Box::new(plan));
        }
        let scope = self.result_scope(&columns, Some(alias), "")?;
        Ok(Item::new(rel, scope, lateral))
    }

    /// A scope of result columns.
    fn result_scope(
        &self,
        columns: &[ResultColumn],
        alias: Option<&TableAlias>,
        name: &str,
    ) -> Result<Scope, SqlError> {
        let name = match alias {
            Some(alias) => self.alias(&alias.name)?,
            None => name.to_owned(),
        };
        let column =
            |column: &ResultColumn| ScopeColumn { name: column.name.clone(), ty: column.ty, number: column.origin.1 };
        let oid = columns.first().map_or(0, |column| column.origin.0);
        let same = columns.iter().all(|column| column.origin.0 == oid);
        let oid = if same { oid } else { 0 };
        let columns = columns.iter().map(column).collect();
        let mut table = ScopeTable {
            name,
            hidden_name: None,
            columns,
            offset: 0,
            oid,
            relation: None,
            is_scalar: false,
            may_be_missing: false,
            has_key: false,
        };
        if let Some(alias) = alias {
            self.rename(&mut table, alias)?;
        }
        Ok(Scope { tables: vec![table], merged: Vec::new() })
    }

    /// A query in FROM.
    fn derived(
        &mut self,
        is_lateral: bool,
        query: &Query,
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
        at: Location,
    ) -> Result<Item, SqlError> {
        if alias.is_none() {
            let error = self.error(SqlState::SYNTAX_ERROR, "subquery in FROM must have an alias", at);
            return Err(error.hint("For example, FROM (SELECT ...) [AS] foo."));
        }
        let (plan, columns, lateral) = match before.filter(|_| is_lateral) {
            Some(before) => {
                self.clause = "FROM clause of their own query level";
                let (plan, columns, args) = self.lateral(|binder| binder.inner_query(query, before))?;
                (plan, columns, Some(args))
            }
            None => {
                let aggregates = std::mem::take(&mut self.aggregates);
                let targets = std::mem::take(&mut self.targets);
                let bound = if is_lateral { self.lateral(|binder| binder.query(query)) } else { self.query(query) };
                (self.aggregates, self.targets) = (aggregates, targets);
                let (plan, columns) = bound?;
                (plan, columns, None)
            }
        };
        let scope = self.result_scope(&columns, alias, "")?;
        Ok(Item::new(Rel::Query(Box::new(plan)), scope, lateral))
    }

    fn function_item(
        &mut self,
        (name, args, ordinality): (&ObjectName, &[FunctionArg], bool),
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
    ) -> Result<Item, SqlError> {
        let at = name.span().start;
        let mut asts = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) => asts.push(ast),
                _ => return Err(self.unsupported("this form of argument is", at)),
            }
        }
        if let Some(ident) = name.0.first().and_then(|part| part.as_ident())
            && ident.value == ROWS
        {
            return self.rows_item((&asts, ordinality), alias, before, at);
        }
        let word = self.function_name(name, at)?;
        self.called_item((&word, &asts, ordinality), alias, before, at)
    }

    /// A function in FROM. It sees the items before it.
    fn called_item(
        &mut self,
        (name, asts, ordinality): (&str, &[&Ast], bool),
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
        at: Location,
    ) -> Result<Item, SqlError> {
        let (bound, outer) = self.within_from(before, |binder| binder.call_in_from(name, asts, at));
        let (mut call, mut columns) = bound?;
        let lateral = of_tables_before(std::slice::from_mut(&mut call), outer);
        let has_named_columns = matches!(&call, SetCall::Set { function, .. } if !function.columns.is_empty());
        if let (Some(alias), [only], false) = (alias, columns.as_mut_slice(), has_named_columns) {
            // The column of a function with an alias has its name, if the function does not name it.
            only.name = self.alias(&alias.name)?;
        }
        if ordinality {
            columns.push(ResultColumn { name: "ordinality".to_owned(), ty: SqlType::INT8, origin: (0, 0) });
        }
        let own_name = name.rsplit('.').next().unwrap_or(name);
        let mut scope = self.result_scope(&columns, alias, own_name)?;
        let is_scalar = columns.len() == 1;
        scope.tables.iter_mut().for_each(|table| table.is_scalar = is_scalar);
        let rel = Rel::Function(FunctionScan { call, ordinality });
        Ok(Item::new(rel, scope, lateral))
    }

    /// `ROWS FROM (f(a), g(b))`: the rows side by side. The shorter set ends with NULLs.
    fn rows_item(
        &mut self,
        (calls, ordinality): (&[&Ast], bool),
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
        at: Location,
    ) -> Result<Item, SqlError> {
        let mut named = Vec::with_capacity(calls.len());
        for call in calls {
            let Ast::Function(function) = call else {
                return Err(self.unsupported("this item of ROWS FROM is", start_of(call)));
            };
            named.push((self.function_name(&function.name, start_of(call))?, self.plain_arguments(function)?));
        }
        match named.as_slice() {
            [(only, asts)] => self.called_item((only, asts, ordinality), alias, before, at),
            calls => self.side_by_side((calls, ordinality), alias, before, at),
        }
    }

    /// Functions in FROM, side by side. The shorter set ends with NULLs.
    fn side_by_side(
        &mut self,
        (calls, ordinality): (&[(String, Vec<&Ast>)], bool),
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
        at: Location,
    ) -> Result<Item, SqlError> {
        let (bound, outer) = self.within_from(before, |binder| {
            calls.iter().map(|(name, asts)| binder.call_in_from(name, asts, at)).collect::<Result<Vec<_>, SqlError>>()
        });
        let (mut set_calls, columns): (Vec<SetCall>, Vec<Vec<ResultColumn>>) = bound?.into_iter().unzip();
        let lateral = of_tables_before(&mut set_calls, outer);
        let first = calls.first().map_or("", |(name, _)| name.as_str());
        let mut columns = columns.concat();
        if ordinality {
            columns.push(ResultColumn { name: "ordinality".to_owned(), ty: SqlType::INT8, origin: (0, 0) });
        }
        let scope = self.result_scope(&columns, alias, first)?;
        let input = Rel::Query(Box::new(SelectPlan::single()));
        let rel = Rel::SetValues(Box::new(SetValues { input, calls: set_calls, ordinality }));
        Ok(Item::new(rel, scope, lateral))
    }

    /// `unnest(a, b)`: the elements side by side.
    fn unnested_item(
        &mut self,
        (arrays, ordinality): (&[Ast], bool),
        alias: Option<&TableAlias>,
        before: Option<&Scope>,
        at: Location,
    ) -> Result<Item, SqlError> {
        let calls: Vec<(String, Vec<&Ast>)> = arrays.iter().map(|array| ("unnest".to_owned(), vec![array])).collect();
        self.side_by_side((&calls, ordinality), alias, before, at)
    }

    /// Binds calls in FROM. Returns the values that they take from the tables before them, too.
    fn within_from<T>(
        &mut self,
        before: Option<&Scope>,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> (Result<T, SqlError>, Vec<Expr>) {
        self.clause = "functions in FROM";
        let aggregates = std::mem::take(&mut self.aggregates);
        let scope = before.cloned().unwrap_or_default();
        self.frames.push(Frame::of(scope, AggregateState::default(), self.clause));
        let bound = self.lateral(bind);
        let frame = self.frames.pop();
        self.aggregates = aggregates;
        (bound, frame.map(|frame| frame.args).unwrap_or_default())
    }

    fn call_in_from(
        &mut self,
        name: &str,
        asts: &[&Ast],
        at: Location,
    ) -> Result<(SetCall, Vec<ResultColumn>), SqlError> {
        let scope = Scope::default();
        let mut values = Vec::with_capacity(asts.len());
        for ast in asts {
            values.push(self.expr(ast, &scope)?);
        }
        let column = |name: &str, ty: SqlType| ResultColumn { name: name.to_owned(), ty, origin: (0, 0) };
        let is_set = pgtypes::functions::named(name).iter().any(|row| row.returns_set());
        if !is_set {
            let value = self.call(name, Arguments::of(values), at)?;
            let columns = vec![column(name, value.ty)];
            return Ok((SetCall::One(value.expr), columns));
        }
        let (call, ty) = self.set_call(name, values, at)?;
        let columns = match &call {
            SetCall::Set { function, types, .. } if !function.columns.is_empty() => {
                let fields = pgtypes::functions::row_type(function, types).and_then(pgtypes::functions::fields_of);
                fields.as_deref().unwrap_or(function.columns).iter().map(|(name, ty)| column(name, *ty)).collect()
            }
            _ => vec![column(name, ty)],
        };
        Ok((call, columns))
    }

    /// Binds a call of a function that returns a set. Returns the type of its rows too.
    pub(super) fn set_call(
        &mut self,
        name: &str,
        values: Vec<Typed>,
        at: Location,
    ) -> Result<(SetCall, SqlType), SqlError> {
        let arguments = Arguments::of(values);
        let choice = self.choose(name, &arguments, at)?;
        let (args, types) = self.convert_arguments(arguments.values, &choice, at)?;
        let function = choice.function;
        if !matches!(function.run, Run::Set(_) | Run::SessionSet) {
            return Err(self.unsupported(&format!("function {name} here is"), at));
        }
        let width = function.columns.len().max(1);
        let args = args.into_iter().map(fold).collect();
        Ok((SetCall::Set { function, args, types, result: choice.result, width, fields: None }, choice.result))
    }
}

/// The values that calls take from the tables before them. If all come from further out, the calls use these
/// themselves.
fn of_tables_before(calls: &mut [SetCall], outer: Vec<Expr>) -> Option<Vec<Expr>> {
    if !outer.iter().all(Expr::is_row_independent) {
        return Some(outer);
    }
    for arg in calls.iter_mut().flat_map(SetCall::args_mut) {
        arg.replace_with(&mut |part| match part {
            Expr::Outer(at) => outer.get(*at).cloned(),
            _ => None,
        });
    }
    None
}

/// Whether an item of a join is of a kind that sees the items before it.
fn may_be_lateral(part: &TableWithJoins) -> bool {
    let factors = std::iter::once(&part.relation).chain(part.joins.iter().map(|join| &join.relation));
    factors.into_iter().any(|factor| match factor {
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::NestedJoin { table_with_joins, .. } => may_be_lateral(table_with_joins),
        _ => true,
    })
}
