//! Reads optimised MIR, as `rustc --emit=mir` writes it: which functions read a `bool` that nothing writes.

/// Return the heads of the functions that read a local of type `bool` without a definition.
pub fn unwritten(mir: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut head, mut body) = ("", Vec::new());
    for line in mir.lines() {
        // Bodies begin at the left margin, and end with a brace there.
        if line.ends_with('{') && !line.starts_with(' ') {
            (head, body) = (line, Vec::new());
        } else if line == "}" {
            found.extend(is_wrong(&body).then(|| head.trim_end_matches('{').trim_end().to_owned()));
            body.clear();
        } else {
            body.push(line.trim_start());
        }
    }
    found
}

/// Return whether a body reads a `bool` that it never writes, nor lets anything else write.
fn is_wrong(body: &[&str]) -> bool {
    let locals = body.iter().filter_map(|line| {
        let declared = line.strip_prefix("let ")?;
        declared.strip_prefix("mut ").unwrap_or(declared).strip_suffix(": bool;")
    });
    let mut locals = locals;
    locals.any(|local| {
        let is_read = body.iter().any(|line| has(line, "copy ", local) || has(line, "move ", local));
        is_read && !body.iter().any(|line| writes(line, local))
    })
}

/// Return whether a statement writes a local, or takes its address for others to write.
fn writes(line: &str, local: &str) -> bool {
    line.strip_prefix(local).is_some_and(|rest| rest.starts_with(" = "))
        || ["&", "&mut ", "&raw mut ", "&raw const "].iter().any(|way| has(line, way, local))
}

/// Return whether a local's whole name follows these letters somewhere in a line.
fn has(line: &str, before: &str, local: &str) -> bool {
    line.match_indices(before).any(|(at, _)| {
        let rest = &line[at + before.len()..];
        rest.strip_prefix(local).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[test]
fn a_bool_that_is_read_must_be_written() {
    let body = |statement: &str| {
        format!(
            "fn f(_1: u64) -> bool {{\n    let mut _2: bool;\n    bb0: {{\n        {statement}\n        (*_1).1 = copy _2;\n    }}\n}}\n"
        )
    };
    assert_eq!(unwritten(&body("nop;")), ["fn f(_1: u64) -> bool"]);
    assert_eq!(unwritten(&body("_22 = Eq(copy _1, const 3_u64);")), ["fn f(_1: u64) -> bool"]);
    for written in
        ["_2 = Eq(copy _1, const 3_u64);", "_2 = g(copy _1) -> [return: bb1, unwind continue];", "_5 = &mut _2;"]
    {
        assert_eq!(unwritten(&body(written)), [""; 0], "{written}");
    }
    assert_eq!(unwritten("fn f() -> () {\n    let mut _2: bool;\n    bb0: {\n        return;\n    }\n}\n"), [""; 0]);
}
