// Finds where packets are received, and the procedures that hold the packet loop.
#pragma once

#include "dependence/execution.h"
#include "library/packet_functions.h"
#include "pointsto/points_to.h"
#include "llvm/ADT/SetVector.h"

namespace catena {

/// A call by which packets enter or leave.
struct PacketCall {
    const llvm::CallBase *call;
    const PacketFunction *function;
    std::string name;
};

/// Return all calls, through pointers too, of listed functions of a kind; one the program defines itself counts as
/// well.
std::vector<PacketCall> packetCalls(const llvm::Module &program, const PointsTo &pointsTo,
                                    const PacketFunctions &functions, PacketFunction::Kind kind);

/// A procedure with a packet loop, and the blocks of that loop.
struct LoopProcedure {
    const llvm::Function *function;
    /// Calls in the loop that lead to the reception of a packet.
    std::vector<const llvm::CallBase *> receives;
};

/// Find the loop procedures: those with a loop in which packets are received (Khalid's dissertation, §4.3.1 and its
/// footnote 2).
///
/// From each reception the callers are climbed until one calls in a loop; a library that calls back is
/// such a loop. Beyond it only procedures count that must be on the stack at every reception. All callers of callers
/// would be sound too, but calls through pointers make that nearly every procedure of a large program.
std::vector<LoopProcedure> loopProcedures(const llvm::Module &program, const CallGraph &calls,
                                          const std::vector<PacketCall> &receives);

/// Return the blocks of the innermost loop around a call; empty if it is in none.
llvm::SmallPtrSet<const llvm::BasicBlock *, 16> loopAround(const llvm::Instruction &call);

/// Return a procedure that the user says holds the packet loop, with the calls in it that lead to receptions.
LoopProcedure namedLoop(const llvm::Function &function, const CallGraph &calls,
                        const std::vector<PacketCall> &receives);

} // namespace catena
