// What a packet function does that no packet depends on: logs, locks, statistics, time.
#pragma once

#include "reduce/written.h"
#include "llvm/IR/Instructions.h"

namespace catena {

/// What a statement is for that no packet depends on.
enum class Purpose {
    Log,        // it writes a log
    Locks,      // it orders threads
    Statistics, // it updates memory that is read, but by nothing that packets depend on
    Time,       // it asks for the time
    Other,      // it updates memory that nothing reads, or does what only a library knows
};
constexpr Purpose allPurposes[] = {Purpose::Log, Purpose::Locks, Purpose::Statistics, Purpose::Time, Purpose::Other};

/// Return the name of a purpose.
llvm::StringRef name(Purpose purpose);

/// What the user wants to be dropped; nothing if nothing is said.
struct ExtractionChoice {
    std::set<Purpose> dropped;
    /// Statements that stay, by file and line.
    std::vector<Place> kept;

    /// Add purposes as the command line has them: names with commas between, or `all`.
    llvm::Error drop(llvm::StringRef words);
    /// Take purposes off again, or keep the statements of a line, FILE:LINE; with commas between.
    llvm::Error keep(llvm::StringRef words);
};

/// A statement of a packet function that no packet depends on.
struct IrrelevantStatement {
    Purpose purpose;
    Place place;
    /// The function it calls, or the variable it updates.
    std::string what;
    enum Fate {
        Kept,    // nobody asked to drop it
        Needed,  // what is kept depends on it
        Dropped, // it is gone
    } fate;
};

/// What became of a packet function: the slice that is left, and what is not in it.
struct Extraction {
    std::vector<IrrelevantStatement> statements;
    /// Statements elsewhere that show what is dropped: a summary at the end.
    std::vector<IrrelevantStatement> showing;
    /// Memory that is no longer updated.
    WrittenMemory leftOut;
    unsigned instructionsBefore = 0, instructionsAfter = 0;

    bool drops() const {
        return llvm::any_of(statements, [](const auto &one) { return one.fate == IrrelevantStatement::Dropped; });
    }
};

/// The packet-processing logic of a packet function, and what is not part of it.
struct PacketLogic {
    Extraction found;
    /// The instructions outside the slice, branches among them.
    std::vector<llvm::Instruction *> outside;
    /// Questions whether allocations failed that are outside too, with the answer that they did not.
    std::vector<std::pair<llvm::Instruction *, llvm::Constant *>> succeeded;
};

/// Find the packet-processing logic of a packet function whose calls are inlined and whose locals are values: the slice
/// of what sends packets, of what ends the program, and of all that is not to be dropped. Nothing is changed, but that
/// calls that write what is left out are marked.
///
/// Errors: a choice that cannot be followed.
llvm::Expected<PacketLogic> findPacketLogic(llvm::Function &packet, const Reception &reception,
                                            const AnalysisOptions &options, const ExtractionChoice &choice);

/// The mark of calls that write what is left out: they are passed over when programs are compared.
extern const char *const leftOutMark;

} // namespace catena
