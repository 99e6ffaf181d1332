//! Upper and lower case, as `lc_ctype = 'C.UTF-8'` says: character by character, in Unicode's simple mappings, without
//! rules of any language. A mapping never changes the number of characters: `ß` has no upper case.

/// The white space of C's `isspace`.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Lower case.
pub fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().map(lower_char).collect()
}

/// Upper case.
pub fn upper(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_uppercase();
    }
    text.chars().map(upper_char).collect()
}

/// Characters that got a case after Unicode 15, the version of these mappings. Rust's follow later ones.
fn is_later(c: char) -> bool {
    matches!(
        c,
        '\u{19b}' | '\u{264}' | '\u{1c89}'..='\u{1c8a}' | '\u{a7cb}'..='\u{a7cf}' | '\u{a7d2}'..='\u{a7d5}'
            | '\u{a7da}'..='\u{a7dc}' | '\u{10d50}'..='\u{10d85}' | '\u{16ea0}'..='\u{16ed3}'
    )
}

/// Lower case of a character.
pub fn lower_char(c: char) -> char {
    if is_later(c) {
        return c;
    }
    // The only full mapping of several characters is that of U+0130, and its first is the simple mapping.
    c.to_lowercase().next().unwrap_or(c)
}

/// Upper case of a character.
pub fn upper_char(c: char) -> char {
    match c {
        c if is_later(c) => c,
        // Greek letters with an iota below: the simple mapping is the title case letter, which keeps the iota.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => shifted(c, 8),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => shifted(c, 9),
        c => {
            let mut mapped = c.to_uppercase();
            match (mapped.next(), mapped.next()) {
                (Some(single), None) => single,
                _ => c,
            }
        }
    }
}

fn shifted(c: char, by: u32) -> char {
    char::from_u32(u32::from(c) + by).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_mapped_character_by_character() {
        assert_eq!(lower("ÄÉΣ ΟΔΟΣ İI"), "äéσ οδοσ ii", "no final sigma, no combining dot");
        assert_eq!(upper("straße ŉ ﬁ ᾀ ᾳ ǆ ÿ"), "STRAßE ŉ ﬁ ᾈ ᾼ Ǆ Ÿ");
        assert_eq!(lower("\u{a7cb}\u{10d50}") + &upper("ƛɤ\u{10d70}"), "\u{a7cb}\u{10d50}ƛɤ\u{10d70}", "Unicode 15");
        assert!(('\0'..=char::MAX).all(|c| upper(&c.to_string()).chars().count() == 1));
    }
}
