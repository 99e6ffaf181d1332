//! Session statements as clients write them.

use proptest::prelude::*;

use super::*;

fn ok(text: &str) -> Control {
    parse_control(text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .unwrap_or_else(|| panic!("{text}: not a session statement"))
}

fn set(name: &str, values: &[&str], local: bool) -> Control {
    Control::Set { name: name.into(), values: Some(values.iter().map(|v| (*v).to_owned()).collect()), local }
}

#[test]
fn transaction_control() {
    let plain = Modes::default();
    for text in ["BEGIN", "begin work", "Begin Transaction", "/* x */ begin -- y"] {
        assert_eq!(ok(text), Control::Begin { tag: "BEGIN", modes: plain, as_of: None });
    }
    let modes = Modes { isolation: Some(Isolation::RepeatableRead), read_only: Some(true), deferrable: Some(false) };
    for text in [
        "start transaction isolation level repeatable read, read only, not deferrable",
        "START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY NOT DEFERRABLE",
    ] {
        assert_eq!(ok(text), Control::Begin { tag: "START TRANSACTION", modes, as_of: None });
    }
    for text in ["commit", "END", "commit work and no chain", "end transaction"] {
        assert_eq!(ok(text), Control::Commit { chain: false });
    }
    assert_eq!(ok("commit and chain"), Control::Commit { chain: true });
    for text in ["rollback", "ABORT", "abort transaction", "rollback work"] {
        assert_eq!(ok(text), Control::Rollback { chain: false });
    }
    assert_eq!(ok("savepoint A"), Control::Savepoint("a".into()));
    for text in ["release a", "RELEASE SAVEPOINT a"] {
        assert_eq!(ok(text), Control::Release("a".into()));
    }
    for text in ["rollback to a", "rollback work to savepoint a", "ABORT TRANSACTION TO a"] {
        assert_eq!(ok(text), Control::RollbackTo("a".into()));
    }
    for text in ["prepare transaction 'x'", "commit prepared 'x'"] {
        let Control::Unsupported(error) = ok(text) else { panic!("{text}") };
        assert_eq!(error.code.0, "0A000");
    }
}

#[test]
fn as_of_system_time() {
    let at = |text: &str| Some(Moment::Text(text.into()));
    for text in ["begin as of system time '-5s'", "BEGIN TRANSACTION AS OF SYSTEM TIME interval '-5s'"] {
        assert_eq!(ok(text), Control::Begin { tag: "BEGIN", modes: Modes::default(), as_of: at("-5s") });
    }
    let modes = Modes { read_only: Some(true), ..Modes::default() };
    for text in
        ["start transaction read only, as of system time '-5s'", "start transaction as of system time '-5s' read only"]
    {
        assert_eq!(ok(text), Control::Begin { tag: "START TRANSACTION", modes, as_of: at("-5s") });
    }
    let set = |as_of| Control::SetTransaction { modes: Modes::default(), as_of: Some(as_of), session: false };
    assert_eq!(ok("set transaction as of system time follower_read_timestamp()"), set(Moment::FollowerRead));
    assert_eq!(ok("set transaction as of system time 1700000000000.7"), set(Moment::Number("1700000000000.7".into())));
    for text in ["begin as of system time", "begin as of time '-5s'", "begin as of system time now()"] {
        assert_eq!(parse_control(text).unwrap_err().code.0, "42601", "{text}");
    }
}

#[test]
fn settings() {
    assert_eq!(ok("set application_name = 'x'"), set("application_name", &["x"], false));
    assert_eq!(ok("SET LOCAL Work_Mem TO -5"), set("work_mem", &["-5"], true));
    assert_eq!(ok("set session search_path to \"$user\", public"), set("search_path", &["$user", "public"], false));
    assert_eq!(ok("set cortado.replica_read = closest"), set("cortado.replica_read", &["closest"], false));
    assert_eq!(ok("set extra_float_digits = +3"), set("extra_float_digits", &["3"], false));
    assert_eq!(ok("set time zone 'Europe/Berlin'"), set("timezone", &["Europe/Berlin"], false));
    assert_eq!(ok("set time zone -7"), set("timezone", &["-7"], false));
    assert_eq!(ok("set names 'utf8'"), set("client_encoding", &["utf8"], false));
    let default = Control::Set { name: "datestyle".into(), values: None, local: false };
    assert_eq!(ok("set datestyle to default"), default);
    let serializable = Modes { isolation: Some(Isolation::Serializable), ..Modes::default() };
    assert_eq!(
        ok("set session characteristics as transaction isolation level serializable"),
        Control::SetTransaction { modes: serializable, as_of: None, session: true }
    );
    assert_eq!(ok("set constraints all immediate"), Control::SetConstraints(Vec::new()));
    assert_eq!(
        ok("set constraints a, public.B deferred"),
        Control::SetConstraints(vec!["a".into(), "public.b".into()])
    );
    assert_eq!(ok("set session authorization default"), Control::SetNoop("SET"));
    assert_eq!(ok("set role none"), Control::SetNoop("SET"));
    assert!(matches!(ok("set role bob"), Control::Unsupported(_)));
    assert_eq!(ok("reset all"), Control::Reset(None));
    assert_eq!(ok("reset cortado.hedge"), Control::Reset(Some("cortado.hedge".into())));
    assert_eq!(ok("SHOW TRANSACTION ISOLATION LEVEL"), Control::Show(Some("transaction_isolation".into())));
    assert_eq!(ok("show time zone"), Control::Show(Some("timezone".into())));
    assert_eq!(ok("show all"), Control::Show(None));
    let alter = |name: Option<&str>, values: Option<&str>| Control::AlterSystem {
        name: name.map(str::to_owned),
        values: values.map(|value| vec![value.to_owned()]),
    };
    assert_eq!(ok("ALTER SYSTEM SET cortado.gc_ttl = '5min'"), alter(Some("cortado.gc_ttl"), Some("5min")));
    assert_eq!(ok("alter system set cortado.gc_ttl to default"), alter(Some("cortado.gc_ttl"), None));
    assert_eq!(ok("alter system reset cortado.gc_ttl"), alter(Some("cortado.gc_ttl"), None));
    assert_eq!(ok("alter system reset all"), alter(None, None));
    assert_eq!(parse_control("alter table t rename to u"), Ok(None));
}

#[test]
fn other_statements() {
    assert_eq!(ok("discard all"), Control::Discard(Discard::All));
    assert_eq!(ok("deallocate prepare \"S_1\""), Control::Deallocate(Some("S_1".into())));
    assert_eq!(ok("DEALLOCATE ALL"), Control::Deallocate(None));
    assert_eq!(ok("close all"), Control::Close(None));
    assert_eq!(ok("unlisten *"), Control::Unlisten);
    for text in ["select 1", "insert into t values (1)", "(select 1)", "explain select 1", "", "'begin'"] {
        assert_eq!(parse_control(text), Ok(None), "{text}");
    }
}

#[test]
fn syntax_errors_have_positions() {
    let cases = [
        ("begin isolation", "syntax error at end of input", 16),
        ("commit and", "syntax error at end of input", 11),
        ("commit é now", "syntax error at or near \"é\"", 8),
        ("set x", "syntax error at end of input", 6),
        ("set x = 'a", "unterminated quoted string at or near \"'a\"", 9),
        ("set x = a b", "syntax error at or near \"b\"", 11),
        ("begin read only,", "syntax error at end of input", 17),
        ("start", "syntax error at end of input", 6),
        ("discard it", "syntax error at or near \"it\"", 9),
        ("set transaction", "syntax error at end of input", 16),
    ];
    for (text, message, position) in cases {
        let error = parse_control(text).expect_err(text);
        assert_eq!(
            (error.code.0, error.message.as_str(), error.position),
            ("42601", message, Some(position)),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_panics(
        first in prop::sample::select(vec!["begin", "set", "show", "commit", "reset", "close"]),
        rest in "[ a-z='\",.;é0-9-]{0,30}",
    ) {
        let _ = parse_control(&format!("{first} {rest}"));
    }
}
