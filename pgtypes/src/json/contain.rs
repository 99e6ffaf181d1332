//! Containment and existence: `@>`, `<@`, `?`, `?|`, `?&`.

use std::collections::HashSet;

use super::value::Jsonb;

impl Jsonb {
    /// `@>`: whether the value contains `other`. An array contains a top-level scalar.
    pub fn contains(&self, other: &Jsonb) -> bool {
        match (self, other) {
            (Jsonb::Array(elements), scalar) if scalar.is_scalar() => elements.contains(scalar),
            _ => nested(self, other),
        }
    }

    /// `<@`
    pub fn is_contained_in(&self, other: &Jsonb) -> bool {
        other.contains(self)
    }

    /// `?`: whether a string is a key of the object, an element of the array, or the value itself.
    pub fn exists(&self, key: &str) -> bool {
        let is_key = |value: &Jsonb| matches!(value, Jsonb::String(text) if **text == *key);
        match self {
            Jsonb::Object(members) => members.get(key).is_some(),
            Jsonb::Array(elements) => elements.iter().any(is_key),
            scalar => is_key(scalar),
        }
    }

    /// `?|`: whether one of the strings exists. NULLs do not count.
    pub fn exists_any(&self, keys: &[Option<&str>]) -> bool {
        keys.iter().flatten().any(|key| self.exists(key))
    }

    /// `?&`: whether all of the strings exist. NULLs do not count.
    pub fn exists_all(&self, keys: &[Option<&str>]) -> bool {
        keys.iter().flatten().all(|key| self.exists(key))
    }
}

fn nested(outer: &Jsonb, inner: &Jsonb) -> bool {
    match (outer, inner) {
        (Jsonb::Object(outer), Jsonb::Object(inner)) => {
            outer.len() >= inner.len()
                && inner.iter().all(|(key, wanted)| outer.get(key).is_some_and(|value| nested(value, wanted)))
        }
        (Jsonb::Array(outer), Jsonb::Array(inner)) => {
            // Scalars are looked up, so that two long arrays of scalars do not take quadratic time.
            let scalars: HashSet<&Jsonb> = outer.iter().filter(|value| value.is_scalar()).collect();
            inner.iter().all(|wanted| match wanted.is_scalar() {
                true => scalars.contains(wanted),
                false => outer.iter().any(|value| nested(value, wanted)),
            })
        }
        (outer, inner) => outer == inner,
    }
}
