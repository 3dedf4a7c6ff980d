//! Whether packets go the ways that the policy says: every edge of a chain is a rule of its path, in the policy's order; hops are
//! where rules lead into other segments, and their indices fall; every class of the policy enters its chain.

use std::collections::{BTreeMap, BTreeSet};

use catena_plan_model::returns::Returns;
use catena_policy::Direction;

use super::Judge;
use crate::deployment::Deployment;
use crate::deployment::entrances::Entrance;
use crate::deployment::paths::{Next, PATHS, Path};
use crate::policy::{ChainPolicy, EdgePolicy, Policy};

impl Judge<'_> {
    pub(super) fn paths(&mut self, says: &Deployment) {
        let Some(policy) = &self.plan.policy else {
            self.same("deployment.paths: of no policy", &(says.paths.len(), says.entrances.len()), &(0, 0));
            return;
        };
        let (mut numbers, mut ways) = (BTreeSet::new(), BTreeSet::new());
        for path in &says.paths {
            let at = format!("deployment.paths: {}", path.spi);
            if says.spi >= PATHS
                || path.spi == 0
                || path.spi > says.spi
                || path.spi >= PATHS
                || !numbers.insert(path.spi)
            {
                self.wrong(at.clone(), "it is no number of a path, or another one has it");
            }
            if !ways.insert((path.chain.clone(), path.direction)) {
                self.wrong(at.clone(), "another path is of the same chain and direction");
            }
            match policy.chains.iter().find(|chain| chain.name == path.chain) {
                Some(chain) => self.path(&at, says, path, chain),
                None => self.wrong(at, format!("there is no chain {}", path.chain)),
            }
        }
        for chain in &policy.chains {
            for (direction, begins) in [(Direction::Forward, "in"), (Direction::Return, "out")] {
                let has = chain.edges.iter().any(|edge| (edge.direction, &*edge.from) == (direction, begins));
                let is = ways.contains(&(chain.name.clone(), direction));
                self.same(format!("deployment.paths: {} {direction:?}: there is one", chain.name), &is, &has);
            }
        }
        self.entrances(says, policy);
    }

    fn path(&mut self, at: &str, says: &Deployment, path: &Path, chain: &ChainPolicy) {
        let own = |name: &str| name.strip_prefix(&format!("{}/", chain.name)).unwrap_or(name).to_owned();
        let segment = |function: &str| says.running(function).map(|segment| segment.name.clone());
        let mut hops = BTreeMap::new();
        let ends = self.ends();
        let falls = path.hops.windows(2).all(|pair| pair[0].si > pair[1].si);
        if !falls || path.hops.iter().any(|hop| hop.si == 0) {
            self.wrong(at, "the indices of its hops do not fall, or end at 0");
        }
        for hop in &path.hops {
            self.same(format!("{at}: segment of hop {}", hop.si), &Some(hop.segment.clone()), &segment(&hop.function));
            let end = ends.get(&hop.function);
            let link = end.map(|(link, _)| link.clone()).filter(|_| self.problem.switch.is_some());
            let on =
                end.map_or_else(|| self.problem.switch.as_ref().map(|s| s.name.clone()), |(_, on)| Some(on.clone()));
            let (says, is) = ((Some(hop.on.clone()), hop.link.clone()), (on, link));
            self.same(format!("{at}: where hop {} is", hop.si), &says, &is);
            hops.insert(hop.si, hop.function.clone());
        }
        let edges: Vec<&EdgePolicy> = chain.edges.iter().filter(|edge| edge.direction == path.direction).collect();
        if !self.as_many(&format!("{at}: rules"), path.rules.len(), edges.len()) {
            return;
        }
        let mut led = BTreeSet::new();
        for (rule, edge) in path.rules.iter().zip(edges) {
            let inside = segment(&rule.from);
            let side = if path.direction == Direction::Forward { "in" } else { "out" };
            if rule.from != side && (inside.is_none() || own(&rule.from) == rule.from) {
                self.wrong(at, format!("a rule is of packets from {}, which is no function of the chain", rule.from));
            }
            let to = match &rule.to {
                Next::In => "in".to_owned(),
                Next::Out => "out".to_owned(),
                Next::Drop => "drop".to_owned(),
                Next::Function(name) => {
                    if segment(name) != inside {
                        self.wrong(at, format!("from {} to {name} is a hop", rule.from));
                    }
                    own(name)
                }
                Next::Hop(si) => {
                    led.insert(*si);
                    let name = hops.get(si).cloned().unwrap_or_default();
                    if segment(&name) == inside || name.is_empty() {
                        self.wrong(at, format!("hop {si} from {} leads nowhere else", rule.from));
                    }
                    own(&name)
                }
            };
            let (from, when) = (own(&rule.from), rule.when.clone());
            let says = EdgePolicy { from, to, direction: path.direction, when };
            if says != *edge {
                let (is, rule) = (edge.to_string(), says.to_string());
                // Texts are for people: other data may read the same.
                let alike = is == rule;
                let (is, rule) =
                    if alike { (format!("{:?}", edge.when), format!("{:?}", says.when)) } else { (is, rule) };
                self.wrong(at, format!("the policy says `{is}`, the rule `{rule}`"));
            }
        }
        self.same(format!("{at}: hops that rules lead to"), &led, &hops.keys().copied().collect());
        self.falling(at, path, &hops);
    }

    /// From a hop, rules lead to hops of lower indices only.
    fn falling(&mut self, at: &str, path: &Path, hops: &BTreeMap<u8, String>) {
        for (si, function) in hops {
            let (mut open, mut seen) = (vec![function.clone()], BTreeSet::new());
            while let Some(here) = open.pop().filter(|_| seen.len() <= path.rules.len()) {
                if !seen.insert(here.clone()) {
                    continue;
                }
                for rule in path.rules.iter().filter(|rule| rule.from == here) {
                    match &rule.to {
                        Next::Hop(next) if next >= si => self.wrong(at, format!("hop {si} leads to hop {next}")),
                        Next::Function(next) => open.push(next.clone()),
                        _ => {}
                    }
                }
            }
        }
    }

    /// What is learnt is learnt on the way back, behind functions that rewrite and are on that way.
    fn learnt(&mut self, says: &Deployment, entrance: &Entrance) {
        let path = says.paths.iter().find(|path| path.spi == entrance.spi);
        let chain = path.and_then(|path| self.problem.chains.iter().find(|chain| chain.name == path.chain));
        let mut behind = Vec::new();
        if let (Some(path), Some(chain), Direction::Return) = (path, chain, entrance.direction) {
            let names =
                chain.nodes.iter().filter(|node| node.rewrites).map(|node| format!("{}/{}", chain.name, node.name));
            behind.extend(names.filter(|name| path.rules.iter().any(|rule| rule.from == *name)));
        }
        let said = entrance.learnt.as_ref().map_or(&[][..], |learnt| &learnt.behind);
        let at = format!("deployment.entrances: of path {}: learnt behind", entrance.spi);
        self.same(at, &said.to_vec(), &behind);
        if entrance.learnt.is_some() && said.is_empty() {
            self.wrong("deployment.entrances", "it is learnt behind nothing");
        }
    }

    /// By which addresses packets on the way back show that they are of a path: those that functions use which are on it.
    fn returns(&self, path: &Path) -> Returns {
        let mut all = Returns::default();
        let chain = self.problem.chains.iter().find(|chain| chain.name == path.chain);
        for node in chain.iter().flat_map(|chain| &chain.nodes) {
            let name = format!("{}/{}", path.chain, node.name);
            if path.direction == Direction::Return && path.rules.iter().any(|rule| rule.from == name) {
                all.extend(node.returns.clone());
            }
        }
        all
    }

    /// At each side, what comes to or from addresses that a chain's functions use enters that chain, then each class the first chain that
    /// names it, and the rest the chain without classes.
    fn entrances(&mut self, says: &Deployment, policy: &Policy) {
        for direction in [Direction::Forward, Direction::Return] {
            let path = |chain: &&ChainPolicy| {
                let own = |path: &&Path| path.chain == chain.name && path.direction == direction;
                says.paths.iter().find(own)
            };
            let wanted = |class: Option<&str>, path: &Path, chain: &ChainPolicy, returns: Returns| Entrance {
                direction,
                destinations: returns.destinations,
                sources: returns.sources,
                class: class.map(str::to_owned),
                filter: None,
                spi: path.spi,
                drops_unparsed: chain.drops_unparsed,
                learnt: None,
            };
            let chains: Vec<(&ChainPolicy, &Path)> =
                policy.chains.iter().filter_map(|chain| Some((chain, path(&chain)?))).collect();
            // A chain alone that takes all needs not be told from others.
            let alone = matches!(&chains[..], [(chain, _)] if chain.classes.is_empty());
            let mut all = Vec::new();
            for (chain, path) in chains.iter().filter(|_| !alone) {
                let returns = self.returns(path);
                if !returns.is_empty() {
                    all.push(wanted(None, path, chain, returns));
                }
            }
            for class in &policy.classes {
                let name = class.split(" = ").next().unwrap_or_default();
                let first = chains.iter().find(|(chain, _)| chain.classes.iter().any(|own| own == name));
                let Some((chain, path)) = first else { continue };
                // The class of a chain that is known by addresses has a filter for the way back, or none at all there.
                if class.contains("\", return \"") || self.returns(path).is_empty() {
                    all.push(wanted(Some(name), path, chain, Returns::default()));
                }
            }
            let rest = chains.iter().find(|(chain, _)| chain.classes.is_empty());
            all.extend(rest.map(|(chain, path)| wanted(None, path, chain, Returns::default())));
            let wanted = all;
            let there = says.entrances.iter().filter(|entrance| entrance.direction == direction);
            let said: Vec<Entrance> =
                there.clone().map(|one| Entrance { filter: None, learnt: None, ..one.clone() }).collect();
            self.same(format!("deployment.entrances: {direction:?}"), &said, &wanted);
            for entrance in there {
                self.learnt(says, entrance);
                let Some(class) = &entrance.class else {
                    self.same("deployment.entrances: a filter without a class", &entrance.filter.is_some(), &false);
                    continue;
                };
                let text = entrance.filter.as_deref().unwrap_or_default();
                let line = policy.classes.iter().find(|line| line.split(" = ").next() == Some(class));
                let filters = line.and_then(|line| line.split_once(" = \"")).map_or("", |(_, filters)| filters);
                let (forward, back) = filters.split_once("\", return \"").unwrap_or((filters, filters));
                let of = if direction == Direction::Forward { forward } else { back };
                let of = of.strip_suffix('"').unwrap_or(of);
                if of != text {
                    self.wrong("deployment.entrances", format!("{class} is `{of}`, not `{text}`"));
                }
            }
        }
    }
}
