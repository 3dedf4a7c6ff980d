//! What C functions call back: each takes the instance's own part for as long as it runs, checks what it was
//! given, and never panics.
//!
//! # Safety
//! All of them are called by a function through the context it was given, during a call of one of its own, with
//! pointers that are as the header says. That much of C's word has to be believed; handles, sizes, lengths and
//! descriptors' addresses are checked.

use std::ffi::{c_char, c_int, c_void};

use std::marker::PhantomData;

use catena_state::{Engine, Tx};

use super::abi::{self, Handle};
use super::asked::{self, InHand};
use super::instance::{Own, Shared};
use super::library::bounded;
use super::state::{self, MapObject, State};

/// Most bytes of a message.
const MESSAGE: usize = 240;

/// What is said of a packet that asks for more than it may.
const TOO_MANY: &str = "expect: more than 8 keys for a packet";
const _: () = assert!(asked::MOST == 8, "the message and the header say so");

/// The functions for instances whose state is of an engine.
pub struct Calls<E>(PhantomData<E>);

impl<E: Engine> Calls<E> {
    /// The table of all.
    pub const HOST: &'static abi::Host = &abi::Host {
        size: size_of::<abi::Host>() as u32,
        abi: abi::ABI,
        arg: arg::<E>,
        fail: fail::<E>,
        log_wanted: log_wanted::<E>,
        log: log::<E>,
        random: random::<E>,
        resize: resize::<E>,
        map: map::<E>,
        expect: expect::<E>,
        get: get::<E>,
        put: put::<E>,
        remove: remove::<E>,
        sweep: sweep::<E>,
        entries: entries::<E>,
        counters: counters::<E>,
        add: add::<E>,
        read: read::<E>,
    };
}

type Cx = *mut abi::Context;

/// Return the own part of the instance whose context this is.
///
/// # Safety
/// As the module's; the reference is given up before C code runs again.
unsafe fn own<'a, E: Engine>(cx: Cx) -> &'a mut Own<E> {
    // SAFETY: a context is the first member of its `Shared`. While C code runs nobody else refers to `own`: the
    // instance lends it only between calls, and call backs do not nest but in `sweep`, which lets go of it.
    unsafe { &mut (*cx.cast::<Shared<E>>()).own }
}

/// Return the context's time.
///
/// # Safety
/// As the module's.
unsafe fn now(cx: Cx) -> u64 {
    // SAFETY: the context is valid during the call.
    unsafe { (*cx).now }
}

/// Count and tell what a function did wrong.
///
/// # Safety
/// As the module's.
#[cold]
unsafe fn mistake<E: Engine>(cx: Cx, what: &'static str) -> c_int {
    // SAFETY: as the module's.
    let (own, now) = unsafe { (own::<E>(cx), now(cx)) };
    own.mistakes += 1;
    own.log.add(0, now, what.as_bytes());
    abi::WRONG
}

unsafe extern "C" fn arg<E: Engine>(cx: Cx, name: *const c_char) -> *const c_char {
    // SAFETY: as the module's.
    let (own, name) = unsafe { (own::<E>(cx), bounded(name, MESSAGE)) };
    match name {
        Ok(name) if own.starting.is_some() => own.arguments.ask(&name).map_or(std::ptr::null(), |text| text.as_ptr()),
        _ => {
            // SAFETY: as the module's; `own` is not used any more.
            unsafe { mistake::<E>(cx, "arg: not in init, or the name is no text") };
            std::ptr::null()
        }
    }
}

unsafe extern "C" fn fail<E: Engine>(cx: Cx, text: *const c_char) {
    // SAFETY: as the module's.
    let (own, text) = unsafe { (own::<E>(cx), bounded(text, MESSAGE)) };
    if own.failure.is_none() {
        own.failure = Some(text.unwrap_or_else(|what| format!("its message is {what}")));
    }
}

unsafe extern "C" fn log_wanted<E: Engine>(cx: Cx, level: u32) -> c_int {
    // SAFETY: as the module's.
    unsafe { c_int::from(own::<E>(cx).log.wants(level, now(cx))) }
}

unsafe extern "C" fn log<E: Engine>(cx: Cx, level: u32, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: as the module's; `strnlen` reads no further than the NUL.
    unsafe {
        let text = std::slice::from_raw_parts(text.cast(), libc::strnlen(text, MESSAGE));
        own::<E>(cx).log.add(level, now(cx), text);
    }
}

unsafe extern "C" fn random<E: Engine>(cx: Cx) -> u64 {
    // SAFETY: as the module's.
    unsafe { own::<E>(cx) }.random.bits()
}

unsafe extern "C" fn resize<E: Engine>(cx: Cx, at: *mut abi::Packet, front: c_int, bytes: i64) -> *mut u8 {
    // SAFETY: as the module's.
    let (first, count) = unsafe { own::<E>(cx) }.packets;
    // SAFETY: only the address is taken.
    let descriptors = unsafe { &raw mut (*cx.cast::<Shared<E>>()).descriptors }.cast::<abi::Packet>();
    let offset = (at as usize).wrapping_sub(descriptors as usize);
    let index = offset / size_of::<abi::Packet>();
    if index >= count || !offset.is_multiple_of(size_of::<abi::Packet>()) {
        // SAFETY: as the module's.
        unsafe { mistake::<E>(cx, "grow or shrink: not a packet of this batch") };
        return std::ptr::null_mut();
    }
    // SAFETY: `index` is below the number of the batch's packets, which are with the function; nobody else refers
    // to them.
    let packet = unsafe { &mut *first.add(index) };
    if !resized(packet, front != 0, bytes) {
        return std::ptr::null_mut();
    }
    let data = packet.data_mut().as_mut_ptr();
    // SAFETY: `index` is that of a descriptor, to which no reference exists.
    unsafe {
        let at = descriptors.add(index);
        ((*at).data, (*at).len) = (data, packet.len() as u32);
        ((*at).head_room, (*at).tail_room) = (packet.head_room() as u16, packet.tail_room() as u32);
        ((*at).l3, (*at).net, (*at).protocol, (*at).flags) = (0, 0, 0, 0);
        ((*at).l4, (*at).payload) = (0, 0);
    }
    data
}

/// Grow (or shrink, by less than none) a packet at its front or back; returns whether there was room.
fn resized(packet: &mut catena_packet::Packet, front: bool, bytes: i64) -> bool {
    const ZEROS: [u8; 256] = [0; 256];
    let Ok(count) = usize::try_from(bytes.unsigned_abs()) else { return false };
    if bytes < 0 {
        return match front {
            true => packet.pull_front(count),
            false if count <= packet.len() => {
                packet.truncate(packet.len() - count);
                true
            }
            false => false,
        };
    }
    if count > if front { packet.head_room() } else { packet.tail_room() } {
        return false;
    }
    let mut left = count;
    while left > 0 {
        let zeros = &ZEROS[..left.min(ZEROS.len())];
        let done = if front { packet.push_front(zeros) } else { packet.push_back(zeros) };
        debug_assert!(done, "the room was looked at before");
        left -= zeros.len();
    }
    true
}

/// Declare a state object by what `declare` does with its name; a refusal makes *init* fail.
///
/// # Safety
/// As the module's.
unsafe fn declared<E: Engine>(
    cx: Cx,
    name: *const c_char,
    declare: impl FnOnce(&mut State<E>, &mut E, &str) -> Result<u32, String>,
) -> Handle {
    // SAFETY: as the module's.
    let (own, name) = unsafe { (own::<E>(cx), bounded(name, state::NAME)) };
    let Some(mut engine) = own.starting else {
        // SAFETY: as the module's; `own` is not used any more.
        unsafe { mistake::<E>(cx, "state objects are declared in init") };
        return Handle { id: 0 };
    };
    // SAFETY: while the instance starts the engine is lent to it, and to nobody else.
    let engine = unsafe { engine.as_mut() };
    let name = name.map_err(|what| format!("a state object has {what} as its name"));
    match name.and_then(|name| declare(&mut own.state, engine, &name)) {
        Ok(id) => Handle { id },
        Err(why) => {
            own.failure.get_or_insert(why);
            Handle { id: 0 }
        }
    }
}

unsafe extern "C" fn map<E: Engine>(
    cx: Cx,
    name: *const c_char,
    scope: u32,
    access: u32,
    key_size: u32,
    value_size: u32,
    capacity: u64,
) -> Handle {
    let sizes = [key_size, value_size];
    // SAFETY: as the module's.
    unsafe { declared::<E>(cx, name, |state, engine, name| state.map(engine, name, [scope, access], sizes, capacity)) }
}

unsafe extern "C" fn counters<E: Engine>(cx: Cx, name: *const c_char, scope: u32, access: u32, count: u32) -> Handle {
    // SAFETY: as the module's.
    unsafe { declared::<E>(cx, name, |state, engine, name| state.counters(engine, name, [scope, access], count)) }
}

/// Return the object of a map's handle, and the packet in hand.
///
/// # Safety
/// As [`own`]'s.
#[inline(always)]
unsafe fn object<'a, E: Engine>(cx: Cx, map: Handle) -> Option<(&'a mut MapObject<E>, &'a mut InHand<E>)> {
    // SAFETY: as the caller's.
    let State { maps, packet, .. } = &mut unsafe { own::<E>(cx) }.state;
    Some((maps.get_mut((map.id as usize).wrapping_sub(1))?, packet))
}

/// Find a map and take a key as bytes, both held against the declaration.
macro_rules! map_and_key {
    ($cx:ident, $map:ident, $key:ident, $key_size:ident, $value_size:expr, $call:literal) => {{
        // SAFETY: as the module's.
        let object = unsafe { object::<E>($cx, $map) };
        match object.filter(|(o, _)| o.key_size == $key_size && $value_size.is_none_or(|size| size == o.value_size)) {
            Some((MapObject { map: Some(map), .. }, packet)) if !$key.is_null() => {
                // SAFETY: the key points at `key_size` bytes, as the header says.
                let key = unsafe { std::slice::from_raw_parts($key.cast::<u8>(), $key_size) };
                if E::WAITS && !map.is_usable(packet, key) {
                    // SAFETY: as the module's.
                    return unsafe { not_yet::<E>($cx, $map, key, concat!($call, ": a key that was not expected")) };
                }
                (map, packet, key)
            }
            _ => {
                let what = concat!($call, ": no such map, or one being swept, or wrong sizes");
                // SAFETY: as the module's.
                return unsafe { mistake::<E>($cx, what) };
            }
        }
    }};
}

unsafe extern "C" fn expect<E: Engine>(cx: Cx, map: Handle, key: *const c_void, key_size: usize) {
    // SAFETY: as the module's.
    let Some((MapObject { map: Some(map), key_size: size, .. }, packet)) = (unsafe { object::<E>(cx, map) }) else {
        return;
    };
    if key_size != *size || key.is_null() {
        return;
    }
    // SAFETY: the key points at `key_size` bytes, as the header says.
    let key = unsafe { std::slice::from_raw_parts(key.cast(), key_size) };
    if !map.expect(packet, key) {
        // SAFETY: as the module's.
        unsafe { mistake::<E>(cx, TOO_MANY) };
    }
}

/// Answer a call for a key that may not be used in this step: a patient function gets it later, for the packet that it
/// works on.
///
/// # Safety
/// As the module's.
#[cold]
unsafe fn not_yet<E: Engine>(cx: Cx, map: Handle, key: &[u8], what: &'static str) -> c_int {
    // SAFETY: as the module's.
    let works = unsafe { own::<E>(cx) }.packets.1 > 0;
    // SAFETY: as the module's.
    let object = unsafe { object::<E>(cx, map) }.filter(|(_, packet)| works && packet.is_patient);
    let Some((MapObject { map: Some(map), .. }, packet)) = object else {
        // SAFETY: as the module's.
        return unsafe { mistake::<E>(cx, what) };
    };
    match map.expect(packet, key) {
        true => abi::NOT_YET,
        // SAFETY: as the module's.
        false => unsafe { mistake::<E>(cx, TOO_MANY) },
    }
}

unsafe extern "C" fn get<E: Engine>(
    cx: Cx,
    map: Handle,
    key: *const c_void,
    key_size: usize,
    value: *mut c_void,
    value_size: usize,
) -> c_int {
    let (map, packet, key) = map_and_key!(cx, map, key, key_size, Some(value_size), "get");
    match map.get(packet, key) {
        None => abi::NO,
        // SAFETY: as the module's.
        Some(_) if value.is_null() => unsafe { mistake::<E>(cx, "get: a null pointer for the value") },
        Some(found) => {
            // SAFETY: the value points at `value_size` writable bytes, as the header says; the entry has as many, and
            // is ours.
            unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), value.cast(), value_size) };
            abi::YES
        }
    }
}

unsafe extern "C" fn put<E: Engine>(
    cx: Cx,
    map: Handle,
    key: *const c_void,
    key_size: usize,
    value: *const c_void,
    value_size: usize,
) -> c_int {
    let (map, packet, key) = map_and_key!(cx, map, key, key_size, Some(value_size), "put");
    if value.is_null() {
        // SAFETY: as the module's.
        return unsafe { mistake::<E>(cx, "put: a null pointer for the value") };
    }
    // SAFETY: the value points at `value_size` bytes, as the header says.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), value_size) };
    map.put(packet, key, value).map_or(abi::NO, |()| abi::YES)
}

unsafe extern "C" fn remove<E: Engine>(cx: Cx, map: Handle, key: *const c_void, key_size: usize) -> c_int {
    let (map, packet, key) = map_and_key!(cx, map, key, key_size, None::<usize>, "remove");
    c_int::from(map.remove(packet, key))
}

unsafe extern "C" fn sweep<E: Engine>(
    cx: Cx,
    handle: Handle,
    count: u64,
    visitor: abi::Visitor,
    argument: *mut c_void,
) -> u64 {
    // SAFETY: as the module's.
    if E::WAITS && unsafe { own::<E>(cx) }.state.prepares {
        // SAFETY: as the module's.
        unsafe { mistake::<E>(cx, "sweep: in prepare") };
        return 0;
    }
    // The map is taken out while the visitor runs: should it use the same map, it finds none.
    // SAFETY: as the module's; the reference ends with the statement.
    let taken = visitor.and_then(|visitor| Some((visitor, unsafe { object::<E>(cx, handle) }?.0.map.take()?)));
    let Some((visitor, mut map)) = taken else {
        // SAFETY: as the module's.
        unsafe { mistake::<E>(cx, "sweep: no such map, or no visitor") };
        return 0;
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // So are the operations in hand, which are lent to the visitor each time.
    let mut tx = Tx::new(0, 0, 0);
    // SAFETY: as the module's; the reference ends with the statement.
    let swap = |tx: &mut Tx| std::mem::swap(tx, unsafe { &mut own::<E>(cx).state.packet.tx });
    swap(&mut tx);
    let looked = map.sweep(&mut tx, count, &mut |tx, key, value| {
        swap(tx);
        // SAFETY: the visitor is called as the header says; nothing of `own` is referred to meanwhile.
        let goes = unsafe { visitor(argument, key.as_ptr().cast(), value.as_ptr().cast()) != 0 };
        swap(tx);
        goes
    });
    swap(&mut tx);
    // SAFETY: as the module's.
    if let Some((object, _)) = unsafe { object::<E>(cx, handle) } {
        object.map = Some(map);
    }
    looked as u64
}

unsafe extern "C" fn entries<E: Engine>(cx: Cx, map: Handle) -> u64 {
    // SAFETY: as the module's.
    let map = unsafe { object::<E>(cx, map) }.and_then(|(object, _)| object.map.as_ref());
    map.map_or(0, |map| map.len() as u64)
}

unsafe extern "C" fn add<E: Engine>(cx: Cx, counters: Handle, index: u32, n: i64) {
    // SAFETY: as the module's.
    let state = unsafe { &mut own::<E>(cx).state };
    let wrong = match E::WAITS && state.prepares {
        true => "add: in prepare",
        false if state.add(counters.id, index, n) => return,
        false => "add: no such counter",
    };
    // SAFETY: as the module's; `state` is not used any more.
    unsafe { mistake::<E>(cx, wrong) };
}

unsafe extern "C" fn read<E: Engine>(cx: Cx, counters: Handle, index: u32) -> i64 {
    // SAFETY: as the module's.
    unsafe { own::<E>(cx) }.state.read(counters.id, index).unwrap_or_else(|| {
        // SAFETY: as the module's.
        i64::from(unsafe { mistake::<E>(cx, "read: no such counter") })
    })
}
