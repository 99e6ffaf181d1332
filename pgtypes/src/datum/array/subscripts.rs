//! Slices of arrays, and assignments to elements and slices: `a[2:3]`, `SET a[2] = x`, `SET a[2:3] = y`.
//!
//! What subscripts out of the bounds do is PostgreSQL's: a slice is cut to the bounds, and an assignment extends an
//! array of one dimension, with NULL in a gap. The elements of other arrays stay in their bounds.

use super::{Array, Dimension, MAX_DIMENSIONS, too_many_elements};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The bounds of a slice in one dimension. `None` is a bound that is left out.
pub type SliceBounds = (Option<i64>, Option<i64>);

/// What a slice has of a dimension, both ends included. It is not empty.
#[derive(Clone, Copy)]
struct Span {
    first: i64,
    last: i64,
}

impl Span {
    fn length(self) -> i64 {
        self.last - self.first + 1
    }
}

impl Dimension {
    /// The last subscript.
    pub fn upper(self) -> i64 {
        i64::from(self.lower) + i64::from(self.length) - 1
    }

    fn span(self) -> Span {
        Span { first: self.lower.into(), last: self.upper() }
    }

    fn of_span(span: Span) -> Result<Dimension, ValueError> {
        let length = span.last.checked_sub(span.first).and_then(|length| i32::try_from(length.checked_add(1)?).ok());
        match (length, i32::try_from(span.first)) {
            (Some(length), Ok(lower)) => Ok(Dimension { length, lower }),
            _ => Err(too_many_elements()),
        }
    }
}

fn wrong_number() -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
}

fn out_of_range() -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "array subscript out of range")
}

fn source_too_small() -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "source array too small")
}

fn check_count(count: usize) -> Result<(), ValueError> {
    if (1..=MAX_DIMENSIONS).contains(&count) { Ok(()) } else { Err(wrong_number()) }
}

/// The places of the elements in spans of all dimensions, row by row.
fn places(dimensions: &[Dimension], spans: &[Span]) -> Vec<usize> {
    let mut places = vec![0_usize];
    for (dimension, span) in dimensions.iter().zip(spans) {
        let length = usize::try_from(dimension.length).unwrap_or(0);
        let inner = span.first - i64::from(dimension.lower)..=span.last - i64::from(dimension.lower);
        let inner = inner.filter_map(|at| usize::try_from(at).ok());
        places = places.iter().flat_map(|outer| inner.clone().map(move |at| outer * length + at)).collect();
    }
    places
}

impl Array {
    /// `a[2:3][:1]`: the elements within bounds, with subscripts from 1 on. Bounds beyond those of the array are cut,
    /// dimensions without bounds are whole. Empty if nothing is left, or if there are more bounds than dimensions.
    pub fn slice(&self, bounds: &[SliceBounds]) -> Array {
        let mut spans = Vec::with_capacity(self.dimensions.len());
        for (at, dimension) in self.dimensions.iter().enumerate() {
            let (first, last) = bounds.get(at).copied().unwrap_or_default();
            let all = dimension.span();
            let first = first.map_or(all.first, |first| first.max(all.first));
            let last = last.map_or(all.last, |last| last.min(all.last));
            if first > last {
                return Array::empty(self.element);
            }
            spans.push(Span { first, last });
        }
        if spans.is_empty() || bounds.len() > spans.len() {
            return Array::empty(self.element);
        }
        let dimensions = spans.iter().filter_map(|span| i32::try_from(span.length()).ok());
        let dimensions = dimensions.map(Dimension::of_length).collect();
        let elements = places(&self.dimensions, &spans).into_iter().filter_map(|at| self.elements.get(at).cloned());
        Array { element: self.element, dimensions, elements: elements.collect() }
    }

    /// `SET a[2] = x`, `SET a[1][2] = x`. An empty array becomes one of this element, at these subscripts.
    ///
    /// # Errors
    /// 2202E for another number of subscripts, and for those out of the bounds of several dimensions; 54000 if the
    /// array becomes too large.
    pub fn assign(self, subscripts: &[i64], value: Datum) -> Result<Array, ValueError> {
        check_count(subscripts.len())?;
        if self.dimensions.is_empty() {
            let spans = subscripts.iter().map(|at| Dimension::of_span(Span { first: *at, last: *at }));
            return Array::new(self.element, spans.collect::<Result<_, _>>()?, vec![value]);
        }
        if self.dimensions.len() != subscripts.len() {
            return Err(wrong_number());
        }
        let spans: Vec<Span> = subscripts.iter().map(|at| Span { first: *at, last: *at }).collect();
        let mut array = self.extended(&spans)?;
        for at in places(&array.dimensions, &spans) {
            if let Some(place) = array.elements.get_mut(at) {
                place.clone_from(&value);
            }
        }
        Ok(array)
    }

    /// `SET a[2:3] = y`: the first elements of another array, in their order. Of an empty array all bounds are given.
    ///
    /// # Errors
    /// 2202E for more bounds than dimensions, for bounds out of those of several dimensions, for an upper bound below
    /// the lower one, and if the other array has too few elements; 54000 if the array becomes too large.
    pub fn assign_slice(self, bounds: &[SliceBounds], source: &Array) -> Result<Array, ValueError> {
        check_count(bounds.len())?;
        if self.dimensions.is_empty() {
            return Array::of_slice(self.element, bounds, source);
        }
        if self.dimensions.len() < bounds.len() {
            return Err(wrong_number());
        }
        let mut spans = Vec::with_capacity(self.dimensions.len());
        for (at, dimension) in self.dimensions.iter().enumerate() {
            let (first, last) = bounds.get(at).copied().unwrap_or_default();
            let all = dimension.span();
            let span = Span { first: first.unwrap_or(all.first), last: last.unwrap_or(all.last) };
            if span.first > span.last {
                let message = "upper bound cannot be less than lower bound";
                return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
            }
            if self.dimensions.len() > 1 && (span.first < all.first || span.last > all.last) {
                return Err(out_of_range());
            }
            spans.push(span);
        }
        Array::check_dimensions(&self.dimensions_with(&spans)?)?;
        let spanned = spans.iter().map(|span| Dimension::of_span(*span)).collect::<Result<Vec<_>, _>>()?;
        if Array::check_dimensions(&spanned)? > source.elements.len() {
            return Err(source_too_small());
        }
        let mut array = self.extended(&spans)?;
        for (at, value) in places(&array.dimensions, &spans).into_iter().zip(&source.elements) {
            if let Some(place) = array.elements.get_mut(at) {
                place.clone_from(value);
            }
        }
        Ok(array)
    }

    /// An empty array with a slice assigned.
    fn of_slice(element: crate::oid::Oid, bounds: &[SliceBounds], source: &Array) -> Result<Array, ValueError> {
        let mut dimensions = Vec::with_capacity(bounds.len());
        for bound in bounds {
            let (Some(first), Some(last)) = *bound else {
                let message = "array slice subscript must provide both boundaries";
                let detail =
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
                return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message).with_detail(detail));
            };
            dimensions.push(Dimension::of_span(Span { first, last })?);
        }
        match source.elements.get(..Array::count(&dimensions)?) {
            Some(elements) => Array::new(element, dimensions, elements.to_vec()),
            None => Err(source_too_small()),
        }
    }

    /// The dimensions after an assignment to spans.
    fn dimensions_with(&self, spans: &[Span]) -> Result<Vec<Dimension>, ValueError> {
        let [dimension] = self.dimensions[..] else {
            let outside = |(dimension, span): (&Dimension, &Span)| {
                span.first < i64::from(dimension.lower) || span.last > dimension.upper()
            };
            if self.dimensions.iter().zip(spans).any(outside) {
                return Err(out_of_range());
            }
            return Ok(self.dimensions.clone());
        };
        let mut all = dimension.span();
        for span in spans {
            all = Span { first: all.first.min(span.first), last: all.last.max(span.last) };
        }
        Ok(vec![Dimension::of_span(all)?])
    }

    /// The array with the dimensions that it has after an assignment to spans. New elements are NULL.
    fn extended(mut self, spans: &[Span]) -> Result<Array, ValueError> {
        let dimensions = self.dimensions_with(spans)?;
        let count = Array::check_dimensions(&dimensions)?;
        if let ([old], [new]) = (&self.dimensions[..], &dimensions[..]) {
            let before = usize::try_from(i64::from(old.lower) - i64::from(new.lower)).unwrap_or(0);
            if before > 0 {
                self.elements.splice(0..0, std::iter::repeat_n(Datum::Null, before));
            }
            self.elements.resize(count, Datum::Null);
        }
        self.dimensions = dimensions;
        Ok(self)
    }
}
