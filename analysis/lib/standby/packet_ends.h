// Finds the places of a program where one packet's processing has ended and the next one's has not begun.
#pragma once

#include "statealyzr/findings.h"

namespace catena {

/// A place where packets end, in the original program.
struct PacketEnd {
    /// Before the instruction the state is that between two packets.
    llvm::Instruction *before;
    /// The reception it belongs to: ends of one reception are one to a standby.
    unsigned reception;
    /// Whether a packet is received next; not so where a library that calls back has returned.
    bool receives = true;
};

/// The places where packets end, and the receptions they belong to.
struct PacketEnds {
    std::vector<PacketEnd> ends;
    std::vector<Place> receptions;
};

/// Find where packets end: before each reception in a packet loop; of a library that calls back, when it does, and when
/// it returns.
///
/// Of several receptions in one loop the first is meant: what stands between them is done for one packet. Errors: a
/// program in which no such place can be named, threads, and loops whose variables were optimized into registers.
llvm::Expected<PacketEnds> packetEnds(const StateFindings &findings);

} // namespace catena
