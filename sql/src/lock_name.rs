//! The names of advisory locks, the modes in which they are held, and the keys where they are found. Pure.
//!
//! The key of a lock's record is `ml{class}{lock}`, that of its queue `mq{class}{lock}`. The class is one byte, 1 for a
//! bigint and 2 for a pair of integers, as in PostgreSQL's `pg_locks.objsubid`; the lock is its eight bytes,
//! big-endian. `advisory::record` has the records.

use kv::Key;
use kv::api::LockMode;

/// What PostgreSQL calls the database `postgres`: its OID, as messages and `pg_locks` have it. All databases share the
/// locks.
pub(crate) const DATABASE_OID: u32 = 5;

/// The name of an advisory lock. The two kinds of names never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockName {
    /// One bigint.
    Big(i64),
    /// Two integers.
    Pair(i32, i32),
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// With others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// As messages and `pg_locks` have it.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Shared => "ShareLock",
            Mode::Exclusive => "ExclusiveLock",
        }
    }

    /// What a report of a wait has behind the key of the queue.
    pub(crate) const fn mark(self) -> u8 {
        match self {
            Mode::Shared => 1,
            Mode::Exclusive => 2,
        }
    }

    /// The place in the queue: sharers stand there together.
    pub const fn queue(self) -> LockMode {
        match self {
            Mode::Shared => LockMode::Share,
            Mode::Exclusive => LockMode::Update,
        }
    }

    /// Whether two sessions cannot hold a lock in these modes.
    pub(crate) const fn conflicts_with(self, other: Mode) -> bool {
        matches!((self, other), (Mode::Exclusive, _) | (_, Mode::Exclusive))
    }
}

impl LockName {
    const fn class(self) -> u8 {
        match self {
            LockName::Big(_) => 1,
            LockName::Pair(..) => 2,
        }
    }

    const fn number(self) -> u64 {
        match self {
            LockName::Big(number) => number.cast_unsigned(),
            LockName::Pair(high, low) => ((high.cast_unsigned() as u64) << 32) | low.cast_unsigned() as u64,
        }
    }

    fn key(self, prefix: &[u8; 2]) -> Key {
        let mut out = prefix.to_vec();
        out.push(self.class());
        out.extend_from_slice(&self.number().to_be_bytes());
        Key::new(out)
    }

    /// The key of its record.
    pub(crate) fn record_key(self) -> Key {
        self.key(b"ml")
    }

    /// The key of its queue.
    pub fn queue_key(self) -> Key {
        self.key(b"mq")
    }

    /// The lock in a key made by [`LockName::record_key`] or [`LockName::queue_key`].
    pub fn of_key(key: &Key) -> Option<LockName> {
        let bytes = key.as_bytes();
        let rest = bytes.strip_prefix(b"ml").or_else(|| bytes.strip_prefix(b"mq"))?;
        let (class, number) = rest.split_first()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        match class {
            1 => Some(LockName::Big(number.cast_signed())),
            2 => {
                let [high, low] = [(number >> 32) as u32, number as u32];
                Some(LockName::Pair(high.cast_signed(), low.cast_signed()))
            }
            _ => None,
        }
    }

    /// As PostgreSQL's messages name it.
    pub(crate) fn in_words(self) -> String {
        let (number, class) = (self.number(), self.class());
        format!("advisory lock [{DATABASE_OID},{},{},{class}]", number >> 32, number & u64::from(u32::MAX))
    }

    /// Of a report that a session waits at a queue: the lock and the mode, in PostgreSQL's words.
    pub(crate) fn wait_in_words(row: &Key) -> Option<String> {
        let (mode, queue) = row.as_bytes().split_last()?;
        let name = LockName::of_key(&Key::new(queue.to_vec()))?;
        let mode = if *mode == Mode::Shared.mark() { Mode::Shared } else { Mode::Exclusive };
        Some(format!("{} on {}", mode.name(), name.in_words()))
    }

    /// `classid`, `objid` and `objsubid` of `pg_locks`.
    pub(crate) fn in_pg_locks(self) -> (u32, u32, u8) {
        let number = self.number();
        ((number >> 32) as u32, number as u32, self.class())
    }

    /// As the functions take it.
    pub fn to_text(self) -> String {
        match self {
            LockName::Big(number) => format!("({number})"),
            LockName::Pair(high, low) => format!("({high},{low})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let hex = |key: Key| key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(LockName::Big(-1).record_key()), "6d6c01ffffffffffffffff");
        assert_eq!(hex(LockName::Pair(1, -2).queue_key()), "6d710200000001fffffffe");
    }

    #[test]
    fn the_two_kinds_of_names_never_meet() {
        for name in [LockName::Big(i64::MIN), LockName::Big(5), LockName::Pair(-1, 7), LockName::Pair(0, 5)] {
            assert_eq!(LockName::of_key(&name.record_key()), Some(name));
            assert_eq!(LockName::of_key(&name.queue_key()), Some(name));
        }
        assert_ne!(LockName::Big(5).record_key(), LockName::Pair(0, 5).record_key());
        assert_eq!(LockName::of_key(&Key::new(&b"ml\x03aaaaaaaa"[..])), None);
    }

    #[test]
    fn messages_name_locks_as_in_postgresql() {
        let mut row = LockName::Big((5 << 32) | 6).queue_key().as_bytes().to_vec();
        row.push(Mode::Shared.mark());
        let words = LockName::wait_in_words(&Key::new(row));
        assert_eq!(words.as_deref(), Some("ShareLock on advisory lock [5,5,6,1]"));
        assert_eq!(LockName::Pair(1, 2).in_words(), "advisory lock [5,1,2,2]");
        assert_eq!(LockName::Pair(1, -1).in_pg_locks(), (1, u32::MAX, 2));
        assert_eq!((LockName::Big(-7).to_text(), LockName::Pair(1, 2).to_text()), ("(-7)".into(), "(1,2)".into()));
        assert_eq!(LockName::wait_in_words(&Key::new(&b"t"[..])), None);
    }
}
