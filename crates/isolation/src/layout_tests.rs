//! What the program in C and this crate tell each other has the same layout and the same numbers in both.

use std::fmt::Debug;

use super::Settings;
use crate::charge::{Account, Charge, Totals};
use crate::outside::Handler;

const SOURCE: &str = include_str!("../bpf/account.bpf.c");
const OUTSIDE: &str = include_str!("../bpf/outside.h");
const DEVICES: &str = include_str!("../bpf/devices.h");

/// Return the fields of a structure in C, which are all of 64 bits.
fn in_c(source: &str, name: &str) -> Vec<String> {
    let (_, body) = source.split_once(&format!("struct {name} {{\n")).unwrap_or_else(|| panic!("no struct {name}"));
    let (body, _) = body.split_once("\n};").expect("its end");
    let field = |line: &str| Some(line.trim().strip_prefix("u64 ")?.split(';').next()?.to_owned());
    body.lines().map(|line| field(line).unwrap_or_else(|| panic!("struct {name}: {line}"))).collect()
}

/// Return the fields of a structure here, in their order, as `{:#?}` tells them.
fn here<T: Debug>(of: &T) -> Vec<String> {
    let told = format!("{of:#?}");
    let fields = told.lines().filter_map(|line| line.strip_prefix("    "));
    let names: Vec<String> = fields.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(size_of::<T>(), 8 * names.len(), "{names:?} are of 64 bits each");
    names
}

#[test]
fn structures_have_the_same_fields_in_the_same_order() {
    assert_eq!(in_c(SOURCE, "charge"), here(&Charge::default()));
    assert_eq!(in_c(SOURCE, "totals"), here(&Totals::default()));
    assert_eq!(in_c(SOURCE, "settings"), here(&Settings::new(None, 0)));
    assert_eq!(in_c(OUTSIDE, "handler"), here(&Handler::default()));
    // Here two numbers: `charge_device` has them in this order.
    assert!(DEVICES.contains("struct device {\n\tu32 namespace;\n\tu32 number;\n};"));
}

#[test]
fn kinds_of_nobodys_work_have_the_same_numbers() {
    /// `NoSocket` is `NO_SOCKET` in C.
    fn in_capitals(name: &str) -> String {
        let parts =
            name.char_indices().map(|(at, c)| if at > 0 && c.is_uppercase() { format!("_{c}") } else { c.into() });
        parts.collect::<String>().to_uppercase()
    }
    let nobody = 1 << 63;
    let kinds =
        Account::NOBODYS.map(|kind| format!("{} = {}", in_capitals(&format!("{kind:?}")), kind.key() & !nobody));
    assert!(SOURCE.contains(&format!("enum {{ {} }};", kinds.join(", "))), "{kinds:?}");
    assert!(
        SOURCE.contains("#define NOBODY (1ull << 63)") && Account::NOBODYS.iter().all(|kind| kind.key() & nobody > 0)
    );
}
