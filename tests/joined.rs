//! Two hosts that only a running chain joins: ACL and NAT over AF_PACKET, with the programs people use.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catena_testing::default_signals;
use catena_testing::namespace::{Place, Testbed, has};

/// Where the hosts are: the inside one behind the NAT, the outside one on the Internet.
const INSIDE: &str = "100.64.0.2";
const OUTSIDE: &str = "198.51.100.1";
/// The only address of the NAT's pool.
const POOL: &str = "198.51.100.16";
/// Bytes of the file that `curl` fetches.
const FILE: u64 = 64 << 20;

const CHAIN: &str = r#"
chain edge {
    acl = ACL(rules = [
        "permit icmp from 100.64.0.0/10 to any",
        "permit tcp from 100.64.0.0/10 to any port 1024-65535",
        "permit udp from 100.64.0.0/10 to any port 1024-65535",
        "deny any",
    ])
    nat = NAT(pool = 198.51.100.16)

    in -> acl -> nat -> out
    out -> nat -> in
}
"#;

/// A running chain; ended by its id whatever happens.
struct Running(Option<Child>);

impl Running {
    fn start(bed: &Testbed, chain: &std::path::Path) -> Running {
        let (program, chain) = (env!("CARGO_BIN_EXE_catena"), chain.to_owned());
        let child = bed.within(Place::Middle, move || {
            let mut command = Command::new(program);
            command.arg("run").arg(chain).args(["--in", "a0", "--out", "b0", "--json"]);
            default_signals(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("catena starts")
        });
        Running(Some(child))
    }

    /// Interrupt the chain as Ctrl-C does, and return its report.
    fn stop(mut self) -> serde_json::Value {
        let child = self.0.take().expect("it runs until it is stopped");
        // SAFETY: the id is that of our child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        let output = child.wait_with_output().expect("catena ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        serde_json::from_slice(&output.stdout).expect("the report is JSON")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn testbed() -> Option<(Testbed, tempfile::TempDir, Running)> {
    let bed = Testbed::new()?;
    let mac = |place| bed.exec(place, "cat /sys/class/net/eth0/address").trim().to_owned();
    let (inside, outside) = (mac(Place::A), mac(Place::B));
    for place in [Place::A, Place::B] {
        bed.ip(place, "addr flush dev eth0");
    }
    bed.ip(Place::A, &format!("addr add {INSIDE}/32 dev eth0"));
    bed.ip(Place::A, &format!("route add {OUTSIDE}/32 dev eth0"));
    bed.ip(Place::A, &format!("neigh replace {OUTSIDE} lladdr {outside} dev eth0"));
    bed.ip(Place::B, &format!("addr add {OUTSIDE}/24 dev eth0"));
    // The chain is a bump in the wire and answers no ARP: who has the pool's address is said here.
    bed.ip(Place::B, &format!("neigh replace {POOL} lladdr {inside} dev eth0"));
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("edge.catena");
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let running = Running::start(&bed, &chain);
    let start = Instant::now();
    while bed.exec(Place::A, &format!("ping -c 1 -W 1 {OUTSIDE} >/dev/null 2>&1; echo $?")).trim() != "0" {
        assert!(start.elapsed() < Duration::from_secs(60), "no ping goes through");
    }
    Some((bed, folder, running))
}

fn count(report: &serde_json::Value, path: &str) -> u64 {
    report.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("no {path} in {report}"))
}

#[test]
fn ping_curl_and_iperf3_work_through_a_chain() {
    if !(has("ping") && has("curl") && has("python3")) {
        return;
    }
    let Some((bed, folder, running)) = testbed() else { return };

    let ping = bed.exec(Place::A, &format!("ping -c 20 -i 0.02 -W 2 {OUTSIDE}"));
    assert!(ping.contains("20 received"), "{ping}");

    // The server sees the pool's address, not the inside host's.
    let listener = bed.within(Place::B, || TcpListener::bind("0.0.0.0:9000").expect("a port"));
    let client = bed.spawn(Place::A, || TcpStream::connect((OUTSIDE, 9000)).map(drop));
    let (_, peer) = listener.accept().expect("a connection");
    assert_eq!(peer.ip(), POOL.parse::<IpAddr>().expect("an address"));
    client.join().expect("the client ends").expect("it connected");

    // What the rules deny does not get through.
    let denied = bed.exec(Place::A, &format!("curl -s -m 1 http://{OUTSIDE}:80/ >/dev/null; echo $?"));
    assert_eq!(denied.trim(), "28", "curl waits for an answer that does not come");

    std::fs::File::create(folder.path().join("large")).and_then(|f| f.set_len(FILE)).expect("a large file");
    let root = folder.path().display().to_string();
    let mut server = bed.within(Place::B, move || {
        Command::new("python3")
            .args(["-m", "http.server", "8000", "--directory", &root])
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 starts")
    });
    let url = format!("http://{OUTSIDE}:8000/large");
    let fetch = format!(
        "curl -s -m 60 --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null -w '%{{size_download}} %{{speed_download}}' {url}"
    );
    let fetched = bed.exec(Place::A, &fetch);
    server.kill().and_then(|()| server.wait()).expect("the server ends");
    println!("curl: bytes and bytes/s: {fetched}");
    assert_eq!(fetched.split(' ').next(), Some(FILE.to_string().as_str()));

    if has("iperf3") {
        let mut server = bed.within(Place::B, || {
            Command::new("iperf3")
                .args(["-s", "-1", "-p", "5201"])
                .stdout(Stdio::null())
                .spawn()
                .expect("iperf3 starts")
        });
        let start = Instant::now();
        let result = loop {
            let line = format!("iperf3 -c {OUTSIDE} -p 5201 -t 2 -J || true");
            let result: serde_json::Value =
                serde_json::from_str(&bed.exec(Place::A, &line)).expect("iperf3 writes JSON");
            if result.get("error").is_none() || start.elapsed() > Duration::from_secs(60) {
                break result;
            }
        };
        let _ = server.kill();
        server.wait().expect("the server ends");
        let bits = result.pointer("/end/sum_received/bits_per_second").and_then(serde_json::Value::as_f64);
        println!("iperf3: {bits:?} bit/s");
        assert!(bits.is_some_and(|bits| bits > 1e6), "{result}");
    }

    let report = running.stop();
    let [input, output, dropped] = ["/input/packets", "/output/packets", "/dropped"].map(|path| count(&report, path));
    assert_eq!(input, output + dropped, "packets in = packets out + drops: {report}");
    assert!(input > 40_000, "{report}");
    let denied = report["modules"].as_array().into_iter().flatten().find(|m| m["name"] == "acl");
    assert!(denied.is_some_and(
        |acl| count(acl, "/packets") > 0 && !acl["drops"].as_object().is_some_and(serde_json::Map::is_empty)
    ));
}
