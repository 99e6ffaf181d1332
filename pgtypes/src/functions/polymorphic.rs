//! Polymorphic arguments: what `anyelement`, `anyarray`, `anycompatible` and the like stand for in a call.

use super::common::common_type;
use crate::cast::{CastContext, cast_context};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// Why the arguments do not fit together: PostgreSQL's SQLSTATE and message, and its detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The SQLSTATE.
    pub code: SqlState,
    /// The message.
    pub message: String,
    /// The detail.
    pub detail: Option<String>,
}

/// What polymorphic types stand for.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    /// The types of the arguments.
    pub(super) args: Vec<SqlType>,
    /// The type of the result.
    pub(super) result: SqlType,
}

/// Whether a declared type stands for others.
pub(super) fn is_polymorphic(ty: SqlType) -> bool {
    is_simple(ty) || is_compatible(ty)
}

fn is_simple(ty: SqlType) -> bool {
    matches!(ty, SqlType::ANYELEMENT | SqlType::ANYNONARRAY | SqlType::ANYENUM | SqlType::ANYARRAY)
}

fn is_compatible(ty: SqlType) -> bool {
    matches!(ty, SqlType::ANYCOMPATIBLE | SqlType::ANYCOMPATIBLEARRAY | SqlType::ANYCOMPATIBLENONARRAY)
}

/// Whether the arguments fit together.
pub(super) fn fits(given: &[SqlType], declared: &[SqlType]) -> bool {
    let pairs = || given.iter().zip(declared);
    let is_known = |ty: &SqlType| ty.oid != SqlType::UNKNOWN.oid;
    let any_known = pairs().any(|(ty, declared)| is_simple(*declared) && is_known(ty));
    let any_simple = declared.iter().any(|ty| is_simple(*ty));
    // Literals alone do not rule a candidate out.
    if any_simple && !any_known {
        return true;
    }
    // That an array type is missing is found when the candidate is chosen.
    solve(given, declared, SqlType::VOID).err().is_none_or(|mismatch| mismatch.code == SqlState::UNDEFINED_OBJECT)
}

/// The element type and the array type of the simple family.
#[derive(Default)]
struct Family {
    element: Option<SqlType>,
    array: Option<SqlType>,
}

fn mismatch(message: impl Into<String>) -> Mismatch {
    Mismatch { code: SqlState::DATATYPE_MISMATCH, message: message.into(), detail: None }
}

fn set(slot: &mut Option<SqlType>, ty: SqlType, name: &str) -> Result<(), Mismatch> {
    match slot {
        Some(before) if before.oid != ty.oid => Err(Mismatch {
            code: SqlState::DATATYPE_MISMATCH,
            message: format!("arguments declared \"{name}\" are not all alike"),
            detail: Some(format!("{} versus {}", before.base_name(), ty.base_name())),
        }),
        _ => {
            *slot = Some(ty.base());
            Ok(())
        }
    }
}

fn simple_family(given: &[SqlType], declared: &[SqlType]) -> Result<Family, Mismatch> {
    let mut family = Family::default();
    let known = given.iter().zip(declared).filter(|(ty, _)| ty.oid != SqlType::UNKNOWN.oid);
    for (ty, declared) in known {
        match *declared {
            SqlType::ANYARRAY => set(&mut family.array, *ty, "anyarray")?,
            declared if is_simple(declared) => set(&mut family.element, *ty, "anyelement")?,
            _ => {}
        }
    }
    if let Some(array) = family.array {
        let Some(element) = array.element() else {
            return Err(mismatch(format!("argument declared anyarray is not an array but type {}", array.base_name())));
        };
        match family.element {
            Some(given) if given.oid != element.oid => {
                return Err(Mismatch {
                    code: SqlState::DATATYPE_MISMATCH,
                    message: "argument declared anyarray is not consistent with argument declared anyelement".into(),
                    detail: Some(format!("{} versus {}", array.base_name(), given.base_name())),
                });
            }
            _ => family.element = Some(element),
        }
    }
    let Some(element) = family.element else {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(mismatch(message));
    };
    if declared.contains(&SqlType::ANYNONARRAY) && element.element().is_some() {
        return Err(mismatch(format!("type matched to anynonarray is an array type: {}", element.base_name())));
    }
    if declared.contains(&SqlType::ANYENUM) && !element.is_enum() {
        return Err(mismatch(format!("type matched to anyenum is not an enum type: {}", element.base_name())));
    }
    family.array = family.array.or_else(|| element.array());
    Ok(family)
}

/// The common type of the compatible family.
fn compatible_family(given: &[SqlType], declared: &[SqlType]) -> Result<Family, Mismatch> {
    let mut types = Vec::new();
    for (ty, declared) in given.iter().zip(declared) {
        match *declared {
            SqlType::ANYCOMPATIBLEARRAY if ty.oid == SqlType::UNKNOWN.oid => {}
            SqlType::ANYCOMPATIBLEARRAY => match ty.element() {
                Some(element) => types.push(element.base()),
                None => {
                    let name = ty.base_name();
                    let message = format!("argument declared anycompatiblearray is not an array but type {name}");
                    return Err(mismatch(message));
                }
            },
            SqlType::ANYCOMPATIBLE | SqlType::ANYCOMPATIBLENONARRAY => types.push(ty.base()),
            _ => {}
        }
    }
    let element = common_type(&types).map_err(|at| {
        let name = |at: usize| types.get(at).map_or("unknown", |ty| ty.base_name());
        mismatch(format!("anycompatible types {} and {} cannot be matched", name(0), name(at)))
    })?;
    let converts = |from: SqlType| {
        from.oid == SqlType::UNKNOWN.oid
            || from.oid == element.oid
            || cast_context(from, element) == Some(CastContext::Implicit)
    };
    if let Some(other) = types.iter().find(|ty| !converts(**ty)) {
        let (name, element) = (other.base_name(), element.base_name());
        return Err(mismatch(format!("anycompatible types {element} and {name} cannot be matched")));
    }
    if declared.contains(&SqlType::ANYCOMPATIBLENONARRAY) && element.element().is_some() {
        let name = element.base_name();
        return Err(mismatch(format!("type matched to anycompatiblenonarray is an array type: {name}")));
    }
    Ok(Family { element: Some(element), array: element.array() })
}

/// The types of the arguments and of the result. `given` and `declared` have the same order.
pub(super) fn solve(given: &[SqlType], declared: &[SqlType], result: SqlType) -> Result<Solved, Mismatch> {
    let any_simple = declared.iter().any(|ty| is_simple(*ty));
    let any_compatible = declared.iter().any(|ty| is_compatible(*ty));
    let simple = if any_simple { simple_family(given, declared)? } else { Family::default() };
    let compatible = if any_compatible { compatible_family(given, declared)? } else { Family::default() };
    let concrete = |ty: SqlType, given: Option<SqlType>| {
        let found = match ty {
            SqlType::ANYARRAY => simple.array,
            SqlType::ANYCOMPATIBLEARRAY => compatible.array,
            SqlType::ANY => given,
            ty if is_simple(ty) => simple.element,
            ty if is_compatible(ty) => compatible.element,
            ty => Some(ty),
        };
        found.ok_or_else(|| {
            let element = if is_compatible(ty) { compatible.element } else { simple.element };
            let element = element.map_or("unknown", SqlType::base_name);
            let message = format!("could not find array type for data type {element}");
            Mismatch { code: SqlState::UNDEFINED_OBJECT, ..mismatch(message) }
        })
    };
    let pairs = declared.iter().zip(given);
    let args = pairs.map(|(declared, given)| concrete(*declared, Some(given.base()))).collect::<Result<_, _>>()?;
    Ok(Solved { args, result: concrete(result, Some(result))? })
}
