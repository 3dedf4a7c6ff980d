// What a program writes while it processes packets.
#pragma once

#include "pointsto/points_to.h"
#include "reduce/reception.h"
#include <set>

namespace catena {

/// The bytes of one object that packet processing may write: by ranges, or all.
struct WrittenBytes {
    /// [begin, end), and, with a period, again that many bytes behind, and so on: a member of all elements of an array.
    struct Range {
        uint64_t begin, end, period = 0;
    };
    bool all = false;
    std::vector<Range> ranges;
    bool touches(uint64_t begin, uint64_t end) const;
};

/// Memory that may be written: globals by name, heap objects by the number of the call that allocates them.
struct WrittenMemory {
    std::map<std::string, WrittenBytes> globals;
    std::map<unsigned, WrittenBytes> heap;
    void add(const SparseSet &locations, const Memory &memory);
};

/// What may change between the first packet's reception and the last one's processing.
struct PacketPhase : WrittenMemory {
    /// Calls that allocate blocks of which all is known: of library functions, and of the program's own allocators.
    std::set<unsigned> allocations;
    /// The program's own allocators (xmalloc), by name: of what they allocate, the call that called them counts.
    std::set<std::string> allocators;
    /// Calls whose objects packet processing may give back or move.
    std::set<unsigned> freed;
    /// Local variables of procedures around the one with the packet loop that packets may write.
    std::set<std::string> outerLocals;
    /// Globals that packet processing uses by name.
    std::set<std::string> used;
    /// Functions with code that process packets, by name.
    std::vector<std::string> functions;
    /// Library functions that had to be guessed.
    std::vector<std::string> unmodelled;
};

/// Find what a program whose locals are lifted may write from its reception on, until no packet follows: by the loops
/// around the reception, all they call, and all that libraries call back (signals, threads, timers).
PacketPhase packetPhase(const llvm::Module &program, const Reception &reception, const AnalysisOptions &options);

} // namespace catena
