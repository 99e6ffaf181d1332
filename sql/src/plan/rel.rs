//! Queries and the relational nodes that they read.
//!
//! A query ([`SelectPlan`]) is filter, aggregation, projection, DISTINCT, sort and limit over a source. A source may be
//! another node, whose inputs are nodes again, and a query is one too. Each node gives rows of a fixed width.

use super::access::TableAccess;
use super::aggregation::AggregateCall;
pub(crate) use super::kinds::{JoinKind, RowLock, RowWait};
use super::locked_join::LockedJoin;
pub(crate) use super::set_call::SetCall;
use super::show::plain;
use super::window::{Frame, WindowFunction};
use crate::expr::{Children, Expr};
use crate::system::Relation;
use crate::table::{Table, TableId, quote_identifier};

/// A query. Rows of a source pass filter, aggregation, projection, DISTINCT, sort and limit, in this order.
#[derive(Debug, PartialEq)]
pub(crate) struct SelectPlan {
    pub(crate) source: Source,
    /// Over the source's row.
    pub(crate) filter: Option<Expr>,
    pub(crate) aggregation: Option<Aggregation>,
    /// Over the source's or the aggregation's row. Expressions from `visible` on serve the sort only.
    pub(crate) output: Vec<Expr>,
    pub(crate) visible: usize,
    pub(crate) distinct: bool,
    /// DISTINCT ON: only the first row of those with these first output columns in common. Over sorted rows.
    pub(crate) distinct_on: Vec<usize>,
    /// Over the output. Empty if the source has the order already.
    pub(crate) sort: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// FOR UPDATE and the like: returned rows are locked.
    pub(crate) lock: Option<RowLock>,
    /// Which rows these are, if the source is a join.
    pub(crate) locked_join: Option<Box<LockedJoin>>,
    /// Names of the source's columns, for EXPLAIN. None if they are those of the table that it reads.
    pub(crate) names: Vec<String>,
    /// Whether its own expressions have sub-queries. Known when it is settled.
    pub(crate) has_subqueries: bool,
}

impl SelectPlan {
    /// One row without columns.
    pub(crate) fn single() -> SelectPlan {
        SelectPlan {
            source: Source::Single,
            filter: None,
            aggregation: None,
            output: Vec::new(),
            visible: 0,
            distinct: false,
            distinct_on: Vec::new(),
            sort: Vec::new(),
            limit: None,
            offset: None,
            lock: None,
            locked_join: None,
            names: Vec::new(),
            has_subqueries: true,
        }
    }

    /// The first columns of a source, as they are.
    pub(crate) fn of(source: Source, width: usize, names: Vec<String>) -> SelectPlan {
        let output = (0..width).map(Expr::Column).collect();
        SelectPlan { source, output, visible: width, names, ..SelectPlan::single() }
    }

    /// The rows of a query, as they are.
    pub(crate) fn over(input: SelectPlan) -> SelectPlan {
        let (width, names) = (input.visible, Vec::new());
        SelectPlan::of(Source::Rel(Box::new(Rel::Query(Box::new(input)))), width, names)
    }

    /// The expressions that are evaluated before the first row.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = &Expr> {
        let path = match &self.source {
            Source::Table(access) => access.path.exprs(),
            _ => Children::new(),
        };
        path.into_iter().chain(&self.limit).chain(&self.offset)
    }

    /// Whether an expression of its own has a sub-query.
    pub(crate) fn uses_subqueries(&self) -> bool {
        let values = match &self.source {
            Source::Values(rows) => rows.as_slice(),
            _ => &[],
        };
        let aggregation = self.aggregation.iter().flat_map(|aggregation| {
            let direct = aggregation.calls.iter().flat_map(|call| call.direct.iter().map(|(expr, _)| expr));
            let inputs = aggregation.calls.iter().flat_map(|call| call.inputs());
            aggregation.keys.iter().chain(&aggregation.having).chain(direct).chain(inputs)
        });
        let own = self.fixed().chain(values.iter().flatten()).chain(&self.filter).chain(&self.output);
        own.chain(aggregation).any(Expr::has_subquery)
    }

    /// Names of the columns that the output expressions refer to, for EXPLAIN.
    pub(crate) fn row_names(&self) -> Vec<String> {
        let names = self.source_names();
        let Some(aggregation) = &self.aggregation else { return names };
        let keys = aggregation.keys.iter().map(|key| plain(key, &names));
        keys.chain(aggregation.calls.iter().map(|call| shown_call(call, &names))).collect()
    }

    /// Names of the columns of its source, for EXPLAIN.
    pub(crate) fn source_names(&self) -> Vec<String> {
        match &self.source {
            Source::Table(access) if self.names.is_empty() => {
                let key = access.with_key.then(|| "ctid".to_owned());
                column_names(&access.table).into_iter().chain(key).collect()
            }
            Source::System(relation) if self.names.is_empty() => column_names(&relation.table),
            _ => self.names.clone(),
        }
    }

    /// Whether it only filters and projects.
    pub(crate) fn is_simple(&self) -> bool {
        self.aggregation.is_none()
            && !self.distinct
            && self.distinct_on.is_empty()
            && self.sort.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && self.lock.is_none()
            && self.visible == self.output.len()
    }

    /// Whether it reads a table, as far as its own nodes go.
    pub(crate) fn reads(&self, table: TableId) -> bool {
        match &self.source {
            Source::Single | Source::Values(_) | Source::System(_) => false,
            Source::Table(access) => access.table.id == table,
            Source::Rel(rel) => rel.reads(table),
        }
    }

    /// Adds a condition over the source's row.
    pub(crate) fn add_filter(&mut self, condition: Expr) {
        self.filter = Some(match self.filter.take() {
            None => condition,
            Some(Expr::And(mut items)) => {
                items.push(condition);
                Expr::And(items)
            }
            Some(filter) => Expr::And(vec![filter, condition]),
        });
    }
}

/// The source of a query's rows.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// One row without columns.
    Single,
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>),
    /// A table.
    Table(TableAccess),
    /// A relation of the system catalog.
    System(&'static Relation),
    /// Another node.
    Rel(Box<Rel>),
}

/// An aggregation. Its row has the keys of the group, then the aggregates.
#[derive(Debug, PartialEq)]
pub(crate) struct Aggregation {
    /// GROUP BY, over the source's row. Without keys there is one group, also of no row.
    pub(crate) keys: Vec<Expr>,
    pub(crate) calls: Vec<AggregateCall>,
    /// HAVING, over the aggregation's row.
    pub(crate) having: Option<Expr>,
}

/// A sort key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortKey {
    /// The output column.
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// A node.
#[derive(Debug, PartialEq)]
pub(crate) enum Rel {
    /// A query.
    Query(Box<SelectPlan>),
    /// A join.
    Join(Box<Join>),
    /// UNION, INTERSECT, EXCEPT.
    Set(Box<SetOperation>),
    /// A function in FROM.
    Function(FunctionScan),
    /// Functions that return sets, in a select list.
    SetValues(Box<SetValues>),
    /// Window functions.
    Windows(Box<Windows>),
    /// A reference to a query of WITH.
    With(WithScan),
}

impl Rel {
    /// Whether it reads a table. A query of WITH may read any.
    pub(crate) fn reads(&self, table: TableId) -> bool {
        match self {
            Rel::Query(plan) => plan.reads(table),
            Rel::Join(join) => join.left.reads(table) || join.right.reads(table),
            Rel::Set(set) => set.left.reads(table) || set.right.reads(table),
            Rel::SetValues(values) => values.input.reads(table),
            Rel::Windows(windows) => windows.input.reads(table),
            Rel::Function(_) => false,
            Rel::With(_) => true,
        }
    }
}

/// A join. Its row is that of the left side, then that of the right side.
#[derive(Debug, PartialEq)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) left: Rel,
    pub(crate) right: Rel,
    pub(crate) left_width: usize,
    pub(crate) right_width: usize,
    pub(crate) method: JoinMethod,
    /// Over the joined row, beside the keys.
    pub(crate) condition: Option<Expr>,
    /// Of a hash join that is an inner one: whether the rows of the left side are kept, and those of the right side
    /// look theirs up.
    pub(crate) builds_left: bool,
    /// The rows that it is expected to give; `None` if nothing is known.
    pub(crate) estimate: Option<f64>,
}

/// How the partners of a row are found.
#[derive(Debug, PartialEq)]
pub(crate) enum JoinMethod {
    /// The rows of the right side are kept by their keys, and those of the left side look theirs up. Each pair is over
    /// the left and over the right row. Without keys every row is a partner.
    Hash(Vec<(Expr, Expr)>),
    /// The right side runs for each row of the left side, with these values of it: a lateral item, or a look-up by key.
    Loop(Vec<Expr>),
    /// The same of an inner join with the sides exchanged: the left side runs for each row of the right side.
    Reverse(Vec<Expr>),
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetKind {
    Union,
    Intersect,
    Except,
}

/// UNION, INTERSECT, EXCEPT over two inputs of the same width and types.
#[derive(Debug, PartialEq)]
pub(crate) struct SetOperation {
    pub(crate) kind: SetKind,
    pub(crate) all: bool,
    pub(crate) left: Rel,
    pub(crate) right: Rel,
}

/// A function in FROM.
#[derive(Debug, PartialEq)]
pub(crate) struct FunctionScan {
    pub(crate) call: SetCall,
    /// WITH ORDINALITY: the number of the row is the last column.
    pub(crate) ordinality: bool,
}

/// Functions that return sets over the rows of an input. They advance together; those that end first give NULL. Their
/// values follow the columns of the input.
#[derive(Debug, PartialEq)]
pub(crate) struct SetValues {
    pub(crate) input: Rel,
    pub(crate) calls: Vec<SetCall>,
    /// WITH ORDINALITY: the number of the row, within those of one row of the input, is the last column.
    pub(crate) ordinality: bool,
}

/// Windows over the rows of an input. Their values follow the columns of the input.
///
/// The input gives the columns of the query and behind them the keys and arguments of the windows that are no columns
/// themselves. So everything here is a column, and nothing but the offsets of frames is evaluated.
#[derive(Debug, PartialEq)]
pub(crate) struct Windows {
    pub(crate) input: Rel,
    /// The number of columns of the input.
    pub(crate) width: usize,
    /// In the order in which they run: the rows come in the order of the last one.
    pub(crate) windows: Vec<Window>,
}

/// Partitions of the rows, their order, and what is computed over them.
#[derive(Debug, PartialEq)]
pub(crate) struct Window {
    /// Columns that all rows of a partition have in common.
    pub(crate) partition: Vec<usize>,
    /// The order within a partition.
    pub(crate) order: Vec<SortKey>,
    pub(crate) calls: Vec<WindowCall>,
}

/// A call over a window.
#[derive(Debug, PartialEq)]
pub(crate) struct WindowCall {
    /// The place of its value behind the columns of the input.
    pub(crate) place: usize,
    pub(crate) function: WindowFunction,
    pub(crate) frame: Frame,
}

/// Names of the columns of a table, for EXPLAIN.
pub(crate) fn column_names(table: &Table) -> Vec<String> {
    table.columns.iter().map(|column| quote_identifier(&column.name)).collect()
}

/// The call of an aggregate, for EXPLAIN.
pub(super) fn shown_call(call: &AggregateCall, names: &[String]) -> String {
    let args: Vec<String> = call.args.iter().map(|arg| plain(arg, names)).collect();
    let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
    format!("{}({}{args})", call.function.name, if call.distinct { "DISTINCT " } else { "" })
}

impl Windows {
    /// Names of the columns of the input, for EXPLAIN.
    pub(crate) fn input_names(&self) -> Vec<String> {
        let Rel::Query(input) = &self.input else { return Vec::new() };
        let own = input.row_names();
        input.output.iter().map(|output| plain(output, &own)).collect()
    }

    /// The number of values.
    pub(crate) fn values(&self) -> usize {
        self.windows.iter().map(|window| window.calls.len()).sum()
    }

    /// The expressions that are evaluated before the first row.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = &Expr> {
        self.windows.iter().flat_map(|window| window.calls.iter().flat_map(|call| call.frame.offsets()))
    }

    /// Marks the columns of the input that the windows read.
    pub(crate) fn mark_columns(&self, used: &mut [bool]) {
        for window in &self.windows {
            let keys = window.partition.iter().copied().chain(window.order.iter().map(|key| key.column));
            for at in keys.chain(window.calls.iter().flat_map(|call| call.function.columns())) {
                if let Some(used) = used.get_mut(at) {
                    *used = true;
                }
            }
        }
    }
}

/// A reference to a query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WithScan {
    /// The place of the query in the plan.
    pub(crate) query: usize,
    /// Whether it is the reference of a recursive query to itself: the rows that the last step has added.
    pub(crate) is_recursion: bool,
    /// The number of its columns.
    pub(crate) width: usize,
    /// The values of the queries around it that it uses.
    pub(crate) args: Vec<Expr>,
}

/// The plan of a sub-query in an expression.
#[derive(Debug, PartialEq)]
pub(crate) struct Subplan {
    pub(crate) plan: SelectPlan,
    /// The most rows that are looked at.
    pub(crate) most: usize,
    /// Whether its values are looked up by equality.
    pub(crate) is_set: bool,
    /// The rows of its table that are kept between runs.
    pub(crate) kept: Option<KeptRows>,
}

/// The rows of a table that a correlated sub-query keeps between its runs.
#[derive(Debug, PartialEq)]
pub(crate) struct KeptRows {
    /// All rows that any run may see, with all columns of the table.
    pub(crate) base: SelectPlan,
    /// Pairs that are equal for the rows of a run: over a row, and over the values around the query.
    pub(crate) keys: Vec<(Expr, Expr)>,
}
