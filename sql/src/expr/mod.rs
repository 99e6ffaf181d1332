//! Bound expressions: names are resolved to column numbers, operators and functions to rows of
//! their tables, and casts are explicit.
//!
//! The binder builds and folds them, access paths read key bounds off them, and [`eval`] evaluates them over a row. All
//! operands of one node hold the same kind of [`Datum`](pgtypes::Datum).
//!
//! # Layers
//!
//! 1. `tree`: the nodes of an expression
//! 2. `locks`, `subqueries`: calls that take advisory locks; results of sub-queries
//! 3. `session`: access to the session
//! 4. `env`: the environment of an expression
//! 5. `call`, `domain`: calls, arrays and rows over values; values of domains
//! 6. `eval`: evaluation
//! 7. `fold`: what is evaluated before execution

mod call;
mod domain;
mod env;
pub(crate) mod eval;
pub(crate) mod fold;
mod locks;
mod session;
mod subqueries;
mod tree;

pub use locks::LockLog;
pub(crate) use locks::{Answered, Asked, SequenceAsk, SessionsCall};
pub use session::{NoSession, SessionAccess};
pub(crate) use session::{system_env, unknown_setting};
pub(crate) use subqueries::{Pending, SubqueryLog, SubqueryRows, are_identical};
pub(crate) use tree::{
    Call, Children, CompareOp, ContextValue, DomainCheck, Elementwise, Expr, Position, SequenceCall, SessionCall,
    Subquery, SubqueryKind, Subscript, compares_alike,
};
