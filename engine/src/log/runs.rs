//! Where the entries of one group stand: 16 bytes for each stretch of entries that share a block.
//!
//! Invariants of [`Runs`]:
//! 1. Runs are sorted by index and do not overlap.
//! 2. A run's entries are consecutive, in one block of one file.
//! 3. While a log is in use there is no gap between runs; during recovery there may be one, until the rewritten copy
//!    of a deleted file's entries is met.

use std::collections::VecDeque;

use super::error::Damage;
use super::format::UNIT;

/// A stretch of consecutive entries in one block, spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Index of the first entry.
    pub(crate) first: u64,
    /// Number of entries, 1 to 4096.
    pub(crate) count: u32,
    /// The file's number.
    pub(crate) file: u64,
    /// Offset of the block's header in it.
    pub(crate) offset: u64,
    /// The first entry's place in the block.
    pub(crate) ordinal: u32,
    /// About how many bytes of the file they take.
    pub(crate) bytes: u64,
}

impl Span {
    /// The index after the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// The part from `from` to before `to`, both within the span.
    fn part(&self, from: u64, to: u64) -> Span {
        let count = (to - from) as u32;
        Span {
            first: from,
            count,
            ordinal: self.ordinal + (from - self.first) as u32,
            bytes: self.bytes * u64::from(count) / u64::from(self.count),
            ..*self
        }
    }
}

/// A [`Span`] in 16 bytes. `a`: index relative to the base 32 bits, count - 1 12, ordinal 12, size class 8;
/// `b`: file 35, offset in units of 8 bytes 29.
#[derive(Clone, Copy, Debug)]
struct Run {
    a: u64,
    b: u64,
}

impl Run {
    fn pack(rel: u32, span: &Span) -> Run {
        let place = (u64::from(span.count - 1) << 20) | (u64::from(span.ordinal) << 8);
        let a = (u64::from(rel) << 32) | place | u64::from(size_class(span.bytes));
        Run { a, b: (span.file << 29) | (span.offset / UNIT) }
    }

    fn rel(self) -> u32 {
        (self.a >> 32) as u32
    }

    fn count(self) -> u32 {
        (self.a >> 20) as u32 % 4096 + 1
    }

    fn unpack(self, base: u64) -> Span {
        Span {
            first: base + u64::from(self.rel()),
            count: self.count(),
            file: self.b >> 29,
            offset: self.b % (1 << 29) * UNIT,
            ordinal: (self.a >> 8) as u32 % 4096,
            bytes: class_size(self.a as u8),
        }
    }
}

/// A size as 5 bits of exponent and 3 of mantissa, rounded down.
fn size_class(bytes: u64) -> u8 {
    if bytes < 8 {
        return bytes as u8;
    }
    let exponent = 63 - bytes.leading_zeros() - 3;
    if exponent >= 31 {
        return u8::MAX;
    }
    ((exponent + 1) << 3) as u8 | ((bytes >> exponent) as u8 & 7)
}

fn class_size(class: u8) -> u64 {
    let (exponent, mantissa) = (class >> 3, u64::from(class & 7));
    if exponent == 0 { mantissa } else { (8 + mantissa) << (exponent - 1) }
}

/// How much of each file is referred to: changes collected while runs come and go.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Few files are touched at a time, so a list serves.
    deltas: Vec<(u64, i64, i64)>,
}

impl Tally {
    /// `refs` and `bytes` more, or fewer, of `file`.
    pub(crate) fn add(&mut self, file: u64, refs: i64, bytes: i64) {
        match self.deltas.iter_mut().find(|(known, ..)| *known == file) {
            Some((_, known_refs, known_bytes)) => {
                *known_refs += refs;
                *known_bytes += bytes;
            }
            None => self.deltas.push((file, refs, bytes)),
        }
    }

    fn run(&mut self, run: Run, sign: i64) {
        self.add(run.b >> 29, sign, sign * class_size(run.a as u8) as i64);
    }

    /// What was collected: file, references, bytes. Empty afterwards.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, i64, i64)> + '_ {
        self.deltas.drain(..)
    }
}

/// The places of a group's entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// What relative indexes are relative to.
    base: u64,
    runs: VecDeque<Run>,
}

impl Runs {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Bytes of memory besides the struct itself.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }

    /// Index of the first entry.
    pub(crate) fn first(&self) -> Option<u64> {
        self.runs.front().map(|run| run.unpack(self.base).first)
    }

    /// Index after the last entry.
    pub(crate) fn end(&self) -> Option<u64> {
        self.runs.back().map(|run| run.unpack(self.base).end())
    }

    /// The runs, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.runs.iter().map(|run| run.unpack(self.base))
    }

    /// The runs that hold entries at or after `index`, ascending.
    pub(crate) fn iter_from(&self, index: u64) -> impl Iterator<Item = Span> + '_ {
        self.runs.range(self.position(index)..).map(|run| run.unpack(self.base))
    }

    /// The run that holds `index`.
    pub(crate) fn locate(&self, index: u64) -> Option<Span> {
        self.iter_from(index).next().filter(|span| span.first <= index)
    }

    /// The first gap, as the index that is missing; `None` where entries are consecutive.
    pub(crate) fn gap(&self) -> Option<u64> {
        let mut expected = self.first()?;
        for span in self.iter() {
            if span.first != expected {
                return Some(expected);
            }
            expected = span.end();
        }
        None
    }

    /// Position of the first run that ends after `index`.
    fn position(&self, index: u64) -> usize {
        self.runs.partition_point(|run| run.unpack(self.base).end() <= index)
    }

    /// Drops entries at or after `end`.
    pub(crate) fn cut_from(&mut self, end: u64, tally: &mut Tally) {
        while let Some(run) = self.runs.back().copied() {
            let span = run.unpack(self.base);
            if span.end() <= end {
                break;
            }
            self.runs.pop_back();
            tally.run(run, -1);
            if span.first < end {
                let kept = Run::pack(run.rel(), &span.part(span.first, end));
                tally.run(kept, 1);
                self.runs.push_back(kept);
            }
        }
        self.release();
    }

    /// Drops entries below `first`.
    pub(crate) fn cut_below(&mut self, first: u64, tally: &mut Tally) {
        while let Some(run) = self.runs.front().copied() {
            let span = run.unpack(self.base);
            if span.first >= first {
                break;
            }
            self.runs.pop_front();
            tally.run(run, -1);
            if span.end() > first {
                let kept = Run::pack(run.rel() + (first - span.first) as u32, &span.part(first, span.end()));
                tally.run(kept, 1);
                self.runs.push_front(kept);
            }
        }
        self.release();
    }

    /// Places `span`, replacing what stood at its indexes. An error means that the group's indexes lie too far apart.
    pub(crate) fn place(&mut self, span: &Span, tally: &mut Tally) -> Result<(), Damage> {
        if self.end().is_some_and(|end| end > span.first) {
            self.split(span.first, tally);
            self.split(span.end(), tally);
            let from = self.position(span.first);
            let to = self.runs.partition_point(|run| run.unpack(self.base).end() <= span.end());
            for run in self.runs.drain(from..to.max(from)) {
                tally.run(run, -1);
            }
        }
        let rel = self.relative(span)?;
        let run = Run::pack(rel, span);
        tally.run(run, 1);
        let at = self.position(span.first);
        if at == self.runs.len() {
            self.grow();
            self.runs.push_back(run);
        } else {
            self.runs.insert(at, run);
        }
        Ok(())
    }

    /// Makes a run begin at `index` if one spans it.
    fn split(&mut self, index: u64, tally: &mut Tally) {
        let at = self.position(index);
        let Some(run) = self.runs.get(at).copied() else { return };
        let span = run.unpack(self.base);
        if span.first >= index {
            return;
        }
        let head = Run::pack(run.rel(), &span.part(span.first, index));
        let tail = Run::pack(run.rel() + (index - span.first) as u32, &span.part(index, span.end()));
        tally.run(run, -1);
        tally.run(head, 1);
        tally.run(tail, 1);
        self.runs[at] = head;
        self.runs.insert(at + 1, tail);
    }

    /// The index relative to the base, moving the base where needed.
    fn relative(&mut self, span: &Span) -> Result<u32, Damage> {
        const MIDDLE: u64 = 1 << 31;
        if self.runs.is_empty() {
            self.base = span.first.saturating_sub(MIDDLE);
        }
        let fits = |base: u64| span.first >= base && span.end() - base <= u64::from(u32::MAX);
        if !fits(self.base) {
            let low = self.first().unwrap_or(span.first).min(span.first);
            let base = low.saturating_sub(MIDDLE / 2);
            let high = self.end().unwrap_or(0).max(span.end());
            if high - base > u64::from(u32::MAX) {
                return Err(Damage("indexes of a group lie too far apart"));
            }
            let spans: Vec<Span> = self.iter().collect();
            self.runs = spans.iter().map(|span| Run::pack((span.first - base) as u32, span)).collect();
            self.base = base;
        }
        Ok((span.first - self.base) as u32)
    }

    /// Grows by an eighth instead of doubling: an index is most of the engine's memory.
    fn grow(&mut self) {
        if self.runs.len() == self.runs.capacity() {
            self.runs.reserve_exact((self.runs.len() / 8).max(2));
        }
    }

    /// Gives memory back after a burst.
    fn release(&mut self) {
        if self.runs.capacity() > 16 && self.runs.capacity() / 4 > self.runs.len() {
            self.runs.shrink_to(self.runs.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// File, offset and ordinal of each index.
    type Model = BTreeMap<u64, (u64, u64, u32)>;

    #[derive(Clone, Debug)]
    enum Step {
        Place { first: u64, count: u32 },
        CutFrom(u64),
        CutBelow(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1000u64..1100, 1u32..20).prop_map(|(first, count)| Step::Place { first, count }),
            1 => (1000u64..1120).prop_map(Step::CutFrom),
            1 => (1000u64..1120).prop_map(Step::CutBelow),
        ]
    }

    fn span(first: u64, count: u32, number: u64) -> Span {
        Span {
            first,
            count,
            file: 1 + number % 3,
            offset: number * 4096,
            ordinal: number as u32 % 7,
            bytes: 100 * u64::from(count),
        }
    }

    fn places(runs: &Runs) -> Model {
        let indexes = runs.iter().flat_map(|span| (span.first..span.end()).map(move |index| (index, span)));
        indexes
            .map(|(index, span)| (index, (span.file, span.offset, span.ordinal + (index - span.first) as u32)))
            .collect()
    }

    proptest! {
        #[test]
        fn runs_are_a_map_from_index_to_place(steps in prop::collection::vec(step(), 1..60)) {
            let (mut runs, mut model, mut tally) = (Runs::default(), Model::new(), Tally::default());
            let mut refs: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Place { first, count } => {
                        let span = span(first, count, number as u64);
                        runs.place(&span, &mut tally).unwrap();
                        model.extend((first..span.end()).map(|i| (i, (span.file, span.offset, span.ordinal + (i - first) as u32))));
                    }
                    Step::CutFrom(end) => {
                        runs.cut_from(end, &mut tally);
                        model.retain(|index, _| *index < end);
                    }
                    Step::CutBelow(first) => {
                        runs.cut_below(first, &mut tally);
                        model.retain(|index, _| *index >= first);
                    }
                }
                prop_assert_eq!(places(&runs), model.clone());
                prop_assert_eq!(runs.first(), model.keys().next().copied());
                prop_assert_eq!(runs.end(), model.keys().next_back().map(|last| last + 1));
                let hole = model.keys().zip(model.keys().skip(1)).find(|(at, next)| *at + 1 != **next).map(|(at, _)| at + 1);
                prop_assert_eq!(runs.gap(), hole);
                for index in 1000..1120 {
                    prop_assert_eq!(runs.locate(index).is_some(), model.contains_key(&index));
                }
                for (file, change, bytes) in tally.drain() {
                    let known = refs.entry(file).or_default();
                    *known = (known.0 + change, known.1 + bytes);
                }
                for (file, (count, bytes)) in &refs {
                    let of_file: Vec<Span> = runs.iter().filter(|span| span.file == *file).collect();
                    prop_assert_eq!(*count, of_file.len() as i64);
                    prop_assert_eq!(*bytes, of_file.iter().map(|span| span.bytes as i64).sum::<i64>());
                }
            }
        }

        #[test]
        fn a_size_class_is_close_to_the_size(bytes in 0u64..1 << 33) {
            let class = class_size(size_class(bytes));
            prop_assert!(class <= bytes && class >= bytes - bytes / 8);
        }
    }

    #[test]
    fn the_base_follows_the_indexes() {
        let (mut runs, mut tally) = (Runs::default(), Tally::default());
        runs.place(&span(u64::from(u32::MAX) * 5, 3, 1), &mut tally).unwrap();
        // Rewritten entries may come in front, and a snapshot may jump ahead.
        runs.place(&span(u64::from(u32::MAX) * 5 - (1 << 31) - 9, 3, 2), &mut tally).unwrap();
        assert_eq!(runs.iter().count(), 2);
        assert!(runs.place(&span(7, 1, 3), &mut tally).is_err(), "too far apart");
        runs.cut_from(0, &mut tally);
        runs.place(&span(7, 1, 3), &mut tally).unwrap();
        assert_eq!((runs.first(), runs.end()), (Some(7), Some(8)));
    }

    #[test]
    fn an_entry_of_its_own_block_takes_eighteen_bytes_at_most() {
        let (mut runs, mut tally) = (Runs::default(), Tally::default());
        for index in 0..100_000 {
            runs.place(&span(index, 1, index), &mut tally).unwrap();
        }
        assert!(runs.memory() <= 18 * 100_000);
        runs.cut_below(99_990, &mut tally);
        assert!(runs.runs.capacity() <= 32, "memory is given back");
        assert_eq!(size_of::<Run>(), 16);
    }
}
