// A file is another one if its number, its size or the time of its last change is another.
#include "reduce/watch.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>
#include <thread>

using namespace llvm;

namespace catena {

namespace {

constexpr auto period = std::chrono::milliseconds(200);

/// Return what tells a file from what stood in its place before.
std::string stateOf(const std::string &path) {
    sys::fs::file_status status;
    if (sys::fs::status(path, status)) return "";
    auto changed = status.getLastModificationTime().time_since_epoch().count();
    return std::to_string(status.getUniqueID().getFile()) + " " + std::to_string(status.getSize()) + " " +
           std::to_string(changed);
}

std::vector<std::string> statesOf(const std::vector<std::string> &paths) {
    std::vector<std::string> states;
    for (const std::string &path : paths) states.push_back(stateOf(path));
    return states;
}

} // namespace

WatchedFiles::WatchedFiles(std::vector<std::string> files) : paths(std::move(files)), seen(statesOf(paths)) {}

void WatchedFiles::wait() {
    std::vector<std::string> last = seen;
    for (;;) {
        std::this_thread::sleep_for(period);
        std::vector<std::string> now = statesOf(paths);
        // Whoever writes it may not be done.
        if (now != seen && now == last) {
            seen = now;
            return;
        }
        last = std::move(now);
    }
}

std::vector<std::string> namedFiles(const CommandLine &line) {
    std::vector<std::string> files;
    for (StringRef word : line.words)
        for (StringRef name : {word, word.split('=').second})
            if (!name.empty() && sys::fs::is_regular_file(name)) files.push_back(name.str());
    return files;
}

} // namespace catena
