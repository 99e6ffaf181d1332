//! Comparisons of rows and enums, whose values have no text form to read. The results are PostgreSQL's.

use std::borrow::Cow;

use crate::datum::{Datum, Record};
use crate::functions::args::Args;
use crate::functions::{Run, named};
use crate::oid::Oid;
use crate::row::IoEnv;
use crate::sql_type::SqlType as T;
use crate::timestamp::{Now, TimeZone};
use crate::wire;

fn call(name: &str, ty: T, values: [Datum; 2]) -> Result<Datum, String> {
    let row = named(name)[0];
    let Run::Scalar(run) = row.run else { panic!("{name} is no function of one value") };
    let zone = TimeZone::find("UTC").unwrap();
    let result = if matches!(row.result, T::ANYENUM | T::ANYARRAY) { ty } else { row.result };
    let values = values.map(Cow::Owned);
    run(&Args::new(&values, &[ty, ty], result, &IoEnv::new(&zone, Now(0))))
        .map_err(|error| format!("{} {}", error.code().0, error.message()))
}

fn row(fields: &[(T, &str)]) -> Datum {
    let zone = TimeZone::find("UTC").unwrap();
    let env = IoEnv::new(&zone, Now(0));
    let field = |(ty, text): &(T, &str)| match *text {
        "NULL" => (*ty, Datum::Null),
        text => (*ty, wire::parse(*ty, text, &env).unwrap()),
    };
    Datum::Record(Box::new(Record::new(fields.iter().map(field).collect())))
}

#[test]
fn rows_compare_field_by_field() {
    let pair = |a, b| row(&[(T::INT4, a), (T::TEXT, b)]);
    let cmp = |a, b| call("btrecordcmp", T::RECORD, [a, b]);
    assert_eq!(cmp(pair("1", "a"), pair("1", "b")), Ok(Datum::Int(-1)));
    assert_eq!(cmp(pair("2", "a"), pair("1", "b")), Ok(Datum::Int(1)));
    assert_eq!(cmp(pair("1", "NULL"), pair("1", "b")), Ok(Datum::Int(1)));
    assert_eq!(cmp(pair("1", "NULL"), pair("1", "NULL")), Ok(Datum::Int(0)));
    let equal = [pair("1", "NULL"), pair("1", "NULL")];
    assert_eq!(call("record_eq", T::RECORD, equal.clone()), Ok(Datum::Bool(true)));
    assert_eq!(call("record_ne", T::RECORD, equal.clone()), Ok(Datum::Bool(false)));
    assert_eq!(call("record_le", T::RECORD, equal), Ok(Datum::Bool(true)));
    let nested = |text| Datum::Record(Box::new(Record::new(vec![(T::RECORD, row(&[(T::TID, text)]))])));
    assert_eq!(cmp(nested("(2,1)"), nested("(10,1)")), Ok(Datum::Int(-1)));
}

#[test]
fn rows_of_other_columns_are_refused_unless_an_earlier_one_decides() {
    let columns = |texts: &[&'static str]| row(&texts.iter().map(|text| (T::INT4, *text)).collect::<Vec<_>>());
    let eq = |a, b| call("record_eq", T::RECORD, [a, b]);
    let count = "42804 cannot compare record types with different numbers of columns".to_owned();
    assert_eq!(eq(columns(&["1", "2"]), columns(&["1", "2", "3"])), Err(count));
    assert_eq!(eq(columns(&["1", "3"]), columns(&["1", "2", "3"])), Ok(Datum::Bool(false)));
    let wide = row(&[(T::INT4, "1"), (T::INT8, "3")]);
    let types = "42804 cannot compare dissimilar column types bigint and integer at record column 2".to_owned();
    assert_eq!(eq(wide, columns(&["1", "2"])), Err(types));
}

#[test]
fn fields_without_an_order_are_refused() {
    let same = |ty, text| [row(&[(ty, text)]), row(&[(ty, text)])];
    let lt = |values| call("record_lt", T::RECORD, values);
    let eq = |values| call("record_eq", T::RECORD, values);
    let missing = |what: &str| Err(format!("42883 could not identify {what}"));
    assert_eq!(lt(same(T::JSON, "{}")), missing("a comparison function for type json"));
    assert_eq!(eq(same(T::JSON, "{}")), missing("an equality operator for type json"));
    assert_eq!(lt(same(T::XID, "1")), missing("a comparison function for type xid"));
    assert_eq!(eq(same(T::XID, "1")), Ok(Datum::Bool(true)));
}

#[test]
fn enums_compare_by_the_order_of_labels() {
    let ty = T::new(Oid(20_000));
    let labels = || [Datum::Int(1), Datum::Int(2)];
    assert_eq!(call("enum_lt", ty, labels()), Ok(Datum::Bool(true)));
    assert_eq!(call("enum_cmp", ty, labels()), Ok(Datum::Int(-1)));
    assert_eq!(call("enum_larger", ty, labels()), Ok(Datum::Int(2)));
    assert_eq!(call("enum_smaller", ty, labels()), Ok(Datum::Int(1)));
}
