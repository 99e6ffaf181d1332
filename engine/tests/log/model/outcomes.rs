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
    let mut seen = HashSet::new();
    let mut visit = |twin: &Arc<SimDisk>| {
        if seen.insert(fingerprint(twin)) {
            check(twin);
        }
        seen.len()
    };
    if disk.possible_crashes() <= limit.saturating_mul(SEQUENCES) as u64 {
        all_crashes(disk, &mut visit);
        return true;
    }
    for seed in 0..limit.saturating_mul(DRAWS) as u64 {
        let twin = disk.fork();
        twin.crash(seed);
        if visit(&twin) >= limit {
            break;
        }
    }
    false
}

/// Enumerates all sequences of choices that make up a crash.
fn all_crashes(disk: &SimDisk, visit: &mut impl FnMut(&Arc<SimDisk>) -> usize) {
    // The choices so far, and the number of options of each. The last one is incremented like the lowest digit of a
    // number.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    loop {
        let twin = disk.fork();
        let mut position = 0;
        twin.crash_with(&mut |of| {
            if position == choices.len() {
                choices.push((0, of));
            }
            position += 1;
            choices[position - 1].0
        });
        count += 1;
        visit(&twin);
        while let Some((choice, of)) = choices.pop() {
            if choice + 1 < of {
                choices.push((choice + 1, of));
                break;
            }
        }
        if choices.is_empty() {
            break;
        }
    }
    assert!(count <= disk.possible_crashes(), "{count} crashes, more than possible_crashes returned");
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
