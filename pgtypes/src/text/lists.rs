//! `concat`, `concat_ws`, `string_to_array` and `array_to_string`, over values in their text form.

use super::limit::check_growth;
use crate::error::ValueError;

fn joined<'a>(parts: impl Iterator<Item = &'a str>, separator: &str) -> Result<String, ValueError> {
    let mut out = String::new();
    for (at, part) in parts.enumerate() {
        let separator = if at == 0 { "" } else { separator };
        check_growth(out.len(), separator.len() + part.len())?;
        out.push_str(separator);
        out.push_str(part);
    }
    Ok(out)
}

/// `concat`: the arguments that are not NULL. 54000 for a result that is too large.
pub fn concat(arguments: &[Option<&str>]) -> Result<String, ValueError> {
    joined(arguments.iter().flatten().copied(), "")
}

/// `concat_ws`: the arguments that are not NULL, with a separator between them. 54000 for a result that is too large.
pub fn concat_ws(separator: Option<&str>, arguments: &[Option<&str>]) -> Result<Option<String>, ValueError> {
    separator.map(|separator| joined(arguments.iter().flatten().copied(), separator)).transpose()
}

/// `array_to_string` of elements. An element that is NULL is written as `null`, or left out. The elements of an array
/// with more dimensions are those of all its inner arrays. 54000 for a result that is too large.
pub fn array_to_string(elements: &[Option<&str>], separator: &str, null: Option<&str>) -> Result<String, ValueError> {
    joined(elements.iter().filter_map(|element| element.or(null)), separator)
}

/// `string_to_array` and `string_to_table`: the fields between separators, where a field that equals `null` is NULL.
/// With the separator NULL, each character is a field. The empty text has no fields.
pub fn string_to_array<'a>(text: &'a str, separator: Option<&str>, null: Option<&str>) -> Vec<Option<&'a str>> {
    let field = |field| (Some(field) != null).then_some(field);
    match separator {
        _ if text.is_empty() => Vec::new(),
        Some("") => vec![field(text)],
        Some(separator) => text.split(separator).map(field).collect(),
        None => {
            let characters = text.char_indices().filter_map(|(at, c)| text.get(at..at + c.len_utf8()));
            characters.map(field).collect()
        }
    }
}
