//! Statements: classes, constants, macros, chains, relations, promises, what becomes of frames that are not parsed, instances.

use super::{Failed, ITEM_WORDS, Parser, Result};
use crate::ast::{Call, Expr, Item, Parameter, Promise, PromisedRate, Relation, RelationWord, Statement, Unparsed};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::lexer::Kind;
use crate::span::Name;

/// Words of the grammar, which cannot name an instance.
const RESERVED: [&str; 10] = ["in", "out", "drop", "else", "promise", "within", "unparsed", "chain", "macro", "class"];

/// How a chain says that it drops what is not parsed.
const UNPARSED: &str = "`chain NAME { unparsed = drop  in -> … -> out }`";

impl Parser<'_> {
    pub(super) fn item(&mut self) -> Result<Item> {
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
        if RESERVED.contains(&name.node.as_str()) {
            return Err(self.no_constant(&name));
        }
        self.expect(Kind::Equals, "`=`")?;
        Ok(Item::Let { name, value: self.expression()? })
    }

    /// A word of the language behind `let`: a constant of that name would do nothing.
    fn no_constant(&mut self, name: &Name) -> Failed {
        let message = format!("`{}` is a word of the language and names no constant", name.node);
        let finding = Diagnostic::error(Code::Syntax, name.span, message);
        self.fail(match name.node.as_str() {
            "unparsed" => finding.help(format!("without `let`, inside a chain: {UNPARSED}")),
            "promise" => finding.help("without `let` and `=`, inside a chain: `chain NAME { promise 1Gbps.. … }`"),
            _ => finding,
        })
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
            if self.is_word("let") && self.word_ahead(1, "unparsed") && self.ahead(2).kind == Kind::Equals {
                self.next();
                let name = Name { node: "unparsed".to_owned(), span: self.token().span };
                self.no_constant(&name);
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

    pub(super) fn statement(&mut self) -> Result<Statement> {
        let next = self.ahead(1).kind;
        if self.is_word("promise") && next != Kind::Equals {
            return self.promise().map(Statement::Promise);
        }
        // A function of this name is an instance with a name that it cannot have.
        if self.is_word("unparsed") && next == Kind::Equals && self.ahead(3).kind != Kind::LeftParen {
            let start = self.next().span;
            self.next();
            let action = self.name("`pass` or `drop`")?;
            return Ok(Statement::Unparsed(Unparsed { span: self.since(start), action }));
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

    pub(super) fn instance_name(&mut self) -> Result<Name> {
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
    fn upper_bound(&mut self) -> Result<Option<Expr>> {
        let token = self.token();
        let touching = self.tokens[self.at - 1].span.end == token.span.start;
        match token.kind {
            Kind::Number => self.expression().map(Some),
            Kind::Word if touching => self.expression().map(Some),
            _ => Ok(None),
        }
    }

    /// `(name = value, …)` behind `function`; the parentheses may be absent.
    pub(super) fn call(&mut self, function: Name) -> Result<Call> {
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
