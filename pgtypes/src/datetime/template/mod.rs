//! Templates of `to_char`, `to_date` and `to_timestamp`: patterns with their modifiers, and text between them.

mod assemble;
mod parse;
mod patterns;
mod scan;
mod write;

use parse::{Node, nodes};
use patterns::{Convention, Field, Pattern, find};
