//! What ANALYZE makes of the rows of a table. Pure.
//!
//! All rows are counted: NULLs, widths, and distinct values by a HyperLogLog (Flajolet et al. 2007; 4096 registers, a
//! standard error of 1.6 %). A random sample of them ([`SAMPLE_ROWS`], as many as PostgreSQL takes by default) gives
//! the common values and the histogram. If the sample has all rows, its distinct values are exact. Memory is bounded: a
//! sample of wide rows has fewer. The random numbers are the same in every run.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::catalog::{ColumnStatistics, CommonValue};
use crate::table::Column;
use pgtypes::Datum;
use pgtypes::codec::key::{KeyOrder, put_ordered};
use pgtypes::codec::stored;
use pgtypes::datum::compare;

/// The rows of a sample.
const SAMPLE_ROWS: usize = 30_000;
/// Limit of the bytes of a sample.
const SAMPLE_BYTES: usize = 32 << 20;
/// Common values of a column, and parts of its histogram.
const TARGET: usize = 100;
/// Wider values, in bytes, are counted but not kept: as in PostgreSQL.
const WIDE: usize = 1024;
/// Registers of a HyperLogLog: 2 to this power.
const REGISTER_BITS: u32 = 12;

/// What is known of a table's columns.
pub(super) struct Sample {
    columns: Vec<Counted>,
    rows: u64,
    kept: Vec<Vec<Datum>>,
    /// The most rows that are kept.
    most: usize,
    bytes: usize,
    random: SmallRng,
}

/// What is counted of a column.
struct Counted {
    column: Column,
    /// Whether its values have an order, and with it equality.
    is_ordered: bool,
    nulls: u64,
    /// The bytes of its values.
    bytes: u64,
    /// Values too wide to be kept.
    wide: u64,
    distinct: HyperLogLog,
}

impl Sample {
    /// Of these columns, each with whether its values have an order. A row has their values in the same order.
    pub(super) fn of(columns: impl IntoIterator<Item = (Column, bool)>) -> Sample {
        let counted = |(column, is_ordered)| Counted {
            column,
            is_ordered,
            nulls: 0,
            bytes: 0,
            wide: 0,
            distinct: HyperLogLog::default(),
        };
        let columns = columns.into_iter().map(counted).collect();
        Sample { columns, rows: 0, kept: Vec::new(), most: SAMPLE_ROWS, bytes: 0, random: SmallRng::seed_from_u64(0) }
    }

    /// The rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row.
    pub(super) fn add(&mut self, mut row: Vec<Datum>) {
        self.rows += 1;
        let mut buffer = Vec::new();
        for (counted, value) in self.columns.iter_mut().zip(&mut row) {
            if value.is_null() {
                counted.nulls += 1;
                continue;
            }
            buffer.clear();
            stored::put(value, &mut buffer);
            counted.bytes += buffer.len() as u64;
            if counted.is_ordered {
                let mut key = Vec::new();
                put_ordered(value, KeyOrder::default(), &mut key);
                counted.distinct.add(&key);
            }
            if !counted.is_ordered {
                *value = Datum::Null;
            } else if buffer.len() > WIDE {
                counted.wide += 1;
                *value = Datum::Null;
            }
        }
        self.keep(row);
    }

    /// Keeps a row with the probability that a random sample has it (Vitter's algorithm R).
    fn keep(&mut self, row: Vec<Datum>) {
        let bytes = |row: &Vec<Datum>| row.iter().map(Datum::memory).sum::<usize>();
        if self.kept.len() < self.most {
            self.bytes += bytes(&row);
            self.kept.push(row);
        } else {
            let at = usize::try_from(self.random.random_range(0..self.rows)).unwrap_or(usize::MAX);
            let Some(old) = self.kept.get_mut(at) else { return };
            self.bytes = (self.bytes + bytes(&row)).saturating_sub(bytes(old));
            *old = row;
        }
        // A part of a random sample that is chosen at random is one too.
        while self.bytes > SAMPLE_BYTES && self.kept.len() > 1 {
            self.most = self.kept.len() / 2;
            while self.kept.len() > self.most {
                let at = self.random.random_range(0..self.kept.len());
                let old = self.kept.swap_remove(at);
                self.bytes = self.bytes.saturating_sub(bytes(&old));
            }
        }
    }

    /// The statistics of the columns.
    pub(super) fn finish(self) -> Vec<ColumnStatistics> {
        let Sample { columns, rows, kept, .. } = self;
        let mut values: Vec<Vec<Datum>> = columns.iter().map(|_| Vec::new()).collect();
        let sampled = kept.len();
        for row in kept {
            for (values, value) in values.iter_mut().zip(row) {
                if !value.is_null() {
                    values.push(value);
                }
            }
        }
        columns.into_iter().zip(values).map(|(counted, values)| counted.finish(rows, sampled, values)).collect()
    }
}

/// A value of a sample, and how often the sample has it.
type Repeated = (Datum, usize);

impl Counted {
    /// `values`: those of `sampled` rows that are neither NULL nor wide.
    fn finish(self, rows: u64, sampled: usize, mut values: Vec<Datum>) -> ColumnStatistics {
        let present = rows.saturating_sub(self.nulls);
        let (column, ty) = (self.column.id, self.column.ty);
        let null_fraction = if rows == 0 { 0.0 } else { self.nulls as f64 / rows as f64 };
        let width = match u32::try_from(ty.row().len) {
            Ok(fixed) => fixed,
            // As PostgreSQL counts, with the length before a value.
            Err(_) => u32::try_from(self.bytes.checked_div(present).map_or(0, |bytes| bytes + 1)).unwrap_or(u32::MAX),
        };
        let nothing = ColumnStatistics {
            column,
            ty,
            null_fraction,
            width,
            distinct: 0.0,
            common: Vec::new(),
            histogram: Vec::new(),
        };
        if !self.is_ordered || present == 0 {
            return nothing;
        }
        values.sort_by(compare);
        let runs = runs(values);
        let is_whole = sampled as u64 == rows;
        let kept: usize = runs.iter().map(|(_, times)| times).sum();
        let number = match is_whole {
            // Wide values count as distinct, as in PostgreSQL.
            true => runs.len() as f64 + self.wide as f64,
            false => self.distinct.estimate().round().clamp(1.0, present as f64),
        };
        let is_unique = self.wide == 0 && runs.iter().all(|(_, times)| *times == 1);
        let number = if is_unique { present as f64 } else { number };
        // A number that grows with the table is told as a share of its rows.
        let distinct = if number > 0.1 * rows as f64 { -(number / rows as f64) } else { number };
        let (common, rest) = divide(runs, (sampled, kept), number, is_whole && self.wide == 0);
        let histogram = histogram(&rest);
        ColumnStatistics { distinct, common, histogram, ..nothing }
    }
}

/// Sorted values as distinct ones with their numbers.
fn runs(sorted: Vec<Datum>) -> Vec<Repeated> {
    let mut runs: Vec<Repeated> = Vec::new();
    for value in sorted {
        match runs.last_mut() {
            Some((last, times)) if compare(last, &value).is_eq() => *times += 1,
            _ => runs.push((value, 1)),
        }
    }
    runs
}

/// Takes the common values out of a sample. Returns them, the most frequent first, and the others in order.
///
/// If the table has few values all of them are common. Otherwise a value is if it is clearly more frequent than the
/// average: by a quarter, and seen twice at least.
fn divide(
    runs: Vec<Repeated>,
    (sampled, kept): (usize, usize),
    distinct: f64,
    is_whole: bool,
) -> (Vec<CommonValue>, Vec<Repeated>) {
    let takes_all = is_whole && runs.len() <= TARGET && runs.iter().any(|(_, times)| *times > 1);
    let least = if takes_all { 1.0 } else { (1.25 * kept as f64 / distinct.max(1.0)).max(2.0) };
    let mut order: Vec<usize> =
        (0..runs.len()).filter(|at| runs.get(*at).is_some_and(|run| run.1 as f64 >= least)).collect();
    order.sort_by_key(|at| std::cmp::Reverse(runs.get(*at).map(|run| run.1)));
    order.truncate(TARGET);
    let places: HashMap<usize, usize> = order.iter().enumerate().map(|(place, at)| (*at, place)).collect();
    let mut common: Vec<(usize, CommonValue)> = Vec::with_capacity(order.len());
    let mut rest = Vec::new();
    for (at, (value, times)) in runs.into_iter().enumerate() {
        match places.get(&at) {
            Some(place) => {
                common.push((*place, CommonValue { value, frequency: times as f64 / sampled.max(1) as f64 }));
            }
            None => rest.push((value, times)),
        }
    }
    common.sort_by_key(|(place, _)| *place);
    (common.into_iter().map(|(_, value)| value).collect(), rest)
}

/// The values that divide others, in order, into at most [`TARGET`] parts of one size.
fn histogram(rest: &[Repeated]) -> Vec<Datum> {
    if rest.len() < 2 {
        return Vec::new();
    }
    let all: usize = rest.iter().map(|(_, times)| times).sum();
    let parts = TARGET.min(rest.len() - 1);
    let mut bounds = Vec::with_capacity(parts + 1);
    let (mut at, mut before) = (0, 0);
    for part in 0..=parts {
        let wanted = (all - 1) * part / parts;
        while let Some((_, times)) = rest.get(at).filter(|(_, times)| before + times <= wanted) {
            before += times;
            at += 1;
        }
        bounds.extend(rest.get(at).map(|(value, _)| value.clone()));
    }
    bounds
}

/// An estimate of the number of distinct values.
struct HyperLogLog(Vec<u8>);

impl Default for HyperLogLog {
    fn default() -> HyperLogLog {
        HyperLogLog(vec![0; 1 << REGISTER_BITS])
    }
}

impl HyperLogLog {
    fn add(&mut self, value: &[u8]) {
        let hash = hash(value);
        let register = usize::try_from(hash >> (64 - REGISTER_BITS)).unwrap_or(0);
        let rank = u8::try_from((hash << REGISTER_BITS).leading_zeros().min(64 - REGISTER_BITS) + 1).unwrap_or(u8::MAX);
        if let Some(known) = self.0.get_mut(register) {
            *known = rank.max(*known);
        }
    }

    fn estimate(&self) -> f64 {
        let m = self.0.len() as f64;
        let sum: f64 = self.0.iter().map(|rank| 2f64.powi(-i32::from(*rank))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.0.iter().filter(|rank| **rank == 0).count();
        // Few values: linear counting is more exact.
        if raw <= 2.5 * m && empty > 0 { m * (m / empty as f64).ln() } else { raw }
    }
}

/// A hash whose bits are all of use: FNV-1a, finished by the mixer of SplitMix64.
fn hash(value: &[u8]) -> u64 {
    let folded = value
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (folded ^ (folded >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ColumnId;
    use pgtypes::SqlType;

    fn statistics(values: impl Iterator<Item = Datum>) -> ColumnStatistics {
        let column = Column {
            id: ColumnId(1),
            name: "a".to_owned(),
            ty: SqlType::INT8,
            domain: None,
            not_null: false,
            default: None,
            generated: None,
            identity: None,
        };
        let mut sample = Sample::of([(column, true)]);
        values.for_each(|value| sample.add(vec![value]));
        sample.finish().remove(0)
    }

    fn ints(values: impl Iterator<Item = i64>) -> ColumnStatistics {
        statistics(values.map(Datum::Int))
    }

    #[test]
    fn a_whole_table_is_exact() {
        let unique = ints(0..1000);
        assert_eq!((unique.distinct, unique.common.len(), unique.histogram.len()), (-1.0, 0, 101));
        assert_eq!((&unique.histogram[0], &unique.histogram[100]), (&Datum::Int(0), &Datum::Int(999)));
        let few = ints((0..1000).map(|i| i % 4));
        assert_eq!((few.distinct, few.common.len(), few.histogram.len()), (4.0, 4, 0));
        assert_eq!(few.common[0].frequency, 0.25);
        let nulls = statistics((0..100).map(|i| if i % 4 == 0 { Datum::Null } else { Datum::Int(7) }));
        assert_eq!((nulls.null_fraction, nulls.distinct, nulls.width), (0.25, 1.0, 8));
        assert_eq!(nulls.common[0].frequency, 0.75);
        let none = ints(std::iter::empty());
        assert_eq!((none.distinct, none.null_fraction, none.common.len()), (0.0, 0.0, 0));
        let all_null = statistics((0..10).map(|_| Datum::Null));
        assert_eq!((all_null.distinct, all_null.null_fraction), (0.0, 1.0));
    }

    #[test]
    fn a_large_table_is_sampled() {
        let rows = 200_000;
        // Half of the rows have one value, the others 1000 values.
        let skewed = ints((0..rows).map(|i| if i % 2 == 0 { -1 } else { i / 2 % 1000 }));
        assert!((skewed.distinct - 1001.0).abs() < 60.0, "{}", skewed.distinct);
        assert_eq!(skewed.common[0].value, Datum::Int(-1));
        assert!((skewed.common[0].frequency - 0.5).abs() < 0.02);
        assert!(skewed.histogram.len() == TARGET + 1);
        let unique = ints(0..rows);
        assert_eq!(unique.distinct, -1.0);
        let middle = match unique.histogram[50] {
            Datum::Int(value) => value,
            _ => 0,
        };
        assert!((middle - rows / 2).abs() < rows / 20, "{middle}");
    }

    #[test]
    fn distinct_values_are_estimated_within_some_percent() {
        for number in [1u64, 100, 10_000, 300_000] {
            let mut log = HyperLogLog::default();
            (0..number).chain(0..number / 2).for_each(|value| log.add(&value.to_be_bytes()));
            let error = (log.estimate() - number as f64).abs() / number as f64;
            assert!(error < 0.06, "{number}: {}", log.estimate());
        }
    }

    #[test]
    fn wide_rows_make_a_smaller_sample() {
        let column = |id| Column {
            id: ColumnId(id),
            name: "t".to_owned(),
            ty: SqlType::TEXT,
            domain: None,
            not_null: false,
            default: None,
            generated: None,
            identity: None,
        };
        let mut sample = Sample::of((1..=40).map(|id| (column(id), true)));
        let text = "x".repeat(900);
        (0..3000).for_each(|_| sample.add(vec![Datum::text(text.as_str()); 40]));
        assert!(sample.bytes <= SAMPLE_BYTES && sample.kept.len() < 1000);
        let found = sample.finish();
        assert_eq!((found[0].distinct, found[0].width), (1.0, 901));
        let mut sample = Sample::of([(column(1), true)]);
        (0..10).for_each(|_| sample.add(vec![Datum::text("x".repeat(WIDE + 1))]));
        let found = sample.finish().remove(0);
        assert_eq!((found.distinct, found.common.len()), (-1.0, 0), "wide values are not compared");
    }
}
