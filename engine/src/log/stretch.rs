//! Goes through a stretch of a file piece by piece: for what copies, wipes out or writes again more than should be in memory at once.

/// So much at once.
const PIECE: u64 = 256 << 10;

/// Hands a part of one buffer to `each` for every piece of `from` to before `to`, with where the piece stands. The first error ends it.
pub(crate) fn in_pieces<E>(from: u64, to: u64, mut each: impl FnMut(&mut [u8], u64) -> Result<(), E>) -> Result<(), E> {
    let mut buffer = vec![0; to.saturating_sub(from).min(PIECE) as usize];
    let mut at = from;
    while at < to {
        let step = (to - at).min(PIECE);
        each(&mut buffer[..step as usize], at)?;
        at += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PIECE, in_pieces};

    #[test]
    fn pieces_follow_each_other_and_end_where_they_should() {
        for (from, to) in [(0, 0), (5, 5), (9, 3), (7, 8), (3, PIECE + 3), (3, PIECE + 4), (0, 3 * PIECE)] {
            let mut next = from;
            let walked: Result<(), ()> = in_pieces(from, to, |piece, at| {
                assert!(at == next && !piece.is_empty() && piece.len() as u64 <= PIECE, "{from} to {to}");
                next += piece.len() as u64;
                Ok(())
            });
            assert_eq!((walked, next), (Ok(()), to.max(from)), "{from} to {to}");
        }
        let mut calls = 0;
        let failed = in_pieces(0, 3 * PIECE, |_, _| {
            calls += 1;
            Err("full")
        });
        assert_eq!((failed, calls), (Err("full"), 1));
    }
}
