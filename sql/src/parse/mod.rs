//! Parses statement text to syntax trees: sqlparser's PostgreSQL dialect, and syntax that it lacks.
//!
//! The text is tokenized once. [`depth`] refuses nesting too deep for later tree walks. [`edits`] finds what is to be
//! done. [`mod@normalize`] and [`mod@rewrite`] convert tokens and spellings to those of the parser. Then it runs
//! statement by statement, in a [`dialect`] with PostgreSQL's operator precedence ([`precedence`]). Errors are 42601 in
//! PostgreSQL's wording, with a position in characters ([`text`]).
//!
//! # Layers
//!
//! 1. `alter_forms`, `commands`, `depth`, `text`: forms of ALTER TABLE and commands that are not supported; the depth
//!    limit; locations, positions and errors at them
//! 2. `comments`, `conflict`, `include`, `labels`, `late_limits`, `lock_lists`, `maintenance`, `numbers`, `only`: forms
//!    of COMMENT; targets of ON CONFLICT; keys with INCLUDE; names that are keywords; LIMIT behind FOR UPDATE; FOR
//!    UPDATE OF several tables; VACUUM and ANALYZE; the precision of float; ONLY
//! 3. `operators`, `similar`, `stars`, `tables`, `targets`, `unicode`, `values`: the ends of operators; SUBSTRING with
//!    SIMILAR; stars as values; ROWS FROM and TABLE; subscripts of assigned columns; UESCAPE; VALUES behind ANY
//! 4. `edits`, `escapes`, `group_words`, `nested_joins`: which token edits a text needs; escapes on which the tokenizer
//!    fails; GROUP BY ALL; joins inside joins
//! 5. `normalize`: token edits
//! 6. `domains`, `precedence`, `sequences`: statements about domains; operator precedence; statements about sequences
//! 7. `identity`, `quantified`, `set_schema`: ALTER TABLE, for its identity columns; ANY and ALL behind any operator;
//!    ALTER ... SET SCHEMA and OWNER TO
//! 8. `rewrite`: more token edits
//! 9. `dialect`: the parser's dialect
//!
//! A text that fails to parse is parsed again with a mark in place of each target of ON CONFLICT that the parser does
//! not know ([`conflict`]). The binder reads such a target by itself ([`conflict_target`]).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sqlparser::ast::{Expr, SelectItem, SetExpr, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::lexer::{self, Lexer};

mod alter_forms;
mod commands;
mod comments;
mod conflict;
mod depth;
mod dialect;
mod domains;
mod edits;
mod escapes;
mod group_words;
mod identity;
mod include;
mod labels;
mod late_limits;
mod lock_lists;
mod maintenance;
mod nested_joins;
mod normalize;
mod numbers;
mod only;
mod operators;
mod precedence;
mod quantified;
mod rewrite;
mod sequences;
mod set_schema;
mod similar;
mod stars;
mod tables;
mod targets;
mod text;
mod unicode;
mod values;

pub(crate) use comments::{CONSTRAINT as COMMENT_ON_CONSTRAINT, DOMAIN_CONSTRAINT as COMMENT_ON_DOMAIN_CONSTRAINT};
pub(crate) use conflict::TARGET as CONFLICT_TARGET;
pub(crate) use dialect::{default_span, symmetric_bound, variadic_argument};
pub(crate) use domains::domain_name;
use edits::Edit;
pub(crate) use identity::{IdentityChange, identity_change, refused_option, set_generated};
pub(crate) use include::{included, storage_parameters};
pub use maintenance::Maintenance;
pub(crate) use normalize::is_distinct;
pub(crate) use numbers::precision_error as float_precision_error;
pub(crate) use quantified::{operator as quantified_operator, text_of};
pub(crate) use rewrite::{KEY_LOCK, LIKE, NO_ALIAS, OVERRIDING_SYSTEM, OVERRIDING_USER, SOURCE, is_empty_list};
pub(crate) use sequences::{
    ALTER as ALTER_SEQUENCE, RENAME as RENAME_SEQUENCE, restart as sequence_restart, sequence_name,
};
pub(crate) use set_schema::{new_owner, new_schema};
pub(crate) use stars::is_star;
pub(crate) use tables::ROWS;
pub(crate) use targets::{is_omitted, subscript};
pub use text::{NO_LOCATION, SourceText, query_start, start_of};
use text::{end_of_input, syntax_error};

/// Limit of a query string, in bytes.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Limit of tokens and blanks of a query string. Parsing takes about 100 bytes for each.
const MAX_TOKENS: usize = 2_000_000;

/// Trees up to this depth can be built and walked on any stack.
const MAX_SHALLOW_DEPTH: usize = 40;

/// One parsed statement. Do not clone or print its tree: a deep tree overflows the stack.
#[derive(Debug)]
pub struct Parsed {
    /// The syntax tree.
    pub tree: Statement,
    /// What VACUUM and ANALYZE say; their tree does not tell.
    pub maintenance: Option<Box<Maintenance>>,
    /// The whole query string, which the tree's locations refer to.
    pub text: SourceText,
    /// The location of the statement's first token.
    start: Location,
    /// An upper bound of the tree's depth.
    depth: usize,
}

impl Parsed {
    /// Whether walking the tree may need more stack than a worker thread has.
    pub(crate) fn is_deep(&self) -> bool {
        self.depth > MAX_SHALLOW_DEPTH
    }

    /// The expression of `SELECT expression`; `None` for any other statement. So texts that are no statements are
    /// parsed: expressions of the catalog, names of types.
    pub(crate) fn only_expression(&self) -> Option<&Expr> {
        let Statement::Query(query) = &self.tree else { return None };
        let SetExpr::Select(select) = &*query.body else { return None };
        match select.projection.as_slice() {
            [SelectItem::UnnamedExpr(expr)] if select.from.is_empty() => Some(expr),
            _ => None,
        }
    }

    /// The bytes of the text between the first AS outside of parentheses and the statement's end.
    pub(crate) fn query_after_as(&self) -> Option<(usize, usize)> {
        let mut lexer = Lexer::new(self.text.as_str());
        lexer.skip_to(self.text.offset(self.start)?);
        let (mut depth, mut begin, mut end) = (0_usize, None, 0);
        while let Some(found) = lexer.next() {
            match found.token {
                lexer::Token::Symbol('(') => depth += 1,
                lexer::Token::Symbol(')') => depth = depth.saturating_sub(1),
                lexer::Token::Symbol(';') if depth == 0 => break,
                lexer::Token::Word(word) if begin.is_none() && depth == 0 && word.eq_ignore_ascii_case("as") => {
                    begin = Some(found.end);
                }
                _ => {}
            }
            end = found.end;
        }
        begin.map(|begin| (begin, end))
    }

    /// The statement's name in errors: `CREATE INDEX`. Taken from the text, since a deep tree cannot be printed.
    pub(crate) fn command(&self) -> String {
        let start = self.text.offset(self.start).unwrap_or(0);
        match lexer::command_name(&self.text.as_str()[start..]) {
            command if command.is_empty() || command == "EXPLAIN" => "this statement".to_owned(),
            command => command,
        }
    }
}

/// Splits and parses a query string. Empty statements and comments are dropped. A syntax error is 42601 with its
/// position; a command that is not supported is 0A000. Text beyond the size limits is 54000, nesting beyond the depth
/// limits 54001.
pub fn parse(sql: &str) -> Result<Vec<Parsed>, SqlError> {
    match parse_known(sql) {
        // The parser may stop anywhere in a command that it does not know.
        Err(error) if error.code == SqlState::SYNTAX_ERROR => parse_marked(sql)
            .unwrap_or_else(|| Err(commands::unsupported(sql).unwrap_or_else(|| alter_forms::judged(sql, error)))),
        other => other,
    }
}

/// Parses a text with targets of ON CONFLICT that the parser does not know. `None` if it has none, or fails otherwise
/// too.
fn parse_marked(sql: &str) -> Option<Result<Vec<Parsed>, SqlError>> {
    let targets = conflict::targets(sql);
    if targets.is_empty() {
        return None;
    }
    let text = SourceText::new(sql);
    let mut statements = parse_known(&conflict::marked(sql, &targets)).ok()?;
    statements.iter_mut().for_each(|statement| statement.text = text.clone());
    let failed = targets.iter().find_map(|target| parse_known(&conflict::alone(sql, target)).err());
    Some(failed.map_or(Ok(statements), Err))
}

/// The target of ON CONFLICT at a location, as `SELECT (expressions) WHERE predicate` at the same place.
pub(crate) fn conflict_target(text: &SourceText, at: Location) -> Option<Result<Parsed, SqlError>> {
    let alone = conflict::alone(text.as_str(), &conflict::target_at(text.as_str(), text.offset(at)?)?);
    let read = parse_known(&alone).map(|mut statements| statements.pop());
    read.map(|read| read.map(|read| Parsed { text: text.clone(), ..read })).transpose()
}

fn parse_known(sql: &str) -> Result<Vec<Parsed>, SqlError> {
    check_size(sql)?;
    let dialect = dialect::CortadoDialect::for_tokenizer();
    let mut tokens = Vec::new();
    let split = Tokenizer::new(&dialect, sql).tokenize_with_location_into_buf(&mut tokens);
    let text = SourceText::new(sql);
    if let Err(error) = split {
        let repaired = escapes::without_pairs(&text)?.ok_or_else(|| tokenizer_error(&text, &error, tokens.last()))?;
        tokens.clear();
        let split = Tokenizer::new(&dialect, &repaired).tokenize_with_location_into_buf(&mut tokens);
        split.map_err(|error| tokenizer_error(&text, &error, tokens.last()))?;
    }
    let depth = depth::max_depth(&tokens).ok_or_else(too_deep)?;
    let edits = edits::needed(&tokens);
    let tokens = normalize::normalize(&text, tokens, edits)?;
    let bad_float = if edits.has(Edit::Floats) { numbers::bad_float(&text, &tokens) } else { None };
    let (tokens, prebuilt) = rewrite::rewrite(&text, tokens, edits)?;
    // Parentheses that are added count, too.
    let is_deeper = edits.has(Edit::NestedJoins);
    let depth = if is_deeper { depth::max_depth(&tokens).ok_or_else(too_deep)? } else { depth };
    let parsed = deep_stack::run(depth > MAX_SHALLOW_DEPTH, || {
        let parse = AssertUnwindSafe(|| parse_tokens(&text, tokens, prebuilt, depth));
        catch_unwind(parse).unwrap_or_else(|stopped| match stopped.downcast::<dialect::Exhausted>() {
            Ok(_) => Err(too_deep()),
            Err(panic) => resume_unwind(panic),
        })
    });
    match (bad_float, parsed) {
        (None, parsed) => parsed,
        // It is an error of the grammar, as one of syntax is: what comes first in the text is reported.
        (Some(float), Err(error)) if error.position < float.position => Err(error),
        (Some(float), _) => Err(float),
    }
}

fn parse_tokens(
    text: &SourceText,
    tokens: Vec<TokenWithSpan>,
    prebuilt: rewrite::Prebuilt,
    depth: usize,
) -> Result<Vec<Parsed>, SqlError> {
    let mut prebuilt = prebuilt.into_iter().peekable();
    let dialect = dialect::CortadoDialect::for_parser(tokens.len());
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(3 * depth::MAX_NESTING).with_tokens_with_locations(tokens);
    let mut statements = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        // Prebuilt statements were removed together with their tokens. Each precedes the next parsed statement.
        let here = parser.peek_token_ref();
        let at_end = here.token == Token::EOF;
        let here = here.span.start;
        while let Some((start, found)) = prebuilt.next_if(|(before, _)| at_end || *before < here) {
            let (tree, maintenance) = (found.tree(), Some(Box::new(found)));
            statements.push(Parsed { tree, maintenance, text: text.clone(), start, depth });
        }
        if at_end {
            return Ok(statements);
        }
        let tree = parser.parse_statement().map_err(|e| parser_error(text, &parser, &e))?;
        let next = parser.peek_token_ref();
        if !matches!(next.token, Token::SemiColon | Token::EOF) {
            return Err(syntax_error(text, next));
        }
        statements.push(Parsed { tree, maintenance: None, text: text.clone(), start: here, depth });
    }
}

/// Checks the size limits. A text has at most as many tokens as bytes, so short texts are not counted.
fn check_size(sql: &str) -> Result<(), SqlError> {
    let message = if sql.len() > MAX_TEXT_BYTES {
        format!("query string of {} bytes exceeds the limit of {MAX_TEXT_BYTES}", sql.len())
    } else if sql.len() > MAX_TOKENS && lexer::count_tokens(sql) > MAX_TOKENS {
        format!("query string of more than {MAX_TOKENS} words and symbols")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// Converts a parser error. Its location is at the end of its message only. Without one, it is that of the parser's
/// current token.
fn parser_error(text: &SourceText, parser: &Parser<'_>, error: &ParserError) -> SqlError {
    let message = match error {
        ParserError::RecursionLimitExceeded => return too_deep(),
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
    };
    if message.ends_with("found: EOF") {
        return end_of_input(text);
    }
    if let Some(location) = trailing_location(message) {
        let start = text.offset(location).unwrap_or(text.as_str().len());
        let token = token_at(&text.as_str()[start..]);
        if token.is_empty() {
            return end_of_input(text);
        }
        let message = format!("syntax error at or near \"{token}\"");
        return SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(location));
    }
    syntax_error(text, parser.peek_token_ref())
}

/// Parses ` at Line: 1, Column: 8` at the end of a message.
fn trailing_location(message: &str) -> Option<Location> {
    let (_, tail) = message.rsplit_once(" at Line: ")?;
    let (line, column) = tail.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The source of a text's first token.
fn token_at(text: &str) -> &str {
    let dialect = dialect::CortadoDialect::for_tokenizer();
    // Tokens are rarely longer than this. The whole text is tokenized only if its beginning alone fails.
    let short = text.char_indices().nth(256).map_or(text.len(), |(at, _)| at);
    for part in [&text[..short], text] {
        if let Ok(tokens) = Tokenizer::new(&dialect, part).tokenize_with_location()
            && let Some(first) = tokens.first()
        {
            return &text[..SourceText::new(part).source(first.span).len()];
        }
    }
    text
}

/// Converts a tokenizer error: an unterminated token or a stray character. It starts after the last token.
fn tokenizer_error(text: &SourceText, error: &TokenizerError, last: Option<&TokenWithSpan>) -> SqlError {
    let location = last.map_or(Location { line: 1, column: 1 }, |token| token.span.end);
    let start = text.offset(location).unwrap_or(text.as_str().len());
    let rest = &text.as_str()[start..];
    let kind = error.message.to_ascii_lowercase();
    let what = if kind.contains("comment") {
        "unterminated /* comment"
    } else if kind.contains("dollar") {
        "unterminated dollar-quoted string"
    } else if kind.contains("close delimiter") {
        "unterminated quoted identifier"
    } else if kind.contains("unterminated") {
        "unterminated quoted string"
    } else {
        "syntax error"
    };
    let message = format!("{what} at or near \"{rest}\"");
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(location))
}

fn too_deep() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Simplify the statement: it nests too deep, or chains too many operators.")
}

#[cfg(test)]
mod tests;
