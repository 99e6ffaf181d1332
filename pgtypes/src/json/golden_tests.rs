//! Cases that PostgreSQL answered: parsing, functions, operators, casts.

use super::*;
use crate::error::ValueError;
use crate::golden::{self, Args, Outcome};

fn some(value: impl ToString) -> Outcome {
    Ok(Some(value.to_string()))
}

fn lines<T: ToString>(rows: impl IntoIterator<Item = Option<T>>) -> Outcome {
    let rows: Vec<String> = rows.into_iter().map(|row| row.map_or("<NULL>".to_owned(), |v| v.to_string())).collect();
    Ok((!rows.is_empty()).then(|| rows.join("\n")))
}

fn members<K: ToString, V: ToString>(rows: impl IntoIterator<Item = (K, Option<V>)>) -> Outcome {
    let value = |value: Option<V>| value.map_or("<NULL>".to_owned(), |v| v.to_string());
    lines(rows.into_iter().map(|(k, v)| Some(format!("{} => {}", k.to_string(), value(v)))))
}

fn shown<T: ToString>(value: Option<T>) -> Outcome {
    Ok(value.map(|value| value.to_string()))
}

fn shown_json(value: Option<Json>) -> Outcome {
    Ok(value.map(|value| value.as_str().to_owned()))
}

fn json(function: &str, args: &Args) -> Outcome {
    let json = Json::parse(args.text(0))?;
    match function {
        "json" => some(json.as_str()),
        "json_strip_nulls" => some(json.strip_nulls()?.as_str()),
        "json_typeof" => some(json.type_name()?),
        "json_array_length" => some(json.array_length()?),
        "json_object_keys" => lines(json.object_keys()?.into_iter().map(Some)),
        "json_each" => members(json.each()?.into_iter().map(|(k, v)| (k, Some(v.as_str().to_owned())))),
        "json_each_text" => members(json.each_text()?),
        "json_array_elements" => lines(json.array_elements()?.into_iter().map(|v| Some(v.as_str().to_owned()))),
        "json_array_elements_text" => lines(json.array_elements_text()?),
        "json->text" => shown_json(json.field(args.text(1))?),
        "json->>text" => shown(json.field_text(args.text(1))?),
        "json->int" => shown_json(json.element(args.int(1))?),
        "json->>int" => shown(json.element_text(args.int(1))?),
        "json#>" => shown_json(json.at_path(&args.words(1))?),
        "json#>>" => shown(json.at_path_text(&args.words(1))?),
        _ => panic!("{function}"),
    }
}

fn jsonb(function: &str, args: &Args) -> Outcome {
    let value = Jsonb::parse(args.text(0))?;
    match function {
        "jsonb" => some(value),
        "jsonb_strip_nulls" => some(value.strip_nulls()),
        "jsonb_pretty" => some(value.pretty()?),
        "jsonb_typeof" => some(value.type_name()),
        "jsonb_array_length" => some(value.array_length()?),
        "jsonb_object_keys" => lines(value.object_keys()?.into_iter().map(Some)),
        "jsonb_each" => members(value.each()?.into_iter().map(|(k, v)| (k, Some(v)))),
        "jsonb_each_text" => members(value.each_text()?),
        "jsonb_array_elements" => lines(value.array_elements()?.iter().map(Some)),
        "jsonb_array_elements_text" => lines(value.array_elements_text()?),
        "jsonb->text" => shown(value.field(args.text(1))),
        "jsonb->>text" => shown(value.field_text(args.text(1))),
        "jsonb->int" => shown(value.element(args.int(1))),
        "jsonb->>int" => shown(value.element_text(args.int(1))),
        "jsonb#>" => shown(value.at_path(&args.words(1))),
        "jsonb#>>" => shown(value.at_path_text(&args.words(1))),
        "jsonb::bool" => some(value.to_bool()?),
        "jsonb::numeric" => some(value.to_number("numeric")?),
        "jsonb::int2" => some(value.to_number("smallint")?.to_i16()?),
        "jsonb::int4" => some(value.to_number("integer")?.to_i32()?),
        "jsonb::int8" => some(value.to_number("bigint")?.to_i64()?),
        "jsonb::float8" => some(crate::float::show(value.to_number("double precision")?.to_f64()?)),
        "jsonb?" => some(value.exists(args.text(1))),
        "jsonb?|" => some(value.exists_any(&args.words(1))),
        "jsonb?&" => some(value.exists_all(&args.words(1))),
        _ => edited(function, &value, args),
    }
}

fn edited(function: &str, value: &Jsonb, args: &Args) -> Outcome {
    let new = |at| args.nullable(at).map(Jsonb::parse).transpose();
    match function {
        "jsonb@>" => some(value.contains(&Jsonb::parse(args.text(1))?)),
        "jsonb||" => some(value.concat(&Jsonb::parse(args.text(1))?)?),
        "jsonb_cmp" => some(value.cmp(&Jsonb::parse(args.text(1))?) as i32),
        "jsonb-text" => some(value.delete_key(args.text(1))?),
        "jsonb-text[]" => some(value.delete_keys(&args.words(1))?),
        "jsonb-int" => some(value.delete_element(args.int(1))?),
        "jsonb#-" => some(value.delete_path(&args.words(1))?),
        "jsonb_set" => some(value.set(&args.words(1), &new(2)?.unwrap(), args.bool(3))?),
        "jsonb_insert" => some(value.insert(&args.words(1), &new(2)?.unwrap(), args.bool(3))?),
        "jsonb_set_lax" => some(value.set_lax(&args.words(1), new(2)?.as_ref(), args.bool(3), args.nullable(4))?),
        _ => panic!("{function}"),
    }
}

#[test]
fn answers_are_those_of_postgresql() {
    golden::check(include_str!("golden.tsv"), |function, args| match function {
        "to_json" => some(escape(args.text(0))),
        _ if function.starts_with("jsonb") => jsonb(function, args),
        _ => json(function, args),
    });
}

#[test]
fn parts_are_spaced_as_in_postgresql() {
    assert_eq!(build_array(["1", "\"a\"", "null"]), "[1, \"a\", null]");
    assert_eq!(build_object([("a", "1"), ("b", "[1,2]")]), "{\"a\" : 1, \"b\" : [1,2]}");
    assert_eq!(row_to_json([("f1", "1"), ("f2", "2")], Layout::Compact), "{\"f1\":1,\"f2\":2}");
    assert_eq!(row_to_json([("f1", "1"), ("f2", "2")], Layout::Lines), "{\"f1\":1,\n \"f2\":2}");
    assert_eq!(array_to_json(["[1,2]", "[3,4]"], Layout::Lines), "[[1,2],\n [3,4]]");
    assert_eq!(array_to_json(["1", "2"], Layout::Compact), "[1,2]");
    assert_eq!(json_agg(["1", "2"], false), "[1, 2]");
    assert_eq!(json_agg(["[1]", "[2]"], true), "[[1], \n [2]]");
    assert_eq!(json_object_agg([(Some("1"), "1"), (Some("2"), "1")]).unwrap(), "{ \"1\" : 1, \"2\" : 1 }");
    assert_eq!(json_object(&[(Some("a"), Some("1")), (Some("b"), None)]).unwrap(), "{\"a\" : \"1\", \"b\" : null}");
    assert_eq!(jsonb_object(&[(Some("a"), None)]).unwrap().to_string(), "{\"a\": null}");
}

#[test]
fn null_keys_are_refused() {
    let words = |error: ValueError| (error.code().0, error.message().to_owned());
    let error = json_object_agg([(None, "1")]).unwrap_err();
    assert_eq!(words(error), ("22023", "field name must not be null".to_owned()));
    let error = jsonb_object_agg([(None, Jsonb::Null)]).unwrap_err();
    assert_eq!(words(error), ("22023", "field name must not be null".to_owned()));
    let error = json_object(&[(None, None)]).unwrap_err();
    assert_eq!(words(error), ("22004", "null value not allowed for object key".to_owned()));
}
