//! Expressions: literals, words, lists, records, ranges and files.

use super::{Failed, Parser, Result};
use crate::ast::{Expr, ExprKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Kind;
use crate::literal;
use crate::span::{Name, Spanned};
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        let first = self.nested(Self::atom)?;
        // `a - b` is a range; `a -(2Gbps)-> b` is an arrow and begins with `-(`.
        if self.is(Kind::Minus) && matches!(self.ahead(1).kind, Kind::Number | Kind::Address) {
            self.next();
            let last = self.nested(Self::atom)?;
            let span = first.span.to(last.span);
            return Ok(Spanned { node: ExprKind::Range(Box::new(first), Box::new(last)), span });
        }
        Ok(first)
    }

    fn atom(&mut self) -> Result<Expr> {
        let token = self.token();
        let value = match token.kind {
            Kind::Number => literal::number(self.text(token), token.span),
            Kind::Address => literal::address(self.text(token), token.span),
            Kind::Text => Ok(Value::Text(literal::text(self.text(token)))),
            Kind::Minus => return self.negative(),
            Kind::LeftBracket => return self.list(),
            Kind::LeftBrace => return self.record(),
            Kind::Word => return self.word(),
            _ => return Err(self.unexpected("a value")),
        };
        self.next();
        let unit = self.token();
        if token.kind == Kind::Number
            && unit.kind == Kind::Word
            && !unit.first_on_line
            && literal::is_unit(self.text(unit))
            && matches!(value, Ok(Value::Integer(_) | Value::Float(_)))
        {
            self.next();
            let span = token.span.to(unit.span);
            let finding = Diagnostic::error(Code::Unit, span, "a number and its unit are written together");
            let help = format!("write `{}{}`", self.text(token), self.text(unit));
            self.findings.push(finding.help(help));
            return Ok(Spanned { node: ExprKind::Broken, span });
        }
        match value {
            Ok(value) => Ok(Spanned { node: ExprKind::Literal(value), span: token.span }),
            // The token itself is fine: report, and go on with a value in its place.
            Err(finding) => {
                self.findings.push(*finding);
                Ok(Spanned { node: ExprKind::Broken, span: token.span })
            }
        }
    }

    fn negative(&mut self) -> Result<Expr> {
        let start = self.next().span;
        let token = self.expect(Kind::Number, "a number")?;
        let span = start.to(token.span);
        let value = match literal::number(self.text(token), token.span) {
            Ok(Value::Integer(n)) => Value::Integer(-n),
            Ok(Value::Float(x)) => Value::Float(-x),
            Ok(other) => {
                let message = format!("{} is never negative", other.describe());
                return Err(self.fail(Diagnostic::error(Code::Literal, span, message)));
            }
            Err(finding) => return Err(self.fail(*finding)),
        };
        Ok(Spanned { node: ExprKind::Literal(value), span })
    }

    fn word(&mut self) -> Result<Expr> {
        let token = self.next();
        let word = self.text(token).to_owned();
        if word == "file" && self.is(Kind::LeftParen) {
            self.next();
            let path = self.nested(Self::expression)?;
            self.expect(Kind::RightParen, "`)`")?;
            let span = self.since(token.span);
            return Ok(Spanned { node: ExprKind::File(Box::new(path)), span });
        }
        let node = match word.as_str() {
            "true" | "True" => ExprKind::Literal(Value::Bool(true)),
            "false" | "False" => ExprKind::Literal(Value::Bool(false)),
            _ => ExprKind::Word(word),
        };
        Ok(Spanned { node, span: token.span })
    }

    fn list(&mut self) -> Result<Expr> {
        let start = self.next().span;
        let mut values = Vec::new();
        while !self.is(Kind::RightBracket) {
            values.push(self.nested(Self::expression)?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightBracket, "`,` or `]`")?;
        Ok(Spanned { node: ExprKind::List(values), span: self.since(start) })
    }

    fn record(&mut self) -> Result<Expr> {
        let start = self.next().span;
        let mut fields = Vec::new();
        while !self.is(Kind::RightBrace) {
            fields.push(self.nested(Self::field)?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightBrace, "`,` or `}`")?;
        Ok(Spanned { node: ExprKind::Record(fields), span: self.since(start) })
    }

    /// `key: value`, the key a word or (as Lemur writes) a string.
    pub(super) fn field(&mut self) -> Result<(Name, Expr)> {
        let token = self.token();
        let key = match token.kind {
            Kind::Word => self.text(token).to_owned(),
            Kind::Text => literal::text(self.text(token)),
            _ => return Err::<_, Failed>(self.unexpected("the name of a field")),
        };
        self.next();
        self.expect(Kind::Colon, "`:`")?;
        Ok((Spanned { node: key, span: token.span }, self.expression()?))
    }
}
