//! PostgreSQL's dates and times: `date`, `time`, `timetz`, `timestamp`, `timestamptz` and `interval`.
//!
//! Text and binary forms, order, keys, arithmetic and functions are those of PostgreSQL 15. What depends on the session
//! takes a [`Session`]: zone, DateStyle, IntervalStyle and the start of the transaction. Nothing reads a clock.
//!
//! # Modules
//!
//! - `units`, `calendar`, `zone`, `abbreviations`, `session`: the calendar, time zones, settings
//! - `value`, `codec`, `typmod`: values and their order, binary forms and keys, precisions and fields
//! - `scan`, `words`, `number`, `mask`, `decoder`, `read_*`, `iso_interval`, `input`: text input
//! - `output`: text output
//! - `convert`, `arithmetic`, `interval_math`, `age`, `extract`, `truncate`, `make`, `at_zone`, `series`: casts,
//!   operators and functions
//! - `template`: `to_char`, `to_date`, `to_timestamp`
//! - `compat`: timestamps as bare microseconds
//! - `fault`: errors

mod abbreviations;
mod age;
mod arithmetic;
mod at_zone;
mod calendar;
mod codec;
mod convert;
mod decoder;
mod extract;
mod fault;
mod input;
mod interval_math;
mod iso_interval;
mod make;
mod mask;
mod number;
mod output;
mod read_clock;
mod read_interval;
mod read_moment;
mod scan;
mod series;
mod session;
mod template;
mod truncate;
mod typmod;
mod units;
mod value;
mod words;
mod zone;

pub use codec::INTERVAL_KEY;
pub use convert::overlaps;
pub use extract::Extracted;
pub use input::Reading;
pub use make::IntervalArgs;
pub use series::Series;
pub use session::{DateOrder, IntervalStyle, Now, Session, Uses};
pub use typmod::{IntervalFields, IntervalTypmod, MAX_PRECISION, PrecisionOf, check_precision};
pub use value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz};
pub use words::Unit;
pub use zone::{DateFormat, DateStyle, EPOCH_SECONDS, TimeZone};

pub(crate) mod compat;

#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod session_tests;
