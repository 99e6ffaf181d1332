//! Bytes of a client: `!` and the bytes of a connection, `#` and the bytes of a session after its startup, or a
//! [`program`].
//!
//! - No session panics, and none sends anything but whole messages.
//! - The replies to bytes that come one by one are those to the same bytes at once.

use crate::node::FuzzNode;
use crate::{program, replies};

/// What depends on the moment or on chance. Texts with these words are served, but not compared.
const UNSTABLE: [&str; 9] =
    ["random", "uuid", "clock_", "timeofday", "sleep", "timeout", "tablesample", "nextval", "serial"];

/// A request for encryption. Bytes that come with it are refused, and those after its answer are not.
const ENCRYPTION: [[u8; 4]; 2] = [80_877_103_u32.to_be_bytes(), 80_877_104_u32.to_be_bytes()];

/// Longer inputs are not served byte by byte.
const LONGEST: usize = 4 << 10;

pub fn run(input: &[u8]) {
    let sent = match input {
        [b'!', bytes @ ..] => bytes.to_vec(),
        [b'#', bytes @ ..] => [program::login().as_slice(), bytes].concat(),
        text => [program::login().as_slice(), &program::messages(text)].concat(),
    };
    let whole = served([sent.clone()]);
    let single = sent.iter().map(|byte| vec![*byte]);
    if sent.len() <= LONGEST && is_stable(input) {
        same(&whole, &served(single));
    }
}

/// Serves a program cut in two at every byte.
pub fn run_in_two(input: &[u8]) {
    let sent = [program::login().as_slice(), &program::messages(input)].concat();
    let whole = served([sent.clone()]);
    for at in 1..sent.len() {
        same(&whole, &served([sent[..at].to_vec(), sent[at..].to_vec()]));
    }
}

fn served(pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<Vec<String>> {
    FuzzNode::start().serve(pieces).map(|bytes| replies::summary(&bytes))
}

/// A run that took too long proves nothing, nor does one that a timeout ended.
pub fn same(whole: &Option<Vec<String>>, pieces: &Option<Vec<String>>) {
    let timed_out = |replies: &[String]| replies.iter().any(|reply| reply == "E C57014");
    if let (Some(whole), Some(pieces)) = (whole, pieces)
        && !timed_out(whole)
        && !timed_out(pieces)
    {
        assert_eq!(whole, pieces, "other replies when the bytes come in pieces");
    }
}

fn is_stable(input: &[u8]) -> bool {
    if input.first() == Some(&b'!') && input.windows(4).any(|bytes| ENCRYPTION.iter().any(|code| code == bytes)) {
        return false;
    }
    let text = String::from_utf8_lossy(input).to_lowercase();
    !UNSTABLE.iter().any(|word| text.contains(word))
}
