//! Paths: elements, arrows, selectors, and branches with their arms.

use super::{Parser, Result};
use crate::ast::{Arm, Arrow, Condition, Element, Path, Selector, Statement, Step};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Kind;
use crate::literal;
use crate::span::Spanned;

impl Parser<'_> {
    pub(super) fn path(&mut self) -> Result<Statement> {
        let back = if self.is_word("back") && self.ahead(1).kind == Kind::Word { Some(self.next().span) } else { None };
        if self.is(Kind::LeftBracket) {
            let span = self.token().span;
            let finding = Diagnostic::error(Code::Path, span, "nothing leads into this branch");
            return Err(self.fail(finding.help("a path begins with `in`, `out` or an instance")));
        }
        let steps = self.steps()?;
        if let [Step { element: Element::Call { name: Some(name), call, selector: None }, .. }] = steps.as_slice() {
            // BESS: `name::ACL()` alone declares.
            return Ok(Statement::Instance { name: name.clone(), call: call.clone() });
        }
        if steps.len() == 1 {
            return Err(self.unexpected("`->`"));
        }
        Ok(Statement::Path(Path { back, steps }))
    }

    fn steps(&mut self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let mut arrow = None;
        loop {
            let start = self.token().span;
            let element = self.nested(Self::element)?;
            steps.push(Step { arrow, element, span: self.since(start) });
            arrow = self.arrow()?;
            if arrow.is_none() {
                return Ok(steps);
            }
        }
    }

    /// `->`, `<->`, `-(rate)->` or `<-(rate)->`, if one stands here.
    fn arrow(&mut self) -> Result<Option<Arrow>> {
        let two_way = match self.token().kind {
            Kind::Arrow | Kind::TwoWay => {
                let two_way = self.next().kind == Kind::TwoWay;
                return Ok(Some(Arrow { two_way, rate: None }));
            }
            Kind::Minus => false,
            Kind::LeftArrow => true,
            _ => return Ok(None),
        };
        self.next();
        self.expect(Kind::LeftParen, "`->` or `(` and a rate")?;
        let rate = Some(self.expression()?);
        self.expect(Kind::RightParen, "`)`")?;
        self.expect(Kind::Arrow, "`->`")?;
        Ok(Some(Arrow { two_way, rate }))
    }

    fn element(&mut self) -> Result<Element> {
        if self.is(Kind::LeftBracket) {
            return self.branch();
        }
        if !self.is(Kind::Word) {
            return Err(self.unexpected("an instance, a function, `in`, `out` or a branch"));
        }
        for (word, element) in [("in", Element::In), ("out", Element::Out), ("drop", Element::Drop)] {
            if self.eat_word(word) {
                return Ok(element);
            }
        }
        let name = self.instance_name()?;
        if self.eat(Kind::ColonColon) {
            let function = self.name("the name of a function or macro")?;
            let call = self.call(function)?;
            let selector = self.selector()?;
            return Ok(Element::Call { name: Some(name), call, selector });
        }
        if self.is(Kind::LeftParen) {
            let call = self.call(name)?;
            let selector = self.selector()?;
            return Ok(Element::Call { name: None, call, selector });
        }
        Ok(Element::Instance { name, selector: self.selector()? })
    }

    /// `[value]`, `[attribute == value]` or `[attribute != value]` right behind an instance.
    fn selector(&mut self) -> Result<Option<Selector>> {
        if !self.is(Kind::LeftBracket) {
            return Ok(None);
        }
        let start = self.next().span;
        let named = matches!(self.ahead(1).kind, Kind::EqualsEquals | Kind::BangEquals);
        let (attribute, negated) = if named {
            let name = self.name("the name of an attribute")?;
            (Some(name), self.next().kind == Kind::BangEquals)
        } else {
            (None, false)
        };
        let value = self.expression()?;
        self.expect(Kind::RightBracket, "`]`")?;
        Ok(Some(Selector { attribute, negated, value, span: self.since(start) }))
    }

    fn branch(&mut self) -> Result<Element> {
        let start = self.next().span;
        let mut arms = Vec::new();
        while !self.is(Kind::RightBracket) {
            arms.push(self.nested(Self::arm)?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightBracket, "`,` or `]`")?;
        if arms.is_empty() {
            let finding = Diagnostic::error(Code::Syntax, self.since(start), "a branch needs an arm")
                .help("for example `[ \"tcp port 80\": cache, else: drop ]`");
            return Err(self.fail(finding));
        }
        Ok(Element::Branch(arms))
    }

    fn arm(&mut self) -> Result<Arm> {
        let start = self.token().span;
        if self.is(Kind::LeftBrace) {
            return self.lemur_arm();
        }
        let next = self.ahead(1).kind;
        let condition = match self.token().kind {
            Kind::Text => {
                let token = self.next();
                let text = literal::text(self.text(token));
                Some(Condition::Filter(Spanned { node: text, span: token.span }))
            }
            Kind::Number => Some(Condition::Split(self.expression()?)),
            Kind::Word if matches!(next, Kind::EqualsEquals | Kind::BangEquals) => {
                let name = self.name("the name of an attribute")?;
                let negated = self.next().kind == Kind::BangEquals;
                Some(Condition::Attribute { name, negated, value: self.expression()? })
            }
            Kind::Word if matches!(next, Kind::Colon | Kind::Tilde) => {
                let name = self.name("a condition")?;
                Some(if name.node == "else" { Condition::Else } else { Condition::Named(name) })
            }
            _ => None,
        };
        if condition.is_none() {
            let steps = self.steps()?;
            return Ok(Arm { condition, share: None, steps, span: self.since(start) });
        }
        let share = if self.eat(Kind::Tilde) { Some(self.expression()?) } else { None };
        self.expect(Kind::Colon, "`:` between the arm's condition and its path")?;
        let span = self.since(start);
        let empty = matches!(self.token().kind, Kind::Comma | Kind::RightBracket);
        let steps = if empty { Vec::new() } else { self.steps()? };
        Ok(Arm { condition, share, steps, span })
    }

    /// `{'field': value, …, path}`
    fn lemur_arm(&mut self) -> Result<Arm> {
        let start = self.next().span;
        let mut fields = Vec::new();
        let mut steps = Vec::new();
        while !self.is(Kind::RightBrace) {
            let field = matches!(self.token().kind, Kind::Word | Kind::Text) && self.ahead(1).kind == Kind::Colon;
            if field {
                fields.push(self.nested(Self::field)?);
            } else {
                steps = self.steps()?;
                break;
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.eat(Kind::Comma);
        self.expect(Kind::RightBrace, "`,` or `}`")?;
        let condition = (!fields.is_empty()).then_some(Condition::Fields(fields));
        Ok(Arm { condition, share: None, steps, span: self.since(start) })
    }
}
