//! The keys of an access path: expressions to bytes. An array stands for a key with each of its elements.

use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use pgtypes::Datum;

/// The keys that begin with `prefix` and have these values, `None` for NULL. There is none if an expression is NULL.
/// `put` appends the value of the column at a place; false: no key has it.
pub(super) fn keys_of<'e>(
    values: impl Iterator<Item = Option<&'e Expr>>,
    prefix: Vec<u8>,
    env: &Env<'_>,
    put: impl Fn(&Datum, usize, &mut Vec<u8>) -> bool,
) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut keys = vec![prefix];
    for (at, value) in values.enumerate() {
        let fits = match value {
            Some(Expr::Each(array)) => {
                let array = eval(array, &[], env)?;
                let Datum::Array(array) = &*array else { return Ok(Vec::new()) };
                let with = |key: &Vec<u8>, element: &Datum| {
                    let mut key = key.clone();
                    (!element.is_null() && put(element, at, &mut key)).then_some(key)
                };
                keys = keys.iter().flat_map(|key| array.elements().iter().filter_map(|e| with(key, e))).collect();
                true
            }
            Some(value) => {
                let value = eval(value, &[], env)?;
                !value.is_null() && keys.iter_mut().all(|key| put(&value, at, key))
            }
            None => keys.iter_mut().all(|key| put(&Datum::Null, at, key)),
        };
        if !fits {
            return Ok(Vec::new());
        }
    }
    Ok(keys)
}
