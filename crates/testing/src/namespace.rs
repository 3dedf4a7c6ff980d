//! Network namespaces for tests: made under names of their own, removed whatever happens.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use crate::skip;

/// Two hosts, `a` and `b`, joined only by what a test runs in the middle: `a`'s interface `eth0` ends there
/// in `a0`, `b`'s in `b0`.
pub struct Testbed {
    prefix: String,
}

/// The namespaces of a testbed.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The host `a`.
    A,
    /// The host `b`.
    B,
    /// Where the test joins the two.
    Middle,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::A => "a",
            Place::B => "b",
            Place::Middle => "m",
        }
    }
}

impl Testbed {
    /// Make a testbed; `None`, with a message, where that is not possible.
    pub fn new() -> Option<Testbed> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            skip("network namespaces need root", "run the tests as root");
            return None;
        }
        let prefix = format!("catena-t-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let bed = Testbed { prefix };
        for place in [Place::A, Place::B, Place::Middle] {
            if let Err(error) = run("ip", &["netns", "add", &bed.name(place)]) {
                skip(&format!("no network namespace: {error}"), "install iproute2, or allow namespaces");
                return None;
            }
        }
        bed.ip(Place::Middle, "link set lo up");
        for (place, middle, number) in [(Place::A, "a0", 1), (Place::B, "b0", 2)] {
            let peer = bed.name(place);
            bed.ip(Place::Middle, &format!("link add {middle} mtu 9000 type veth peer eth0 mtu 9000 netns {peer}"));
            bed.exec(Place::Middle, &format!("echo 1 > /proc/sys/net/ipv6/conf/{middle}/disable_ipv6"));
            bed.exec(place, "echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad");
            bed.ip(place, &format!("addr add 10.77.0.{number}/24 dev eth0"));
            bed.ip(place, &format!("addr add fd77::{number}/64 dev eth0 nodad"));
            bed.ip(place, "link set lo up");
            bed.ip(place, "link set eth0 mtu 1500 up");
            bed.ip(Place::Middle, &format!("link set {middle} mtu 1500 up"));
        }
        Some(bed)
    }

    fn name(&self, place: Place) -> String {
        format!("{}-{}", self.prefix, place.name())
    }

    /// Run `ip` with these words in a namespace.
    pub fn ip(&self, place: Place, words: &str) {
        let name = self.name(place);
        let words: Vec<_> = ["-n", &name].into_iter().chain(words.split(' ')).collect();
        run("ip", &words).unwrap();
    }

    /// Run a line of shell in a namespace, and return what it prints.
    pub fn exec(&self, place: Place, line: &str) -> String {
        run("ip", &["netns", "exec", &self.name(place), "sh", "-c", line]).unwrap()
    }

    /// Start `work` on a thread of its own in a namespace.
    pub fn spawn<R: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let path = format!("/var/run/netns/{}", self.name(place));
        thread::spawn(move || {
            let file = File::open(path).unwrap();
            // SAFETY: the descriptor is open; the call moves this thread alone.
            assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work()
        })
    }

    /// Do `work` in a namespace.
    pub fn within<R: Send + 'static>(&self, place: Place, work: impl FnOnce() -> R + Send + 'static) -> R {
        self.spawn(place, work).join().unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for place in [Place::A, Place::B, Place::Middle] {
            let _ = run("ip", &["netns", "del", &self.name(place)]);
        }
    }
}

/// Whether a program can be run here; says so if not.
pub fn has(program: &str) -> bool {
    let found = run("sh", &["-c", &format!("command -v {program}")]).is_ok();
    if !found {
        skip(&format!("{program} is not installed"), &format!("install {program}"));
    }
    found
}

fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)))
    }
}
