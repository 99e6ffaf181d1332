//! Operators that the parser's tokenizer splits and PostgreSQL does not: `7%-2` has the operator `%-`, which does not
//! exist.
//!
//! PostgreSQL takes as many characters of operators as there are. A name of several characters ends in `+` or `-` only
//! if it has one of `~ ! @ # % ^ & | ?` too, so `a=-1` means what it seems to.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::text::SourceText;

const CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
/// An operator with one of these may end in `+` or `-`.
const SPECIAL: &str = "~!@#%^&|`?";

/// Joins the tokens that are one operator.
pub(super) fn joined(text: &SourceText, tokens: &mut Vec<TokenWithSpan>) {
    // Edits in place: there may be many tokens, and few are operators.
    let (mut kept, mut at) = (0, 0);
    while at < tokens.len() {
        let count = parts_of_operator(text, &tokens[at..]);
        if count > 1 {
            let (start, end) = (tokens[at].span.start, tokens[at + count - 1].span.end);
            let span = Span { start, end };
            let name = text.source(span).to_owned();
            tokens[kept] = TokenWithSpan { token: Token::CustomBinaryOperator(name), span };
        } else if kept != at {
            tokens.swap(kept, at);
        }
        (kept, at) = (kept + 1, at + count.max(1));
    }
    tokens.truncate(kept);
}

/// How many of the first tokens are one operator of PostgreSQL. 1 if the first token stays as it is.
fn parts_of_operator(text: &SourceText, tokens: &[TokenWithSpan]) -> usize {
    let Some(first) = tokens.first().filter(|token| is_operator(token, text)) else { return 1 };
    let (mut run, mut end, mut ends) = (text.source(first.span).to_owned(), first.span.end, Vec::new());
    ends.push(run.len());
    for next in &tokens[1..] {
        if !follows(end, next) || !is_operator(next, text) {
            break;
        }
        run.push_str(text.source(next.span));
        (end, _) = (next.span.end, ends.push(run.len()));
    }
    let mut length = run.len();
    while length > 1 && run[..length].ends_with(['+', '-']) && !run[..length - 1].contains(|c| SPECIAL.contains(c)) {
        length -= 1;
    }
    ends.iter().position(|end| *end == length).map_or(1, |at| at + 1)
}

fn follows(end: Location, next: &TokenWithSpan) -> bool {
    next.span.start == end
}

/// Whether a token consists of characters of operators. A comment is white space.
fn is_operator(token: &TokenWithSpan, text: &SourceText) -> bool {
    if matches!(token.token, Token::Whitespace(_) | Token::Word(_) | Token::Number(..) | Token::EOF) {
        return false;
    }
    let source = text.source(token.span);
    !source.is_empty() && source.chars().all(|c| CHARACTERS.contains(c))
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn operators(sql: &str) -> Vec<String> {
        let mut tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
        let text = SourceText::new(sql);
        joined(&text, &mut tokens);
        let found = tokens.iter().filter(|token| is_operator(token, &text));
        found.map(|token| text.source(token.span).to_owned()).collect()
    }

    #[test]
    fn operators_end_where_those_of_postgresql_do() {
        assert_eq!(operators("7%-2"), ["%-"]);
        assert_eq!(operators("1 +* 2"), ["+*"]);
        assert_eq!(operators("a=-1"), ["=", "-"]);
        assert_eq!(operators("a*-1 + -b"), ["*", "-", "+", "-"]);
        assert_eq!(operators("a||-1"), ["||-"]);
        assert_eq!(operators("j->-1"), ["->", "-"]);
        assert_eq!(operators("a<>-1"), ["<>", "-"]);
        assert_eq!(operators("a <- 1"), ["<", "-"]);
        assert_eq!(operators("2*/* no */-1"), ["*", "-"]);
        assert_eq!(operators("1+-- to the end\n2"), ["+"]);
        assert_eq!(operators("@ -1"), ["@", "-"]);
        assert_eq!(operators("count(*)-1"), ["*", "-"]);
    }
}
