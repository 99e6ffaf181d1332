//! Values as bytes: memory-comparable keys ([`key`]), and the compact form in rows ([`stored`]).
//!
//! # Layers
//!
//! 1. `key`, `stored`: the two forms

pub mod key;
pub mod stored;

/// Bytes that no value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Takes `count` bytes off the front of `input`.
pub(crate) fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    match input.split_at_checked(count) {
        Some((taken, rest)) => {
            *input = rest;
            Ok(taken)
        }
        None => Err(Malformed("cut short")),
    }
}

#[cfg(test)]
mod tests;
