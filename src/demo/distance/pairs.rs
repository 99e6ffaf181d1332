//! A value for each ordered pair of places.

use std::ops::{Index, IndexMut};

/// A value for each ordered pair of places, which are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<T> {
    places: usize,
    values: Vec<T>,
}

impl<T> Pairs<T> {
    /// The values that `value` gives to each pair `(from, to)`.
    pub(crate) fn new(places: usize, mut value: impl FnMut(usize, usize) -> T) -> Pairs<T> {
        let values = (0..places * places).map(|at| value(at / places, at % places)).collect();
        Pairs { places, values }
    }

    /// The number of places.
    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// All values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    fn at(&self, (from, to): (usize, usize)) -> usize {
        assert!(from < self.places && to < self.places, "there are {} places, not {from} and {to}", self.places);
        from * self.places + to
    }
}

impl<T> Index<(usize, usize)> for Pairs<T> {
    type Output = T;

    fn index(&self, pair: (usize, usize)) -> &T {
        &self.values[self.at(pair)]
    }
}

impl<T> IndexMut<(usize, usize)> for Pairs<T> {
    fn index_mut(&mut self, pair: (usize, usize)) -> &mut T {
        let at = self.at(pair);
        &mut self.values[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ordered_pair_has_its_own_value() {
        let mut pairs = Pairs::new(3, |from, to| 10 * from + to);
        pairs[(2, 1)] = 0;
        assert_eq!((pairs[(1, 2)], pairs[(2, 1)], pairs[(2, 2)], pairs.places()), (12, 0, 22, 3));
    }
}
