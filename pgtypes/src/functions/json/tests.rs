//! Rows as JSON, and errors with hints: what golden files cannot have.

use crate::datum::{Array, Datum, Record};
use crate::functions::args::Args;
use crate::functions::{Run, find};
use crate::oid::Oid;
use crate::timestamp::{Now, TimeZone};
use crate::{IoEnv, SqlType, ValueError, wire};
use std::borrow::Cow;

fn call(oid: u32, values: Vec<(SqlType, Datum)>) -> Result<String, ValueError> {
    let zone = TimeZone::find("UTC").unwrap();
    let env = IoEnv::new(&zone, Now(0));
    let row = find(Oid(oid)).unwrap();
    let (types, values): (Vec<SqlType>, Vec<Cow<'_, Datum>>) =
        values.into_iter().map(|(ty, value)| (ty, Cow::Owned(value))).unzip();
    let Run::Scalar(run) = row.run else { panic!("{}", row.name) };
    run(&Args::new(&values, &types, row.result, &env)).map(|value| wire::show(&value, row.result, &env))
}

fn record(fields: Vec<(SqlType, Datum)>) -> (SqlType, Datum) {
    (SqlType::RECORD, Datum::Record(Box::new(Record::new(fields))))
}

fn int(value: i64) -> (SqlType, Datum) {
    (SqlType::INT4, Datum::Int(value))
}

fn text(value: &str) -> (SqlType, Datum) {
    (SqlType::TEXT, Datum::text(value))
}

/// `row(1, row(2, 'x'), array[1,2], null)`
fn nested() -> (SqlType, Datum) {
    let array = Array::of(SqlType::INT4.oid, vec![Datum::Int(1), Datum::Int(2)]);
    let array = (SqlType::INT4_ARRAY, Datum::Array(Box::new(array)));
    record(vec![int(1), record(vec![int(2), text("x")]), array, (SqlType::INT4, Datum::Null)])
}

#[test]
fn rows_are_objects() {
    let compact = r#"{"f1":1,"f2":{"f1":2,"f2":"x"},"f3":[1,2],"f4":null}"#;
    let lines = compact.replace(",\"f2\":{", ",\n \"f2\":{").replace(",\"f3", ",\n \"f3").replace(",\"f4", ",\n \"f4");
    let yes = || (SqlType::BOOL, Datum::Bool(true));
    assert_eq!(call(3155, vec![nested()]).unwrap(), compact);
    assert_eq!(call(3156, vec![nested(), yes()]).unwrap(), lines);
    assert_eq!(call(3176, vec![nested()]).unwrap(), compact);
    let spaced = r#"{"f1": 1, "f2": {"f1": 2, "f2": "x"}, "f3": [1, 2], "f4": null}"#;
    assert_eq!(call(3787, vec![nested()]).unwrap(), spaced);
    assert_eq!(call(3787, vec![record(vec![])]).unwrap(), "{}");
    assert_eq!(call(3198, vec![record(vec![int(1)]), int(2)]).unwrap(), r#"[{"f1":1}, 2]"#);
    let rows = [record(vec![int(1), int(2)]).1, record(vec![int(3), int(4)]).1];
    let array = Datum::Array(Box::new(Array::of(SqlType::RECORD.oid, rows.to_vec())));
    let text = call(3154, vec![(SqlType::RECORD.array().unwrap(), array), yes()]).unwrap();
    assert_eq!(text, "[{\"f1\":1,\"f2\":2},\n {\"f1\":3,\"f2\":4}]");
}

#[test]
fn refused_members_have_hints() {
    let null = || (SqlType::TEXT, Datum::Null);
    let error = |oid, values| {
        let error = call(oid, values).unwrap_err();
        (error.code().0, error.message().to_owned(), error.hint().map(str::to_owned))
    };
    let hint = Some("Object keys should be text.".to_owned());
    let place = "argument 3 cannot be null".to_owned();
    assert_eq!(error(3200, vec![int(1), null(), null(), int(2)]), ("22023", place, hint));
    let place = "argument 3: key must not be null".to_owned();
    assert_eq!(error(3273, vec![int(1), null(), null(), int(2)]), ("22023", place, None));
    for (oid, name) in [(3200, "json_build_object"), (3273, "jsonb_build_object")] {
        let hint = format!("The arguments of {name}() must consist of alternating keys and values.");
        let message = "argument list must have even number of elements".to_owned();
        assert_eq!(error(oid, vec![int(1)]), ("22023", message, Some(hint)));
        let message = "key value must be scalar, not array, composite, or json".to_owned();
        assert_eq!(error(oid, vec![nested(), int(1)]), ("22023", message, None));
    }
}
