//! A lexer of PostgreSQL's SQL for the session: it splits query strings into statements, recognises and parses the
//! session's own statements (BEGIN, SET, ...), and counts tokens before a text is parsed.
//!
//! All other statements go to the parser as text. An unterminated string or comment is no error here: it extends to the
//! end of the text, and the parser reports it.

use crate::error::{SqlError, SqlState};

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An identifier or keyword, as written.
    Word(&'a str),
    /// A quoted identifier, unquoted.
    Quoted(String),
    /// A string literal, unquoted.
    Text(String),
    /// A number, as written.
    Number(&'a str),
    /// Any other character.
    Symbol(char),
    /// An unterminated string or quoted identifier.
    Unterminated,
}

/// A token and the byte range it spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<'a> {
    /// The token.
    pub(crate) token: Token<'a>,
    /// Its first byte.
    pub(crate) start: usize,
    /// The byte after it.
    pub(crate) end: usize,
}

/// Reads tokens off a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Whether to build the values of strings.
    values: bool,
}

/// The place of one statement in a query string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatementSpan {
    /// Its first byte. White space around the statement and the semicolon do not belong to it. Leading comments do:
    /// they may be hints.
    start: usize,
    /// The byte after it.
    end: usize,
    /// Characters of the query string before it.
    pub(crate) char_offset: u32,
    /// Characters from its start to its semicolon; `None` without one.
    semicolon: Option<u32>,
}

impl StatementSpan {
    /// Its text. `query` is the query string that was split.
    pub(crate) fn text(self, query: &str) -> &str {
        &query[self.start..self.end]
    }

    /// An error of this statement alone, as one of the query string: what was missing was missing at the semicolon.
    pub(crate) fn locate(self, error: SqlError) -> SqlError {
        match self.semicolon {
            Some(at) if error.code == SqlState::SYNTAX_ERROR && error.message == "syntax error at end of input" => {
                SqlError { message: "syntax error at or near \";\"".to_owned(), ..error }.at(at.saturating_add(1))
            }
            _ => error,
        }
    }
}

/// Splits a query string at its semicolons. Statements without a token are dropped.
pub(crate) fn split_statements(query: &str) -> Vec<StatementSpan> {
    let mut pieces = Vec::with_capacity(1);
    let mut lexer = Lexer::without_values(query);
    let mut start = 0;
    let mut tokens = 0;
    let mut counted = (0, 0u32);
    loop {
        let token = lexer.next();
        let end = match &token {
            Some(Spanned { token: Token::Symbol(';'), start, .. }) => *start,
            Some(_) => {
                tokens += 1;
                continue;
            }
            None => query.len(),
        };
        if tokens > 0 {
            let raw = &query[start..end];
            let begin = start + (raw.len() - raw.trim_start().len());
            let last = begin + raw.trim().len();
            let more = query[counted.0..begin].chars().count();
            counted = (begin, counted.1.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)));
            let semicolon =
                token.as_ref().map(|_| u32::try_from(query[begin..end].chars().count()).unwrap_or(u32::MAX));
            pieces.push(StatementSpan { start: begin, end: last, char_offset: counted.1, semicolon });
        }
        match token {
            Some(semicolon) => (start, tokens) = (semicolon.end, 0),
            None => return pieces,
        }
    }
}

/// The number of tokens and blanks of a text.
pub(crate) fn count_tokens(text: &str) -> usize {
    let mut lexer = Lexer::without_values(text);
    let mut count = 0;
    let mut end = 0;
    while let Some(token) = lexer.next() {
        count += 1 + (token.start - end);
        end = token.end;
    }
    count + (text.len() - end)
}

/// Words between CREATE and the kind of the object.
const MODIFIERS: &[&str] = &[
    "OR",
    "REPLACE",
    "TEMP",
    "TEMPORARY",
    "UNLOGGED",
    "GLOBAL",
    "LOCAL",
    "UNIQUE",
    "RECURSIVE",
    "CONSTRAINT",
    "TRUSTED",
    "PROCEDURAL",
];

/// Kinds of objects whose names have two words.
const TWO_WORDS: &[&str] = &["ACCESS", "DEFAULT", "EVENT", "FOREIGN", "LARGE", "MATERIALIZED", "TEXT"];

/// The name of a statement in errors and metrics: `INSERT`, `CREATE TABLE`.
pub(crate) fn command_name(text: &str) -> String {
    let mut lexer = Lexer::new(text);
    let mut words: Vec<String> = Vec::new();
    while let Some(token) = lexer.next() {
        match token.token {
            Token::Word(word) => {
                let word = word.to_ascii_uppercase();
                if words.first().is_none_or(|verb| verb != "CREATE") || !MODIFIERS.contains(&&*word) {
                    words.push(word);
                }
            }
            // A parenthesised SELECT.
            Token::Symbol('(') if words.is_empty() => continue,
            _ => break,
        }
        let whole = if words.get(1).is_some_and(|kind| TWO_WORDS.contains(&&**kind)) { 3 } else { 2 };
        if words.len() == whole || !matches!(words.first().map(String::as_str), Some("CREATE" | "DROP" | "ALTER")) {
            break;
        }
    }
    if words == ["TRUNCATE"] {
        return "TRUNCATE TABLE".to_owned();
    }
    words.join(" ")
}

impl<'a> Lexer<'a> {
    /// At the beginning of a text.
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, values: true }
    }

    /// A lexer that leaves the values of strings empty, for finding the ends of statements.
    fn without_values(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, values: false }
    }

    /// The next token, or `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Option<Spanned<'a>> {
        self.skip_whitespace();
        let start = self.at;
        let first = self.rest().chars().next()?;
        let token = match first {
            '\'' => self.quoted('\'', false).map_or(Token::Unterminated, Token::Text),
            '"' => self.quoted('"', false).map_or(Token::Unterminated, Token::Quoted),
            '$' => self.dollar(),
            c if is_word_start(c) => self.word(),
            c if c.is_ascii_digit() => self.number(),
            c => {
                self.at += c.len_utf8();
                Token::Symbol(c)
            }
        };
        Some(Spanned { token, start, end: self.at })
    }

    /// Continues at a byte of the text, between two characters.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The byte after the last token.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_whitespace(&mut self) {
        self.at = skip_blank(self.text, self.at, &mut |_, _| {});
    }

    fn word(&mut self) -> Token<'a> {
        let rest = self.rest();
        let length = rest.find(|c: char| !is_word_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        // The prefix of a string.
        if after.starts_with('\'') && matches!(word, "e" | "E" | "b" | "B" | "x" | "X" | "n" | "N") {
            self.at += length;
            let escapes = word.eq_ignore_ascii_case("e");
            return self.quoted('\'', escapes).map_or(Token::Unterminated, Token::Text);
        }
        self.at += length;
        Token::Word(word)
    }

    fn number(&mut self) -> Token<'a> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(is_word_part(c) || c == '.')).unwrap_or(rest.len());
        self.at += length;
        Token::Number(&rest[..length])
    }

    /// A quoted string; a doubled quote stands for one. `escapes`: a backslash escapes the next character.
    fn quoted(&mut self, quote: char, escapes: bool) -> Option<String> {
        self.at += 1;
        let mut value = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((offset, c)) = chars.next() {
            let part = if c == '\\' && escapes {
                chars.next().map(|(_, c)| unescape(c))
            } else if c != quote {
                Some(c)
            } else if self.rest()[offset + 1..].starts_with(quote) {
                chars.next().map(|(_, c)| c)
            } else {
                self.at += offset + 1;
                return Some(value);
            };
            if self.values {
                value.extend(part);
            }
        }
        self.at = self.text.len();
        None
    }

    /// A dollar-quoted string, or the dollar sign of a parameter, whose number is the next token.
    fn dollar(&mut self) -> Token<'a> {
        let rest = self.rest();
        let Some(length) = rest[1..].find('$') else {
            self.at += 1;
            return Token::Symbol('$');
        };
        let tag = &rest[..length + 2];
        let name = &tag[1..=length];
        let is_tag = name.chars().next().is_none_or(is_word_start) && name.chars().all(|c| is_word_part(c) && c != '$');
        if !is_tag {
            self.at += 1;
            return Token::Symbol('$');
        }
        let body = &rest[tag.len()..];
        match body.find(tag) {
            Some(end) => {
                self.at += tag.len() + end + tag.len();
                Token::Text(if self.values { body[..end].to_owned() } else { String::new() })
            }
            None => {
                self.at = self.text.len();
                Token::Unterminated
            }
        }
    }
}

/// The first byte from `at` that is neither white space nor within a comment. Passes the first byte of each block
/// comment, and the byte after it, to `comment`.
pub(crate) fn skip_blank(text: &str, mut at: usize, comment: &mut impl FnMut(usize, usize)) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches(is_space);
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("--") {
            at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        } else if trimmed.starts_with("/*") {
            let end = at + block_comment(trimmed);
            comment(at, end);
            at = end;
        } else {
            return at;
        }
    }
}

/// The length of the block comment that `text` starts with. Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

fn unescape(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\x08',
        'f' => '\x0c',
        other => other,
    }
}

pub(crate) use pgtypes::letters::is_space;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(query: &str) -> Vec<(&str, u32)> {
        split_statements(query).into_iter().map(|p| (p.text(query), p.char_offset)).collect()
    }

    #[test]
    fn splits_at_semicolons_outside_quotes_and_comments() {
        assert_eq!(texts("select 1; select ';' ;"), [("select 1", 0), ("select ';'", 10)]);
        assert_eq!(texts(" ; -- ping\n ; /* a /* b; */ ; */ "), []);
        assert_eq!(texts("é; x"), [("é", 0), ("x", 3)]);
        assert_eq!(texts("a \"x;\"\"y\" ; b"), [("a \"x;\"\"y\"", 0), ("b", 12)]);
        assert_eq!(texts("select $$;$$, $a$ $$ ; $a$; b"), [("select $$;$$, $a$ $$ ; $a$", 0), ("b", 28)]);
        assert_eq!(texts("select e'\\';' ; b").len(), 2);
        assert_eq!(texts("select '\\' ; b").len(), 2);
        assert_eq!(texts("select $1;select $2").len(), 2);
        assert_eq!(texts("select a$b;c$d").len(), 2);
        assert_eq!(texts("/*+ HINT */ select 1"), [("/*+ HINT */ select 1", 0)]);
        assert_eq!(texts("select 'open; x"), [("select 'open; x", 0)]);
    }

    #[test]
    fn command_names() {
        assert_eq!(command_name("insert into t values (1)"), "INSERT");
        assert_eq!(command_name("/*+ x */ create  table t (a int)"), "CREATE TABLE");
        assert_eq!(command_name("((select 1))"), "SELECT");
        assert_eq!(command_name("drop table if exists t"), "DROP TABLE");
        assert_eq!(command_name("truncate t"), "TRUNCATE TABLE");
        assert_eq!(command_name("create unlogged table t (a int)"), "CREATE TABLE");
        assert_eq!(command_name("1"), "");
    }

    #[test]
    fn string_contents_are_not_counted() {
        assert_eq!(count_tokens("(1), (22)"), 8);
        assert_eq!(count_tokens("e'\\'; ;' $a$;;$a$"), 3);
    }

    #[test]
    fn tokens_are_unquoted() {
        let mut lexer = Lexer::new("Set \"A\"\"b\" = 'it''s' , E'a\\n' , 1.5e3 $1");
        let mut tokens = Vec::new();
        while let Some(t) = lexer.next() {
            tokens.push(t.token);
        }
        assert_eq!(
            tokens,
            [
                Token::Word("Set"),
                Token::Quoted("A\"b".into()),
                Token::Symbol('='),
                Token::Text("it's".into()),
                Token::Symbol(','),
                Token::Text("a\n".into()),
                Token::Symbol(','),
                Token::Number("1.5e3"),
                Token::Symbol('$'),
                Token::Number("1"),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ ;'\"$a-z\\\\/*é-]{0,40}") {
            for piece in split_statements(&text) {
                prop_assert!(piece.text(&text).trim() == piece.text(&text));
            }
        }
    }
}
