//! Parts of a `jsonb` value: fields, elements, paths, and the sets of keys and members.

use super::path::{self, Path};
use super::value::Jsonb;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

fn refused(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Jsonb {
    /// `-> text`: the value of a key of an object.
    pub fn field(&self, key: &str) -> Option<&Jsonb> {
        match self {
            Jsonb::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// `-> integer`: an element of an array, from its end if the index is negative. A scalar is its own only element.
    pub fn element(&self, index: i32) -> Option<&Jsonb> {
        match self {
            Jsonb::Array(elements) => elements.get(path::position(index, elements.len())?),
            Jsonb::Object(_) => None,
            scalar => path::position(index, 1).map(|_| scalar),
        }
    }

    /// `->> text`
    pub fn field_text(&self, key: &str) -> Option<String> {
        self.field(key)?.to_text()
    }

    /// `->> integer`
    pub fn element_text(&self, index: i32) -> Option<String> {
        self.element(index)?.to_text()
    }

    /// `#>` and `jsonb_extract_path`: the value at a path. A NULL in the path gives NULL.
    pub fn at_path(&self, path: &Path<'_>) -> Option<&Jsonb> {
        // A NULL counts even where the path leads nowhere, with the same result.
        path.iter().try_fold(self, |value, element| match value {
            Jsonb::Array(_) => value.element(path::index((*element)?)?),
            _ => value.field((*element)?),
        })
    }

    /// `#>>` and `jsonb_extract_path_text`
    pub fn at_path_text(&self, path: &Path<'_>) -> Option<String> {
        self.at_path(path)?.to_text()
    }

    /// The value as text: a string without quotes, `None` for `null`.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Jsonb::Null => None,
            Jsonb::String(text) => Some(text.to_string()),
            value => Some(value.to_string()),
        }
    }

    /// `jsonb_typeof`
    pub fn type_name(&self) -> &'static str {
        match self {
            Jsonb::Null => "null",
            Jsonb::Bool(_) => "boolean",
            Jsonb::Number(_) => "number",
            Jsonb::String(_) => "string",
            Jsonb::Array(_) => "array",
            Jsonb::Object(_) => "object",
        }
    }

    /// `jsonb_array_length`. 22023 if it is not an array.
    pub fn array_length(&self) -> Result<usize, ValueError> {
        match self {
            Jsonb::Array(elements) => Ok(elements.len()),
            Jsonb::Object(_) => Err(refused("cannot get array length of a non-array".to_owned())),
            _ => Err(refused("cannot get array length of a scalar".to_owned())),
        }
    }

    /// `jsonb_object_keys`. 22023 if it is not an object.
    pub fn object_keys(&self) -> Result<Vec<&str>, ValueError> {
        match self {
            Jsonb::Object(members) => Ok(members.iter().map(|(key, _)| key).collect()),
            Jsonb::Array(_) => Err(refused("cannot call jsonb_object_keys on an array".to_owned())),
            _ => Err(refused("cannot call jsonb_object_keys on a scalar".to_owned())),
        }
    }

    /// `jsonb_each`. 22023 if it is not an object.
    pub fn each(&self) -> Result<Vec<(&str, &Jsonb)>, ValueError> {
        self.members_for("jsonb_each")
    }

    /// `jsonb_each_text`. 22023 if it is not an object.
    pub fn each_text(&self) -> Result<Vec<(&str, Option<String>)>, ValueError> {
        let members = self.members_for("jsonb_each_text")?;
        Ok(members.into_iter().map(|(key, value)| (key, value.to_text())).collect())
    }

    fn members_for(&self, function: &str) -> Result<Vec<(&str, &Jsonb)>, ValueError> {
        match self {
            Jsonb::Object(members) => Ok(members.iter().collect()),
            _ => Err(refused(format!("cannot call {function} on a non-object"))),
        }
    }

    /// `jsonb_array_elements`. 22023 if it is not an array.
    pub fn array_elements(&self) -> Result<&[Jsonb], ValueError> {
        match self {
            Jsonb::Array(elements) => Ok(elements),
            Jsonb::Object(_) => Err(refused("cannot extract elements from an object".to_owned())),
            _ => Err(refused("cannot extract elements from a scalar".to_owned())),
        }
    }

    /// `jsonb_array_elements_text`. 22023 if it is not an array.
    pub fn array_elements_text(&self) -> Result<Vec<Option<String>>, ValueError> {
        Ok(self.array_elements()?.iter().map(Jsonb::to_text).collect())
    }
}
