//! Which policy a plan is for: enough of a chain file to tell whether another one says the same.
//!
//! Arguments are kept as digests: what a function was given may be a key, and whoever reads a plan need not read it. Files
//! count by what is in them, not by where they are.

use std::fmt;

use catena_plan_model::demand::relations::text;
use catena_policy::{Chain, Direction, Edge, PolicyGraph, Unparsed, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What a chain file says, but for promises, which a plan has in its chains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Classes with their filters, in the order in which packets try them.
    pub classes: Vec<String>,
    /// What was said between chains and classes.
    pub relations: Vec<String>,
    /// The chains.
    pub chains: Vec<ChainPolicy>,
}

/// A chain's part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainPolicy {
    /// Its name.
    pub name: String,
    /// Its classes.
    pub classes: Vec<String>,
    /// Whether it drops what is not IPv4, IPv6 or ARP.
    pub drops_unparsed: bool,
    /// Its functions.
    pub functions: Vec<FunctionPolicy>,
    /// Which packets go from where to where; of the edges of one end and direction the first whose conditions hold.
    pub edges: Vec<EdgePolicy>,
    /// What is expected of each of these, which planners take for the part of the packets that goes there, and no packet sees.
    #[serde(default)]
    pub expected: Vec<String>,
}

/// Packets that go from one end to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgePolicy {
    /// Where from: a function's name in the chain, or a side, `in` or `out`.
    pub from: String,
    /// Where to: the same, or `drop`.
    pub to: String,
    /// With which traffic.
    pub direction: Direction,
    /// All of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
}

/// For people: `in -> monitor, "udp"`.
impl fmt::Display for EdgePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.direction == Direction::Forward { "->" } else { "<-" };
        write!(f, "{} {arrow} {}", self.from, self.to)?;
        self.when.iter().try_for_each(|when| write!(f, ", {when}"))
    }
}

/// A function's part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionPolicy {
    /// Its name in the chain.
    pub name: String,
    /// Its name in the library.
    pub function: String,
    /// Digests of what it was given, by name.
    pub args: Vec<(String, String)>,
}

impl Policy {
    /// What `graph` says.
    #[must_use]
    pub fn of(graph: &PolicyGraph) -> Policy {
        let class = |class: &catena_policy::Class| {
            let back = class.back.as_ref().map_or(String::new(), |back| format!(", return \"{}\"", back.text));
            format!("{} = \"{}\"{back}", class.name, class.filter.text)
        };
        Policy {
            classes: graph.classes.iter().map(class).collect(),
            relations: graph.relations.iter().map(|relation| text(graph, relation)).collect(),
            chains: graph.chains.iter().map(|chain| self::chain(graph, chain)).collect(),
        }
    }

    /// What stands for what functions of a chain were told, and for the edges at them: another digest is another configuration.
    #[must_use]
    pub fn told(&self, chain: &str, functions: &[String]) -> String {
        let Some(chain) = self.chains.iter().find(|own| own.name == chain) else { return String::new() };
        let own = chain.functions.iter().filter(|function| functions.contains(&function.name));
        let ends = |edge: &&EdgePolicy| functions.contains(&edge.from) || functions.contains(&edge.to);
        let edges: Vec<&EdgePolicy> = chain.edges.iter().filter(ends).collect();
        fnv_of(&(own.collect::<Vec<_>>(), edges))
    }

    /// What differs first between the planned policy and the one of a file, for people; None: nothing does.
    #[must_use]
    pub fn difference(&self, file: &Policy) -> Option<String> {
        let names = |policy: &Policy| policy.chains.iter().map(|chain| chain.name.clone()).collect::<Vec<_>>();
        let several = |what: &str, planned: &[String], file: &[String]| {
            (planned != file).then(|| format!("{what}: planned {}, the file has {}", listed(planned), listed(file)))
        };
        let lists = || {
            let classes = one_sided("class", &self.classes, &file.classes);
            let relations = one_sided("relation", &self.relations, &file.relations);
            let chains = several("chains", &names(self), &names(file));
            classes.or(relations).or(chains)
        };
        lists().or_else(|| self.chains.iter().zip(&file.chains).find_map(|(planned, file)| planned.difference(file)))
    }
}

impl ChainPolicy {
    fn difference(&self, file: &ChainPolicy) -> Option<String> {
        let name = &self.name;
        if self.classes != file.classes {
            let (planned, file) = (listed(&self.classes), listed(&file.classes));
            return Some(format!("classes of chain {name}: planned {planned}, the file has {file}"));
        }
        if self.drops_unparsed != file.drops_unparsed {
            return Some(format!("`unparsed` of chain {name}"));
        }
        let functions = |chain: &ChainPolicy| {
            chain.functions.iter().map(|f| (f.name.clone(), f.function.clone())).collect::<Vec<_>>()
        };
        if functions(self) != functions(file) {
            return Some(format!("functions of chain {name}"));
        }
        for (planned, written) in self.functions.iter().zip(&file.functions) {
            let all = planned.args.iter().chain(&written.args);
            let differs = |(arg, _): &&(String, String)| {
                let of = |function: &FunctionPolicy| function.args.iter().find(|(n, _)| n == arg).map(|a| a.1.clone());
                of(planned) != of(written)
            };
            if let Some((arg, _)) = all.into_iter().find(differs) {
                return Some(format!("argument `{arg}` of {} in chain {name}", planned.name));
            }
        }
        let edges = one_sided(&format!("edge of chain {name}"), &self.edges, &file.edges);
        let mut expected = self.edges.iter().zip(self.expected.iter().zip(&file.expected));
        edges.or_else(|| {
            let (edge, (planned, file)) = expected.find(|(_, (planned, file))| planned != file)?;
            Some(format!("what is expected of `{edge}` in chain {name}: planned `{planned}`, the file has `{file}`"))
        })
    }
}

/// The first line that one side has and the other lacks, or that their order differs.
fn one_sided<T: fmt::Display + PartialEq>(what: &str, planned: &[T], file: &[T]) -> Option<String> {
    if let Some(line) = planned.iter().find(|line| !file.contains(line)) {
        return Some(format!("{what} `{line}` is planned, and not in the file"));
    }
    if let Some(line) = file.iter().find(|line| !planned.contains(line)) {
        return Some(format!("{what} `{line}` is in the file, and not planned"));
    }
    (planned != file).then(|| format!("{what}: another order"))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn chain(graph: &PolicyGraph, chain: &Chain) -> ChainPolicy {
    let class = |id: &u32| graph.classes.get(*id as usize).map_or("?", |class| &class.name).to_owned();
    let functions = chain.nodes.iter().map(|node| FunctionPolicy {
        name: node.name.clone(),
        function: node.function.clone(),
        args: node.args.iter().map(|(name, value)| (name.clone(), digest(value))).collect(),
    });
    ChainPolicy {
        name: chain.name.clone(),
        classes: chain.classes.iter().map(class).collect(),
        drops_unparsed: chain.unparsed == Unparsed::Drop,
        functions: functions.collect(),
        edges: chain.edges.iter().map(|edge| self::edge(chain, edge)).collect(),
        expected: chain.edges.iter().map(expected).collect(),
    }
}

fn edge(chain: &Chain, edge: &Edge) -> EdgePolicy {
    EdgePolicy {
        from: chain.end_name(edge.from).to_owned(),
        to: chain.end_name(edge.to).to_owned(),
        direction: edge.direction,
        when: edge.when.iter().map(Condition::from).collect(),
    }
}

fn expected(edge: &Edge) -> String {
    let share = edge.share.iter().map(|share| format!("share {share}"));
    share.chain(edge.rate_bps.iter().map(|bps| format!("{bps} bit/s"))).collect::<Vec<_>>().join(", ")
}

/// FNV-1a, which stays the same from one version of the compiler to the next.
#[must_use]
pub fn fnv(bytes: &[u8]) -> String {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, add))
}

/// FNV-1a of plain data as JSON: what its fields are called is part of it, and how Rust shows them is not.
pub(crate) fn fnv_of(data: &impl Serialize) -> String {
    // Plain data always has a text.
    fnv(serde_json::to_string(data).unwrap_or_default().as_bytes())
}

fn digest(value: &Value) -> String {
    fnv(spelled(value).as_bytes())
}

/// A value as text, files as what is in them.
fn spelled(value: &Value) -> String {
    match value {
        Value::File { text, .. } => format!("file({} bytes: {text})", text.len()),
        Value::List(values) => format!("[{}]", values.iter().map(spelled).collect::<Vec<_>>().join(", ")),
        Value::Record(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}: {}", spelled(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_policy::{Library, NoFiles};

    const FILE: &str = "class web = \"tcp port 80\"\nclass rest = \"udp\"\n\
        chain a for web { in -> ACL(rules = \"permit any\") -> Monitor -> out }\n\
        chain b for rest { in -> [ \"udp port 53\": Monitor ] -> out }\ncpu a : b = 1 : 3\n";

    fn policy(source: &str) -> Policy {
        let outcome = catena_policy::load("t.catena", source, &Library::default(), &NoFiles);
        Policy::of(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics)))
    }

    fn difference(from: &str, to: &str) -> String {
        let changed = FILE.replace(from, to);
        assert_ne!(changed, FILE);
        policy(FILE).difference(&policy(&changed)).unwrap_or_else(|| panic!("{from} became {to}: nobody notices"))
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(policy(FILE).difference(&policy(&FILE.replace("chain b", "\n\n# the rest\nchain b"))), None);
        assert_eq!(difference("= 1 : 3", "= 3 : 1"), "relation `cpu a : b = 1 : 3` is planned, and not in the file");
        let more = policy(FILE).difference(&policy(&format!("{FILE}throughput a : b = 1 : 2\n")));
        let expected = "relation `throughput a : b = 1 : 2` is in the file, and not planned";
        assert_eq!(more.as_deref(), Some(expected));
        assert!(difference("tcp port 80", "tcp port 443").starts_with("class `web = \"tcp port 80\""));
        assert_eq!(difference("permit any", "permit all"), "argument `rules` of acl in chain a");
        assert_eq!(difference("(rules = \"permit any\")", ""), "argument `rules` of acl in chain a");
        assert!(difference("udp port 53", "udp port 54").starts_with("edge of chain b `in -> monitor"));
    }

    #[test]
    fn tiny_shares_that_are_swapped_differ() {
        let of = |first: &str, second: &str| {
            let arms = format!("{first}: Monitor, {second}: Encrypt, else: ACL(rules = \"permit any\")");
            policy(&format!("chain a {{ in -> [ {arms} ] -> out }}\n"))
        };
        let (planned, swapped) = (of("0.001%", "0.002%"), of("0.002%", "0.001%"));
        let [chain, other] = [&planned, &swapped].map(|policy| &policy.chains[0]);
        assert_ne!(chain.edges, other.edges);
        let difference = planned.difference(&swapped).expect("they differ");
        assert!(difference.contains("hash1 0.0000..0.00001` is planned"), "{difference}");
        let usual = of("22%", "33.25%");
        assert_eq!(
            usual.chains[0].edges[..2].iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["in -> monitor, hash1 0.0000..0.2200", "in -> encrypt, hash1 0.2200..0.5525"]
        );
    }

    #[test]
    fn a_file_counts_by_what_is_in_it() {
        let file = |path: &str, text: &str| digest(&Value::File { path: path.into(), text: text.into() });
        assert_eq!(file("a", "x"), file("b", "x"));
        assert_ne!(file("a", "x"), file("a", "y"));
        assert_ne!(digest(&Value::Integer(1)), digest(&Value::Integer(2)));
    }
}
