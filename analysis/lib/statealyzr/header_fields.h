// Names the header fields that pointers into packets point to.
#pragma once

#include "program/debug_names.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"
#include <string>

namespace catena {

/// The members of structs that lie over packets: the system's by the names of `lists/header-fields.list`, the program's
/// own by struct and member.
class HeaderFields {
public:
    explicit HeaderFields(const llvm::Module &program);
    /// Name the header field that a pointer into a packet points to; empty if it is none.
    ///
    /// A struct that holds pointers lies over no packet: it is the program's own, with a buffer for packets in it.
    std::string nameOf(const llvm::Value *pointer) const;

private:
    const llvm::DataLayout &layout;
    StructNames structs;
    /// By struct and member.
    llvm::StringMap<std::string> listed;
};

} // namespace catena
