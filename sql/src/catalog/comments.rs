//! Comments: texts that COMMENT gives to objects and their parts. They mean nothing to statements.
//!
//! The comments of an object, and of its parts, are one record.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::tagged::{self, Fields, Writer};
use crate::codec::CodecError;
use crate::table::ColumnId;

const WHAT: &str = "comments";
const VERSION: u8 = 1;
/// The only tag: a list of comments, each with the fields 1, its part, and 2, its text.
const TEXTS: u64 = 1;

/// What a comment of an object is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The object itself.
    Whole,
    /// A column of a table or of a view.
    Column(ColumnId),
    /// The constraint of a key, which shares its OID with its index.
    Constraint,
}

impl Part {
    fn number(self) -> u64 {
        match self {
            Part::Whole => 0,
            Part::Column(column) => column.0.into(),
            Part::Constraint => u64::from(u16::MAX) + 1,
        }
    }

    fn of_number(number: u64) -> Result<Part, CodecError> {
        match (number, u16::try_from(number)) {
            (0, _) => Ok(Part::Whole),
            (_, Ok(column)) => Ok(Part::Column(ColumnId(column))),
            (number, _) if number == Part::Constraint.number() => Ok(Part::Constraint),
            _ => Err(CodecError::new(WHAT, "unknown part")),
        }
    }
}

/// The comments of an object: never empty.
pub(crate) type Comments = BTreeMap<Part, String>;

/// Encodes the record of an object's comments.
pub(super) fn encode(comments: &Comments) -> Bytes {
    let mut out = Writer::default();
    let texts: Vec<(&Part, &String)> = comments.iter().collect();
    out.list(TEXTS, &texts, |(part, text), out| {
        out.number(1, part.number());
        out.text(2, text);
    });
    tagged::record(VERSION, &out).into()
}

/// Decodes the record of an object's comments.
pub(super) fn decode(bytes: &[u8]) -> Result<Comments, CodecError> {
    let fields = Fields::read(tagged::of_record(VERSION, bytes)?, TEXTS)?;
    let texts = fields.list(TEXTS, |bytes| {
        let fields = Fields::read(bytes, 2)?;
        Ok((Part::of_number(fields.number(1)?)?, fields.text(2)?))
    })?;
    if texts.is_empty() || texts.iter().any(|(_, text)| text.is_empty()) {
        return Err(CodecError::new(WHAT, "without a text"));
    }
    Ok(texts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_as_they_were_written() {
        let comments: Comments = [
            (Part::Whole, "a table".to_owned()),
            (Part::Column(ColumnId(3)), "its column".to_owned()),
            (Part::Constraint, "é".to_owned()),
        ]
        .into();
        let bytes = encode(&comments);
        assert_eq!(decode(&bytes).unwrap(), comments);
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err());
        }
        assert!(decode(&encode(&Comments::new())).is_err());
    }
}
