//! The servers of one address family, and which of them a new connection gets.

use std::net::SocketAddr;

use catena_packet::wire::Seed;
use catena_state::Key;

use super::admission::{Active, IsDown, SetUp, To};
use super::family::{Balance, Tuple, has_ports};
use super::maglev;
use super::settings::{Backend, Method, Settings, Vip};
use super::vips::Vips;

/// One server.
pub(super) struct Server<A> {
    pub(super) address: A,
    /// The port that packets get; without one they keep theirs.
    pub(super) port: Option<u16>,
    weight: u32,
    /// Its place in the configuration's list, from 0.
    pub(super) number: u16,
    up: bool,
}

/// How new connections choose.
enum Choice {
    Least,
    Hash(Box<maglev::Table>, Seed),
}

/// The servers of one family, and the addresses they stand behind.
pub(super) struct Servers<F: Balance> {
    vips: Vips<F::Address>,
    servers: Vec<Server<F::Address>>,
    /// Which server stands at a place among those that [`Admission`] counts for. A server of weight 3 has three places, each with a third of
    /// its connections: the least loaded place belongs to the server with the fewest for its weight.
    places: Vec<u16>,
    choice: Choice,
    /// Some server is down, and its connections move away.
    moving: bool,
    drain: bool,
    /// No server is up.
    none_up: bool,
}

impl<F: Balance> Servers<F> {
    pub(super) fn new(settings: &Settings) -> Self {
        let range = |vip: &Vip| {
            let (first, last) = vip.range();
            Some((F::address(first)?, F::address(last)?, vip.port))
        };
        let vips = Vips::new(settings.vips.iter().filter_map(range).collect());
        let make = |(number, backend): (u16, &Backend)| {
            let Backend { ip, port, weight } = *backend;
            Some(Server { address: F::address(ip)?, port, weight, number, up: true })
        };
        let servers: Vec<_> = (0u16..).zip(&settings.backends).filter_map(make).collect();
        let seed = Seed::from_number(settings.hash_seed);
        let (choice, places) = match settings.method {
            Method::Hash => {
                let table = settings.all_up.0[usize::from(F::IS_V6)].get_or_init(|| {
                    let mut table = maglev::Table::new(seed, servers.len());
                    table.populate(&turns::<F>(&servers));
                    table
                });
                (Choice::Hash(Box::new(table.clone()), seed), (0..servers.len() as u16).collect())
            }
            Method::Least => (Choice::Least, spread(&servers)),
        };
        Servers { vips, servers, places, choice, moving: false, drain: settings.drain, none_up: false }
    }

    fn populate(&mut self) {
        if let Choice::Hash(table, _) = &mut self.choice {
            table.populate(&turns::<F>(&self.servers));
        }
    }

    /// Return whether packets with this destination are balanced.
    pub(super) fn serves(&self, tuple: &Tuple<F::Address>) -> bool {
        self.vips.serves(tuple.dst, has_ports(tuple.proto).then_some(tuple.dport))
    }

    /// Return whether the address is one of those that are balanced, whatever the port.
    pub(super) fn serves_address(&self, address: F::Address) -> bool {
        self.vips.holds(address)
    }

    /// Return whether every server is down.
    pub(super) fn none_up(&self) -> bool {
        self.none_up
    }

    /// Return how many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Return which server a new connection gets; `None` when none is up.
    pub(super) fn choose(&self, key: &F::Key) -> Option<To> {
        match &self.choice {
            Choice::Least => Some(To::Least),
            Choice::Hash(table, seed) => table.pick(key.hash(seed)).map(|place| To::Place(place as u16)),
        }
    }

    pub(super) fn at(&self, place: u16) -> &Server<F::Address> {
        &self.servers[usize::from(self.places[usize::from(place)])]
    }

    /// Return whether the server at this place may get new connections.
    pub(super) fn is_up(&self, place: u16) -> bool {
        self.at(place).up
    }

    /// Return whether connections at this place must look for another server.
    #[inline(always)]
    pub(super) fn must_move(&self, place: u16) -> bool {
        self.moving && !self.is_up(place)
    }

    /// Begin with the servers down that this instance was told to be, as [`Admission`] knows.
    pub(super) fn begin(&mut self, instance: u16, is_down: impl Fn(IsDown) -> bool) {
        for (place, server) in (0..).zip(&self.places) {
            if is_down(IsDown { instance, is_v6: F::IS_V6, place }) {
                self.servers[usize::from(*server)].up = false;
            }
        }
        if self.servers.iter().any(|server| !server.up) {
            self.take_in();
        }
    }

    /// Say whether a server is up; `tell` is given what [`Admission`] must know of it. Returns whether it is of this family.
    pub(super) fn set_up(&mut self, (instance, number): (u16, u16), up: bool, tell: impl FnMut(SetUp)) -> bool {
        let Some(index) = self.servers.iter().position(|s| s.number == number) else { return false };
        self.servers[index].up = up;
        let places = (0u16..).zip(&self.places).filter(|(_, server)| usize::from(**server) == index);
        places.map(|(place, _)| SetUp { instance, is_v6: F::IS_V6, place, up }).for_each(tell);
        self.take_in();
        true
    }

    /// Work out what follows from who is up.
    fn take_in(&mut self) {
        self.moving = !self.drain && self.servers.iter().any(|s| !s.up);
        self.none_up = self.servers.iter().all(|s| !s.up);
        self.populate();
    }

    /// Return the servers: number, whether up, active connections.
    pub(super) fn list(&self, active: impl Fn(Active) -> i64) -> Vec<(u16, bool, i64)> {
        let mut list: Vec<_> = self.servers.iter().map(|server| (server.number, server.up, 0)).collect();
        for (place, server) in (0..).zip(&self.places) {
            list[usize::from(*server)].2 += active(Active { is_v6: F::IS_V6, place });
        }
        list
    }
}

/// Return how often each server takes its turn.
fn turns<F: Balance>(servers: &[Server<F::Address>]) -> Vec<maglev::Server> {
    let weight = |s: &Server<F::Address>| if s.up { s.weight } else { 0 };
    let endpoint = |s: &Server<F::Address>| SocketAddr::new(F::ip(s.address), s.port.unwrap_or(0));
    servers.iter().map(|s| maglev::Server { endpoint: endpoint(s), weight: weight(s) }).collect()
}

/// Give every server as many places as its weight, the first ones to each in turn.
fn spread<A>(servers: &[Server<A>]) -> Vec<u16> {
    let divisor = servers.iter().fold(0, |a, s| gcd(a, s.weight)).max(1);
    let most = servers.iter().map(|s| s.weight / divisor).max().unwrap_or(0);
    let with_more = |turn: u32| (0u16..).zip(servers).filter(move |(_, s)| s.weight / divisor > turn);
    (0..most).flat_map(|turn| with_more(turn).map(|(index, _)| index)).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use catena_state::{Look, Op};

    use super::super::active::Counts;
    use super::super::admission::Admission;
    use super::*;
    use crate::config::{Args, Value};
    use crate::family::V4;
    use catena_state::Share;

    /// Of weights 1 and 2: the second has two places.
    fn servers(method: &str) -> Servers<V4> {
        let address = |text: &str| Value::Address(text.parse().unwrap());
        let heavy = Value::Record(vec![("server".into(), address("10.0.0.2")), ("weight".into(), Value::Integer(2))]);
        let args = Args::default()
            .with("vip", address("192.0.2.10"))
            .with("backends", Value::List(vec![address("10.0.0.1"), heavy]))
            .with("drain", Value::Bool(false))
            .with("method", Value::Word(method.into()));
        Servers::new(&Settings::read(&args, Share::WHOLE).unwrap())
    }

    #[test]
    fn who_begins_on_a_used_object_knows_who_is_down() {
        for method in ["least_connections", "consistent_hash"] {
            let mut before = servers(method);
            let mut admission = Admission::new(&[9], 0, Counts::new([before.places(), 0]), Seed::from_number(1));
            for (number, up) in [(1, false), (0, false), (0, true)] {
                assert!(before.set_up((0, number), up, |news| news.apply(&mut admission)));
            }
            let key =
                V4::key(&Tuple { src: 1, dst: 2, sport: 3, dport: 4, proto: 17 }, super::super::family::Class::FORWARD);
            let state = |servers: &Servers<V4>| {
                let moves: Vec<bool> = (0..servers.places() as u16).map(|place| servers.must_move(place)).collect();
                let up: Vec<bool> = servers.list(|_| 0).into_iter().map(|(_, up, _)| up).collect();
                (up, moves, servers.none_up(), servers.choose(&key))
            };
            let mut anew = servers(method);
            anew.begin(0, |question| question.look(&admission));
            assert_eq!(state(&anew), state(&before));
            assert_eq!(state(&anew).0, [true, false], "{method}");
            assert!(before.set_up((0, 0), false, |news| news.apply(&mut admission)));
            let mut anew = servers(method);
            anew.begin(0, |question| question.look(&admission));
            assert!(anew.none_up() && state(&anew) == state(&before), "{method}");
        }
    }
}
