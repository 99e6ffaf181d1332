//! What a row of the table of functions has.

use super::aggregate::Aggregate;
use super::args::Args;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sql_type::SqlType;

/// What the result of a function depends on beside its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Nothing: a call with constants is a constant.
    Immutable,
    /// What is fixed during a statement: settings, the catalog, the start of the transaction.
    Stable,
    /// Anything, or the call has an effect. It is called anew for each row.
    Volatile,
}

impl Volatility {
    /// The letter in `pg_proc`.
    pub fn letter(self) -> char {
        match self {
            Volatility::Immutable => 'i',
            Volatility::Stable => 's',
            Volatility::Volatile => 'v',
        }
    }
}

/// Computes a value.
pub type ScalarFn = fn(&Args<'_>) -> Result<Datum, ValueError>;
/// Rows of a function that returns a set: each has one value, or as many as the function has columns.
pub type SetRows = Box<dyn Iterator<Item = Result<Vec<Datum>, ValueError>> + Send + Sync>;
/// Begins the rows of a function that returns a set. What they need of the arguments is copied.
pub type SetFn = fn(&Args<'_>) -> Result<SetRows, ValueError>;
/// Begins an aggregate over arguments of these types, with a result of that type.
pub type AggregateFn = fn(&[SqlType], SqlType) -> Box<dyn Aggregate>;

/// The functions that only windows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFn {
    /// `row_number`: the number of the row.
    RowNumber,
    /// `rank`: the number of the first row that is equal in the order.
    Rank,
    /// `dense_rank`: the number of the group of equal rows.
    DenseRank,
    /// `percent_rank`: the rows before its group, as a part of all others.
    PercentRank,
    /// `cume_dist`: the rows up to the end of its group, as a part of all.
    CumeDist,
    /// `ntile`: the number of its part, if there are so many of equal size.
    Ntile,
    /// `lag`: a value of a row before it.
    Lag,
    /// `lead`: a value of a row behind it.
    Lead,
    /// `first_value`: that of the first row of the frame.
    FirstValue,
    /// `last_value`: that of the last row of the frame.
    LastValue,
    /// `nth_value`: that of a row of the frame by its number.
    NthValue,
}

impl WindowFn {
    /// The name of its functions.
    pub fn name(self) -> &'static str {
        match self {
            WindowFn::RowNumber => "row_number",
            WindowFn::Rank => "rank",
            WindowFn::DenseRank => "dense_rank",
            WindowFn::PercentRank => "percent_rank",
            WindowFn::CumeDist => "cume_dist",
            WindowFn::Ntile => "ntile",
            WindowFn::Lag => "lag",
            WindowFn::Lead => "lead",
            WindowFn::FirstValue => "first_value",
            WindowFn::LastValue => "last_value",
            WindowFn::NthValue => "nth_value",
        }
    }
}

/// How a function is computed.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// From its arguments, the settings of the session and the start of the transaction.
    Scalar(ScalarFn),
    /// The same, to a set of rows.
    Set(SetFn),
    /// Over many rows.
    Aggregate(AggregateFn),
    /// Over many rows in the order of WITHIN GROUP, with as many direct arguments before them.
    OrderedSet(u8, AggregateFn),
    /// Over the rows of a window, by the executor.
    Window(WindowFn),
    /// By the session, which has the catalog, the locks, the settings: not in this crate.
    Session,
    /// The same, to a set of rows.
    SessionSet,
    /// Not at all: it serves the server alone. A call is refused.
    Internal,
}

/// A function, as a row of `pg_proc`.
#[derive(Clone, Copy, Debug)]
pub struct ProcRow {
    /// Its OID, that of PostgreSQL.
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub args: &'static [SqlType],
    /// The names of its arguments, where a call can use them.
    pub names: &'static [&'static str],
    /// The text forms of the values that its last arguments have if they are left out; `None` is NULL.
    pub defaults: &'static [Option<&'static str>],
    /// The type of its result, or of each row of it.
    pub result: SqlType,
    /// The columns of its result, if there are several: names and types.
    pub columns: &'static [(&'static str, SqlType)],
    /// Whether it is NULL if an argument is. An aggregate skips such rows.
    pub is_strict: bool,
    /// Whether the last argument collects all further ones: into an array, or as they are if its type is `"any"`.
    pub is_variadic: bool,
    /// What it depends on.
    pub volatility: Volatility,
    /// How it is computed.
    pub run: Run,
}

const fn row(oid: u32, name: &'static str, args: &'static [SqlType], result: SqlType, run: Run) -> ProcRow {
    ProcRow {
        oid: Oid(oid),
        name,
        args,
        names: &[],
        defaults: &[],
        result,
        columns: &[],
        is_strict: true,
        is_variadic: false,
        volatility: Volatility::Immutable,
        run,
    }
}

/// A function of one value: strict and immutable.
pub(in crate::functions) const fn scalar(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
    run: ScalarFn,
) -> ProcRow {
    row(oid, name, args, result, Run::Scalar(run))
}

/// A function that returns a set: strict and immutable.
pub(in crate::functions) const fn set(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
    run: SetFn,
) -> ProcRow {
    row(oid, name, args, result, Run::Set(run))
}

/// An aggregate that skips rows with NULL.
pub(in crate::functions) const fn aggregate(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
    run: AggregateFn,
) -> ProcRow {
    row(oid, name, args, result, Run::Aggregate(run))
}

/// A function of windows.
pub(in crate::functions) const fn window(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
    run: WindowFn,
) -> ProcRow {
    row(oid, name, args, result, Run::Window(run))
}

/// A function that the session computes: strict and stable.
pub(in crate::functions) const fn session(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
) -> ProcRow {
    row(oid, name, args, result, Run::Session).stable()
}

/// A function that only the server calls: strict and immutable.
pub(in crate::functions) const fn internal(
    oid: u32,
    name: &'static str,
    args: &'static [SqlType],
    result: SqlType,
) -> ProcRow {
    row(oid, name, args, result, Run::Internal)
}

impl ProcRow {
    /// With a result that depends on nothing, though the session computes it.
    pub(in crate::functions) const fn immutable(self) -> ProcRow {
        ProcRow { volatility: Volatility::Immutable, ..self }
    }

    /// With a result that depends on the session.
    pub(in crate::functions) const fn stable(self) -> ProcRow {
        ProcRow { volatility: Volatility::Stable, ..self }
    }

    /// With a result that depends on anything, or with an effect.
    pub(in crate::functions) const fn volatile(self) -> ProcRow {
        ProcRow { volatility: Volatility::Volatile, ..self }
    }

    /// Called with NULL too.
    pub(in crate::functions) const fn on_null(self) -> ProcRow {
        ProcRow { is_strict: false, ..self }
    }

    /// With a last argument that collects all further ones.
    pub(in crate::functions) const fn variadic(self) -> ProcRow {
        ProcRow { is_variadic: true, ..self }
    }

    /// With the names of arguments.
    pub(in crate::functions) const fn named(self, names: &'static [&'static str]) -> ProcRow {
        ProcRow { names, ..self }
    }

    /// With values for the last arguments.
    pub(in crate::functions) const fn defaults(self, defaults: &'static [Option<&'static str>]) -> ProcRow {
        ProcRow { defaults, ..self }
    }

    /// With several columns in the result.
    pub(in crate::functions) const fn columns(self, columns: &'static [(&'static str, SqlType)]) -> ProcRow {
        ProcRow { columns, ..self }
    }

    /// As one that the session computes to a set of rows.
    pub(in crate::functions) const fn of_session_set(self) -> ProcRow {
        ProcRow { run: Run::SessionSet, ..self }
    }

    /// As an aggregate over ordered rows, with so many direct arguments.
    pub(in crate::functions) const fn ordered_set(self, direct: u8, run: AggregateFn) -> ProcRow {
        ProcRow { run: Run::OrderedSet(direct, run), ..self }
    }

    /// Whether `pg_proc` says that it returns a set. One row of several columns is none there.
    pub fn is_listed_as_set(&self) -> bool {
        self.returns_set() && self.name != "pg_sequence_parameters"
    }

    /// Whether it returns a set.
    pub fn returns_set(&self) -> bool {
        matches!(self.run, Run::Set(_) | Run::SessionSet)
    }

    /// Whether it is a function of windows alone.
    pub fn is_window(&self) -> bool {
        matches!(self.run, Run::Window(_))
    }

    /// Whether it is an aggregate.
    pub fn is_aggregate(&self) -> bool {
        matches!(self.run, Run::Aggregate(_) | Run::OrderedSet(..))
    }
}
