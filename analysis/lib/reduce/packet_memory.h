// The packet at hand as memory that does not change while it is processed.
#pragma once

#include "reduce/written.h"

namespace catena {

/// Pointers to the received packet and to its header, as values of the packet function; null where they are not known,
/// or where packet processing may write there.
struct PacketMemory {
    llvm::Value *packet = nullptr, *header = nullptr;
    bool isKnown() const { return packet && header; }
};

/// Find the packet, and read the variables that lead to it only once.
PacketMemory holdPacket(llvm::Function &packet, const Reception &reception, const PacketPhase &phase);

/// Tell LLVM's passes, by alias scopes, that what the packet function writes is not the packet.
void markPacketMemory(llvm::Function &packet, const PacketMemory &memory);

} // namespace catena
