//! Which functions, operators and casts make a value of a type; polymorphic ones included.

use std::collections::BTreeMap;

use crate::catalog::{Catalog, TypeOid};
use crate::generate::literal::SCALARS;

const ANY: TypeOid = 2276;
const ANYARRAY: TypeOid = 2277;
const ANYELEMENT: TypeOid = 2283;
const ANYNONARRAY: TypeOid = 2776;
const ANYCOMPATIBLE: TypeOid = 5077;
const ANYCOMPATIBLEARRAY: TypeOid = 5078;
const ANYCOMPATIBLENONARRAY: TypeOid = 5079;
const RECORD: TypeOid = 2249;
const POLYMORPHIC: [TypeOid; 6] =
    [ANYARRAY, ANYELEMENT, ANYNONARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY];

/// What makes a value: an index of the catalog's list.
#[derive(Clone, Copy, Debug)]
pub enum Producer {
    /// A function.
    Function(usize),
    /// An operator.
    Operator(usize),
}

/// The producers of each type.
#[derive(Debug)]
pub struct Producers {
    of: BTreeMap<TypeOid, Vec<Producer>>,
    /// Functions that return sets.
    pub sets: Vec<usize>,
    /// Aggregates.
    pub aggregates: Vec<usize>,
    /// The types of which values are generated: scalars and their arrays.
    pub types: Vec<TypeOid>,
}

/// Whether a type stands for others.
pub fn is_polymorphic(of: TypeOid) -> bool {
    POLYMORPHIC.contains(&of)
}

impl Producers {
    /// Sorts the catalog by result.
    pub fn new(catalog: &Catalog) -> Producers {
        let mut types: Vec<TypeOid> = SCALARS.into_iter().filter(|of| catalog.types.contains_key(of)).collect();
        types.extend(types.clone().into_iter().filter_map(|of| catalog.array_of(of)));
        let mut found = Producers { of: BTreeMap::new(), sets: Vec::new(), aggregates: Vec::new(), types };
        for (at, function) in catalog.functions.iter().enumerate() {
            let arguments_known = function.arguments.iter().all(|of| found.is_known(*of));
            if !arguments_known {
                continue;
            }
            if function.returns_set {
                found.sets.push(at);
            } else if function.is_aggregate {
                found.aggregates.push(at);
            } else if found.is_known(function.result) {
                found.of.entry(function.result).or_default().push(Producer::Function(at));
            }
        }
        for (at, operator) in catalog.operators.iter().enumerate() {
            let sides_known = operator.left.is_none_or(|of| found.is_known(of)) && found.is_known(operator.right);
            if sides_known && found.is_known(operator.result) {
                found.of.entry(operator.result).or_default().push(Producer::Operator(at));
            }
        }
        found
    }

    fn is_known(&self, of: TypeOid) -> bool {
        of == ANY || of == RECORD || is_polymorphic(of) || self.types.contains(&of)
    }

    /// All that makes a value of this type, polymorphic ones last.
    pub fn of(&self, catalog: &Catalog, goal: TypeOid) -> Vec<Producer> {
        let is_array = catalog.types.get(&goal).is_some_and(|found| found.element.is_some());
        let fits = |result: &TypeOid| match *result {
            ANYARRAY | ANYCOMPATIBLEARRAY => is_array,
            ANYNONARRAY | ANYCOMPATIBLENONARRAY => !is_array,
            result => result == ANYELEMENT || result == ANYCOMPATIBLE,
        };
        let exact = self.of.get(&goal).into_iter().flatten();
        exact.chain(self.of.iter().filter(|(result, _)| fits(result)).flat_map(|(_, list)| list)).copied().collect()
    }

    /// The type that the polymorphic arguments of a function stand for, if its result is `goal`.
    pub fn base(&self, catalog: &Catalog, result: TypeOid, goal: TypeOid, other: TypeOid) -> TypeOid {
        match result {
            ANYARRAY | ANYCOMPATIBLEARRAY => catalog.types.get(&goal).and_then(|found| found.element).unwrap_or(goal),
            result if is_polymorphic(result) => goal,
            _ => other,
        }
    }

    /// The type of an argument, if polymorphic ones stand for `base`; `other` for `"any"`. `None` for a row.
    pub fn argument(&self, catalog: &Catalog, declared: TypeOid, base: TypeOid, other: TypeOid) -> Option<TypeOid> {
        match declared {
            ANY => Some(other),
            RECORD => None,
            ANYARRAY | ANYCOMPATIBLEARRAY => Some(catalog.array_of(base).unwrap_or(base)),
            declared if is_polymorphic(declared) => Some(base),
            declared => Some(declared),
        }
    }
}
