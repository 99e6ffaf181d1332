//! Compiled regular expressions, for calls with the same pattern in row after row.
//!
//! A thread keeps those that it used last. An entry is found by comparing patterns, the one used last first: rows with
//! one pattern cost one comparison.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::error::ValueError;
use crate::text::regex::{Regex, RegexOptions};

/// The entries of a thread, as many as PostgreSQL keeps.
const ENTRIES: usize = 32;
/// The size of all entries but the one in front: that of two patterns of the largest size.
const MAX_SIZE: usize = 120_000;

struct Entry {
    pattern: Box<str>,
    options: RegexOptions,
    regex: Rc<Regex>,
}

thread_local! {
    /// The one used last is in front.
    static CACHE: RefCell<VecDeque<Entry>> = const { RefCell::new(VecDeque::new()) };
}

/// The compiled form of a pattern. Errors of [`Regex::new`].
pub(super) fn regex(pattern: &str, options: RegexOptions) -> Result<Rc<Regex>, ValueError> {
    // The search for all matches uses the same compiled form.
    let mut options = options;
    options.global = false;
    if let Some(regex) = kept(pattern, options) {
        return Ok(regex);
    }
    let regex = Rc::new(Regex::new(pattern, options)?);
    let entry = Entry { pattern: pattern.into(), options, regex: Rc::clone(&regex) };
    CACHE.with_borrow_mut(|cache| {
        let mut size = 0;
        let fits = |entry: &&Entry| {
            size += entry.regex.size() + entry.pattern.len();
            size <= MAX_SIZE
        };
        let kept = cache.iter().take(ENTRIES - 1).take_while(fits).count();
        cache.truncate(kept);
        cache.push_front(entry);
    });
    Ok(regex)
}

fn kept(pattern: &str, options: RegexOptions) -> Option<Rc<Regex>> {
    CACHE.with_borrow_mut(|cache| {
        let at = cache.iter().position(|entry| entry.options == options && *entry.pattern == *pattern)?;
        if at > 0 {
            let entry = cache.remove(at)?;
            cache.push_front(entry);
        }
        cache.front().map(|entry| Rc::clone(&entry.regex))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_compiled_once_while_they_are_in_use() {
        let plain = RegexOptions::default();
        let first = regex("^a+$", plain).unwrap();
        for other in 0..ENTRIES - 1 {
            regex(&format!("b{other}"), plain).unwrap();
        }
        let again = regex("^a+$", RegexOptions::parse("g").unwrap()).unwrap();
        assert!(Rc::ptr_eq(&first, &again));
        let folded = regex("^a+$", RegexOptions::operator(true)).unwrap();
        assert!(folded.is_match("AA").unwrap());
        assert!(!again.is_match("AA").unwrap());
    }

    #[test]
    fn the_cache_is_bounded() {
        let plain = RegexOptions::default();
        for pattern in 0..100 {
            regex(&pattern.to_string(), plain).unwrap();
        }
        assert!(regex("(", plain).is_err());
        CACHE.with_borrow(|cache| {
            assert_eq!(cache.len(), ENTRIES);
            assert_eq!(cache.front().map(|entry| &*entry.pattern), Some("99"));
        });
        // Long patterns leave room for fewer, and are kept themselves.
        for at in 0..5 {
            let long = format!("{at}{}", "a".repeat(25_000));
            let first = regex(&long, plain).unwrap();
            assert!(Rc::ptr_eq(&first, &regex(&long, plain).unwrap()));
        }
        CACHE.with_borrow(|cache| assert_eq!(cache.len(), 2));
    }
}
