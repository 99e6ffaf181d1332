//! The type that values have in common.

use crate::cast::{CastContext, cast_context};
use crate::sql_type::SqlType;

/// The type that values of these types have in common: of CASE, UNION, VALUES, arrays. `None` if they have none.
/// Arguments of unknown type take it too; it is `text` if all are.
///
/// # Errors
/// The place of the first type of another category.
pub fn common_type(types: &[SqlType]) -> Result<SqlType, usize> {
    let mut chosen = SqlType::UNKNOWN;
    for (at, ty) in types.iter().enumerate() {
        let ty = ty.base();
        if ty == SqlType::UNKNOWN || ty == chosen {
            continue;
        }
        let (row, before) = (ty.row(), chosen.row());
        if chosen == SqlType::UNKNOWN {
            chosen = ty;
        } else if row.category != before.category {
            return Err(at);
        } else if !before.is_preferred && widens(chosen, ty) && !widens(ty, chosen) {
            chosen = ty;
        }
    }
    if chosen == SqlType::UNKNOWN {
        return Ok(SqlType::TEXT);
    }
    // A modifier that all share stays.
    let mut known = types.iter().filter(|ty| ty.oid != SqlType::UNKNOWN.oid);
    let first = known.next().copied().unwrap_or(chosen);
    let same = first.oid == chosen.oid && types.iter().all(|ty| *ty == first);
    Ok(if same { first } else { chosen })
}

fn widens(from: SqlType, to: SqlType) -> bool {
    cast_context(from, to) == Some(CastContext::Implicit)
}
