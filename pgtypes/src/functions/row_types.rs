//! The rows that functions give as one value: `record` with a modifier that tells the function, and the elements of the
//! array that it was called with. So the names and types of the fields are known wherever the type is.

use super::row::ProcRow;
use super::table::find;
use crate::oid::Oid;
use crate::sql_type::SqlType;

/// The bits of the function's OID. Those of the elements are above.
const FUNCTION_BITS: u32 = 14;
const ELEMENT_BITS: u32 = 17;

/// The type of a function's rows, called with arguments of these types. `None` if it has no columns, or cannot be told.
pub fn row_type(function: &ProcRow, args: &[SqlType]) -> Option<SqlType> {
    let declared = function.args.iter().position(|ty| *ty == SqlType::ANYARRAY);
    let element = declared.and_then(|at| args.get(at)?.element()).map_or(0, |ty| ty.oid.0);
    if function.columns.is_empty() || function.oid.0 >> FUNCTION_BITS != 0 || element >> ELEMENT_BITS != 0 {
        return None;
    }
    let typmod = i32::try_from(element << FUNCTION_BITS | function.oid.0).ok()?;
    Some(SqlType { typmod, ..SqlType::RECORD })
}

/// The fields of a row's type: names and types. `None` for any other type, and for rows whose fields have no names.
pub fn fields_of(ty: SqlType) -> Option<Vec<(&'static str, SqlType)>> {
    let modifier = u32::try_from(ty.typmod).ok().filter(|_| ty.oid == SqlType::RECORD.oid)?;
    let function = find(Oid(modifier & ((1 << FUNCTION_BITS) - 1)))?;
    let element = SqlType::from_oid(modifier >> FUNCTION_BITS);
    let field = |(name, ty): &(&'static str, SqlType)| match *ty {
        SqlType::ANYELEMENT => (*name, element.unwrap_or(SqlType::UNKNOWN)),
        ty => (*name, ty),
    };
    Some(function.columns.iter().map(field).collect())
}
