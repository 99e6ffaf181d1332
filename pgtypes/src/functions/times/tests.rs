//! Functions of the present time, with a time that is given, and what the golden files cannot show.

use std::borrow::Cow;

use super::super::{Args, Run, all, find};
use crate::datum::Datum;
use crate::timestamp::{Now, TimeZone};
use crate::{IoEnv, Oid, SqlType, wire};

/// 2024-07-04 02:00 UTC: still July 3 in New York.
const SUMMER: Now = Now(773_373_600_000_000);
/// 2024-01-15 12:00 UTC
const WINTER: Now = Now(758_635_200_000_000);

fn call(oid: u32, args: &[&str], now: Now) -> String {
    let row = find(Oid(oid)).unwrap();
    let zone = TimeZone::find("America/New_York").unwrap();
    let env = IoEnv::new(&zone, now);
    let values: Vec<Cow<'_, Datum>> =
        args.iter().zip(row.args).map(|(text, ty)| Cow::Owned(wire::parse(*ty, text, &env).unwrap())).collect();
    let args = Args::new(&values, row.args, row.result, &env);
    let Run::Scalar(run) = row.run else { panic!("{} is no scalar", row.name) };
    run(&args).map_or_else(|error| error.to_string(), |value| wire::show(&value, row.result, &env))
}

#[test]
fn the_present_time_is_the_start_of_the_transaction() {
    for oid in [1299, 2647] {
        assert_eq!(call(oid, &[], SUMMER), "2024-07-03 22:00:00-04");
        assert_eq!(call(oid, &[], WINTER), "2024-01-15 07:00:00-05");
    }
}

#[test]
fn ages_count_from_today_in_the_zone_of_the_session() {
    assert_eq!(call(2059, &["2024-07-01 12:00"], SUMMER), "1 day 12:00:00");
    assert_eq!(call(2059, &["2000-02-29"], SUMMER), "24 years 4 mons 3 days");
    assert_eq!(call(2059, &["2025-01-01"], WINTER), "-11 mons -17 days");
    assert_eq!(call(1386, &["2024-07-01 12:00-04"], SUMMER), "1 day 12:00:00");
    assert_eq!(call(1386, &["2024-03-01 00:00-05"], SUMMER), "4 mons 2 days");
    assert_eq!(call(1386, &["-infinity"], SUMMER), "ERROR 22008: timestamp out of range");
}

#[test]
fn a_time_moves_to_the_offset_that_its_zone_has_today() {
    assert_eq!(call(2037, &["Europe/Berlin", "12:00+00"], SUMMER), "14:00:00+02");
    assert_eq!(call(2037, &["Europe/Berlin", "12:00+00"], WINTER), "13:00:00+01");
    assert_eq!(call(2037, &["CET", "12:00+00"], SUMMER), "13:00:00+01");
}

#[test]
fn a_series_ends_after_an_error() {
    let zone = TimeZone::utc();
    let env = IoEnv::new(&zone, SUMMER);
    let row = find(Oid(938)).unwrap();
    let Run::Set(run) = row.run else { panic!("no set") };
    let texts = ["294276-12-31", "infinity", "12:00"];
    let values: Vec<Cow<'_, Datum>> =
        texts.iter().zip(row.args).map(|(text, ty)| Cow::Owned(wire::parse(*ty, text, &env).unwrap())).collect();
    let rows: Vec<_> = run(&Args::new(&values, row.args, row.result, &env)).unwrap().collect();
    assert_eq!(rows.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn arguments_of_another_kind_are_errors() {
    let zone = TimeZone::utc();
    let env = IoEnv::new(&zone, SUMMER);
    let topics = [super::arithmetic::ROWS, super::fields::ROWS, super::forms::ROWS, super::make::ROWS];
    for row in topics.into_iter().flatten() {
        let values = vec![Cow::Owned(Datum::Bool(true)); row.args.len()];
        let Run::Scalar(run) = row.run else { panic!("{} is no scalar", row.name) };
        let error = run(&Args::new(&values, row.args, row.result, &env)).unwrap_err();
        assert_eq!(error.code().0, "XX000", "{}", row.name);
    }
}

#[test]
fn make_interval_has_names_and_values_for_all_arguments() {
    let row = all().find(|row| row.name == "make_interval").unwrap();
    assert_eq!((row.names.len(), row.defaults.len()), (7, 7));
    let zone = TimeZone::utc();
    let env = IoEnv::new(&zone, SUMMER);
    let values: Vec<Cow<'_, Datum>> = row
        .args
        .iter()
        .zip(row.defaults)
        .map(|(ty, text)| Cow::Owned(wire::parse(*ty, text.unwrap(), &env).unwrap()))
        .collect();
    let Run::Scalar(run) = row.run else { panic!("no scalar") };
    let value = run(&Args::new(&values, row.args, row.result, &env)).unwrap();
    assert_eq!(wire::show(&value, SqlType::INTERVAL, &env), "00:00:00");
}
