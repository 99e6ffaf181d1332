//! PostgreSQL's hash of bytes: Bob Jenkins' `lookup3`. It tells texts apart for locks and shards of clients, which keep
//! its values.

/// The hash in 64 bits. Without a seed its lower half is the one in 32 bits.
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
    let mut state = [start; 3];
    if seed != 0 {
        let [low, high] = [seed, seed >> 32].map(|part| u32::try_from(part & 0xffff_ffff).unwrap_or(0));
        add(&mut state, [high, low, 0]);
        mix(&mut state);
    }
    let (blocks, rest) = bytes.as_chunks::<12>();
    for block in blocks {
        add(&mut state, words(block));
        mix(&mut state);
    }
    let mut last = [0; 12];
    // The lowest byte of the third word is not used.
    for (at, byte) in rest.iter().enumerate() {
        last[if at < 8 { at } else { at + 1 }] = *byte;
    }
    add(&mut state, words(&last));
    finish(&mut state);
    let [_, high, low] = state;
    (u64::from(high) << 32) | u64::from(low)
}

fn words(block: &[u8; 12]) -> [u32; 3] {
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    [word(0), word(4), word(8)]
}

fn add(state: &mut [u32; 3], words: [u32; 3]) {
    for (part, word) in state.iter_mut().zip(words) {
        *part = part.wrapping_add(word);
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    for bits in [[4, 6, 8], [16, 19, 4]] {
        *a = a.wrapping_sub(*c) ^ c.rotate_left(bits[0]);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(bits[1]);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(bits[2]);
        *b = b.wrapping_add(*a);
    }
}

fn finish([a, b, c]: &mut [u32; 3]) {
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn values_are_those_of_postgresql() {
        let short = |text: &str| (hash(text.as_bytes(), 0) & 0xffff_ffff) as u32 as i32;
        assert_eq!(short("abc"), -785_388_649);
        assert_eq!(short(""), -1_477_818_771);
        assert_eq!(short("the quick brown fox jumps"), 84_238_858);
        assert_eq!(short("äöü€"), -931_435_867);
        let long = |seed: i64| hash(b"abc", seed.cast_unsigned()).cast_signed();
        assert_eq!(long(5), -8_227_931_761_584_822_072);
        assert_eq!(long(0), -6_747_756_470_228_489_321);
        assert_eq!(long(-7), -311_900_745_630_446_676);
    }
}
