//! The servers of one address family, and which of them a new connection gets.

use std::net::SocketAddr;

use catena_packet::wire::Seed;
use catena_state::{Engine, Key, Ranking};

use super::family::{Family, Tuple, has_ports};
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

/// The servers of one family, the addresses they stand behind, and their active connections.
pub(super) struct Servers<E: Engine, F: Family> {
    vips: Vips<F::Address>,
    servers: Vec<Server<F::Address>>,
    /// Which server stands at a place of the ranking. A server of weight 3 has three places, each with a third of
    /// its connections: the least loaded place belongs to the server with the fewest for its weight.
    places: Vec<u16>,
    ranking: E::Ranking,
    choice: Choice,
    /// Some server is down, and its connections move away.
    moving: bool,
    drain: bool,
    /// No server is up.
    none_up: bool,
}

/// How the server for a new connection is found.
pub(super) enum Chosen<Ticket> {
    /// It is known.
    Place(usize),
    /// The ranking is asked.
    Ask(Ticket),
    /// None is up.
    None,
}

type Ticket<E> = <<E as Engine>::Ranking as Ranking>::Ticket;

impl<E: Engine, F: Family> Servers<E, F> {
    pub(super) fn new(engine: &mut E, settings: &Settings) -> Self {
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
                let table = maglev::Table::new(seed, servers.len());
                (Choice::Hash(Box::new(table), seed), (0..servers.len() as u16).collect())
            }
            Method::Least => (Choice::Least, spread(&servers)),
        };
        let ranking = engine.ranking("connections", places.len());
        let mut servers =
            Servers { vips, servers, places, ranking, choice, moving: false, drain: settings.drain, none_up: false };
        servers.populate();
        servers
    }

    fn populate(&mut self) {
        let Choice::Hash(table, _) = &mut self.choice else { return };
        let weight = |s: &Server<F::Address>| if s.up { s.weight } else { 0 };
        let endpoint = |s: &Server<F::Address>| SocketAddr::new(F::ip(s.address), s.port.unwrap_or(0));
        let list: Vec<_> =
            self.servers.iter().map(|s| maglev::Server { endpoint: endpoint(s), weight: weight(s) }).collect();
        table.populate(&list);
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

    /// Choose the server of a new connection, which then counts as active there.
    pub(super) fn choose(&mut self, tx: E::Tx, key: &F::Key) -> Chosen<Ticket<E>> {
        match &self.choice {
            Choice::Least => Chosen::Ask(self.ranking.want_least(tx)),
            Choice::Hash(table, seed) => match table.pick(key.hash(seed)) {
                Some(place) => {
                    self.ranking.add(tx, place, 1);
                    Chosen::Place(place)
                }
                None => Chosen::None,
            },
        }
    }

    /// Return the place that was asked for.
    pub(super) fn chosen(&mut self, tx: E::Tx, ticket: Ticket<E>) -> Option<usize> {
        self.ranking.least(tx, ticket)
    }

    pub(super) fn at(&self, place: usize) -> &Server<F::Address> {
        &self.servers[usize::from(self.places[place])]
    }

    /// Take a connection off the count of its server.
    pub(super) fn release(&mut self, tx: E::Tx, place: u16) {
        self.ranking.add(tx, usize::from(place), -1);
    }

    /// Put a connection on the count of its server again.
    pub(super) fn retain(&mut self, tx: E::Tx, place: u16) {
        self.ranking.add(tx, usize::from(place), 1);
    }

    /// Return whether the server at this place may get new connections.
    pub(super) fn is_up(&self, place: u16) -> bool {
        self.at(usize::from(place)).up
    }

    /// Return whether connections at this place must look for another server.
    #[inline(always)]
    pub(super) fn must_move(&self, place: u16) -> bool {
        self.moving && !self.is_up(place)
    }

    /// Say whether a server is up. Returns whether it is of this family.
    pub(super) fn set_up(&mut self, number: u16, up: bool) -> bool {
        let Some(index) = self.servers.iter().position(|s| s.number == number) else { return false };
        self.servers[index].up = up;
        for (place, server) in self.places.iter().enumerate() {
            if usize::from(*server) == index {
                self.ranking.set_up(place, up);
            }
        }
        self.moving = !self.drain && self.servers.iter().any(|s| !s.up);
        self.none_up = self.servers.iter().all(|s| !s.up);
        self.populate();
        true
    }

    /// Go through the servers: number, whether up, active connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, bool, i64)> + '_ {
        self.servers.iter().enumerate().map(|(index, server)| {
            let places = self.places.iter().enumerate().filter(move |(_, s)| usize::from(**s) == index);
            (server.number, server.up, places.map(|(place, _)| self.ranking.load(place)).sum())
        })
    }
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
