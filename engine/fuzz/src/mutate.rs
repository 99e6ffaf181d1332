//! Damage to a set of files, as the input describes it.

use crate::bases::Files;

/// Reads the bytes of an input in order; returns zeros past its end.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn number(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// An offset in a file of length `len`: near its start, in the header; after the first page; near its end; or
    /// anywhere, at a multiple of 8.
    fn offset(&mut self, len: usize) -> usize {
        let number = self.number();
        let at = number & 0x3fff;
        match number >> 14 {
            0 => at.min(len),
            1 => (4096 + at).min(len),
            2 => len.saturating_sub(at),
            _ => (at * 8).min(len),
        }
    }

    fn name(&mut self, files: &Files) -> Option<String> {
        let at = usize::from(self.byte()) % files.len().max(1);
        files.keys().nth(at).cloned()
    }
}

/// A CRC-32 detects any three flipped bits in the checksummed parts of the base logs. No more are flipped where the
/// target relies on detection.
const FLIPS: usize = 3;
/// The kinds of changes, which an input selects by number.
pub const KINDS: u8 = 10;
/// Edge cases for numbers in the files.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    4096,
    1 << 16,
    (1 << 31) - 1,
    u32::MAX as u64,
    1 << 34,
    (1 << 35) - 1,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];
/// The most changes of one input. More only slow it down.
const CHANGES: usize = 24;

/// Changes files until the input is used up. Without `forging`, checksums detect all changes.
pub fn mutate(files: &mut Files, input: &mut Input<'_>, forging: bool) {
    let mut flips = 0;
    for _ in 0..CHANGES {
        if input.0.is_empty() || change(files, input, forging, &mut flips).is_none() {
            return;
        }
    }
}

fn change(files: &mut Files, input: &mut Input<'_>, forging: bool, flips: &mut usize) -> Option<()> {
    let what = input.byte() % KINDS;
    let name = input.name(files)?;
    let content = files.get_mut(&name)?;
    let at = input.offset(content.len());
    match what {
        0 => content.truncate(at),
        1 => {
            let end = content.len().min(at + 8 * usize::from(input.byte()));
            content[at..end].fill(0);
        }
        2 => {
            let source = files.get(&input.name(files)?)?;
            let from = input.offset(source.len());
            let piece = source[from..source.len().min(from + 8 * usize::from(input.byte()))].to_vec();
            let target = &mut files.get_mut(&name)?[at..];
            let count = piece.len().min(target.len());
            target[..count].copy_from_slice(&piece[..count]);
        }
        3 => drop(files.remove(&name)),
        4 => {
            let other = input.name(files)?;
            let (one, two) = (files.remove(&name)?, files.remove(&other).unwrap_or_default());
            files.extend([(name, two), (other, one)]);
        }
        5 => {
            let content = content.clone();
            let kind = ["log", "spare", "tmp"][usize::from(input.byte()) % 3];
            files.insert(format!("{:016}.{kind}", input.byte()), content);
        }
        6 => content.resize(content.len() + 8 * usize::from(input.byte()), 0),
        7 if forging => {
            let count = usize::from(input.byte() % 24).min(content.len() - at);
            content[at..at + count].fill_with(|| input.byte());
        }
        8 if forging => {
            let width = 1 << (input.byte() % 4);
            let number = NUMBERS[usize::from(input.byte()) % NUMBERS.len()].to_le_bytes();
            content.get_mut(at..at + width)?.copy_from_slice(&number[..width]);
        }
        _ if forging || *flips < FLIPS => {
            *flips += 1;
            *content.get_mut(at)? ^= 1 << (input.byte() % 8);
        }
        _ => {}
    }
    Some(())
}
