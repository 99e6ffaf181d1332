//! The parts of the runner without servers: trees, comparisons, rules.

use crate::compare::{Class, compare};
use crate::report::normalized;
use crate::rules;
use crate::tree::{Kind, Parameter, Part, Tree};
use crate::wire::{Answer, Column, ServerError};

fn answer(rows: &[&str]) -> Answer {
    let row = |text: &&str| vec![Some(text.as_bytes().to_vec())];
    let columns = vec![Column { name: "a".to_string(), type_oid: 25, modifier: -1 }];
    Answer { columns, rows: rows.iter().map(row).collect(), tags: vec!["SELECT 1".to_string()], ..Answer::default() }
}

fn error(code: &str, message: &str, position: &str) -> Answer {
    let [code, message, position] = [code, message, position].map(str::to_string);
    Answer { error: Some(ServerError { code, message, position, severity: "ERROR".to_string() }), ..Answer::default() }
}

fn class(expected: &Answer, found: &Answer, ordered: bool) -> Option<Class> {
    compare(expected, found, ordered).map(|difference| difference.class)
}

/// Whether a rule knows the difference of two answers.
fn known(text: &str, expected: &Answer, found: &Answer) -> bool {
    let difference = compare(expected, found, true).expect("a difference");
    rules::known(text, &difference, &[expected.clone(), found.clone()]).is_some()
}

#[test]
fn each_class_is_found() {
    let right = answer(&["x", "y"]);
    assert_eq!(class(&right, &right, true), None);
    assert_eq!(class(&right, &answer(&["y", "x"]), false), None, "a multiset");
    assert_eq!(class(&right, &answer(&["y", "x"]), true), Some(Class::Rows));
    assert_eq!(class(&right, &answer(&["x"]), false), Some(Class::Rows));
    assert_eq!(class(&answer(&["x", "x", "y"]), &answer(&["x", "y", "y"]), false), Some(Class::Rows));
    let mut other = right.clone();
    other.columns[0].modifier = 5;
    assert_eq!(class(&right, &other, true), Some(Class::Types));
    other = Answer { parameters: vec![23], ..right.clone() };
    assert_eq!(class(&right, &other, true), Some(Class::Types));
    other = Answer { tags: vec!["SELECT 2".to_string()], ..right.clone() };
    assert_eq!(class(&right, &other, true), Some(Class::Tag));
    let wrong = error("22012", "division by zero", "");
    assert_eq!(class(&wrong, &right, true), Some(Class::Accepted));
    assert_eq!(class(&right, &wrong, true), Some(Class::Refused));
    assert_eq!(class(&wrong, &error("22003", "division by zero", ""), true), Some(Class::SqlState));
    assert_eq!(class(&wrong, &error("22012", "zero", ""), true), Some(Class::Message));
    assert_eq!(class(&wrong, &error("22012", "division by zero", "3"), true), Some(Class::Position));
    assert_eq!(class(&wrong, &error("XX000", "bug", ""), true), Some(Class::Fault));
    assert_eq!(class(&wrong, &Answer { is_lost: true, ..Answer::default() }, true), Some(Class::Fault));
}

#[test]
fn errors_of_values_depend_on_rows() {
    let is_of_value = |code, message| error(code, message, "").error.unwrap().is_of_value();
    assert!(is_of_value("22012", "division by zero"));
    assert!(is_of_value("0A000", "unit \"timezone\" not supported for type interval"));
    assert!(is_of_value("0A000", "removing elements from multidimensional arrays is not supported"));
    assert!(!is_of_value("0A000", "this DEFAULT is not supported yet"));
    assert!(!is_of_value("42883", "function extract(text, date) does not exist"));
}

#[test]
fn parameters_are_numbered_by_their_place() {
    let parameter = |value: &str| Part::Parameter(Parameter { declared: 0, value: Some(value.to_string()) });
    let tree = Tree::list(vec![Tree::expression(vec![parameter("1")]), Tree::expression(vec![parameter("2")])]);
    let (text, parameters) = tree.render();
    assert_eq!((&*text, parameters.len()), ("$1, $2", 2));
    let smaller: Vec<String> = tree.smaller().iter().map(|tree| tree.render().0).collect();
    assert_eq!(smaller, ["$1", "$1", "NULL, $1", "$1, NULL"]);
}

#[test]
fn a_tree_becomes_smaller_by_one_piece() {
    let sum = Tree::expression(vec![Tree::atom("1").into(), " + ".into(), Tree::atom("2").into()]);
    let filter = Tree::optional(vec![" WHERE ".into(), Tree::atom("true").into()]);
    let tree = Tree::fixed(vec!["SELECT ".into(), sum.into(), filter.into()]);
    let smaller: Vec<String> = tree.smaller().iter().map(|tree| tree.render().0).collect();
    for expected in ["SELECT 1 WHERE true", "SELECT 2 WHERE true", "SELECT 1 + 2", "SELECT 1 + 2 WHERE NULL"] {
        assert!(smaller.iter().any(|text| text == expected), "{expected}: {smaller:?}");
    }
    assert!(Tree { kind: Kind::List, parts: vec!["a".into()] }.smaller().is_empty(), "one item stays");
}

#[test]
fn statements_of_one_form_are_one_group() {
    assert_eq!(normalized("SELECT abs(-12.5), 'it''s' || \"x\""), normalized("SELECT abs(-3), 'a''b' || \"long\""));
    assert_ne!(normalized("SELECT abs(1)"), normalized("SELECT abs(-1)"));
}

#[test]
fn a_rule_hides_nothing_else() {
    let root = answer(&["0.46415888336127786"]);
    assert!(known("SELECT cbrt('0.1');", &root, &answer(&["0.4641588833612779"])));
    assert!(!known("SELECT cbrt('0.1');", &root, &answer(&["0.46415888336"])));
    assert!(!known("SELECT sqrt('0.1');", &root, &answer(&["0.4641588833612779"])));
    let bytes =
        |values: &[&str]| known("SELECT a::\"char\"::character FROM t;", &answer(values), &answer(&["b", "a", ""]));
    assert!(bytes(&["a", "\0", "b"]), "in another order");
    assert!(!bytes(&["a", "c", "b"]));
    let ambiguous = |call: &str| error("42725", &format!("function {call} is not unique"), "8");
    assert!(known("SELECT trunc(NULL);", &ambiguous("trunc(unknown)"), &answer(&["1"])));
    assert!(!known("SELECT abs(NULL);", &ambiguous("abs(unknown)"), &answer(&["1"])));
    let (duplicate, null) = (error("23505", "duplicate key", ""), error("23502", "null value", ""));
    assert!(known("INSERT INTO t VALUES (1), (NULL);", &duplicate, &null));
    assert!(!known("UPDATE t SET id = 1;", &duplicate, &null));
    assert!(!known("INSERT INTO t VALUES (1), (NULL);", &duplicate, &answer(&[])));
    let mut modified = answer(&["x"]);
    modified.columns[0].modifier = 7;
    assert!(known("SELECT COALESCE('x'::char(3), NULL);", &modified, &answer(&["x"])));
    assert!(!known("SELECT COALESCE('x'::char(3), NULL);", &answer(&["x"]), &modified));
    assert!(!known("SELECT COALESCE('x'::char(3), NULL); -- Extended", &modified, &answer(&["x"])));
}

#[test]
fn the_flag_of_nulls_is_the_only_byte_of_an_array_that_may_differ() {
    let array = |flag: u8, last: u8| {
        let bytes = vec![0, 0, 0, 1, 0, 0, 0, flag, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, last];
        let columns = vec![Column { name: "a".to_string(), type_oid: 1009, modifier: -1 }];
        Answer { columns, rows: vec![vec![Some(bytes)]], ..Answer::default() }
    };
    let text = "SELECT (a)[1:2] FROM t; -- Binary";
    assert!(known(text, &array(1, b'x'), &array(0, b'x')));
    assert!(!known(text, &array(0, b'x'), &array(1, b'x')), "Cortado's flag is right");
    assert!(!known(text, &array(1, b'x'), &array(0, b'y')));
    assert!(!known("SELECT a FROM t; -- Binary", &array(1, b'x'), &array(0, b'x')));
}

#[test]
fn known_differences_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
    let words = std::fs::read_to_string(path).unwrap();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for documented in rules::documented() {
        assert!(words.contains(documented), "docs/compatibility.md does not say: {documented}");
    }
}
