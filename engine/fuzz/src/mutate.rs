//! Damage to a set of files, as the input says.

use crate::bases::Files;

/// The bytes of an input, one after another; zeros when they are used up.
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

    /// A place in something of length `len`: in the first bytes, where a header stands; behind the first page; before the end; or
    /// anywhere, at a multiple of 8.
    fn place(&mut self, len: usize) -> usize {
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

/// A CRC-32 finds any three flipped bits in what the logs of the bases have in one piece: no more are flipped where it is to be
/// relied upon.
const FLIPS: usize = 3;
/// Kinds of changes, which an input names by number.
pub const KINDS: u8 = 10;
/// Numbers that code may stumble over.
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
/// More changes in one input only slow it down.
const CHANGES: usize = 24;

/// Changes files until the input is used up. Without `forging` in ways that no checksum lets through.
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
    let at = input.place(content.len());
    match what {
        0 => content.truncate(at),
        1 => {
            let end = content.len().min(at + 8 * usize::from(input.byte()));
            content[at..end].fill(0);
        }
        2 => {
            let source = files.get(&input.name(files)?)?;
            let from = input.place(source.len());
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
