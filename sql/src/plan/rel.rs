//! The relational nodes of a plan: what the rows of a query come from, beside a single table.
//!
//! A query ([`SelectPlan`]) is filter, aggregation, projection, DISTINCT, sort and limit over a source. A source may be
//! such a node, whose inputs are nodes again, and a query is one too. Each node gives rows of a fixed width.

use super::node::SelectPlan;
use crate::expr::Expr;
use crate::table::TableId;
use pgtypes::SqlType;
use pgtypes::functions::ProcRow;

/// A node.
#[derive(Debug)]
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
            Rel::Function(_) => false,
            Rel::With(_) => true,
        }
    }
}

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

impl JoinKind {
    /// Whether rows of the left side without a partner are kept.
    pub(crate) fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full)
    }

    /// Whether rows of the right side without a partner are kept.
    pub(crate) fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
}

/// A join. Its row is that of the left side, then that of the right side.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) left: Rel,
    pub(crate) right: Rel,
    pub(crate) left_width: usize,
    pub(crate) right_width: usize,
    pub(crate) method: JoinMethod,
    /// Over the joined row, beside the keys.
    pub(crate) condition: Option<Expr>,
}

/// How the partners of a row are found.
#[derive(Debug)]
pub(crate) enum JoinMethod {
    /// The rows of the right side are kept by their keys, and those of the left side look theirs up. Each pair is over
    /// the left and over the right row. Without keys every row is a partner.
    Hash(Vec<(Expr, Expr)>),
    /// The right side runs for each row of the left side, with these values of it: a lateral item, or a look-up by key.
    Loop(Vec<Expr>),
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetKind {
    Union,
    Intersect,
    Except,
}

/// UNION, INTERSECT, EXCEPT over two inputs of the same width and types.
#[derive(Debug)]
pub(crate) struct SetOperation {
    pub(crate) kind: SetKind,
    pub(crate) all: bool,
    pub(crate) left: Rel,
    pub(crate) right: Rel,
}

/// A function in FROM.
#[derive(Debug)]
pub(crate) struct FunctionScan {
    pub(crate) call: SetCall,
    /// WITH ORDINALITY: the number of the row is the last column.
    pub(crate) ordinality: bool,
}

/// A call whose rows are wanted.
#[derive(Clone, Debug)]
pub(crate) enum SetCall {
    /// Of a function that returns a set.
    Set { function: &'static ProcRow, args: Vec<Expr>, types: Vec<SqlType>, result: SqlType, width: usize },
    /// Of any other expression: one row.
    One(Expr),
}

impl SetCall {
    /// The expressions that are evaluated before the first row.
    pub(crate) fn args(&self) -> &[Expr] {
        match self {
            SetCall::Set { args, .. } => args,
            SetCall::One(expr) => std::slice::from_ref(expr),
        }
    }

    /// The number of its columns.
    pub(crate) fn width(&self) -> usize {
        match self {
            SetCall::Set { width, .. } => *width,
            SetCall::One(_) => 1,
        }
    }
}

/// Functions that return sets over the rows of an input. They advance together; those that end first give NULL. Their
/// values follow the columns of the input.
#[derive(Debug)]
pub(crate) struct SetValues {
    pub(crate) input: Rel,
    pub(crate) calls: Vec<SetCall>,
}

/// A reference to a query of WITH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WithScan {
    /// The place of the query in the plan.
    pub(crate) query: usize,
    /// Whether it is the reference of a recursive query to itself: the rows that the last step has added.
    pub(crate) is_recursion: bool,
    /// The number of its columns.
    pub(crate) width: usize,
}

/// A query of WITH that runs once for the statement.
#[derive(Debug)]
pub(crate) struct WithQuery {
    /// Its name, for EXPLAIN.
    pub(crate) name: String,
    pub(crate) body: WithBody,
}

/// What a query of WITH is.
#[derive(Debug)]
pub(crate) enum WithBody {
    /// A query.
    Query(SelectPlan),
    /// A recursive one: `first`, then `step` over the rows that the last step has added, until it adds none. Without
    /// `all` rows that were there already are dropped.
    Recursive { first: SelectPlan, step: SelectPlan, all: bool },
}

/// The plan of a sub-query in an expression.
#[derive(Debug)]
pub(crate) struct Subplan {
    pub(crate) plan: SelectPlan,
    /// The most rows that are looked at.
    pub(crate) most: usize,
    /// Whether its values are looked up by equality.
    pub(crate) is_set: bool,
}
