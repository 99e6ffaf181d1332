//! The tree of a bound expression: nodes, comparisons, calls.

use std::fmt;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::advisory::LockCall;
use pgtypes::cast::Cast;
use pgtypes::functions::{self, ProcRow, Volatility};
use pgtypes::{Datum, Oid, SqlType};

/// An expression over one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// A constant.
    Const(Datum),
    /// Column of the input row, from 0.
    Column(usize),
    /// Parameter, from 0 for `$1`.
    Param(usize),
    /// A literal whose value depends on the session (a time without a zone, `'now'`). Parsed at execution.
    Input { ty: SqlType, text: Box<str>, position: Position },
    /// A conversion.
    Cast { expr: Box<Expr>, cast: Cast },
    /// A conversion to a domain: the value, which fails if it is none of the domain. Never folded.
    Domain { expr: Box<Expr>, check: Arc<DomainCheck> },
    /// A comparison. NULL if a side is NULL. `ty`, here and below: the type of both sides, for EXPLAIN.
    Compare { op: CompareOp, left: Box<Expr>, right: Box<Expr>, ty: SqlType },
    /// Three-valued conjunction.
    And(Vec<Expr>),
    /// Three-valued disjunction.
    Or(Vec<Expr>),
    /// Three-valued negation.
    Not(Box<Expr>),
    /// `IS [NOT] NULL`, and `IS [NOT] UNKNOWN` of a boolean.
    IsNull { expr: Box<Expr>, negated: bool },
    /// `IS [NOT] TRUE` and `IS [NOT] FALSE`.
    IsBool { expr: Box<Expr>, value: bool, negated: bool },
    /// `IS [NOT] DISTINCT FROM`: `negated` for the form with NOT.
    Distinct { left: Box<Expr>, right: Box<Expr>, negated: bool, ty: SqlType },
    /// `IN (list)`.
    InList { expr: Box<Expr>, list: Vec<Expr>, negated: bool, ty: SqlType },
    /// `IN` a list of constants: sorted, distinct and without NULL. `with_null`: the list had a NULL.
    InSet { expr: Box<Expr>, values: Vec<Datum>, with_null: bool, negated: bool, ty: SqlType },
    /// `left op ANY (array)`, or ALL: a function of two arguments over the elements of an array.
    Elements { function: Elementwise, left: Box<Expr>, array: Box<Expr> },
    /// Each element of an array. It stands for several values in the keys of an access path, and nowhere else.
    Each(Box<Expr>),
    /// `CASE` with boolean conditions.
    Case { branches: Vec<(Expr, Expr)>, otherwise: Box<Expr> },
    /// `COALESCE`: the first value that is not NULL.
    Coalesce(Vec<Expr>),
    /// `GREATEST` or `LEAST`, ignoring NULLs, of values of a type. It fails if these have no order.
    Extreme { greatest: bool, items: Vec<Expr>, ty: SqlType },
    /// A call of a function, which operators are too.
    Call(Call),
    /// `ARRAY[...]`: of elements, or of arrays if `is_nested`.
    Array { element: SqlType, items: Vec<Expr>, is_nested: bool },
    /// `array[...]`
    Subscript { array: Box<Expr>, subscripts: Vec<Subscript> },
    /// An array with a value assigned to an element or to a slice: `SET a[2] = x`. `element`: the type of its elements.
    Assigned { array: Box<Expr>, subscripts: Vec<Subscript>, value: Box<Expr>, element: SqlType },
    /// A field of a row, from 0. NULL of what is none.
    Field { record: Box<Expr>, at: usize },
    /// `ROW(...)`
    Row { types: Vec<SqlType>, items: Vec<Expr>, names: Option<Arc<[Box<str>]>> },
    /// A function that reads or changes the session. Never folded.
    Session { call: SessionCall, args: Vec<Expr> },
    /// A value of the session or transaction.
    Context(ContextValue),
    /// A value of the row around a sub-query or a lateral item of FROM, from 0.
    Outer(usize),
    /// A value of a sub-query.
    Subquery(Subquery),
    /// An aggregate of the query, from 0. The binder puts a column in its place when it knows the groups.
    Aggregate(usize),
    /// A value of a function that returns a set, from 0. The binder puts a column in its place.
    SetValue(usize),
    /// A value of a window function of the query, from 0. The binder puts a column in its place.
    WindowValue(usize),
    /// Values computed once, and an expression that uses them as [`Expr::Local`].
    Let { values: Vec<Expr>, body: Box<Expr> },
    /// A value of the innermost enclosing `Let`, from 0.
    Local(usize),
}

/// A position in the statement, in characters from 1; 0 for none. Any two compare equal, since it does not affect the
/// value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position(pub(crate) u32);

impl PartialEq for Position {
    fn eq(&self, _: &Position) -> bool {
        true
    }
}

/// A call of a function with the types that its arguments and result have.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The function.
    pub(crate) function: &'static ProcRow,
    /// The name of the operator that was written, for EXPLAIN.
    pub(crate) operator: Option<&'static str>,
    /// The arguments.
    pub(crate) args: Vec<Expr>,
    /// Their types.
    pub(crate) types: Vec<SqlType>,
    /// The type of the result.
    pub(crate) result: SqlType,
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        self.function.oid == other.function.oid && self.types == other.types && self.args == other.args
    }
}

/// What ANY and ALL do with each element.
#[derive(Clone, Debug)]
pub(crate) struct Elementwise {
    /// The function of the operator, over the left value and an element.
    pub(crate) function: &'static ProcRow,
    /// The name of the operator.
    pub(crate) operator: &'static str,
    /// The types of its arguments.
    pub(crate) types: [SqlType; 2],
    /// Whether it must hold for all elements, not for any.
    pub(crate) all: bool,
}

impl PartialEq for Elementwise {
    fn eq(&self, other: &Elementwise) -> bool {
        self.function.oid == other.function.oid && self.all == other.all
    }
}

/// The constraints of a domain and of those that it is made of. The binder makes none where there is nothing to check.
#[derive(PartialEq)]
pub(crate) struct DomainCheck {
    /// The domain as SQL, for messages.
    pub(crate) shown: String,
    /// The names of its schema and of itself.
    pub(crate) name: (String, String),
    /// Whether NULL is refused.
    pub(crate) not_null: bool,
    /// Names and conditions of the CHECKs in their order. NULL passes. The value is the only column of their row.
    pub(crate) conditions: Vec<(String, Expr)>,
}

/// Without its names: plans are compared by what they are shown as, also after a new name.
impl fmt::Debug for DomainCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DomainCheck");
        shown.field("not_null", &self.not_null).field("conditions", &self.conditions).finish_non_exhaustive()
    }
}

/// A sub-query in an expression. The plan of the statement has its plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subquery {
    /// The place of its plan.
    pub(crate) plan: usize,
    /// The values of the row around it that it uses, which are [`Expr::Outer`] in it.
    pub(crate) args: Vec<Expr>,
    /// What its value is.
    pub(crate) kind: SubqueryKind,
}

/// What the value of a sub-query is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SubqueryKind {
    /// That of its only row; NULL without one.
    Scalar,
    /// A column of its only row; NULL without one.
    Field(usize),
    /// Whether it has a row.
    Exists,
    /// An array of its values. If these are arrays, it has one more dimension.
    Array { element: SqlType, is_nested: bool },
    /// `left op ANY (...)`, or ALL, over its values. IN is `= ANY`.
    Elements { function: Elementwise, left: Box<Expr> },
    /// `(a, b) = ANY (...)`: IN of a row.
    Rows { left: Vec<Expr> },
}

/// A subscript of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subscript {
    /// `[index]`
    Index(Expr),
    /// `[lower:upper]`
    Slice(Option<Expr>, Option<Expr>),
}

impl Subscript {
    fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (first, second) = match self {
            Subscript::Index(index) => (Some(index), None),
            Subscript::Slice(lower, upper) => (lower.as_ref(), upper.as_ref()),
        };
        first.into_iter().chain(second)
    }

    fn operands_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (first, second) = match self {
            Subscript::Index(index) => (Some(index), None),
            Subscript::Slice(lower, upper) => (lower.as_mut(), upper.as_mut()),
        };
        first.into_iter().chain(second)
    }
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Less,
    /// `<=`
    LessEq,
    /// `>`
    Greater,
    /// `>=`
    GreaterEq,
}

/// Values fixed for a transaction or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextValue {
    /// `now()`, `current_timestamp`
    Now,
    /// `current_user`, `session_user`, `user`, `current_role`
    User,
    /// `current_database()`, `current_catalog`
    Database,
    /// `current_schema()`
    Schema,
    /// `version()`
    Version,
    /// `pg_backend_pid()`
    BackendPid,
}

/// Functions of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionCall {
    /// `current_setting(name [, missing_ok])`
    CurrentSetting,
    /// `set_config(name, value, is_local)`
    SetConfig,
    /// `pg_sleep(seconds)`
    Sleep,
    /// `pg_sleep_for(interval)`
    SleepFor,
    /// `pg_sleep_until(time)`
    SleepUntil,
    /// `pg_advisory_lock(...)` and its kin
    Advisory(LockCall),
    /// `nextval(...)` and its kin
    Sequence(SequenceCall),
    /// `pg_cancel_backend(pid)`
    CancelBackend,
    /// `pg_terminate_backend(pid, timeout)`
    TerminateBackend,
    /// `pg_blocking_pids(pid)`
    BlockingPids,
    /// A function of the system catalog
    System(Oid),
}

/// Functions of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceCall {
    /// `nextval(sequence)`
    Next,
    /// `currval(sequence)`
    Current,
    /// `lastval()`
    Last,
    /// `setval(sequence, value [, is_called])`
    Set,
    /// The column `last_value` of a sequence.
    LastValue,
    /// Its column `is_called`.
    IsCalled,
    /// `pg_sequence_last_value(sequence)`
    GivenValue,
}

impl SequenceCall {
    /// The name of the function, or of the column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SequenceCall::Next => "nextval",
            SequenceCall::Current => "currval",
            SequenceCall::Last => "lastval",
            SequenceCall::Set => "setval",
            SequenceCall::LastValue => "last_value",
            SequenceCall::IsCalled => "is_called",
            SequenceCall::GivenValue => "pg_sequence_last_value",
        }
    }

    /// The call of a function's name.
    pub(crate) fn named(name: &str) -> Option<SequenceCall> {
        Some(match name {
            "nextval" => SequenceCall::Next,
            "currval" => SequenceCall::Current,
            "lastval" => SequenceCall::Last,
            "setval" => SequenceCall::Set,
            "pg_sequence_last_value" => SequenceCall::GivenValue,
            _ => return None,
        })
    }
}

impl CompareOp {
    /// The operator with its sides exchanged.
    pub(crate) fn flip(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessEq => CompareOp::GreaterEq,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterEq => CompareOp::LessEq,
            same => same,
        }
    }

    /// The comparison of a name.
    pub(crate) fn named(name: &str) -> Option<CompareOp> {
        Some(match name {
            "=" => CompareOp::Eq,
            "<>" => CompareOp::NotEq,
            "<" => CompareOp::Less,
            "<=" => CompareOp::LessEq,
            ">" => CompareOp::Greater,
            ">=" => CompareOp::GreaterEq,
            _ => return None,
        })
    }

    /// As written in SQL.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::NotEq => "<>",
            CompareOp::Less => "<",
            CompareOp::LessEq => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterEq => ">=",
        }
    }
}

/// Whether values of two types compare as the kinds of their values do.
pub(crate) fn compares_alike(left: SqlType, right: SqlType) -> bool {
    let (l, r) = (left.row(), right.row());
    let is_time = |ty: SqlType| matches!(ty.base(), SqlType::DATE | SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ);
    // Stored as texts that have another order.
    if matches!(left.base(), SqlType::PG_LSN | SqlType::TID) {
        return false;
    }
    // The functions report elements that cannot be compared.
    if left.is_array() && !functions::has_order(left) {
        return false;
    }
    l.repr == r.repr && (left.oid == right.oid || !(is_time(left) || is_time(right)))
}

/// The operands of an expression; most have few.
pub(crate) type Children<'e> = SmallVec<[&'e Expr; 4]>;

impl Expr {
    /// The direct operands.
    pub(crate) fn children(&self) -> Children<'_> {
        match self {
            Expr::Const(_)
            | Expr::Column(_)
            | Expr::Param(_)
            | Expr::Input { .. }
            | Expr::Context(_)
            | Expr::Outer(_)
            | Expr::Aggregate(_)
            | Expr::SetValue(_)
            | Expr::WindowValue(_)
            | Expr::Local(_) => Children::new(),
            Expr::Subquery(Subquery { args, kind, .. }) => {
                let left: &[Expr] = match kind {
                    SubqueryKind::Elements { left, .. } => std::slice::from_ref(left),
                    SubqueryKind::Rows { left } => left,
                    _ => &[],
                };
                left.iter().chain(args).collect()
            }
            Expr::Cast { expr, .. }
            | Expr::Domain { expr, .. }
            | Expr::Field { record: expr, .. }
            | Expr::Each(expr)
            | Expr::Not(expr)
            | Expr::IsNull { expr, .. }
            | Expr::IsBool { expr, .. }
            | Expr::InSet { expr, .. } => smallvec![&**expr],
            Expr::Let { values, body } => values.iter().chain(std::iter::once(&**body)).collect(),
            Expr::Compare { left, right, .. } | Expr::Distinct { left, right, .. } => {
                smallvec![&**left, &**right]
            }
            Expr::And(items) | Expr::Or(items) | Expr::Coalesce(items) | Expr::Extreme { items, .. } => {
                items.iter().collect()
            }
            Expr::Call(Call { args, .. }) | Expr::Session { args, .. } => args.iter().collect(),
            Expr::Array { items, .. } | Expr::Row { items, .. } => items.iter().collect(),
            Expr::Elements { left, array, .. } => smallvec![&**left, &**array],
            Expr::Subscript { array, subscripts } => {
                std::iter::once(&**array).chain(subscripts.iter().flat_map(Subscript::operands)).collect()
            }
            Expr::Assigned { array, subscripts, value, .. } => {
                let operands = subscripts.iter().flat_map(Subscript::operands);
                [&**array, &**value].into_iter().chain(operands).collect()
            }
            Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
            Expr::Case { branches, otherwise } => {
                branches.iter().flat_map(|(c, r)| [c, r]).chain(std::iter::once(&**otherwise)).collect()
            }
        }
    }

    /// The direct operands, to be replaced.
    pub(crate) fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Const(_)
            | Expr::Column(_)
            | Expr::Param(_)
            | Expr::Input { .. }
            | Expr::Context(_)
            | Expr::Outer(_)
            | Expr::Aggregate(_)
            | Expr::SetValue(_)
            | Expr::WindowValue(_)
            | Expr::Local(_) => Vec::new(),
            Expr::Subquery(Subquery { args, kind, .. }) => {
                let left: &mut [Expr] = match kind {
                    SubqueryKind::Elements { left, .. } => std::slice::from_mut(left),
                    SubqueryKind::Rows { left } => left,
                    _ => &mut [],
                };
                left.iter_mut().chain(args).collect()
            }
            Expr::Cast { expr, .. }
            | Expr::Domain { expr, .. }
            | Expr::Field { record: expr, .. }
            | Expr::Each(expr)
            | Expr::Not(expr)
            | Expr::IsNull { expr, .. }
            | Expr::IsBool { expr, .. }
            | Expr::InSet { expr, .. } => vec![expr],
            Expr::Let { values, body } => values.iter_mut().chain(std::iter::once(&mut **body)).collect(),
            Expr::Compare { left, right, .. } | Expr::Distinct { left, right, .. } => vec![left, right],
            Expr::And(items) | Expr::Or(items) | Expr::Coalesce(items) | Expr::Extreme { items, .. } => {
                items.iter_mut().collect()
            }
            Expr::Call(Call { args, .. }) | Expr::Session { args, .. } => args.iter_mut().collect(),
            Expr::Array { items, .. } | Expr::Row { items, .. } => items.iter_mut().collect(),
            Expr::Elements { left, array, .. } => vec![left, array],
            Expr::Subscript { array, subscripts } => {
                let operands = subscripts.iter_mut().flat_map(Subscript::operands_mut);
                std::iter::once(&mut **array).chain(operands).collect()
            }
            Expr::Assigned { array, subscripts, value, .. } => {
                let operands = subscripts.iter_mut().flat_map(Subscript::operands_mut);
                [&mut **array, &mut **value].into_iter().chain(operands).collect()
            }
            Expr::InList { expr, list, .. } => std::iter::once(&mut **expr).chain(list).collect(),
            Expr::Case { branches, otherwise } => {
                let branches = branches.iter_mut().flat_map(|(condition, result)| [condition, result]);
                branches.chain(std::iter::once(&mut **otherwise)).collect()
            }
        }
    }

    /// Replaces nodes from the top: what `replace` returns takes the place of a node, and is not looked at again.
    pub(crate) fn replace_with(&mut self, replace: &mut dyn FnMut(&Expr) -> Option<Expr>) {
        if let Some(new) = replace(self) {
            *self = new;
            return;
        }
        self.children_mut().into_iter().for_each(|child| child.replace_with(replace));
    }

    /// Adds to the places of the columns.
    pub(crate) fn shift_columns(&mut self, by: usize) {
        self.replace_with(&mut |expr| match expr {
            Expr::Column(at) => Some(Expr::Column(at + by)),
            _ => None,
        });
    }

    /// Whether a sub-query is part of it.
    pub(crate) fn has_subquery(&self) -> bool {
        self.any(&|expr| matches!(expr, Expr::Subquery(_)))
    }

    /// Whether a function that returns a set is part of it.
    pub(crate) fn returns_set(&self) -> bool {
        self.any(&|expr| matches!(expr, Expr::SetValue(_)))
    }

    /// The number of nodes, and of values in IN lists of constants.
    pub(crate) fn size(&self) -> (usize, usize) {
        let values = if let Expr::InSet { values, .. } = self { values.len() } else { 0 };
        let children = self.children().into_iter().map(Expr::size);
        children.fold((1, values), |(nodes, values), (more, listed)| (nodes + more, values + listed))
    }

    /// Whether any node satisfies `test`.
    pub(crate) fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Whether the value does not depend on the row.
    pub(crate) fn is_row_independent(&self) -> bool {
        !self.any(&|e| matches!(e, Expr::Column(_)))
    }

    /// Whether it calls a function of the session.
    pub(crate) fn calls_session(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Session { .. }))
    }

    /// Whether it takes or gives up advisory locks, or asks other nodes: whether it waits.
    pub(crate) fn takes_locks(&self) -> bool {
        use SessionCall::{Advisory, BlockingPids, CancelBackend, TerminateBackend};
        let waits = |call: &SessionCall| matches!(call, Advisory(_) | CancelBackend | TerminateBackend | BlockingPids);
        self.any(&|e| matches!(e, Expr::Session { call, .. } if waits(call)))
    }

    /// Whether it calls functions of sequences.
    pub(crate) fn uses_sequences(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Session { call: SessionCall::Sequence(_), .. }))
    }

    /// The function that it calls to change a sequence, as errors name it.
    pub(crate) fn changed_sequence(&self) -> Option<&'static str> {
        let calls = |wanted| {
            self.any(&|e| matches!(e, Expr::Session { call: SessionCall::Sequence(call), .. } if *call == wanted))
        };
        match (calls(SequenceCall::Next), calls(SequenceCall::Set)) {
            (true, _) => Some("nextval()"),
            (false, true) => Some("setval()"),
            _ => None,
        }
    }

    /// Whether it asks for the id of the transaction, which then has to have one.
    pub(crate) fn needs_transaction(&self) -> bool {
        const TXID_CURRENT: Oid = Oid(2943);
        const PG_CURRENT_XACT_ID: Oid = Oid(5059);
        let is_id = |function: Oid| [TXID_CURRENT, PG_CURRENT_XACT_ID].contains(&function);
        self.any(&|e| matches!(e, Expr::Session { call: SessionCall::System(function), .. } if is_id(*function)))
    }

    /// Whether each evaluation may give another value, or has an effect.
    pub(crate) fn is_volatile(&self) -> bool {
        self.any(&|e| match e {
            Expr::Call(call) => call.function.volatility == Volatility::Volatile,
            Expr::Session { call: SessionCall::CurrentSetting, .. } => false,
            Expr::Session { call: SessionCall::System(function), .. } => {
                functions::find(*function).is_none_or(|row| row.volatility == Volatility::Volatile)
            }
            Expr::Session { .. } => true,
            Expr::Domain { check, .. } => check.conditions.iter().any(|(_, condition)| condition.is_volatile()),
            _ => false,
        })
    }

    /// Whether the value is fixed before the first row, so that rows may be chosen by it. What is volatile is
    /// evaluated for each row.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_row_independent() && !self.is_volatile()
    }

    /// Adds the places of the columns that the expression reads.
    pub(crate) fn collect_columns(&self, out: &mut Vec<usize>) {
        if let Expr::Column(place) = self {
            out.push(*place);
        }
        self.children().into_iter().for_each(|child| child.collect_columns(out));
    }

    /// Adds the constants in it.
    pub(crate) fn collect_constants(&self, out: &mut Vec<Datum>) {
        match self {
            Expr::Const(value) => out.push(value.clone()),
            Expr::InSet { values, .. } => out.extend(values.iter().cloned()),
            _ => {}
        }
        self.children().into_iter().for_each(|child| child.collect_constants(out));
    }

    /// Marks the columns that the expression reads.
    pub(crate) fn mark_columns(&self, used: &mut [bool]) {
        if let Expr::Column(column) = self {
            if let Some(slot) = used.get_mut(*column) {
                *slot = true;
            }
            return;
        }
        for child in self.children() {
            child.mark_columns(used);
        }
    }
}
