//! Tables that the parser does not know: ROWS FROM, and TABLE as a query.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::text::keyword;

/// The name of a function that stands for ROWS FROM in FROM. No text of a client contains it.
pub(crate) const ROWS: &str = "\0rows";

fn keyword_of(token: Option<&TokenWithSpan>) -> Keyword {
    token.map_or(Keyword::NoKeyword, |found| keyword(&found.token))
}

/// Turns ROWS FROM into the name of a function, whose arguments are the calls. Elsewhere than in FROM, ROWS is a name.
pub(super) fn with_rows(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let mut kept = vec![true; tokens.len()];
    // Whether a comma separates tables, here and outside of the parentheses; whether a table may follow.
    let (mut is_list, mut outer, mut may_follow) = (false, Vec::new(), false);
    for (place, at) in solid.iter().enumerate() {
        let next = |distance: usize| solid.get(place + distance).map(|at| &tokens[*at]);
        let found = keyword_of(tokens.get(*at));
        if may_follow && found == Keyword::ROWS && keyword_of(next(1)) == Keyword::FROM {
            let is_call = next(2).is_some_and(|token| token.token == Token::LParen);
            if let (true, Some(from)) = (is_call, solid.get(place + 1)) {
                let name = Word { value: ROWS.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
                tokens[*at].token = Token::Word(name);
                kept[*from] = false;
            }
        }
        may_follow = match (&tokens[*at].token, found) {
            // Parentheses around a join.
            (Token::LParen, _) => {
                outer.push(std::mem::replace(&mut is_list, false));
                may_follow
            }
            (Token::RParen, _) => {
                is_list = outer.pop().unwrap_or_default();
                false
            }
            (Token::Comma, _) => is_list,
            (_, Keyword::FROM | Keyword::USING) => {
                is_list = true;
                true
            }
            (_, Keyword::JOIN | Keyword::LATERAL) => true,
            (Token::SemiColon, _) | (_, Keyword::SELECT) => {
                is_list = false;
                false
            }
            _ => false,
        };
    }
    let mut kept = kept.into_iter();
    tokens.retain(|_| kept.next().unwrap_or(true));
    tokens
}

/// What has begun, whose query is still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    Nothing,
    With,
    Insert,
    Explain,
}

/// Finds the queries `TABLE name`.
#[derive(Default)]
struct Queries {
    /// What has begun, here and outside of the parentheses.
    begun: Begun,
    outer: Vec<Begun>,
    /// Whether the statement is CREATE and its AS is still to come.
    creates: bool,
    /// The last token, and its keyword; `None` at the beginning of a statement.
    last: Option<(Token, Keyword)>,
}

impl Queries {
    /// Takes the next token. Returns whether it is a TABLE that begins a query.
    fn step(&mut self, token: &Token, found: Keyword) -> bool {
        let begins = self.may_begin();
        let is_query = begins && found == Keyword::TABLE;
        let is_first = self.last.is_none();
        if matches!(self.last, Some((_, Keyword::AS))) && self.outer.is_empty() {
            self.creates = false;
        }
        match (token, found) {
            (Token::LParen, _) => self.outer.push(std::mem::take(&mut self.begun)),
            (Token::RParen, _) => self.begun = self.outer.pop().unwrap_or_default(),
            (Token::SemiColon, _) => *self = Queries::default(),
            (_, Keyword::EXPLAIN) if is_first => self.begun = Begun::Explain,
            (_, Keyword::CREATE) if is_first || self.begun == Begun::Explain => {
                (self.creates, self.begun) = (true, Begun::Nothing);
            }
            (_, Keyword::WITH) if begins => self.begun = Begun::With,
            (_, Keyword::INSERT) if begins => self.begun = Begun::Insert,
            (_, Keyword::SELECT | Keyword::VALUES | Keyword::UPDATE | Keyword::DELETE | Keyword::TABLE) => {
                self.begun = Begun::Nothing;
            }
            _ => {}
        }
        self.last = (*token != Token::SemiColon).then(|| (token.clone(), found));
        is_query
    }

    /// Whether a query may begin here.
    fn may_begin(&self) -> bool {
        let Some((token, last)) = &self.last else { return true };
        match (token, last) {
            (Token::LParen, _)
            | (_, Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::ALL | Keyword::DISTINCT) => true,
            (_, Keyword::AS) => self.creates && self.outer.is_empty(),
            (_, Keyword::INTO) => false,
            (Token::RParen, _) => self.begun != Begun::Nothing,
            (_, Keyword::EXPLAIN | Keyword::ANALYZE | Keyword::VERBOSE) => self.begun != Begun::Nothing,
            (Token::Word(_), _) => self.begun == Begun::Insert,
            _ => false,
        }
    }
}

/// Turns each query `TABLE name` into `SELECT * FROM name`, because the parser loses the token after the name.
pub(super) fn with_tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 2);
    let mut queries = Queries::default();
    for token in tokens {
        let is_blank = matches!(token.token, Token::Whitespace(_));
        if !is_blank && queries.step(&token.token, keyword(&token.token)) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            out.extend(words.map(|word| TokenWithSpan { token: word, span: token.span }));
        } else {
            out.push(token);
        }
    }
    out
}
