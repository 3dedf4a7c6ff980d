// Configuration as constants: what memory holds at the first reception and keeps while packets are processed.
#pragma once

#include "reduce/image.h"
#include "reduce/written.h"
#include "llvm/IR/Instructions.h"

namespace catena {

/// Folds loads from frozen memory, and remembers which facts the reduced program rests on.
///
/// Objects keep their identity: a pointer to a block on the heap stands in the code as the address of a placeholder,
/// which `finish` replaces by the block's address in the run at hand. So state may lead to configuration, counters may
/// lie beside it, and what frees it at the end frees the real block.
class Frozen {
public:
    Frozen(llvm::Module &program, const Image &image, const PacketPhase &phase, const LibraryEffects &library);

    /// Return what a load would read, or null if that is not frozen. With `rely` the program rests on it from now on.
    llvm::Constant *load(const llvm::Value *pointer, llvm::Type *type, bool rely);
    /// Replace the loads of a function that are frozen; return how many.
    unsigned foldLoads(llvm::Function &function);
    /// Return whether a constant is null or a place in an object that a table of addresses can name.
    bool isAddress(const llvm::Constant &value) const;
    /// Return a table of addresses that is filled in the run at hand, before the first reception.
    llvm::Constant *addresses(const std::vector<llvm::Constant *> &values);
    /// Replace placeholders by addresses, and add the table of facts with a check of it before the reception.
    void finish(llvm::CallBase &reception);

    /// The bytes that the program rests on, by the name of the global variable or, for blocks, the number of the call
    /// that allocated them.
    std::map<std::string, uint64_t> bytesByGlobal() const;
    std::map<unsigned, uint64_t> bytesBySite() const;
    /// The calls that allocate blocks which the program itself fills.
    const std::set<unsigned> &blocks() const { return ownBlocks; }

private:
    struct Fact {
        uint64_t size;
        std::optional<ImagePointer> pointer;
        uint64_t value;
    };
    using FactKey = std::pair<unsigned, uint64_t>;

    std::optional<unsigned> objectOf(const llvm::GlobalVariable *global) const;
    std::optional<ImagePointer> placeOf(const llvm::Constant &value) const;
    bool isKept(unsigned object, uint64_t begin, uint64_t end) const;
    llvm::Value *loadOfChoice(llvm::LoadInst &read);
    llvm::Constant *address(const ImagePointer &pointer);
    std::vector<std::pair<FactKey, Fact>> orderedFacts() const;
    void replacePlaceholders(const std::map<unsigned, llvm::Constant *> &slots);

    llvm::Module &program;
    const Image &image;
    const PacketPhase &phase;
    std::set<unsigned> ownBlocks;
    std::map<unsigned, llvm::GlobalVariable *> placeholders;
    llvm::DenseMap<const llvm::GlobalVariable *, unsigned> byPlaceholder;
    std::map<FactKey, Fact> facts;
    /// What stands in the tables of addresses, one behind the other; nothing for null.
    std::vector<std::optional<ImagePointer>> tabled;
    llvm::GlobalVariable *tables = nullptr;
};

} // namespace catena
