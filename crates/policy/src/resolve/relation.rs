//! Priorities and ratios between chains and classes (Alpine §5.2.1).

use std::collections::{HashMap, HashSet};

use super::{Frame, Resolver};
use crate::ast::{self, Item, RelationWord};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::{Chain, Relation, Subject};
use crate::limits::MAX_RATIO;
use crate::span::{Name, Span};
use crate::value::Value;

impl<'a> Resolver<'a> {
    pub(super) fn relations(&mut self, items: &'a [Item], chains: &[Chain]) -> Vec<Relation> {
        let ids: HashMap<&str, u32> = chains.iter().zip(0u32..).map(|(c, id)| (c.name.as_str(), id)).collect();
        let mut relations = Vec::new();
        let mut before: HashMap<Subject, Vec<Subject>> = HashMap::new();
        let mut ratios: HashMap<RelationWord, Ratios> = HashMap::new();
        let mut shared: Vec<(&ast::Relation, Vec<Subject>)> = Vec::new();
        for item in items {
            let Item::Relation(relation) = item else {
                continue;
            };
            let Some(subjects) = self.subjects(relation, &ids) else {
                continue;
            };
            if relation.word == RelationWord::Priority {
                self.priority(relation, &subjects, &mut before);
                relations.push(Relation::Priority(subjects));
                continue;
            }
            let Some(weights) = self.weights(relation) else {
                continue;
            };
            shared.push((relation, subjects.clone()));
            let weighted: Vec<(Subject, f64)> = subjects.into_iter().zip(weights).collect();
            self.ratio(relation, &weighted, ratios.entry(relation.word).or_default());
            relations.push(match relation.word {
                RelationWord::Cpu => Relation::Cpu(weighted),
                RelationWord::Throughput => Relation::Throughput(weighted),
                RelationWord::Share | RelationWord::Priority => Relation::Share(weighted),
            });
        }
        shared.iter().for_each(|(relation, subjects)| self.ranked(relation, subjects, &before));
        relations
    }

    /// Report a ratio of two of which one comes before the other: it would have all that the ratio gives the other.
    fn ranked(&mut self, relation: &ast::Relation, subjects: &[Subject], before: &HashMap<Subject, Vec<Subject>>) {
        for (pair, names) in subjects.windows(2).zip(relation.members.windows(2)) {
            let [one, other] = pair else { continue };
            let order = match (reaches(before, *one, *other), reaches(before, *other, *one)) {
                (false, false) => continue,
                (true, _) => [&names[0].node, &names[1].node],
                (false, true) => [&names[1].node, &names[0].node],
            };
            let message = format!(
                "`{}` and `{}` are in a ratio, and by `priority` `{}` comes before `{}`",
                names[0].node, names[1].node, order[0], order[1]
            );
            let finding = Diagnostic::error(Code::Relation, names[0].span.to(names[1].span), message);
            self.find(
                finding.label("who comes first has what it can get, whatever the ratio").help("keep one of the two"),
            );
        }
    }

    fn subjects(&mut self, relation: &ast::Relation, chains: &HashMap<&str, u32>) -> Option<Vec<Subject>> {
        let mut subjects = Vec::new();
        let mut seen: HashMap<Subject, Span> = HashMap::new();
        let mut complete = true;
        for name in &relation.members {
            let Some(subject) = self.subject(name, chains) else {
                complete = false;
                continue;
            };
            if let Some(first) = seen.insert(subject, name.span) {
                let message = format!("`{}` stands twice in one relation", name.node);
                let finding = Diagnostic::error(Code::Relation, name.span, message);
                self.find(finding.label("again here").related(first, "first here"));
                complete = false;
            }
            subjects.push(subject);
        }
        complete.then_some(subjects)
    }

    fn subject(&mut self, name: &Name, chains: &HashMap<&str, u32>) -> Option<Subject> {
        if let Some(id) = chains.get(name.node.as_str()) {
            return Some(Subject::Chain(*id));
        }
        if let Some(id) = self.class_names.get(name.node.as_str()).copied() {
            self.mark_used("class", &name.node);
            return Some(Subject::Class(id));
        }
        if self.chain_names.contains_key(name.node.as_str()) || self.broken_classes.contains(name.node.as_str()) {
            return None;
        }
        let names = self.chain_names.keys().chain(self.class_names.keys()).copied();
        let close = likely(&name.node, names).map(str::to_owned);
        let message = format!("there is no chain or class `{}`", name.node);
        self.find(
            Diagnostic::error(Code::UndefinedName, name.span, message)
                .label("not defined in this file")
                .suggest(close.as_deref()),
        );
        None
    }

    /// Adds `a > b > c`, and reports it if it contradicts what stands already.
    fn priority(
        &mut self,
        relation: &ast::Relation,
        subjects: &[Subject],
        before: &mut HashMap<Subject, Vec<Subject>>,
    ) {
        for (pair, names) in subjects.windows(2).zip(relation.members.windows(2)) {
            let [high, low] = pair else { continue };
            if reaches(before, *low, *high) {
                let message = format!(
                    "`{}` cannot come before `{}`: an earlier priority says the opposite",
                    names[0].node, names[1].node
                );
                let finding = Diagnostic::error(Code::Relation, names[0].span.to(names[1].span), message);
                self.find(finding.label("contradicts an earlier `priority`"));
            }
            before.entry(*high).or_default().push(*low);
        }
    }

    /// Adds `a : b : c = 1 : 2 : 3`, and reports it if earlier ones of its kind say otherwise.
    fn ratio(&mut self, relation: &ast::Relation, members: &[(Subject, f64)], ratios: &mut Ratios) {
        for (pair, names) in members.windows(2).zip(relation.members.windows(2)) {
            let [(one, weight), (other, weight_of_other)] = pair else { continue };
            if !ratios.add(*one, *other, weight / weight_of_other) {
                let (one, other) = (&names[0].node, &names[1].node);
                let message = format!("`{one}` and `{other}` are in another ratio by what stands before");
                let finding = Diagnostic::error(Code::Relation, names[0].span.to(names[1].span), message);
                self.find(finding.label(format!("contradicts an earlier `{}`", relation.word.name())));
            }
        }
    }

    fn weights(&mut self, relation: &ast::Relation) -> Option<Vec<f64>> {
        let mut weights = Vec::new();
        for expr in &relation.weights {
            let weight = match self.eval(expr, &Frame::default())? {
                Value::Integer(n) => n as f64,
                Value::Float(x) => x,
                Value::Percent(part) => part * 100.0,
                _ => f64::NAN,
            };
            if !(weight > 0.0 && weight.is_finite()) {
                let finding = Diagnostic::error(Code::Relation, expr.span, "a weight is a positive number");
                self.find(finding.label("expected a number such as 2"));
                return None;
            }
            weights.push(weight);
        }
        let most = weights.iter().copied().fold(0.0, f64::max);
        if let Some((least, expr)) = weights.iter().zip(&relation.weights).min_by(|a, b| a.0.total_cmp(b.0))
            && most / least > MAX_RATIO
        {
            let message = format!("a ratio of 1 to {:.0} is finer than tasks can be weighed", most / least);
            let finding = Diagnostic::error(Code::Relation, expr.span, message);
            self.find(finding.label(format!("expected at most {MAX_RATIO} times as much of one as of another")));
            return None;
        }
        if weights.len() != relation.members.len() {
            let message = format!("names: {}, weights: {}", relation.members.len(), weights.len());
            self.find(
                Diagnostic::error(Code::Relation, relation.span, message)
                    .help("give each name its weight: `cpu a : b = 2 : 1`"),
            );
            return None;
        }
        Some(weights)
    }
}

/// What ratios of one kind say together.
#[derive(Default)]
struct Ratios {
    /// By subject, another one with which it is in a ratio, and how many times as much it has.
    known: HashMap<Subject, (Subject, f64)>,
}

impl Ratios {
    /// Add that `one` has so many times as much as `other`. Returns whether that can be.
    fn add(&mut self, one: Subject, other: Subject, times: f64) -> bool {
        let ((first, has), (second, others)) = (self.root(one), self.root(other));
        if first != second {
            self.known.insert(first, (second, times * others / has));
            return true;
        }
        // Weights are written in decimal.
        (has / others / times - 1.0).abs() < 1e-9
    }

    /// Return the one that stands for all that a subject is in ratios with, and how many times as much the subject has.
    fn root(&mut self, subject: Subject) -> (Subject, f64) {
        let (mut at, mut has) = (subject, 1.0);
        while let Some((next, times)) = self.known.get(&at) {
            (at, has) = (*next, has * times);
        }
        if at != subject {
            self.known.insert(subject, (at, has));
        }
        (at, has)
    }
}

fn reaches(before: &HashMap<Subject, Vec<Subject>>, from: Subject, to: Subject) -> bool {
    let mut seen = HashSet::new();
    let mut stack = vec![from];
    while let Some(at) = stack.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            stack.extend(before.get(&at).into_iter().flatten());
        }
    }
    false
}
