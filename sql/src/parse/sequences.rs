//! Parses CREATE SEQUENCE, ALTER SEQUENCE and GENERATED ... AS IDENTITY: the parser knows the options of sequences in
//! one order only, and no ALTER SEQUENCE.
//!
//! The tree is that of CREATE SEQUENCE. A first part of the name that no text of a client contains says what else it
//! is; prefix nodes that nothing else produces mark RESTART and SEQUENCE NAME.

use sqlparser::ast::{
    ColumnOption, Expr, GeneratedAs, Ident, ObjectName, ObjectNamePart, SequenceOptions, Statement, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

/// The first part of the name in a tree that is one of ALTER SEQUENCE.
pub(crate) const ALTER: &str = "\0alter";
/// The same for RENAME TO. The new name is that of the owner.
pub(crate) const RENAME: &str = "\0rename";
/// The prefix of the value of RESTART; NULL without one.
const RESTART: &str = "restart";
/// The prefix of the name that SEQUENCE NAME gives.
const NAMED: &str = "sequence name";

/// The options of a sequence.
#[derive(Default)]
pub(super) struct Options {
    pub(super) data_type: Option<sqlparser::ast::DataType>,
    pub(super) options: Vec<SequenceOptions>,
    pub(super) owned_by: Option<ObjectName>,
}

/// An option that the parser does not know.
pub(super) fn marked(mark: &str, value: Expr, span: Span) -> SequenceOptions {
    let prefix = Ident { value: mark.to_owned(), quote_style: None, span };
    SequenceOptions::StartWith(Expr::Prefixed { prefix, value: Box::new(value) }, false)
}

/// The value and the span of an option with this mark.
pub(super) fn marked_value<'o>(option: &'o SequenceOptions, mark: &str) -> Option<(&'o Expr, Span)> {
    match option {
        SequenceOptions::StartWith(Expr::Prefixed { prefix, value }, _) if prefix.value == mark => {
            Some((value, prefix.span))
        }
        _ => None,
    }
}

pub(super) fn is_word(parser: &Parser<'_>, at: usize, keyword: Keyword) -> bool {
    let token = &parser.peek_nth_token_ref(at).token;
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

/// A statement about a sequence; `None` for any other one.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is_sequence = |at| is_word(parser, at, Keyword::SEQUENCE);
    if is_word(parser, 0, Keyword::ALTER) && is_sequence(1) {
        return Some(alter(parser));
    }
    let is_temporary = is_word(parser, 1, Keyword::TEMPORARY) || is_word(parser, 1, Keyword::TEMP);
    let is_create = is_word(parser, 0, Keyword::CREATE) && (is_sequence(1) || (is_temporary && is_sequence(2)));
    is_create.then(|| create(parser, is_temporary))
}

fn create(parser: &mut Parser<'_>, temporary: bool) -> Result<Statement, ParserError> {
    (0..if temporary { 3 } else { 2 }).for_each(|_| parser.advance_token());
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let Options { data_type, options, owned_by } = options(parser)?;
    let sequence_options = options;
    Ok(Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by })
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    (0..2).for_each(|_| parser.advance_token());
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut name = parser.parse_object_name(false)?;
    let (mark, Options { data_type, options, owned_by }) = match parser.parse_keywords(&[Keyword::RENAME, Keyword::TO])
    {
        true => {
            let new = ObjectName::from(vec![parser.parse_identifier()?]);
            (RENAME, Options { owned_by: Some(new), ..Options::default() })
        }
        false => (ALTER, options(parser)?),
    };
    name.0.insert(0, ObjectNamePart::Identifier(Ident::new(mark)));
    let sequence_options = options;
    Ok(Statement::CreateSequence { temporary: false, if_not_exists, name, data_type, sequence_options, owned_by })
}

/// The value of RESTART, if the option is that. `Some(None)` without one.
#[expect(clippy::option_option, reason = "RESTART may have no value")]
pub(crate) fn restart(option: &SequenceOptions) -> Option<Option<&Expr>> {
    let (value, _) = marked_value(option, RESTART)?;
    let is_null = matches!(value, Expr::Value(value) if value.value == Value::Null);
    Some(if is_null { None } else { Some(value) })
}

/// The name of SEQUENCE NAME and the span of the option, if the option is that.
pub(crate) fn sequence_name(option: &SequenceOptions) -> Option<(ObjectName, Span)> {
    match marked_value(option, NAMED)? {
        (Expr::CompoundIdentifier(parts), span) => Some((ObjectName::from(parts.clone()), span)),
        _ => None,
    }
}

/// The options, in any order.
pub(super) fn options(parser: &mut Parser<'_>) -> Result<Options, ParserError> {
    let mut out = Options::default();
    while option(parser, &mut out)? {}
    Ok(out)
}

/// Parses one option. Returns whether there is one.
pub(super) fn option(parser: &mut Parser<'_>, out: &mut Options) -> Result<bool, ParserError> {
    if parser.parse_keyword(Keyword::AS) {
        out.data_type = Some(parser.parse_data_type()?);
    } else if parser.parse_keyword(Keyword::INCREMENT) {
        let by = parser.parse_keyword(Keyword::BY);
        out.options.push(SequenceOptions::IncrementBy(parser.parse_number()?, by));
    } else if parser.parse_keyword(Keyword::MINVALUE) {
        out.options.push(SequenceOptions::MinValue(Some(parser.parse_number()?)));
    } else if parser.parse_keyword(Keyword::MAXVALUE) {
        out.options.push(SequenceOptions::MaxValue(Some(parser.parse_number()?)));
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::MINVALUE]) {
        out.options.push(SequenceOptions::MinValue(None));
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::MAXVALUE]) {
        out.options.push(SequenceOptions::MaxValue(None));
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::CYCLE]) {
        out.options.push(SequenceOptions::Cycle(false));
    } else if parser.parse_keyword(Keyword::CYCLE) {
        out.options.push(SequenceOptions::Cycle(true));
    } else if parser.parse_keyword(Keyword::START) {
        let with = parser.parse_keyword(Keyword::WITH);
        out.options.push(SequenceOptions::StartWith(parser.parse_number()?, with));
    } else if parser.parse_keyword(Keyword::RESTART) {
        out.options.push(parse_restart(parser)?);
    } else if parser.parse_keyword(Keyword::CACHE) {
        out.options.push(SequenceOptions::Cache(parser.parse_number()?));
    } else if parser.parse_keywords(&[Keyword::OWNED, Keyword::BY]) {
        out.owned_by = Some(parser.parse_object_name(false)?);
    } else if is_word(parser, 0, Keyword::SEQUENCE) && is_word(parser, 1, Keyword::NAME) {
        out.options.push(parse_sequence_name(parser)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

pub(super) fn parse_restart(parser: &mut Parser<'_>) -> Result<SequenceOptions, ParserError> {
    let with = parser.parse_keyword(Keyword::WITH);
    let is_number = matches!(parser.peek_token_ref().token, Token::Number(..) | Token::Minus | Token::Plus);
    let value = match with || is_number {
        true => parser.parse_number()?,
        false => Expr::value(Value::Null),
    };
    Ok(marked(RESTART, value, Span::empty()))
}

fn parse_sequence_name(parser: &mut Parser<'_>) -> Result<SequenceOptions, ParserError> {
    let span = parser.peek_token_ref().span;
    (0..2).for_each(|_| parser.advance_token());
    let name = parser.parse_object_name(false)?;
    let parts = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    Ok(marked(NAMED, Expr::CompoundIdentifier(parts), span))
}

/// GENERATED ... AS IDENTITY behind a column; `None` for any other option.
pub(super) fn identity(parser: &mut Parser<'_>) -> Option<Result<Option<ColumnOption>, ParserError>> {
    let always = is_word(parser, 1, Keyword::ALWAYS);
    let words = if always { 2 } else { 3 };
    let by_default = is_word(parser, 1, Keyword::BY) && is_word(parser, 2, Keyword::DEFAULT);
    let is_identity = is_word(parser, 0, Keyword::GENERATED)
        && (always || by_default)
        && is_word(parser, words, Keyword::AS)
        && is_word(parser, words + 1, Keyword::IDENTITY);
    is_identity.then(|| {
        (0..words + 2).for_each(|_| parser.advance_token());
        let mut sequence_options = None;
        if parser.consume_token(&Token::LParen) {
            sequence_options = Some(options(parser)?.options);
            parser.expect_token(&Token::RParen)?;
        }
        Ok(Some(ColumnOption::Generated {
            generated_as: if always { GeneratedAs::Always } else { GeneratedAs::ByDefault },
            sequence_options,
            generation_expr: None,
            generation_expr_mode: None,
            generated_keyword: true,
        }))
    })
}
