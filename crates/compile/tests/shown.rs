//! What is shown of a pipeline is what is built.

use catena_compile::library::signatures;
use catena_compile::lower;
use catena_policy::{Disk, load};

/// By what a function keeps its state, arguments may say.
#[test]
fn state_is_shown_as_arguments_declare_it() {
    let shown = |per: &str| {
        let text = format!("chain c {{ in -> Limiter(rate = 1Mbps, per = {per}) -> out }}");
        let outcome = load("shown.catena", &text, &signatures(), &Disk);
        lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered")
    };
    for (per, scope) in [("class", "configured"), ("src", "source address"), ("dst", "destination address")] {
        let host = shown(per);
        assert!(host.to_string().contains(&format!("    keeps buckets ({scope})\n")), "{host}");
        let state = &host.json()["modules"][0]["state"][0];
        assert_eq!((state["name"].as_str(), state["scope"].as_str()), (Some("buckets"), Some(scope)), "{state}");
    }
}
