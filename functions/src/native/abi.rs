//! The structures of `include/catena/nf.h`, member for member.

use std::ffi::{c_char, c_int, c_void};

/// The ABI version.
pub const ABI: u32 = 1;
/// The first member of a table.
pub const MAGIC: u64 = 0x464e_2d61_6e65_7461;
/// Set in a verdict that drops; the rest is the reason.
pub const DROP: u32 = 1 << 31;
/// In [`Table::flags`]: the function leaves alone what the header parser looks at.
pub const KEEPS_LAYERS: u32 = 1;
/// The same: *process* knows [`NOT_YET`].
pub const PATIENT: u32 = 2;
/// The verdict of a packet that is not done: *process* is called for it again.
pub const AGAIN: u32 = 1 << 30;

/// What operations on maps return.
pub const NO: c_int = 0;
/// The same: done.
pub const YES: c_int = 1;
/// The same: the entry comes later.
pub const NOT_YET: c_int = 2;
/// The same: refused.
pub const WRONG: c_int = -1;

/// `struct catena_packet`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Packet {
    pub data: *mut u8,
    pub len: u32,
    pub tail_room: u32,
    pub head_room: u16,
    pub in_port: u16,
    pub mark: u32,
    pub arrival: u64,
    pub l3: u8,
    pub net: u8,
    pub protocol: u8,
    pub flags: u8,
    pub l4: u16,
    pub payload: u16,
    pub verdict: u32,
    pub reserved: u32,
    pub clock: u64,
    pub reserved2: u64,
}

/// `struct catena_context`.
#[repr(C)]
pub struct Context {
    pub size: u32,
    pub gate: u32,
    pub now: u64,
    pub instance: u32,
    pub instances: u32,
    pub host: *const Host,
    pub replaces: *mut c_void,
}

/// `catena_map` and `catena_counters`: a number from 1, or 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Handle {
    /// The number.
    pub id: u32,
}

/// `catena_visitor`.
pub type Visitor = Option<unsafe extern "C" fn(*mut c_void, *const c_void, *const c_void) -> c_int>;
type Cx = *mut Context;
type Key = *const c_void;

/// `struct catena_host`.
#[repr(C)]
pub struct Host {
    pub size: u32,
    pub abi: u32,
    pub arg: unsafe extern "C" fn(Cx, *const c_char) -> *const c_char,
    pub fail: unsafe extern "C" fn(Cx, *const c_char),
    pub log_wanted: unsafe extern "C" fn(Cx, u32) -> c_int,
    pub log: unsafe extern "C" fn(Cx, u32, *const c_char),
    pub random: unsafe extern "C" fn(Cx) -> u64,
    pub resize: unsafe extern "C" fn(Cx, *mut Packet, c_int, i64) -> *mut u8,
    pub map: unsafe extern "C" fn(Cx, *const c_char, u32, u32, u32, u32, u64) -> Handle,
    pub expect: unsafe extern "C" fn(Cx, Handle, Key, usize),
    pub get: unsafe extern "C" fn(Cx, Handle, Key, usize, *mut c_void, usize) -> c_int,
    pub put: unsafe extern "C" fn(Cx, Handle, Key, usize, *const c_void, usize) -> c_int,
    pub remove: unsafe extern "C" fn(Cx, Handle, Key, usize) -> c_int,
    pub sweep: unsafe extern "C" fn(Cx, Handle, u64, Visitor, *mut c_void) -> u64,
    pub entries: unsafe extern "C" fn(Cx, Handle) -> u64,
    pub counters: unsafe extern "C" fn(Cx, *const c_char, u32, u32, u32) -> Handle,
    pub add: unsafe extern "C" fn(Cx, Handle, u32, i64),
    pub read: unsafe extern "C" fn(Cx, Handle, u32) -> i64,
}

/// What every table begins with, whatever its version.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Head {
    pub magic: u64,
    pub abi: u32,
    pub size: u32,
}

/// `struct catena_function`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Table {
    pub head: Head,
    pub context_size: u32,
    pub packet_size: u32,
    pub host_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub summary: *const c_char,
    pub reasons: *const *const c_char,
    pub init: Option<unsafe extern "C" fn(Cx, *mut *mut c_void) -> c_int>,
    pub process: Option<unsafe extern "C" fn(*mut c_void, Cx, *const *mut Packet, u32)>,
    pub tick: Option<unsafe extern "C" fn(*mut c_void, Cx)>,
    pub finish: Option<unsafe extern "C" fn(*mut c_void, Cx) -> c_int>,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub take_over: Option<unsafe extern "C" fn(*mut c_void, Cx, *mut c_void) -> c_int>,
    pub prepare: Option<unsafe extern "C" fn(*const c_void, Cx, *const *const Packet, u32)>,
}

/// Bytes of the shortest table there is: the first header's, which ends before `take_over`.
pub const FIRST_TABLE: usize = std::mem::offset_of!(Table, take_over);

// What a function built with version 1 relies on; `test/layout.c` holds the header to the same numbers.
const _: () = {
    assert!(size_of::<Packet>() == 64 && size_of::<Context>() == 40);
    assert!(size_of::<Host>() == 136 && size_of::<Table>() == 112 && FIRST_TABLE == 96);
};
