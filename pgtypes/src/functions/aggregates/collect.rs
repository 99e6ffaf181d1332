//! Aggregates that collect all values: texts, bytes, arrays. Their size is bounded as that of a value.

use crate::datum::{Array, ArrayOfArrays, Datum, MAX_BYTES, MAX_ELEMENTS, too_many_bytes, too_many_elements};
use crate::error::ValueError;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::functions::arrays::element_size;
use crate::oid::Oid;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::text::limit::check_growth;

type FromBytes = fn(Vec<u8>) -> Result<Datum, ValueError>;

/// `string_agg`, of texts or of bytes: the values with each one's delimiter before it, but the first one's. NULL is
/// left out with its delimiter.
#[derive(Debug)]
pub(super) struct Joined {
    bytes: Option<Vec<u8>>,
    result: FromBytes,
}

impl Joined {
    pub(super) fn texts() -> Joined {
        let text = |bytes| match String::from_utf8(bytes) {
            Ok(text) => Ok(Datum::text(text)),
            Err(_) => Err(ValueError::internal("a text is no UTF-8")),
        };
        Joined { bytes: None, result: text }
    }

    pub(super) fn bytes() -> Joined {
        Joined { bytes: None, result: |bytes| Ok(Datum::Bytes(bytes.into())) }
    }
}

fn bytes<'a>(args: &Args<'a>, at: usize) -> Result<&'a [u8], ValueError> {
    match args.get(at) {
        Datum::Null => Ok(&[]),
        Datum::Bytes(bytes) => Ok(bytes),
        _ => args.text(at).map(str::as_bytes),
    }
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), ValueError> {
    check_growth(out.len(), bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

impl Aggregate for Joined {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        if args.is_null(0) {
            return Ok(());
        }
        match &mut self.bytes {
            None => self.bytes = Some(bytes(args, 0)?.to_vec()),
            Some(out) => {
                push(out, bytes(args, 1)?)?;
                push(out, bytes(args, 0)?)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        self.bytes.take().map_or(Ok(Datum::Null), self.result)
    }

    fn memory(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::capacity)
    }
}

/// Values that are kept, and their memory.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) values: Vec<Datum>,
    payload: usize,
}

impl Kept {
    pub(super) fn push(&mut self, value: &Datum) {
        self.payload += value.memory() - size_of::<Datum>();
        self.values.push(value.clone());
    }

    pub(super) fn memory(&self) -> usize {
        self.payload + self.values.capacity() * size_of::<Datum>()
    }
}

/// `array_agg` of values that are no arrays, NULL among them.
#[derive(Debug)]
pub(super) struct Elements {
    element: Oid,
    kept: Kept,
    /// The bytes of the array in PostgreSQL.
    size: usize,
}

impl Elements {
    pub(super) fn new(result: SqlType) -> Elements {
        let element = result.element().unwrap_or(SqlType::UNKNOWN).oid;
        Elements { element, kept: Kept::default(), size: 0 }
    }
}

impl Aggregate for Elements {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        self.size += element_size(args.get(0), SqlType::new(self.element));
        if self.kept.values.len() >= MAX_ELEMENTS {
            return Err(too_many_elements());
        }
        if self.size > MAX_BYTES {
            return Err(too_many_bytes());
        }
        self.kept.push(args.get(0));
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        let values = std::mem::take(&mut self.kept).values;
        Ok(if values.is_empty() { Datum::Null } else { Datum::Array(Box::new(Array::of(self.element, values))) })
    }

    fn memory(&self) -> usize {
        self.kept.memory()
    }
}

/// `array_agg` of arrays.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    arrays: Option<ArrayOfArrays>,
    memory: usize,
    /// The bytes of the array in PostgreSQL.
    size: usize,
}

/// The array of arrays of one shape, as `array_agg` makes it; an empty one without any.
///
/// # Errors
/// 22004 for NULL, 2202E for an empty array or one of another shape, 54000 if it grows too large.
pub fn array_of_arrays(element: SqlType, values: &[Datum]) -> Result<Datum, ValueError> {
    let mut arrays = Arrays::default();
    for value in values {
        match value {
            Datum::Array(array) => arrays.push(array)?,
            _ => return Err(null_array()),
        }
    }
    Ok(arrays.take()?.unwrap_or_else(|| Datum::Array(Box::new(Array::empty(element.oid)))))
}

fn null_array() -> ValueError {
    ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")
}

impl Arrays {
    fn push(&mut self, array: &Array) -> Result<(), ValueError> {
        match &mut self.arrays {
            None => self.arrays = Some(ArrayOfArrays::new(array)?),
            Some(arrays) => arrays.push(array)?,
        }
        self.memory += array.memory();
        let element = SqlType::new(array.element());
        self.size += array.elements().iter().map(|value| element_size(value, element)).sum::<usize>();
        if self.size > MAX_BYTES { Err(too_many_bytes()) } else { Ok(()) }
    }

    /// The array; `None` if there is no array in it.
    fn take(&mut self) -> Result<Option<Datum>, ValueError> {
        let array = self.arrays.take().map(ArrayOfArrays::finish).transpose()?;
        Ok(array.map(|array| Datum::Array(Box::new(array))))
    }
}

impl Aggregate for Arrays {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        if args.is_null(0) {
            return Err(null_array());
        }
        self.push(args.array(0)?)
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(self.take()?.unwrap_or_default())
    }

    fn memory(&self) -> usize {
        self.memory
    }
}
