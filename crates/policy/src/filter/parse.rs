//! Reads a filter as conditions on the parsed headers (`man pcap-filter` is the grammar). libpcap has judged the text
//! before and stays the authority: names are resolved by it, and a part that is not understood here is its program.

use std::net::IpAddr;

use super::expression::{Condition, Endpoint, Expression, Joint, Network, View};
use super::vocabulary::{
    REDIRECTING, WITH_PORTS, is_keyword, is_of_frames, is_protocol, named_protocol, network, number, upper,
};
use super::words::{Kind, Word, words};
use super::{Compiler, Insn};

/// Read `text` as conditions. `program` is libpcap's of the whole.
pub(super) fn expression(text: &str, program: &[Insn], compiler: &dyn Compiler) -> Expression {
    let whole = |view| Expression::Is(Condition::Program { program: program.to_vec(), view });
    let Some(words) = words(text) else { return whole(View::Frame) };
    if words.is_empty() {
        return Expression::All(Vec::new());
    }
    if words.iter().any(|word| REDIRECTING.contains(&&text[word.span.clone()])) {
        return whole(View::Frame);
    }
    let mut parser = Parser { text, words: &words, at: 0, compiler, vlans: 0, shared: None, nested: 0 };
    match parser.sequence() {
        Some(expression) if parser.at == words.len() => expression,
        // What is not understood is shown what it may ask about.
        _ => {
            let is_of_link = |word: &Word| {
                let word = &text[word.span.clone()];
                word == "vlan" || is_of_frames(word)
            };
            whole(if words.iter().any(is_of_link) { View::Frame } else { View::Bare })
        }
    }
}

/// What stands before an identifier and holds for those that follow it: `tcp dst port`.
#[derive(Clone, Debug)]
struct Qualifiers {
    protocol: Option<String>,
    endpoint: Option<Endpoint>,
    /// `host`, `net`, `port`, `portrange`, `proto` or `protochain`.
    kind: String,
    /// As they are written.
    text: String,
}

struct Parser<'a> {
    text: &'a str,
    words: &'a [Word],
    at: usize,
    compiler: &'a dyn Compiler,
    /// Tags asked for so far: the next `vlan` is about the one behind them.
    vlans: u8,
    /// Of the condition just read, for an identifier that stands alone.
    shared: Option<Qualifiers>,
    nested: u32,
}

/// Parentheses and negations in each other that are read; libpcap's parser has a bound, too.
const MOST_NESTED: u32 = 64;

impl<'a> Parser<'a> {
    fn kind(&self) -> Option<Kind> {
        self.words.get(self.at).map(|word| word.kind)
    }

    /// The next word, if it is a name.
    fn name(&self) -> Option<&'a str> {
        let word = self.words.get(self.at).filter(|word| word.kind == Kind::Name)?;
        Some(&self.text[word.span.clone()])
    }

    fn take(&mut self, kind: Kind) -> Option<()> {
        (self.kind() == Some(kind)).then(|| self.at += 1)
    }

    /// The text of the words `from..to`.
    fn between(&self, from: usize, to: usize) -> &'a str {
        match (self.words.get(from), self.words.get(to.wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => &self.text[first.span.start..last.span.end],
            _ => "",
        }
    }

    fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.nested == MOST_NESTED {
            return None;
        }
        self.nested += 1;
        let read = read(self);
        self.nested -= 1;
        read
    }

    /// Terms joined by `and` and `or`, which bind equally: from left to right.
    fn sequence(&mut self) -> Option<Expression> {
        let mut read = self.term()?;
        loop {
            let by = match self.kind() {
                Some(Kind::And) => Joint::And,
                Some(Kind::Or) => Joint::Or,
                _ => return Some(read),
            };
            self.at += 1;
            let next = self.term()?;
            read = read.joined(next, by);
        }
    }

    fn term(&mut self) -> Option<Expression> {
        match self.kind()? {
            Kind::Not => {
                self.at += 1;
                let inner = self.nest(Self::term)?;
                Some(Expression::Not(Box::new(inner)))
            }
            _ if self.is_arithmetic() => self.relation(),
            Kind::Open => {
                self.at += 1;
                let inner = self.nest(Self::sequence)?;
                self.take(Kind::Close)?;
                // Which qualifiers an identifier behind it would have is libpcap's to say.
                self.shared = None;
                Some(inner)
            }
            Kind::Name => self.primitive(),
            _ => None,
        }
    }

    /// The end of what stands here up to the next `and`, `or` or the parenthesis that closes.
    fn end(&self) -> usize {
        let mut open = 0_usize;
        for (at, word) in self.words.iter().enumerate().skip(self.at) {
            match word.kind {
                Kind::Open => open += 1,
                Kind::Close if open == 0 => return at,
                Kind::Close => open -= 1,
                Kind::And | Kind::Or if open == 0 => return at,
                _ => {}
            }
        }
        self.words.len()
    }

    /// Whether a comparison stands here outside of parentheses: the parentheses are arithmetic's, then.
    fn is_arithmetic(&self) -> bool {
        let mut open = 0_usize;
        self.words[self.at..self.end()].iter().any(|word| {
            match word.kind {
                Kind::Open => open += 1,
                Kind::Close => open = open.saturating_sub(1),
                _ => {}
            }
            word.kind == Kind::Compare && open == 0
        })
    }

    fn relation(&mut self) -> Option<Expression> {
        self.shared = None;
        let from = self.at;
        self.at = self.end();
        self.program(from)
    }

    /// What stands from `from` up to here, as libpcap's program.
    fn program(&self, from: usize) -> Option<Expression> {
        let of_frames = |word: &Word| is_of_frames(&self.text[word.span.clone()]);
        // `ip multicast` is about addresses.
        let is_of_frames = self.words.get(from).is_some_and(of_frames)
            || self.words[from..self.at].windows(2).any(|two| of_frames(&two[0]) && two[1].kind == Kind::Index)
            || self.words[from..self.at].iter().any(|word| &self.text[word.span.clone()] == "len");
        let view = if is_of_frames { View::Frame } else { View::Bare };
        self.compiled(self.between(from, self.at), view)
    }

    fn compiled(&self, text: &str, view: View) -> Option<Expression> {
        let program = self.compiler.compile(text).ok()?;
        Some(Expression::Is(Condition::Program { program, view }))
    }

    fn primitive(&mut self) -> Option<Expression> {
        let from = self.at;
        let mut protocol = None;
        if let Some(word) = self.name().filter(|word| is_protocol(word)) {
            self.at += 1;
            protocol = Some(word);
        }
        let endpoint = self.endpoint()?;
        let kind = match self.name() {
            Some(kind @ ("host" | "net" | "port" | "portrange" | "proto" | "protochain")) => {
                self.at += 1;
                Some(kind)
            }
            // An address stands alone behind its endpoint, with the meaning of `host`.
            Some(word) if endpoint.is_some() && !is_keyword(word) => Some("host"),
            None if endpoint.is_some() && self.kind() == Some(Kind::Open) => Some("host"),
            _ => None,
        };
        if let Some(kind) = kind {
            let text = self.between(from, self.at).to_owned();
            let protocol = protocol.map(str::to_owned);
            self.shared = Some(Qualifiers { protocol, endpoint, kind: kind.to_owned(), text });
            return self.identifiers();
        }
        if endpoint.is_some() {
            return None;
        }
        match (protocol, self.name()) {
            (Some(word), following) if following.is_none_or(|next| !is_keyword(next)) => {
                self.shared = None;
                named_protocol(word).or_else(|| {
                    // RARP, the link's own words, and headers that are read past.
                    let view = if is_of_frames(word) { View::Frame } else { View::Untagged };
                    self.compiled(self.between(from, self.at), view)
                })
            }
            (None, Some("vlan")) => self.vlan(),
            (None, Some(word)) if !is_keyword(word) => {
                // An identifier alone: that of the condition before holds for it, too.
                self.shared.as_ref()?;
                self.identifier()
            }
            // Of the rest each is libpcap's: up to the next `and` or `or` is one condition, or several of one kind.
            _ => {
                self.shared = None;
                self.at = self.end();
                self.program(from)
            }
        }
    }

    /// `src`, `dst`, `src or dst`, `src and dst` and the like.
    #[expect(clippy::option_option, reason = "the outer one ends the reading")]
    fn endpoint(&mut self) -> Option<Option<Endpoint>> {
        let first = match self.name() {
            Some("src") => Endpoint::Source,
            Some("dst") => Endpoint::Destination,
            _ => return Some(None),
        };
        self.at += 1;
        let joint = match self.kind() {
            Some(Kind::And) => Endpoint::Both,
            Some(Kind::Or) => Endpoint::Either,
            _ => return Some(Some(first)),
        };
        let second = self.words.get(self.at + 1).map(|word| &self.text[word.span.clone()]);
        match (first, second) {
            (Endpoint::Source, Some("dst")) | (Endpoint::Destination, Some("src")) => {
                // `src or dst host …`, unless it is `src or dst 10.0.0.1 …` of two conditions, which libpcap refuses.
                self.at += 2;
                Some(Some(joint))
            }
            _ => None,
        }
    }

    /// What follows qualifiers: an identifier, or several in parentheses.
    fn identifiers(&mut self) -> Option<Expression> {
        if self.take(Kind::Open).is_none() {
            return self.identifier();
        }
        let inner = self.nest(|parser| {
            let mut read = parser.identifier()?;
            while let Some(kind @ (Kind::And | Kind::Or)) = parser.kind() {
                parser.at += 1;
                let by = if kind == Kind::And { Joint::And } else { Joint::Or };
                read = read.joined(parser.identifier()?, by);
            }
            Some(read)
        })?;
        self.take(Kind::Close)?;
        Some(inner)
    }

    fn identifier(&mut self) -> Option<Expression> {
        if self.take(Kind::Not).is_some() {
            let inner = self.nest(Self::identifier)?;
            return Some(Expression::Not(Box::new(inner)));
        }
        let qualifiers = self.shared.clone()?;
        let from = self.at;
        self.name()?;
        self.at += 1;
        let mut mask = None;
        if self.take(Kind::Sign).is_some() {
            if self.between(self.at - 1, self.at) != "/" {
                return None;
            }
            mask = Some(self.name()?);
            self.at += 1;
        } else if qualifiers.kind == "net" && self.name() == Some("mask") {
            self.at += 2;
            let text = format!("{} {}", qualifiers.text, self.between(from, self.at));
            return self.compiled(&text, View::Bare);
        }
        let word = &self.text[self.words[from].span.clone()];
        let text = format!("{} {}", qualifiers.text, self.between(from, self.at));
        let read = match qualifiers.kind.as_str() {
            "host" | "net" => self.address(&qualifiers, word, mask),
            "port" | "portrange" if mask.is_none() => self.port(&qualifiers, word),
            "proto" | "protochain" if mask.is_none() && qualifiers.endpoint.is_none() => {
                self.protocol(&qualifiers, word)
            }
            _ => None,
        };
        read.or_else(|| {
            let is_proto = qualifiers.kind == "proto";
            let view = match qualifiers.protocol.as_deref().is_some_and(is_of_frames) {
                // Behind `vlan` the type is meant that follows the tag.
                true if is_proto && self.vlans > 0 => View::Untagged,
                true => View::Frame,
                // Of a header in between: it must be seen.
                false if is_proto => View::Untagged,
                false => View::Bare,
            };
            self.compiled(&text, view)
        })
    }

    fn address(&self, qualifiers: &Qualifiers, word: &str, mask: Option<&str>) -> Option<Expression> {
        let (network, prefix) = network(word, mask, &qualifiers.kind)?;
        let over = match network {
            IpAddr::V4(_) => "ip",
            IpAddr::V6(_) => "ip6",
        };
        let endpoint = qualifiers.endpoint.unwrap_or(Endpoint::Either);
        let resolution = match qualifiers.protocol.as_deref() {
            Some(protocol) if protocol == over => None,
            Some(_) => return None,
            None if network.is_ipv6() => None,
            None => {
                let rest = format!("{} {word}{}", qualifiers.text, mask.map(|m| format!("/{m}")).unwrap_or_default());
                Some(self.compiler.compile(&format!("arp {rest} or rarp {rest}")).ok()?)
            }
        };
        Some(Expression::Is(Condition::Address { endpoint, network, prefix, resolution }))
    }

    fn port(&self, qualifiers: &Qualifiers, word: &str) -> Option<Expression> {
        let mut protocols = match qualifiers.protocol.as_deref() {
            None => WITH_PORTS.map(|(_, number)| number).to_vec(),
            Some(name) => WITH_PORTS.iter().filter(|(known, _)| *known == name).map(|(_, number)| *number).collect(),
        };
        if protocols.is_empty() {
            return None;
        }
        let number = |word: &str| u16::try_from(number(word)?).ok();
        let (from, to) = match number(word) {
            Some(port) => (port, port),
            None if qualifiers.kind == "portrange" => {
                let (from, to) = word.split_once('-')?;
                // libpcap takes a range either way round.
                let (from, to) = (number(from)?, number(to)?);
                (from.min(to), from.max(to))
            }
            None => {
                let named = self.compiler.compile(&format!("{} {word}", qualifiers.text)).ok()?;
                let (port, of) = match self.resolved(&named, &qualifiers.text) {
                    Some(port) => (port, None),
                    // A service of one protocol is looked for in that alone.
                    None if protocols.len() > 1 => WITH_PORTS.iter().find_map(|(name, number)| {
                        let port = self.resolved(&named, &format!("{name} {}", qualifiers.text))?;
                        Some((port, Some(*number)))
                    })?,
                    None => return None,
                };
                protocols = of.map_or(protocols, |number| vec![number]);
                (port, port)
            }
        };
        let endpoint = qualifiers.endpoint.unwrap_or(Endpoint::Either);
        Some(Expression::Is(Condition::Port { endpoint, protocols, from, to }))
    }

    fn protocol(&self, qualifiers: &Qualifiers, word: &str) -> Option<Expression> {
        let over = match qualifiers.protocol.as_deref() {
            None => None,
            Some("ip") => Some(Network::Ipv4),
            Some("ip6") => Some(Network::Ipv6),
            Some(_) => return None,
        };
        let number = match number(word) {
            Some(number) => u8::try_from(number).ok()?,
            None => {
                let named = self.compiler.compile(&format!("{} {word}", qualifiers.text)).ok()?;
                u8::try_from(self.resolved(&named, &qualifiers.text)?).ok()?
            }
        };
        upper(over, number)
    }

    /// The number that libpcap took a name for: the one with which it makes the program that it made of the name.
    fn resolved(&self, named: &[Insn], qualifiers: &str) -> Option<u16> {
        let mut tried = Vec::new();
        for number in named.iter().filter_map(|insn| u16::try_from(insn.k).ok()) {
            if !tried.contains(&number) {
                tried.push(number);
                if self.compiler.compile(&format!("{qualifiers} {number}")).is_ok_and(|program| program == named) {
                    return Some(number);
                }
            }
        }
        None
    }

    fn vlan(&mut self) -> Option<Expression> {
        self.shared = None;
        self.at += 1;
        let mut id = None;
        if let Some(word) = self.name() {
            id = Some(u16::try_from(number(word)?).ok()?);
            self.at += 1;
        }
        let depth = self.vlans;
        self.vlans = self.vlans.checked_add(1)?;
        Some(Expression::Is(Condition::Vlan { depth, id }))
    }
}
