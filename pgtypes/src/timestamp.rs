//! `timestamp with time zone` as microseconds from 2000-01-01 00:00 UTC: input, output in the session's zone and date
//! style. The ends of `i64` are the infinities. The types of dates and times are in [`crate::datetime`].

pub use crate::datetime::compat::{INFINITY, NEG_INFINITY, format, in_range, parse, round};
pub use crate::datetime::{DateFormat, DateStyle, EPOCH_SECONDS, Now, TimeZone};
