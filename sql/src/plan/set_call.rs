//! Calls of functions that return sets.

use super::show::plain;
use crate::expr::Expr;
use pgtypes::SqlType;
use pgtypes::functions::{ProcRow, Volatility};

/// A call whose rows are wanted.
#[derive(Clone, Debug)]
pub(crate) enum SetCall {
    /// Of a function that returns a set.
    Set {
        function: &'static ProcRow,
        args: Vec<Expr>,
        types: Vec<SqlType>,
        result: SqlType,
        width: usize,
        /// The types of its columns, if they are to be one value.
        fields: Option<Vec<SqlType>>,
    },
    /// Of any other expression: one row.
    One(Expr),
}

impl PartialEq for SetCall {
    fn eq(&self, other: &SetCall) -> bool {
        let fields = |call: &SetCall| match call {
            SetCall::Set { fields, .. } => fields.clone(),
            SetCall::One(_) => None,
        };
        self.is_same(other) && fields(self) == fields(other)
    }
}

impl SetCall {
    /// The expressions that are evaluated before the first row.
    pub(crate) fn args(&self) -> &[Expr] {
        match self {
            SetCall::Set { args, .. } => args,
            SetCall::One(expr) => std::slice::from_ref(expr),
        }
    }

    /// The same, to be changed.
    pub(crate) fn args_mut(&mut self) -> &mut [Expr] {
        match self {
            SetCall::Set { args, .. } => args,
            SetCall::One(expr) => std::slice::from_mut(expr),
        }
    }

    /// The number of its columns.
    pub(crate) fn width(&self) -> usize {
        match self {
            SetCall::Set { width, .. } => *width,
            SetCall::One(_) => 1,
        }
    }

    /// Whether it is the same call, with the same arguments.
    pub(crate) fn is_same(&self, other: &SetCall) -> bool {
        match (self, other) {
            (
                SetCall::Set { function, args, types, result, .. },
                SetCall::Set { function: other, args: other_args, types: other_types, result: other_result, .. },
            ) => function.oid == other.oid && args == other_args && types == other_types && result == other_result,
            (SetCall::One(expr), SetCall::One(other)) => expr == other,
            _ => false,
        }
    }

    /// Whether each call may give other rows.
    pub(crate) fn is_volatile(&self) -> bool {
        let is_function = match self {
            SetCall::Set { function, .. } => function.volatility == Volatility::Volatile,
            SetCall::One(_) => false,
        };
        is_function || self.args().iter().any(Expr::is_volatile)
    }

    /// The call for EXPLAIN, over columns with these names.
    pub(crate) fn shown(&self, names: &[String]) -> String {
        match self {
            SetCall::Set { function, args, .. } => {
                let args: Vec<String> = args.iter().map(|arg| plain(arg, names)).collect();
                format!("{}({})", function.name, args.join(", "))
            }
            SetCall::One(expr) => plain(expr, names),
        }
    }
}
