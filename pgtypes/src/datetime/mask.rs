//! Sets of fields that a text has given. A field that comes twice is an error.

/// `epoch`, `infinity`, `-infinity`
pub(super) const FIXED: u32 = 1;
/// Month
pub(super) const MONTH: u32 = 1 << 1;
/// Year
pub(super) const YEAR: u32 = 1 << 2;
/// Day
pub(super) const DAY: u32 = 1 << 3;
/// A zone
pub(super) const ZONE: u32 = 1 << 5;
/// A zone with daylight saving time
pub(super) const DAYLIGHT_ZONE: u32 = 1 << 6;
/// `am`, `pm`
pub(super) const MERIDIEM: u32 = 1 << 9;
/// Hour
pub(super) const HOUR: u32 = 1 << 10;
/// Minute
pub(super) const MINUTE: u32 = 1 << 11;
/// Second
pub(super) const SECOND: u32 = 1 << 12;
/// Millisecond
pub(super) const MILLISECOND: u32 = 1 << 13;
/// Microsecond
pub(super) const MICROSECOND: u32 = 1 << 14;
/// Day of the year
pub(super) const DAY_OF_YEAR: u32 = 1 << 15;
/// Day of the week
pub(super) const WEEKDAY: u32 = 1 << 16;
/// `ad`, `bc`
pub(super) const ERA: u32 = 1 << 18;
/// Week
pub(super) const WEEK: u32 = 1 << 24;
/// Decade
pub(super) const DECADE: u32 = 1 << 25;
/// Century
pub(super) const CENTURY: u32 = 1 << 26;
/// Millennium
pub(super) const MILLENNIUM: u32 = 1 << 27;
/// `dst` after a zone
pub(super) const DAYLIGHT: u32 = 1 << 28;

/// Seconds with all their fractions
pub(super) const ALL_SECONDS: u32 = SECOND | MILLISECOND | MICROSECOND;
/// A date
pub(super) const DATE: u32 = YEAR | MONTH | DAY;
/// A time
pub(super) const TIME: u32 = HOUR | MINUTE | ALL_SECONDS;
