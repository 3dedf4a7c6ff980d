// A handler of signals could not remove a folder: what that takes is not allowed in one, and nothing handles SIGKILL.
#include "reduce/leftovers.h"

#include "llvm/Support/FileSystem.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

/// Programs that were started may write for a moment yet.
constexpr unsigned attempts = 20;
constexpr useconds_t pause = 100'000;

[[noreturn]] void wait(int lifeline, const std::string &folder) {
    // Ctrl-C goes to the terminal's whole group.
    setsid();
    // Whoever reads what is printed, or waits for another folder's end, waits for all who hold a pipe of it open.
    dup2(lifeline, STDIN_FILENO);
    close_range(STDIN_FILENO + 1, ~0U, 0);
    char byte;
    ssize_t count;
    do count = read(STDIN_FILENO, &byte, 1);
    while (count < 0 && errno == EINTR);
    if (count > 0) _exit(0);
    for (unsigned attempt = 0; attempt < attempts && sys::fs::exists(folder); ++attempt) {
        if (attempt) usleep(pause);
        sys::fs::remove_directories(folder);
    }
    _exit(0);
}

} // namespace

Leftovers::Leftovers(StringRef folder) {
    int ends[2];
    // Without one the folder is left behind by a signal, which is no reason not to work.
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    waiting = fork();
    if (waiting == 0) {
        close(ends[1]);
        wait(ends[0], folder.str());
    }
    close(ends[0]);
    lifeline = ends[1];
}

Leftovers::Leftovers(Leftovers &&other) : waiting(other.waiting), lifeline(other.lifeline) {
    other.waiting = -1;
    other.lifeline = -1;
}

void Leftovers::disown() {
    // Any byte says so, and the last end closes after it.
    if (lifeline >= 0) std::ignore = write(lifeline, "", 1);
}

Leftovers::~Leftovers() {
    if (lifeline >= 0) close(lifeline);
    if (waiting > 0) waitpid(waiting, nullptr, 0);
}

} // namespace catena
