//! Arrays: elements of one type in up to six dimensions.
//!
//! # Layers
//!
//! 1. `join`, `search`, `subscripts`: what makes arrays of arrays, searches in them, and takes and replaces parts

mod join;
mod search;
mod subscripts;

use std::cmp::Ordering;

use super::{Datum, compare};
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sqlstate::SqlState;

pub use join::ArrayOfArrays;
pub(crate) use join::{MAX_BYTES, too_many_bytes};
pub use subscripts::SliceBounds;

/// The most dimensions.
pub const MAX_DIMENSIONS: usize = 6;
/// The most elements.
pub const MAX_ELEMENTS: usize = 134_217_727;

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The number of elements.
    pub length: i32,
    /// The subscript of the first one.
    pub lower: i32,
}

impl Dimension {
    /// A dimension whose subscripts begin with 1.
    pub fn of_length(length: i32) -> Dimension {
        Dimension { length, lower: 1 }
    }
}

/// An array.
///
/// Invariants: `elements` has as many as the product of the lengths, none if there is no dimension; there are at most
/// [`MAX_DIMENSIONS`], and no length is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    element: Oid,
    dimensions: Vec<Dimension>,
    elements: Vec<Datum>,
}

impl Array {
    /// An empty array.
    pub fn empty(element: Oid) -> Array {
        Array { element, dimensions: Vec::new(), elements: Vec::new() }
    }

    /// An array of one dimension.
    pub fn of(element: Oid, elements: Vec<Datum>) -> Array {
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let dimensions = if elements.is_empty() { Vec::new() } else { vec![Dimension::of_length(length)] };
        Array { element, dimensions, elements }
    }

    /// An array with one more dimension, of arrays of one shape: `ARRAY[a, b]`. NULL among them counts as empty.
    ///
    /// # Errors
    /// 2202E for arrays of different shapes, 54000 for too many dimensions.
    pub fn nest(element: Oid, arrays: Vec<Datum>) -> Result<Array, ValueError> {
        let count = i32::try_from(arrays.len()).unwrap_or(i32::MAX);
        let mut inner: Option<Vec<Dimension>> = None;
        let mut elements = Vec::new();
        for array in arrays {
            let Datum::Array(array) = array else { continue };
            if inner.as_ref().is_some_and(|shape| *shape != array.dimensions) {
                let message = "multidimensional arrays must have array expressions with matching dimensions";
                return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
            }
            inner = Some(array.dimensions.clone());
            elements.extend(array.elements);
        }
        let mut dimensions = vec![Dimension::of_length(count)];
        dimensions.extend(inner.unwrap_or_default());
        if elements.is_empty() {
            return Ok(Array::empty(element));
        }
        Array::new(element, dimensions, elements)
    }

    /// A vector of the catalog: one dimension, subscripts from 0, also when it is empty.
    pub fn vector(element: Oid, elements: Vec<Datum>) -> Array {
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let dimensions = if elements.is_empty() { Vec::new() } else { vec![Dimension { length, lower: 0 }] };
        Array { element, dimensions, elements }
    }

    /// The number of elements of such dimensions.
    ///
    /// # Errors
    /// 54000 for too many elements.
    fn count(dimensions: &[Dimension]) -> Result<usize, ValueError> {
        let mut count: i64 = i64::from(!dimensions.is_empty());
        for dimension in dimensions {
            count *= i64::from(dimension.length);
            if dimension.length < 0 || i32::try_from(count).is_err() {
                return Err(too_many_elements());
            }
        }
        usize::try_from(count).ok().filter(|count| *count <= MAX_ELEMENTS).ok_or_else(too_many_elements)
    }

    /// The number of elements of such dimensions.
    ///
    /// # Errors
    /// 54000 for too many dimensions or elements, and for subscripts beyond `integer`.
    pub fn check_dimensions(dimensions: &[Dimension]) -> Result<usize, ValueError> {
        if dimensions.len() > MAX_DIMENSIONS {
            return Err(too_many_dimensions(dimensions.len()));
        }
        let count = Array::count(dimensions)?;
        if let Some(far) = dimensions.iter().find(|dimension| dimension.lower.checked_add(dimension.length).is_none()) {
            let message = format!("array lower bound is too large: {}", far.lower);
            return Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(count)
    }

    /// An array of several dimensions.
    ///
    /// # Errors
    /// 54000 for too many dimensions or elements, 2202E for lengths that do not fit.
    pub fn new(element: Oid, dimensions: Vec<Dimension>, elements: Vec<Datum>) -> Result<Array, ValueError> {
        let count = Array::check_dimensions(&dimensions)?;
        if count == 0 {
            return Ok(Array::empty(element));
        }
        if count != elements.len() {
            return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of elements"));
        }
        Ok(Array { element, dimensions, elements })
    }

    /// The type of its elements.
    pub fn element(&self) -> Oid {
        self.element
    }

    /// Its dimensions; none if it is empty.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Its elements, row by row.
    pub fn elements(&self) -> &[Datum] {
        &self.elements
    }

    /// Its elements.
    pub fn into_elements(self) -> Vec<Datum> {
        self.elements
    }

    /// An array of the same shape, of what a function makes of the elements.
    ///
    /// # Errors
    /// Those of the function.
    pub fn try_map<E>(&self, element: Oid, map: impl FnMut(&Datum) -> Result<Datum, E>) -> Result<Array, E> {
        let elements = self.elements.iter().map(map).collect::<Result<_, E>>()?;
        Ok(Array { element, dimensions: self.dimensions.clone(), elements })
    }

    /// The element at subscripts, one for each dimension. `None`: there is no such element.
    pub fn get(&self, subscripts: &[i64]) -> Option<&Datum> {
        if subscripts.len() != self.dimensions.len() || subscripts.is_empty() {
            return None;
        }
        let mut at: usize = 0;
        for (subscript, dimension) in subscripts.iter().zip(&self.dimensions) {
            let offset = subscript.checked_sub(dimension.lower.into())?;
            let length = usize::try_from(dimension.length).ok()?;
            let offset = usize::try_from(offset).ok().filter(|offset| *offset < length)?;
            at = at * length + offset;
        }
        self.elements.get(at)
    }

    /// Memory of the elements, for budgets.
    pub fn memory(&self) -> usize {
        self.elements.iter().map(Datum::memory).sum()
    }

    /// PostgreSQL's order: element by element with NULL last, then by their number, then by the number of dimensions,
    /// then by their lengths, then by their lower bounds.
    pub fn compare(&self, other: &Array) -> Ordering {
        let mut pairs = self.elements.iter().zip(&other.elements);
        let unequal = pairs.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()));
        let shape = |array: &Array| {
            let lengths: Vec<i32> = array.dimensions.iter().map(|dimension| dimension.length).collect();
            let lowers: Vec<i32> = array.dimensions.iter().map(|dimension| dimension.lower).collect();
            (array.dimensions.len(), lengths, lowers)
        };
        let by_shape = || shape(self).cmp(&shape(other));
        unequal.unwrap_or_else(|| self.elements.len().cmp(&other.elements.len()).then_with(by_shape))
    }
}

/// 54000
pub(crate) fn too_many_dimensions(count: usize) -> ValueError {
    let message = format!("number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})");
    ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// 54000
pub(crate) fn too_many_elements() -> ValueError {
    let message = format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})");
    ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

#[cfg(test)]
mod tests;
