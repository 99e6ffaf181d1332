//! Changed copies of `jsonb` values: `||`, `-`, `#-`, `jsonb_set`, `jsonb_insert`, `jsonb_strip_nulls`.

use super::path::{self, Path};
use super::value::{Jsonb, Members};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

fn refused(message: &'static str) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A change at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Delete,
    /// Replaces what is there.
    Replace,
    /// Replaces what is there, or adds it.
    Put,
    Before,
    After,
}

impl Change {
    fn adds(self) -> bool {
        matches!(self, Change::Put | Change::Before | Change::After)
    }
}

impl Jsonb {
    /// `||`: objects are merged, where the right value wins. Otherwise arrays are joined, after each value that is not
    /// an array became one. 54001 if the result is nested too deep.
    pub fn concat(&self, other: &Jsonb) -> Result<Jsonb, ValueError> {
        if let (Jsonb::Object(left), Jsonb::Object(right)) = (self, other) {
            let pairs = left.iter().chain(right.iter()).map(|(key, value)| (key.into(), value.clone()));
            return Ok(Jsonb::Object(Members::from_pairs(pairs.collect())));
        }
        let elements = |value: &Jsonb| match value {
            Jsonb::Array(elements) => elements.clone(),
            value => vec![value.clone()],
        };
        let mut joined = elements(self);
        joined.extend(elements(other));
        Jsonb::from_elements(joined)
    }

    /// `- text`: without a key, or without the elements that equal the string. 22023 for a scalar.
    pub fn delete_key(&self, key: &str) -> Result<Jsonb, ValueError> {
        self.delete_keys(&[Some(key)])
    }

    /// `- text[]`: without these keys or strings. NULLs do not count. 22023 for a scalar.
    pub fn delete_keys(&self, keys: &[Option<&str>]) -> Result<Jsonb, ValueError> {
        let named: std::collections::HashSet<&str> = keys.iter().flatten().copied().collect();
        match self {
            Jsonb::Object(members) => {
                let kept = members.iter().filter(|(key, _)| !named.contains(key));
                let pairs = kept.map(|(key, value)| (key.into(), value.clone())).collect();
                Ok(Jsonb::Object(Members::from_pairs(pairs)))
            }
            Jsonb::Array(elements) => {
                let named = |value: &Jsonb| matches!(value, Jsonb::String(text) if named.contains(&**text));
                Ok(Jsonb::Array(elements.iter().filter(|value| !named(value)).cloned().collect()))
            }
            _ => Err(refused("cannot delete from scalar")),
        }
    }

    /// `- integer`: without an element. 22023 if it is not an array.
    pub fn delete_element(&self, index: i32) -> Result<Jsonb, ValueError> {
        match self {
            Jsonb::Array(elements) => {
                let mut elements = elements.clone();
                if let Some(at) = path::position(index, elements.len()) {
                    elements.remove(at);
                }
                Ok(Jsonb::Array(elements))
            }
            Jsonb::Object(_) => Err(refused("cannot delete from object using integer index")),
            _ => Err(refused("cannot delete from scalar")),
        }
    }

    /// `#-`: without what the path leads to. 22023 for a scalar, 22004 for a NULL in the path, 22P02 for an element of
    /// the path that should be an index.
    pub fn delete_path(&self, path: &Path<'_>) -> Result<Jsonb, ValueError> {
        if self.is_scalar() {
            return Err(refused("cannot delete path in scalar"));
        }
        if self.is_empty_container() {
            return Ok(self.clone());
        }
        self.clone().changed(path, 1, Change::Delete, &Jsonb::Null)
    }

    /// `jsonb_set`: with a new value at the path, which is added if `create` says so. Errors as [`Jsonb::delete_path`];
    /// 54001 if the result is nested too deep.
    pub fn set(&self, path: &Path<'_>, new: &Jsonb, create: bool) -> Result<Jsonb, ValueError> {
        if self.is_scalar() {
            return Err(refused("cannot set path in scalar"));
        }
        if self.is_empty_container() && !create {
            return Ok(self.clone());
        }
        let change = if create { Change::Put } else { Change::Replace };
        self.clone().changed(path, 1, change, new)?.checked()
    }

    /// `jsonb_set_lax`: as [`Jsonb::set`], with a treatment of a new value that is NULL: `raise_exception` (22004),
    /// `use_json_null`, `delete_key` or `return_target`. 22023 for a treatment that is NULL, and for another word if it
    /// is needed.
    pub fn set_lax(
        &self,
        path: &Path<'_>,
        new: Option<&Jsonb>,
        create: bool,
        treatment: Option<&str>,
    ) -> Result<Jsonb, ValueError> {
        let unknown = || {
            refused(
                "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \
                 \"raise_exception\"",
            )
        };
        let treatment = treatment.ok_or_else(unknown)?;
        if let Some(new) = new {
            return self.set(path, new, create);
        }
        match treatment {
            "use_json_null" => self.set(path, &Jsonb::Null, create),
            "delete_key" => self.delete_path(path),
            "return_target" => Ok(self.clone()),
            "raise_exception" => {
                let detail = "Exception was raised because null_value_treatment is \"raise_exception\".";
                let hint = "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is \
                            not passed.";
                let error = ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null");
                Err(error.with_detail(detail).with_hint(hint))
            }
            _ => Err(unknown()),
        }
    }

    /// `jsonb_insert`: with a new element before or after the path, or a new member there. 22023 if the member exists;
    /// other errors as [`Jsonb::set`].
    pub fn insert(&self, path: &Path<'_>, new: &Jsonb, after: bool) -> Result<Jsonb, ValueError> {
        if self.is_scalar() {
            return Err(refused("cannot set path in scalar"));
        }
        let change = if after { Change::After } else { Change::Before };
        self.clone().changed(path, 1, change, new)?.checked()
    }

    /// `jsonb_strip_nulls`: without the members that are `null`, at every depth. Elements of arrays stay.
    pub fn strip_nulls(&self) -> Jsonb {
        match self {
            Jsonb::Array(elements) => Jsonb::Array(elements.iter().map(Jsonb::strip_nulls).collect()),
            Jsonb::Object(members) => {
                let kept = members.iter().filter(|(_, value)| **value != Jsonb::Null);
                let pairs = kept.map(|(key, value)| (key.into(), value.strip_nulls())).collect();
                Jsonb::Object(Members::from_pairs(pairs))
            }
            scalar => scalar.clone(),
        }
    }

    fn is_empty_container(&self) -> bool {
        match self {
            Jsonb::Array(elements) => elements.is_empty(),
            Jsonb::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    /// Applies a change at a path. `level` counts its elements from 1, for messages.
    fn changed(self, path: &Path<'_>, level: usize, change: Change, new: &Jsonb) -> Result<Jsonb, ValueError> {
        let Some((first, rest)) = path.split_first() else { return Ok(self) };
        let Some(first) = first else {
            let message = format!("path element at position {level} is null");
            return Err(ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let inner = Step { rest, level, change, new };
        match self {
            Jsonb::Array(elements) => inner.in_array(elements, first).map(Jsonb::Array),
            Jsonb::Object(members) => inner.in_object(members, first).map(Jsonb::Object),
            scalar => Ok(scalar),
        }
    }
}

/// One element of a path, and what is to be done behind it.
struct Step<'a> {
    rest: &'a Path<'a>,
    level: usize,
    change: Change,
    new: &'a Jsonb,
}

impl Step<'_> {
    fn is_last(&self) -> bool {
        self.rest.is_empty()
    }

    fn deeper(&self, value: &mut Jsonb) -> Result<(), ValueError> {
        let old = std::mem::replace(value, Jsonb::Null);
        *value = old.changed(self.rest, self.level + 1, self.change, self.new)?;
        Ok(())
    }

    fn in_object(&self, members: Members, key: &str) -> Result<Members, ValueError> {
        let mut pairs = members.into_pairs();
        let found = pairs.iter().position(|(name, _)| **name == *key);
        match (found, self.is_last()) {
            (Some(at), true) => match self.change {
                Change::Before | Change::After => {
                    return Err(refused("cannot replace existing key")
                        .with_hint("Try using the function jsonb_set to replace key value."));
                }
                Change::Delete => {
                    pairs.remove(at);
                }
                Change::Replace | Change::Put => {
                    if let Some((_, value)) = pairs.get_mut(at) {
                        *value = self.new.clone();
                    }
                }
            },
            (Some(at), false) => {
                if let Some((_, value)) = pairs.get_mut(at) {
                    self.deeper(value)?;
                }
            }
            (None, true) if self.change.adds() => pairs.push((key.into(), self.new.clone())),
            (None, _) => {}
        }
        Ok(Members::from_pairs(pairs))
    }

    fn in_array(&self, mut elements: Vec<Jsonb>, element: &str) -> Result<Vec<Jsonb>, ValueError> {
        let Some(index) = path::index(element) else {
            let message = format!("path element at position {} is not an integer: \"{element}\"", self.level);
            return Err(ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        };
        let found = path::position(index, elements.len());
        match (found, self.is_last()) {
            (Some(at), true) => match self.change {
                Change::Delete => {
                    elements.remove(at);
                }
                Change::Replace | Change::Put => {
                    if let Some(value) = elements.get_mut(at) {
                        *value = self.new.clone();
                    }
                }
                Change::Before => elements.insert(at, self.new.clone()),
                Change::After => elements.insert(at + 1, self.new.clone()),
            },
            (Some(at), false) => {
                if let Some(value) = elements.get_mut(at) {
                    self.deeper(value)?;
                }
            }
            // An index before the start adds in front, one after the end adds behind.
            (None, true) if self.change.adds() && index < 0 => elements.insert(0, self.new.clone()),
            (None, true) if self.change.adds() => elements.push(self.new.clone()),
            (None, _) => {}
        }
        Ok(elements)
    }
}
