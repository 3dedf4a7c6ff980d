//! A server of a `rack.toml`, and its network cards.

use catena_policy::{Code, Diagnostic, Span};
use toml::Spanned;
use toml::de::DeValue;

use super::parse::{MAX_CORES, MAX_SERVERS};
use super::section::{Given, Section, read_amount, span};
use super::tunnels::{Addresses, address, behind};
use super::units::Measure;
use super::{Nic, Server, SmartNic};

/// The servers read so far, with places of what they are compared by.
#[derive(Default)]
pub struct Servers {
    /// They.
    pub servers: Vec<Server>,
    /// Where each group of equal ones begins, and how many network cards it has together.
    pub cards: Vec<(Span, usize)>,
    /// Rates of network cards.
    pub rates: Vec<Given<f64>>,
    /// Names, with their places.
    pub names: Vec<(String, Span)>,
    /// Addresses of cards.
    pub addresses: Addresses,
}

/// Read a server, or several that are equal.
pub fn server(mut section: Section<'_>, servers: &mut Servers, findings: &mut Vec<Diagnostic>) {
    let place = section.span;
    let number = servers.names.len();
    let name = section.text("name", Some(format!("server{}", number + 1)), "a name in quotes", findings);
    let count = section.count("count", 1..MAX_SERVERS + 1, Some(1), findings);
    let sockets = section.count("sockets", 1..17, Some(1), findings);
    let cores = section.count("cores", 1..MAX_CORES + 1, None, findings);
    let steering = section.count("steering_cores", 0..MAX_CORES + 1, Some(1), findings);
    let shared = section.flag("shared", false, findings);
    let clock = section.amount("clock", Measure::Clock, false, None, findings);
    let mut cards = Cards { names: Vec::new(), sockets: sockets.clone(), rates: Vec::new(), addresses: Vec::new() };
    let expected = "a list such as [\"40Gbps\"] or [{ name = \"eth0\", rate = \"40Gbps\", socket = 0 }]";
    let plain: Vec<Nic> =
        section.list("nics", expected, findings).into_iter().filter_map(|v| cards.nic(v, findings)).collect();
    let expected = "a list of { name, rate, socket, cores, clock }";
    let smart: Vec<SmartNic> = section
        .list("smart_nics", expected, findings)
        .into_iter()
        .filter_map(|value| cards.smart_nic(value, findings))
        .collect();
    if cards.names.is_empty() && section.find("nics").is_none() && section.find("smart_nics").is_none() {
        section.missing("nics", "packets come and go by at least one network card", findings);
    }
    let elsewhere = [
        ("nic", "network cards are a list: `nics = [\"40Gbps\"]`"),
        ("smart_nic", "SmartNICs are a list: `smart_nics = [{ … }]`"),
        ("cores_per_socket", "`cores` counts those of all sockets"),
    ];
    section.finish(&elsewhere, findings);
    let (Some(name), Some(count), Some(sockets), Some(cores)) = (name, count, sockets, cores) else { return };
    let (Some(steering), Some(clock)) = (steering, clock) else { return };
    judge(&sockets, &cores, &steering, place, findings);

    let one = Server {
        name: String::new(),
        sockets: sockets.value,
        cores_per_socket: cores.value / sockets.value,
        steering_cores: steering.value,
        shared,
        clock_hz: clock.value,
        nics: plain,
        smart_nics: smart,
    };
    servers.cards.push((place, count.value as usize * (one.nics.len() + one.smart_nics.len())));
    servers.rates.append(&mut cards.rates);
    let named = name.span.unwrap_or(place);
    if servers.servers.len() + count.value as usize > MAX_SERVERS as usize {
        let message = format!("a rack has at most {MAX_SERVERS} servers");
        findings.push(Diagnostic::error(Code::TooLarge, count.span.unwrap_or(place), message));
        return;
    }
    for i in 1..=count.value {
        let name = if count.span.is_none() { name.value.clone() } else { format!("{}-{i}", name.value) };
        if let Some((_, other)) = servers.names.iter().find(|(other, _)| *other == name) {
            let message = format!("two servers are called `{name}`");
            findings.push(Diagnostic::error(Code::DuplicateName, named, message).related(*other, "the other one"));
            return;
        }
        servers.names.push((name.clone(), named));
        let mut server = Server { name, ..one.clone() };
        addressed(&mut server, i - 1, &cards.addresses, &mut servers.addresses, findings);
        servers.servers.push(server);
    }
}

/// Give the cards of a server their addresses: those that the file says, or as far behind these as the server is behind the first
/// of its kind.
fn addressed(server: &mut Server, n: u32, given: &Addresses, all: &mut Addresses, findings: &mut Vec<Diagnostic>) {
    for (card, first) in given {
        let Some(address) = behind(first.value, n) else {
            let message = format!("there is no address {n} behind {}", first.value);
            findings.push(Diagnostic::error(Code::TooLarge, first.span.unwrap_or_default(), message));
            return;
        };
        server.nics.iter_mut().filter(|nic| nic.name == *card).for_each(|nic| nic.address = Some(address));
        server.smart_nics.iter_mut().filter(|nic| nic.name == *card).for_each(|nic| nic.address = Some(address));
        all.push((format!("{}.{card}", server.name), Given { value: address, span: first.span }));
    }
}

/// What the numbers of cores say of each other.
fn judge(sockets: &Given<u32>, cores: &Given<u32>, steering: &Given<u32>, place: Span, findings: &mut Vec<Diagnostic>) {
    let at = |given: &Given<u32>| given.span.unwrap_or(place);
    if !cores.value.is_multiple_of(sockets.value) {
        let message = format!("{} cores do not divide over {} sockets", cores.value, sockets.value);
        let finding = Diagnostic::error(Code::Contradiction, at(cores), message)
            .label("cores of all sockets together")
            .related(at(sockets), "sockets of the same number of cores");
        findings.push(finding);
    }
    if steering.value >= cores.value {
        let message = format!("{} of {} cores for steering leave none for functions", steering.value, cores.value);
        findings.push(match steering.span {
            Some(span) => Diagnostic::error(Code::Contradiction, span, message).related(at(cores), "all there are"),
            None => Diagnostic::error(Code::Contradiction, at(cores), message)
                .help("one core is kept for steering where the file does not say; write `steering_cores = 0`"),
        });
    }
}

/// The network cards of a server, while they are read.
struct Cards {
    names: Vec<Given<String>>,
    sockets: Option<Given<u32>>,
    rates: Vec<Given<f64>>,
    addresses: Addresses,
}

impl Cards {
    /// Note that a card has this name, socket and rate.
    fn add(
        &mut self,
        name: Given<String>,
        socket: &Given<u32>,
        rate: Given<f64>,
        place: Span,
        findings: &mut Vec<Diagnostic>,
    ) {
        if let Some(other) = self.names.iter().find(|other| other.value == name.value) {
            let message = format!("two network cards of this server are called `{}`", name.value);
            let finding = Diagnostic::error(Code::DuplicateName, name.span.unwrap_or(place), message);
            findings.push(match other.span {
                Some(span) => finding.related(span, "the other one"),
                None => finding,
            });
        }
        if let Some(sockets) = self.sockets.as_ref().filter(|sockets| socket.value >= sockets.value) {
            let there = match sockets.value {
                1 => "the only one is socket 0".to_owned(),
                n => format!("there are sockets 0 to {}", n - 1),
            };
            let message = format!("`{}` sits on socket {}: {there}", name.value, socket.value);
            let finding = Diagnostic::error(Code::Contradiction, socket.span.unwrap_or(place), message);
            findings.push(match sockets.span {
                Some(span) => finding.related(span, "the server's sockets"),
                None => finding,
            });
        }
        self.names.push(name);
        self.rates.push(rate);
    }

    /// An ordinary card: its rate alone, or a table.
    fn nic(&mut self, value: &Spanned<DeValue<'_>>, findings: &mut Vec<Diagnostic>) -> Option<Nic> {
        let place = span(value.span());
        let usual = format!("eth{}", self.names.len());
        if let DeValue::String(_) = value.get_ref() {
            let rate = read_amount(value, "nics", Measure::Rate, false, findings)?;
            let made = Nic { name: usual.clone(), socket: 0, bps: rate.value, address: None };
            self.add(Given { value: usual, span: None }, &Given { value: 0, span: None }, rate, place, findings);
            return Some(made);
        }
        let mut section = Section::new("a network card", card(value, "nics", findings)?, place);
        let (name, rate, socket) = face(&mut section, usual, findings);
        let address = address(&mut section, findings);
        section.finish(&[("cores", "only SmartNICs have cores: put it into `smart_nics`")], findings);
        let (name, rate, socket) = (name?, rate?, socket?);
        self.addresses.extend(address.map(|address| (name.value.clone(), address)));
        let made = Nic { name: name.value.clone(), socket: socket.value, bps: rate.value, address: None };
        self.add(name, &socket, rate, place, findings);
        Some(made)
    }

    fn smart_nic(&mut self, value: &Spanned<DeValue<'_>>, findings: &mut Vec<Diagnostic>) -> Option<SmartNic> {
        let place = span(value.span());
        let mut section = Section::new("a SmartNIC", card(value, "smart_nics", findings)?, place);
        let (name, rate, socket) = face(&mut section, format!("smart{}", self.names.len()), findings);
        let cores = section.count("cores", 1..4_097, None, findings);
        let clock = section.amount("clock", Measure::Clock, false, None, findings);
        let address = address(&mut section, findings);
        section.finish(&[], findings);
        let (name, rate, socket, cores, clock) = (name?, rate?, socket?, cores?, clock?);
        self.addresses.extend(address.map(|address| (name.value.clone(), address)));
        let made = SmartNic {
            name: name.value.clone(),
            socket: socket.value,
            bps: rate.value,
            cores: cores.value,
            clock_hz: clock.value,
            address: None,
        };
        self.add(name, &socket, rate, place, findings);
        Some(made)
    }
}

/// The table that a card is.
fn card<'a>(
    value: &'a Spanned<DeValue<'a>>,
    key: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<&'a toml::de::DeTable<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => {
            let message = format!("an element of `{key}` is no network card");
            let finding = Diagnostic::error(Code::WrongKind, span(value.span()), message);
            findings.push(finding.label("expected { name = \"eth0\", rate = \"40Gbps\", socket = 0 }"));
            None
        }
    }
}

/// What all cards have: name, rate and socket, as far as they are good.
type Face = (Option<Given<String>>, Option<Given<f64>>, Option<Given<u32>>);

/// Read what all cards have.
fn face(section: &mut Section<'_>, usual: String, findings: &mut Vec<Diagnostic>) -> Face {
    let name = section.text("name", Some(usual), "a name in quotes", findings);
    let rate = section.amount("rate", Measure::Rate, false, None, findings);
    let socket = section.count("socket", 0..16, Some(0), findings);
    (name, rate, socket)
}
