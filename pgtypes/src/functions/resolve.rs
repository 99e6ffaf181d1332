//! Which function or operator a call means: PostgreSQL's rules for overloading (chapter 10 of its manual).
//!
//! An exact match wins. Otherwise the candidates are those whose arguments the given types convert to implicitly. Of
//! several, those with the most exact matches stay, then those with the most preferred types; then the arguments of
//! unknown type choose a category. Polymorphic types are solved at the end.

use crate::cast::{CastContext, cast_context};
use crate::row::Category;
use crate::sql_type::SqlType;

use super::operator::OperatorRow;
use super::operators;
use super::polymorphic::{self, Mismatch, is_polymorphic};
use super::row::ProcRow;
use super::table::{find, named};

/// Where the value of a function's argument comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The argument of the call, from 0.
    Given(usize),
    /// The default of the function's argument: a text, or NULL.
    Default(Option<&'static str>),
}

/// The function that a call means.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The function.
    pub function: &'static ProcRow,
    /// The arguments in the order of the function, with the types that they are converted to.
    pub args: Vec<(Source, SqlType)>,
    /// The first argument of those that are collected into an array of a type; `None`: none are.
    pub collected: Option<(usize, SqlType)>,
    /// The type of the result.
    pub result: SqlType,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No candidate takes such arguments.
    Missing,
    /// Several do equally well.
    Ambiguous,
    /// The candidate's polymorphic arguments do not fit together.
    Mismatch(Mismatch),
    /// It is no function, but a type, to which the one argument is cast.
    Cast(SqlType),
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Their types.
    pub types: &'a [SqlType],
    /// The names of the last ones.
    pub names: &'a [&'a str],
    /// Whether the last one follows VARIADIC.
    pub is_variadic: bool,
    /// Whether the only one is a literal of unknown type. A parameter is none.
    pub is_literal: bool,
}

/// A way to call a function.
struct Candidate {
    function: &'static ProcRow,
    /// The declared types of the given arguments, in their order.
    declared: Vec<SqlType>,
    sources: Vec<Source>,
    /// The place of the first argument that is collected.
    collected: Option<usize>,
}

/// The function of a name for arguments.
///
/// # Errors
/// See [`Failure`].
pub fn function(name: &str, given: Given<'_>) -> Result<Choice, Failure> {
    let mut candidates: Vec<Candidate> = named(name).iter().filter_map(|row| candidate(row, given)).collect();
    drop_shadowed(&mut candidates);
    let exact = |candidate: &&Candidate| candidate.declared.iter().zip(given.types).all(|(d, g)| d.oid == g.oid);
    if let Some(at) = candidates.iter().position(|candidate| exact(&candidate)) {
        return chosen(candidates.swap_remove(at), given.types);
    }
    if let ([from], []) = (given.types, given.names)
        && let Some(to) = crate::find_name(name).filter(|row| !row.name.starts_with('_'))
        && (given.is_literal || casts_by_name(*from, to.ty()))
    {
        return Err(Failure::Cast(to.ty()));
    }
    let lists: Vec<&[SqlType]> = candidates.iter().map(|candidate| &*candidate.declared).collect();
    let at = select(&lists, given.types)?;
    chosen(candidates.swap_remove(at), given.types)
}

/// Whether `type(value)` is a cast of a typed value: one that keeps its bits, or one by text, from or to a string. A
/// row is no string by this way.
fn casts_by_name(from: SqlType, to: SqlType) -> bool {
    let is_string = |ty: SqlType| ty.row().category == Category::String;
    if from.oid == SqlType::UNKNOWN.oid {
        return is_string(to);
    }
    if cast_context(from, to).is_none() {
        return false;
    }
    let rows = crate::cast::rows();
    match rows.iter().find(|row| (row.from, row.to) == (from.oid, to.oid)) {
        Some(row) => row.function == crate::oid::Oid::NONE,
        None => from.oid == to.oid || (is_string(from) || is_string(to)) && from.oid != SqlType::RECORD.oid,
    }
}

fn candidate(row: &'static ProcRow, given: Given<'_>) -> Option<Candidate> {
    let (count, declared) = (given.types.len(), row.args.len());
    if row.is_variadic && !given.is_variadic && given.names.is_empty() && count >= declared {
        let (last, first) = row.args.split_last()?;
        let element = if *last == SqlType::ANY { *last } else { element_of(*last)? };
        let mut types = first.to_vec();
        types.resize(count, element);
        let collected = (*last != SqlType::ANY).then_some(first.len());
        let sources = (0..count).map(Source::Given).collect();
        return Some(Candidate { function: row, declared: types, sources, collected });
    }
    // VARIADIC is allowed in a call of a function that collects nothing, and means nothing there.
    if row.is_variadic && !given.is_variadic || count > declared {
        return None;
    }
    let mut sources: Vec<Option<Source>> = vec![None; declared];
    let mut types = Vec::with_capacity(count);
    let positional = count - given.names.len();
    for at in 0..count {
        let place = match given.names.get(at.wrapping_sub(positional)).filter(|_| at >= positional) {
            Some(name) => row.names.iter().position(|known| known == name)?,
            None => at,
        };
        let slot = sources.get_mut(place).filter(|slot| slot.is_none())?;
        *slot = Some(Source::Given(at));
        types.push(*row.args.get(place)?);
    }
    let first_default = declared - row.defaults.len();
    let fill = |(at, source): (usize, Option<Source>)| {
        source.or_else(|| Some(Source::Default(*row.defaults.get(at.checked_sub(first_default)?)?)))
    };
    let sources = sources.into_iter().enumerate().map(fill).collect::<Option<Vec<Source>>>()?;
    Some(Candidate { function: row, declared: types, sources, collected: None })
}

/// The declared type of each of the arguments that are collected.
fn element_of(array: SqlType) -> Option<SqlType> {
    match array {
        SqlType::ANYARRAY => Some(SqlType::ANYELEMENT),
        SqlType::ANYCOMPATIBLEARRAY => Some(SqlType::ANYCOMPATIBLE),
        array => array.element(),
    }
}

/// Of candidates with the same declared types, one that collects nothing and leaves nothing out stays.
fn drop_shadowed(candidates: &mut Vec<Candidate>) {
    candidates.sort_by_key(|candidate| {
        let defaults = candidate.sources.iter().filter(|source| matches!(source, Source::Default(_))).count();
        (candidate.collected.is_some() || candidate.function.is_variadic, defaults)
    });
    let mut kept: Vec<Candidate> = Vec::with_capacity(candidates.len());
    for candidate in candidates.drain(..) {
        if !kept.iter().any(|earlier| earlier.declared == candidate.declared) {
            kept.push(candidate);
        }
    }
    *candidates = kept;
}

fn chosen(candidate: Candidate, given: &[SqlType]) -> Result<Choice, Failure> {
    let Candidate { function, declared, sources, collected } = candidate;
    let solved = polymorphic::solve(given, &declared, function.result).map_err(Failure::Mismatch)?;
    let args = sources.iter().enumerate().map(|(at, source)| match source {
        Source::Given(given) => (*source, solved.args.get(*given).copied().unwrap_or(SqlType::UNKNOWN)),
        Source::Default(_) => (*source, function.args.get(at).copied().unwrap_or(SqlType::UNKNOWN)),
    });
    let args: Vec<(Source, SqlType)> = args.collect();
    let collected = collected.and_then(|at| Some((at, args.get(at)?.1.array()?)));
    Ok(Choice { function, args, collected, result: solved.result })
}

/// The binary operator of a name.
///
/// # Errors
/// See [`Failure`].
pub fn binary(name: &str, left: SqlType, right: SqlType) -> Result<(&'static OperatorRow, Choice), Failure> {
    let mut candidates = operators::named(name).iter().copied().filter_map(|row| Some((row, [row.left?, row.right])));
    // An operand of unknown type is taken for one of the other's type first.
    let unknown = SqlType::UNKNOWN.oid;
    let (l, r) = match (left.oid == unknown, right.oid == unknown) {
        (true, false) => (right, right),
        (false, true) => (left, left),
        _ => (left, right),
    };
    let is_exact = |(_, takes): &(&OperatorRow, [SqlType; 2])| takes[0].oid == l.oid && takes[1].oid == r.oid;
    let given = [left, right];
    let (row, takes) = match candidates.clone().find(is_exact) {
        Some(exact) => exact,
        None => {
            let lists: Vec<[SqlType; 2]> = candidates.clone().map(|(_, takes)| takes).collect();
            let lists: Vec<&[SqlType]> = lists.iter().map(|list| &list[..]).collect();
            candidates.nth(select(&lists, &given)?).ok_or(Failure::Missing)?
        }
    };
    operator(row, &takes, &given)
}

/// The prefix operator of a name.
///
/// # Errors
/// See [`Failure`].
pub fn prefix(name: &str, operand: SqlType) -> Result<(&'static OperatorRow, Choice), Failure> {
    let mut candidates = operators::named(name).iter().copied().filter(|row| row.left.is_none());
    let row = match candidates.clone().find(|row| row.right.oid == operand.oid) {
        Some(exact) => exact,
        None => {
            let lists: Vec<[SqlType; 1]> = candidates.clone().map(|row| [row.right]).collect();
            let lists: Vec<&[SqlType]> = lists.iter().map(|list| &list[..]).collect();
            candidates.nth(select(&lists, &[operand])?).ok_or(Failure::Missing)?
        }
    };
    operator(row, &[row.right], &[operand])
}

/// `takes`: the types of the operator's operands.
fn operator(
    row: &'static OperatorRow,
    takes: &[SqlType],
    given: &[SqlType],
) -> Result<(&'static OperatorRow, Choice), Failure> {
    let function = find(row.function).ok_or(Failure::Missing)?;
    let solved = polymorphic::solve(given, takes, row.result).map_err(Failure::Mismatch)?;
    let args = solved.args.into_iter().enumerate().map(|(at, ty)| (Source::Given(at), ty)).collect();
    Ok((row, Choice { function, args, collected: None, result: solved.result }))
}

/// Whether a type converts implicitly. A literal of unknown type converts to all.
fn converts(from: SqlType, to: SqlType) -> bool {
    from.oid == to.oid
        || to.oid == SqlType::ANY.oid
        || is_polymorphic(to)
        || (from.oid == SqlType::UNKNOWN.oid && to.row().category != Category::Pseudo)
        || cast_context(from, to) == Some(CastContext::Implicit)
}

fn takes(declared: &[SqlType], given: &[SqlType]) -> bool {
    declared.len() == given.len()
        && given.iter().zip(declared).all(|(from, to)| converts(*from, *to))
        && (!declared.iter().any(|ty| is_polymorphic(*ty)) || polymorphic::fits(given, declared))
}

/// Keeps the candidates with the highest rank.
fn keep_best(candidates: &mut Vec<usize>, rank: impl Fn(usize) -> usize) {
    let best = candidates.iter().map(|at| rank(*at)).max().unwrap_or(0);
    candidates.retain(|at| rank(*at) == best);
}

/// The place of the candidate that takes the arguments best.
fn select(lists: &[&[SqlType]], given: &[SqlType]) -> Result<usize, Failure> {
    let is_unknown = |ty: &SqlType| ty.oid == SqlType::UNKNOWN.oid;
    let declared = |at: usize, arg: usize| lists.get(at).and_then(|list| list.get(arg)).copied();
    let mut left: Vec<usize> = (0..lists.len()).filter(|at| lists.get(*at).is_some_and(|l| takes(l, given))).collect();
    let known = |at: usize, fits: &dyn Fn(SqlType, SqlType) -> bool| {
        let pairs = given.iter().enumerate().filter(|(_, ty)| !is_unknown(ty));
        pairs.filter(|(arg, ty)| declared(at, *arg).is_some_and(|declared| fits(**ty, declared))).count()
    };
    if left.len() > 1 {
        keep_best(&mut left, |at| known(at, &|ty, declared| ty.oid == declared.oid));
    }
    if left.len() > 1 {
        keep_best(&mut left, |at| {
            known(at, &|ty, declared| ty.oid == declared.oid || is_preferred_of(ty.row().category, declared))
        });
    }
    if left.len() > 1 && given.iter().any(is_unknown) {
        by_category(&mut left, given, &declared);
    }
    if left.len() > 1 {
        by_known_type(&mut left, lists, given);
    }
    match left.as_slice() {
        [] => Err(Failure::Missing),
        [at] => Ok(*at),
        _ => Err(Failure::Ambiguous),
    }
}

fn is_preferred_of(category: Category, ty: SqlType) -> bool {
    ty.row().is_preferred && ty.row().category == category
}

/// Keeps the candidates with the category that each argument of unknown type gets: that of all candidates, or strings.
fn by_category(left: &mut Vec<usize>, given: &[SqlType], declared: &dyn Fn(usize, usize) -> Option<SqlType>) {
    let mut wanted: Vec<(usize, Category, bool)> = Vec::new();
    for (arg, _) in given.iter().enumerate().filter(|(_, ty)| ty.oid == SqlType::UNKNOWN.oid) {
        let types: Vec<SqlType> = left.iter().filter_map(|at| declared(*at, arg)).collect();
        let categories: Vec<Category> = types.iter().map(|ty| ty.row().category).collect();
        let category = match categories.split_first() {
            _ if categories.contains(&Category::String) => Category::String,
            Some((first, rest)) if rest.iter().all(|other| other == first) => *first,
            // The candidates disagree: nothing follows.
            _ => return,
        };
        wanted.push((arg, category, types.iter().any(|ty| is_preferred_of(category, *ty))));
    }
    let fits = |at: &usize| {
        wanted.iter().all(|(arg, category, preferred)| {
            declared(*at, *arg)
                .is_some_and(|ty| ty.row().category == *category && (!preferred || ty.row().is_preferred))
        })
    };
    if left.iter().any(fits) {
        left.retain(fits);
    }
}

/// Takes the arguments of unknown type for the one type that all others have, if that leaves one candidate.
fn by_known_type(left: &mut Vec<usize>, lists: &[&[SqlType]], given: &[SqlType]) {
    let unknown = |ty: &&SqlType| ty.oid == SqlType::UNKNOWN.oid;
    let mut known = given.iter().filter(|ty| !unknown(ty));
    let Some(first) = known.next() else { return };
    if known.any(|ty| ty.oid != first.oid) || !given.iter().any(|ty| unknown(&ty)) {
        return;
    }
    let all = vec![*first; given.len()];
    let fitting: Vec<usize> =
        left.iter().copied().filter(|at| lists.get(*at).is_some_and(|list| takes(list, &all))).collect();
    if fitting.len() == 1 {
        *left = fitting;
    }
}
