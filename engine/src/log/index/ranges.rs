//! Set operations on ranges of entries: normalize, subtract, clip.

use std::fmt;

/// Entries `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRange {
    /// Index of the first.
    pub first: u64,
    /// Index of the last.
    pub last: u64,
}

impl fmt::Display for EntryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{} to {}", self.first, self.last) }
    }
}

/// Whether the ranges ascend without overlap and none is empty. The functions below take and return such ranges.
fn is_normalized(ranges: &[EntryRange]) -> bool {
    ranges.iter().all(|range| range.first <= range.last)
        && ranges.windows(2).all(|pair| matches!(pair, [a, b] if a.last < b.first))
}

/// Sorts and merges ranges, and drops empty ones.
pub(crate) fn normalize(mut ranges: Vec<EntryRange>) -> Vec<EntryRange> {
    ranges.retain(|range| range.first <= range.last);
    ranges.sort_unstable_by_key(|range| range.first);
    let mut out: Vec<EntryRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(before) if range.first <= before.last.saturating_add(1) => before.last = before.last.max(range.last),
            _ => out.push(range),
        }
    }
    out
}

/// `ranges` without the entries in `less`; both normalized.
pub(crate) fn subtract(ranges: &[EntryRange], less: &[EntryRange]) -> Vec<EntryRange> {
    debug_assert!(is_normalized(ranges) && is_normalized(less));
    let mut out = Vec::new();
    for range in ranges {
        let mut first = Some(range.first);
        for cut in less.iter().filter(|cut| cut.last >= range.first && cut.first <= range.last) {
            let Some(from) = first else { break };
            if cut.first > from {
                out.push(EntryRange { first: from, last: cut.first - 1 });
            }
            first = cut.last.checked_add(1).map(|next| next.max(from));
        }
        out.extend(first.filter(|first| *first <= range.last).map(|first| EntryRange { first, last: range.last }));
    }
    out
}

/// The part of normalized `ranges` from `from` to before `end`.
pub(crate) fn clip(ranges: &[EntryRange], from: u64, end: Option<u64>) -> Vec<EntryRange> {
    let Some(last) = end.map_or(Some(u64::MAX), |end| end.checked_sub(1)) else { return Vec::new() };
    let clipped = ranges.iter().map(|range| EntryRange { first: range.first.max(from), last: range.last.min(last) });
    clipped.filter(|range| range.first <= range.last).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn members(ranges: &[EntryRange]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|range| range.first..=range.last).collect()
    }

    fn ranges() -> impl Strategy<Value = Vec<EntryRange>> {
        let range = (0u64..40, 0u64..9).prop_map(|(first, count)| EntryRange { first, last: first + count });
        prop::collection::vec(range, 0..6)
    }

    proptest! {
        #[test]
        fn ranges_behave_like_sets(a in ranges(), b in ranges(), from in 0u64..50, end in prop::option::of(0u64..50)) {
            let (x, y) = (members(&a), members(&b));
            let (a, b) = (normalize(a), normalize(b));
            prop_assert!(is_normalized(&a) && is_normalized(&b));
            prop_assert_eq!(members(&a), x.clone());
            let less = subtract(&a, &b);
            prop_assert!(is_normalized(&less));
            prop_assert_eq!(members(&less), &x - &y);
            let is_within = |at: &u64| *at >= from && end.is_none_or(|end| *at < end);
            let clipped: BTreeSet<u64> = x.into_iter().filter(is_within).collect();
            prop_assert_eq!(members(&clip(&a, from, end)), clipped);
        }
    }

    #[test]
    fn highest_index_is_no_special_case() {
        let all = [EntryRange { first: 0, last: u64::MAX }];
        assert_eq!(subtract(&all, &[EntryRange { first: 5, last: u64::MAX }]), [EntryRange { first: 0, last: 4 }]);
        assert_eq!(subtract(&all, &all), []);
        assert_eq!(clip(&all, 3, Some(0)), []);
        assert_eq!(normalize(vec![all[0], EntryRange { first: 7, last: 9 }]), all);
    }
}
