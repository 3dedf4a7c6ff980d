//! Interfaces of this machine: what they are called, and whether they are up.

use std::ffi::{CStr, CString};
use std::path::Path;

/// Return the name of the interface that `text` names: it may have alternative names, and is one interface all the same.
pub fn named(text: &str) -> Option<String> {
    let name = CString::new(text).ok()?;
    // SAFETY: the name ends with a zero byte and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let mut room = [0; libc::IF_NAMESIZE];
    // SAFETY: the room is as large as the call asks for. For an index of nothing, 0 as well, it returns null.
    let named = unsafe { libc::if_indextoname(index, room.as_mut_ptr()) };
    if named.is_null() {
        return None;
    }
    // SAFETY: the call has written a name there, which ends with a zero byte.
    Some(unsafe { CStr::from_ptr(named) }.to_string_lossy().into_owned())
}

/// Return whether somebody has set an interface down; where the system does not say, nobody has.
pub fn is_down(name: &str) -> bool {
    const IFF_UP: u32 = 1;
    let flags = std::fs::read_to_string(Path::new("/sys/class/net").join(name).join("flags"));
    let flags = flags.ok().and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    flags.is_some_and(|flags| flags & IFF_UP == 0)
}
