//! The state of a sequence: its rules, its record, and the block of values that a node has drawn. Pure.
//!
//! | key | value |
//! |---|---|
//! | `mu{sequence id}` | version byte, epoch, last value of the last block, whether it was called |
//! | `mu{sequence id}{epoch}` | the same, of an epoch that a RESTART began |
//!
//! Numbers are big-endian: the id has four bytes, epoch and value eight. Without a record the epoch is new.
//!
//! An epoch has a record of its own, because the transaction of its RESTART draws values before it commits, and may
//! never commit. Those who do not see the RESTART neither read that record nor lose theirs. The first key holds the
//! epochs that earlier releases counted, from 0 on: there a later one replaces those before it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::codec::CodecError;
use crate::error::{SqlError, SqlState};
use crate::object::{Sequence, UNIQUE_EPOCHS};

/// The version of the record.
const VERSION: u8 = 1;
/// The most values of a block, unless CACHE asks for more.
const BLOCK_MAX: u64 = 512;
/// A block that is used up within this time is followed by a larger one.
const BUSY: Duration = Duration::from_secs(1);

/// What the definition of a sequence says about its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    epoch: u64,
    restart: i64,
    increment: i64,
    min: i64,
    max: i64,
    cache: u64,
    cycles: bool,
}

impl Rules {
    pub(super) fn of(sequence: &Sequence) -> Rules {
        Rules {
            epoch: sequence.epoch,
            restart: sequence.restart,
            increment: sequence.increment,
            min: sequence.min,
            max: sequence.max,
            cache: u64::try_from(sequence.cache).unwrap_or(1).max(1),
            cycles: sequence.cycles,
        }
    }

    /// The epoch, if it has a record of its own.
    pub(super) fn own_record(&self) -> Option<u64> {
        Some(self.epoch).filter(|epoch| *epoch >= UNIQUE_EPOCHS)
    }

    /// Whether a record of this epoch is that of the rules, or of later ones that earlier releases wrote there.
    fn counts(&self, stored: u64) -> bool {
        match self.own_record() {
            Some(epoch) => stored == epoch,
            None => stored >= self.epoch,
        }
    }

    /// The value behind another one. `None`: that was the last.
    fn after(&self, value: i64) -> Option<i64> {
        let next = value.checked_add(self.increment).filter(|next| self.allows(*next));
        match (next, self.cycles) {
            (Some(next), _) => Some(next),
            (None, true) => Some(if self.increment > 0 { self.min } else { self.max }),
            (None, false) => None,
        }
    }

    fn allows(&self, value: i64) -> bool {
        if self.increment > 0 { value <= self.max } else { value >= self.min }
    }
}

/// The record of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    epoch: u64,
    /// The last value of the last block, or the next one if it was not called.
    pub(crate) last: i64,
    /// Whether `last` was given.
    pub(crate) is_called: bool,
}

impl Values {
    /// The state under these rules: what is stored, unless that is of an epoch that does not count.
    pub(super) fn under(rules: &Rules, stored: Option<Values>) -> Values {
        let new = Values { epoch: rules.epoch, last: rules.restart, is_called: false };
        stored.filter(|stored| rules.counts(stored.epoch)).unwrap_or(new)
    }

    /// The state after `setval`.
    pub(super) fn set(self, last: i64, is_called: bool) -> Values {
        Values { last, is_called, ..self }
    }

    /// Takes up to `wanted` values, at least one. `None`: there are no more.
    pub(super) fn take(self, rules: &Rules, wanted: u64) -> Option<(Block, Values)> {
        let first = if self.is_called { rules.after(self.last)? } else { self.last };
        if !rules.allows(first) {
            return None;
        }
        let end = if rules.increment > 0 { rules.max } else { rules.min };
        let more = end.abs_diff(first) / rules.increment.unsigned_abs().max(1);
        let more = more.min(wanted.max(1) - 1);
        let way = i128::from(rules.increment) * i128::from(more);
        let last = i64::try_from(i128::from(first) + way).unwrap_or(end);
        let block = Block { next: first, left: more.saturating_add(1), increment: rules.increment };
        Some((block, Values { last, is_called: true, ..self }))
    }

    pub(super) fn encode(self) -> Bytes {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.last.to_be_bytes());
        out.push(self.is_called.into());
        out.into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Values, CodecError> {
        const WHAT: &str = "sequence";
        let malformed = || CodecError::new(WHAT, "malformed");
        let [version, fields @ ..] = bytes else { return Err(malformed()) };
        let (epoch, rest) = fields.split_first_chunk::<8>().ok_or_else(malformed)?;
        let (last, rest) = rest.split_first_chunk::<8>().ok_or_else(malformed)?;
        match (*version, rest) {
            (VERSION, [called @ (0 | 1)]) => Ok(Values {
                epoch: u64::from_be_bytes(*epoch),
                last: i64::from_be_bytes(*last),
                is_called: *called == 1,
            }),
            _ => Err(malformed()),
        }
    }
}

/// Values that belong to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    next: i64,
    left: u64,
    increment: i64,
}

impl Block {
    fn pop(&mut self) -> Option<i64> {
        let value = self.next;
        self.left = self.left.checked_sub(1)?;
        self.next = self.next.wrapping_add(self.increment);
        Some(value)
    }
}

/// The block of a node, and how large the next one is to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    drawn: Option<Drawn>,
}

#[derive(Clone, Debug)]
struct Drawn {
    rules: Rules,
    block: Block,
    wanted: u64,
    at: Instant,
}

impl Cache {
    /// The next value. `None`: a block is to be fetched.
    pub(super) fn next(&mut self, rules: &Rules) -> Option<i64> {
        let drawn = self.drawn.as_mut().filter(|drawn| drawn.rules == *rules)?;
        drawn.block.pop()
    }

    /// How many values to fetch.
    pub(super) fn wanted(&self, rules: &Rules, now: Instant) -> u64 {
        let busy = self.drawn.as_ref().filter(|drawn| {
            drawn.rules == *rules && drawn.block.left == 0 && now.saturating_duration_since(drawn.at) <= BUSY
        });
        busy.map_or(rules.cache, |drawn| (drawn.wanted * 2).min(BLOCK_MAX).max(rules.cache))
    }

    /// Takes over a block that was fetched. What was left of the last one is lost.
    pub(super) fn install(&mut self, rules: Rules, block: Block, wanted: u64, now: Instant) {
        self.drawn = Some(Drawn { rules, block, wanted, at: now });
    }

    /// Drops the block.
    pub(super) fn clear(&mut self) {
        self.drawn = None;
    }
}

/// 2200H: the last value was given.
pub(super) fn exhausted(sequence: &Sequence) -> SqlError {
    let (what, limit) = if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
    let message = format!("nextval: reached {what} value of sequence \"{}\" ({limit})", sequence.name);
    SqlError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const PLAIN: Rules = Rules { epoch: 0, restart: 1, increment: 1, min: 1, max: i64::MAX, cache: 1, cycles: false };

    /// The values that blocks of a size give, up to the end, and at most ten.
    fn all(rules: &Rules, stored: Option<Values>, size: u64) -> Vec<i64> {
        let (mut out, mut values) = (Vec::new(), Values::under(rules, stored));
        while let Some((mut block, next)) = values.take(rules, size) {
            while let Some(value) = block.pop() {
                out.push(value);
            }
            values = next;
            if out.len() >= 10 {
                break;
            }
        }
        out.truncate(10);
        out
    }

    fn called(last: i64) -> Option<Values> {
        Some(Values { epoch: 0, last, is_called: true })
    }

    #[test]
    fn values_are_the_same_whatever_the_size_of_blocks() {
        let up = Rules { max: 7, increment: 3, ..PLAIN };
        let down = Rules { min: -5, max: -1, restart: -1, increment: -2, ..PLAIN };
        for size in [1, 2, 3, 100, u64::MAX] {
            assert_eq!(all(&up, None, size), [1, 4, 7]);
            assert_eq!(all(&down, None, size), [-1, -3, -5]);
            let cycles = Rules { cycles: true, ..up };
            assert_eq!(all(&cycles, None, size), [1, 4, 7, 1, 4, 7, 1, 4, 7, 1]);
            let cycles = Rules { cycles: true, ..down };
            assert_eq!(all(&cycles, None, size), [-1, -3, -5, -1, -3, -5, -1, -3, -5, -1]);
        }
    }

    #[test]
    fn the_ends_of_bigint_are_given_and_nothing_beyond() {
        for size in [1, 2, 100, u64::MAX] {
            assert_eq!(all(&PLAIN, called(i64::MAX - 2), size), [i64::MAX - 1, i64::MAX]);
            assert_eq!(all(&PLAIN, called(i64::MAX), size), []);
            let down = Rules { min: i64::MIN, max: -1, restart: -1, increment: -1, ..PLAIN };
            assert_eq!(all(&down, called(i64::MIN + 1), size), [i64::MIN]);
            let wide = Rules { min: i64::MIN, restart: i64::MIN, increment: i64::MAX, ..PLAIN };
            assert_eq!(all(&wide, None, size), [i64::MIN, -1, i64::MAX - 1]);
            let steep = Rules { min: i64::MIN, restart: 0, increment: i64::MIN, ..PLAIN };
            assert_eq!(all(&steep, None, size), [0, i64::MIN]);
        }
    }

    #[test]
    fn a_value_beyond_new_limits_ends_the_sequence() {
        let lower = Rules { max: 5, ..PLAIN };
        assert_eq!(all(&lower, called(9), 1), []);
        assert_eq!(all(&lower, Some(Values { epoch: 0, last: 9, is_called: false }), 1), []);
    }

    #[test]
    fn a_record_of_an_earlier_epoch_does_not_count() {
        let restarted = Rules { epoch: 2, restart: 40, ..PLAIN };
        let old = Values { epoch: 1, last: 7, is_called: true };
        assert_eq!(Values::under(&restarted, Some(old)), Values { epoch: 2, last: 40, is_called: false });
        // Earlier releases kept one record: a transaction with an older catalog goes on behind the newer values.
        let newer = Values { epoch: 3, ..old };
        assert_eq!(Values::under(&restarted, Some(newer)), newer);
        // Unique epochs have no order.
        let unique = Rules { epoch: UNIQUE_EPOCHS + 5, ..restarted };
        for epoch in [0, 3, UNIQUE_EPOCHS + 4, UNIQUE_EPOCHS + 6] {
            let other = Values { epoch, ..old };
            assert_eq!(Values::under(&unique, Some(other)).last, 40, "{epoch}");
        }
    }

    /// The records of a sequence.
    #[derive(Default)]
    struct Records(HashMap<Option<u64>, Values>);

    impl Records {
        /// Draws a block, without a cache.
        fn draw(&mut self, rules: &Rules, wanted: u64) -> Block {
            let stored = self.0.get(&rules.own_record()).copied();
            let (block, values) = Values::under(rules, stored).take(rules, wanted).unwrap();
            self.0.insert(rules.own_record(), values);
            block
        }

        fn next(&mut self, rules: &Rules) -> i64 {
            self.draw(rules, 1).next
        }
    }

    /// The rules after a RESTART with a value. The number stands for what is random.
    fn restart(first: i64, random: u64) -> Rules {
        Rules { epoch: UNIQUE_EPOCHS | random, restart: first, ..PLAIN }
    }

    #[test]
    fn a_restart_that_is_rolled_back_leaves_no_trace() {
        for before in [PLAIN, Rules { epoch: 7, ..PLAIN }, restart(1, 7)] {
            let mut records = Records::default();
            assert_eq!([(); 3].map(|()| records.next(&before)), [1, 2, 3]);
            let rolled_back = restart(100, 9);
            assert_eq!([(); 2].map(|()| records.next(&rolled_back)), [100, 101]);
            assert_eq!(records.next(&before), 4);
            // The next one does not go on from it, whether its number is lower or higher.
            assert_eq!(records.next(&restart(50, 8)), 50);
            assert_eq!(records.next(&restart(50, 10)), 50);
            assert_eq!(records.next(&before), 5);
        }
    }

    #[test]
    fn values_that_a_transaction_draws_after_its_restart_are_not_drawn_after_its_commit() {
        let (mut records, restarted) = (Records::default(), restart(1, 9));
        assert_eq!([(); 3].map(|()| records.next(&PLAIN)), [1, 2, 3]);
        assert_eq!([(); 2].map(|()| records.next(&restarted)), [1, 2]);
        // Others draw from the epoch before in the meantime, and just after the commit.
        assert_eq!([(); 2].map(|()| records.next(&PLAIN)), [4, 5]);
        assert_eq!([(); 2].map(|()| records.next(&restarted)), [3, 4]);
        assert_eq!(records.next(&PLAIN), 6);
        assert_eq!(records.next(&restarted), 5);
        // Twice in one transaction.
        assert_eq!(records.next(&restart(1, 4)), 1);
    }

    #[test]
    fn two_restarts_at_once_draw_from_records_of_their_own() {
        let (mut records, first, second) = (Records::default(), restart(10, 9), restart(20, 3));
        assert_eq!((records.next(&first), records.next(&second)), (10, 20));
        assert_eq!((records.next(&first), records.next(&second)), (11, 21));
    }

    #[test]
    fn a_block_of_the_epoch_before_is_not_used_after_a_restart() {
        let (mut records, mut cache, restarted) = (Records::default(), Cache::default(), restart(100, 9));
        cache.install(PLAIN, records.draw(&PLAIN, 5), 5, crate::clock::instant());
        assert_eq!(cache.next(&PLAIN), Some(1));
        assert_eq!(cache.next(&restarted), None);
        assert_eq!(cache.next(&PLAIN), Some(2), "the RESTART is not committed");
        // Its block takes the place of the other one. After a rollback the values go on behind what was lost.
        cache.install(restarted, records.draw(&restarted, 5), 5, crate::clock::instant());
        assert_eq!((cache.next(&restarted), cache.next(&PLAIN)), (Some(100), None));
        assert_eq!(records.next(&PLAIN), 6);
    }

    #[test]
    fn blocks_that_are_used_up_at_once_grow() {
        let start = crate::clock::instant();
        let (mut cache, mut values, mut sizes) = (Cache::default(), Values::under(&PLAIN, None), Vec::new());
        for value in 1..=1_600 {
            let next = cache.next(&PLAIN).unwrap_or_else(|| {
                let wanted = cache.wanted(&PLAIN, start);
                let (block, after) = values.take(&PLAIN, wanted).unwrap();
                values = after;
                sizes.push(wanted);
                cache.install(PLAIN, block, wanted, start);
                cache.next(&PLAIN).unwrap()
            });
            assert_eq!(next, value);
        }
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512, 512]);
        let mut used = Cache::default();
        used.install(PLAIN, Block { next: 1, left: 1, increment: 1 }, 64, start);
        assert_eq!(used.wanted(&PLAIN, start), 1, "it is not used up");
        assert_eq!((used.next(&PLAIN), used.next(&PLAIN)), (Some(1), None));
        assert_eq!(used.wanted(&PLAIN, start + BUSY), 128);
        assert_eq!(used.wanted(&PLAIN, start + BUSY + Duration::from_millis(1)), 1, "after a pause");
        let larger = Rules { cache: 1_000, ..PLAIN };
        assert_eq!(used.wanted(&larger, start), 1_000, "CACHE is the least");
    }

    #[test]
    fn a_block_belongs_to_its_rules() {
        let mut cache = Cache::default();
        cache.install(PLAIN, Block { next: 1, left: 5, increment: 1 }, 5, crate::clock::instant());
        assert_eq!(cache.next(&Rules { increment: 2, ..PLAIN }), None);
        assert_eq!(cache.next(&Rules { epoch: 1, ..PLAIN }), None);
        assert_eq!(cache.next(&PLAIN), Some(1));
        cache.clear();
        assert_eq!(cache.next(&PLAIN), None);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for values in [called(i64::MIN).unwrap(), Values { epoch: u64::MAX, last: 5, is_called: false }] {
            let bytes = values.encode();
            assert_eq!(Values::decode(&bytes).unwrap(), values);
            for end in 0..bytes.len() {
                assert!(Values::decode(&bytes[..end]).is_err());
            }
        }
        assert!(Values::decode(&[2; 18]).is_err());
    }
}
