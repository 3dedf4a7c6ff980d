//! What `catena analyze --manifest` found of a function's state, and how its traffic may be split therefore.
//!
//! A manifest lists the objects in memory that packets change (StateAlyzr; Khalid's dissertation, §4.4), each with the
//! header fields that key its entries. Packets that use the same entry must meet the same instance: so traffic may be
//! split by fields that all keys have, and a function with an object for all flows has one instance. What nothing
//! reads, and what packets have no influence on (a clock), binds nobody.

use catena_state::Scope;
use serde::Deserialize;

use crate::config::{ArgError, Args, Value};
use crate::descriptor::Affinity;

/// The format that is read.
const VERSION: u32 = 1;

/// The state of a function.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub manifest: u32,
    /// What was analysed.
    pub program: String,
    /// What packets change.
    pub objects: Vec<Changed>,
}

/// An object that packets change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    /// A variable's name, or where memory is allocated.
    pub name: String,
    /// Its type in C, where it is known.
    pub r#type: String,
    /// File and line.
    pub declared: String,
    /// The header fields that key its entries; none for an object that all flows share.
    pub scope: Vec<String>,
    /// Whether it is read or written mostly.
    pub access: String,
    /// Whether what is written depends on packets.
    pub from_packets: bool,
    /// Whether nothing reads it.
    pub unread: bool,
}

/// Ways to split traffic, the finest first, and the fields that it looks at.
const SPLITS: [(Scope, &[&str]); 4] = [
    (Scope::Connection, &["src_ip", "dst_ip", "src_port", "dst_port", "proto"]),
    (Scope::SourceEndpoint, &["src_ip", "src_port", "proto"]),
    (Scope::Source, &["src_ip"]),
    (Scope::Destination, &["dst_ip"]),
];

impl Changed {
    /// Return whether it matters which instance a packet meets.
    pub fn binds(&self) -> bool {
        self.from_packets && !self.unread
    }

    fn has_all(&self, fields: &[&str]) -> bool {
        fields.iter().all(|field| self.scope.iter().any(|key| key == field))
    }
}

impl Manifest {
    /// Return the manifest in the argument `param`; `None` if it is not given.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn of(args: &Args, param: &str) -> Result<Option<Manifest>, ArgError> {
        match args.get(param) {
            None => Ok(None),
            Some(Value::File { path, text }) => Manifest::parse(param, path, text).map(Some),
            Some(_) => Err(ArgError::new(param, "expected file(\"...\")")),
        }
    }

    fn parse(param: &str, path: &str, text: &str) -> Result<Manifest, ArgError> {
        let wrong = |line: usize, message: String| {
            let mut error = ArgError::new(param, message).help("`catena analyze --manifest FILE` writes one");
            error.place = Some((path.to_owned(), line));
            error
        };
        let manifest: Manifest =
            serde_json::from_str(text).map_err(|error| wrong(error.line(), format!("this is no manifest: {error}")))?;
        match manifest.manifest {
            VERSION => Ok(manifest),
            other => Err(wrong(1, format!("this is a manifest of version {other}; version {VERSION} is expected"))),
        }
    }

    /// Return how traffic may be split over instances.
    pub fn affinity(&self) -> Affinity {
        let mut binding = self.objects.iter().filter(|object| object.binds()).peekable();
        if binding.peek().is_none() {
            return Affinity::None;
        }
        let objects: Vec<&Changed> = binding.collect();
        let kept = |fields: &[&str]| objects.iter().all(|object| object.has_all(fields));
        let split = SPLITS.iter().find(|(_, fields)| kept(fields));
        split.map_or(Affinity::Single, |(scope, _)| Affinity::Scope(*scope))
    }

    /// Return in words why traffic may be split as it may: the objects that decide.
    pub fn reason(&self) -> String {
        let binding: Vec<&Changed> = self.objects.iter().filter(|object| object.binds()).collect();
        let named = |objects: &[&Changed]| {
            let keyed = |object: &&Changed| match object.scope.is_empty() {
                true => format!("`{}` is one for all packets", object.name),
                false => format!("`{}` is kept by {}", object.name, object.scope.join(", ")),
            };
            objects.iter().map(keyed).collect::<Vec<_>>().join("; ")
        };
        let splittable = |object: &&&Changed| SPLITS.iter().any(|(_, fields)| object.has_all(fields));
        let single: Vec<&Changed> = binding.iter().filter(|object| !splittable(object)).copied().collect();
        match (binding.is_empty(), single.is_empty()) {
            (true, _) => "packets change nothing that is read".to_owned(),
            (_, true) => named(&binding),
            (_, false) => named(&single),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, scope: &[&str]) -> Changed {
        Changed {
            name: name.to_owned(),
            r#type: "struct entry".to_owned(),
            declared: "nf.c:1".to_owned(),
            scope: scope.iter().map(|&field| field.to_owned()).collect(),
            access: "both".to_owned(),
            from_packets: true,
            unread: false,
        }
    }

    fn of(objects: Vec<Changed>) -> Manifest {
        Manifest { manifest: VERSION, program: "nf.c".to_owned(), objects }
    }

    #[test]
    fn traffic_is_split_by_what_all_keys_have() {
        let five = ["dst_ip", "dst_port", "proto", "src_ip", "src_port"];
        let affinity = |objects| of(objects).affinity();
        assert_eq!(affinity(vec![]), Affinity::None);
        assert_eq!(affinity(vec![object("flows", &five)]), Affinity::Scope(Scope::Connection));
        assert_eq!(
            affinity(vec![object("flows", &five), object("hosts", &["src_ip"])]),
            Affinity::Scope(Scope::Source)
        );
        assert_eq!(affinity(vec![object("hosts", &["dst_ip", "ttl"])]), Affinity::Scope(Scope::Destination));
        assert_eq!(
            affinity(vec![object("a", &["src_ip", "src_port", "proto"])]),
            Affinity::Scope(Scope::SourceEndpoint)
        );
        assert_eq!(affinity(vec![object("a", &["src_ip"]), object("b", &["dst_ip"])]), Affinity::Single);
        assert_eq!(affinity(vec![object("flows", &five), object("total", &[])]), Affinity::Single);
        assert_eq!(affinity(vec![object("ports", &["dst_port"])]), Affinity::Single);
    }

    #[test]
    fn what_nobody_reads_or_packets_do_not_change_binds_nobody() {
        let clock = Changed { from_packets: false, ..object("now", &[]) };
        let total = Changed { unread: true, ..object("total", &[]) };
        let manifest = of(vec![clock, total]);
        assert_eq!(manifest.affinity(), Affinity::None);
        assert_eq!(manifest.reason(), "packets change nothing that is read");
    }

    #[test]
    fn the_reason_names_what_decides() {
        let manifest = of(vec![object("hosts", &["src_ip"]), object("total", &[])]);
        assert_eq!(manifest.reason(), "`total` is one for all packets");
        assert_eq!(of(vec![object("hosts", &["src_ip"])]).reason(), "`hosts` is kept by src_ip");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| Manifest::parse("state", "nf.manifest", text).unwrap_err().to_string();
        assert!(wrong("{\n\"manifest\": 1,\n]").starts_with("nf.manifest:3: `state`: this is no manifest"));
        assert!(wrong("{\"manifest\": 1, \"program\": \"x\"}").contains("missing field `objects`"));
        assert!(wrong("{\"manifest\": 2, \"program\": \"x\", \"objects\": []}").contains("version 1 is expected"));
        let number = Args::default().with("state", Value::Integer(1));
        assert!(Manifest::of(&number, "state").is_err());
        assert_eq!(Manifest::of(&Args::default(), "state"), Ok(None));
    }
}
