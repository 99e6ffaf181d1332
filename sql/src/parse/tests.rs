//! Splitting, positions and errors of query strings.

use super::*;

fn error(sql: &str) -> (String, Option<u32>) {
    let error = parse(sql).unwrap_err();
    (format!("{} {}", error.code.0, error.message), error.position)
}

fn shown(sql: &str) -> Vec<String> {
    parse(sql).unwrap().iter().map(|parsed| parsed.tree.to_string()).collect()
}

#[test]
fn splits_statements() {
    assert_eq!(shown("select 1; select 2;").len(), 2);
    assert_eq!(shown(" ;; -- nothing\n /* at all */ ; "), Vec::<String>::new());
    assert_eq!(shown(""), Vec::<String>::new());
}

#[test]
fn syntax_errors_stand_at_a_token() {
    assert_eq!(error("selec 1"), ("42601 syntax error at or near \"selec\"".into(), Some(1)));
    assert_eq!(error("select\n  * frm t"), ("42601 syntax error at or near \"t\"".into(), Some(16)));
    assert_eq!(error("select 'ä' 1"), ("42601 syntax error at or near \"1\"".into(), Some(12)));
    assert_eq!(error("select (1"), ("42601 syntax error at end of input".into(), Some(10)));
    assert_eq!(error("select 1; select 2 2 2"), ("42601 syntax error at or near \"2\"".into(), Some(20)));
}

#[test]
fn what_has_no_end_is_named() {
    assert_eq!(error("select 'abc"), ("42601 unterminated quoted string at or near \"'abc\"".into(), Some(8)));
    assert_eq!(error("select \"abc"), ("42601 unterminated quoted identifier at or near \"\"abc\"".into(), Some(8)));
    assert_eq!(error("select 1 /* x"), ("42601 unterminated /* comment at or near \"/* x\"".into(), Some(10)));
}

#[test]
fn spellings_that_the_parser_lacks() {
    assert_eq!(shown("abort"), ["ROLLBACK"]);
    assert_eq!(shown("ABORT WORK; select 1").len(), 2);
    assert_eq!(
        shown("vacuum analyze t; select 1; vacuum (full, verbose) public.t"),
        ["VACUUM t", "SELECT 1", "VACUUM public.t"]
    );
    assert_eq!(shown("analyze verbose t").len(), 1);
    assert_eq!(shown("vacuum"), ["VACUUM"]);
    let begin = shown("begin transaction isolation level repeatable read, read only, not deferrable");
    assert_eq!(begin, ["BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"]);
    assert_eq!(shown("select deferrable from t"), ["SELECT deferrable FROM t"]);
}

#[test]
fn depth_and_size_are_bounded() {
    let code = |sql: &str| parse(sql).unwrap_err().code.0;
    assert_eq!(code(&format!("select {}1{}", "(".repeat(2000), ")".repeat(2000))), "54001");
    assert_eq!(code(&format!("select 1{}", " + 1".repeat(5000))), "54001");
    assert_eq!(code(&format!("select {}true", "not ".repeat(5000))), "54001");
    assert_eq!(code(&format!("select {}1", "- ".repeat(5000))), "54001");
    assert_eq!(code(&format!("select true{}", " and true".repeat(50_000))), "54001");
    assert_eq!(code(&format!("select 1{}", " union select 1".repeat(5000))), "54001");
    assert_eq!(code(&format!("select 1{}", "::int".repeat(5000))), "54001");
    assert_eq!(code(&format!("select '{}'", "x".repeat(MAX_TEXT))), "54000");
    assert_eq!(parse(&format!("select true{}", " and a = 1".repeat(1500))).unwrap().len(), 1);
    assert_eq!(parse(&format!("select 1 in (1{})", ", 1 + 1".repeat(20_000))).unwrap().len(), 1);
}

#[test]
fn positions_count_characters() {
    let parsed = &parse("select 'äö',\n  x").unwrap()[0];
    assert_eq!(parsed.position(Location { line: 2, column: 3 }), 16);
    assert_eq!(parsed.position(NOWHERE), 0);
}

/// Each level doubled the time of parsing: fifty would never end.
#[test]
fn nested_calls_parse_in_linear_time() {
    let depth = 50;
    let sql = format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(&sql).unwrap().len(), 1);
}
