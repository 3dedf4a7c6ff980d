//! The canonical layout of a chain file. It works on tokens, so that what is written stays what is
//! written, comments included: only white space, `;` and commas before a closing bracket change.
//!
//! A statement stands on one line if it fits. If not, a path breaks before its arrows and a
//! bracket puts each of its items on a line of its own.

use crate::lexer::{Comment, Kind, Token};
use crate::parser::Parsed;

/// Columns of a line, where it can be helped.
const WIDTH: usize = 100;
const STEP: usize = 4;

/// What a bracket is for; decides the space within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Plain,
    Branch,
    Block,
}

/// A token or a comment, by index.
#[derive(Clone, Copy)]
enum Piece {
    Token(usize),
    Comment(usize),
}

struct Layout<'a> {
    source: &'a str,
    tokens: &'a [Token],
    comments: &'a [Comment],
    /// For each token that is a bracket: what for.
    roles: Vec<Role>,
    /// For each opening bracket the index of its closing one.
    partners: Vec<usize>,
    /// For each token, whether it stands in a ratio (`cpu a : b = 2 : 1`).
    ratio: Vec<bool>,
    out: String,
    column: usize,
    /// A comment ended the line: the next piece begins a new one.
    ended: bool,
}

/// Lays `source` out, of which `parsed` was read without errors.
pub(crate) fn layout(source: &str, parsed: &Parsed) -> String {
    let tokens = &parsed.lexed.tokens;
    let mut layout = Layout {
        source,
        tokens,
        comments: &parsed.lexed.comments,
        roles: vec![Role::Plain; tokens.len()],
        partners: vec![usize::MAX; tokens.len()],
        ratio: vec![false; tokens.len()],
        out: String::with_capacity(source.len() + source.len() / 8),
        column: 0,
        ended: false,
    };
    layout.study(parsed);
    layout.file(parsed);
    layout.out
}

impl<'a> Layout<'a> {
    /// Finds out what each bracket is for.
    fn study(&mut self, parsed: &Parsed) {
        let mut open: Vec<usize> = Vec::new();
        let mut blocks = parsed.blocks.iter().copied().peekable();
        let mut starts = parsed.starts.iter().copied().peekable();
        let mut ratio = false;
        for at in 0..self.tokens.len() {
            if starts.next_if_eq(&at).is_some() {
                ratio = matches!(self.text(at), "cpu" | "throughput" | "share")
                    && self.tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Word);
            }
            self.ratio[at] = ratio;
            match self.tokens[at].kind {
                Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => {
                    if blocks.next_if_eq(&at).is_some() {
                        self.roles[at] = Role::Block;
                    } else if self.tokens[at].kind == Kind::LeftBracket {
                        let within = open.last().is_some_and(|o| self.roles[*o] == Role::Branch);
                        let before = at.checked_sub(1).map(|b| self.tokens[b].kind);
                        let branch = match before {
                            Some(Kind::Arrow | Kind::TwoWay) => true,
                            Some(Kind::Colon | Kind::Comma | Kind::LeftBracket) => within,
                            _ => false,
                        };
                        if branch {
                            self.roles[at] = Role::Branch;
                        }
                    }
                    open.push(at);
                }
                Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                    if let Some(partner) = open.pop() {
                        self.partners[partner] = at;
                        self.roles[at] = self.roles[partner];
                    }
                }
                _ => {}
            }
        }
    }

    fn file(&mut self, parsed: &Parsed) {
        let mut starts = parsed.starts.iter().copied().peekable();
        let mut comment = 0;
        let mut depth = 0;
        let mut statement: Vec<Piece> = Vec::new();
        let mut before = 0;
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            let closes = token.kind == Kind::RightBrace && self.roles[at] == Role::Block;
            let ends = starts.next_if_eq(&at).is_some() || closes || token.kind == Kind::End;
            // What stands between the statements, or within this one.
            let first = comment;
            let limit = if token.kind == Kind::End { usize::MAX } else { token.span.start as usize };
            while self.comments.get(comment).is_some_and(|c| (c.span.start as usize) < limit) {
                comment += 1;
            }
            if ends {
                self.statement(&mut statement, depth);
                for c in first..comment {
                    before = self.between(c, before, depth);
                }
                if token.kind == Kind::End {
                    break;
                }
                if !closes {
                    self.blank(before, token.span.start as usize);
                }
            } else {
                statement.extend((first..comment).map(Piece::Comment));
            }
            before = token.span.end as usize;
            match token.kind {
                Kind::Semicolon => {}
                _ if closes => {
                    depth -= 1;
                    self.line(depth * STEP);
                    self.push("}");
                }
                Kind::LeftBrace if self.roles[at] == Role::Block => {
                    statement.push(Piece::Token(at));
                    self.statement(&mut statement, depth);
                    depth += 1;
                }
                _ => statement.push(Piece::Token(at)),
            }
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn statement(&mut self, pieces: &mut Vec<Piece>, depth: usize) {
        // Comments at its end (before a `;`) stand behind the statement, not within.
        let last = pieces.iter().rposition(|p| matches!(p, Piece::Token(_)));
        let tail = pieces.split_off(last.map_or(0, |last| last + 1));
        if let Some(Piece::Token(last)) = pieces.last().copied() {
            self.line(depth * STEP);
            self.sequence(pieces, depth * STEP);
            pieces.clear();
            let mut before = self.tokens[last].span.end as usize;
            for piece in tail {
                if let Piece::Comment(comment) = piece {
                    before = self.between(comment, before, depth);
                }
            }
        }
    }

    /// A comment between statements; returns where it ends.
    fn between(&mut self, at: usize, before: usize, depth: usize) -> usize {
        let comment = self.comments[at];
        if comment.own_line {
            self.blank(before, comment.span.start as usize);
            self.line(depth * STEP);
        } else if !self.out.is_empty() {
            self.push("  ");
        }
        self.comment(at);
        self.ended = false;
        comment.span.end as usize
    }

    /// Keeps one empty line where the source has some, but none at the start of a block.
    fn blank(&mut self, from: usize, to: usize) {
        let between = self.source.get(from..to).unwrap_or("");
        let lines = between.bytes().filter(|b| *b == b'\n').count();
        if lines > 1 && !self.out.is_empty() && !self.out.ends_with('{') {
            self.out.push('\n');
            self.column = 0;
        }
    }

    fn text(&self, at: usize) -> &'a str {
        &self.source[self.tokens[at].span.within(self.source)]
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Begins a line, unless the file begins here.
    fn line(&mut self, indent: usize) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
        self.ended = false;
    }

    fn comment(&mut self, at: usize) {
        let text = &self.source[self.comments[at].span.within(self.source)];
        self.push(text);
        self.ended = true;
    }

    /// The pieces on one line; None if a comment stands among them.
    fn flat(&self, pieces: &[Piece]) -> Option<String> {
        let mut text = String::new();
        let mut before: Option<usize> = None;
        for (i, piece) in pieces.iter().enumerate() {
            let Piece::Token(at) = *piece else {
                return None;
            };
            if self.superfluous(pieces, i) {
                continue;
            }
            if before.is_some_and(|b| self.space(b, at)) {
                text.push(' ');
            }
            text.push_str(self.text(at));
            before = Some(at);
        }
        Some(text)
    }

    fn fits(&self, text: &str, column: usize) -> bool {
        column + text.chars().count() <= WIDTH
    }

    /// A comma right before a closing bracket.
    fn superfluous(&self, pieces: &[Piece], at: usize) -> bool {
        let Some(Piece::Token(comma)) = pieces.get(at) else {
            return false;
        };
        self.tokens[*comma].kind == Kind::Comma
            && self.tokens.get(comma + 1).is_some_and(|next| {
                matches!(next.kind, Kind::RightParen | Kind::RightBracket | Kind::RightBrace)
            })
            // An empty arm needs its comma no more than the others.
            && self.tokens[comma - 1].kind != Kind::Comma
    }

    /// Pieces from the current column on, broken if they must be.
    fn sequence(&mut self, pieces: &[Piece], indent: usize) {
        if let Some(text) = self.flat(pieces)
            && self.fits(&text, self.column)
        {
            return self.push(&text);
        }
        for (i, part) in self.parts(pieces).into_iter().enumerate() {
            let text = self.flat(part);
            if i == 0 {
                self.part(part, text, indent);
                continue;
            }
            if let Some(text) = &text
                && !self.ended
                && self.fits(text, self.column + 1)
            {
                self.push(" ");
                self.push(text);
                continue;
            }
            self.line(indent + STEP);
            self.part(part, text, indent + STEP);
        }
    }

    fn part(&mut self, pieces: &[Piece], text: Option<String>, indent: usize) {
        match text {
            Some(text) if self.fits(&text, self.column) => self.push(&text),
            _ => self.broken(pieces, indent),
        }
    }

    /// Splits before each arrow outside brackets.
    fn parts<'p>(&self, pieces: &'p [Piece]) -> Vec<&'p [Piece]> {
        let mut parts = Vec::new();
        let mut from = 0;
        let mut depth = 0usize;
        for (i, piece) in pieces.iter().enumerate() {
            let Piece::Token(at) = *piece else { continue };
            match self.tokens[at].kind {
                Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => depth += 1,
                Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                    depth = depth.saturating_sub(1);
                }
                _ => {}
            }
            if depth == 0 && i > from && self.begins_arrow(at) {
                parts.push(&pieces[from..i]);
                from = i;
            }
        }
        parts.push(&pieces[from..]);
        parts
    }

    fn next_is(&self, at: usize, kind: Kind) -> bool {
        self.tokens.get(at + 1).is_some_and(|t| t.kind == kind)
    }

    fn begins_arrow(&self, at: usize) -> bool {
        match self.tokens[at].kind {
            Kind::TwoWay | Kind::LeftArrow => true,
            Kind::Arrow => !(at > 0 && self.tokens[at - 1].kind == Kind::RightParen && self.closes_rate(at - 1)),
            Kind::Minus => self.next_is(at, Kind::LeftParen),
            _ => false,
        }
    }

    /// Whether the `)` at `at` ends the rate of an arrow.
    fn closes_rate(&self, at: usize) -> bool {
        let opening = self.partners[..at].iter().rposition(|p| *p == at);
        opening
            .and_then(|o| o.checked_sub(1))
            .is_some_and(|before| matches!(self.tokens[before].kind, Kind::Minus | Kind::LeftArrow))
    }

    /// Pieces that do not fit: brackets are opened, comments end their lines.
    fn broken(&mut self, pieces: &[Piece], indent: usize) {
        let mut before: Option<usize> = None;
        let mut i = 0;
        while i < pieces.len() {
            let at = match pieces[i] {
                Piece::Comment(comment) => {
                    if self.comments[comment].own_line {
                        self.line(indent + STEP);
                    } else {
                        self.push("  ");
                    }
                    self.comment(comment);
                    i += 1;
                    continue;
                }
                Piece::Token(at) => at,
            };
            if self.superfluous(pieces, i) {
                i += 1;
                continue;
            }
            if self.ended {
                self.line(indent + STEP);
            } else if before.is_some_and(|b| self.space(b, at)) {
                self.push(" ");
            }
            before = Some(at);
            let close = self.partners[at];
            let length = pieces[i..].iter().position(|p| matches!(p, Piece::Token(t) if *t == close));
            let Some(length) = length.filter(|_| close != usize::MAX) else {
                self.push(self.text(at));
                i += 1;
                continue;
            };
            let group = &pieces[i..=i + length];
            match self.flat(group) {
                Some(text) if self.fits(&text, self.column) => self.push(&text),
                _ => self.group(group, at, close, indent),
            }
            before = Some(close);
            i += length + 1;
        }
    }

    /// A bracket with each item on its own line.
    fn group(&mut self, pieces: &[Piece], open: usize, close: usize, indent: usize) {
        self.push(self.text(open));
        let inner = &pieces[1..pieces.len() - 1];
        let mut from = 0;
        while from < inner.len() {
            if let Piece::Comment(comment) = inner[from] {
                if self.comments[comment].own_line {
                    self.line(indent + STEP);
                } else {
                    self.push("  ");
                }
                self.comment(comment);
                from += 1;
                continue;
            }
            let (end, comma) = self.item(inner, from);
            if end > from {
                self.line(indent + STEP);
                self.sequence(&inner[from..end], indent + STEP);
            }
            from = end;
            if let Some(comma) = comma {
                if !self.superfluous(inner, comma) {
                    if self.ended {
                        self.line(indent + STEP);
                    }
                    self.push(",");
                }
                from = comma + 1;
            }
        }
        self.line(indent);
        self.push(self.text(close));
    }

    /// Where the item that begins at `from` ends, and its comma.
    fn item(&self, pieces: &[Piece], from: usize) -> (usize, Option<usize>) {
        let mut depth = 0usize;
        let mut end = from;
        for (i, piece) in pieces.iter().enumerate().skip(from) {
            let Piece::Token(at) = *piece else { continue };
            match self.tokens[at].kind {
                Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => depth += 1,
                Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                    depth = depth.saturating_sub(1);
                }
                // With comments between them, the comma stands alone.
                Kind::Comma if depth == 0 => return (end, (end == i).then_some(i)),
                _ => {}
            }
            end = i + 1;
        }
        (end, None)
    }

    /// Whether a space stands between two tokens that follow each other on a line.
    fn space(&self, a: usize, b: usize) -> bool {
        use Kind::{
            Arrow, Colon, ColonColon, Comma, Dots, LeftArrow, LeftBrace, LeftBracket, LeftParen, Minus, RightBrace,
            RightBracket, RightParen, Word,
        };
        let (before, after) = (self.tokens[a].kind, self.tokens[b].kind);
        match (before, after) {
            (_, Comma | ColonColon | RightParen) | (ColonColon | LeftParen, _) => false,
            (LeftBracket, _) => self.roles[a] == Role::Branch,
            (_, RightBracket) => self.roles[b] == Role::Branch,
            (LeftBrace, _) | (_, RightBrace) => false,
            (_, Colon) => self.ratio[b],
            (Minus | LeftArrow, _) => false,
            (Word, LeftParen) => false,
            (Word | RightParen, LeftBracket) => false,
            (RightParen, Arrow) => !self.closes_rate(a),
            (Word, Dots) => self.text(a) == "promise",
            (_, Dots) => false,
            (Dots, Word) => self.tokens[a].span.end != self.tokens[b].span.start,
            (Dots, _) => false,
            // A range has no space around its dash; an arrow and a sign have one before it.
            (Kind::Number | Kind::Address, Minus) => self.next_is(b, LeftParen),
            _ => true,
        }
    }
}
