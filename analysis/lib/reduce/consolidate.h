// Duplicated and overwritten logic of a chain: what one function did for a packet, and another does again or undoes.
#pragma once

#include "reduce/buffers.h"
#include "reduce/private.h"

namespace catena {

/// What is known of a chain's packet function beside its code.
struct ChainKnowledge {
    const Reception &reception;
    const PacketPhase &phase;
    const LibraryEffects &library;
};

/// What was done.
struct Consolidated {
    /// Reads of a copy that became reads of the packet, or of what was stored; copies of copies that became copies of
    /// the packet; buffers that nothing reads any more.
    unsigned reads = 0, copies = 0, buffers = 0;
    /// Writes that now are done only where what they write is read, and those that nothing reads.
    unsigned sunk = 0, unread = 0;
};

/// Remove what a function does again that one before it did (lines 4 to 6 of Algorithm 4): reading the same bytes of
/// the packet, though it is handed a copy of it. Variables that are of one packet only are added to `privates`.
void removeDuplicated(llvm::Function &packet, const ChainKnowledge &chain, Consolidated &done,
                      std::map<std::string, PrivateParts> &privates);

/// Remove what a function writes to a packet that one after it drops, or overwrites (Algorithm 5).
void removeOverwritten(llvm::Function &packet, const ChainKnowledge &chain, Consolidated &done,
                       std::map<std::string, PrivateParts> &privates);

} // namespace catena
