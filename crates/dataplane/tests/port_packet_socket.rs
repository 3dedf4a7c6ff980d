//! Packet sockets between network namespaces that only a pipeline joins.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use catena_dataplane::module::Module;
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::{Cause, PacketSocket, PacketSocketIn, PacketSocketOut, Sink};
use catena_dataplane::task::Task;
use catena_dataplane::worker::{Ended, thread_cpu_ns};
use catena_dataplane::{Context, Pipeline, Pulled, Reason, Source, Worker, WorkerHandle};
use catena_packet::clock::Root;
use catena_packet::{Batch, Depot, DepotHandle};
use catena_testing::namespace::{Place, Testbed, has};
use catena_testing::skip;

fn depot() -> DepotHandle {
    Depot::map(8192, 256).unwrap()
}

/// Join `a` and `b` by a pipeline in the middle.
fn join(bed: &Testbed) -> WorkerHandle {
    bed.within(Place::Middle, || {
        let (from_a, to_a) = PacketSocket::new("a0", 0).open().unwrap();
        let (from_b, to_b) = PacketSocket::new("b0", 1).open().unwrap();
        let mut pipeline = Pipeline::new(Time::Wall);
        let to_a = pipeline.graph.add("to a", Box::new(to_a));
        let to_b = pipeline.graph.add("to b", Box::new(to_b));
        pipeline.add_task(Task::new("from a", Box::new(from_a), to_b).rooted(Root::first()));
        pipeline.add_task(Task::new("from b", Box::new(from_b), to_a));
        Worker::new("joint", pipeline, &depot(), 0).start().unwrap()
    })
}

/// End the pipeline in the middle; returns its packets, sent and dropped, after printing its figures.
fn part(worker: WorkerHandle) -> (Ended, u64) {
    worker.stop();
    let ended = worker.join().unwrap();
    assert!(ended.failed.is_empty());
    let (mut packets, mut dropped) = (0, 0);
    for (_, node) in ended.pipeline.graph.nodes() {
        packets += node.counters.input.packets.get();
        for (reason, count) in node.counters.drops.iter() {
            println!("{}: {count} dropped: {}", node.name, reason.text(node.reasons));
            dropped += count;
        }
    }
    for (_, task) in ended.pipeline.tasks() {
        println!("{}: {:?}", task.name(), gauges(task.source()));
    }
    println!("{packets} packets, {} ns on a core each, idle looks included", ended.cpu_ns / packets.max(1));
    (ended, dropped)
}

fn gauges(source: &dyn Source) -> Vec<(&'static str, u64)> {
    let mut told = Vec::new();
    source.gauges(&mut |name, value| told.push((name, value)));
    told
}

/// Return how many frames a running pipeline's task has seen or lost.
fn seen(worker: &WorkerHandle, task: &'static str) -> u64 {
    let count = move |pipeline: &mut Pipeline, _: &mut Context| {
        let task = pipeline.tasks().find(|(_, t)| &**t.name() == task).unwrap().1;
        gauge(task.source(), "frames") + gauge(task.source(), "dropped by the kernel")
    };
    worker.edit(count).unwrap()
}

/// Wait until what [`seen`] counts stays the same, and return it.
fn settled(worker: &WorkerHandle, task: &'static str) -> u64 {
    let mut last = seen(worker, task);
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        let now = seen(worker, task);
        if now == last {
            break;
        }
        last = now;
    }
    last
}

fn gauge(source: &dyn Source, name: &str) -> u64 {
    gauges(source).iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| *value)
}

/// Send `bytes` bytes of a pattern from `a` to `b` over TCP, and check them there; returns Gbit/s.
fn transfer(bed: &Testbed, address: &'static str, bytes: usize) -> f64 {
    let pattern = |at: usize| (at % 251) as u8;
    let listener = bed.within(Place::B, move || TcpListener::bind(address).unwrap());
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return at,
                got => {
                    assert!(buffer[..got].iter().enumerate().all(|(i, byte)| *byte == pattern(at + i)));
                    at += got;
                }
            }
        }
    });
    let all: Vec<u8> = (0..bytes).map(pattern).collect();
    let start = Instant::now();
    bed.within(Place::A, move || TcpStream::connect(address).unwrap().write_all(&all).unwrap());
    assert_eq!(receiver.join().unwrap(), bytes);
    bytes as f64 * 8.0 / start.elapsed().as_nanos() as f64
}

#[test]
fn two_namespaces_talk_with_offloads_on() {
    let Some(bed) = Testbed::new() else { return };
    let worker = join(&bed);
    if has("ping") {
        let said = bed.exec(Place::A, "ping -c 3 -i 0.05 -W 5 10.77.0.2 && ping -c 3 -i 0.05 -W 5 -s 1400 fd77::2");
        println!("{}", said.lines().filter(|line| line.contains("rtt")).collect::<Vec<_>>().join("\n"));
    }
    println!("TCP over IPv4: {:.2} Gbit/s", transfer(&bed, "10.77.0.2:5001", 100_000_000));
    println!("TCP over IPv6: {:.2} Gbit/s", transfer(&bed, "[fd77::2]:5001", 20_000_000));
    let (ended, _) = part(worker);
    let from_a = ended.pipeline.tasks().next().unwrap().1.source();
    assert!(gauge(from_a, "super-packets") > 0, "the sender left no segmentation to its interface");
    assert_eq!(gauge(from_a, "offload that cannot be undone"), 0);
}

#[test]
fn iperf3_runs() {
    if !has("iperf3") {
        return;
    }
    let Some(bed) = Testbed::new() else { return };
    let worker = join(&bed);
    bed.exec(Place::B, "timeout 30 iperf3 -s -1 >/dev/null 2>&1 &");
    let client = "timeout 20 iperf3 -c 10.77.0.2 -t 2 -f g";
    let said = bed.exec(Place::A, &format!("for i in 1 2 3 4 5 6 7 8; do sleep 0.2; {client} && exit; done; exit 1"));
    println!("{}", said.lines().filter(|line| line.contains("receiver")).collect::<Vec<_>>().join("\n"));
    part(worker);
}

#[test]
fn datagrams_sent_as_one_arrive_as_many() {
    let Some(bed) = Testbed::new() else { return };
    let worker = join(&bed);
    for (from, to) in [("10.77.0.1:4000", "10.77.0.2:4000"), ("[fd77::1]:4000", "[fd77::2]:4000")] {
        let receiver = bed.within(Place::B, move || UdpSocket::bind(to).unwrap());
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = bed.within(Place::A, move || UdpSocket::bind(from).unwrap());
        let size: libc::c_int = 1000;
        // SAFETY: the value is an int of the length given.
        let set = unsafe {
            let value = (&raw const size).cast();
            libc::setsockopt(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
        };
        assert_eq!(set, 0);
        let mut buffer = [0; 2000];
        // The first asks for the address; the others are sent when it is there, or they would overtake it.
        sender.send_to(&[9; 500], to).unwrap();
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 500);
        let all: Vec<u8> = (0..40_500).map(|at| (at / 1000) as u8).collect();
        sender.send_to(&all, to).unwrap();
        for number in 0..41u8 {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(length, if number < 40 { 1000 } else { 500 });
            assert!(buffer[..length].iter().all(|byte| *byte == number));
        }
    }
    let (ended, dropped) = part(worker);
    assert_eq!(dropped, 0);
    // Each segment has a clock.
    let (_, from_a) = ended.pipeline.tasks().next().unwrap();
    assert!(gauge(from_a.source(), "segments") >= 82);
    assert_eq!(from_a.root().unwrap().count(), from_a.counters().input.packets.get());
    assert!(from_a.root().unwrap().count() >= 84);
}

/// Both sides of a wire without a pipeline: `a`'s sending, the middle's receiving.
fn wire(bed: &Testbed) -> (Context, PacketSocketOut, PacketSocketIn) {
    let (_, out) = bed.within(Place::A, || PacketSocket::new("eth0", 0).open().unwrap());
    let (source, _) = bed.within(Place::Middle, || PacketSocket::new("a0", 3).open().unwrap());
    let mut cx = Context::new(&depot(), 0);
    cx.set_now(1_000);
    (cx, out, source)
}

/// Frames that no kernel makes by itself: an EtherType for experiments (IEEE 802).
fn experiment(len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    frame.extend((frame.len()..len).map(|at| at as u8));
    frame
}

fn send(cx: &mut Context, out: &mut PacketSocketOut, frames: &[Vec<u8>]) {
    let mut batch = Batch::new();
    for frame in frames {
        let mut packet = cx.pool().take(frame.len()).unwrap();
        packet.fill(frame);
        batch.push(packet);
    }
    out.process(cx, &mut batch);
    assert!(batch.is_empty());
}

/// Receive until `count` frames of the experiment are there.
fn receive(cx: &mut Context, source: &mut PacketSocketIn, count: usize) -> Vec<Vec<u8>> {
    let (mut got, mut batch, start) = (Vec::new(), Batch::new(), Instant::now());
    while got.len() < count && start.elapsed() < Duration::from_secs(3) {
        source.pull(cx, &mut batch);
        for packet in batch.drain() {
            assert_eq!((packet.meta().way.port(), packet.meta().arrival), (3, 1_000));
            if packet.data()[..6] == [2, 0, 0, 0, 0, 1] {
                got.push(packet.data().to_vec());
            }
            cx.pool().put(packet);
        }
    }
    got
}

#[test]
fn frames_arrive_as_they_were_sent() {
    let Some(bed) = Testbed::new() else { return };
    bed.ip(Place::A, "link set eth0 mtu 9000");
    bed.ip(Place::Middle, "link set a0 mtu 9000");
    let (mut cx, mut out, mut source) = wire(&bed);
    let mut frames: Vec<_> = [14, 60, 61, 64, 1514, 2112, 2113, 2200, 9014].map(experiment).into();
    for tags in [&[0x81, 0, 0x20, 5][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0x60, 9]] {
        let mut tagged = experiment(100);
        tagged.splice(12..12, tags.iter().copied());
        frames.push(tagged);
    }
    send(&mut cx, &mut out, &frames);
    assert_eq!(receive(&mut cx, &mut source, frames.len()), frames);
}

#[test]
fn what_cannot_be_sent_is_counted() {
    let Some(bed) = Testbed::new() else { return };
    let (_, out) = bed.within(Place::A, || PacketSocket::new("eth0", 0).open().unwrap());
    let (mut source, _) = bed.within(Place::Middle, || PacketSocket::new("a0", 3).open().unwrap());
    let mut cx = Context::new(&depot(), 0);
    cx.set_now(1_000);
    let mut pipeline = Pipeline::new(Time::Wall);
    let out = pipeline.graph.add("out", Box::new(out));
    let mut give = |cx: &mut Context, frames: &[Vec<u8>]| {
        let mut batch = Batch::new();
        for frame in frames {
            let mut packet = cx.pool().take(frame.len()).unwrap();
            packet.fill(frame);
            batch.push(packet);
        }
        pipeline.graph.run(cx, out.into(), &mut batch);
        let counters = pipeline.graph.nodes()[0].1.counters.clone();
        counters.drops.iter().collect::<Vec<_>>()
    };
    let (good, long) = (experiment(60), experiment(1519));
    let mixed = [good.clone(), long.clone(), long, good.clone(), vec![1; 5]];
    let dropped = give(&mut cx, &mixed);
    assert_eq!(dropped, [(Reason(1), 2), (Reason(3), 1)]);
    assert_eq!(receive(&mut cx, &mut source, 2).len(), 2);
    bed.ip(Place::A, "link set eth0 down");
    assert_eq!(give(&mut cx, &mixed[..1])[1], (Reason(2), 1));
    assert!(receive(&mut cx, &mut source, 0).is_empty());
    bed.ip(Place::A, "link set eth0 up");
    give(&mut cx, &mixed[..1]);
    assert_eq!(receive(&mut cx, &mut source, 1).len(), 1);
}

#[test]
fn an_interface_comes_back_or_is_removed() {
    let Some(bed) = Testbed::new() else { return };
    let (mut cx, mut out, mut source) = wire(&bed);
    let mut batch = Batch::new();
    for _ in 0..2 {
        bed.ip(Place::Middle, "link set a0 down");
        assert!((0..2000).all(|_| {
            let pulled = source.pull(&mut cx, &mut batch);
            batch.drain().for_each(drop);
            pulled != Pulled::Done
        }));
        bed.ip(Place::Middle, "link set a0 up");
        send(&mut cx, &mut out, &[experiment(60)]);
        assert_eq!(receive(&mut cx, &mut source, 1).len(), 1);
    }
    assert_eq!(source.error(), None);
    bed.ip(Place::Middle, "link del a0");
    let gone = (0..100_000).any(|_| {
        let pulled = source.pull(&mut cx, &mut batch);
        batch.drain().for_each(drop);
        pulled == Pulled::Done
    });
    assert!(gone);
    assert_eq!(source.error().as_deref(), Some("interface a0 was removed"));
}

#[test]
fn workers_share_an_interface_by_flow() {
    let Some(bed) = Testbed::new() else { return };
    let (mut cx, mut out, _) = wire(&bed);
    let shared = bed.within(Place::Middle, || PacketSocket::new("a0", 3).open_shared(2).unwrap());
    let mut sources: Vec<_> = shared.into_iter().map(|(source, _)| source).collect();
    // UDP between two hosts, in both directions of 64 flows.
    let frames: Vec<_> = (0..128u8)
        .map(|n| {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17];
            let (port, back) = (n / 2, n % 2 == 1);
            let (here, there) = ([10, 77, 0, 5], [10, 77, 0, 6]);
            frame.extend([0, 0]);
            frame.extend(if back { [there, here] } else { [here, there] }.concat());
            let ports = [[9, port], [8, 1]];
            frame.extend(if back { [ports[1], ports[0]] } else { ports }.concat());
            frame.extend([0, 26, 0, 0, port]);
            frame.resize(60, 0);
            frame
        })
        .collect();
    frames.chunks(32).for_each(|chunk| send(&mut cx, &mut out, chunk));
    let got: Vec<_> = sources.iter_mut().map(|source| receive(&mut cx, source, 129).len()).collect();
    assert_eq!(got.iter().sum::<usize>(), 128);
    assert!(got.iter().all(|count| *count > 0 && count.is_multiple_of(2)), "{got:?}");
}

#[test]
fn errors_say_what_to_do() {
    let error = PacketSocket::new("no-such-if0", 0).open().err().unwrap();
    assert!(matches!(error.cause, Cause::NoInterface));
    assert_eq!(error.to_string(), "there is no interface no-such-if0 here");
    let error = PacketSocket::new("with\0zero", 0).open().err().unwrap();
    assert!(matches!(error.cause, Cause::NoInterface));
}

#[test]
fn without_permission_the_capability_is_named() {
    let opened = std::thread::spawn(|| {
        // SAFETY: the calls take numbers; the system's own call, unlike the library's, changes this thread alone.
        unsafe {
            if libc::geteuid() == 0 {
                assert_eq!(libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534), 0);
            }
        }
        PacketSocket::new("lo", 0).open()
    });
    let error = opened.join().unwrap().err().unwrap();
    assert!(matches!(error.cause, Cause::NotPermitted));
    assert!(error.to_string().contains("CAP_NET_RAW"));
}

#[test]
fn an_interface_without_ethernet_is_refused() {
    let Some(bed) = Testbed::new() else { return };
    if bed.exec(Place::A, "ip tuntap add t0 mode tun 2>&1 || true").lines().count() > 0 {
        return skip("there are no TUN interfaces", "load the kernel module `tun`");
    }
    let error = bed.within(Place::A, || PacketSocket::new("t0", 0).open()).err().unwrap();
    assert!(matches!(error.cause, Cause::NotEthernet), "{error}");
}

/// Sends frames of 64 bytes as fast as it can.
struct Flood {
    left: u64,
}

impl Source for Flood {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let frame = experiment(60);
        cx.pool().take_batch(batch, 32, frame.len());
        batch.iter_mut().for_each(|packet| packet.fill(&frame));
        self.left = self.left.saturating_sub(batch.len() as u64);
        if self.left == 0 { Pulled::Done } else { Pulled::More }
    }
}

#[test]
fn small_frames_are_forwarded_and_accounted_for() {
    let Some(bed) = Testbed::new() else { return };
    let worker = join(&bed);
    let sink = bed.within(Place::B, || {
        let (source, _) = PacketSocket::new("eth0", 0).open().unwrap();
        let mut pipeline = Pipeline::new(Time::Wall);
        let sink = pipeline.graph.add("sink", Box::new(Sink));
        pipeline.add_task(Task::new("in", Box::new(source), sink));
        Worker::new("sink", pipeline, &depot(), 0).start().unwrap()
    });
    let flood = bed.within(Place::A, || {
        let (_, out) = PacketSocket::new("eth0", 0).open().unwrap();
        let mut pipeline = Pipeline::new(Time::Wall);
        let out = pipeline.graph.add("out", Box::new(out));
        pipeline.add_task(Task::new("flood", Box::new(Flood { left: 100_000 }), out));
        Worker::new("flood", pipeline, &depot(), 0).start().unwrap()
    });
    let start = Instant::now();
    let sent = flood.join().unwrap();
    let sent: u64 = sent.pipeline.graph.nodes().iter().map(|(_, n)| n.counters.input.packets.get()).sum();
    println!("{sent} sent in {:?}", start.elapsed());
    let seen = settled(&worker, "from a");
    let (joint, dropped) = part(worker);
    assert_eq!(dropped, 0);
    // Hosts say a few things of their own (IPv6 neighbours); the system may lose some on its own way.
    assert!((sent * 9 / 10..sent + 50).contains(&seen), "{sent} sent, {seen} received or lost");
    let frames = gauge(joint.pipeline.tasks().next().unwrap().1.source(), "frames");
    let arrived = settled(&sink, "in");
    part(sink);
    assert!((frames * 9 / 10..frames + 50).contains(&arrived), "{frames} forwarded, {arrived} arrived");
}

#[test]
fn a_full_ring_is_forwarded_whole() {
    let Some(bed) = Testbed::new() else { return };
    forward_rings(&bed, "by the interface's queueing", PacketSocket::new("b0", 1));
    forward_rings(&bed, "past it", PacketSocket::new("b0", 1).bypass_queueing());
}

fn forward_rings(bed: &Testbed, how: &str, onward: PacketSocket) {
    const ROUNDS: usize = 30;
    const FRAMES: usize = 4000;
    let (mut cx, mut out, mut source) = wire(bed);
    let (_, mut onward) = bed.within(Place::Middle, move || onward.open().unwrap());
    let (mut end, _) = bed.within(Place::B, || PacketSocket::new("eth0", 3).open().unwrap());
    let burst = vec![experiment(60); 32];
    let (mut spent, mut forwarded) = (0, 0);
    for _ in 0..ROUNDS {
        (0..FRAMES / 32).for_each(|_| send(&mut cx, &mut out, &burst));
        let (mut batch, start) = (Batch::new(), thread_cpu_ns());
        while source.pull(&mut cx, &mut batch) == Pulled::More {
            forwarded += batch.len();
            onward.process(&mut cx, &mut batch);
        }
        spent += thread_cpu_ns() - start;
        while end.pull(&mut cx, &mut batch) == Pulled::More {
            cx.pool().put_batch(&mut batch);
        }
    }
    // The system may lose some on its own way, when it is busy.
    let arrived = gauge(&end, "frames") as usize;
    assert!(forwarded > ROUNDS * FRAMES * 9 / 10 && arrived > forwarded * 9 / 10, "{forwarded}, {arrived}");
    let each = spent / forwarded as u64;
    println!("forwarding a frame of 60 bytes {how} takes {each} ns on a core: {:.2} Mpps", 1e3 / each as f64);
}
