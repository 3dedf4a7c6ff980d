//! Who is let in: one shared object that knows how many connections there are, at which servers, and who has how many
//! datagrams in fragments. To see room and to take it is one operation.

use catena_packet::wire::Seed;
use catena_state::{Look, Op, Plain, Stored, operations};

use crate::shares::Shares;

use super::active::Counts;

/// Let a connection in: it takes room in the table, and counts as active at its server.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Admit {
    /// Whether its server is one of IPv6.
    pub(super) is_v6: bool,
    /// Which server it gets.
    pub(super) to: To,
    /// The instance whose connection it is.
    pub(super) instance: u16,
    /// One that leaves the table for it: nobody else gets its room.
    pub(super) instead: Option<Release>,
}

/// Which server a new connection gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub(super) enum To {
    /// The least loaded one that is up.
    Least,
    /// The one at this place, which was chosen outside, if it is up.
    Place(u16),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub(super) enum Admitted {
    /// It is let in, to the server at this place.
    To(u16),
    /// The instance has as many connections as it may have.
    Full,
    /// So it has, and fewer than at the start: its room has gone elsewhere.
    Lacking,
    /// No server is up, or not the one that was chosen.
    NoneUp,
}

/// A connection leaves the table.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Release {
    pub(super) is_v6: bool,
    /// Where it counts as active, if it still does.
    pub(super) place: Option<u16>,
    pub(super) instance: u16,
}

/// A connection goes over to another instance, or comes from one, and its room with it.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct GoOver {
    pub(super) instance: u16,
    pub(super) comes: bool,
}

/// A datagram whose later fragments are awaited comes from another instance: it has room, whether there is some or not.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct BringFragments {
    pub(super) sender: [u64; 2],
}

/// Room that connections have left behind comes from others (1), or goes to them: where each instance has its own object.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct AddSpare {
    pub(super) n: i32,
}

/// A connection that stays in the table ends (-1), or lives again (1); or so many of other instances' began and ended, where each
/// has its own object.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct AddActive {
    pub(super) is_v6: bool,
    pub(super) place: u16,
    pub(super) n: i64,
}

/// An instance was told that the server at this place is up, or down.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct SetUp {
    pub(super) instance: u16,
    pub(super) is_v6: bool,
    pub(super) place: u16,
    pub(super) up: bool,
}

/// Take room for the later fragments of a datagram. Answers whether there was some.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct AdmitFragments {
    /// Whose share it is: a [`super::family::Balance::sender`].
    pub(super) sender: [u64; 2],
    /// Whether a server has answered its client: all others together get no more than half of the room.
    pub(super) is_answered: bool,
}

/// Give that room back.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct ReleaseFragments {
    pub(super) sender: [u64; 2],
}

/// How many connections are in the table or about to be, and how many datagrams have room for their fragments?
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Inside;

/// How many connections are active at the server at this place?
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Active {
    pub(super) is_v6: bool,
    pub(super) place: u16,
}

/// For how many connections is there room that others may have?
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Spare;

/// Was this instance told that the server at this place is down? For one that is made anew: it goes on with what it had been told, whatever
/// others were told meanwhile, for its packets that are processed again must hear the same.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct IsDown {
    pub(super) instance: u16,
    pub(super) is_v6: bool,
    pub(super) place: u16,
}

operations!("connections by instance": Admission {
    0 => Admit,
    1 => Release,
    2 => AddActive,
    3 => SetUp,
    4 => AdmitFragments,
    5 => ReleaseFragments,
    6 => GoOver,
    10 => BringFragments,
    11 => AddSpare,
} looks {
    7 => Inside,
    8 => Active,
    9 => IsDown,
    12 => Spare,
});

/// An instance's part of the room.
#[derive(Stored)]
struct Part {
    most: usize,
    /// The most at the start.
    own: usize,
    connections: usize,
    /// Which servers it was told to be down, by [`server`].
    down: Vec<u32>,
}

/// Return the number of the server at a place.
fn server(is_v6: bool, place: u16) -> u32 {
    u32::from(is_v6) << 16 | u32::from(place)
}

/// The value of the object.
#[derive(Stored)]
pub(super) struct Admission {
    /// By instance: each has its part of the room, so that a flood which meets one leaves the others theirs.
    parts: Box<[Part]>,
    /// Active connections by place, of IPv4 and of IPv6: of all instances, of others as of the last time that they were heard of.
    active: Counts,
    fragmented: usize,
    most_fragmented: usize,
    shares: Shares,
    /// Room that connections have left behind which had gone over with it.
    spare: u32,
}

impl Admission {
    /// Nobody is in. Instances may have `most` connections, by instance, to servers at so many `places` of IPv4 and of IPv6.
    pub(super) fn new(most: &[usize], most_fragmented: usize, active: Counts, seed: Seed) -> Self {
        let shares = Shares::new(seed, most_fragmented);
        let parts =
            most.iter().map(|most| Part { most: *most, own: *most, connections: 0, down: Vec::new() }).collect();
        Admission { parts, active, fragmented: 0, most_fragmented, shares, spare: 0 }
    }
}

impl Op<Admission> for Admit {
    type Reply = Admitted;

    #[inline]
    fn apply(self, admission: &mut Admission) -> Admitted {
        if let Some(release) = self.instead {
            release.apply(admission);
        }
        let Admission { parts, active, spare, .. } = admission;
        let Some(part) = parts.get_mut(usize::from(self.instance)) else { return Admitted::Full };
        if part.connections >= part.most {
            if part.most >= part.own {
                return Admitted::Full;
            }
            let Some(left) = spare.checked_sub(1) else { return Admitted::Lacking };
            *spare = left;
            part.most += 1;
        }
        let active = active.of_mut(self.is_v6);
        let place = match self.to {
            To::Place(place) => Some(usize::from(place)).filter(|place| active.is_up(*place)),
            To::Least => active.least(),
        };
        let Some(place) = place else { return Admitted::NoneUp };
        active.add(place, 1);
        part.connections += 1;
        Admitted::To(place as u16)
    }
}

impl Op<Admission> for Release {
    type Reply = ();

    #[inline]
    fn apply(self, admission: &mut Admission) {
        if let Some(part) = admission.parts.get_mut(usize::from(self.instance)) {
            debug_assert!(part.connections > 0, "only who was let in leaves");
            part.connections = part.connections.saturating_sub(1);
            if part.most > part.own {
                part.most -= 1;
                admission.spare += 1;
            }
        }
        if let Some(place) = self.place {
            admission.active.of_mut(self.is_v6).add(place.into(), -1);
        }
    }
}

impl Op<Admission> for GoOver {
    type Reply = ();

    fn apply(self, admission: &mut Admission) {
        let Some(part) = admission.parts.get_mut(usize::from(self.instance)) else { return };
        for number in [&mut part.connections, &mut part.most] {
            *number = if self.comes { *number + 1 } else { number.saturating_sub(1) };
        }
    }
}

impl Op<Admission> for BringFragments {
    type Reply = ();

    fn apply(self, admission: &mut Admission) {
        admission.fragmented += 1;
        admission.shares.bring(admission.shares.group(self.sender));
    }
}

impl Op<Admission> for AddSpare {
    type Reply = ();

    fn apply(self, admission: &mut Admission) {
        admission.spare = admission.spare.saturating_add_signed(self.n);
    }
}

impl Op<Admission> for AddActive {
    type Reply = ();

    #[inline]
    fn apply(self, admission: &mut Admission) {
        admission.active.of_mut(self.is_v6).add(self.place.into(), self.n);
    }
}

impl Op<Admission> for SetUp {
    type Reply = ();

    fn apply(self, admission: &mut Admission) {
        admission.active.of_mut(self.is_v6).set_up(self.place.into(), self.up);
        let Some(part) = admission.parts.get_mut(usize::from(self.instance)) else { return };
        let server = server(self.is_v6, self.place);
        part.down.retain(|down| *down != server);
        if !self.up {
            part.down.push(server);
        }
    }
}

impl Op<Admission> for AdmitFragments {
    type Reply = bool;

    fn apply(self, admission: &mut Admission) -> bool {
        let whole = admission.most_fragmented;
        let most = if self.is_answered { whole } else { whole / 2 };
        let group = admission.shares.group(self.sender);
        let takes = admission.fragmented < most && admission.shares.take(group);
        if takes {
            admission.fragmented += 1;
        }
        takes
    }
}

impl Op<Admission> for ReleaseFragments {
    type Reply = ();

    fn apply(self, admission: &mut Admission) {
        admission.fragmented = admission.fragmented.saturating_sub(1);
        admission.shares.give(admission.shares.group(self.sender));
    }
}

impl Look<Admission> for Inside {
    type Reply = (u64, u64);

    fn look(self, admission: &Admission) -> (u64, u64) {
        (admission.parts.iter().map(|part| part.connections).sum::<usize>() as u64, admission.fragmented as u64)
    }
}

impl Look<Admission> for Active {
    type Reply = i64;

    fn look(self, admission: &Admission) -> i64 {
        admission.active.of(self.is_v6).load(usize::from(self.place))
    }
}

impl Look<Admission> for Spare {
    type Reply = u32;

    #[inline]
    fn look(self, admission: &Admission) -> u32 {
        admission.spare
    }
}

impl Look<Admission> for IsDown {
    type Reply = bool;

    fn look(self, admission: &Admission) -> bool {
        let part = admission.parts.get(usize::from(self.instance));
        part.is_some_and(|part| part.down.contains(&server(self.is_v6, self.place)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::balancer::MOST_FRAGMENTED;
    use super::*;
    use proptest::prelude::*;

    const MOST: usize = 5;

    proptest! {
        /// A connection is let in if and only if there is room and a server for it, and then to the least loaded one that is up.
        #[test]
        fn connections_are_let_in_by_the_rules(
            steps in prop::collection::vec((0u8..6, any::<bool>(), 0u16..3, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut admission = Admission::new(&[MOST], MOST_FRAGMENTED, Counts::new([3, 3]), Seed::from_number(1));
            let mut up = [[true; 3]; 2];
            // Who is in, and whether active.
            let mut inside: Vec<(bool, u16, bool)> = Vec::new();
            for (action, is_v6, place, which) in steps {
                let up = &mut up[usize::from(is_v6)];
                let active = |inside: &[(bool, u16, bool)], place| {
                    inside.iter().filter(|of| **of == (is_v6, place, true)).count()
                };
                match action {
                    0..3 => {
                        let to = if action == 0 { To::Place(place) } else { To::Least };
                        let least = (0..3).filter(|place| up[usize::from(*place)]).min_by_key(|n| active(&inside, *n));
                        let expected = match (to, least) {
                            _ if inside.len() == MOST => Admitted::Full,
                            (To::Place(place), _) if up[usize::from(place)] => Admitted::To(place),
                            (To::Place(_), _) => Admitted::NoneUp,
                            (To::Least, Some(least)) => Admitted::To(least),
                            (To::Least, None) => Admitted::NoneUp,
                        };
                        prop_assert_eq!(Admit { is_v6, to, instance: 0, instead: None }.apply(&mut admission), expected);
                        if let Admitted::To(place) = expected {
                            inside.push((is_v6, place, true));
                        }
                    }
                    3 => {
                        up[usize::from(place)] = !up[usize::from(place)];
                        SetUp { instance: 0, is_v6, place, up: up[usize::from(place)] }.apply(&mut admission);
                    }
                    _ if inside.is_empty() => {}
                    4 => {
                        let which = which.index(inside.len());
                        let (is_v6, place, active) = &mut inside[which];
                        *active = !*active;
                        AddActive { is_v6: *is_v6, place: *place, n: if *active { 1 } else { -1 } }.apply(&mut admission);
                    }
                    _ => {
                        let (is_v6, place, active) = inside.swap_remove(which.index(inside.len()));
                        Release { is_v6, place: active.then_some(place), instance: 0 }.apply(&mut admission);
                    }
                }
                prop_assert_eq!(Inside.look(&admission), (inside.len() as u64, 0));
                for place in 0..3 {
                    prop_assert_eq!(Active { is_v6, place }.look(&admission), active(&inside, place) as i64);
                    prop_assert_eq!(IsDown { instance: 0, is_v6, place }.look(&admission), !up[usize::from(place)]);
                }
            }
        }
    }

    /// It is down for all that choose then, but who is made anew hears what it was told itself.
    #[test]
    fn each_instance_knows_what_it_was_told() {
        let mut admission = Admission::new(&[4, 4], MOST_FRAGMENTED, Counts::new([2, 0]), Seed::from_number(1));
        let told = |admission: &Admission| {
            [0, 1].map(|instance| [0, 1].map(|place| IsDown { instance, is_v6: false, place }.look(admission)))
        };
        SetUp { instance: 0, is_v6: false, place: 1, up: false }.apply(&mut admission);
        assert_eq!(told(&admission), [[false, true], [false, false]]);
        let least = Admit { is_v6: false, to: To::Least, instance: 1, instead: None };
        assert_eq!([least, least].map(|admit| admit.apply(&mut admission)), [Admitted::To(0); 2]);
        SetUp { instance: 1, is_v6: false, place: 1, up: false }.apply(&mut admission);
        SetUp { instance: 0, is_v6: false, place: 1, up: true }.apply(&mut admission);
        assert_eq!(told(&admission), [[false, false], [false, true]]);
    }

    #[test]
    fn unanswered_clients_share_half_of_the_room_for_fragments() {
        let mut admission = Admission::new(&[MOST], MOST_FRAGMENTED, Counts::new([1, 0]), Seed::from_number(1));
        let mut admit =
            |client: u64, is_answered| AdmitFragments { sender: [client, 4], is_answered }.apply(&mut admission);
        let mut senders = (0..4000).filter(|client| admit(*client, false)).collect::<Vec<_>>();
        assert_eq!(senders.len(), MOST_FRAGMENTED / 2);
        assert!(admit(5000, true) && !admit(5001, false));
        senders.push(5000);
        for client in senders {
            ReleaseFragments { sender: [client, 4] }.apply(&mut admission);
        }
        assert_eq!(Inside.look(&admission), (0, 0));
        let mut admit = |is_answered| AdmitFragments { sender: [1, 4], is_answered }.apply(&mut admission);
        assert_eq!((0..4000).filter(|_| admit(true)).count(), 128, "the share of one client");
    }
}
