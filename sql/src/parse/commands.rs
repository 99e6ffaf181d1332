//! PostgreSQL's commands that Cortado lacks. The parser knows few of them, and their text is no syntax error.

use crate::error::{SqlError, SqlState};
use crate::lexer::{self, Lexer, Token};

/// Commands of one word.
const SINGLE: &[&str] = &[
    "CALL",
    "CHECKPOINT",
    "CLUSTER",
    "COMMENT",
    "DO",
    "GRANT",
    "IMPORT",
    "LOAD",
    "LOCK",
    "MERGE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "REVOKE",
    "SECURITY",
];

/// The kinds of objects after CREATE, ALTER and DROP. Of a name of several words the first.
const OBJECTS: &[&str] = &[
    "ACCESS",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONVERSION",
    "DATABASE",
    "DEFAULT",
    "EVENT",
    "EXTENSION",
    "FOREIGN",
    "FUNCTION",
    "GROUP",
    "INDEX",
    "LANGUAGE",
    "LARGE",
    "MATERIALIZED",
    "OPERATOR",
    "OWNED",
    "POLICY",
    "PROCEDURE",
    "PUBLICATION",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SCHEMA",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "SYSTEM",
    "TABLESPACE",
    "TEXT",
    "TRANSFORM",
    "TRIGGER",
    "TYPE",
    "USER",
    "VIEW",
];

/// 0A000 if a text begins with a command that is not supported.
pub(super) fn unsupported(text: &str) -> Option<SqlError> {
    let command = lexer::command_name(text);
    if matches!(command.as_str(), "UPDATE" | "DELETE") && names_cursor(text) {
        return Some(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "WHERE CURRENT OF is not supported"));
    }
    if let Some(at) = frame_exclusion(text) {
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "EXCLUDE of a frame is not supported yet");
        let position = text.get(..at).map_or(0, |before| before.chars().count() + 1);
        return Some(error.at(u32::try_from(position).unwrap_or(0)));
    }
    let known = match command.split_once(' ') {
        None if command == "COMMENT" => !is_comment_on_known(text),
        None => SINGLE.contains(&&*command),
        Some(("CREATE" | "ALTER" | "DROP", object)) => OBJECTS.contains(&object.split(' ').next().unwrap_or(object)),
        Some(_) => false,
    };
    known.then(|| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{command} is not supported yet")))
}

/// Whether a text is a COMMENT on an object of a kind that the parser knows: what is wrong with it is its syntax.
fn is_comment_on_known(text: &str) -> bool {
    const KINDS: [&str; 10] =
        ["table", "column", "view", "sequence", "index", "constraint", "schema", "database", "type", "domain"];
    let mut lexer = Lexer::new(text);
    let kind = (0..3).filter_map(|_| lexer.next()).last();
    matches!(kind.map(|kind| kind.token), Some(Token::Word(word)) if KINDS.iter().any(|k| word.eq_ignore_ascii_case(k)))
}

/// The byte of EXCLUDE behind the frame of a window.
fn frame_exclusion(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    let (mut has_over, mut exclude) = (false, None);
    while let Some(found) = lexer.next() {
        let Token::Word(word) = found.token else {
            exclude = None;
            continue;
        };
        let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        match exclude {
            Some(at) if is(&["current", "group", "ties", "no"]) => return Some(at),
            _ => exclude = (has_over && is(&["exclude"])).then_some(found.start),
        }
        has_over |= is(&["over", "window"]);
    }
    None
}

/// Whether a text has WHERE CURRENT OF.
fn names_cursor(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    let mut matched = 0;
    let words = ["where", "current", "of"];
    while let Some(found) = lexer.next() {
        let is = |at: usize| matches!(found.token, Token::Word(word) if word.eq_ignore_ascii_case(words[at]));
        matched = if is(matched) { matched + 1 } else { usize::from(is(0)) };
        if matched == words.len() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::unsupported;

    #[test]
    fn where_current_of_is_recognised() {
        for text in ["update t set a = 1 where current of c", "DELETE FROM t WHERE\nCURRENT OF \"C\" returning a"] {
            assert_eq!(unsupported(text).map(|error| error.code.0), Some("0A000"), "{text}");
        }
        for text in ["update t set a = 1 where current = 1 of", "delete from t where where current of_c", "select 1"] {
            assert_eq!(unsupported(text), None, "{text}");
        }
    }

    /// They were syntax errors.
    #[test]
    fn commands_of_postgresql_are_recognised() {
        for (text, command) in [
            ("create or replace function f() returns int language sql as $$ select 1 $$", "CREATE FUNCTION"),
            ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "CREATE INDEX"),
            ("create constraint trigger x after insert on t", "CREATE TRIGGER"),
            ("drop owned by ann", "DROP OWNED"),
            ("alter default privileges grant select on tables to ann", "ALTER DEFAULT PRIVILEGES"),
            ("do $$ begin end $$", "DO"),
            ("lock table t", "LOCK"),
        ] {
            let error = unsupported(text).expect(text);
            assert_eq!((error.code.0, error.message), ("0A000", format!("{command} is not supported yet")));
        }
        for text in [
            "alter table t garbage",
            "create table t (",
            "create tabel t (a int)",
            "selec 1",
            "drop table",
            "truncate",
            "",
        ] {
            assert_eq!(unsupported(text), None, "{text}");
        }
    }
}
