//! The tree of a bound expression: nodes, operators, functions.

use crate::advisory::LockCall;
use pgtypes::cast::Cast;
use pgtypes::{Datum, SqlType};

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
    /// Arithmetic over integers or floats. `ty` is the type of the result and of both operands.
    Arith { op: ArithOp, ty: SqlType, left: Box<Expr>, right: Box<Expr> },
    /// Unary minus.
    Negate { ty: SqlType, expr: Box<Expr> },
    /// A comparison. NULL if a side is NULL.
    Compare { op: CompareOp, left: Box<Expr>, right: Box<Expr> },
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
    Distinct { left: Box<Expr>, right: Box<Expr>, negated: bool },
    /// `IN (list)`.
    InList { expr: Box<Expr>, list: Vec<Expr>, negated: bool },
    /// `IN` a list of constants: sorted, distinct and without NULL. `with_null`: the list had a NULL.
    InSet { expr: Box<Expr>, values: Vec<Datum>, with_null: bool, negated: bool },
    /// `LIKE` and `ILIKE` (`fold`). The default escape character is the backslash.
    Like { expr: Box<Expr>, pattern: Box<Expr>, escape: Option<Box<Expr>>, fold: bool, negated: bool },
    /// `CASE` with boolean conditions.
    Case { branches: Vec<(Expr, Expr)>, otherwise: Box<Expr> },
    /// `COALESCE`: the first value that is not NULL.
    Coalesce(Vec<Expr>),
    /// `GREATEST` or `LEAST`, ignoring NULLs.
    Extreme { greatest: bool, items: Vec<Expr> },
    /// A scalar function.
    Call { function: Function, args: Vec<Expr> },
    /// A function that reads or changes the session. Never folded.
    Session { call: SessionCall, args: Vec<Expr> },
    /// A value of the session or transaction.
    Context(ContextValue),
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

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, truncating for integers
    Divide,
    /// `%`, integers only
    Modulo,
    /// `^`, floats only
    Power,
    /// `&`, integers only
    BitAnd,
    /// `|`, integers only
    BitOr,
    /// `#`, integers only
    BitXor,
    /// `<<`, integers only
    ShiftLeft,
    /// `>>`, integers only
    ShiftRight,
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
    /// `pg_advisory_lock(...)` and its kin
    Advisory(LockCall),
}

/// Scalar functions. All but [`Function::Concat`] and [`Function::ConcatWs`] are NULL when an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `abs` of an integer type or a float
    Abs(SqlType),
    /// `mod` of an integer type
    Mod(SqlType),
    /// `sign` of a float
    Sign,
    /// `round` of a float, ties to even
    Round,
    /// `floor`
    Floor,
    /// `ceil`, `ceiling`
    Ceil,
    /// `trunc`
    Trunc,
    /// `sqrt`
    Sqrt,
    /// `exp`
    Exp,
    /// `ln`
    Ln,
    /// `power`, `pow`
    Power,
    /// `length`, `char_length` of text: characters
    Length,
    /// `octet_length` of text or bytea, `length` of bytea
    OctetLength,
    /// `lower`
    Lower,
    /// `upper`
    Upper,
    /// `substr`, `substring` of text
    Substring,
    /// the same of bytea
    SubstringBytes,
    /// `btrim`
    TrimBoth,
    /// `ltrim`
    TrimLeft,
    /// `rtrim`
    TrimRight,
    /// `||` of text
    ConcatText,
    /// `||` of bytea
    ConcatBytes,
    /// `t` or `f`
    BoolText,
    /// `concat`: NULL counts as empty
    Concat,
    /// `concat_ws`: NULLs are left out
    ConcatWs,
    /// `left`
    Left,
    /// `right`
    Right,
    /// `repeat`
    Repeat,
    /// `replace`
    Replace,
    /// `reverse`
    Reverse,
    /// `strpos`, `position`
    Strpos,
    /// `lpad`
    PadLeft,
    /// `rpad`
    PadRight,
    /// `starts_with`
    StartsWith,
    /// `ascii`
    Ascii,
    /// `chr`
    Chr,
    /// A timestamp rounded to this many digits after the seconds: `current_timestamp(3)`
    RoundTimestamp(u8),
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

impl ArithOp {
    /// As written in SQL.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            ArithOp::Add => "+",
            ArithOp::Subtract => "-",
            ArithOp::Multiply => "*",
            ArithOp::Divide => "/",
            ArithOp::Modulo => "%",
            ArithOp::Power => "^",
            ArithOp::BitAnd => "&",
            ArithOp::BitOr => "|",
            ArithOp::BitXor => "#",
            ArithOp::ShiftLeft => "<<",
            ArithOp::ShiftRight => ">>",
        }
    }
}

impl Expr {
    /// The direct operands.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Const(_)
            | Expr::Column(_)
            | Expr::Param(_)
            | Expr::Input { .. }
            | Expr::Context(_)
            | Expr::Local(_) => Vec::new(),
            Expr::Cast { expr, .. }
            | Expr::Negate { expr, .. }
            | Expr::Not(expr)
            | Expr::IsNull { expr, .. }
            | Expr::IsBool { expr, .. }
            | Expr::InSet { expr, .. } => vec![expr],
            Expr::Let { values, body } => values.iter().chain(std::iter::once(&**body)).collect(),
            Expr::Arith { left, right, .. }
            | Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. } => {
                vec![left, right]
            }
            Expr::And(items) | Expr::Or(items) | Expr::Coalesce(items) | Expr::Extreme { items, .. } => {
                items.iter().collect()
            }
            Expr::Call { args, .. } | Expr::Session { args, .. } => args.iter().collect(),
            Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
            Expr::Like { expr, pattern, escape, .. } => {
                [&**expr, &**pattern].into_iter().chain(escape.as_deref()).collect()
            }
            Expr::Case { branches, otherwise } => {
                branches.iter().flat_map(|(c, r)| [c, r]).chain(std::iter::once(&**otherwise)).collect()
            }
        }
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

    /// Whether it takes or gives up advisory locks.
    pub(crate) fn takes_locks(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Session { call: SessionCall::Advisory(_), .. }))
    }

    /// Whether the value is fixed before the first row, so that rows may be chosen by it. What takes locks is evaluated
    /// for each row.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_row_independent() && !self.takes_locks()
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
