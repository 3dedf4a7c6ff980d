// Where a program receives its packets, and the function that processes one.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include <map>
#include <optional>

namespace catena {

/// A local variable of the loop procedure that became a global one.
struct LiftedLocal {
    std::string name, type;
    Place declared;
    bool parameter;
};

/// A program whose packets enter at one place, taken apart there.
struct Reception {
    /// The call that waits for a packet, in the loop procedure; or the call of a library that calls back for each.
    llvm::CallBase *call = nullptr;
    std::string name;
    Place place;
    /// What the library calls back, or null where the program has the loop.
    llvm::Function *callback = nullptr;
    /// The locals of the loop procedure, by the name of the global variable that each became.
    std::map<std::string, LiftedLocal> locals;
    /// Of these, the ones by which the reception hands a packet over.
    std::vector<std::string> packetVariables;
    /// Where libpcap puts a packet and before it its header: parameters of the packet function, or else globals that
    /// get the pointers. Nothing for other receptions.
    std::optional<unsigned> packetParameter;
    std::string packetGlobal, headerGlobal;
    /// The parameters of the callback in which packets are.
    std::vector<LiftedLocal> callbackParameters;
};

/// The number that a call keeps in every copy of its program.
unsigned callNumber(const llvm::CallBase &call);
/// Give numbers above `last`, and above all that are there, to the calls that have none; return the last one.
unsigned numberCalls(llvm::Module &program, unsigned last);
/// Return the calls of a program by their numbers.
std::map<unsigned, llvm::CallBase *> numberedCalls(llvm::Module &program);

/// Turn the cells on the stack of a procedure that runs once at a time into global variables.
void liftLocals(llvm::Function &function, Reception &reception);

/// Find the reception of a program, number its calls, and turn the locals of its loop procedure into global variables.
///
/// The loop procedure runs once at a time and its locals live as long as the loop: that they lie on the stack or in
/// globals makes no difference, but as globals they are configuration, state and temporaries like all others.
/// `lifted` are locals for which that was done before. Errors: no reception, or several.
llvm::Expected<Reception> findReception(llvm::Module &program, const AnalysisOptions &options,
                                        std::map<std::string, LiftedLocal> lifted = {});

/// Move the processing of one packet into a function of its own, and return it.
///
/// In a loop that is what follows the reception up to the next; a callback is cloned, and gets what its library passes
/// on unchanged from global variables. Errors: a loop whose body cannot be taken out.
llvm::Expected<llvm::Function *> outlinePacketFunction(Reception &reception);

} // namespace catena
