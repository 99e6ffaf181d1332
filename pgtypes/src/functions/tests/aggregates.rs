//! Aggregates compute what PostgreSQL computes: `golden_aggregates.txt`.
//!
//! A line `# OID name(types) -> type`, below it a group a line: its rows, then the result, separated by tabs. The
//! direct arguments of an ordered-set aggregate are before the rows. The fields of a row are separated by `|`, which
//! is `\p` in a field; the rest is as in the files of functions. The rows of ordered-set aggregates are in order.

use super::*;

fn values<'a>(types: &[SqlType], row: &str, env: &IoEnv<'_>) -> Result<Vec<Cow<'a, Datum>>, ValueError> {
    let parse = |(ty, field): (&SqlType, &str)| match field {
        "\\N" => Ok(Cow::Owned(Datum::Null)),
        field => wire::parse(*ty, &unescape(&field.replace("\\p", "|")), env).map(Cow::Owned),
    };
    types.iter().zip(row.split('|')).map(parse).collect()
}

fn group((row, types, result): &Head, mut rows: &[&str], env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let (direct_count, start) = match row.run {
        Run::Aggregate(start) => (0, start),
        Run::OrderedSet(direct, start) => (usize::from(direct), start),
        _ => panic!("{} is no aggregate", row.name),
    };
    let (direct_types, types_of_rows) = types.split_at(direct_count);
    let mut direct = Vec::new();
    if direct_count > 0 {
        let (first, rest) = rows.split_first().unwrap();
        (direct, rows) = (values(direct_types, first, env)?, rest);
    }
    let mut state = start(types, *result);
    for fields in rows {
        let values = values(types_of_rows, fields, env)?;
        let args = Args::new(&values, types_of_rows, *result, env);
        if !row.is_strict || !args.any_null() {
            state.add(&args)?;
        }
    }
    assert!(state.memory() < 1_000_000);
    state.finish(&Args::new(&direct, direct_types, *result, env))
}

#[test]
fn results_of_aggregates_are_those_of_postgresql() {
    let zone = TimeZone::find("America/New_York").unwrap();
    let env = IoEnv::new(&zone, Now(0));
    let text = std::fs::read_to_string(folder().join("golden_aggregates.txt")).unwrap();
    let mut head: Option<Head> = None;
    let mut wrong = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            head = Some(head_of(heading));
            continue;
        }
        let head = head.as_ref().unwrap();
        let mut rows: Vec<&str> = line.split('\t').collect();
        let expected = rows.pop().unwrap();
        let got = match group(head, &rows, &env) {
            Ok(value) => show(&value, head.2, &env),
            Err(error) => format!("!{} {}", error.code().0, escape(error.message())),
        };
        if got != expected {
            writeln!(wrong, "{}({}): got {got}, PostgreSQL {expected}", head.0.name, rows.join(", ")).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
