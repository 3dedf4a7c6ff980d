// What functions whose code is not there do with memory.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace catena {

/// One thing that a library function does. Arguments count from 0.
struct Effect {
    enum Kind : uint8_t {
        ReturnsFresh,    // a new object
        ReturnsOpaque,   // a new object that only the library looks into
        ReturnsStatic,   // the library's one static object
        ReturnsArgument, // argument `a`
        ReturnsInto,     // a pointer anywhere into what argument `a` points to
        ReturnsCast,     // the same, where an object lies of the class whose type information is argument `b`
        ReturnsPointee,  // a pointer that lies where argument `a` points to
        ReturnsReached,  // a pointer to anything that can be reached from argument `a`
        Reads,           // what argument `a` points to
        ReadsDeep,       // all that can be reached from argument `a`
        Writes,          // what argument `a` points to
        Copies,          // from what `a` points to, to what `b` points to
        Stores,          // the pointer `a` in what `b` points to
        Links,           // pointers `a` and `b` anywhere in what the other one points to
        StoresNew,       // a pointer to a new object in what `a` points to
        WritesDeep,      // all that can be reached from argument `a`
        Keeps,           // the pointer `a` in `memory`
        KeepsCopy,       // a copy of what `a` points to in `memory`
        ReturnsKept,     // a pointer that lies in `memory`
        GivesCopy,       // a copy of `memory` in what `b` points to
        ReturnsMemory,   // a pointer to `memory`
        StoresMemory,    // a pointer to `memory` in what `b` points to
        Calls,           // the function `a` points to, with `arguments`
        CallsThrough, // the functions that are found from `a` by following pointers `b` times (struct sigaction: once)
        CallsKept,    // the same from pointers that lie in `memory`: the functions themselves if `b` is 0
        StartsThread, // the same, in a thread of its own
    };
    /// In `arguments`: a new object, nothing that points, or what lies in memory 0 of the library (-4 is memory 1, ..).
    static constexpr int newObject = -1, noPointer = -2, firstKept = -3;

    Kind kind;
    unsigned a = 0, b = 0;
    std::vector<int> arguments = {};
    /// The library's own memory that it speaks of, by number.
    int memory = 0;
};

/// The effects of library functions by name.
class LibraryEffects {
public:
    /// Read the list that comes with the program.
    static LibraryEffects standard();
    /// Add a list in the format of `lists/c-library.list`; a later line replaces what was said of a function before.
    ///
    /// Errors name file and line.
    llvm::Error add(llvm::StringRef file, llvm::StringRef text);
    /// Take away the code of a program's own functions that an added list names: the list is taken at its word. That
    /// is how a program's pools are told apart, whose code hands out what it was given back.
    void replaceCode(llvm::Module &program) const;
    /// Return the effects of a function (none for a pure one), or null if it is not in a list.
    const std::vector<Effect> *find(llvm::StringRef name) const;
    /// Return the names of all functions in the lists.
    std::vector<llvm::StringRef> names() const;

private:
    llvm::StringMap<std::vector<Effect>> effects;
    /// Functions of the standard list; a program's code for these is taken for what it is.
    llvm::StringSet<> ofStandard;
    /// Memory of libraries that outlives calls, by name: what strtok and epoll remember.
    llvm::StringMap<int> memories;
};

} // namespace catena
