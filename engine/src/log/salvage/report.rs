//! What a salvaged log lost, in words that an operator can act on.

use std::fmt;

use bytes::Bytes;

use super::super::{GroupId, Lsn};

/// A part of the log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file's name.
    pub file: String,
    /// Where in it the part begins and ends, in bytes; both 0 for all of a file.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// The first position in the log's history that is missing, where known.
    pub first_lsn: Option<Lsn>,
    /// The last one, where known.
    pub last_lsn: Option<Lsn>,
    /// What is wrong.
    pub what: String,
    /// The only groups that it can concern, ascending; `None` where that cannot be known: then it may be any.
    pub concerns: Option<Vec<GroupId>>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.to > self.from {
            write!(f, " at {} to {}", self.from, self.to)?;
        }
        write!(f, ": {}", self.what)?;
        match (self.first_lsn, self.last_lsn) {
            (Some(Lsn(first)), Some(Lsn(last))) if first == last => write!(f, "; commit group {first} is lost"),
            (Some(Lsn(first)), Some(Lsn(last))) => write!(f, "; commit groups {first} to {last} are lost"),
            (Some(Lsn(first)), None) => write!(f, "; commit groups from {first} on are lost"),
            (None, Some(Lsn(last))) => write!(f, "; commit groups up to {last} are lost"),
            (None, None) => Ok(()),
        }
    }
}

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

/// What is lost of one group. A group that is not named is whole.
///
/// A group may be named without anything below: then nothing is known of it from before a [`Loss`] that may concern it, and there
/// may have been entries before those that are left, and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLoss {
    /// The group.
    pub group: GroupId,
    /// Entries that there were and that nothing readable says.
    pub missing: Vec<EntryRange>,
    /// Entries that can be read but stand before a loss, which may have replaced or compacted them, or removed the group. They are
    /// shown only with [`super::super::LogOptions::keep_doubtful`].
    pub doubtful: Vec<EntryRange>,
    /// Entries whose blocks are damaged. Looked for only with [`super::super::LogOptions::verify`].
    pub unreadable: Vec<EntryRange>,
    /// Keys of which only a value from before a loss is known.
    pub keys: Vec<Bytes>,
}

/// Whether no range is there twice, and none is empty: what the functions below take and give.
fn is_tidy(ranges: &[EntryRange]) -> bool {
    ranges.iter().all(|range| range.first <= range.last)
        && ranges.windows(2).all(|pair| matches!(pair, [a, b] if a.last < b.first))
}

/// Sorted, and without overlaps.
pub(crate) fn tidy(mut ranges: Vec<EntryRange>) -> Vec<EntryRange> {
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

/// `ranges` without what is in `less`; both tidy.
pub(crate) fn subtract(ranges: &[EntryRange], less: &[EntryRange]) -> Vec<EntryRange> {
    debug_assert!(is_tidy(ranges) && is_tidy(less));
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

/// The part of tidy `ranges` from `from` to before `end`.
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
        fn ranges_are_sets(a in ranges(), b in ranges(), from in 0u64..50, end in prop::option::of(0u64..50)) {
            let (x, y) = (members(&a), members(&b));
            let (a, b) = (tidy(a), tidy(b));
            prop_assert!(is_tidy(&a) && is_tidy(&b));
            prop_assert_eq!(members(&a), x.clone());
            let less = subtract(&a, &b);
            prop_assert!(is_tidy(&less));
            prop_assert_eq!(members(&less), &x - &y);
            let clipped: BTreeSet<u64> = x.into_iter().filter(|at| *at >= from && end.is_none_or(|end| *at < end)).collect();
            prop_assert_eq!(members(&clip(&a, from, end)), clipped);
        }
    }

    #[test]
    fn the_last_index_of_all_is_no_special_case() {
        let all = [EntryRange { first: 0, last: u64::MAX }];
        assert_eq!(subtract(&all, &[EntryRange { first: 5, last: u64::MAX }]), [EntryRange { first: 0, last: 4 }]);
        assert_eq!(subtract(&all, &all), []);
        assert_eq!(clip(&all, 3, Some(0)), []);
        assert_eq!(tidy(vec![all[0], EntryRange { first: 7, last: 9 }]), all);
    }
}
