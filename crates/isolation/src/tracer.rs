//! The BPF program on its tracepoints, and the accounts in its maps.
//!
//! Nothing is pinned: programs, links and maps belong to this process, and the kernel removes them when it ends, however it ends.

use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, Pod};

use crate::alive::Alive;
use crate::charge::{Account, Accounts, Charge, Totals};
use crate::missing::{Missing, Tracepoint, capabilities, chain};
use crate::outside::{self, Outside};

/// The program; empty where it could not be built.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/account.bpf.o"));
/// Why not.
const PROBLEM: &str = env!("ACCOUNT_PROBLEM");

/// In the order of attaching: until the first one is there nothing is counted.
static TRACEPOINTS: [Tracepoint; 16] = [
    Tracepoint { name: "softirq_exit", programs: &["softirq_exit"], since: "2.6.31", without: None },
    Tracepoint {
        name: "kfree_skb",
        programs: &["dropped", "dropped_for", "dropped_somewhere"],
        since: "2.6.30",
        without: Some("drops are not counted"),
    },
    Tracepoint {
        name: "sk_data_ready",
        programs: &["data_ready"],
        since: "6.3",
        without: Some("only TCP's packets and their drops are charged to cgroups"),
    },
    Tracepoint {
        name: "tcp_probe",
        programs: &["tcp_segment"],
        since: "4.16",
        without: Some("TCP's segments without data are of no socket"),
    },
    Tracepoint {
        name: "napi_poll",
        programs: &["napi_poll"],
        since: "2.6.30",
        without: Some("the end of a poll is charged to its last packet"),
    },
    Tracepoint {
        name: "napi_gro_receive_entry",
        programs: &["gro_receive"],
        since: "3.14",
        without: Some("a driver's work is charged to the packet before"),
    },
    Tracepoint {
        name: "net_dev_start_xmit",
        programs: &["transmit"],
        since: "3.14",
        without: Some("transmit softirqs are charged to nobody"),
    },
    Tracepoint {
        name: "netif_receive_skb",
        programs: &["receive"],
        since: "2.6.37",
        without: Some("packets are not counted, and fixed costs not shared"),
    },
    // What is raised is known before an interrupt ends, and an end before a begin.
    Tracepoint { name: "softirq_raise", programs: &["raise"], since: "2.6.37", without: INTERRUPTS },
    Tracepoint { name: "irq_handler_exit", programs: &["device_exit"], since: "2.6.31", without: INTERRUPTS },
    Tracepoint { name: "irq_handler_entry", programs: &["device_entry"], since: "2.6.31", without: INTERRUPTS },
    Tracepoint { name: "local_timer_exit", programs: &["timer_exit"], since: "3.12 on x86", without: INTERRUPTS },
    Tracepoint { name: "local_timer_entry", programs: &["timer_entry"], since: "3.12 on x86", without: INTERRUPTS },
    Tracepoint {
        name: "call_function_single_exit",
        programs: &["call_exit"],
        since: "3.12 on x86",
        without: INTERRUPTS,
    },
    Tracepoint {
        name: "call_function_single_entry",
        programs: &["call_entry"],
        since: "3.12 on x86",
        without: INTERRUPTS,
    },
    Tracepoint { name: "softirq_entry", programs: &["softirq_entry"], since: "2.6.31", without: None },
];

const INTERRUPTS: Option<&str> = Some("hard interrupts are part of what they interrupt");

// SAFETY: plain numbers without padding, in C's layout.
unsafe impl Pod for Charge {}
// SAFETY: as above.
unsafe impl Pod for Totals {}

/// What the program is told.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Settings {
    timer_ns: u64,
    message_ns: u64,
    /// Whether there are accounts of devices.
    devices: u64,
}

// SAFETY: as above.
unsafe impl Pod for Settings {}

impl Settings {
    fn new(outside: Option<Outside>, devices: u64) -> Settings {
        let (timer_ns, message_ns) = outside.map_or((0, 0), |outside| (outside.timer_ns, outside.message_ns));
        Settings { timer_ns, message_ns, devices }
    }
}

/// Charges softirqs as long as it lives.
pub struct Tracer {
    charges: PerCpuHashMap<MapData, u64, Charge>,
    totals: PerCpuArray<MapData, Totals>,
    missing: Vec<Missing>,
    outside: Option<Outside>,
    settings: Array<MapData, Settings>,
    /// Accounts of devices, by the inode of the network namespace and the number there.
    devices: HashMap<MapData, [u32; 2], u64>,
    alive: Option<Alive>,
    // With the programs and links.
    loaded: Ebpf,
}

impl Tracer {
    /// Load the program and attach it to the tracepoints that there are.
    ///
    /// # Errors
    /// What is missing, where nothing can be measured.
    pub fn start() -> Result<Tracer, Missing> {
        if OBJECT.is_empty() {
            return Err(Missing::Program(PROBLEM));
        }
        let lacking = capabilities(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        if !lacking.is_empty() {
            return Err(Missing::Capabilities(lacking));
        }
        let btf = Btf::from_sys_fs().map_err(|error| Missing::Btf(chain(&error)))?;
        let mut loaded = Ebpf::load(OBJECT).map_err(|error| Missing::Refused(chain(&error)))?;
        let mut take = |name| loaded.take_map(name).ok_or_else(|| Missing::Map(format!("there is no map `{name}`")));
        let (charges, totals) = (take("charges")?, take("totals")?);
        let (settings, devices) = (take("settings")?, take("devices")?);
        let mut charges = PerCpuHashMap::try_from(charges).map_err(unreadable)?;
        let totals = PerCpuArray::try_from(totals).map_err(unreadable)?;
        let cpus = aya::util::nr_cpus().map_err(|(path, error)| Missing::Map(format!("{path}: {error}")))?;
        // The account of what has no room must have some.
        let none = PerCpuValues::try_from(vec![Charge::default(); cpus]).map_err(|error| unreadable(error.into()))?;
        charges.insert(Account::NoRoom.key(), none, 0).map_err(unreadable)?;
        // Before others run in interrupts.
        let outside = outside::measure(&mut loaded, &btf);
        let mut settings = Array::try_from(settings).map_err(unreadable)?;
        settings.set(0, Settings::new(outside, 0), 0).map_err(unreadable)?;
        let devices = HashMap::try_from(devices).map_err(unreadable)?;
        let mut missing = Vec::from_iter(outside.is_none().then_some(Missing::Outside));
        for tracepoint in &TRACEPOINTS {
            if let Err(what) = attach(&mut loaded, &btf, tracepoint) {
                if tracepoint.without.is_none() {
                    return Err(what);
                }
                missing.push(what);
            }
        }
        Ok(Tracer { charges, totals, missing, outside, settings, devices, alive: Alive::new(), loaded })
    }

    /// Return what is not measured here, and why.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Return what a hard interrupt takes before its handler begins and after it ends, as it was measured at the start; `None`
    /// where that could not be measured. Accounts have it.
    pub fn outside(&self) -> Option<Outside> {
        self.outside
    }

    /// Return the ids of the programs that the kernel runs for this tracer.
    pub fn programs(&self) -> Vec<u32> {
        let infos = self.loaded.programs().filter_map(|(_, program)| program.info().ok());
        infos.map(|info| info.id()).collect()
    }

    /// Read all accounts, as they have grown since the start.
    ///
    /// # Errors
    /// When the kernel does not let the maps be read.
    pub fn accounts(&self) -> Result<Accounts, Missing> {
        let mut accounts = Accounts::default();
        for entry in self.charges.iter() {
            let (key, charges) = entry.map_err(unreadable)?;
            accounts.add(Account::from_key(key), &Charge::sum(charges.iter().copied()));
        }
        for totals in self.totals.get(&0, 0).map_err(unreadable)?.iter() {
            accounts.add_totals(totals);
        }
        Ok(accounts)
    }
}

impl Tracer {
    /// Charge polls of a device of which no packet is seen to a cgroup, or to nobody again. A device is known by the inode of its
    /// network namespace and its number there.
    ///
    /// # Errors
    /// When the kernel refuses that.
    pub(crate) fn charge_device(&mut self, device: (u32, u32), cgroup: Option<u64>) -> Result<(), Missing> {
        let key: [u32; 2] = device.into();
        match cgroup {
            Some(id) => self.devices.insert(key, id, 0).map_err(unreadable)?,
            // It may not be there.
            None => _ = self.devices.remove(&key),
        }
        let devices = u64::from(self.devices.keys().next().is_some());
        self.settings.set(0, Settings::new(self.outside, devices), 0).map_err(unreadable)
    }
}

/// Accounts of which more may be of cgroups that are gone.
const MANY: usize = 1024;

impl Tracer {
    /// Close the accounts of cgroups that are gone, so that the map has room for others, where there are many: of those that
    /// were not charged between two readings.
    pub fn forget(&mut self, now: &Accounts, before: &Accounts) {
        let Some(alive) = self.alive.as_ref().filter(|_| now.charges.len() > MANY) else { return };
        for (account, charge) in &now.charges {
            let Account::Cgroup(id) = account else { continue };
            if before.charges.get(account) == Some(charge) && alive.is_gone(*id) {
                // It is there, for only this removes any; where the kernel refuses all the same, it is asked again.
                _ = self.charges.remove(&account.key());
            }
        }
    }
}

fn attach(loaded: &mut Ebpf, btf: &Btf, tracepoint: &'static Tracepoint) -> Result<(), Missing> {
    let mut refused = Missing::Tracepoint(tracepoint);
    for name in tracepoint.programs {
        let program =
            loaded.program_mut(name).ok_or_else(|| Missing::Refused(format!("there is no program `{name}`")))?;
        let program: &mut BtfTracePoint =
            program.try_into().map_err(|error: ProgramError| Missing::Refused(chain(&error)))?;
        match program.load(tracepoint.name, btf).and_then(|()| program.attach()) {
            Ok(_) => return Ok(()),
            // The kernel's types do not have the tracepoint.
            Err(ProgramError::Btf(_)) => {}
            Err(error) => refused = Missing::Refused(format!("{name}: {}", chain(&error))),
        }
    }
    Err(refused)
}

fn unreadable(error: MapError) -> Missing {
    Missing::Map(chain(&error))
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod layout;

#[cfg(test)]
mod tests {
    use catena_testing::skip;

    use super::*;

    static LACKING: Tracepoint =
        Tracepoint { name: "no_such_event", programs: &["receive"], since: "9.9", without: Some("nothing is lost") };
    static UNKNOWN: Tracepoint =
        Tracepoint { name: "kfree_skb", programs: &["no_such_program"], since: "1.0", without: None };
    static OLDER: [Tracepoint; 2] = [
        Tracepoint { name: "kfree_skb", programs: &["dropped_for"], since: "1.0", without: None },
        Tracepoint { name: "kfree_skb", programs: &["dropped_somewhere"], since: "1.0", without: None },
    ];

    #[test]
    fn a_tracepoint_that_is_not_there_is_named_and_older_ones_have_their_program() {
        if let Err(missing) = Tracer::start() {
            return skip(&format!("no accounts: {missing}"), "use a kernel and rights that allow it");
        }
        let (btf, mut loaded) = (Btf::from_sys_fs().unwrap(), Ebpf::load(OBJECT).unwrap());
        let said = attach(&mut loaded, &btf, &LACKING).unwrap_err().to_string();
        assert_eq!(said, "this kernel has no tracepoint `no_such_event` (Linux 9.9 or newer has it): nothing is lost");
        let said = attach(&mut loaded, &btf, &UNKNOWN).unwrap_err().to_string();
        assert!(said.ends_with("there is no program `no_such_program`"), "{said}");
        OLDER.iter().for_each(|older| attach(&mut loaded, &btf, older).unwrap());
    }
}
