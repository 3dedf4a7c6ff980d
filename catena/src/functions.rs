//! `catena functions`: the library's list and manual pages.

use std::process::ExitCode;

use catena_compile::library::signatures;
use catena_functions::{Affinity, Descriptor, registry};
use serde_json::json;

use crate::Failure;
use crate::arguments::FunctionsOptions;
use crate::book::book;
use crate::streams::print;
use crate::table::Table;

/// List the functions, show one's manual page, or write all pages.
///
/// # Errors
/// When there is no function of the name, or pages cannot be written or are not up to date.
pub fn functions(options: &FunctionsOptions) -> Result<ExitCode, Failure> {
    if let Some(folder) = &options.book {
        return book(folder, options.check).map(|()| ExitCode::SUCCESS);
    }
    let chosen: Vec<&Descriptor> = match &options.name {
        None => registry::FUNCTIONS.to_vec(),
        Some(name) => vec![find(name)?],
    };
    if options.json {
        let all: Vec<_> = chosen.iter().map(|f| as_json(f)).collect();
        print(serde_json::to_string_pretty(&all)? + "\n")?;
    } else if options.name.is_some() {
        chosen.iter().try_for_each(|f| print(page(f) + "\n"))?;
    } else {
        let mut table = Table::new(&["function", "what it does"], &[false, false]);
        for function in chosen {
            table.row([function.name.to_owned(), function.summary.to_owned()]);
        }
        print(format_args!("{table}\n`catena functions NAME` shows a function's manual page.\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Return the function called so.
///
/// # Errors
/// That there is none, with the likely one.
pub fn find(name: &str) -> Result<&'static Descriptor, Failure> {
    if let Some(function) = registry::find(name) {
        return Ok(function);
    }
    let near = registry::FUNCTIONS.iter().find(|f| f.name.eq_ignore_ascii_case(name));
    let help = near.map_or("`catena functions` lists them".to_owned(), |f| format!("did you mean `{}`?", f.name));
    Err(Failure(format!("the library has no function `{name}`; {help}")))
}

/// Return a function's manual page: its head comment, and what its descriptor declares.
pub fn page(function: &Descriptor) -> String {
    let mut page = function.manual().trim_end().to_owned();
    page += "\n\n# Parameters\n\n";
    let mut table = Table::new(&["name", "default", "meaning"], &[false, false, false]);
    for param in function.params {
        table.row([param.name.to_owned(), param.default.unwrap_or("(required)").to_owned(), param.doc.to_owned()]);
    }
    page += &table.to_string();
    if !function.attributes.is_empty() {
        page += "\n# Attributes\n\n";
        let mut table = Table::new(&["name", "values", "meaning"], &[false, false, false]);
        for attribute in function.attributes {
            let values = if attribute.values.is_empty() { "numbers".to_owned() } else { attribute.values.join(", ") };
            table.row([attribute.name.to_owned(), values, attribute.doc.to_owned()]);
        }
        page += &table.to_string();
    }
    if !function.state.is_empty() {
        page += "\n# State\n\n";
        let mut table = Table::new(&["object", "kind", "scope", "access"], &[false; 4]);
        for state in function.state {
            let kind = state.object.text().to_owned();
            table.row([state.summary.to_owned(), kind, state.scope.text().to_owned(), state.access.text().to_owned()]);
        }
        page += &table.to_string();
    }
    page.trim_end().to_owned()
}

fn as_json(function: &Descriptor) -> serde_json::Value {
    let state = |s: &catena_state::Declaration| {
        json!({ "name": s.name, "summary": s.summary, "kind": s.object.text(), "scope": s.scope.text(), "access": s.access.text(),
                "per_flow": s.scope.is_per_flow() })
    };
    let affinity = match function.affinity {
        Affinity::None => "none",
        Affinity::Single => "single instance",
        Affinity::Scope(scope) | Affinity::Manifest { otherwise: scope, .. } => scope.text(),
    };
    json!({
        "signature": signatures().find(function.name),
        "state": function.state.iter().map(state).collect::<Vec<_>>(),
        "affinity": affinity,
    })
}
