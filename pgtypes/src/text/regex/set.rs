//! Sets of characters.

use crate::letters;
use crate::text::ctype::{self, Class, Ranges};

/// A set of code points, with a quick test for ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    ascii: u128,
    ranges: Ranges,
}

impl Set {
    /// The set of ranges in any order.
    pub(super) fn new(ranges: Ranges) -> Set {
        let ranges = ctype::normalize(ranges);
        let ascii = (0..128).filter(|code| ctype::has(&ranges, *code)).fold(0, |bits, code| bits | 1u128 << code);
        Set { ascii, ranges }
    }

    pub(super) fn has(&self, c: char) -> bool {
        let code = u32::from(c);
        if code < 128 { self.ascii >> code & 1 == 1 } else { ctype::has(&self.ranges, code) }
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }
}

/// A code point, or with `ignore_case` its lower and upper case.
pub(super) fn one(code: u32, ignore_case: bool) -> Ranges {
    match char::from_u32(code).filter(|_| ignore_case) {
        Some(c) => [letters::lower_char(c), letters::upper_char(c)].map(|c| (c.into(), c.into())).to_vec(),
        None => vec![(code, code)],
    }
}

/// A range, and with `ignore_case` the lower and upper case of what it has.
pub(super) fn range(first: u32, last: u32, ignore_case: bool) -> Ranges {
    let mut out = vec![(first, last)];
    if ignore_case {
        // Above this code point no character has case.
        let cased = (first..=last.min(0x1_f000)).filter_map(char::from_u32);
        for c in cased {
            let variants = [letters::lower_char(c), letters::upper_char(c)];
            out.extend(variants.iter().filter(|v| **v != c).map(|v| (u32::from(*v), u32::from(*v))));
        }
    }
    out
}

/// A class, where `ignore_case` takes away the case.
pub(super) fn class(class: Class, ignore_case: bool) -> Ranges {
    match class {
        Class::Lower | Class::Upper if ignore_case => ctype::ranges(Class::Alpha),
        class => ctype::ranges(class),
    }
}
