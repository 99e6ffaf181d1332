//! Lists of time zones and of their abbreviations: `pg_timezone_names` and `pg_timezone_abbrevs`.

use super::abbreviations::{self, Meaning};
use super::session::Now;
use super::units::SECOND;
use super::value::Interval;
use super::zone::TimeZone;

/// A zone, or an abbreviation, and what it means at a time.
#[derive(Clone, Debug)]
pub struct ZoneEntry {
    /// The name, or the abbreviation in upper case.
    pub name: String,
    /// The abbreviation.
    pub abbreviation: String,
    /// The distance from UTC, positive east of Greenwich.
    pub offset: Interval,
    /// Whether it is daylight saving time.
    pub is_daylight: bool,
}

fn offset(seconds: i64) -> Interval {
    Interval { months: 0, days: 0, micros: seconds * SECOND }
}

/// The zones that are known by name, in the order of their names.
pub fn zones(now: Now) -> Vec<ZoneEntry> {
    let mut names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    let entry = |name: String| {
        let zone = TimeZone::find(&name)?;
        let (abbreviation, is_daylight) = (zone.abbreviation_at(now.0), zone.is_daylight_at(now.0));
        Some(ZoneEntry { name, abbreviation, offset: offset(zone.offset_at(now.0)), is_daylight })
    };
    names.into_iter().filter_map(entry).collect()
}

/// The abbreviations that times may have.
pub fn zone_abbreviations(now: Now) -> Vec<ZoneEntry> {
    let entry = |(name, meaning): &(&str, Meaning)| {
        let (seconds, is_daylight) = match meaning {
            Meaning::Standard(seconds) => (*seconds, false),
            Meaning::Daylight(seconds) => (*seconds, true),
            Meaning::Zone(zone) => {
                let zone = abbreviations::zone_of(zone);
                let seconds = zone.offset_of_abbreviation_at(name, now.0);
                // It is that of summer if the zone has it now, and has it in summer alone.
                let is_now = zone.abbreviation_at(now.0).eq_ignore_ascii_case(name);
                (seconds, is_now && zone.is_daylight_at(now.0))
            }
        };
        let name = name.to_ascii_uppercase();
        ZoneEntry { abbreviation: name.clone(), name, offset: offset(seconds), is_daylight }
    };
    abbreviations::all().iter().map(entry).collect()
}
