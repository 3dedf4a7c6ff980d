//! The arguments of a C function: what stands in the chain file, as text in base units.

use std::ffi::CString;

use crate::config::{ArgError, Args, Value};

/// The arguments, and which of them the function asked for.
#[derive(Debug, Default)]
pub struct Arguments {
    given: Vec<(String, CString)>,
    asked: Vec<String>,
}

impl Arguments {
    /// Read them from the record `args`.
    ///
    /// # Errors
    /// An argument that cannot be a C string.
    pub fn read(args: &Args) -> Result<Arguments, ArgError> {
        let Some(Value::Record(fields)) = args.get("args") else { return Ok(Arguments::default()) };
        let given = fields.iter().map(|(name, value)| {
            let text = text(value).ok_or_else(|| {
                ArgError::new("args", format!("`{name}`: a record within the record cannot be given to a C function"))
                    .help("give its members one by one")
            })?;
            let text = CString::new(text)
                .map_err(|_| ArgError::new("args", format!("`{name}`: a C string cannot hold the character NUL")))?;
            Ok((name.clone(), text))
        });
        Ok(Arguments { given: given.collect::<Result<_, _>>()?, asked: Vec::new() })
    }

    /// Return an argument and remember that it was asked for.
    pub fn ask(&mut self, name: &str) -> Option<&CString> {
        if !self.asked.iter().any(|asked| asked == name) {
            self.asked.push(name.to_owned());
        }
        self.given.iter().find(|(given, _)| given == name).map(|(_, text)| text)
    }

    /// Hold what was given against what was asked for.
    ///
    /// # Errors
    /// The first argument that nobody asked for.
    pub fn all_asked(&self, function: &str) -> Result<(), ArgError> {
        let Some((name, _)) = self.given.iter().find(|(name, _)| !self.asked.contains(name)) else { return Ok(()) };
        let takes = match &self.asked[..] {
            [] => "it takes none".to_owned(),
            asked => format!("it takes {}", asked.join(", ")),
        };
        Err(ArgError::new("args", format!("function `{function}` has no argument `{name}`")).help(takes))
    }
}

/// Return a value as text; `None` for records.
fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(on) => on.to_string(),
        Value::Integer(n) => n.to_string(),
        Value::Number(x) | Value::Percent(x) => x.to_string(),
        Value::Text(text) | Value::Word(text) | Value::File { text, .. } => text.clone(),
        Value::BitRate(n) | Value::PacketRate(n) | Value::Duration(n) | Value::Size(n) => n.to_string(),
        Value::Address(address) => address.to_string(),
        Value::Prefix(address, length) => format!("{address}/{length}"),
        Value::Endpoint(endpoint) => endpoint.to_string(),
        Value::AddressRange(first, last) => format!("{first}-{last}"),
        Value::Range(first, last) => format!("{first}-{last}"),
        Value::List(values) => values.iter().map(text).collect::<Option<Vec<_>>>()?.join(","),
        Value::Record(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(fields: &[(&str, Value)]) -> Result<Arguments, ArgError> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Arguments::read(&Args::default().with("args", Value::Record(fields)))
    }

    #[test]
    fn values_are_text_in_base_units() {
        let list = Value::List(vec![Value::Integer(1), Value::Prefix([10, 0, 0, 0].into(), 8)]);
        let mut args = with(&[("window", Value::Duration(1_000)), ("list", list)]).unwrap();
        assert_eq!(args.ask("window").unwrap().to_str(), Ok("1000"));
        assert_eq!(args.ask("list").unwrap().to_str(), Ok("1,10.0.0.0/8"));
        assert!(args.ask("other").is_none());
        assert_eq!(args.all_asked("f"), Ok(()));
    }

    #[test]
    fn what_nobody_asks_for_is_named() {
        let mut args = with(&[("treshold", Value::Integer(3))]).unwrap();
        args.ask("threshold");
        args.ask("window");
        let error = args.all_asked("guard").unwrap_err().to_string();
        assert_eq!(error, "`args`: function `guard` has no argument `treshold` (it takes threshold, window)");
    }

    #[test]
    fn what_is_no_c_string_is_refused() {
        assert!(with(&[("x", Value::Text("a\0b".to_owned()))]).is_err());
        assert!(with(&[("x", Value::Record(Vec::new()))]).is_err());
    }
}
