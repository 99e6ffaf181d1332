//! Region boundaries for scans: from a storage key back to a key, and the position just before a boundary.
//!
//! Scans name keys; region boundaries are storage keys. The storage form keeps the order, so for every boundary `b`
//! there is one smallest key whose storage form is not below `b`. It separates the keys stored before `b` from the
//! others. A boundary made by a split is itself the storage form of a key, and then it is that key.

use crate::key::{FULL, GROUP, Key};

/// The smallest key whose storage form is at or after `bound`. So `key < ceil(bound)` if and only if the storage form
/// of `key` is below `bound`.
pub(super) fn ceil(bound: &[u8]) -> Key {
    let mut key = Vec::with_capacity(bound.len());
    let mut rest = bound;
    while !rest.is_empty() {
        let mut group = [0u8; GROUP];
        for (to, from) in group.iter_mut().zip(rest) {
            *to = *from;
        }
        let marker = rest.get(GROUP).copied().unwrap_or(0);
        let after = rest.get(GROUP + 1..).unwrap_or(&[]);
        if marker == FULL {
            key.extend_from_slice(&group);
            rest = after;
            continue;
        }
        // The last group of a key pads only zero bytes. Bytes of `bound` after it put the bound above the whole key.
        let zeros = group.iter().rev().take_while(|byte| **byte == 0).count();
        let wanted = if after.is_empty() { marker } else { marker + 1 };
        let least = FULL - u8::try_from(zeros).unwrap_or(0);
        let padding = usize::from(FULL - wanted.max(least));
        key.extend(group.iter().take(GROUP - padding));
        break;
    }
    Key::new(key)
}

/// A storage key close below `bound`, to locate the region that ends there. Few real keys are between the two. An empty
/// bound means "after every key".
pub(super) fn just_before(bound: &[u8]) -> Vec<u8> {
    const TAIL: [u8; 64] = [0xFF; 64];
    let Some((last, head)) = bound.split_last() else { return TAIL.to_vec() };
    let mut key = head.to_vec();
    if let Some(lower) = last.checked_sub(1) {
        key.push(lower);
        key.extend_from_slice(&TAIL);
    }
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        // Few distinct bytes, so that padding, full groups and markers coincide often.
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xF6), Just(0xF7), Just(0xFE), Just(0xFF)], 0..28)
    }

    proptest! {
        #[test]
        fn ceil_of_a_storage_form_is_its_key(raw in bytes()) {
            let key = Key::new(raw);
            prop_assert_eq!(ceil(&key.to_storage()), key);
        }

        #[test]
        fn ceil_separates_keys_as_the_bound_does(bound in bytes(), raw in bytes()) {
            let key = Key::new(raw);
            prop_assert_eq!(key < ceil(&bound), key.to_storage() < bound);
        }

        #[test]
        fn ceil_separates_the_neighbours_of_a_storage_form(raw in bytes(), cut in 0usize..40, tail in bytes()) {
            let mut bound = Key::new(raw.clone()).to_storage();
            bound.truncate(cut);
            bound.extend_from_slice(&tail);
            let shorter = raw.get(..raw.len().saturating_sub(1)).unwrap_or(&[]).to_vec();
            for other in [raw.clone(), [raw.as_slice(), &[0]].concat(), shorter] {
                let key = Key::new(other);
                prop_assert_eq!(key < ceil(&bound), key.to_storage() < bound);
            }
        }

        #[test]
        fn just_before_is_below_the_bound(bound in bytes()) {
            prop_assert!(bound.is_empty() || just_before(&bound) < bound);
        }
    }
}
