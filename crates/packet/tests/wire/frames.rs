//! Makes frames out of arbitrary bytes: mostly well formed, with every header and every flaw within reach.
//!
//! The same bytes make the same frame. Property tests draw the bytes at random, fuzzers mutate them.

/// Reads choices from bytes; zeros when they run out.
struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    fn fill<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn some(&mut self, most: u8) -> Vec<u8> {
        let length = self.byte() % (most + 1);
        (0..length).map(|_| self.byte()).collect()
    }

    /// True once in `n`.
    fn once_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }
}

/// Make an Ethernet frame.
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices { bytes };
    let c = &mut choices;
    let mut frame = c.fill::<12>().to_vec();
    if c.once_in(4) {
        for _ in 0..c.byte() % 7 {
            let tag =
                [&[0x81, 0x00], &[0x88, 0xa8], &[0x91, 0x00], &[0x92, 0x00], &[0x93, 0x00]][usize::from(c.byte() % 5)];
            frame.extend(tag);
            frame.extend(c.fill::<2>());
        }
    }
    match c.byte() % 16 {
        0 => {
            frame.extend(c.fill::<2>());
            frame.extend(c.some(60));
        }
        1 => {
            frame.extend([0x08, 0x06]);
            frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend(c.fill::<20>());
        }
        2..10 => {
            frame.extend([0x08, 0x00]);
            frame.extend(ipv4(c));
        }
        _ => {
            frame.extend([0x86, 0xdd]);
            frame.extend(ipv6(c));
        }
    }
    if c.once_in(4) {
        frame.extend(c.some(46));
    }
    if c.once_in(4) {
        let at = usize::from(c.byte()) % frame.len();
        frame[at] ^= c.byte();
    }
    if c.once_in(8) {
        frame.truncate(usize::from(c.byte()));
    }
    frame
}

fn ipv4(c: &mut Choices) -> Vec<u8> {
    let options = if c.once_in(4) { usize::from(c.byte() % 11) * 4 } else { 0 };
    let (mut proto, mut payload) = upper(c);
    if c.once_in(8) {
        payload = [authentication(c, proto), payload].concat();
        proto = 51;
    }
    let mut header = vec![0x45 + (options / 4) as u8, c.byte()];
    header.extend((20 + options as u16 + payload.len() as u16).to_be_bytes());
    header.extend(c.fill::<2>());
    header.extend(match c.byte() % 8 {
        0 => c.fill::<2>(),
        1 => [0x20, 0],
        2 => [0, c.byte() % 24],
        3 => [0x40, 0],
        _ => [0, 0],
    });
    header.extend([64, proto]);
    header.extend(c.fill::<10>());
    header.extend((0..options).map(|_| c.byte()));
    if c.once_in(16) {
        cut_to_eights(&mut payload);
    }
    [header, payload].concat()
}

fn ipv6(c: &mut Choices) -> Vec<u8> {
    let (mut next, mut payload) = upper(c);
    if c.once_in(2) {
        for _ in 0..c.byte() % 10 {
            let (kind, extension) = extension(c, next);
            if kind == 44 && c.once_in(2) {
                cut_to_eights(&mut payload);
            }
            next = kind;
            payload = [extension, payload].concat();
        }
    }
    let mut header = vec![0x60 | c.byte() & 0x0f, c.byte(), c.byte(), c.byte()];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next, 64]);
    header.extend(c.fill::<32>());
    [header, payload].concat()
}

fn extension(c: &mut Choices, next: u8) -> (u8, Vec<u8>) {
    match c.byte() % 8 {
        0 => (0, [&[next, 0][..], &c.fill::<6>()].concat()),
        1 => (51, authentication(c, next)),
        2 | 3 => {
            let place = match c.byte() % 4 {
                0 => [0, 0],
                1 => [0, 1],
                2 => [0, c.byte()],
                _ => c.fill::<2>(),
            };
            (44, [&[next, 0][..], &place, &c.fill::<4>()].concat())
        }
        other => {
            let kind = [43, 60, 135, 139][usize::from(other) - 4];
            (kind, [&[next, 1][..], &c.fill::<14>()].concat())
        }
    }
}

fn authentication(c: &mut Choices, next: u8) -> Vec<u8> {
    let words = if c.once_in(8) { 24 + c.byte() % 12 } else { c.byte() % 4 };
    let mut header = vec![next, words, 0, 0];
    header.resize((usize::from(words) + 2) * 4, 7);
    header
}

fn upper(c: &mut Choices) -> (u8, Vec<u8>) {
    match c.byte() % 8 {
        0..3 => {
            let mut segment = c.fill::<20>().to_vec();
            let options = if c.once_in(2) { usize::from(c.byte() % 11) * 4 } else { 0 };
            segment[12] = (5 + (options / 4) as u8) << 4;
            segment.extend((0..options).map(|_| c.byte()));
            segment.extend(c.some(32));
            (6, segment)
        }
        3..5 => {
            let ports = c.fill::<4>();
            let payload = c.some(32);
            let length = 8 + payload.len() as u16;
            (17, [&ports[..], &length.to_be_bytes(), &c.fill::<2>(), &payload].concat())
        }
        5 => {
            let proto = [1, 58, 132, 33, 136][usize::from(c.byte() % 5)];
            (proto, [&c.fill::<12>()[..], &c.some(20)].concat())
        }
        6 => ([1, 58, 132, 6, 17, 51, 33, 136][usize::from(c.byte() % 8)], c.some(24)),
        _ => (c.byte(), c.some(40)),
    }
}

fn cut_to_eights(payload: &mut Vec<u8>) {
    payload.truncate(payload.len() & !7);
}
