//! PostgreSQL's commands that Cortado lacks. The parser knows few of them, and their text is no syntax error.

use crate::error::{SqlError, SqlState};
use crate::lexer;

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
    "DOMAIN",
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
    "SEQUENCE",
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
    let known = match command.split_once(' ') {
        None => SINGLE.contains(&&*command),
        Some(("ALTER", "TABLE")) => true,
        Some(("CREATE" | "ALTER" | "DROP", object)) => OBJECTS.contains(&object.split(' ').next().unwrap_or(object)),
        Some(_) => false,
    };
    known.then(|| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{command} is not supported yet")))
}

#[cfg(test)]
mod tests {
    use super::unsupported;

    /// They were syntax errors.
    #[test]
    fn commands_of_postgresql_are_recognised() {
        for (text, command) in [
            ("create or replace function f() returns int language sql as $$ select 1 $$", "CREATE FUNCTION"),
            ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "CREATE INDEX"),
            ("/* x */ create temp sequence s", "CREATE SEQUENCE"),
            ("create constraint trigger x after insert on t", "CREATE TRIGGER"),
            ("drop owned by ann", "DROP OWNED"),
            ("alter table t add column b int", "ALTER TABLE"),
            ("alter default privileges grant select on tables to ann", "ALTER DEFAULT PRIVILEGES"),
            ("do $$ begin end $$", "DO"),
            ("lock table t", "LOCK"),
        ] {
            let error = unsupported(text).expect(text);
            assert_eq!((error.code.0, error.message), ("0A000", format!("{command} is not supported yet")));
        }
        for text in ["create table t (", "create tabel t (a int)", "selec 1", "drop table", "truncate", ""] {
            assert_eq!(unsupported(text), None, "{text}");
        }
    }
}
