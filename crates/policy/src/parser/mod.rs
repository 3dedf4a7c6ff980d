//! Recursive descent over the tokens. After an error the parser goes on at the next statement, so
//! that one run reports several; nesting is bounded, so that no input exhausts the stack.

mod expression;
mod path;
mod statement;

use crate::ast::Item;
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::lexer::{Kind, Lexed, Token, lex};
use crate::limits::MAX_DEPTH;
use crate::span::{Name, Span, Spanned};

/// A file as read, and what the formatter needs to know about it.
pub(crate) struct Parsed {
    pub(crate) items: Vec<Item>,
    pub(crate) lexed: Lexed,
    /// Token indices at which statements begin, ascending.
    pub(crate) starts: Vec<usize>,
    /// Token indices of the braces that open a block of statements.
    pub(crate) blocks: Vec<usize>,
}

/// The finding is recorded already.
pub(crate) struct Failed;

type Result<T> = std::result::Result<T, Failed>;

const ITEM_WORDS: [&str; 8] = ["class", "let", "macro", "chain", "priority", "cpu", "throughput", "share"];

pub(super) struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    findings: &'a mut Findings,
    starts: Vec<usize>,
    blocks: Vec<usize>,
}

/// Parses `source`; what is wrong goes to `findings`.
pub(crate) fn parse(source: &str, findings: &mut Findings) -> Parsed {
    let lexed = lex(source, findings);
    let mut parser = Parser {
        source,
        tokens: lexed.tokens.clone(),
        at: 0,
        depth: 0,
        findings,
        starts: Vec::new(),
        blocks: Vec::new(),
    };
    let mut items = Vec::new();
    while !parser.is(Kind::End) && !parser.findings.full() {
        if parser.eat(Kind::Semicolon) {
            continue;
        }
        let before = parser.at;
        parser.starts.push(before);
        match parser.item() {
            Ok(item) => items.push(item),
            Err(Failed) => parser.recover(before),
        }
    }
    Parsed { items, starts: parser.starts, blocks: parser.blocks, lexed }
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Token {
        // The last token is `End`, and it stays there.
        self.tokens[(self.at + by).min(self.tokens.len() - 1)]
    }

    fn is(&self, kind: Kind) -> bool {
        self.token().kind == kind
    }

    fn text(&self, token: Token) -> &str {
        &self.source[token.span.within(self.source)]
    }

    fn is_word(&self, word: &str) -> bool {
        self.word_ahead(0, word)
    }

    fn word_ahead(&self, by: usize, word: &str) -> bool {
        let token = self.ahead(by);
        token.kind == Kind::Word && self.text(token) == word
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.is(kind);
        if found {
            self.next();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    /// Records that something else stands here than `expected`.
    fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.token();
        let found = match token.kind {
            Kind::Word | Kind::Number | Kind::Address => format!("`{}`", self.text(token)),
            kind => kind.describe().to_owned(),
        };
        let message = format!("expected {expected}, found {found}");
        let finding = Diagnostic::error(Code::Syntax, token.span, message).label(format!("expected {expected}"));
        self.fail(finding)
    }

    fn fail(&mut self, finding: Diagnostic) -> Failed {
        self.findings.push(finding);
        Failed
    }

    fn expect(&mut self, kind: Kind, expected: &str) -> Result<Token> {
        if self.is(kind) { Ok(self.next()) } else { Err(self.unexpected(expected)) }
    }

    /// The span from `start` to the last token read.
    fn since(&self, start: Span) -> Span {
        self.tokens[self.at.saturating_sub(1)].span.to(start)
    }

    fn name(&mut self, expected: &str) -> Result<Name> {
        let token = self.expect(Kind::Word, expected)?;
        Ok(Spanned { node: self.text(token).to_owned(), span: token.span })
    }

    /// Runs `inner` one level deeper; fails beyond the bound.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.token().span;
            let text = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(self.fail(Diagnostic::error(Code::TooLarge, span, text)));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips to where a statement may begin: behind a `;`, at the first token of a line outside
    /// brackets, at a word that begins an item, or before the block's `}`.
    fn recover(&mut self, began: usize) {
        let mut open = 0usize;
        // Brackets the failed statement had opened already.
        for token in &self.tokens[began..self.at] {
            match token.kind {
                Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => open += 1,
                Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                    open = open.saturating_sub(1);
                }
                _ => {}
            }
        }
        if self.at == began {
            self.skip_one(&mut open);
        }
        loop {
            let token = self.token();
            let item = token.first_on_line && token.kind == Kind::Word && ITEM_WORDS.contains(&self.text(token));
            let fresh =
                token.first_on_line && open == 0 && !matches!(token.kind, Kind::Arrow | Kind::TwoWay | Kind::Minus);
            let closes = token.kind == Kind::RightBrace && open == 0;
            if token.kind == Kind::End || item || fresh || closes {
                break;
            }
            let ends = token.kind == Kind::Semicolon && open == 0;
            self.skip_one(&mut open);
            if ends {
                break;
            }
        }
    }

    fn skip_one(&mut self, open: &mut usize) {
        match self.next().kind {
            Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => *open += 1,
            Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                *open = open.saturating_sub(1);
            }
            _ => {}
        }
    }
}
