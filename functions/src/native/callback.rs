//! What C functions call back: each takes the instance's own part for as long as it runs, checks what it was
//! given, and never panics.
//!
//! # Safety
//! All of them are called by a function through the context it was given, during a call of one of its own, with
//! pointers that are as the header says. That much of C's word has to be believed; handles, sizes, lengths and
//! descriptors' addresses are checked.

use std::ffi::{c_char, c_int, c_void};

use super::abi::{self, Handle};
use super::instance::{Own, Shared};
use super::library::bounded;
use super::state::{self, MapObject};

/// Most bytes of a message.
const MESSAGE: usize = 240;

/// The table of all.
pub static HOST: abi::Host = abi::Host {
    size: size_of::<abi::Host>() as u32,
    abi: abi::ABI,
    arg,
    fail,
    log_wanted,
    log,
    random,
    resize,
    map,
    expect,
    get,
    put,
    remove,
    sweep,
    entries,
    counters,
    add,
    read,
};

type Cx = *mut abi::Context;

/// Return the own part of the instance whose context this is.
///
/// # Safety
/// As the module's; the reference is given up before C code runs again.
unsafe fn own<'a>(cx: Cx) -> &'a mut Own {
    // SAFETY: a context is the first member of its `Shared`. While C code runs nobody else refers to `own`: the
    // instance lends it only between calls, and call backs do not nest but in `sweep`, which lets go of it.
    unsafe { &mut (*cx.cast::<Shared>()).own }
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
unsafe fn mistake(cx: Cx, what: &'static str) -> c_int {
    // SAFETY: as the module's.
    let (own, now) = unsafe { (own(cx), now(cx)) };
    own.mistakes += 1;
    own.log.add(0, now, what.as_bytes());
    abi::WRONG
}

unsafe extern "C" fn arg(cx: Cx, name: *const c_char) -> *const c_char {
    // SAFETY: as the module's.
    let (own, name) = unsafe { (own(cx), bounded(name, MESSAGE)) };
    match name {
        Ok(name) if own.starting => own.arguments.ask(&name).map_or(std::ptr::null(), |text| text.as_ptr()),
        _ => {
            // SAFETY: as the module's; `own` is not used any more.
            unsafe { mistake(cx, "arg: not in init, or the name is no text") };
            std::ptr::null()
        }
    }
}

unsafe extern "C" fn fail(cx: Cx, text: *const c_char) {
    // SAFETY: as the module's.
    let (own, text) = unsafe { (own(cx), bounded(text, MESSAGE)) };
    if own.failure.is_none() {
        own.failure = Some(text.unwrap_or_else(|what| format!("its message is {what}")));
    }
}

unsafe extern "C" fn log_wanted(cx: Cx, level: u32) -> c_int {
    // SAFETY: as the module's.
    unsafe { c_int::from(own(cx).log.wants(level, now(cx))) }
}

unsafe extern "C" fn log(cx: Cx, level: u32, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: as the module's; `strnlen` reads no further than the NUL.
    unsafe {
        let text = std::slice::from_raw_parts(text.cast(), libc::strnlen(text, MESSAGE));
        own(cx).log.add(level, now(cx), text);
    }
}

unsafe extern "C" fn random(cx: Cx) -> u64 {
    // SAFETY: as the module's.
    unsafe { own(cx) }.random.bits()
}

unsafe extern "C" fn resize(cx: Cx, at: *mut abi::Packet, front: c_int, bytes: i64) -> *mut u8 {
    // SAFETY: as the module's.
    let (first, count) = unsafe { own(cx) }.packets;
    // SAFETY: only the address is taken.
    let descriptors = unsafe { &raw mut (*cx.cast::<Shared>()).descriptors }.cast::<abi::Packet>();
    let offset = (at as usize).wrapping_sub(descriptors as usize);
    let index = offset / size_of::<abi::Packet>();
    if index >= count || !offset.is_multiple_of(size_of::<abi::Packet>()) {
        // SAFETY: as the module's.
        unsafe { mistake(cx, "grow or shrink: not a packet of this batch") };
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
unsafe fn declared(
    cx: Cx,
    name: *const c_char,
    declare: impl FnOnce(&mut state::State, &str) -> Result<u32, String>,
) -> Handle {
    // SAFETY: as the module's.
    let (own, name) = unsafe { (own(cx), bounded(name, state::NAME)) };
    if !own.starting {
        // SAFETY: as the module's; `own` is not used any more.
        unsafe { mistake(cx, "state objects are declared in init") };
        return Handle { id: 0 };
    }
    let name = name.map_err(|what| format!("a state object has {what} as its name"));
    match name.and_then(|name| declare(&mut own.state, &name)) {
        Ok(id) => Handle { id },
        Err(why) => {
            own.failure.get_or_insert(why);
            Handle { id: 0 }
        }
    }
}

unsafe extern "C" fn map(
    cx: Cx,
    name: *const c_char,
    scope: u32,
    access: u32,
    key_size: u32,
    value_size: u32,
    capacity: u64,
) -> Handle {
    // SAFETY: as the module's.
    unsafe { declared(cx, name, |state, name| state.map(name, scope, access, [key_size, value_size], capacity)) }
}

unsafe extern "C" fn counters(cx: Cx, name: *const c_char, scope: u32, access: u32, count: u32) -> Handle {
    // SAFETY: as the module's.
    unsafe { declared(cx, name, |state, name| state.counters(name, scope, access, count)) }
}

/// Return the object of a map's handle.
///
/// # Safety
/// As [`own`]'s.
#[inline(always)]
unsafe fn object<'a>(cx: Cx, map: Handle) -> Option<&'a mut MapObject> {
    // SAFETY: as the caller's.
    unsafe { own(cx) }.state.maps.get_mut((map.id as usize).wrapping_sub(1))
}

/// Find a map and take a key as bytes, both held against the declaration.
macro_rules! map_and_key {
    ($cx:ident, $map:ident, $key:ident, $key_size:ident, $value_size:expr, $what:literal) => {{
        // SAFETY: as the module's.
        let object = unsafe { object($cx, $map) };
        match object.filter(|o| o.key_size == $key_size && $value_size.is_none_or(|size| size == o.value_size)) {
            Some(MapObject { map: Some(map), .. }) if !$key.is_null() => {
                // SAFETY: the key points at `key_size` bytes, as the header says.
                (map, unsafe { std::slice::from_raw_parts($key.cast::<u8>(), $key_size) })
            }
            // SAFETY: as the module's.
            _ => return unsafe { mistake($cx, $what) },
        }
    }};
}

unsafe extern "C" fn expect(cx: Cx, map: Handle, key: *const c_void, key_size: usize) {
    // SAFETY: as the module's.
    let Some(MapObject { map: Some(map), key_size: size, .. }) = (unsafe { object(cx, map) }) else { return };
    if key_size == *size && !key.is_null() {
        // SAFETY: the key points at `key_size` bytes, as the header says.
        map.expect(unsafe { std::slice::from_raw_parts(key.cast(), key_size) });
    }
}

unsafe extern "C" fn get(
    cx: Cx,
    map: Handle,
    key: *const c_void,
    key_size: usize,
    value: *mut c_void,
    value_size: usize,
) -> c_int {
    let (map, key) =
        map_and_key!(cx, map, key, key_size, Some(value_size), "get: no such map, or one being swept, or wrong sizes");
    match map.get(key) {
        None => abi::NO,
        // SAFETY: as the module's.
        Some(_) if value.is_null() => unsafe { mistake(cx, "get: a null pointer for the value") },
        Some(found) => {
            // SAFETY: the value points at `value_size` writable bytes, as the header says; the entry has as many, and
            // is ours.
            unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), value.cast(), value_size) };
            abi::YES
        }
    }
}

unsafe extern "C" fn put(
    cx: Cx,
    map: Handle,
    key: *const c_void,
    key_size: usize,
    value: *const c_void,
    value_size: usize,
) -> c_int {
    let (map, key) =
        map_and_key!(cx, map, key, key_size, Some(value_size), "put: no such map, or one being swept, or wrong sizes");
    if value.is_null() {
        // SAFETY: as the module's.
        return unsafe { mistake(cx, "put: a null pointer for the value") };
    }
    // SAFETY: the value points at `value_size` bytes, as the header says.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), value_size) };
    map.put(key, value).map_or(abi::NO, |()| abi::YES)
}

unsafe extern "C" fn remove(cx: Cx, map: Handle, key: *const c_void, key_size: usize) -> c_int {
    let (map, key) =
        map_and_key!(cx, map, key, key_size, None::<usize>, "remove: no such map, or one being swept, or a wrong size");
    c_int::from(map.remove(key))
}

unsafe extern "C" fn sweep(cx: Cx, handle: Handle, count: u64, visitor: abi::Visitor, argument: *mut c_void) -> u64 {
    // The map is taken out while the visitor runs: should it use the same map, it finds none.
    // SAFETY: as the module's; the reference ends with the statement.
    let taken = visitor.and_then(|visitor| Some((visitor, unsafe { object(cx, handle) }?.map.take()?)));
    let Some((visitor, mut map)) = taken else {
        // SAFETY: as the module's.
        unsafe { mistake(cx, "sweep: no such map, or no visitor") };
        return 0;
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let looked = map.sweep(count, &mut |key, value| {
        // SAFETY: the visitor is called as the header says; nothing of `own` is referred to meanwhile.
        unsafe { visitor(argument, key.as_ptr().cast(), value.as_ptr().cast()) != 0 }
    });
    // SAFETY: as the module's.
    if let Some(object) = unsafe { object(cx, handle) } {
        object.map = Some(map);
    }
    looked as u64
}

unsafe extern "C" fn entries(cx: Cx, map: Handle) -> u64 {
    // SAFETY: as the module's.
    let map = unsafe { object(cx, map) }.and_then(|object| object.map.as_ref());
    map.map_or(0, |map| map.len() as u64)
}

unsafe extern "C" fn add(cx: Cx, counters: Handle, index: u32, n: i64) {
    // SAFETY: as the module's.
    if !unsafe { own(cx) }.state.add(counters.id, index, n) {
        // SAFETY: as the module's.
        unsafe { mistake(cx, "add: no such counter") };
    }
}

unsafe extern "C" fn read(cx: Cx, counters: Handle, index: u32) -> i64 {
    // SAFETY: as the module's.
    unsafe { own(cx) }.state.read(counters.id, index).unwrap_or_else(|| {
        // SAFETY: as the module's.
        i64::from(unsafe { mistake(cx, "read: no such counter") })
    })
}
