//! The state of the binder: scopes, parameters, error positions.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Location, Span};

use super::found::{AggregateState, ColumnRead};
use super::known::Known;
use super::locked_join::Locking;
use super::node::{Lookup, Notice, References, ResultColumn, WithQuery};
use super::rel::Subplan;
use super::view_text::{Edit, Rewrite};
use super::with_name::WithName;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::{ContextValue, Expr};
use crate::object::{FIRST_SCHEMA, ObjectId, SchemaId};
use crate::parse::{NO_LOCATION, Parsed, is_star};
use crate::system;
use crate::table::{Table, quote_identifier};
use pgtypes::{Datum, Names, SqlType};

/// The highest parameter number that the protocol supports.
const MAX_PARAMS: usize = 65_535;
/// Limit of nested expressions. Bounds the binder's recursion; the parser's own limit is lower.
const MAX_DEPTH: usize = 250;

/// A part of a text that is to be replaced, in bytes, and the new one.
pub(super) type Replacement = (Range<usize>, String);

/// A bound expression with its type and location.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) expr: Expr,
    pub(super) ty: SqlType,
    pub(super) at: Location,
}

impl Typed {
    pub(super) fn new(expr: Expr, ty: SqlType, at: Location) -> Typed {
        Typed { expr, ty, at }
    }
}

/// A table in scope.
#[derive(Clone, Debug)]
pub(super) struct ScopeTable {
    /// The alias, or the table's name.
    pub(super) name: String,
    /// The table's own name, if an alias hides it.
    pub(super) hidden_name: Option<String>,
    /// The columns.
    pub(super) columns: Vec<ScopeColumn>,
    /// The place of its first column in the input row.
    pub(super) offset: usize,
    /// The table's OID.
    pub(super) oid: u32,
    /// The table itself, of one that is named in FROM.
    pub(super) relation: Option<Arc<Table>>,
    /// Whether its rows are scalars: of a function that returns such.
    pub(super) is_scalar: bool,
    /// Whether an outer join may have no row of it.
    pub(super) may_be_missing: bool,
    /// Whether the key of its row follows the columns, which no name means.
    pub(super) has_key: bool,
}

/// A column in scope.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    pub(super) ty: SqlType,
    pub(super) number: i16,
}

/// The tables in scope. The input row has their columns in this order.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) tables: Vec<ScopeTable>,
    /// The columns that USING and NATURAL have made of several. Those of an outer join precede those of the joins in
    /// it, and those of one join are in the order of USING.
    pub(super) merged: Vec<MergedColumn>,
}

/// A column of USING.
#[derive(Clone, Debug)]
pub(super) struct MergedColumn {
    pub(super) name: String,
    pub(super) ty: SqlType,
    /// Its value.
    pub(super) expr: Expr,
    /// The places of the columns that it is made of.
    pub(super) members: Vec<usize>,
    /// The place of the first column of its join: `SELECT *` has it before that.
    pub(super) before: usize,
}

/// A column that `SELECT *` has, and that its name means without a table.
pub(super) enum Visible<'s> {
    Merged(&'s MergedColumn),
    /// One of a table, with its place in the input row.
    Separate(usize, &'s ScopeTable, &'s ScopeColumn),
}

impl<'s> Visible<'s> {
    pub(super) fn name(&self) -> &'s str {
        match self {
            Visible::Merged(column) => &column.name,
            Visible::Separate(_, _, column) => &column.name,
        }
    }

    /// Its value, read at a location.
    pub(super) fn typed(&self, at: Location) -> Typed {
        match self {
            Visible::Merged(column) => Typed::new(column.expr.clone(), column.ty, at),
            Visible::Separate(place, _, column) => Typed::new(Expr::Column(*place), column.ty, at),
        }
    }
}

/// A query around the one that is being bound.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its columns.
    pub(super) scope: Scope,
    /// Those that the inner query uses: expressions over its row.
    pub(super) args: Vec<Expr>,
    /// Where it uses them.
    pub(super) references: Vec<ColumnRead>,
    /// The aggregates that it has so far. Those of the inner query that are over its columns alone are its own.
    pub(super) aggregates: AggregateState,
    /// Its clause that has the inner query.
    pub(super) clause: &'static str,
}

impl Frame {
    /// A query around another one, before that is bound.
    pub(super) fn of(scope: Scope, aggregates: AggregateState, clause: &'static str) -> Frame {
        Frame { scope, args: Vec::new(), references: Vec::new(), aggregates, clause }
    }
}

impl Scope {
    /// The scope of one table.
    pub(super) fn of(table: &Arc<Table>, alias: Option<&str>) -> Scope {
        Scope { tables: vec![ScopeTable::new(table, alias, 0)], merged: Vec::new() }
    }

    /// The columns of one table, for stored expressions over its rows.
    pub(super) fn of_columns(table: &Table) -> Scope {
        Scope { tables: vec![ScopeTable::of_columns(table, None, 0)], merged: Vec::new() }
    }

    /// The columns of a result, which have no table.
    pub(super) fn of_result(columns: &[ResultColumn]) -> Scope {
        let column =
            |column: &ResultColumn| ScopeColumn { name: column.name.clone(), ty: column.ty, number: column.origin.1 };
        let columns = columns.iter().map(column).collect();
        let (name, offset, oid) = (String::new(), 0, 0);
        let table = ScopeTable {
            name,
            hidden_name: None,
            columns,
            offset,
            oid,
            relation: None,
            is_scalar: false,
            may_be_missing: false,
            has_key: false,
        };
        Scope { tables: vec![table], merged: Vec::new() }
    }

    /// All columns with their places in the input row.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &ScopeTable, &ScopeColumn)> {
        self.tables.iter().flat_map(|t| t.columns.iter().enumerate().map(move |(i, c)| (t.offset + i, t, c)))
    }

    /// The columns that names without a table mean, in the order of `SELECT *`.
    pub(super) fn visible(&self) -> Vec<Visible<'_>> {
        let mut merged: Vec<&MergedColumn> = self.merged.iter().collect();
        merged.sort_by_key(|column| column.before);
        let mut merged = merged.into_iter().peekable();
        let mut visible = Vec::new();
        for (place, table, column) in self.columns() {
            while let Some(column) = merged.next_if(|column| column.before <= place) {
                visible.push(Visible::Merged(column));
            }
            if !self.merged.iter().any(|column| column.members.contains(&place)) {
                visible.push(Visible::Separate(place, table, column));
            }
        }
        visible
    }

    /// A column as errors about groups name it: `t.a`.
    pub(super) fn column_label(&self, place: usize) -> String {
        let found = self.columns().find(|(at, _, _)| *at == place);
        found.map_or_else(String::new, |(_, table, column)| format!("{}.{}", table.name, column.name))
    }

    /// Their names.
    pub(super) fn visible_names(&self) -> impl Iterator<Item = &str> {
        self.visible().into_iter().map(|column| column.name())
    }

    /// Whether a name without a table is one of its columns.
    pub(super) fn has_column(&self, name: &str) -> bool {
        self.visible_names().any(|visible| visible == name)
    }

    /// Removes merged columns of a name. Returns the places of the columns that they were made of.
    pub(super) fn take_merged(&mut self, name: &str) -> Vec<usize> {
        self.merged.extract_if(.., |column| column.name == name).flat_map(|column| column.members).collect()
    }

    /// The alias of the first table.
    pub(super) fn alias(&self) -> Option<Box<str>> {
        let aliased = self.tables.first().filter(|table| table.hidden_name.is_some());
        aliased.map(|table| table.name.as_str().into())
    }

    /// The number of columns of the input row.
    pub(super) fn width(&self) -> usize {
        self.tables.iter().map(|table| table.offset + table.width()).max().unwrap_or(0)
    }

    /// Adds the tables of a right side, whose columns follow.
    pub(super) fn extend(&mut self, right: Scope) {
        self.extend_at(self.width(), right);
    }

    /// The same, with the columns of the right side at a place.
    pub(super) fn extend_at(&mut self, by: usize, right: Scope) {
        self.tables.extend(right.tables.into_iter().map(|table| ScopeTable { offset: table.offset + by, ..table }));
        self.merged.extend(right.merged.into_iter().map(|mut column| {
            column.expr.shift_columns(by);
            column.members.iter_mut().for_each(|place| *place += by);
            column.before += by;
            column
        }));
    }

    /// Whether it is one table, whose columns have no other names here.
    pub(super) fn has_own_names(&self) -> bool {
        let [ScopeTable { relation: Some(table), columns, .. }] = self.tables.as_slice() else { return false };
        columns.iter().zip(&table.columns).all(|(here, own)| here.name == own.name)
    }

    /// Column names for EXPLAIN, by place in the input row.
    pub(super) fn names(&self) -> Vec<String> {
        let is_single = self.tables.len() < 2;
        let shown = |table: &ScopeTable, name: &str| match is_single {
            true => quote_identifier(name),
            false => format!("{}.{}", quote_identifier(&table.name), quote_identifier(name)),
        };
        let names = |table: &ScopeTable| {
            let columns = table.columns.iter().map(|column| column.name.as_str());
            columns.chain(table.has_key.then_some("ctid")).map(|name| shown(table, name)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(names).collect()
    }
}

impl ScopeTable {
    pub(super) fn new(table: &Arc<Table>, alias: Option<&str>, offset: usize) -> ScopeTable {
        ScopeTable { relation: Some(Arc::clone(table)), ..ScopeTable::of_columns(table, alias, offset) }
    }

    /// The number of its columns in the input row.
    fn width(&self) -> usize {
        self.columns.len() + usize::from(self.has_key)
    }

    fn of_columns(table: &Table, alias: Option<&str>, offset: usize) -> ScopeTable {
        let columns = table.columns.iter().map(|column| ScopeColumn {
            name: column.name.clone(),
            ty: column.ty,
            number: i16::try_from(column.id.0).unwrap_or(0),
        });
        ScopeTable {
            name: alias.unwrap_or(&table.name).to_owned(),
            hidden_name: alias.filter(|alias| *alias != table.name).map(|_| table.name.clone()),
            columns: columns.collect(),
            offset,
            oid: table.id.0,
            relation: None,
            is_scalar: false,
            may_be_missing: false,
            has_key: false,
        }
    }

    /// Whether a qualifier of a column means it. A schema means tables alone that have no alias.
    pub(super) fn is_named(&self, qualifier: Qualifier<'_>, catalog: &Catalog) -> bool {
        let has_schema = |schema: &str| {
            let relation = self.relation.as_ref().filter(|_| self.hidden_name.is_none());
            relation.is_some_and(|table| match system::of_table(table) {
                Some(relation) => relation.schema_name() == schema,
                None => catalog.schema(schema).is_some_and(|schema| schema.id == table.schema),
            })
        };
        self.name == qualifier.table && qualifier.schema.is_none_or(has_schema)
    }

    /// Its OID as a value of each row: NULL where an outer join has no row of it.
    fn oid_value(&self) -> Option<Expr> {
        let table = self.relation.as_ref()?;
        if system::of_table(table).is_some_and(|relation| relation.is_view) {
            return None;
        }
        let value = Expr::Const(Datum::Int(self.oid.into()));
        let Some(at) = table.columns.iter().position(|column| column.not_null) else { return Some(value) };
        let is_there = Expr::IsNull { expr: Box::new(Expr::Column(self.offset + at)), negated: true };
        Some(Expr::Case { branches: vec![(is_there, value)], otherwise: Box::new(Expr::Const(Datum::Null)) })
    }
}

/// What is before the name of a column: `t.`, `public.t.`
#[derive(Clone, Copy)]
pub(super) struct Qualifier<'q> {
    pub(super) schema: Option<&'q str>,
    pub(super) table: &'q str,
}

/// The state of binding one statement.
pub(super) struct Binder<'a> {
    pub(super) statement: &'a Parsed,
    pub(super) catalog: &'a Catalog,
    /// The statistics of the tables.
    pub(super) known: Known,
    /// The names of tables that it has looked up.
    pub(super) lookups: RefCell<Vec<Lookup>>,
    /// The schema of the relation that the statement creates or changes: names of its indexes are chosen there.
    pub(super) target: SchemaId,
    /// Names of relations in it that the statement has dropped.
    pub(super) freed: Vec<String>,
    /// Types of `$1`, ...; `Unknown` until inferred.
    pub(super) params: Vec<SqlType>,
    declared: &'a [SqlType],
    /// Where parameters stand that no type follows for from their use, with their numbers.
    untyped: Vec<(usize, Location)>,
    /// Whether the statement may have parameters.
    pub(super) allows_params: bool,
    pub(super) aggregates: AggregateState,
    /// How many aggregates it has bound once more, as parts of outer queries.
    pub(super) bound_again: usize,
    /// The current clause, for errors about aggregates.
    pub(super) clause: &'static str,
    /// The tables of FROM that the item being bound cannot refer to, for errors.
    pub(super) beyond: Vec<String>,
    pub(super) depth: usize,
    /// Types of the target columns of INSERT ... SELECT.
    pub(super) targets: Vec<SqlType>,
    /// Whether the text is stored, not sent by the client: errors then have no position.
    pub(super) is_stored: bool,
    /// Notices for the client, sent at execution.
    pub(super) notices: Vec<Notice>,
    /// The queries around the one that is being bound, the outermost first.
    pub(super) frames: Vec<Frame>,
    /// The joins in FROM that the item being bound is in: their frames, and the columns that lateral items see there.
    pub(super) laterals: Vec<(usize, Scope)>,
    /// How the query whose FROM is being bound locks rows.
    pub(super) locking: Option<Locking>,
    /// The sub-queries of expressions.
    pub(super) subplans: Vec<Subplan>,
    /// How many it has bound, each of the equal ones too.
    pub(super) bound_subqueries: usize,
    /// The queries of WITH that run once.
    pub(super) with: Vec<WithQuery>,
    /// The names of WITH in reach, the innermost last.
    pub(super) with_names: Vec<WithName>,
    /// Whether the next select list leaves literals without a type: an operand of a set operation.
    pub(super) keeps_unknown: bool,
    /// Whether the next query is that of the statement itself.
    pub(super) is_top: bool,
    /// Whether the next SELECT may have INTO: the statement has taken it.
    pub(super) allows_into: bool,
    /// The foreign keys that the statement may meet.
    pub(super) references: Option<References>,
    /// What is being bound, if it must not have sub-queries.
    pub(super) refuses_queries: Option<&'static str>,
    /// The relations that it has found by their names.
    pub(super) uses: RefCell<Vec<ObjectId>>,
    /// The columns of relations that it has found by their names, if that is asked for: relation, number of the column.
    pub(super) columns_used: RefCell<Option<BTreeSet<(u32, i16)>>>,
    /// The literals of enums, of their arrays, and of names in a stored text: their types, and where they are.
    pub(super) literals: RefCell<Vec<(SqlType, Location)>>,
    /// The names of types and relations in the text, with the ids that are to stand for them, if that is asked for.
    pub(super) names_read: RefCell<Option<Vec<Replacement>>>,
    /// The names of the relations that the statement creates.
    pub(super) creating: Vec<String>,
    /// The relations that names may lead to, if the text is a view's.
    pub(super) only: Option<Vec<ObjectId>>,
    /// The views whose queries are being bound, the outermost first.
    pub(super) views: Vec<ObjectId>,
    /// How many views the statement has read.
    pub(super) expanded: usize,
    /// What the text gets in other words, if the query is to be stored.
    pub(super) rewrites: Option<Vec<Rewrite>>,
}

impl<'a> Binder<'a> {
    /// A binder. `declared`: the declared types of parameters, `None` if there can be no parameters.
    pub(super) fn new(statement: &'a Parsed, declared: Option<&'a [SqlType]>, catalog: &'a Catalog) -> Binder<'a> {
        let allows_params = declared.is_some();
        let declared = declared.unwrap_or_default();
        let params = declared.iter().map(|ty| catalog.type_of_values(*ty)).collect();
        Binder {
            statement,
            catalog,
            known: Known::new(catalog.statistics().clone()),
            lookups: RefCell::default(),
            target: FIRST_SCHEMA,
            freed: Vec::new(),
            params,
            declared,
            untyped: Vec::new(),
            allows_params,
            aggregates: AggregateState::default(),
            bound_again: 0,
            clause: "",
            beyond: Vec::new(),
            depth: 0,
            targets: Vec::new(),
            is_stored: false,
            notices: Vec::new(),
            frames: Vec::new(),
            laterals: Vec::new(),
            locking: None,
            subplans: Vec::new(),
            bound_subqueries: 0,
            with: Vec::new(),
            with_names: Vec::new(),
            keeps_unknown: false,
            is_top: false,
            allows_into: false,
            references: None,
            refuses_queries: None,
            uses: RefCell::default(),
            columns_used: RefCell::default(),
            literals: RefCell::default(),
            names_read: RefCell::default(),
            creating: Vec::new(),
            only: None,
            views: Vec::new(),
            expanded: 0,
            rewrites: None,
        }
    }

    /// The position of a location for the client.
    pub(super) fn position(&self, at: Location) -> u32 {
        if self.is_stored { 0 } else { self.statement.text.position(at) }
    }

    /// An error at a location.
    pub(super) fn error(&self, code: SqlState, message: impl Into<String>, at: Location) -> SqlError {
        SqlError::new(code, message).at(self.position(at))
    }

    /// 0A000 for an unsupported feature of PostgreSQL.
    pub(super) fn unsupported(&self, what: &str, at: Location) -> SqlError {
        self.error(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} not supported yet"), at)
    }

    /// The name of a type without its modifier, for errors.
    pub(super) fn type_text(&self, ty: SqlType) -> String {
        self.catalog.type_text(ty.base())
    }

    /// The names of the catalog, for literals.
    pub(super) fn names(&self) -> &dyn Names {
        self.catalog
    }

    /// The position of the first `symbol` between two spans, or of the first span.
    pub(super) fn position_between(&self, left: Span, symbol: &str, right: Span) -> u32 {
        let text = &self.statement.text;
        let Some(start) = text.offset(left.end) else { return self.position(left.start) };
        let end = text.offset(right.start).unwrap_or(text.as_str().len());
        let gap = text.as_str().get(start..end).unwrap_or_default().to_ascii_lowercase();
        match gap.find(&symbol.to_ascii_lowercase()) {
            Some(at) => text.position_of_byte(start + at),
            None => self.position(left.start),
        }
    }

    /// The position of the last `symbol` before a location, or of the location.
    pub(super) fn position_before(&self, at: Location, symbol: &str) -> u32 {
        let text = &self.statement.text;
        let Some(end) = text.offset(at) else { return self.position(at) };
        match text.as_str()[..end].to_ascii_lowercase().rfind(symbol) {
            Some(start) => text.position_of_byte(start),
            None => self.position(at),
        }
    }

    /// Enters a nested expression. The caller decrements `depth` on leaving.
    pub(super) fn descend(&mut self) -> Result<(), SqlError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        Ok(())
    }

    /// Binds a parameter by its number.
    pub(super) fn param(&mut self, name: &str, at: Location) -> Result<Typed, SqlError> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let Some(number) = number.filter(|n| self.allows_params && (1..=MAX_PARAMS).contains(n)) else {
            return Err(self.error(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter {name}"), at));
        };
        if self.params.len() < number {
            self.params.resize(number, SqlType::UNKNOWN);
        }
        Ok(Typed::new(Expr::Param(number - 1), self.params[number - 1], at))
    }

    /// Notes a parameter without a type whose use gives it none.
    pub(super) fn note_untyped(&mut self, value: &Typed) {
        if let (Expr::Param(number), SqlType::UNKNOWN) = (&value.expr, value.ty) {
            self.untyped.push((*number, value.at));
        }
    }

    /// The types of all parameters after binding.
    pub(super) fn finish_params(&self) -> Result<Vec<SqlType>, SqlError> {
        let typed_later = |(number, _): &&(usize, Location)| self.params[*number] != SqlType::UNKNOWN;
        if let Some((number, at)) = self.untyped.iter().find(typed_later) {
            let message = format!("could not determine data type of parameter ${}", number + 1);
            return Err(self.error(SqlState::AMBIGUOUS_PARAMETER, message, *at));
        }
        match self.params.iter().position(|ty| *ty == SqlType::UNKNOWN) {
            Some(at) if at >= self.declared.len() || self.declared[at] == SqlType::UNKNOWN => {
                let message = format!("could not determine data type of parameter ${}", at + 1);
                Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message))
            }
            _ => Ok(self.params.clone()),
        }
    }

    /// Binds a column by its possibly qualified name.
    pub(super) fn column(&mut self, parts: &[Ident], scope: &Scope) -> Result<Typed, SqlError> {
        if let Some((_, table)) = parts.split_last().filter(|(last, _)| is_star(last)) {
            return self.starred_row(table, scope);
        }
        let at = parts.first().map_or(NO_LOCATION, |ident| ident.span.start);
        parts.first().map_or(Ok(()), |ident| self.check_name(ident))?;
        let names = parts.iter().map(|part| self.folded(part)).collect::<Result<SmallVec<[_; 2]>, SqlError>>()?;
        let (table, name): (_, &str) = match names.as_slice() {
            [name] => (None, name),
            [table, name] => (Some(Qualifier { schema: None, table }), name),
            [schema, table, name] => (Some(Qualifier { schema: Some(schema), table }), name),
            [database, schema, table, name] if self.catalog.is_own_database(database) => {
                (Some(Qualifier { schema: Some(schema), table }), name)
            }
            _ => {
                let names: Vec<String> = names.into_iter().map(Cow::into_owned).collect();
                return Err(SqlError::far_name(&names, 4).at(self.position(at)));
            }
        };
        if let Some(found) = self.find_column(table, name, scope, at)? {
            self.note_reference(&found);
            self.rewrite_column((table, name), &found, scope, None);
            return Ok(found);
        }
        for depth in (0..self.frames.len()).rev() {
            let (own, scope) = (scope, self.frames[depth].scope.clone());
            if let Some(found) = self.find_column(table, name, &scope, at)? {
                self.rewrite_column((table, name), &found, &scope, Some((depth, own)));
                return Ok(self.outer_value(depth, found));
            }
        }
        // The only function without parentheses that the parser reads as a name.
        if table.is_none() && name == "current_schema" {
            return Ok(Typed::new(Expr::Context(ContextValue::Schema), SqlType::NAME, at));
        }
        if table.is_none()
            && let Some(row) = self.whole_row(name, scope, at)
        {
            self.note_edit(at, || Edit::Row { name: name.to_owned() });
            return Ok(row);
        }
        if let Some(table) = table {
            self.check_table_in_scope(table, scope, at)?;
        }
        let message = match table {
            Some(Qualifier { table, .. }) => format!("column {table}.{name} does not exist"),
            None => format!("column \"{name}\" does not exist"),
        };
        Err(self.error(SqlState::UNDEFINED_COLUMN, message, at))
    }

    /// Notes a reference to a column outside of aggregates, for errors about groups. A merged one refers to all that it
    /// is made of.
    pub(super) fn note_reference(&mut self, value: &Typed) {
        if !self.aggregates.notes_references() {
            return;
        }
        let mut note = |place| self.aggregates.references.push(((place, value.at), false));
        if let Expr::Column(place) = value.expr {
            note(place);
            return;
        }
        let mut places = Vec::new();
        value.expr.collect_columns(&mut places);
        places.into_iter().for_each(note);
    }

    /// Notes what a place becomes in the text that is stored, if the query is to be.
    pub(super) fn note_edit(&mut self, at: Location, edit: impl FnOnce() -> Edit) {
        if let Some(rewrites) = &mut self.rewrites {
            rewrites.push((at, edit()));
        }
    }

    /// Gives a name without a table the one that it is of, if there are others in reach. `scope` has the table.
    /// `outer`: its depth if it is a query around, and the scope of the query that is being bound.
    fn rewrite_column(
        &mut self,
        (table, name): (Option<Qualifier<'_>>, &str),
        found: &Typed,
        scope: &Scope,
        outer: Option<(usize, &Scope)>,
    ) {
        let is_only = outer.is_none() && scope.tables.len() < 2;
        let Expr::Column(place) = found.expr else { return };
        if self.rewrites.is_none() || table.is_some() || is_only {
            return;
        }
        // A merged column may be of another type than the one that it is made of.
        let mut columns = scope.columns().filter(|(at, _, column)| *at == place && column.ty == found.ty);
        let Some((_, owner, _)) = columns.next() else { return };
        // The name may be that of another table that is nearer.
        let around = outer.iter().flat_map(|(depth, own)| {
            let frames = self.frames.iter().skip(depth + 1).map(|frame| &frame.scope);
            frames.chain([*own])
        });
        let is_hidden = around.flat_map(|scope| &scope.tables).any(|table| table.name == owner.name);
        if !owner.name.is_empty() && !is_hidden {
            let edit = Edit::Column { name: name.to_owned(), table: owner.name.clone() };
            self.note_edit(found.at, || edit);
        }
    }

    /// A column of a scope. 42702 if the name means several.
    fn find_column(
        &self,
        table: Option<Qualifier<'_>>,
        name: &str,
        scope: &Scope,
        at: Location,
    ) -> Result<Option<Typed>, SqlError> {
        let column = |place, ty| Typed::new(Expr::Column(place), ty, at);
        // Two are as bad as many.
        let found: SmallVec<[Typed; 2]> = match table {
            Some(table) => {
                let is_it = |(_, owner, column): &(usize, &ScopeTable, &ScopeColumn)| {
                    column.name == name && owner.is_named(table, self.catalog)
                };
                scope.columns().filter(is_it).map(|(place, _, found)| column(place, found.ty)).take(2).collect()
            }
            None if scope.merged.is_empty() => {
                let named = scope.columns().filter(|(_, _, column)| column.name == name);
                named.map(|(place, _, found)| column(place, found.ty)).take(2).collect()
            }
            None => {
                let named = scope.visible().into_iter().filter(|column| column.name() == name);
                named.map(|found| found.typed(at)).take(2).collect()
            }
        };
        if found.len() > 1 {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, at));
        }
        match found.into_iter().next() {
            Some(only) => {
                self.note_columns(&only.expr, scope);
                Ok(Some(only))
            }
            None if name == "tableoid" => Ok(self.table_oid(table, scope, at)),
            None => Ok(None),
        }
    }

    /// Notes the columns of relations that an expression over a scope reads, if that is asked for.
    pub(super) fn note_columns(&self, expr: &Expr, scope: &Scope) {
        let mut used = self.columns_used.borrow_mut();
        let Some(used) = used.as_mut() else { return };
        let mut places = vec![false; scope.columns().map(|(place, _, _)| place + 1).max().unwrap_or(0)];
        expr.mark_columns(&mut places);
        let read = scope.columns().filter(|(place, _, _)| places.get(*place) == Some(&true));
        used.extend(read.map(|(_, owner, column)| (owner.oid, column.number)));
    }

    /// The system column `tableoid` of the only table that it can be of.
    fn table_oid(&self, table: Option<Qualifier<'_>>, scope: &Scope, at: Location) -> Option<Typed> {
        let mut owners =
            scope.tables.iter().filter(|owner| table.is_none_or(|table| owner.is_named(table, self.catalog)));
        let value = owners.next()?.oid_value()?;
        owners.next().is_none().then(|| Typed::new(value, SqlType::OID, at))
    }

    /// A value of a query further out. It passes through the queries between.
    pub(super) fn outer_value(&mut self, depth: usize, found: Typed) -> Typed {
        if let (Expr::Column(place), Some(frame)) = (&found.expr, self.frames.get_mut(depth)) {
            frame.references.push((*place, found.at));
        }
        Typed { expr: self.passed(depth, found.expr), ..found }
    }

    /// An expression of the query at a depth, as one of the query that is being bound.
    pub(super) fn passed(&mut self, depth: usize, expr: Expr) -> Expr {
        let mut expr = expr;
        for frame in self.frames.iter_mut().skip(depth) {
            let place = match frame.args.iter().position(|arg| *arg == expr) {
                Some(place) => place,
                None => {
                    frame.args.push(expr);
                    frame.args.len() - 1
                }
            };
            expr = Expr::Outer(place);
        }
        expr
    }

    pub(super) fn check_table_in_scope(
        &self,
        qualifier: Qualifier<'_>,
        scope: &Scope,
        at: Location,
    ) -> Result<(), SqlError> {
        if scope.tables.iter().any(|t| t.is_named(qualifier, self.catalog)) {
            return Ok(());
        }
        let table = qualifier.table;
        let hint = match scope.tables.iter().find(|t| t.hidden_name.as_deref() == Some(table)) {
            Some(alias) => format!("Perhaps you meant to reference the table alias \"{}\".", alias.name),
            None if self.beyond.iter().any(|name| name == table) => {
                format!(
                    "There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."
                )
            }
            None => {
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                return Err(self.error(SqlState::UNDEFINED_TABLE, message, at));
            }
        };
        let message = format!("invalid reference to FROM-clause entry for table \"{table}\"");
        Err(self.error(SqlState::UNDEFINED_TABLE, message, at).hint(hint))
    }
}
