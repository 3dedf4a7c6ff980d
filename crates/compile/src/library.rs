//! The function library as the chain language sees it: signatures and values in its own terms.

use catena_functions::{Descriptor, Kind, Method, Value, registry};
use catena_policy as policy;

/// Return the signatures of all functions there are.
pub fn signatures() -> policy::Library {
    policy::Library { functions: registry::FUNCTIONS.iter().map(|f| signature(f)).collect() }
}

fn signature(function: &Descriptor) -> policy::Signature {
    policy::Signature {
        name: function.name.to_owned(),
        summary: function.summary.to_owned(),
        params: function
            .params
            .iter()
            .map(|param| policy::Param {
                name: param.name.to_owned(),
                kind: kind(&param.kind),
                required: param.default.is_none(),
                default: param.default.map(str::to_owned),
                doc: param.doc.to_owned(),
            })
            .collect(),
        attributes: function
            .attributes
            .iter()
            .map(|attribute| policy::Attribute {
                name: attribute.name.to_owned(),
                values: match attribute.values {
                    [] => None,
                    values => Some(values.iter().map(|&v| v.to_owned()).collect()),
                },
                by: match attribute.method {
                    Method::Port => policy::Method::Port,
                    Method::Metadata => policy::Method::Metadata,
                },
            })
            .collect(),
    }
}

fn kind(kind: &Kind) -> policy::ParamKind {
    use policy::ParamKind as P;
    match *kind {
        Kind::Bool => P::Bool,
        Kind::Integer => P::Integer,
        Kind::Number => P::Number,
        Kind::Text => P::Text,
        Kind::Word(words) => P::Word(words.iter().map(|&w| w.to_owned()).collect()),
        Kind::Percent => P::Percent,
        Kind::BitRate => P::BitRate,
        Kind::PacketRate => P::PacketRate,
        Kind::Rate => P::Rate,
        Kind::Duration => P::Duration,
        Kind::Size => P::Size,
        Kind::Address => P::Address,
        Kind::Prefix => P::Prefix,
        Kind::AddressRange => P::AddressRange,
        Kind::Endpoint => P::Endpoint,
        Kind::Range => P::Range,
        Kind::File => P::File,
        Kind::List(of) => P::List(Box::new(self::kind(of))),
        Kind::Record => P::Record,
        Kind::OneOf(kinds) => P::OneOf(kinds.iter().map(self::kind).collect()),
        Kind::Any => P::Any,
    }
}

/// Return a value of the chain language as a function takes it.
pub fn value(value: &policy::Value) -> Value {
    use policy::Value as P;
    match value {
        P::Bool(on) => Value::Bool(*on),
        P::Integer(n) => Value::Integer(*n),
        P::Float(x) => Value::Number(*x),
        P::Text(text) => Value::Text(text.clone()),
        P::Word(word) => Value::Word(word.clone()),
        P::Percent(part) => Value::Percent(*part),
        P::BitRate(bps) => Value::BitRate(*bps),
        P::PacketRate(pps) => Value::PacketRate(*pps),
        P::Duration(ns) => Value::Duration(*ns),
        P::Size(bytes) => Value::Size(*bytes),
        P::Address(address) => Value::Address(*address),
        P::Prefix(address, length) => Value::Prefix(*address, *length),
        P::Endpoint(endpoint) => Value::Endpoint(*endpoint),
        P::AddressRange(first, last) => Value::AddressRange(*first, *last),
        P::Range(first, last) => Value::Range(*first, *last),
        P::List(values) => Value::List(values.iter().map(self::value).collect()),
        P::Record(fields) => Value::Record(fields.iter().map(|(k, v)| (k.clone(), self::value(v))).collect()),
        P::File { path, text } => Value::File { path: path.clone(), text: text.clone() },
    }
}
