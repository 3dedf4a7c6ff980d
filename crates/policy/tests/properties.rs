//! Random chain files: nothing panics, and formatting never changes what a file says.

use std::fs;
use std::path::Path;

use catena_policy::{Code, Library, NoFiles, format, fuzz_one, load, load_with};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::sample;

/// The sources of all golden files and examples: what mutation begins with.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/golden", "../../examples", "../../examples/lemur"];
    let mut sources: Vec<String> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "catena"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    sources.sort();
    sources
}

/// Words that a file is made of, right and wrong ones.
const PIECES: &[&str] = &[
    "class",
    "chain",
    "let",
    "macro",
    "promise",
    "within",
    "for",
    "back",
    "in",
    "out",
    "drop",
    "else",
    "priority",
    "cpu",
    "share",
    "bulk",
    "a",
    "b",
    "ids",
    "safe",
    "NAT",
    "ACL()",
    "Ids",
    "->",
    "<->",
    "-(",
    "<-(",
    ")->",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "::",
    "=",
    "==",
    "!=",
    "~",
    ">",
    "-",
    "..",
    "2Gbps",
    "45us",
    "30%",
    "0x1f",
    "10.0.0.0/8",
    "192.0.2.1:80",
    "::1",
    "2001:db8::/32",
    "1024-65535",
    "\"tcp port 80\"",
    "'x'",
    "\"",
    "file(\"a\")",
    "# note\n",
    "\n",
    "true",
    "µ",
    "é",
    "\u{1f600}",
    "99999999999999999999",
    "1.5",
    "[1, 2]",
    "{k: v}",
];

/// One element of a path or an arm.
fn element(depth: u32) -> BoxedStrategy<Vec<String>> {
    let words = |list: &'static [&'static str]| select(list).prop_map(|w| vec![w.to_owned()]);
    let leaf = prop_oneof![
        4 => words(&["a", "b", "c", "Monitor ( )", "WebCache ( memory = 3MB )", "Normalizer", "m ( r = 3Mbps )", "x :: ACL ( )"]),
        1 => words(&["ids [ safe ]", "ids [ verdict != safe ]", "unknown", "Unknown ( k = [ 1 , 2 ] )", "drop", "out"]),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let condition = words(&[
        "\"tcp port 80\" :",
        "\"udp\" ~ 20% :",
        "30% :",
        "70% :",
        "else :",
        "web :",
        "verdict == [ safe , unsafe ] :",
        "backend != 3 ~ 5% :",
        "safe :",
        "",
    ]);
    let arm = (condition, path(depth - 1), any::<bool>()).prop_map(|(mut condition, path, empty)| {
        if !empty || condition[0].is_empty() {
            condition.extend(path);
        }
        condition
    });
    let branch = vec(arm, 1..4).prop_map(|arms| {
        let mut words = vec!["[".to_owned()];
        for arm in arms {
            words.extend(arm);
            words.push(",".to_owned());
        }
        words.push("]".to_owned());
        words
    });
    prop_oneof![5 => leaf, 1 => branch].boxed()
}

fn path(depth: u32) -> BoxedStrategy<Vec<String>> {
    let arrow = select(&["->", "->", "->", "-( 2Gbps )->"][..]);
    (element(depth), vec((arrow, element(depth)), 0..3))
        .prop_map(|(first, rest)| {
            let mut words = first;
            for (arrow, element) in rest {
                words.push(arrow.to_owned());
                words.extend(element);
            }
            words
        })
        .boxed()
}

/// A chain file, mostly right, as words that white space may separate in any way.
fn file() -> impl Strategy<Value = Vec<String>> {
    let whole = |list: &'static [&'static str]| select(list).prop_map(|s| s.split(' ').map(str::to_owned).collect());
    let statement = prop_oneof![
        3 => path(2).prop_map(|p| [vec!["in".to_owned(), "->".to_owned()], p, vec!["->".to_owned(), "out".to_owned()]].concat()),
        1 => path(1).prop_map(|p| [vec!["a".to_owned(), "->".to_owned()], p].concat()),
        1 => whole(&[
            "promise 2Gbps..10Gbps within 45us", "promise bulk", "promise low..", "promise ..low", "in <-> a <-> b <-> out",
            "out -> b -> in", "back a -> b", "d = Limiter ( rate = low , burst = 64KB )", "ids [ safe ] -> drop ;",
        ]),
    ];
    let body = vec(statement, 0..4).prop_map(|statements: Vec<Vec<String>>| statements.concat());
    let head =
        "a = Monitor ( ) b = ACL ( rules = [ 'x' , \"y\" , ] ) c = Normalizer ( ) ids = Ids ( home = 10.0.0.0/8 )";
    let chain = |name: &'static str| {
        body.clone().prop_map(move |body| {
            let mut words: Vec<String> = format!("{name} {{ {head}").split(' ').map(str::to_owned).collect();
            words.extend(body);
            words.push("}".to_owned());
            words
        })
    };
    let item = prop_oneof![
        whole(&[
            "class web = \"port 80\" back \"port 81\"",
            "let low = 5Mbps",
            "let list = [ 1 , { k : ::1 } , low ]",
            "priority one > two",
            "cpu one : two = 2 : 1",
            "share one : web = 30% : 70%",
            "throughput web : two = 1.5 : 1",
            "macro m ( r , s = 3 ) { in -> Limiter ( rate = r ) -> [ \"udp\" : Monitor ( ) ] -> out }",
        ]),
        chain("chain one for web"),
        chain("chain two"),
    ];
    vec(item, 1..6).prop_map(|items: Vec<Vec<String>>| items.concat())
}

/// Joins words with white space and comments, as `choices` say.
fn spread(words: &[String], choices: &[u8]) -> String {
    let mut text = String::new();
    for (word, choice) in words.iter().flat_map(|w| w.split(' ')).zip(choices.iter().cycle()) {
        text.push_str(word);
        text.push_str(match choice {
            0..8 => " ",
            8 | 9 => "\n",
            10 => "\n\n\n",
            11 => " # why\n",
            12 => "\n    # on its own line\n",
            _ => "  ",
        });
    }
    text
}

proptest! {
    // What fails goes into a golden file, not into a file of seeds.
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_judged(data in vec(any::<u8>(), 0..300)) {
        fuzz_one(&data, &Library::default());
    }

    #[test]
    fn any_pieces_are_judged(pieces in vec(select(PIECES), 0..60), tight in any::<bool>()) {
        fuzz_one(pieces.join(if tight { "" } else { " " }).as_bytes(), &sample::library());
    }

    #[test]
    fn formatting_keeps_the_graph(words in file(), choices in vec(0u8..14, 1..200)) {
        fuzz_one(spread(&words, &choices).as_bytes(), &sample::library());
    }

    #[test]
    fn mutated_files_are_judged(
        which in any::<prop::sample::Index>(),
        edits in vec((any::<prop::sample::Index>(), 0usize..12, select(PIECES)), 1..6),
    ) {
        let corpus = corpus();
        let mut data = corpus[which.index(corpus.len())].clone().into_bytes();
        for (at, remove, piece) in edits {
            let at = at.index(data.len() + 1);
            let end = (at + remove).min(data.len());
            data.splice(at..end, piece.bytes());
        }
        fuzz_one(&data, &sample::library());
    }
}

#[test]
fn the_generator_makes_files_that_work() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut parsed, mut graphs) = (0, 0);
    for _ in 0..300 {
        let source = spread(&file().new_tree(&mut runner).unwrap().current(), &[0]);
        if format(&source).is_ok() {
            parsed += 1;
        }
        if load("x", &source, &Library::default(), &NoFiles).graph.is_some() {
            graphs += 1;
        }
    }
    assert!(parsed > 150 && graphs > 10, "of 300 files {parsed} parse and {graphs} give a graph");
}

#[test]
fn the_graph_survives_json() {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/shares.catena")).unwrap();
    let graph = load("x", &source, &sample::library(), &sample::Shelf).graph.unwrap();
    let json = serde_json::to_string(&graph).unwrap();
    assert_eq!(serde_json::from_str::<catena_policy::PolicyGraph>(&json).unwrap(), graph);
}

/// Inputs made to be expensive end in a finding, quickly.
#[test]
fn bounds_hold() {
    struct Accept;
    impl catena_policy::Compiler for Accept {
        fn compile(&self, _: &str) -> Result<Vec<catena_policy::Insn>, String> {
            Ok(Vec::new())
        }
    }
    let codes = |source: &str| {
        let outcome = load_with("x", source, &sample::library(), &NoFiles, &Accept);
        assert!(outcome.has_errors() && outcome.graph.is_none());
        outcome.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    // A megabyte of one bracket, and of each that nests.
    for nest in ["[", "{", "(", "[\"a\": ", "x(y = ", "a -> [", "-"] {
        codes(&format!("let a = {}", nest.repeat(20_000)));
        codes(&format!("in -> {}", nest.repeat(20_000)));
    }
    // Constants that double: 2^40 values.
    let mut source = String::from("let v0 = 1\n");
    for n in 1..41 {
        source.push_str(&format!("let v{n} = [v{}, v{}]\n", n - 1, n - 1));
    }
    source.push_str("chain x { in -> Monitor(max_flows = v40) -> out }");
    assert!(codes(&source).contains(&Code::TooLarge));
    // Macros that double: 2^40 instances.
    let mut source = String::from("macro m0 { in -> Monitor() -> out }\n");
    for n in 1..41 {
        source.push_str(&format!("macro m{n} {{ in -> m{}() -> m{}() -> out }}\n", n - 1, n - 1));
    }
    source.push_str("chain x { in -> m40() -> out }");
    assert!(codes(&source).contains(&Code::TooLarge));
    // Branches whose open ends multiply.
    let branch = "-> [ \"a\": Monitor(), \"b\": Monitor(), \"c\": Monitor() ] ".repeat(2_000);
    assert!(codes(&format!("chain x {{ in {branch} -> out }}")).contains(&Code::TooLarge));
    // Doors that multiply paths without a node.
    let pass = "-> [ \"a\": p(), \"b\": p(), \"c\": p() ] ".repeat(200);
    codes(&format!("macro p {{ in -> [ \"x\": , \"y\": ] -> out }}\nchain x {{ in {pass} -> out }}"));
    // A long row of constants, each of the next.
    let source: String = (0..5_000).map(|n| format!("let c{n} = c{}\n", n + 1)).collect();
    assert!(codes(&source).contains(&Code::TooLarge));
    assert!(codes(&" ".repeat(catena_policy::MAX_SOURCE + 1)).contains(&Code::TooLarge));
    assert_eq!(codes(&"@\n".repeat(10_000)).len(), catena_policy::MAX_FINDINGS + 1);
}
