//! Debian's `dpdk-testpmd` as a yardstick: how busy is this machine just now?

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catena_dataplane::clock;

/// How long it runs before and while it is watched.
const WARM_UP: Duration = Duration::from_millis(1500);
const WATCH: Duration = Duration::from_millis(2500);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Return the cycles per packet that testpmd needs between two net_null ports on one core, by the on-CPU time of
/// its forwarding thread; `None` where it is not installed or does not run.
pub fn cycles(core: usize) -> Option<f64> {
    let main = if core == 0 { 1 } else { 0 };
    let child = Command::new("dpdk-testpmd")
        .args(["-l", &format!("{main},{core}"), "--main-lcore", &main.to_string(), "--no-huge", "-m", "512"])
        .args(["--no-pci", "--vdev=net_null0,size=64", "--vdev=net_null1,size=64", "--"])
        .args(["--forward-mode=io", "--auto-start", "--total-num-mbufs=16384", "--stats-period=1", "--no-mlockall"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut child = Running(child);
    let output = child.0.stdout.take()?;
    let pid = child.0.id();
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    std::thread::sleep(WARM_UP);
    let (start, spent) = (Instant::now(), on_cpu_ns(pid)?);
    std::thread::sleep(WATCH);
    let share = (on_cpu_ns(pid)? - spent) as f64 / start.elapsed().as_nanos() as f64;
    // Of every port's `Rx-pps: N`, the last one printed.
    let rates: Vec<f64> = lines
        .try_iter()
        .filter_map(|line| line.trim().strip_prefix("Rx-pps:")?.split_whitespace().next()?.parse().ok())
        .collect();
    let (_, last) = rates.split_at_checked(rates.len().checked_sub(2)?)?;
    let packets: f64 = last.iter().sum();
    (packets > 0.0).then(|| clock::hertz() as f64 * share / packets)
}

/// Return the on-CPU time of the forwarding thread: of all threads, the one that used most.
fn on_cpu_ns(pid: u32) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let spent = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    tasks.flatten().filter_map(spent).max()
}
