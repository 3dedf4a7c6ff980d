// What is of one packet only: globals, or parts of them, whose value no later packet sees.
#pragma once

#include "llvm/IR/Module.h"
#include <map>
#include <set>
#include <string>

namespace catena {

/// What became of a global variable that only the packet function uses.
struct PrivateParts {
    /// Scalars within it, and those of them that are of one packet only.
    unsigned parts = 0, ofOnePacket = 0;
};

/// Move globals that only the packet function uses into registers for the time of a packet, and no longer write back
/// the parts that every packet sets before it reads them.
///
/// Such a part has the value that the packet before left there when the function begins. If this value is used for
/// nothing but to be left there again, no packet's processing depends on it, and it need not be left. What a packet
/// changes (a counter) is used, and stays.
/// All parts of `temporaries` are taken to be so.
///
/// With `pointersOnly` only variables that are pointers.
std::map<std::string, PrivateParts> makePrivate(llvm::Function &packet, const std::set<std::string> &temporaries = {},
                                                bool pointersOnly = false);

} // namespace catena
