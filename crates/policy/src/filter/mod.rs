//! tcpdump filters: libpcap's own compiler decides what is valid. What a filter means travels in the graph as plain
//! data: conditions on the headers that Catena's parser finds, and libpcap's programs for what only they can say. Also
//! the mirror image of a filter, for return traffic.

mod expression;
mod parse;
mod vocabulary;
mod words;

use std::collections::HashMap;

use pcap::{Capture, Linktype};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_FILTER;
pub use expression::{Condition, Endpoint, Expression, Network, View};

/// One instruction of classic BPF (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Insn {
    /// Operation and addressing mode.
    pub code: u16,
    /// Instructions to skip if true.
    pub jt: u8,
    /// Instructions to skip if false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// A filter: its text and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// In tcpdump's syntax.
    pub text: String,
    /// libpcap's program for frames that begin with an Ethernet header; it returns 0 for packets that do not match. A
    /// packet matches the filter if it matches `expression`, which agrees with the program on packets without VLAN tags,
    /// extension headers and fragments.
    pub program: Vec<Insn>,
    /// The conditions that packets are held against.
    pub expression: Expression,
}

impl Filter {
    /// Make the filter of `text`, in tcpdump's syntax.
    ///
    /// # Errors
    /// What the compiler says about a filter it refuses.
    pub fn new(text: &str, compiler: &dyn Compiler) -> Result<Self, String> {
        let program = compiler.compile(text)?;
        let expression = parse::expression(text, &program, compiler);
        Ok(Self { text: text.to_owned(), program, expression })
    }

    /// What a packet is held against at most ([`Expression::steps`]), which bounds what it costs.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.expression.steps()
    }
}

/// Instructions of the longest way through a program: jumps go forward only.
fn longest_way(program: &[Insn]) -> u32 {
    let mut longest = vec![0_u32; program.len() + 1];
    for (at, insn) in program.iter().enumerate().rev() {
        let behind = |skipped: u32| longest.get(at + 1 + skipped as usize).copied().unwrap_or(0);
        // The class of the operation is in its lowest three bits: jumps, of which one kind is unconditional, and returns.
        let rest = match (insn.code & 0x07, insn.code & 0xf0) {
            (0x06, _) => 0,
            (0x05, 0x00) => behind(insn.k),
            (0x05, _) => behind(u32::from(insn.jt)).max(behind(u32::from(insn.jf))),
            _ => behind(0),
        };
        longest[at] = 1 + rest;
    }
    longest[0]
}

/// Turns filter text into programs; a trait, so that a fuzzer may leave libpcap out.
pub trait Compiler {
    /// The program of `text`.
    ///
    /// # Errors
    /// What the compiler says about a filter it refuses.
    fn compile(&self, text: &str) -> Result<Vec<Insn>, String>;
}

/// libpcap's compiler, for Ethernet frames.
///
/// A filter that names hosts (`host example.org`) makes libpcap ask the system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Libpcap;

impl Compiler for Libpcap {
    fn compile(&self, text: &str) -> Result<Vec<Insn>, String> {
        if text.len() > MAX_FILTER {
            return Err(format!("a filter has at most {MAX_FILTER} characters"));
        }
        let dead = Capture::dead(Linktype::ETHERNET).map_err(|e| reason(&e))?;
        let program = dead.compile(text, true).map_err(|e| reason(&e))?;
        program.get_instructions().iter().map(|i| instruction(&i.to_string())).collect()
    }
}

/// What libpcap said, without the wrapping of the binding.
fn reason(error: &pcap::Error) -> String {
    match error {
        pcap::Error::PcapError(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads `code jt jf k`: the binding shows an instruction's fields only in this form.
fn instruction(text: &str) -> Result<Insn, String> {
    let mut fields = text.split(' ').map(str::parse::<u32>);
    let mut next = || match fields.next() {
        Some(Ok(n)) => Ok(n),
        _ => Err(format!("libpcap printed an instruction as `{text}`")),
    };
    let small = |n: u32| u8::try_from(n).map_err(|e| e.to_string());
    Ok(Insn {
        code: u16::try_from(next()?).map_err(|e| e.to_string())?,
        jt: small(next()?)?,
        jf: small(next()?)?,
        k: next()?,
    })
}

/// A compiler that remembers.
pub(crate) struct Cache<'a> {
    compiler: &'a dyn Compiler,
    known: HashMap<String, Result<Filter, String>>,
}

impl<'a> Cache<'a> {
    pub(crate) fn new(compiler: &'a dyn Compiler) -> Self {
        Self { compiler, known: HashMap::new() }
    }

    pub(crate) fn compile(&mut self, text: &str) -> Result<Filter, String> {
        if !self.known.contains_key(text) {
            self.known.insert(text.to_owned(), Filter::new(text, self.compiler));
        }
        self.known[text].clone()
    }
}

/// The filter that matches the return traffic of what `text` matches: `src` and `dst` exchanged.
///
/// # Errors
/// The offending part, if the expression reads bytes by offset (`ip[12:4]`), whose mirror image
/// cannot be derived from the words.
pub fn mirror(text: &str) -> Result<String, String> {
    if let Some(at) = text.find('[') {
        let start = text[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |i| i + 1);
        let end = text[at..].find(']').map_or(text.len(), |i| at + i + 1);
        return Err(text.get(start..end).unwrap_or(text).to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '\\')))
            .unwrap_or(rest.len());
        if length == 0 {
            let c = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..c]);
            rest = &rest[c..];
            continue;
        }
        out.push_str(match &rest[..length] {
            "src" => "dst",
            "dst" => "src",
            word => word,
        });
        rest = &rest[length..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted() {
        let steps = |text: &str| Filter::new(text, &Libpcap).unwrap().steps();
        assert_eq!(steps(""), 0);
        assert_eq!(steps("ip dst net 10.0.0.0/9"), 2);
        assert_eq!(steps("udp and ip dst net 10.0.0.0/9 and not port 53"), 1 + 1 + 2 + 2);
        // Load the byte, mask it, compare; the protocol and the fragment's offset before it; and return.
        assert!((8..16).contains(&steps("tcp[13] & 2 != 0")));
        let circle = Insn { code: 0x05, jt: 0, jf: 0, k: u32::MAX };
        assert_eq!(longest_way(&[circle]), 1);
        assert_eq!(longest_way(&[]), 0);
    }

    #[test]
    fn libpcap_compiles_and_refuses() {
        let program = Libpcap.compile("tcp port 80").unwrap();
        assert!(program.len() > 4);
        // BPF_RET | BPF_K ends every program.
        assert_eq!(program.last().unwrap().code, 0x06);
        assert!(Libpcap.compile("tcp prot 80").unwrap_err().contains("syntax"));
        assert!(Libpcap.compile("nul \0").is_err());
        assert!(Libpcap.compile(&"not ".repeat(2_000)).is_err());
        assert_eq!(Libpcap.compile("").unwrap().len(), 1);
    }

    #[test]
    fn mirrors_words_only() {
        assert_eq!(mirror("src net 10.0.0.0/8 and dst port 80").unwrap(), "dst net 10.0.0.0/8 and src port 80");
        assert_eq!(mirror("(src or dst host src.example)").unwrap(), "(dst or src host src.example)");
        assert_eq!(mirror("tcp and ip[12:4] = 1").unwrap_err(), "ip[12:4]");
    }
}
