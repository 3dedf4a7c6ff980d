//! How a function declares its state: scope and access pattern (Khalid's dissertation, Table 3.12).

/// The header fields that key a state object: packets that agree in them use the same entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One entry a connection, both directions: the five-tuple.
    Connection,
    /// One entry a flow as its sender sees it: source address, source port, protocol.
    SourceEndpoint,
    /// One entry for all that goes between two addresses.
    HostPair,
    /// One entry a source address; of IPv6 one for its first 64 bits, as workers share packets out.
    Source,
    /// One entry a destination address, of IPv6 so, too.
    Destination,
    /// One entry a server, class or the like that the configuration names.
    Configured,
    /// One for all packets.
    Global,
}

impl Scope {
    /// Return whether an entry belongs to a single flow, of whatever fields that is, so that one instance can own it (CHC's *per-flow*);
    /// else it is *cross-flow*.
    pub const fn is_per_flow(self) -> bool {
        matches!(self, Scope::Connection | Scope::SourceEndpoint | Scope::HostPair)
    }

    /// Return whether all packets of an entry have one source address, that of the way out: workers share packets out by it, so one
    /// of them meets all of these.
    pub const fn is_within_source(self) -> bool {
        matches!(self, Scope::Connection | Scope::SourceEndpoint | Scope::HostPair | Scope::Source)
    }

    /// Return the scope in words.
    pub fn text(self) -> &'static str {
        match self {
            Scope::Connection => "connection",
            Scope::SourceEndpoint => "source endpoint",
            Scope::HostPair => "pair of addresses",
            Scope::Source => "source address",
            Scope::Destination => "destination address",
            Scope::Configured => "configured",
            Scope::Global => "global",
        }
    }
}

/// How often a state object is written and read (Khalid's dissertation, Table 3.5: it decides how an
/// engine that keeps state elsewhere treats the object).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Written mostly, read rarely: operations need not be waited for.
    WriteMostly,
    /// Written rarely, read mostly: a copy may be kept.
    ReadMostly,
    /// Written and read often.
    ReadWrite,
}

impl Access {
    /// Return the access pattern in the words of Table 3.12.
    pub fn text(self) -> &'static str {
        match self {
            Access::WriteMostly => "write mostly, read rarely",
            Access::ReadMostly => "write rarely, read mostly",
            Access::ReadWrite => "write/read often",
        }
    }
}

/// What kind of thing a state object is: it names the operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// [`crate::FlowMap`].
    FlowMap,
    /// [`crate::Shared`].
    Shared,
    /// [`crate::SharedMap`].
    SharedMap,
    /// [`crate::Outlet`].
    Outlet,
}

impl Object {
    /// Return the kind in words.
    pub fn text(self) -> &'static str {
        match self {
            Object::FlowMap => "flow map",
            Object::Shared => "shared object",
            Object::SharedMap => "shared map",
            Object::Outlet => "outlet",
        }
    }
}

/// One state object of a function. With the function's instance it is what the object is known by, wherever it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Name, unique within the function.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub summary: &'static str,
    /// Its kind.
    pub object: Object,
    /// Its scope.
    pub scope: Scope,
    /// Its access pattern.
    pub access: Access,
    /// Which of several that are alike, such as one for each IP family; 0 of the first or only one.
    pub part: u8,
}

impl Declaration {
    /// Declare entries that one instance owns each: it must be a flow's own.
    ///
    /// # Panics
    /// For a scope that many flows have in common, where it is a constant at compile time.
    pub const fn flow_map(name: &'static str, summary: &'static str, scope: Scope, access: Access) -> Self {
        assert!(scope.is_per_flow(), "what many flows have in common is a shared map");
        Declaration { name, summary, object: Object::FlowMap, scope, access, part: 0 }
    }

    /// Declare a shared object.
    pub const fn shared(name: &'static str, summary: &'static str, scope: Scope, access: Access) -> Self {
        Declaration { name, summary, object: Object::Shared, scope, access, part: 0 }
    }

    /// Declare shared entries.
    pub const fn shared_map(name: &'static str, summary: &'static str, scope: Scope, access: Access) -> Self {
        Declaration { name, summary, object: Object::SharedMap, scope, access, part: 0 }
    }

    /// Declare an outlet.
    pub const fn outlet(name: &'static str, summary: &'static str) -> Self {
        let (scope, access) = (Scope::Global, Access::WriteMostly);
        Declaration { name, summary, object: Object::Outlet, scope, access, part: 0 }
    }

    /// Return the declaration of one of several that are alike.
    #[must_use]
    pub const fn part(self, part: u8) -> Self {
        Declaration { part, ..self }
    }

    /// Return whether an instance of a function has but one of them: it is what its objects are told apart by.
    pub fn is_named_as(&self, other: &Declaration) -> bool {
        (self.name, self.part) == (other.name, other.part)
    }

    /// Return the declaration with another scope, as arguments may ask for.
    #[must_use]
    pub const fn scoped(self, scope: Scope) -> Self {
        Declaration { scope, ..self }
    }
}

impl std::fmt::Display for Declaration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            0 => f.write_str(self.name),
            part => write!(f, "{} ({part})", self.name),
        }
    }
}
