//! The classes of characters of the C library, in its locale C.UTF-8.
//!
//! Rust's own classes differ: they follow a later Unicode, and other rules for marks and numbers.

use std::sync::LazyLock;

/// Inclusive ranges of code points, ascending.
pub(crate) type Ranges = Vec<(u32, u32)>;

/// The classes that POSIX names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Word,
    Xdigit,
}

/// The classes that are too large to be written in code.
struct Tables {
    alnum: Ranges,
    lower: Ranges,
    upper: Ranges,
    graph: Ranges,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let text = include_str!("ctype.txt");
    Tables {
        alnum: table(text, "alnum"),
        lower: table(text, "lower"),
        upper: table(text, "upper"),
        graph: table(text, "graph"),
    }
});

const SPACE: [(u32, u32); 8] = [
    (0x09, 0x0d),
    (0x20, 0x20),
    (0x1680, 0x1680),
    (0x2000, 0x2006),
    (0x2008, 0x200a),
    (0x2028, 0x2029),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
];
/// What `print` has and `graph` has not.
const PRINTED_SPACE: [(u32, u32); 6] =
    [(0x20, 0x20), (0x1680, 0x1680), (0x2000, 0x2006), (0x2008, 0x200a), (0x205f, 0x205f), (0x3000, 0x3000)];

/// Reads the ranges below a name, up to the next name.
fn table(text: &str, name: &str) -> Ranges {
    let lines = text.lines().skip_while(|line| *line != name).skip(1);
    let own = lines.take_while(|line| !matches!(*line, "alnum" | "lower" | "upper" | "graph"));
    let code = |word| u32::from_str_radix(word, 16).ok();
    own.flat_map(str::split_whitespace)
        .filter_map(|word| {
            let (start, end) = word.split_once('-').unwrap_or((word, word));
            Some((code(start)?, code(end)?))
        })
        .collect()
}

/// The characters of a class.
pub(crate) fn ranges(class: Class) -> Ranges {
    let digits = (u32::from('0'), u32::from('9'));
    match class {
        Class::Alnum => TABLES.alnum.clone(),
        Class::Alpha => subtract(&TABLES.alnum, &[digits]),
        Class::Ascii => vec![(1, 0x7f)],
        Class::Blank => vec![(0x09, 0x09), (0x20, 0x20)],
        Class::Cntrl => vec![(0x01, 0x1f), (0x7f, 0x9f)],
        Class::Digit => vec![digits],
        Class::Graph => TABLES.graph.clone(),
        Class::Lower => TABLES.lower.clone(),
        Class::Print => union(&TABLES.graph, &PRINTED_SPACE),
        Class::Punct => subtract(&TABLES.graph, &TABLES.alnum),
        Class::Space => SPACE.to_vec(),
        Class::Upper => TABLES.upper.clone(),
        Class::Word => union(&TABLES.alnum, &[(u32::from('_'), u32::from('_'))]),
        Class::Xdigit => vec![digits, (0x41, 0x46), (0x61, 0x66)],
    }
}

/// Whether ascending ranges have a code point.
pub(crate) fn has(ranges: &[(u32, u32)], code: u32) -> bool {
    let after = ranges.partition_point(|(start, _)| *start <= code);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, end)| code <= *end)
}

/// Whether a character is a letter or a digit.
pub(crate) fn is_alnum(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { has(&TABLES.alnum, c.into()) }
}

/// Whether a character is a letter, which digits outside of ASCII are as well.
pub(crate) fn is_alpha(c: char) -> bool {
    is_alnum(c) && !c.is_ascii_digit()
}

/// Whether a character is white space.
pub(crate) fn is_space(c: char) -> bool {
    has(&SPACE, c.into())
}

/// Whether a character is a letter, a digit or an underscore.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || is_alnum(c)
}

/// Ascending ranges that do not touch, of ranges in any order.
pub(crate) fn normalize(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut out: Ranges = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match out.last_mut() {
            Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

fn union(a: &[(u32, u32)], b: &[(u32, u32)]) -> Ranges {
    normalize([a, b].concat())
}

/// The ranges that are missing from ascending ones, up to the last code point.
pub(crate) fn complement(ranges: &[(u32, u32)]) -> Ranges {
    let mut out = Vec::with_capacity(ranges.len() + 1);
    let mut next = 0;
    for (start, end) in ranges {
        if *start > next {
            out.push((next, start - 1));
        }
        next = end.saturating_add(1);
    }
    let last = u32::from(char::MAX);
    if next <= last {
        out.push((next, last));
    }
    out
}

/// What `a` has and `b` has not.
pub(crate) fn subtract(a: &[(u32, u32)], b: &[(u32, u32)]) -> Ranges {
    complement(&union(&complement(a), b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_sizes_of_the_c_library() {
        // Code point 0 cannot be part of a text, and surrogates are no characters.
        let size = |class| ranges(class).iter().map(|(start, end)| end - start + 1).sum::<u32>();
        assert_eq!(size(Class::Alnum), 134_056);
        assert_eq!(size(Class::Alpha), 134_046);
        assert_eq!(size(Class::Graph), 282_149);
        assert_eq!(size(Class::Lower), 2475);
        assert_eq!(size(Class::Print), 282_163);
        assert_eq!(size(Class::Punct), 148_093);
        assert_eq!(size(Class::Space), 21);
        assert_eq!(size(Class::Upper), 1982);
        assert_eq!(size(Class::Word), 134_057);
        assert!(is_alnum('é') && !is_alnum('²') && !is_word('-') && is_word('_') && is_alnum('٣'));
    }
}
