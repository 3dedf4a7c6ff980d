// A folder of temporary files goes with the process that made it, however that ends: by Ctrl-C, a signal, or a crash.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <sys/types.h>

namespace catena {

/// A process that waits for the end of this one, and removes a folder then. It ends with this object too. It is there
/// before the folder is, so that no end comes between.
class Leftovers {
public:
    explicit Leftovers(llvm::StringRef folder);
    Leftovers(Leftovers &&other);
    Leftovers &operator=(Leftovers &&) = delete;
    ~Leftovers();
    /// The folder is another's: leave it alone.
    void disown();

private:
    pid_t waiting = -1;
    int lifeline = -1;
};

} // namespace catena
