//! Classic BPF programs, as tcpdump filters compile to (McCanne and Jacobson, "The BSD Packet Filter: A New
//! Architecture for User-level Packet Capture", §3.3): checked once, then run without further checks but
//! for the packet's length.

/// One instruction as compilers give it (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Operation and addressing mode.
    pub code: u16,
    /// Instructions to skip if true.
    pub jt: u8,
    /// Instructions to skip if false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Why a program is refused: the instruction, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Index of the instruction.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

const SCRATCH: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Byte,
    Half,
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Or,
    And,
    Xor,
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Equal,
    Greater,
    NotLess,
    Bits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Load(Width, u32),
    LoadAt(Width, u32),
    Constant(u32),
    Length,
    Scratch(u8),
    IndexConstant(u32),
    IndexLength,
    IndexScratch(u8),
    /// Four times the low half of a byte: the length of an IPv4 header.
    IndexHeader(u32),
    Store(u8),
    StoreIndex(u8),
    Compute(Alu, u32),
    ComputeIndex(Alu),
    Negate,
    Jump(u32),
    Branch(Test, u32, u8, u8),
    BranchIndex(Test, u8, u8),
    Return(u32),
    ReturnAccumulator,
    ToIndex,
    FromIndex,
}

/// A program that has been checked: it ends, whatever the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Box<[Op]>);

impl Program {
    /// Check a program. Jumps go only forward and stay inside, scratch cells exist, no division by a constant
    /// zero, the last instruction returns: so every run ends.
    ///
    /// # Errors
    /// The first instruction that is not as it must be.
    pub fn new(insns: &[Insn]) -> Result<Self, Invalid> {
        let ops: Vec<Op> =
            insns.iter().enumerate().map(|(at, insn)| decode(insn, at, insns.len())).collect::<Result<_, _>>()?;
        match ops.last() {
            Some(Op::Return(_) | Op::ReturnAccumulator) => Ok(Program(ops.into())),
            _ => Err(Invalid { at: insns.len().saturating_sub(1), what: "the last instruction does not return" }),
        }
    }

    /// Run the program on a packet; a load beyond its end returns 0.
    #[inline]
    pub fn matches(&self, data: &[u8]) -> bool {
        self.run(data).unwrap_or(0) != 0
    }

    /// Run the program on a packet that lies in two parts.
    pub fn matches_parts(&self, head: &[u8], tail: &[u8]) -> bool {
        self.run(Parts { head, tail }).unwrap_or(0) != 0
    }

    fn run(&self, data: impl Bytes) -> Option<u32> {
        let (mut a, mut x, mut at) = (0u32, 0u32, 0usize);
        let mut scratch = [0u32; SCRATCH];
        loop {
            // Checked programs always find an instruction here.
            let op = *self.0.get(at)?;
            at += 1;
            match op {
                Op::Load(width, k) => a = data.load(width, k as usize)?,
                Op::LoadAt(width, k) => a = data.load(width, x as usize + k as usize)?,
                Op::Constant(k) => a = k,
                Op::Length => a = data.length() as u32,
                Op::Scratch(cell) => a = scratch[usize::from(cell) % SCRATCH],
                Op::IndexConstant(k) => x = k,
                Op::IndexLength => x = data.length() as u32,
                Op::IndexScratch(cell) => x = scratch[usize::from(cell) % SCRATCH],
                Op::IndexHeader(k) => x = (data.load(Width::Byte, k as usize)? & 0xf) * 4,
                Op::Store(cell) => scratch[usize::from(cell) % SCRATCH] = a,
                Op::StoreIndex(cell) => scratch[usize::from(cell) % SCRATCH] = x,
                Op::Compute(alu, k) => a = compute(alu, a, k)?,
                Op::ComputeIndex(alu) => a = compute(alu, a, x)?,
                Op::Negate => a = a.wrapping_neg(),
                Op::Jump(k) => at += k as usize,
                Op::Branch(test, k, jt, jf) => at += (if holds(test, a, k) { jt } else { jf }) as usize,
                Op::BranchIndex(test, jt, jf) => at += (if holds(test, a, x) { jt } else { jf }) as usize,
                Op::Return(k) => return Some(k),
                Op::ReturnAccumulator => return Some(a),
                Op::ToIndex => x = a,
                Op::FromIndex => a = x,
            }
        }
    }
}

/// What a program reads.
trait Bytes {
    /// Return the number that stands `at` bytes from the beginning, in network order.
    fn load(&self, width: Width, at: usize) -> Option<u32>;
    /// Return how many bytes there are.
    fn length(&self) -> usize;
}

impl Bytes for &[u8] {
    #[inline(always)]
    fn load(&self, width: Width, at: usize) -> Option<u32> {
        let rest = self.get(at..)?;
        Some(match width {
            Width::Byte => u32::from(*rest.first()?),
            Width::Half => u32::from(u16::from_be_bytes(*rest.first_chunk()?)),
            Width::Word => u32::from_be_bytes(*rest.first_chunk()?),
        })
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.len()
    }
}

/// A packet in two parts.
struct Parts<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl Bytes for Parts<'_> {
    fn load(&self, width: Width, at: usize) -> Option<u32> {
        let byte = |at: usize| match at.checked_sub(self.head.len()) {
            None => self.head.get(at),
            Some(at) => self.tail.get(at),
        };
        let count = match width {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        };
        (at..at + count).try_fold(0, |number, at| Some(number << 8 | u32::from(*byte(at)?)))
    }

    fn length(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

#[inline(always)]
fn compute(alu: Alu, a: u32, b: u32) -> Option<u32> {
    Some(match alu {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Mul => a.wrapping_mul(b),
        Alu::Div => a.checked_div(b)?,
        Alu::Mod => a.checked_rem(b)?,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Xor => a ^ b,
        Alu::Shl => a.checked_shl(b).unwrap_or(0),
        Alu::Shr => a.checked_shr(b).unwrap_or(0),
    })
}

#[inline(always)]
fn holds(test: Test, a: u32, b: u32) -> bool {
    match test {
        Test::Equal => a == b,
        Test::Greater => a > b,
        Test::NotLess => a >= b,
        Test::Bits => a & b != 0,
    }
}

fn decode(insn: &Insn, at: usize, count: usize) -> Result<Op, Invalid> {
    let refuse = |what| Err(Invalid { at, what });
    let Insn { code, jt, jf, k } = *insn;
    // Of loads alone: comparisons with the index have other bits there.
    let width = || match code & 0x18 {
        0x00 => Ok(Width::Word),
        0x08 => Ok(Width::Half),
        0x10 => Ok(Width::Byte),
        _ => Err(Invalid { at, what: "unknown width" }),
    };
    let cell = || {
        u8::try_from(k).ok().filter(|c| usize::from(*c) < SCRATCH).ok_or(Invalid { at, what: "no such scratch cell" })
    };
    let left = count - at - 1;
    Ok(match code & 0x07 {
        // LD and LDX, by addressing mode.
        0x00 => match code & 0xe0 {
            0x00 => Op::Constant(k),
            0x20 => Op::Load(width()?, k),
            0x40 => Op::LoadAt(width()?, k),
            0x60 => Op::Scratch(cell()?),
            0x80 => Op::Length,
            _ => return refuse("unknown load"),
        },
        0x01 => match code & 0xe0 {
            0x00 => Op::IndexConstant(k),
            0x60 => Op::IndexScratch(cell()?),
            0x80 => Op::IndexLength,
            0xa0 => Op::IndexHeader(k),
            _ => return refuse("unknown load of the index"),
        },
        0x02 => Op::Store(cell()?),
        0x03 => Op::StoreIndex(cell()?),
        0x04 => {
            let alu = match code & 0xf0 {
                0x00 => Alu::Add,
                0x10 => Alu::Sub,
                0x20 => Alu::Mul,
                0x30 => Alu::Div,
                0x40 => Alu::Or,
                0x50 => Alu::And,
                0x60 => Alu::Shl,
                0x70 => Alu::Shr,
                0x80 => return Ok(Op::Negate),
                0x90 => Alu::Mod,
                0xa0 => Alu::Xor,
                _ => return refuse("unknown arithmetic"),
            };
            match (code & 0x08 != 0, alu) {
                (true, _) => Op::ComputeIndex(alu),
                (false, Alu::Div | Alu::Mod) if k == 0 => return refuse("division by zero"),
                (false, _) => Op::Compute(alu, k),
            }
        }
        0x05 => {
            let test = match code & 0xf0 {
                0x00 if (k as usize) < left => return Ok(Op::Jump(k)),
                0x00 => return refuse("jump beyond the end"),
                0x10 => Test::Equal,
                0x20 => Test::Greater,
                0x30 => Test::NotLess,
                0x40 => Test::Bits,
                _ => return refuse("unknown jump"),
            };
            if usize::from(jt) >= left || usize::from(jf) >= left {
                return refuse("jump beyond the end");
            }
            if code & 0x08 != 0 { Op::BranchIndex(test, jt, jf) } else { Op::Branch(test, k, jt, jf) }
        }
        0x06 => match code & 0x18 {
            0x00 => Op::Return(k),
            0x10 => Op::ReturnAccumulator,
            _ => return refuse("unknown return"),
        },
        _ => match code & 0xf8 {
            0x00 => Op::ToIndex,
            0x80 => Op::FromIndex,
            _ => return refuse("unknown instruction"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
        Insn { code, jt, jf, k }
    }

    /// `udp dst port 53`, as tcpdump -d prints it (without the optimiser's sharing).
    fn udp_53() -> Vec<Insn> {
        vec![
            insn(0x28, 0, 0, 12),
            insn(0x15, 0, 8, 0x800),
            insn(0x30, 0, 0, 23),
            insn(0x15, 0, 6, 17),
            insn(0x28, 0, 0, 20),
            insn(0x45, 4, 0, 0x1fff),
            insn(0xb1, 0, 0, 14),
            insn(0x48, 0, 0, 16),
            insn(0x15, 0, 1, 53),
            insn(0x06, 0, 0, 0x40000),
            insn(0x06, 0, 0, 0),
        ]
    }

    #[test]
    fn a_real_filter_tells_packets_apart() {
        let program = Program::new(&udp_53()).unwrap();
        let mut packet = vec![0u8; 60];
        packet[12] = 8;
        packet[14] = 0x45;
        packet[23] = 17;
        packet[37] = 53;
        assert!(program.matches(&packet));
        assert!(!program.matches(&packet[..37]), "cut off inside the port");
        packet[37] = 54;
        assert!(!program.matches(&packet));
    }

    #[test]
    fn what_could_run_astray_is_refused() {
        let refused = |insns: &[Insn]| Program::new(insns).unwrap_err().what;
        assert_eq!(refused(&[]), "the last instruction does not return");
        assert_eq!(refused(&[insn(0x05, 0, 0, 0), insn(0x04, 0, 0, 1)]), "the last instruction does not return");
        assert_eq!(refused(&[insn(0x15, 1, 0, 0), insn(0x06, 0, 0, 0)]), "jump beyond the end");
        assert_eq!(refused(&[insn(0x05, 0, 0, u32::MAX), insn(0x06, 0, 0, 0)]), "jump beyond the end");
        assert_eq!(refused(&[insn(0x34, 0, 0, 0), insn(0x06, 0, 0, 0)]), "division by zero");
        assert_eq!(refused(&[insn(0x60, 0, 0, 16), insn(0x06, 0, 0, 0)]), "no such scratch cell");
    }

    proptest! {
        /// Whatever is accepted runs to an end without a panic on whatever packet.
        #[test]
        fn accepted_programs_end(
            insns in prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), prop_oneof![0u32..64, any::<u32>()]), 1..40),
            data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut insns: Vec<Insn> = insns.into_iter().map(|(code, jt, jf, k)| insn(code & 0xff, jt % 8, jf % 8, k)).collect();
            insns.push(insn(0x16, 0, 0, 0));
            let accepted: Vec<Insn> = insns.clone();
            if let Ok(program) = Program::new(&accepted) {
                program.matches(&data);
            }
        }
    }
}
