//! The identity of a cluster: a store refuses streams of other clusters.

use std::fmt;
use std::str::FromStr;

/// The random identity of a cluster, chosen at its founding; never 0. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterId(u64);

/// The text is not a cluster id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cluster id")]
pub struct BadClusterId(String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ClusterId {
    type Err = BadClusterId;

    fn from_str(text: &str) -> Result<ClusterId, BadClusterId> {
        let plain = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let raw = u64::from_str_radix(text, 16).ok().filter(|id| plain && *id != 0);
        raw.map(ClusterId).ok_or_else(|| BadClusterId(text.to_string()))
    }
}

impl ClusterId {
    /// Wraps a number.
    pub const fn new(raw: u64) -> ClusterId {
        ClusterId(raw)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let id = ClusterId::new(0xc0ffee);
        assert_eq!(id.to_string(), "0000000000c0ffee");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "0000000000000000", "xyz", "abc", "+000000000c0ffee", "00000000000c0ffee"] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }
}
