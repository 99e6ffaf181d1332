//! Arrays as lists and sets of elements: positions, removal, replacement, containment.
//!
//! The searches take NULL for equal to NULL; the sets take it for no element.

use crate::datum::compare::{compare, compare_same};
use crate::datum::value::{Array, Datum, Dimension};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

fn equals(a: &Datum, b: &Datum) -> bool {
    compare(a, b).is_eq()
}

fn several_dimensions(what: &str) -> ValueError {
    let message = format!("{what} multidimensional arrays is not supported");
    ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

impl Array {
    /// `array_positions`: the subscripts of the elements that equal a value.
    ///
    /// # Errors
    /// 0A000 for several dimensions.
    pub fn positions<'a>(&'a self, value: &'a Datum) -> Result<impl Iterator<Item = i64> + 'a, ValueError> {
        if self.dimensions.len() > 1 {
            return Err(several_dimensions("searching for elements in"));
        }
        let first = i64::from(self.dimensions.first().map_or(1, |dimension| dimension.lower));
        let numbered = (first..).zip(&self.elements);
        Ok(numbered.filter(|(_, element)| equals(element, value)).map(|(at, _)| at))
    }

    /// `array_position`: the first such subscript, not before another one.
    ///
    /// # Errors
    /// 0A000 for several dimensions.
    pub fn position(&self, value: &Datum, start: Option<i64>) -> Result<Option<i64>, ValueError> {
        let start = start.unwrap_or(i64::MIN);
        Ok(self.positions(value)?.find(|at| *at >= start))
    }

    /// `array_remove`: without the elements that equal a value. The first subscript stays.
    ///
    /// # Errors
    /// 0A000 for several dimensions.
    pub fn remove(&self, value: &Datum) -> Result<Array, ValueError> {
        let dimension = match self.dimensions[..] {
            [] => return Ok(self.clone()),
            [dimension] => dimension,
            _ => return Err(several_dimensions("removing elements from")),
        };
        let elements: Vec<Datum> = self.elements.iter().filter(|element| !equals(element, value)).cloned().collect();
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        Array::new(self.element, vec![Dimension { length, ..dimension }], elements)
    }

    /// `array_replace`: with another value in place of each element that equals one.
    pub fn replace(mut self, value: &Datum, with: &Datum) -> Array {
        for element in self.elements.iter_mut().filter(|element| equals(element, value)) {
            element.clone_from(with);
        }
        self
    }

    /// `arraycontains`: whether each element of another array is an element. Dimensions and counts do not matter. NULL
    /// is no element, and none is NULL.
    pub fn contains(&self, other: &Array) -> bool {
        let set = Elements::of(self);
        other.elements.iter().all(|element| set.has(element))
    }

    /// `arrayoverlap`: whether an element of another array is an element.
    pub fn overlaps(&self, other: &Array) -> bool {
        let set = Elements::of(self);
        other.elements.iter().any(|element| set.has(element))
    }
}

/// The elements of an array, sorted: many searches in a long array are fast.
struct Elements<'a> {
    sorted: Vec<&'a Datum>,
}

impl<'a> Elements<'a> {
    fn of(array: &'a Array) -> Elements<'a> {
        let mut sorted: Vec<&Datum> = array.elements.iter().filter(|element| !element.is_null()).collect();
        sorted.sort_unstable_by(|a, b| compare(a, b));
        Elements { sorted }
    }

    fn has(&self, value: &Datum) -> bool {
        !value.is_null()
            && self
                .sorted
                .binary_search_by(|element| compare_same(element, value).unwrap_or(std::cmp::Ordering::Less))
                .is_ok()
    }
}
