// Where a type of the source holds pointers, as constants in the program: struct catena_type of runtime/layout.h.
#pragma once

#include "program/debug_names.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

namespace catena {

/// Makes a constant string in a program, one for each text.
class Texts {
public:
    explicit Texts(llvm::Module &program) : program(program) {}
    llvm::Constant *of(llvm::StringRef bytes);

private:
    llvm::Module &program;
    llvm::StringMap<llvm::Constant *> made;
};

/// Makes the descriptors of types; debug information says where their pointers are.
class TypeLayouts {
public:
    TypeLayouts(llvm::Module &program, const StructNames &names, Texts &texts);

    /// Return the descriptor of a type, or null if it holds no pointers.
    llvm::Constant *of(const llvm::DIType *type);

private:
    /// A place in a type where pointers are: struct catena_slot.
    struct Slot {
        uint64_t offset;
        unsigned kind, count;
        llvm::Constant *element;
        std::string member;
    };
    void add(std::vector<Slot> &slots, const llvm::DIType *type, uint64_t offset, const std::string &member);
    void addArray(std::vector<Slot> &slots, const llvm::DICompositeType *array, uint64_t offset,
                  const std::string &member);
    void addMembers(std::vector<Slot> &slots, const llvm::DICompositeType *type, uint64_t offset,
                    const std::string &member);
    const llvm::DICompositeType *whole(const llvm::DIType *type) const;
    bool isLibrarys(const llvm::DIType *pointee) const;

    llvm::Module &program;
    const StructNames &names;
    Texts &texts;
    llvm::StructType *slotType, *typeType;
    llvm::DenseMap<const llvm::DIType *, llvm::Constant *> made;
};

/// Return whether a struct's last member is an array of any length.
bool isOpen(const llvm::DICompositeType *type);

} // namespace catena
