//! Macros that contain themselves, found before anything is expanded.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use crate::ast::{Arm, Element, Statement, Step};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Name;

/// Calls `visit` with the name of everything that `statements` create.
fn created<'s>(statements: &'s [Statement], visit: &mut dyn FnMut(&'s Name)) {
    for statement in statements {
        match statement {
            Statement::Instance { call, .. } => visit(&call.function),
            Statement::Path(path) => created_by_steps(&path.steps, visit),
            Statement::Promise(_) | Statement::Unparsed(_) => {}
        }
    }
}

fn created_by_steps<'s>(steps: &'s [Step], visit: &mut dyn FnMut(&'s Name)) {
    for step in steps {
        match &step.element {
            Element::Instance { name, .. } => visit(name),
            Element::Call { call, .. } => visit(&call.function),
            Element::Branch(arms) => {
                arms.iter().for_each(|arm: &Arm| created_by_steps(&arm.steps, visit));
            }
            Element::In | Element::Out | Element::Drop => {}
        }
    }
}

impl<'a> Resolver<'a> {
    /// Reports each macro that reaches itself, and marks it so that it is never expanded.
    pub(super) fn break_recursion(&mut self) {
        let mut uses: HashMap<&'a str, Vec<&'a Name>> = HashMap::new();
        for (name, definition) in &self.macros {
            let mut names = Vec::new();
            // A name that an instance of the body carries means that instance.
            let local: HashSet<&str> = definition
                .body
                .iter()
                .filter_map(|s| match s {
                    Statement::Instance { name, .. } => Some(name.node.as_str()),
                    _ => None,
                })
                .collect();
            created(definition.body, &mut |n: &'a Name| {
                let known = self.macros.contains_key(n.node.as_str());
                if known && !local.contains(n.node.as_str()) {
                    names.push(n);
                }
            });
            names.sort_by_key(|n| n.span);
            uses.insert(name, names);
        }
        let mut names: Vec<&'a str> = uses.keys().copied().collect();
        names.sort_by_key(|n| self.macros[n].name.span);
        let mut done: HashSet<&'a str> = HashSet::new();
        for name in names {
            self.search(name, &uses, &mut done);
        }
    }

    /// Depth first from `start` with an explicit stack, so that long rows of macros are harmless.
    fn search(&mut self, start: &'a str, uses: &HashMap<&'a str, Vec<&'a Name>>, done: &mut HashSet<&'a str>) {
        let mut stack: Vec<(&'a str, usize)> = vec![(start, 0)];
        if done.contains(start) {
            return;
        }
        let mut open: HashSet<&'a str> = HashSet::from([start]);
        while let Some((name, at)) = stack.last_mut() {
            let Some(next) = uses[*name].get(*at) else {
                done.insert(name);
                open.remove(*name);
                stack.pop();
                continue;
            };
            *at += 1;
            let target = next.node.as_str();
            if open.contains(target) {
                let way: Vec<&str> = stack.iter().map(|(n, _)| *n).skip_while(|n| *n != target).collect();
                self.recursive(next, &way);
            } else if !done.contains(target) {
                open.insert(target);
                stack.push((target, 0));
            }
        }
    }

    fn recursive(&mut self, used: &Name, way: &[&'a str]) {
        let target = used.node.as_str();
        let mut finding =
            Diagnostic::error(Code::Recursion, used.span, format!("the macro `{target}` contains itself"))
                .label("comes back to itself here");
        if let Some(definition) = self.macros.get(target) {
            finding = finding.related(definition.name.span, "defined here");
        }
        if way.len() > 1 {
            finding = finding.note(format!("the way round: {} -> {target}", way.join(" -> ")));
        }
        self.find(finding);
        for name in way {
            if let Some(definition) = self.macros.get_mut(name) {
                definition.recursive = true;
            }
        }
    }
}
