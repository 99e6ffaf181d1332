//! Arrays from elements and arrays: appending, concatenation, filling, and arrays in an array.

use super::{Array, Dimension, MAX_DIMENSIONS, too_many_dimensions, too_many_elements};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sqlstate::SqlState;

/// The bytes of the largest array in PostgreSQL.
pub(crate) const MAX_BYTES: usize = 0x3fff_ffff;

fn not_a_list() -> ValueError {
    ValueError::new(SqlState::DATA_EXCEPTION, "argument must be empty or one-dimensional array")
}

fn incompatible(detail: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays").with_detail(detail)
}

fn integer_range() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
}

/// 54000
pub(crate) fn too_many_bytes() -> ValueError {
    let message = format!("array size exceeds the maximum allowed ({MAX_BYTES})");
    ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

impl Array {
    /// `array_append`: with an element after the others.
    ///
    /// # Errors
    /// 22000 for several dimensions; 22003 and 54000 if the subscript or the array becomes too large.
    pub fn append(mut self, value: Datum) -> Result<Array, ValueError> {
        match &self.dimensions[..] {
            [] => Ok(Array::of(self.element, vec![value])),
            [dimension] => {
                dimension.lower.checked_add(dimension.length).ok_or_else(integer_range)?;
                let longer = Dimension { length: dimension.length + 1, ..*dimension };
                Array::check_dimensions(&[longer])?;
                self.elements.push(value);
                self.dimensions = vec![longer];
                Ok(self)
            }
            _ => Err(not_a_list()),
        }
    }

    /// `array_prepend`: with an element before the others. The first subscript stays.
    ///
    /// # Errors
    /// As [`Array::append`].
    pub fn prepend(mut self, value: Datum) -> Result<Array, ValueError> {
        match &self.dimensions[..] {
            [] => Ok(Array::of(self.element, vec![value])),
            [dimension] => {
                dimension.lower.checked_sub(1).ok_or_else(integer_range)?;
                let longer = Dimension { length: dimension.length + 1, ..*dimension };
                Array::check_dimensions(&[Dimension { lower: dimension.lower - 1, ..longer }])?;
                self.elements.insert(0, value);
                self.dimensions = vec![longer];
                Ok(self)
            }
            _ => Err(not_a_list()),
        }
    }

    /// `array_cat`: the elements of both, or one of them as an element of the other.
    ///
    /// # Errors
    /// 2202E for shapes that do not fit, 54000 if the array becomes too large.
    pub fn concat(mut self, mut other: Array) -> Result<Array, ValueError> {
        if self.dimensions.is_empty() {
            return Ok(other);
        }
        if other.dimensions.is_empty() {
            return Ok(self);
        }
        let dimensions = joined(&self.dimensions, &other.dimensions)?;
        Array::check_dimensions(&dimensions)?;
        self.elements.append(&mut other.elements);
        Ok(Array { element: self.element, dimensions, elements: self.elements })
    }

    /// `array_fill`: one value, so often. `size` is the bytes that it has in PostgreSQL, which bounds the array.
    ///
    /// # Errors
    /// 54000 if there are too many elements or dimensions, or too many bytes.
    pub fn fill(element: Oid, value: &Datum, size: usize, dimensions: Vec<Dimension>) -> Result<Array, ValueError> {
        let count = Array::check_dimensions(&dimensions)?;
        if count == 0 {
            return Ok(Array::empty(element));
        }
        if count.saturating_mul(size) > MAX_BYTES {
            return Err(too_many_bytes());
        }
        Array::new(element, dimensions, vec![value.clone(); count])
    }
}

/// The dimensions of a concatenation.
fn joined(left: &[Dimension], right: &[Dimension]) -> Result<Vec<Dimension>, ValueError> {
    let longer = |dimension: &Dimension, by: i32| {
        let length = dimension.length.checked_add(by).ok_or_else(too_many_elements)?;
        Ok(Dimension { length, ..*dimension })
    };
    let extended = |outer: &[Dimension], by: i32| {
        let mut dimensions = outer.to_vec();
        if let Some(first) = dimensions.first_mut() {
            *first = longer(first, by)?;
        }
        Ok(dimensions)
    };
    let inner = |dimensions: &[Dimension]| dimensions.get(1..).unwrap_or_default().to_vec();
    match (left.len(), right.len()) {
        (a, b) if a == b => {
            if inner(left) != inner(right) {
                return Err(incompatible(
                    "Arrays with differing element dimensions are not compatible for concatenation.",
                ));
            }
            extended(left, right.first().map_or(0, |first| first.length))
        }
        (a, b) if a == b + 1 || a + 1 == b => {
            let (outer, element) = if a > b { (left, right) } else { (right, left) };
            if inner(outer) != element {
                return Err(incompatible("Arrays with differing dimensions are not compatible for concatenation."));
            }
            extended(outer, 1)
        }
        (a, b) => {
            let detail = format!("Arrays of {a} and {b} dimensions are not compatible for concatenation.");
            Err(incompatible(detail))
        }
    }
}

/// Arrays of one shape that become the elements of an array: `array_agg` of arrays.
#[derive(Clone, Debug)]
pub struct ArrayOfArrays {
    element: Oid,
    inner: Vec<Dimension>,
    count: usize,
    elements: Vec<Datum>,
}

impl ArrayOfArrays {
    /// Begins with an array.
    ///
    /// # Errors
    /// 2202E for an empty array, 54000 for one with all dimensions.
    pub fn new(first: &Array) -> Result<ArrayOfArrays, ValueError> {
        if first.dimensions.is_empty() {
            let message = "cannot accumulate empty arrays";
            return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        if first.dimensions.len() >= MAX_DIMENSIONS {
            return Err(too_many_dimensions(first.dimensions.len() + 1));
        }
        let (inner, elements) = (first.dimensions.clone(), first.elements.clone());
        Ok(ArrayOfArrays { element: first.element, inner, count: 1, elements })
    }

    /// Adds an array of the same shape.
    ///
    /// # Errors
    /// 2202E for another shape, 54000 for too many elements.
    pub fn push(&mut self, array: &Array) -> Result<(), ValueError> {
        if array.dimensions != self.inner {
            let message = "cannot accumulate arrays of different dimensionality";
            return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        if self.elements.len() + array.elements.len() > super::MAX_ELEMENTS {
            return Err(too_many_elements());
        }
        self.count += 1;
        self.elements.extend_from_slice(&array.elements);
        Ok(())
    }

    /// The array of the arrays.
    ///
    /// # Errors
    /// 54000 for too many elements.
    pub fn finish(self) -> Result<Array, ValueError> {
        let count = i32::try_from(self.count).map_err(|_| too_many_elements())?;
        let mut dimensions = vec![Dimension::of_length(count)];
        dimensions.extend(self.inner);
        Array::new(self.element, dimensions, self.elements)
    }
}
