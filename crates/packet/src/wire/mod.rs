//! Header views: one protocol a file, checked once, then cheap.
/// stub
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Layers {
    pub l3: u8,
    pub net: Net,
    pub proto: u8,
    pub flags: u8,
    pub l4: u16,
    pub payload: u16,
}
#[repr(u8)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Net {
    #[default]
    Other = 0,
    Ipv4 = 4,
    Ipv6 = 6,
    Arp = 1,
}
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    A,
}
pub fn parse(_f: &[u8]) -> Result<Layers, Malformed> {
    Ok(Layers::default())
}
