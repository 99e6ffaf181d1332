//! Bound expressions: names are resolved to column numbers, operators to types, and casts are explicit.
//!
//! The binder builds and folds them, access paths read key bounds off them, and [`eval`] evaluates them over a row. All
//! operands of one node hold the same kind of [`Datum`](pgtypes::Datum).
//!
//! # Layers
//!
//! 1. `tree`: the nodes of an expression
//! 2. `arithmetic`, `like`, `locks`: operators, calls that take advisory locks
//! 3. `session`: access to the session
//! 4. `functions`: scalar functions
//! 5. `eval`: evaluation, constant folding

pub(crate) mod arithmetic;
pub(crate) mod eval;
mod functions;
mod like;
mod locks;
mod session;
mod tree;

pub use locks::LockLog;
pub(crate) use session::unknown_setting;
pub use session::{NoSession, SessionAccess};
pub(crate) use tree::{ArithOp, CompareOp, ContextValue, Expr, Function, Position, SessionCall};
