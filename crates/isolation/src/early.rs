//! Early drop: what a cgroup's quota cannot pay for is dropped by XDP at its device, before the stack has it.
//!
//! Khalid's dissertation, section 2.2.2: a throttled container's packets are not polled, and "Iron can also drop packets before a
//! container is throttled". Its hardware does that at no cost; a program that drops costs a little, which the cgroup is charged.

use std::fmt;
use std::io;

use aya::Ebpf;
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use aya::programs::{ProgramError, Xdp, XdpMode};

use crate::device::{Device, DeviceError, Means};
use crate::intake::Intake;
use crate::missing::chain;

/// The program; empty where it could not be built, which the accounts' own says first.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drop.bpf.o"));
/// Programs, of which the first is taken that the kernel accepts.
const PROGRAMS: [&str; 2] = ["drop_any", "drop_short"];

/// Why a device's packets cannot be dropped early.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum EarlyError {
    /// No such device or namespace.
    Device(DeviceError),
    /// The kernel takes no program, or not at this device; what it says.
    Refused { device: String, what: String },
    /// The device has an XDP program already.
    Taken { device: String },
}

impl fmt::Display for EarlyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = Means::EarlyDrop.option();
        match self {
            EarlyError::Device(error) => error.fmt(f),
            EarlyError::Refused { device, what } => write!(
                f,
                "{option} {device}: the kernel takes no XDP program there: {what}; a veth needs `mtu` of its peer below a page, or Linux \
                 5.18"
            ),
            EarlyError::Taken { device } => write!(
                f,
                "{option} {device}: the device has an XDP program already: take it away with `ip link set {device} xdp off`, or use --napi"
            ),
        }
    }
}

impl std::error::Error for EarlyError {}

/// Where packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By the driver.
    Driver,
    /// After it, where it has no place for that: the driver's work is done by then.
    Stack,
}

/// A device whose packets are dropped when there are too many.
pub(crate) struct EarlyDrop {
    device: Device,
    number: u32,
    left: Array<MapData, i64>,
    dropped: PerCpuArray<MapData, u64>,
    dropped_before: u64,
    intake: Intake,
    /// What was written last.
    allowed: i64,
    place: Place,
    // With the program and its link, which go with it.
    _loaded: Ebpf,
}

impl EarlyDrop {
    /// Attach the program. All packets pass until the first step.
    pub(crate) fn start(name: &str) -> Result<EarlyDrop, EarlyError> {
        let no_device = |error| {
            EarlyError::Device(DeviceError { option: Means::EarlyDrop.option(), device: name.to_owned(), error })
        };
        let refused = |what: String| EarlyError::Refused { device: name.to_owned(), what };
        let device = Device::find(name).map_err(no_device)?;
        let number = device.number().map_err(no_device)?;
        let mut loaded = Ebpf::load(OBJECT).map_err(|error| refused(chain(&error)))?;
        let mut map = |name| loaded.take_map(name).ok_or_else(|| refused(format!("there is no map `{name}`")));
        let (left, dropped) = (map("left")?, map("dropped")?);
        let unusable = |error: MapError| refused(chain(&error));
        let mut left = Array::try_from(left).map_err(unusable)?;
        let dropped = PerCpuArray::try_from(dropped).map_err(unusable)?;
        left.set(0, i64::MAX, 0).map_err(unusable)?;
        let mut said = String::new();
        let mut place = None;
        'programs: for program in PROGRAMS {
            for (mode, at) in [(XdpMode::Driver, Place::Driver), (XdpMode::Skb, Place::Stack)] {
                match attach(&mut loaded, program, &device, number, mode) {
                    Ok(()) => {
                        place = Some(at);
                        break 'programs;
                    }
                    Err(error) if is_taken(&error) => return Err(EarlyError::Taken { device: name.to_owned() }),
                    Err(error) => said = chain(&error),
                }
            }
        }
        let place = place.ok_or_else(|| refused(said))?;
        let (intake, allowed, dropped_before) = (Intake::default(), i64::MAX, 0);
        Ok(EarlyDrop { device, number, left, dropped, dropped_before, intake, allowed, place, _loaded: loaded })
    }

    /// Return the inode of the device's network namespace, and its number there.
    pub(crate) fn key(&self) -> Option<(u32, u32)> {
        // The kernel has 32 bits for the former.
        Some((u32::try_from(self.device.namespace_inode()?).ok()?, self.number))
    }

    /// Return the device's name.
    pub(crate) fn name(&self) -> String {
        self.device.to_string()
    }

    /// Return where packets are dropped.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Take in a step: what network work cost the cgroup, and what it may cost until the next one, in ns. Returns how many packets were
    /// dropped.
    pub(crate) fn step(&mut self, cost_ns: u64, may_ns: u64) -> io::Result<u64> {
        let failed = |error: MapError| io::Error::other(chain(&error));
        let left = self.left.get(&0, 0).map_err(failed)?;
        let dropped: u64 = self.dropped.get(&0, 0).map_err(failed)?.iter().sum();
        let now = dropped - std::mem::replace(&mut self.dropped_before, dropped);
        let passed = (self.allowed - left.max(0)).max(0).unsigned_abs();
        self.allowed = i64::try_from(self.intake.step(passed, now, cost_ns, may_ns)).unwrap_or(i64::MAX);
        self.left.set(0, self.allowed, 0).map_err(failed)?;
        Ok(now)
    }
}

/// Load a program, and attach it in the device's network namespace.
fn attach(loaded: &mut Ebpf, program: &str, device: &Device, number: u32, mode: XdpMode) -> Result<(), ProgramError> {
    let program: &mut Xdp = loaded.program_mut(program).ok_or(ProgramError::NotLoaded)?.try_into()?;
    if program.fd().is_err() {
        program.load()?;
    }
    let attached = device.within(|_| Ok(program.attach_to_if_index(number, mode).map(drop)));
    attached.map_err(ProgramError::IOError)?
}

/// Return whether another program is there.
fn is_taken(error: &ProgramError) -> bool {
    let ProgramError::SyscallError(error) = error else { return false };
    matches!(error.io_error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}
