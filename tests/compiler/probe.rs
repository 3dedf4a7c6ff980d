//! What rust-lang/rust issue 158206 loses: a comparison that is used once as a value and then branched on, when
//! the function that returns it is inlined. The right program ends with 0.

pub struct Block {
    free: u16,
    used: u64,
}

impl Block {
    fn give(&mut self, bit: u64) -> bool {
        let was = self.used & bit != 0;
        self.used &= !bit;
        self.free += u16::from(was);
        was
    }
}

#[inline(never)]
pub fn given(block: &mut Block, bit: u64) -> u32 {
    if !block.give(bit) {
        return 0;
    }
    if block.free == 4 { 2 } else { 1 }
}

fn main() {
    // Not known when it is compiled.
    let bit = 1 << std::env::args().count();
    let mut block = Block { free: 3, used: u64::MAX };
    std::process::exit(if given(&mut block, bit) == 2 && block.free == 4 { 0 } else { 1 });
}
