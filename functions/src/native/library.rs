//! Loads a shared object and checks its table: what lies about itself is named here, before it runs.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::abi::{self, Head, Table};
use super::state::{self, lasting};
use crate::config::ArgError;

/// Most bytes of a summary or of a drop reason.
const LINE: usize = 199;
/// Most drop reasons of a function: the dataplane has 128 numbers for a module's own.
const REASONS: usize = 100;

/// A function's table, checked and copied; the library stays loaded as long as the process runs, as nobody can
/// know what it has left behind (threads, exit handlers).
#[derive(Clone, Copy)]
pub struct Loaded {
    /// The table; `process` is there.
    pub table: Table,
    /// The function's name.
    pub name: &'static str,
    /// The names of its drop reasons.
    pub reasons: &'static [&'static str],
}

/// Load the function whose table is `symbol` of the shared object at `path`, relative to the working directory.
///
/// # Errors
/// What is wrong with the file or the table, and what to try.
pub fn load(path: &str, symbol: &str) -> Result<Loaded, ArgError> {
    let absolute = readable(path)?;
    load_from(path, &absolute, symbol)
}

/// Load what stands at a path now, although another library may have been loaded from there before.
///
/// # Errors
/// Those of [`load`], and when there is no memory for a copy.
pub fn load_anew(path: &str, symbol: &str) -> Result<Loaded, ArgError> {
    let failed = |error: std::io::Error| ArgError::new("lib", format!("{path} cannot be copied: {error}"));
    let bytes = std::fs::read(readable(path)?).map_err(failed)?;
    // The dynamic linker knows libraries by their names: what is loaded a second time needs another one. The
    // file stays open as long as the library is loaded, so that no later one gets its name.
    // SAFETY: the name is a C string; the call has no other conditions.
    let made = unsafe { libc::memfd_create(c"catena".as_ptr(), libc::MFD_CLOEXEC) };
    if made < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: fresh, and nobody else's.
    let mut copy = unsafe { File::from_raw_fd(made) };
    copy.write_all(&bytes).map_err(failed)?;
    let loaded = load_from(path, Path::new(&format!("/proc/self/fd/{made}")), symbol)?;
    std::mem::forget(copy);
    Ok(loaded)
}

fn load_from(path: &str, file: &Path, symbol: &str) -> Result<Loaded, ArgError> {
    // SAFETY: this runs the library's constructors. That it does nothing harmful is the promise of whoever wrote
    // its name into the chain file, as Native's manual says.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| refused(path, &error.to_string()))?;
    // SAFETY: the symbol's type is only taken for "the address of something", which any symbol has.
    let address = unsafe { library.get::<*const Head>(symbol.as_bytes()) }.map(|found| found.as_raw_ptr());
    let address = address.ok().map(|address| address.cast_const().cast::<Head>()).filter(|address| !address.is_null());
    let Some(address) = address else {
        return Err(ArgError::new("lib", format!("{path} has no symbol `{symbol}`"))
            .help(format!("define the function with CATENA_NF({symbol}, ...), or say its symbol by `name`")));
    };
    std::mem::forget(library);
    // SAFETY: the address of a symbol of a library that stays loaded; that at least a table's head stands there
    // is believed for any symbol of the name that only tables have.
    let head = unsafe { address.read_unaligned() };
    check_head(path, symbol, head)?;
    let mut table = MaybeUninit::<Table>::zeroed();
    let there = (head.size as usize).min(size_of::<Table>());
    // SAFETY: the magic number and the version say that a table of `size` bytes stands there. What an earlier header
    // did not have stays zero, which is a value of every member: none.
    let table = unsafe {
        std::ptr::copy_nonoverlapping(address.cast::<u8>(), table.as_mut_ptr().cast::<u8>(), there);
        table.assume_init()
    };
    check(path, symbol, table)
}

/// Return the absolute path of a file that begins like a shared object.
fn readable(path: &str) -> Result<PathBuf, ArgError> {
    let here = || match std::env::current_dir() {
        Ok(folder) => format!("relative paths begin at the working directory, {}; is it built?", folder.display()),
        Err(_) => "relative paths begin at the working directory, which cannot be found".to_owned(),
    };
    let absolute = std::path::absolute(path).map_err(|error| ArgError::new("lib", format!("`{path}`: {error}")))?;
    let mut start = [0; 4];
    match File::open(&absolute).and_then(|file| if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ArgError::new("lib", format!("there is no file {path}")).help(here()))
        }
        Err(error) => Err(ArgError::new("lib", format!("{path} cannot be read: {error}")).help(here())),
        Ok(mut file) => match file.read_exact(&mut start) {
            Ok(()) if start == *b"\x7fELF" => Ok(absolute),
            _ => Err(refused(path, "it does not begin like one")),
        },
    }
}

fn no_file() -> std::io::Error {
    std::io::Error::other("it is not a regular file")
}

fn refused(path: &str, why: &str) -> ArgError {
    let source = Path::new(path).with_extension("c");
    ArgError::new("lib", format!("{path} is not a shared object that can be loaded: {why}"))
        .help(format!("build it by `cc -O2 -shared -fPIC -Iinclude -o {path} {}`", source.display()))
}

fn check_head(path: &str, symbol: &str, head: Head) -> Result<(), ArgError> {
    let error = |message: String| ArgError::new("lib", message);
    if head.magic != abi::MAGIC {
        return Err(error(format!("{path}: symbol `{symbol}` is not a function's table"))
            .help(format!("define it with CATENA_NF({symbol}, ...) of include/catena/nf.h")));
    }
    if head.abi != abi::ABI {
        let (has, wanted) = (head.abi, abi::ABI);
        return Err(error(format!("{path}: `{symbol}` was built for ABI version {has}, wanted is version {wanted}"))
            .help("build it again with the include/catena/nf.h of this Catena"));
    }
    if (head.size as usize) < abi::FIRST_TABLE {
        let (has, wanted) = (head.size, abi::FIRST_TABLE);
        return Err(error(format!("{path}: the table `{symbol}` says it has {has} bytes, a table has {wanted}"))
            .help(format!("define it with CATENA_NF({symbol}, ...), which fills the sizes in")));
    }
    Ok(())
}

fn check(path: &str, symbol: &str, table: Table) -> Result<Loaded, ArgError> {
    let error = |message: &str| ArgError::new("lib", format!("{path}: the table `{symbol}` {message}"));
    let sizes = [
        ("a function", table.head.size, size_of::<Table>()),
        ("a context", table.context_size, size_of::<abi::Context>()),
        ("a packet", table.packet_size, size_of::<abi::Packet>()),
        ("the host", table.host_size, size_of::<abi::Host>()),
    ];
    for (what, size, ours) in sizes {
        if size as usize > ours {
            let why = format!("was built with a later header: {what} has {size} bytes there, {ours} here");
            let help = "build it with the include/catena/nf.h of this Catena, or use a later Catena";
            return Err(error(&why).help(help));
        }
    }
    let text = |what: &str, text: *const c_char, most: usize| {
        // SAFETY: a table's texts end with NUL, as the header demands.
        match unsafe { bounded(text, most) } {
            Ok(text) if !text.is_empty() => Ok(lasting(&text)),
            Ok(_) => Err(error(&format!("has an empty {what}"))),
            Err(why) => Err(error(&format!("has {why} as its {what}"))),
        }
    };
    let name = text("name", table.name, state::NAME)?;
    text("summary", table.summary, LINE)?;
    if table.process.is_none() {
        return Err(error("has a null pointer as its process"));
    }
    let mut reasons = vec![];
    if !table.reasons.is_null() {
        loop {
            // SAFETY: the list ends with NULL, as the header demands, and we have not seen it yet.
            let reason = unsafe { *table.reasons.add(reasons.len()) };
            if reason.is_null() {
                break;
            }
            if reasons.len() == REASONS {
                let why = format!("has more than {REASONS} drop reasons, or no NULL after the last");
                return Err(error(&why));
            }
            reasons.push(text("drop reason", reason, LINE)?);
        }
    }
    Ok(Loaded { table, name, reasons: lasting_reasons(reasons) })
}

/// Return a function's reasons, with those that Native itself has behind them, for ever: kept once for all
/// instances there ever are.
fn lasting_reasons(mut reasons: Vec<&'static str>) -> &'static [&'static str] {
    static LISTS: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    reasons.extend(super::OWN_REASONS);
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lists.get(&reasons[..]) {
        return known;
    }
    let list: &'static [&'static str] = reasons.leak();
    lists.insert(list);
    list
}

/// Read a C string of at most `most` bytes.
///
/// # Errors
/// What it is instead.
///
/// # Safety
/// `text` is null, or ends with NUL or has at least `most` + 1 readable bytes.
pub unsafe fn bounded(text: *const c_char, most: usize) -> Result<String, String> {
    if text.is_null() {
        return Err("a null pointer".to_owned());
    }
    // SAFETY: the caller's promise; no byte after the first NUL is read.
    if unsafe { libc::strnlen(text, most + 1) } > most {
        return Err(format!("a text of more than {most} bytes"));
    }
    // SAFETY: a NUL stands within `most` + 1 bytes.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(str::to_owned).map_err(|_| "a text that is not UTF-8".to_owned())
}
