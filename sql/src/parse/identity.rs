//! Parses ALTER TABLE: the parser lacks RESTART, SET and DROP IDENTITY of identity columns and DROP EXPRESSION of
//! generated ones, and knows the options of ADD GENERATED in one order only. It has actions that PostgreSQL has not,
//! which are refused here.
//!
//! The tree of each is that of ADD GENERATED. Marks among its options say what else it is ([`identity_change`]).

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, Expr, GeneratedAs, SequenceOptions, Statement, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

use super::sequences::{self, Options, is_word, marked, marked_value};

/// The mark of the first option of SET and RESTART.
const SET: &str = "set";
/// The mark of the first option of DROP IDENTITY. Its value says whether there is IF EXISTS.
const DROP: &str = "drop";
/// The mark of the first option of DROP EXPRESSION. Its value says whether there is IF EXISTS.
const EXPRESSION: &str = "expression";
/// The mark of SET GENERATED. Its value says whether that is ALWAYS.
const GENERATED: &str = "generated";
/// The mark of an option that may not be set. Its value is PostgreSQL's name of it.
const REFUSED: &str = "refused";

/// What begins an action in the parser, and not in PostgreSQL.
const NO_ACTIONS: [Keyword; 9] = [
    Keyword::ALGORITHM,
    Keyword::AUTO_INCREMENT,
    Keyword::CHANGE,
    Keyword::LOCK,
    Keyword::MODIFY,
    Keyword::PARTITION,
    Keyword::RESUME,
    Keyword::SUSPEND,
    Keyword::SWAP,
];
/// What goes on with a word that is reserved in PostgreSQL.
const NO_NAMES: [(Keyword, Keyword); 3] =
    [(Keyword::DROP, Keyword::PRIMARY), (Keyword::DROP, Keyword::FOREIGN), (Keyword::RENAME, Keyword::AS)];

/// What may follow SET, if it is about an identity column.
const SETTABLE: [Keyword; 12] = [
    Keyword::GENERATED,
    Keyword::AS,
    Keyword::CACHE,
    Keyword::CYCLE,
    Keyword::INCREMENT,
    Keyword::MAXVALUE,
    Keyword::MINVALUE,
    Keyword::NO,
    Keyword::OWNED,
    Keyword::RESTART,
    Keyword::SEQUENCE,
    Keyword::START,
];

/// A change of an identity column.
pub(crate) enum IdentityChange<'t> {
    /// ADD GENERATED, with these options of the sequence.
    Add(&'t [SequenceOptions]),
    /// SET and RESTART, in their order.
    Set(&'t [SequenceOptions]),
    /// DROP EXPRESSION.
    DropExpression {
        /// Whether the column may be none that is generated.
        if_exists: bool,
    },
    /// DROP IDENTITY.
    Drop {
        /// Whether the column may have none.
        if_exists: bool,
    },
}

/// What the options of a tree of ADD GENERATED say that it is.
pub(crate) fn identity_change(options: Option<&[SequenceOptions]>) -> IdentityChange<'_> {
    let options = options.unwrap_or_default();
    let Some((first, rest)) = options.split_first() else { return IdentityChange::Add(options) };
    if marked_value(first, SET).is_some() {
        return IdentityChange::Set(rest);
    }
    if let Some((value, _)) = marked_value(first, EXPRESSION) {
        return IdentityChange::DropExpression { if_exists: is_true(value) };
    }
    match marked_value(first, DROP) {
        Some((value, _)) => IdentityChange::Drop { if_exists: is_true(value) },
        None => IdentityChange::Add(options),
    }
}

/// The kind of SET GENERATED, if the option is that.
pub(crate) fn set_generated(option: &SequenceOptions) -> Option<GeneratedAs> {
    let (always, _) = marked_value(option, GENERATED)?;
    Some(if is_true(always) { GeneratedAs::Always } else { GeneratedAs::ByDefault })
}

/// The name and the span of an option that may not be set.
pub(crate) fn refused_option(option: &SequenceOptions) -> Option<(&str, Span)> {
    match marked_value(option, REFUSED)? {
        (Expr::Value(value), span) => match &value.value {
            Value::SingleQuotedString(name) => Some((name.as_str(), span)),
            _ => None,
        },
        _ => None,
    }
}

fn is_true(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if value.value == Value::Boolean(true))
}

/// ALTER TABLE; `None` for any other statement.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is_alter_table = is_word(parser, 0, Keyword::ALTER) && is_word(parser, 1, Keyword::TABLE);
    is_alter_table.then(|| alter_table(parser))
}

fn alter_table(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    (0..2).for_each(|_| parser.advance_token());
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let only = parser.parse_keyword(Keyword::ONLY);
    let name = parser.parse_object_name(false)?;
    // RENAME stands alone.
    let operations = match is_word(parser, 0, Keyword::RENAME) {
        true => vec![operation(parser)?],
        false => parser.parse_comma_separated(|parser| match is_word(parser, 0, Keyword::RENAME) {
            true => parser.expected_ref("an action", parser.peek_token_ref()),
            false => operation(parser),
        })?,
    };
    Ok(Statement::AlterTable(AlterTable {
        name,
        if_exists,
        only,
        operations,
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: AttachedToken::empty(),
    }))
}

/// What follows the name of a column: the kind of ADD GENERATED, and the options.
type Change = (Option<GeneratedAs>, Vec<SequenceOptions>);

fn operation(parser: &mut Parser<'_>) -> Result<AlterTableOperation, ParserError> {
    if NO_ACTIONS.iter().any(|keyword| is_word(parser, 0, *keyword)) {
        return parser.expected_ref("an action", parser.peek_token_ref());
    }
    if NO_NAMES.iter().any(|(first, second)| is_word(parser, 0, *first) && is_word(parser, 1, *second)) {
        return parser.expected_ref("a name", parser.peek_nth_token_ref(1));
    }
    let place = if is_word(parser, 1, Keyword::COLUMN) { 2 } else { 1 };
    let follows = |at: usize, keyword: Keyword| is_word(parser, place + at, keyword);
    let is_set = follows(1, Keyword::SET) && SETTABLE.iter().any(|keyword| follows(2, *keyword));
    let is_add = follows(1, Keyword::ADD) && follows(2, Keyword::GENERATED);
    let is_drop = follows(1, Keyword::DROP) && follows(2, Keyword::IDENTITY);
    let is_drop_expression = follows(1, Keyword::DROP)
        && matches!(&parser.peek_nth_token_ref(place + 2).token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(EXPRESSION));
    let is_restart = follows(1, Keyword::RESTART);
    if !is_word(parser, 0, Keyword::ALTER) || !(is_set || is_add || is_drop || is_drop_expression || is_restart) {
        return parser.parse_alter_table_operation();
    }
    (0..place).for_each(|_| parser.advance_token());
    let column_name = parser.parse_identifier()?;
    let (generated_as, options) = match () {
        () if is_add => add(parser)?,
        () if is_drop => dropped(parser, DROP),
        () if is_drop_expression => dropped(parser, EXPRESSION),
        () => set(parser)?,
    };
    let op = AlterColumnOperation::AddGenerated { generated_as, sequence_options: Some(options) };
    Ok(AlterTableOperation::AlterColumn { column_name, op })
}

/// `ALWAYS` or `BY DEFAULT`.
fn kind(parser: &mut Parser<'_>) -> Result<GeneratedAs, ParserError> {
    if parser.parse_keyword(Keyword::ALWAYS) {
        return Ok(GeneratedAs::Always);
    }
    parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
    Ok(GeneratedAs::ByDefault)
}

fn add(parser: &mut Parser<'_>) -> Result<Change, ParserError> {
    (0..2).for_each(|_| parser.advance_token());
    let kind = kind(parser)?;
    parser.expect_keywords(&[Keyword::AS, Keyword::IDENTITY])?;
    let mut options = Vec::new();
    if parser.consume_token(&Token::LParen) {
        options = sequences::options(parser)?.options;
        parser.expect_token(&Token::RParen)?;
    }
    Ok((Some(kind), options))
}

/// DROP IDENTITY or DROP EXPRESSION.
fn dropped(parser: &mut Parser<'_>, mark: &str) -> Change {
    (0..2).for_each(|_| parser.advance_token());
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    (None, vec![marked(mark, Expr::value(Value::Boolean(if_exists)), Span::empty())])
}

/// Any number of SET and RESTART.
fn set(parser: &mut Parser<'_>) -> Result<Change, ParserError> {
    let mut out = vec![marked(SET, Expr::value(Value::Null), Span::empty())];
    loop {
        if parser.parse_keyword(Keyword::RESTART) {
            out.push(sequences::parse_restart(parser)?);
        } else if parser.parse_keyword(Keyword::SET) {
            set_option(parser, &mut out)?;
        } else {
            return Ok((None, out));
        }
    }
}

fn set_option(parser: &mut Parser<'_>, out: &mut Vec<SequenceOptions>) -> Result<(), ParserError> {
    let span = parser.peek_token_ref().span;
    if parser.parse_keyword(Keyword::GENERATED) {
        let always = kind(parser)? == GeneratedAs::Always;
        out.push(marked(GENERATED, Expr::value(Value::Boolean(always)), span));
        return Ok(());
    }
    let mut given = Options::default();
    if !sequences::option(parser, &mut given)? {
        return parser.expected_ref("an option of a sequence", parser.peek_token_ref());
    }
    let refused = match &given {
        Options { data_type: Some(_), .. } => Some("as"),
        Options { owned_by: Some(_), .. } => Some("owned_by"),
        Options { options, .. } => options.iter().find_map(sequences::restart).map(|_| "restart"),
    };
    match refused {
        Some(name) => out.push(marked(REFUSED, Expr::value(Value::SingleQuotedString(name.to_owned())), span)),
        None => out.append(&mut given.options),
    }
    Ok(())
}
