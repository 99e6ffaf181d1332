//! What a session contributes to dates and times: zone, DateStyle, IntervalStyle and the start of the transaction.

use super::zone::{DateFormat, TimeZone};

/// The meaning of `'now'`, `'today'`, `'tomorrow'` and `'yesterday'`: the start of the transaction, in microseconds
/// since 2000-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);

/// The order of the fields of a date that does not tell itself: the second word of `DateStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year
    #[default]
    Mdy,
    /// Day, month, year
    Dmy,
    /// Year, month, day
    Ymd,
}

/// The formats of intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons -3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons`
    PostgresVerbose,
    /// `+1-2 -3 +4:05:06`
    SqlStandard,
    /// `P1Y2M-3DT4H5M6S`
    Iso8601,
}

/// The settings and the time that text forms and zoned arithmetic read.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// `TimeZone`, with the format of `DateStyle`
    pub zone: &'a TimeZone,
    /// The order of `DateStyle`
    pub order: DateOrder,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// The start of the transaction
    pub now: Now,
}

impl<'a> Session<'a> {
    /// A session in a zone, with the order that the zone's style has and PostgreSQL's style of intervals.
    pub fn new(zone: &'a TimeZone, now: Now) -> Session<'a> {
        let order = if zone.style().day_first { DateOrder::Dmy } else { DateOrder::Mdy };
        Session { zone, order, interval_style: IntervalStyle::Postgres, now }
    }

    /// The format of dates.
    pub(super) fn format(&self) -> DateFormat {
        self.zone.style().format
    }

    /// Whether output puts the day before the month.
    pub(super) fn day_first(&self) -> bool {
        self.order == DateOrder::Dmy
    }

    /// The local time of the start of the transaction, in microseconds from 2000-01-01.
    pub(super) fn local_now(&self) -> i64 {
        self.zone.to_local(self.now.0)
    }
}

/// What the reading of a literal took from the session. A literal that took nothing has one value in every session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The start of the transaction
    pub now: bool,
    /// The time zone
    pub zone: bool,
    /// The order of `DateStyle`
    pub order: bool,
    /// `IntervalStyle`
    pub interval_style: bool,
}

impl Uses {
    /// Whether anything was taken.
    pub fn any(self) -> bool {
        self.now || self.zone || self.order || self.interval_style
    }
}
