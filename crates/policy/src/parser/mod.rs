//! Recursive descent over the tokens. After an error the parser goes on at the next statement, so
//! that one run reports several; nesting is bounded, so that no input exhausts the stack.

mod expression;
mod path;

use crate::ast::{Call, Item, Parameter, Promise, PromisedRate, Relation, RelationWord, Statement};
use crate::diagnostic::{Code, Diagnostic, Findings, likely};
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

/// Words of the grammar, which cannot name an instance.
const RESERVED: [&str; 9] = ["in", "out", "drop", "else", "promise", "within", "chain", "macro", "class"];

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

    fn item(&mut self) -> Result<Item> {
        let token = self.token();
        if token.kind == Kind::Word && self.ahead(1).kind == Kind::Word {
            match self.text(token) {
                "class" => return self.class(),
                "let" => return self.constant(),
                "macro" => return self.composite(),
                "chain" => return self.chain(),
                "priority" => return self.relation(RelationWord::Priority),
                "cpu" => return self.relation(RelationWord::Cpu),
                "throughput" => return self.relation(RelationWord::Throughput),
                "share" => return self.relation(RelationWord::Share),
                "promise" | "back" => {}
                other => {
                    let close = likely(other, ITEM_WORDS.into_iter().chain(["promise"]));
                    let message = format!("no statement begins with `{other}`");
                    let finding = Diagnostic::error(Code::Syntax, token.span, message)
                        .label("expected `class`, `let`, `macro`, `chain`, a path or a relation")
                        .suggest(close);
                    return Err(self.fail(finding));
                }
            }
        }
        self.statement().map(Item::Bare)
    }

    fn class(&mut self) -> Result<Item> {
        self.next();
        let name = self.name("the name of the class")?;
        self.expect(Kind::Equals, "`=`")?;
        let filter = self.expression()?;
        let back = if self.is_word("back") && !self.path_follows_back() {
            self.next();
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Item::Class { name, filter, back })
    }

    /// `back a -> b` behind a class is a path, `back other` the filter of its return traffic.
    fn path_follows_back(&self) -> bool {
        self.ahead(1).kind == Kind::Word
            && matches!(
                self.ahead(2).kind,
                Kind::Arrow
                    | Kind::TwoWay
                    | Kind::Minus
                    | Kind::LeftArrow
                    | Kind::LeftParen
                    | Kind::LeftBracket
                    | Kind::ColonColon
            )
    }

    fn constant(&mut self) -> Result<Item> {
        self.next();
        let name = self.name("the name of the constant")?;
        self.expect(Kind::Equals, "`=`")?;
        Ok(Item::Let { name, value: self.expression()? })
    }

    fn composite(&mut self) -> Result<Item> {
        self.next();
        let name = self.name("the name of the macro")?;
        let mut parameters = Vec::new();
        if self.eat(Kind::LeftParen) {
            while !self.is(Kind::RightParen) {
                let name = self.name("the name of a parameter")?;
                let default = if self.eat(Kind::Equals) { Some(self.expression()?) } else { None };
                parameters.push(Parameter { name, default });
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::RightParen, "`,` or `)`")?;
        }
        Ok(Item::Macro { name, parameters, body: self.block()? })
    }

    fn chain(&mut self) -> Result<Item> {
        self.next();
        let name = self.name("the name of the chain")?;
        let mut classes = Vec::new();
        if self.eat_word("for") {
            classes.push(self.name("the name of a class")?);
            while self.eat(Kind::Comma) {
                classes.push(self.name("the name of a class")?);
            }
        }
        Ok(Item::Chain { name, classes, body: self.block()? })
    }

    /// `{ statement … }`
    fn block(&mut self) -> Result<Vec<Statement>> {
        let opening = self.at;
        let brace = self.expect(Kind::LeftBrace, "`{`")?.span;
        self.blocks.push(opening);
        let mut body = Vec::new();
        loop {
            if self.eat(Kind::Semicolon) {
                continue;
            }
            if self.eat(Kind::RightBrace) {
                return Ok(body);
            }
            let token = self.token();
            // Two words in a row at the start of a line: a forgotten `}`.
            let item = token.first_on_line
                && self.ahead(1).kind == Kind::Word
                && ["class", "chain", "macro", "let"].iter().any(|w| self.is_word(w));
            if token.kind == Kind::End || item {
                let finding = Diagnostic::error(Code::Syntax, brace, "this block does not end")
                    .label("opened here")
                    .help("a block ends with `}`");
                return Err(self.fail(finding));
            }
            if self.findings.full() {
                return Err(Failed);
            }
            let before = self.at;
            self.starts.push(before);
            match self.statement() {
                Ok(statement) => body.push(statement),
                Err(Failed) => self.recover(before),
            }
        }
    }

    fn relation(&mut self, word: RelationWord) -> Result<Item> {
        let start = self.next().span;
        let separator = if word == RelationWord::Priority { Kind::Greater } else { Kind::Colon };
        let mut members = vec![self.name("the name of a chain or class")?];
        while self.eat(separator) {
            members.push(self.name("the name of a chain or class")?);
        }
        if members.len() < 2 {
            return Err(self.unexpected(separator.describe()));
        }
        let mut weights = Vec::new();
        if word != RelationWord::Priority {
            self.expect(Kind::Equals, "`:` or `=`")?;
            weights.push(self.expression()?);
            while self.eat(Kind::Colon) {
                weights.push(self.expression()?);
            }
        }
        Ok(Item::Relation(Relation { word, span: self.since(start), members, weights }))
    }

    fn statement(&mut self) -> Result<Statement> {
        let next = self.ahead(1).kind;
        if self.is_word("promise") && next != Kind::Equals {
            return self.promise().map(Statement::Promise);
        }
        if self.is(Kind::Word) && next == Kind::Equals {
            let name = self.instance_name()?;
            self.next();
            let function = self.name("the name of a function or macro")?;
            let call = self.call(function)?;
            return Ok(Statement::Instance { name, call });
        }
        self.path()
    }

    fn instance_name(&mut self) -> Result<Name> {
        let name = self.name("a name")?;
        if RESERVED.contains(&name.node.as_str()) {
            let message = format!("`{}` is a word of the language and names no instance", name.node);
            return Err(self.fail(Diagnostic::error(Code::Syntax, name.span, message)));
        }
        Ok(name)
    }

    fn promise(&mut self) -> Result<Promise> {
        let start = self.next().span;
        let rate = if self.eat_word("bulk") || self.is_word("within") {
            PromisedRate::Bulk
        } else if self.is(Kind::Dots) {
            self.next();
            match self.upper_bound()? {
                None => PromisedRate::Bulk,
                upper => PromisedRate::Between(None, upper),
            }
        } else {
            let low = self.expression()?;
            if self.eat(Kind::Dots) {
                PromisedRate::Between(Some(low), self.upper_bound()?)
            } else {
                PromisedRate::Exactly(low)
            }
        };
        let within = if self.eat_word("within") { Some(self.expression()?) } else { None };
        Ok(Promise { span: self.since(start), rate, within })
    }

    /// What follows `..`: a number, or the name of a constant that touches the dots. Any other word
    /// begins the next part: `promise 100Mbps..  in -> …`
    fn upper_bound(&mut self) -> Result<Option<crate::ast::Expr>> {
        let token = self.token();
        let touching = self.tokens[self.at - 1].span.end == token.span.start;
        match token.kind {
            Kind::Number => self.expression().map(Some),
            Kind::Word if touching => self.expression().map(Some),
            _ => Ok(None),
        }
    }

    /// `(name = value, …)` behind `function`; the parentheses may be absent.
    fn call(&mut self, function: Name) -> Result<Call> {
        let start = function.span;
        let mut arguments = Vec::new();
        if self.is(Kind::LeftParen) {
            self.nested(|p| {
                p.next();
                while !p.is(Kind::RightParen) {
                    let name = p.name("the name of a parameter or `)`")?;
                    p.expect(Kind::Equals, "`=` (arguments are given by name)")?;
                    arguments.push((name, p.expression()?));
                    if !p.eat(Kind::Comma) {
                        break;
                    }
                }
                p.expect(Kind::RightParen, "`,` or `)`").map(|_| ())
            })?;
        }
        Ok(Call { function, arguments, span: self.since(start) })
    }
}
