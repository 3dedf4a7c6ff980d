//! What becomes of a record that comes when the queue is full after all.

use super::*;
use crate::monitor::flow::Seen;

/// A record of one packet.
fn record() -> Record {
    let flow = Flow::begin(Seen { way: 0, flags: 0, bytes: 40 }, 1);
    Record { key: EitherKey::V4([0, 0]), flow, end: End::Idle }
}

#[test]
fn without_room_a_record_is_lost_and_counted() {
    let shared =
        Arc::new(Shared { queue: ArrayQueue::new(2), closed: AtomicBool::new(false), lost: Default::default() });
    let mut export = Export::Open(Open { shared, writer: None, path: String::new(), waits: false });
    for _ in 0..2 {
        assert!(export.has_room());
        export.put(record());
    }
    assert_eq!((export.has_room(), export.lost()), (false, [0, 0]));
    export.put(record());
    assert_eq!(export.lost(), [1, 1]);
    // Nobody would make room.
    export.wait_from_now();
    export.put(record());
    assert_eq!((export.has_room(), export.lost()), (false, [2, 2]));
    let path = "/dev/null".to_owned();
    assert!(!Export::Unopened { path, format: Format::Json }.has_room());
    assert!(Export::Nowhere.has_room());
}

#[test]
fn who_may_wait_loses_nothing_and_who_may_not_knows_what() {
    let folder = tempfile::tempdir().unwrap();
    let many = 4 * QUEUE as u64;
    for (time, waits) in [(Time::Packets, false), (Time::Wall, true), (Time::Wall, false)] {
        let path = folder.path().join("flows").to_str().unwrap().to_owned();
        let mut export = Export::Unopened { path: path.clone(), format: Format::Json };
        export.start(time).unwrap();
        if waits {
            export.wait_from_now();
        }
        (0..many).for_each(|_| export.put(record()));
        export.close().unwrap();
        let [lost, packets] = export.lost();
        let written = std::fs::read_to_string(&path).unwrap().lines().count() as u64;
        assert_eq!((written + lost, packets), (many, lost));
        assert!(lost == 0 || time == Time::Wall && !waits);
    }
}
