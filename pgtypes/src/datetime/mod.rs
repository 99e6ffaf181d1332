//! PostgreSQL's dates and times: `date`, `time`, `timetz`, `timestamp`, `timestamptz` and `interval`.
//!
//! Text and binary forms, order, keys, arithmetic and functions are those of PostgreSQL 15. What depends on the session
//! takes a [`Session`]: zone, DateStyle, IntervalStyle and the start of the transaction. Nothing reads a clock.
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 1. `units`, `mask`, `words`: lengths of time, sets of fields, words and units
//! 2. `calendar`, `fault`: the calendar, errors
//! 3. `zone`, `number`, `value`, `scan`: time zones, numbers in texts, the values and their order, tokens
//! 4. `abbreviations`, `session`, `typmod`, `codec`, `parts`: abbreviations of zones, settings, precisions and fields,
//!    binary forms and keys, sums of intervals
//! 5. `decoder`, `iso_interval`, `output`: dates and times in reading, intervals of ISO 8601, text output
//! 6. `read_moment`, `read_clock`, `read_interval`: dates and timestamps, times, intervals
//! 7. `input`, `compat`: text input, timestamps as bare microseconds
//! 8. `convert`, `interval_math`, `arithmetic`, `age`, `extract`, `at_zone`, `series`: casts, operators, functions
//! 9. `truncate`, `make`: `date_trunc` and `date_bin`, values of fields
//! 10. `listing`, `template`: lists of zones; `to_char`, `to_date`, `to_timestamp`

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
mod listing;
mod make;
mod mask;
mod number;
mod output;
mod parts;
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
pub use listing::{ZoneEntry, zone_abbreviations, zones};
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
