//! Several chain files become one policy graph.
//!
//! Names are a file's own: where two files use one, both are called after their file (`chain1.aggregate`), and a
//! chain without a name takes the file's. Classes match in the order of the files.

use catena_policy::{Chain, Class, PolicyGraph, Relation, Subject};

/// The union of `graphs`, each with the name of its file without folder and ending.
#[must_use]
pub fn unite(graphs: Vec<(String, PolicyGraph)>) -> PolicyGraph {
    let names = |of: fn(&PolicyGraph) -> Vec<String>| {
        let all: Vec<String> = graphs.iter().flat_map(|(_, graph)| of(graph)).collect();
        move |name: &str| all.iter().filter(|other| *other == name).count() > 1
    };
    let chain_clashes = names(|graph| graph.chains.iter().map(|chain| chain.name.clone()).collect());
    let class_clashes = names(|graph| graph.classes.iter().map(|class| class.name.clone()).collect());
    let mut union = PolicyGraph::default();
    for (file, graph) in graphs {
        let (chains, classes) = (union.chains.len() as u32, union.classes.len() as u32);
        for chain in graph.chains {
            let wanted = match chain.name.as_str() {
                name if !chain_clashes(name) => name.to_owned(),
                "main" => file.clone(),
                name => format!("{file}.{name}"),
            };
            let name = free(wanted, |name| union.chains.iter().any(|other| other.name == name));
            let ids = chain.classes.iter().map(|id| id + classes).collect();
            union.chains.push(Chain { name, classes: ids, ..chain });
        }
        for class in graph.classes {
            let wanted = if class_clashes(&class.name) { format!("{file}.{}", class.name) } else { class.name.clone() };
            let name = free(wanted, |name| union.classes.iter().any(|other| other.name == name));
            union.classes.push(Class { name, ..class });
        }
        union.relations.extend(graph.relations.into_iter().map(|relation| moved(relation, chains, classes)));
    }
    union
}

/// `wanted`, or with a number behind it if that is taken: two files of one name in different folders.
fn free(wanted: String, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.clone();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    name
}

/// The relation with its subjects' numbers moved on.
fn moved(relation: Relation, chains: u32, classes: u32) -> Relation {
    let subject = |subject: Subject| match subject {
        Subject::Chain(id) => Subject::Chain(id + chains),
        Subject::Class(id) => Subject::Class(id + classes),
    };
    let weighted = |list: Vec<(Subject, f64)>| list.into_iter().map(|(s, weight)| (subject(s), weight)).collect();
    match relation {
        Relation::Priority(order) => Relation::Priority(order.into_iter().map(subject).collect()),
        Relation::Cpu(list) => Relation::Cpu(weighted(list)),
        Relation::Throughput(list) => Relation::Throughput(weighted(list)),
        Relation::Share(list) => Relation::Share(weighted(list)),
    }
}

#[cfg(test)]
mod tests {
    use catena_policy::{Library, NoFiles};

    use super::*;

    fn graph(source: &str) -> PolicyGraph {
        let outcome = catena_policy::load("t.catena", source, &Library::default(), &NoFiles);
        outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))
    }

    #[test]
    fn names_that_clash_are_called_after_their_files() {
        let a = graph(
            "class web = \"tcp\"\nclass x = \"udp\"\nchain c for web { in -> A -> out }\nchain d for x { in -> A -> out }\nshare c : d = 1 : 2",
        );
        let b = graph(
            "class web = \"udp\"\nclass post = \"port 25\"\nchain c for web { in -> A -> out }\n\
             chain e for post { in -> A -> out }\nshare c : e = 3 : 4",
        );
        let both = unite(vec![("a".to_owned(), a), ("b".to_owned(), b)]);
        let chains: Vec<&str> = both.chains.iter().map(|c| c.name.as_str()).collect();
        let classes: Vec<&str> = both.classes.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((chains, classes), (vec!["a.c", "d", "b.c", "e"], vec!["a.web", "x", "b.web", "post"]));
        assert_eq!(both.chains[2].classes, [2]);
        let Some(Relation::Share(weights)) = both.relations.last() else { panic!("{:?}", both.relations) };
        assert_eq!(weights, &[(Subject::Chain(2), 3.0), (Subject::Chain(3), 4.0)]);
    }

    #[test]
    fn chains_without_a_name_take_their_files() {
        let graphs = ["acl", "nat", "nat"].map(|file| (file.to_owned(), graph("A -> B")));
        let both = unite(graphs.into());
        assert_eq!(both.chains.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["acl", "nat", "nat-2"]);
        assert_eq!(unite(vec![("acl".to_owned(), graph("A -> B"))]).chains[0].name, "main");
    }
}
