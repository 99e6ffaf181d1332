//! Enumerates every possible crash.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use engine::disk::{Disk, SimDisk};

/// How many sequences of choices to enumerate for each crash to check: many sequences give the same crash.
const SEQUENCES: usize = 4;
/// How many crashes to draw for each crash to check, in search of a different one.
const DRAWS: usize = 20;

/// Calls `check` with a copy of `disk` for each possible crash, once for each different result. If there may be many
/// more than `limit` different ones, draws `limit` of them instead. Returns whether all were checked.
pub fn each_crash(disk: &SimDisk, limit: usize, mut check: impl FnMut(&Arc<SimDisk>)) -> bool {
    let mut met = HashSet::new();
    let mut look = |twin: &Arc<SimDisk>| {
        if met.insert(fingerprint(twin)) {
            check(twin);
        }
        met.len()
    };
    if disk.possible_crashes() <= limit.saturating_mul(SEQUENCES) as u64 {
        all_crashes(disk, &mut look);
        return true;
    }
    for seed in 0..limit.saturating_mul(DRAWS) as u64 {
        let twin = disk.fork();
        twin.crash(seed);
        if look(&twin) >= limit {
            break;
        }
    }
    false
}

/// Enumerates all sequences of choices that make up a crash.
fn all_crashes(disk: &SimDisk, look: &mut impl FnMut(&Arc<SimDisk>) -> usize) {
    // The answers so far, and the number of options of each. The last answer is incremented like the lowest digit of a
    // number.
    let mut answers: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    loop {
        let twin = disk.fork();
        let mut asked = 0;
        twin.crash_with(&mut |of| {
            if asked == answers.len() {
                answers.push((0, of));
            }
            asked += 1;
            answers[asked - 1].0
        });
        count += 1;
        look(&twin);
        while let Some((answer, of)) = answers.pop() {
            if answer + 1 < of {
                answers.push((answer + 1, of));
                break;
            }
        }
        if answers.is_empty() {
            break;
        }
    }
    assert!(count <= disk.possible_crashes(), "{count} crashes, more than are said to be possible");
}

/// A number that distinguishes the content of disks.
pub fn fingerprint(disk: &SimDisk) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in Disk::list(disk).unwrap_or_default() {
        let content = disk.content(&name).unwrap_or_default();
        (&name, content.len(), crc32fast::hash(&content)).hash(&mut hasher);
    }
    hasher.finish()
}
