//! `timestamp with time zone` as microseconds from 2000-01-01 00:00 UTC: input, and what it reads of the session. The
//! types of dates and times are in [`crate::datetime`].

pub use crate::datetime::compat::parse;
pub use crate::datetime::{DateFormat, DateStyle, EPOCH_SECONDS, Now, TimeZone};
