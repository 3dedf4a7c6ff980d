//! A function library and files for the tests.

use std::path::Path;

use catena_policy::{Attribute, Files, Library, Method, Param, ParamKind, Signature};

fn param(name: &str, kind: ParamKind) -> Param {
    Param { name: name.to_owned(), kind, required: false, default: None, doc: String::new() }
}

fn needed(name: &str, kind: ParamKind) -> Param {
    Param { required: true, ..param(name, kind) }
}

fn words(list: &[&str]) -> ParamKind {
    ParamKind::Word(list.iter().map(|w| (*w).to_owned()).collect())
}

fn list(kind: ParamKind) -> ParamKind {
    ParamKind::List(Box::new(kind))
}

fn function(name: &str, params: Vec<Param>) -> Signature {
    Signature { name: name.to_owned(), params, ..Signature::default() }
}

fn exporting(mut signature: Signature, name: &str, values: Option<&[&str]>, by: Method) -> Signature {
    let values = values.map(|v| v.iter().map(|w| (*w).to_owned()).collect());
    signature.attributes.push(Attribute { name: name.to_owned(), values, by });
    signature
}

/// The first functions of the library, and E2's three.
pub fn library() -> Library {
    use ParamKind::{Address, AddressRange, Duration, Endpoint, File, Integer, OneOf, Prefix, Range, Rate, Size, Text};
    let ids = function("Ids", vec![needed("rules", File), param("home", Prefix)]);
    let lb = function(
        "LB",
        vec![
            needed("vip", OneOf(vec![Address, Endpoint])),
            needed("backends", list(OneOf(vec![Address, Endpoint]))),
            param("method", words(&["least_connections", "consistent_hash"])),
        ],
    );
    let functions = vec![
        function(
            "ACL",
            vec![param("rules", OneOf(vec![File, list(Text)])), param("default", words(&["permit", "deny"]))],
        ),
        function(
            "NAT",
            vec![
                needed("pool", list(OneOf(vec![Prefix, AddressRange]))),
                param("ports", Range),
                param("max_mappings", Integer),
                param("filtering", words(&["independent", "address", "address_port"])),
            ],
        ),
        exporting(lb, "backend", None, Method::Metadata),
        function(
            "Monitor",
            vec![param("max_flows", Integer), param("export", Text), param("format", words(&["json", "ipfix"]))],
        ),
        function("IPv4Fwd", vec![needed("routes", OneOf(vec![File, list(Text)]))]),
        function(
            "Limiter",
            vec![
                needed("rate", Rate),
                param("burst", OneOf(vec![Size, Duration])),
                param("per", words(&["class", "src", "dst", "flow"])),
            ],
        ),
        exporting(ids, "verdict", Some(&["safe", "unsafe"]), Method::Port),
        function("WebCache", vec![param("memory", Size)]),
        function("Normalizer", Vec::new()),
    ];
    Library { functions }
}

/// A few rule files, and one that is missing.
pub struct Shelf;

impl Files for Shelf {
    fn read(&self, path: &Path, limit: usize) -> Result<String, String> {
        let text = match path.to_str() {
            Some("edge.acl" | "folder/edge.acl") => "permit any from any to any\n",
            Some("web.rules") => "alert\n",
            _ => return Err("No such file or directory (os error 2)".to_owned()),
        };
        if text.len() > limit { Err("too long".to_owned()) } else { Ok(text.to_owned()) }
    }
}
