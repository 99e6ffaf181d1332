//! Region boundaries as scans need them: from storage form back to keys, and the place just before a boundary.
//!
//! Scans name keys while region boundaries are storage keys. The storage form keeps the order, so every boundary `b`
//! has exactly one key that parts the keys stored before `b` from those stored at or after it: the smallest key whose
//! storage form is not below `b`. Region boundaries made by splits *are* storage forms of keys, and then it is that
//! key.

use crate::key::Key;

/// Bytes of a group of the storage form, without its marker.
const GROUP: usize = 8;
/// Marker of a full group; a group padded with `n` bytes is marked `FULL - n`.
const FULL: u8 = 0xFF;

/// The smallest key whose storage form is at or after `bound`: `key < ceil(bound)` exactly when its storage form is
/// below `bound`.
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
        // A group that ends the key may pad only what is zero. What follows a final group is after the whole key.
        let zeros = group.iter().rev().take_while(|byte| **byte == 0).count();
        let wanted = if after.is_empty() { marker } else { marker + 1 };
        let least = FULL - u8::try_from(zeros).unwrap_or(0);
        let padding = usize::from(FULL - wanted.max(least));
        key.extend(group.iter().take(GROUP - padding));
        break;
    }
    Key::new(key)
}

/// A storage key below `bound` and above all but the most unusual keys below it, to locate the region that ends there.
/// An empty bound is after every key.
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
        // Few distinct bytes, so that padding, full groups and markers meet.
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xF6), Just(0xF7), Just(0xFE), Just(0xFF)], 0..28)
    }

    proptest! {
        #[test]
        fn ceil_of_a_storage_form_is_its_key(raw in bytes()) {
            let key = Key::new(raw);
            prop_assert_eq!(ceil(&key.to_storage()), key);
        }

        #[test]
        fn ceil_parts_keys_as_the_bound_does(bound in bytes(), raw in bytes()) {
            let key = Key::new(raw);
            prop_assert_eq!(key < ceil(&bound), key.to_storage() < bound);
        }

        #[test]
        fn ceil_parts_the_neighbours_of_a_storage_form(raw in bytes(), cut in 0usize..40, tail in bytes()) {
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
        fn just_before_is_before(bound in bytes()) {
            prop_assert!(bound.is_empty() || just_before(&bound) < bound);
        }
    }
}
