//! What decides between edges: the arms of branches.

use super::attribute::{exports, values_of};
use super::cover::{MAX_CASES, uncovered};
use super::path::Reading;
use super::wire::{Body, Draft, Open, Place};
use super::{Frame, Resolver};
use crate::ast::{self, Arm, Expr};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::filter;
use crate::graph::Condition;
use crate::span::{Name, Span};
use crate::value::Value;

/// A condition and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) condition: Condition,
    pub(super) span: Span,
    /// Some function before must export the attribute; `check` looks for it.
    pub(super) upstream: bool,
}

/// What an arm asks for, before it meets the ends that arrive.
enum Ask {
    /// Everything that is left.
    Rest,
    /// This part of the flows.
    Part(f64),
    Guard(Guard),
}

type Parts<'s> = Vec<(Option<&'s Arm>, Vec<Open>)>;

impl Resolver<'_> {
    /// Hands the packets of `opens` to the arms: for each arm what arrives there, and at the end
    /// (without an arm) what goes straight to the merge.
    pub(super) fn branch<'s>(
        &mut self,
        body: &mut Body<'_>,
        draft: &mut Draft,
        arms: &'s [Arm],
        span: Span,
        reading: Reading,
        opens: &[Open],
    ) -> Option<Parts<'s>> {
        let mut asks = Vec::new();
        for arm in arms {
            asks.push(self.ask(body, draft, arm, arms.len(), reading, opens)?);
        }
        let complete = self.complete(arms, &asks, span)?;
        let shares = self.shares(arms, &asks)?;
        let branch = body.branch(draft, span);
        let mut parts: Parts<'s> = Vec::new();
        let mut low = 0.0;
        for (i, ((arm, ask), share)) in arms.iter().zip(&asks).zip(shares.iter()).enumerate() {
            let guard = match ask {
                Ask::Rest => None,
                Ask::Guard(guard) => Some(guard.clone()),
                Ask::Part(part) => {
                    let high = if complete && i + 1 == arms.len() { 1.0 } else { (low + part).min(1.0) };
                    let condition = Condition::Split { branch, from: low, to: high };
                    low = high;
                    Some(Guard { condition, span: arm.span, upstream: false })
                }
            };
            let arriving = opens.iter().map(|o| o.taking(guard.as_ref(), i, *share, arm.span));
            parts.push((Some(arm), arriving.collect()));
        }
        if !complete {
            let rest = shares.iter().copied().sum::<Option<f64>>().map(|sum| (1.0 - sum).max(0.0));
            let left = opens.iter().filter(|o| !self.covered(draft, o, &asks));
            let arriving = left.map(|o| o.taking(None, arms.len(), rest, span));
            parts.push((None, arriving.collect()));
        }
        Some(parts)
    }

    /// Whether the arms name every value that the function before the branch exports.
    fn covered(&self, draft: &Draft, open: &Open, asks: &[Ask]) -> bool {
        let Place::Node(id) = open.from else { return false };
        let function = &draft.nodes[id as usize].function;
        if self.world.library.find(function).is_none() {
            return false;
        }
        let conditions = asks.iter().filter_map(|ask| match ask {
            Ask::Guard(guard) => Some(vec![&guard.condition]),
            Ask::Rest | Ask::Part(_) => None,
        });
        let mut cases = MAX_CASES;
        // With too many cases to look at, packets may be left: they keep their edge.
        uncovered(self.world.library, function, conditions.collect(), &mut cases).is_none() && cases > 0
    }

    fn ask(
        &mut self,
        body: &Body<'_>,
        draft: &Draft,
        arm: &Arm,
        count: usize,
        reading: Reading,
        opens: &[Open],
    ) -> Option<Ask> {
        let frame = body.frame;
        let guard = match &arm.condition {
            Some(ast::Condition::Else) => return Some(Ask::Rest),
            None => {
                let count = u32::try_from(count).map_or(f64::INFINITY, f64::from);
                return Some(Ask::Part(1.0 / count));
            }
            Some(ast::Condition::Split(expr)) => return self.percent(expr).map(Ask::Part),
            Some(ast::Condition::Filter(text)) => self.filter_guard(&text.node, text.span, reading, frame)?,
            Some(ast::Condition::Fields(fields)) => {
                let text = self.lemur_filter(fields, frame)?;
                self.filter_guard(&text, arm.span, reading, frame)?
            }
            Some(ast::Condition::Attribute { name, negated, value }) => {
                self.two_way_attribute(name.span, reading)?;
                let values = self.attribute_values(value, frame, &[])?;
                let condition = Condition::Attribute { name: Some(name.node.clone()), values, negated: *negated };
                Guard { condition, span: name.span.to(value.span), upstream: true }
            }
            Some(ast::Condition::Named(name)) => self.named(name, draft, reading, opens, frame)?,
        };
        Some(Ask::Guard(guard))
    }

    fn filter_guard(&mut self, text: &str, span: Span, reading: Reading, frame: &Frame) -> Option<Guard> {
        // The text as written is judged first: messages then speak of it.
        let mut filter = self.compile(text, span, frame)?;
        if reading.mirrored {
            let mirrored = match filter::mirror(text) {
                Ok(mirrored) => mirrored,
                Err(part) => {
                    let text = "this filter cannot be turned round for the way back";
                    let finding = Diagnostic::error(Code::Mirror, span, text)
                        .label(format!("`{part}` reads bytes by offset and has no mirror image"))
                        .help("write the two directions as two paths");
                    self.find(finding);
                    return None;
                }
            };
            filter = self.compile(&mirrored, span, frame)?;
        }
        Some(Guard { condition: Condition::Filter(filter), span, upstream: false })
    }

    fn two_way_attribute(&mut self, span: Span, reading: Reading) -> Option<()> {
        if reading.mirrored {
            let text = "an attribute has no meaning on the way back";
            let finding = Diagnostic::error(Code::Path, span, text);
            self.find(finding.help("write the two directions as two paths"));
            return None;
        }
        Some(())
    }

    /// A lone word as condition: a constant with a filter, a class, or a value that the function
    /// before the branch exports.
    fn named(&mut self, name: &Name, draft: &Draft, reading: Reading, opens: &[Open], frame: &Frame) -> Option<Guard> {
        let word = name.node.as_str();
        if self.is_constant(word, frame) {
            let expr = Expr { node: ast::ExprKind::Word(word.to_owned()), span: name.span };
            return match self.eval(&expr, frame)? {
                Value::Text(text) => self.filter_guard(&text, name.span, reading, frame),
                other => {
                    let message = format!("a filter is a string, and `{word}` is {}", other.describe());
                    self.find(Diagnostic::error(Code::WrongKind, name.span, message));
                    None
                }
            };
        }
        if let Some(id) = self.class_names.get(word).copied() {
            self.mark_used("class", word);
            let class = &self.classes[id as usize];
            let filter = if reading.mirrored { class.back.clone() } else { Some(class.filter.clone()) };
            let Some(filter) = filter else {
                let message = format!("the return traffic of the class `{word}` cannot be derived");
                self.find(Diagnostic::error(Code::Mirror, name.span, message));
                return None;
            };
            let condition = Condition::Filter(filter);
            return Some(Guard { condition, span: name.span, upstream: false });
        }
        if self.broken_classes.contains(word) {
            return None;
        }
        self.two_way_attribute(name.span, reading)?;
        let mut exported: Vec<&str> = Vec::new();
        for open in opens {
            let Place::Node(id) = open.from else { continue };
            let Some(signature) = self.world.library.find(&draft.nodes[id as usize].function) else {
                let condition = Condition::Attribute { name: None, values: vec![word.to_owned()], negated: false };
                return Some(Guard { condition, span: name.span, upstream: false });
            };
            if let Some(attribute) = exports(signature, word) {
                let condition = Condition::Attribute {
                    name: Some(attribute.name.clone()),
                    values: vec![word.to_owned()],
                    negated: false,
                };
                return Some(Guard { condition, span: name.span, upstream: true });
            }
            exported.extend(signature.attributes.iter().flat_map(values_of));
        }
        let names = self.class_names.keys().copied().chain(exported);
        let close = likely(word, names).map(str::to_owned);
        let message = format!("`{word}` is no condition");
        let finding = self
            .error_in(frame, Code::UndefinedName, name.span, message)
            .label("neither a class, nor a constant, nor a value exported just before")
            .suggest(close.as_deref());
        self.find(finding);
        None
    }

    fn percent(&mut self, expr: &Expr) -> Option<f64> {
        match self.eval(expr, &Frame::default())? {
            Value::Percent(part) => Some(part),
            other => {
                self.unit_error(expr, &other, "a percentage such as 30%");
                None
            }
        }
    }

    /// Whether the arms take every packet; None if they do not go together.
    fn complete(&mut self, arms: &[Arm], asks: &[Ask], span: Span) -> Option<bool> {
        let position = |wanted: fn(&Ask) -> bool| asks.iter().position(wanted);
        let rest = position(|a| matches!(a, Ask::Rest));
        if let Some(at) = rest
            && at + 1 < arms.len()
        {
            let finding = Diagnostic::error(Code::Unreachable, arms[at + 1].span, "no packet reaches this arm");
            self.find(finding.related(arms[at].span, "takes all packets that are left"));
            return None;
        }
        let part = position(|a| matches!(a, Ask::Part(_)));
        let guard = position(|a| matches!(a, Ask::Guard(_)));
        if let (Some(part), Some(guard)) = (part, guard) {
            let finding = Diagnostic::error(Code::Share, arms[part].span, "this arm has no filter");
            self.find(
                finding
                    .label("a part of the flows")
                    .related(arms[guard].span, "a filter")
                    .help("an estimate stands behind the filter: `\"tcp port 80\" ~ 30%: …`"),
            );
            return None;
        }
        if part.is_none() {
            return Some(rest.is_some());
        }
        let sum: f64 = asks.iter().map(|a| if let Ask::Part(p) = a { *p } else { 0.0 }).sum();
        // Arms as 33.3% three times are meant to be everything.
        let full = (sum - 1.0).abs() < 0.005;
        if !full && (sum > 1.0 || rest.is_none()) {
            let finding = Diagnostic::error(Code::Share, span, "the parts of this branch do not add up");
            self.find(
                finding
                    .label(format!("{:.4}% together", sum * 100.0))
                    .help("parts add up to 100%, or an `else` arm takes the rest"),
            );
            return None;
        }
        Some(true)
    }

    /// The expected part of the traffic of each arm, where it is known.
    fn shares(&mut self, arms: &[Arm], asks: &[Ask]) -> Option<Vec<Option<f64>>> {
        let mut shares = Vec::new();
        for (arm, ask) in arms.iter().zip(asks) {
            let estimate = match &arm.share {
                Some(expr) => Some(self.percent(expr)?),
                None => None,
            };
            shares.push(match (ask, estimate) {
                (Ask::Part(part), _) => Some(*part),
                (_, estimate) => estimate,
            });
        }
        let sum: f64 = shares.iter().flatten().sum();
        if sum > 1.005 {
            let span = arms[0].span.to(arms[arms.len() - 1].span);
            let finding = Diagnostic::error(Code::Share, span, "the estimates of this branch exceed the whole");
            self.find(finding.label(format!("{:.4}% together", sum * 100.0)));
            return None;
        }
        // What no other arm is expected to take.
        if let Some(Ask::Rest) = asks.last()
            && let Some((last, others)) = shares.split_last_mut()
            && last.is_none()
            && others.iter().all(Option::is_some)
        {
            *last = Some((1.0 - sum).max(0.0));
        }
        Some(shares)
    }

    /// Lemur's `{'vlan_tag': 0x1, 'dst_ip': '10.0.0.0/8', …}` in tcpdump's words.
    fn lemur_filter(&mut self, fields: &[(Name, Expr)], frame: &Frame) -> Option<String> {
        const FIELDS: [(&str, &str); 8] = [
            // First: what follows `vlan` in a filter is read behind the tag.
            ("vlan_tag", "vlan"),
            ("ether_type", "ether proto"),
            ("src_ip", "src net"),
            ("dst_ip", "dst net"),
            ("ip_proto", "ip proto"),
            ("src_port", "src port"),
            ("dst_port", "dst port"),
            ("port", "port"),
        ];
        let mut parts: Vec<(usize, String)> = Vec::new();
        for (name, expr) in fields {
            let Some(at) = FIELDS.iter().position(|(field, _)| *field == name.node) else {
                let names = FIELDS.iter().map(|(field, _)| *field);
                let message = format!("there is no header field `{}`", name.node);
                let finding = self
                    .error_in(frame, Code::UndefinedName, name.span, message)
                    .label("no such field")
                    .note(format!("fields: {}", names.clone().collect::<Vec<_>>().join(", ")))
                    .suggest(likely(&name.node, names));
                self.find(finding);
                return None;
            };
            let value = match self.eval(expr, frame)? {
                Value::Text(text) | Value::Word(text) => text,
                other => other.to_string(),
            };
            parts.push((at, format!("{} {value}", FIELDS[at].1)));
        }
        parts.sort();
        Some(parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(" and "))
    }
}

impl Open {
    /// The same packets, as far as they take arm number `arm`.
    fn taking(&self, guard: Option<&Guard>, arm: usize, share: Option<f64>, span: Span) -> Self {
        let mut open = self.clone();
        if let Some(guard) = guard {
            conjoin(&mut open.when, guard.clone());
        }
        open.key.push(u32::try_from(arm).unwrap_or(u32::MAX));
        // What left an instance without a choice is all of its traffic.
        let whole = if self.chosen.is_none() { Some(1.0) } else { self.share };
        open.share = whole.zip(share).map(|(a, b)| a * b);
        open.rate = self.rate.zip(share).map(|(rate, share)| rate * share);
        open.chosen = Some(span);
        open
    }
}

/// Adds `guard` to `when`, once.
pub(super) fn conjoin(when: &mut Vec<Guard>, guard: Guard) {
    if !when.iter().any(|known| known.condition == guard.condition) {
        when.push(guard);
    }
}
