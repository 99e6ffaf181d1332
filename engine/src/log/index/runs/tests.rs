//! Runs checked against a map from index to location, and their memory.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::chunk::CHUNK;
use super::*;

/// File, offset and ordinal of each index.
type Model = BTreeMap<u64, (u64, u64, u32)>;

#[derive(Clone, Debug)]
enum Step {
    /// Several runs of `count` entries, one after another.
    Place {
        first: u64,
        runs: u64,
        count: u32,
    },
    CutFrom(u64),
    CutBelow(u64),
}

/// Indexes that steps change. What was there before them begins below.
const INDEXES: std::ops::Range<u64> = 1000..1900;

fn step() -> impl Strategy<Value = Step> {
    let shape = prop_oneof![
        3 => (Just(1u64), 1u32..20),
        1 => (Just(1u64), 1u32..400),
        2 => (1..2 * CHUNK as u64, 1u32..4),
    ];
    prop_oneof![
        6 => (INDEXES, shape).prop_map(|(first, (runs, count))| Step::Place { first, runs, count }),
        1 => INDEXES.prop_map(Step::CutFrom),
        1 => INDEXES.prop_map(Step::CutBelow),
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
    indexes.map(|(index, span)| (index, (span.file, span.offset, span.ordinal + (index - span.first) as u32))).collect()
}

/// Runs and model side by side.
#[derive(Default)]
struct Pair {
    runs: Runs,
    model: Model,
    delta: UsageDelta,
    /// References and bytes of each file, by the deltas.
    refs: BTreeMap<u64, (i64, i64)>,
    /// How many runs were placed.
    placed: u64,
}

impl Pair {
    fn place(&mut self, first: u64, count: u32) {
        self.placed += 1;
        let span = span(first, count, self.placed);
        self.runs.place(&span, &mut self.delta).unwrap();
        let places = (first..span.end()).map(|i| (i, (span.file, span.offset, span.ordinal + (i - first) as u32)));
        self.model.extend(places);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Place { first, runs, count } => {
                (0..runs).for_each(|run| self.place(first + run * u64::from(count), count));
            }
            Step::CutFrom(end) => {
                self.runs.cut_from(end, &mut self.delta);
                self.model.retain(|index, _| *index < end);
            }
            Step::CutBelow(first) => {
                self.runs.cut_below(first, &mut self.delta);
                self.model.retain(|index, _| *index >= first);
            }
        }
    }

    fn check(&mut self) {
        let (runs, model) = (&self.runs, &self.model);
        assert_eq!(places(runs), *model);
        assert_eq!(runs.first(), model.keys().next().copied());
        assert_eq!(runs.end(), model.keys().next_back().map(|last| last + 1));
        assert_eq!(runs.len(), runs.iter().count());
        assert_eq!(runs.is_empty(), model.is_empty());
        let hole = model.keys().zip(model.keys().skip(1)).find(|(at, next)| *at + 1 != **next).map(|(at, _)| at + 1);
        assert_eq!(runs.gap(), hole);
        let all: Vec<Span> = runs.iter().collect();
        for index in (990..2400).step_by(7) {
            let from = all.partition_point(|span| span.end() <= index);
            assert!(runs.iter_from(index).take(70).eq(all[from..].iter().copied().take(70)), "from {index}");
            let held = all.get(from).filter(|span| span.first <= index).copied();
            assert_eq!(runs.locate(index), held);
            assert_eq!(held.is_some(), model.contains_key(&index));
        }
        for (file, change, bytes) in self.delta.drain() {
            let known = self.refs.entry(file).or_default();
            *known = (known.0 + change, known.1 + bytes);
        }
        for (file, (count, bytes)) in &self.refs {
            let of_file: Vec<&Span> = all.iter().filter(|span| span.file == *file).collect();
            assert_eq!(*count, of_file.len() as i64);
            assert_eq!(*bytes, of_file.iter().map(|span| span.bytes as i64).sum::<i64>());
        }
        self.check_chunks();
    }

    /// Checks invariant 4 and the size of chunks.
    fn check_chunks(&self) {
        let runs = &self.runs;
        let sizes: Vec<usize> = runs.closed.iter().map(|chunk| chunk.runs().count()).collect();
        assert!(sizes.iter().all(|size| (1..=CHUNK).contains(size)), "{sizes:?}");
        assert!(runs.closed.is_empty() || !runs.open.is_empty());
        assert!(runs.open.runs().count() <= CHUNK);
    }
}

proptest! {
    #[test]
    fn runs_behave_like_a_map(
        before in prop_oneof![Just(0u64), 0u64..600],
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut pair = Pair::default();
        (0..before).for_each(|at| pair.place(1000 + at, 1));
        pair.check();
        for step in steps {
            pair.step(&step);
            pair.check();
        }
    }
}

#[test]
fn indexes_may_be_far_apart() {
    let mut pair = Pair::default();
    let far = u64::from(u32::MAX) * 5;
    for first in [far, far - (1 << 31) - 9, 7, u64::MAX - 20] {
        pair.place(first, 3);
        assert_eq!(places(&pair.runs), pair.model);
    }
    pair.step(&Step::CutFrom(0));
    pair.place(7, 1);
    assert_eq!((pair.runs.first(), pair.runs.end()), (Some(7), Some(8)));
}

#[test]
fn block_beyond_the_largest_file_is_damage() {
    let mut runs = Runs::default();
    let far = |offset| Span { offset, ..span(1, 1, 1) };
    assert!(runs.place(&far(UNITS * UNIT), &mut UsageDelta::default()).is_err());
    assert!(runs.is_empty());
    runs.place(&far((UNITS - 1) * UNIT), &mut UsageDelta::default()).unwrap();
    assert_eq!(runs.locate(1).unwrap().offset, (UNITS - 1) * UNIT);
}

/// Memory per entry, for entries in blocks of their own at the locations that `at` returns.
fn bytes_per_entry(entries: u64, at: impl Fn(u64) -> Span) -> f64 {
    let (mut runs, mut delta) = (Runs::default(), UsageDelta::default());
    for index in 0..entries {
        runs.place(&at(index), &mut delta).unwrap();
        delta.drain().for_each(drop);
    }
    runs.memory() as f64 / entries as f64
}

/// A pseudo-random number.
fn mixed(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

/// One group among a thousand, each appending a page at a time; files of 64 MiB.
fn interleaved(index: u64) -> Span {
    let at = index * (4096 * 1000 + mixed(index) % 5 * 4096);
    let file = 1 + at / (64 << 20);
    Span { first: index, count: 1, file, offset: at % (64 << 20), ordinal: 0, bytes: 400 + mixed(index) % 50 }
}

/// All entries of a group in different files, with nothing in common.
fn scattered(index: u64) -> Span {
    let number = mixed(index);
    Span {
        first: index,
        count: 1,
        file: 1 + number % ((1 << 35) - 1),
        offset: mixed(number) % UNITS * UNIT,
        ordinal: 128 + mixed(number) as u32 % 3900,
        bytes: mixed(number) % (1 << 30),
    }
}

#[test]
fn entry_in_its_own_block_takes_at_most_sixteen_bytes() {
    let usual = bytes_per_entry(100_000, interleaved);
    assert!(usual < 8.0, "{usual}");
    let worst = bytes_per_entry(100_000, scattered);
    assert!(worst < 16.0, "{worst}");
    // Filled backwards, and outwards from the middle: chunks are split, and half full at worst.
    let backwards = bytes_per_entry(100_000, |index| Span { first: 100_000 - index, ..scattered(index) });
    assert!(backwards < 16.0, "{backwards}");
    let outwards = |index: u64| if index.is_multiple_of(2) { 50_000 + index / 2 } else { 49_999 - index / 2 };
    let middle = bytes_per_entry(100_000, |index| Span { first: outwards(index), ..scattered(index) });
    assert!(middle < 16.0, "{middle}");
}

#[test]
fn memory_is_released() {
    let (mut runs, mut delta) = (Runs::default(), UsageDelta::default());
    let fill = |runs: &mut Runs, delta: &mut UsageDelta| {
        (0..100_000).for_each(|index| runs.place(&interleaved(index), delta).unwrap())
    };
    fill(&mut runs, &mut delta);
    runs.cut_below(99_990, &mut delta);
    assert!(runs.memory() < 512, "{}", runs.memory());
    runs.cut_from(0, &mut delta);
    fill(&mut runs, &mut delta);
    runs.cut_from(10, &mut delta);
    assert!(runs.memory() < 512, "{}", runs.memory());
    // One run in place of many: the chunks merge, also if each new run fills one.
    for count in [1000, CHUNK as u32] {
        runs.cut_from(0, &mut delta);
        fill(&mut runs, &mut delta);
        for first in (0..99_000).step_by(count as usize) {
            runs.place(&Span { first, count, ..interleaved(first) }, &mut delta).unwrap();
        }
        let left = runs.len();
        assert!(runs.memory() < 16 * left + 4096, "{} for {left} runs", runs.memory());
    }
}

/// Five blocks, as in an idle group.
#[test]
fn few_runs_take_less_than_a_hundred_bytes() {
    let mut runs = Runs::default();
    (0..5).for_each(|index| runs.place(&interleaved(index), &mut UsageDelta::default()).unwrap());
    assert!(size_of::<Runs>() <= 88 && runs.memory() <= 64, "{} and {}", size_of::<Runs>(), runs.memory());
}
