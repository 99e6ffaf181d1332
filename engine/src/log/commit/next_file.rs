//! When the file after the active one is asked for, and how many zeros it shall have. Decides only; the thread of
//! `file_work` prepares the file.
//!
//! The next file is wanted once the active one has an eighth of its size. If small groups are synced, zeros pay off in
//! it: a sync after an overwrite commits no metadata. Zeros written by the group that needs them would delay the
//! writers, and many at once in the background, too: their syncs share the disk. So zeros follow in small steps,
//! evenly, a little faster than the active file fills. Where groups begin to be synced late in the file, zeros follow
//! at twice its pace at most, and the next file lacks the rest.

/// The next file is asked for once the active one has this part of its size.
const PREPARE_FROM: u64 = 8;
/// Zeros grow at this pace, in percent of the one that would end with the active file. So they end before it is full.
const ZEROS_PACE: u64 = 130;
/// The most that zeros follow at, in percent of the pace at which the active file fills.
const FASTEST_ZEROS: u64 = 200;

/// What was asked for of the next file. `zeros` never decreases, and is at most the size of a file.
#[derive(Default)]
pub(super) struct NextFile {
    is_wanted: bool,
    /// The length up to which it was asked for with zeros.
    zeros: u64,
    /// The pace of zeros, in percent of the active file's. 0 until they pay off for the first time.
    pace: u64,
    /// The length of the active file when zeros were last asked for, or began to pay off. Moved on by what follows
    /// while they do not.
    asked_at: u64,
    /// The length of the active file at the last call.
    seen: u64,
}

impl NextFile {
    /// For an active file of `offset` bytes, of `file_bytes` when full: the length with zeros to ask for now. `None` if
    /// nothing new is due. `step` is the least growth in bytes, except for the last one; `None` while zeros do not pay
    /// off. `offset` never decreases.
    pub(super) fn ask(&mut self, offset: u64, file_bytes: u64, step: Option<u64>) -> Option<u64> {
        if offset <= file_bytes / PREPARE_FROM {
            return None;
        }
        let left = file_bytes - self.zeros;
        let seen = std::mem::replace(&mut self.seen, offset);
        match step {
            None => self.asked_at += offset - seen,
            Some(_) if self.pace == 0 => {
                let room = file_bytes.saturating_sub(offset).max(1);
                self.pace = (left * ZEROS_PACE / room).min(FASTEST_ZEROS);
                self.asked_at = offset;
            }
            Some(_) => {}
        }
        if !std::mem::replace(&mut self.is_wanted, true) {
            return Some(self.zeros);
        }
        let due = ((offset - self.asked_at) * self.pace / 100).min(left);
        if due == 0 || step.is_none_or(|step| due < step && due < left) {
            return None;
        }
        self.asked_at = offset;
        self.zeros += due;
        Some(self.zeros)
    }
}

#[cfg(test)]
mod tests {
    use super::NextFile;

    const FILE: u64 = 64 << 20;
    const GROUP: u64 = 4 << 10;
    const STEP: u64 = 128 << 10;

    /// Fills a file, group by group, from `from` on with synced ones. Returns where the next file was asked for, and
    /// with how many zeros.
    fn fill(from: u64) -> Vec<(u64, u64)> {
        let mut next = NextFile::default();
        let ask = |offset| Some((offset, next.ask(offset, FILE, (offset >= from).then_some(STEP))?));
        (GROUP..=FILE).step_by(GROUP as usize).filter_map(ask).collect()
    }

    #[test]
    fn zeros_follow_in_even_steps_and_end_before_the_file_is_full() {
        let asked = fill(0);
        assert_eq!(asked[0], (FILE / 8 + GROUP, 0), "the file itself, without zeros");
        for pair in asked.windows(2) {
            let [(before, had), (at, zeros)] = pair else { unreachable!() };
            assert!(zeros > had && zeros - had < STEP + 2 * GROUP, "{} bytes at once", zeros - had);
            let is_last = *zeros == FILE;
            assert!(is_last || zeros - had >= STEP, "{} bytes are a small step", zeros - had);
            assert!(is_last || at - before >= STEP / 2, "{} bytes after the step before", at - before);
        }
        let (at, zeros) = asked[asked.len() - 1];
        assert_eq!(zeros, FILE);
        assert!(at < FILE / 100 * 85, "the last zeros are asked for at {at}");
    }

    #[test]
    fn zeros_that_begin_late_follow_at_twice_the_pace_at_most() {
        let from = FILE / 4 * 3;
        let asked = fill(from);
        assert_eq!(asked[0], (FILE / 8 + GROUP, 0));
        assert!(asked.len() > 2, "no zeros in the last quarter");
        for (at, zeros) in &asked[1..] {
            assert!(*zeros <= 2 * (at - from) + 2 * GROUP, "{zeros} bytes of zeros at {at}");
        }
        assert!(asked[asked.len() - 1].1 < FILE, "as if they had begun in time");
    }

    /// A group in ten is large. What was due before it is still due.
    #[test]
    fn other_groups_between_do_not_end_the_zeros() {
        let mut next = NextFile::default();
        let groups = (GROUP..=FILE).step_by(GROUP as usize).enumerate();
        let asked = groups.filter_map(|(n, offset)| next.ask(offset, FILE, (n % 10 > 0).then_some(STEP)));
        let zeros = asked.last().unwrap();
        assert!(zeros > FILE / 10 * 9, "{zeros} bytes of zeros");
    }

    #[test]
    fn without_small_syncs_the_file_is_asked_for_once() {
        assert_eq!(fill(FILE + 1), [(FILE / 8 + GROUP, 0)]);
    }

    #[test]
    fn a_group_larger_than_a_file_is_no_exception() {
        let mut next = NextFile::default();
        assert_eq!(next.ask(3 * FILE, FILE, Some(STEP)), Some(0));
        assert_eq!(next.ask(4 * FILE, FILE, Some(STEP)), Some(FILE));
        assert_eq!(next.ask(5 * FILE, FILE, Some(STEP)), None);
    }
}
