// The functions by which packets enter and leave a program.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace catena {

/// Where a packet function's packet is.
struct PacketPlace {
    enum Kind { Return, Argument, ThroughArgument, CallbackParameter } kind;
    unsigned argument = 0;
    unsigned parameter = 0;
};

/// A function that receives or sends packets, writes a log, or only asks or closes the device, socket or file of these;
/// or one that packets do not need: it orders threads, asks for the time, or does nothing but read and write the memory
/// that it is given.
struct PacketFunction {
    enum Kind { Receive, Send, Log, Device, Lock, Time, Memory } kind;
    std::vector<PacketPlace> packets;
    /// Arguments that only name the device, socket or file.
    std::vector<unsigned> handles;
};

/// PKT_RECV_FUNC, PKT_OUTPUT_FUNC and LOG_OUTPUT_FUNC of Khalid's dissertation, Figures 4.7 and 4.11.
class PacketFunctions {
public:
    /// Read the list that comes with the program.
    static PacketFunctions standard();
    /// Add a list in the format of `lists/packet-functions.list`. Errors name file and line.
    llvm::Error add(llvm::StringRef file, llvm::StringRef text);
    /// Add a receive function as the command line has it: NAME, with its packet in argument 1 and its handle in
    /// argument 0, or NAME:packet=..[,handle=N].
    llvm::Error addReceive(llvm::StringRef one);
    const PacketFunction *find(llvm::StringRef name) const;
    /// Return the names of all functions of a kind, sorted.
    std::vector<llvm::StringRef> names(PacketFunction::Kind kind) const;

private:
    llvm::StringMap<PacketFunction> functions;
};

} // namespace catena
