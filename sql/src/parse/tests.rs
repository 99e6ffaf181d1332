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
fn syntax_errors_have_the_position_of_a_token() {
    assert_eq!(error("selec 1"), ("42601 syntax error at or near \"selec\"".into(), Some(1)));
    assert_eq!(error("select\n  * frm t"), ("42601 syntax error at or near \"t\"".into(), Some(16)));
    assert_eq!(error("select 'ä' 1"), ("42601 syntax error at or near \"1\"".into(), Some(12)));
    assert_eq!(error("select (1"), ("42601 syntax error at end of input".into(), Some(10)));
    assert_eq!(error("select 1; select 2 2 2"), ("42601 syntax error at or near \"2\"".into(), Some(20)));
}

#[test]
fn unterminated_tokens_are_named() {
    assert_eq!(error("select 'abc"), ("42601 unterminated quoted string at or near \"'abc\"".into(), Some(8)));
    assert_eq!(error("select \"abc"), ("42601 unterminated quoted identifier at or near \"\"abc\"".into(), Some(8)));
    assert_eq!(error("select 1 /* x"), ("42601 unterminated /* comment at or near \"/* x\"".into(), Some(10)));
}

#[test]
fn spellings_that_the_parser_lacks() {
    assert_eq!(shown("abort"), ["ROLLBACK"]);
    assert_eq!(shown("ABORT WORK; select 1").len(), 2);
    assert_eq!(shown("vacuum analyze t; select 1; vacuum (full, verbose) public.t"), ["VACUUM", "SELECT 1", "VACUUM"]);
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
    assert_eq!(code(&format!("select 1{}", "::int".repeat(5000))), "54001");
    assert_eq!(code(&format!("select '{}'", "x".repeat(MAX_TEXT_BYTES))), "54000");
    assert_eq!(code(&format!("select 1{}", ",1".repeat(MAX_TOKENS / 2))), "54000");
    assert_eq!(parse(&format!("select true{}", " and a = 1".repeat(1500))).unwrap().len(), 1);
    assert_eq!(parse(&format!("select 1 in (1{})", ", 1 + 1".repeat(20_000))).unwrap().len(), 1);
}

/// A group's own depth was dropped at its closing parenthesis: `((x + 1 ...) + 1 ...)` could be as deep as the text was
/// long, and overflowed the stack.
#[test]
fn the_depth_inside_parentheses_counts_in_the_chain_after_them() {
    let code = |sql: &str| parse(sql).unwrap_err().code.0;
    let chain = " + 1".repeat(499);
    let close = format!("{chain})").repeat(99);
    assert_eq!(code(&format!("select {}x{close}", "(".repeat(99))), "54001");
    let ands = format!("{})", " and true".repeat(1000)).repeat(99);
    assert_eq!(code(&format!("select {}x{ands}", "(".repeat(99))), "54001");
    let cases = format!("{chain} end").repeat(50);
    assert_eq!(code(&format!("select {}x{cases}", "case when true then ".repeat(50))), "54001");
    assert_eq!(
        code(&format!("select {}x{}", "f(".repeat(90), format!("{}, 1)", " || 'a'".repeat(20)).repeat(90))),
        "54001"
    );
}

/// Keyword operators were not counted, nor were UNIONs of more than one column.
#[test]
fn every_keyword_operator_counts() {
    let code = |sql: &str| parse(sql).unwrap_err().code.0;
    for operator in
        ["xor", "rlike", "regexp", "overlaps", "member of", "div", "notnull is", "is distinct from", "at time zone"]
    {
        let sql = format!("select true{}", format!(" {operator} true").repeat(5000));
        assert_eq!(code(&sql), "54001", "{operator}");
    }
    assert_eq!(code(&format!("select true{}", " is null".repeat(5000))), "54001");
    assert_eq!(code(&format!("select 'a'{}", " collate \"C\"".repeat(5000))), "54001");
    for union in ["union", "except all", "intersect"] {
        assert_eq!(code(&format!("select 1, 2{}", format!(" {union} select 1, 2").repeat(5000))), "54001");
    }
}

/// The deepest accepted trees must be freed on half of a worker thread's stack.
#[test]
fn trees_at_the_limit_do_not_overflow_the_stack() {
    let work = || {
        let half = format!("{})", " + 1".repeat(depth::MAX_DEPTH / 2 - 20));
        let tall = format!("select ((x{half}{half}");
        let ands = format!("select true{}", " and x".repeat(depth::MAX_LOGICAL - 10));
        for sql in [tall, ands] {
            drop(parse(&sql).unwrap());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

/// The limit of dialect queries is far from the needs of any valid statement.
#[test]
fn long_statements_stay_within_the_work_limit() {
    let columns = (0..300).map(|i| format!("c{i} varchar(10) not null default 'x' || lower('Y')")).collect::<Vec<_>>();
    let tables = format!("create table t ({}, primary key (c1, c2))", columns.join(", "));
    let row = "(1, 'two', -3.5, null, $1, now(), date '2024-01-01', cast(5 as bigint), (1 + 2) * 3)";
    let rows = format!("insert into t values {}", vec![row; 20_000].join(", "));
    let cases = format!("select {}", vec!["case a when 1 then b[1] else (select max(x) from u) end"; 500].join(", "));
    let joins = format!("select * from t {}", "left join (select a, b from u) x using (a) ".repeat(150));
    for sql in [tables, rows, cases, joins] {
        assert_eq!(parse(&sql).unwrap().len(), 1);
    }
}

/// Where the parser tries two alternatives with the same result, each level of nesting doubled the time.
#[test]
fn malformed_nesting_terminates() {
    let nested = [("floor(", ")"), ("position(", ")"), ("1 in (select (", "))"), ("* from (select ", ")")];
    for (open, close) in nested {
        for begin in ["select", "insert into t (select", "select 1 from (select"] {
            let sql = format!("{begin} {}1 1{}", open.repeat(45), close.repeat(45));
            assert!(["42601", "54001"].contains(&parse(&sql).unwrap_err().code.0), "{begin} {open}");
        }
    }
    assert_eq!(
        error(&format!("insert into d {}d d d", "(select * from (".repeat(45))).0,
        "54001 stack depth limit exceeded"
    );
}

#[test]
fn positions_count_characters() {
    let parsed = &parse("select 'äö',\n  x").unwrap()[0];
    assert_eq!(parsed.text.position(Location { line: 2, column: 3 }), 16);
    assert_eq!(parsed.text.position(NO_LOCATION), 0);
}

/// Each level doubled the parse time: fifty levels never finished.
#[test]
fn nested_calls_parse_in_linear_time() {
    let depth = 50;
    let sql = format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(&sql).unwrap().len(), 1);
}

/// Each text must parse like the parenthesised text next to it.
#[test]
fn operator_precedence_is_postgresqls() {
    let pairs = [
        ("a is distinct from true and b = 5", "(a is distinct from true) and (b = 5)"),
        ("a is not distinct from b or c", "(a is not distinct from b) or c"),
        ("a is distinct from b = c", "a is distinct from (b = c)"),
        ("not a is distinct from b", "not (a is distinct from b)"),
        ("not a = b", "not (a = b)"),
        ("not a is null and b", "(not (a is null)) and b"),
        ("a = b is null", "(a = b) is null"),
        ("a = not b = c", "a = (not (b = c))"),
        ("- a ^ b", "(- a) ^ b"),
        ("a * - b ^ c", "a * ((- b) ^ c)"),
        ("- a::int", "- (a::int)"),
        ("~ a + b", "~ (a + b)"),
        ("~ a # b", "(~ a) # b"),
        ("a ^ b ^ c", "(a ^ b) ^ c"),
        ("a | b + c", "a | (b + c)"),
        ("a || b + c", "a || (b + c)"),
        ("a << b # c & d", "((a << b) # c) & d"),
        ("a ~~ b || c", "(a ~~ b) || c"),
        ("a !~ b = c", "(a !~ b) = c"),
        ("a like b || c", "a like (b || c)"),
        ("a like b = c", "(a like b) = c"),
        ("a = b like c", "a = (b like c)"),
        ("a between b and c and d", "(a between b and c) and d"),
        ("a between b + 1 and c + 1 = d", "(a between (b + 1) and (c + 1)) = d"),
        ("a = b in (c)", "a = (b in (c))"),
        ("a isnull", "a is null"),
        ("a notnull and b", "(a is not null) and b"),
        ("a >-1", "a > -1"),
        ("a>=-1", "a >= -1"),
        ("a<>-1", "a <> -1"),
        ("a<-1", "a < -1"),
        ("a>+1", "a > +1"),
        ("a>/* c */b", "a > b"),
        ("a operator(pg_catalog.+) b * c", "a operator(pg_catalog.+) (b * c)"),
    ];
    for (text, meant) in pairs {
        assert_eq!(shape(text), shape(meant), "{text}");
    }
}

/// An expression with explicit parentheses.
fn shape(sql: &str) -> String {
    use sqlparser::ast::{BinaryOperator, Expr, SelectItem, SetExpr};
    fn of(expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => of(inner),
            Expr::BinaryOp { left, op: BinaryOperator::Custom(op), right } => {
                format!("({} {op} {})", of(left), of(right))
            }
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", of(left), of(right)),
            Expr::UnaryOp { op, expr } => format!("({op} {})", of(expr)),
            Expr::IsNull(expr) => format!("({} IS NULL)", of(expr)),
            Expr::IsNotNull(expr) => format!("({} IS NOT NULL)", of(expr)),
            Expr::Like { expr, pattern, .. } => format!("({} LIKE {})", of(expr), of(pattern)),
            Expr::InList { expr, list, .. } => format!("({} IN {})", of(expr), list.iter().map(of).collect::<String>()),
            Expr::Between { expr, low, high, .. } => format!("({} BETWEEN {} {})", of(expr), of(low), of(high)),
            Expr::Cast { expr, data_type, .. } => format!("({}::{data_type})", of(expr)),
            other => other.to_string(),
        }
    }
    let Statement::Query(query) = parse(&format!("select {sql}")).unwrap().remove(0).tree else { panic!("no query") };
    let SetExpr::Select(select) = *query.body else { panic!("no SELECT") };
    match &select.projection[..] {
        [SelectItem::UnnamedExpr(expr)] => of(expr),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn strings_continue_only_after_a_line_break() {
    assert_eq!(shown("select 'foo'\n 'bar' -- and\n'!'"), ["SELECT 'foobar!'"]);
    assert_eq!(shown("select E'a\\n'\n'b'").len(), 1);
    assert_eq!(error("select 'a' 'b'"), ("42601 syntax error at or near \"'b'\"".into(), Some(12)));
    assert_eq!(error("select 'a' /* \n */ 'b'").0, "42601 syntax error at or near \"'b'\"");
    assert_eq!(error("select 1 as 'b'"), ("42601 syntax error at or near \"'b'\"".into(), Some(13)));
    assert_eq!(error("select 1 'b'").0, "42601 syntax error at or near \"'b'\"");
    assert_eq!(error("select E'a'\n'\\n'").0, "0A000 escapes in the continuation of a string are not supported yet");
}

/// The parser knows no other form of ALTER VIEW than one that PostgreSQL lacks.
#[test]
fn alter_view_is_read_as_alter_table_at_the_beginning_of_a_statement() {
    assert_eq!(shown("select 1; alter view v rename to w")[1], "ALTER TABLE v RENAME TO w");
    assert_eq!(shown("create view v as select alter, view from t"), ["CREATE VIEW v AS SELECT alter, view FROM t"]);
}

#[test]
fn tokens_that_postgresql_refuses() {
    let junk = |text: &str| format!("42601 trailing junk after numeric literal at or near \"{text}\"");
    for text in ["1L", "1_000", "0x1F", "1a", "1.5e"] {
        assert_eq!(error(&format!("select {text}")), (junk(text), Some(8)));
    }
    assert_eq!(shown("select key from t for update").len(), 1);
    assert_eq!(error("select 1 from t for no key share").0, "42601 syntax error at or near \"no\"");
    assert_eq!(error("select true xor true").0, "42601 syntax error at or near \"true\"");
    assert_eq!(error("select 1 not null").0, "42601 syntax error at or near \"null\"");
}

#[test]
fn forms_of_alter_table_that_the_parser_lacks_are_recognised() {
    for action in [
        "set logged",
        "set (fillfactor = 70) , set without oids",
        "add a int, cluster on i",
        "alter a set statistics -1",
        "alter column \"A\" set storage plain",
        "add constraint c exclude using gist (a with &&)",
        "attach partition s.p for values in (1, 2)",
    ] {
        let (message, _) = error(&format!("alter table if exists only s.t {action}"));
        assert_eq!(message, "0A000 this form of ALTER TABLE is not supported yet", "{action}");
    }
}

#[test]
fn garbage_behind_alter_table_is_a_syntax_error() {
    let near = |text: &str| format!("42601 syntax error at or near \"{text}\"");
    for (sql, found, position) in [
        ("alter table t garbage", near("garbage"), 15),
        ("alter table t add a int, garbage", near("garbage"), 26),
        ("alter table t cluster on;", near(";"), 25),
        ("alter table t validate x", near("x"), 24),
        ("alter table t not of x", near("x"), 22),
        ("alter table t modify a text", near("modify"), 15),
        ("alter table t drop primary key", near("primary"), 20),
        ("alter table t add a int, rename a to b", near("rename"), 26),
        ("alter table t rename a to b, drop a", near(","), 28),
        ("alter table t alter a set;", near(";"), 26),
        ("alter table t alter column a set statistics x", near("x"), 45),
        ("alter table t set tablespace", "42601 syntax error at end of input".to_owned(), 29),
        ("alter table only t * add a int", near("*"), 20),
        ("alter table t add a int; selec 1", near("selec"), 26),
    ] {
        assert_eq!(error(sql), (found, Some(position)), "{sql}");
    }
}

#[test]
fn names_and_strings_with_escapes_are_decoded() {
    assert_eq!(shown("select U&'d!0061' uescape '!' as x"), ["SELECT U&'da' AS x"]);
    assert_eq!(shown("select u&\"d!0061\" uescape '!', U&\"\\0062\" from t"), ["SELECT \"da\", \"b\" FROM t"]);
    let no_string = "42601 UESCAPE must be followed by a simple string literal at";
    assert_eq!(error("select U&'a' uescape"), (format!("{no_string} end of input"), Some(21)));
    assert_eq!(error("select U&'a' uescape 1"), (format!("{no_string} or near \"1\""), Some(22)));
    let bad = "42601 invalid Unicode escape character at or near \"'a'\"";
    assert_eq!(error("select U&'a' uescape 'a'"), (bad.to_owned(), Some(22)));
    assert_eq!(
        error("select U&\"\""),
        ("42601 zero-length delimited identifier at or near \"U&\"\"\"".to_owned(), Some(8))
    );
}
