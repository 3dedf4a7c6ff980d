// Reading `lists/packet-functions.list` and lists of its kind.
#include "library/packet_functions.h"

#include "library/list_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <optional>

using namespace llvm;

namespace catena {

namespace {

std::optional<PacketPlace> readPlace(StringRef text) {
    PacketPlace place{PacketPlace::Return};
    if (text == "return") return place;
    if (text.contains('.')) {
        auto [argument, parameter] = text.split('.');
        place.kind = PacketPlace::CallbackParameter;
        if (argument.getAsInteger(10, place.argument) || parameter.getAsInteger(10, place.parameter)) return {};
        return place;
    }
    place.kind = text.consume_front("*") ? PacketPlace::ThroughArgument : PacketPlace::Argument;
    if (text.getAsInteger(10, place.argument)) return {};
    return place;
}

} // namespace

PacketFunctions PacketFunctions::standard() {
    PacketFunctions functions;
    // A test holds that the standard list is right.
    cantFail(functions.add("packet-functions.list", lists::packet_functions));
    return functions;
}

Error PacketFunctions::add(StringRef file, StringRef text) {
    for (const ListLine &line : parseList(text)) {
        if (line.words.size() < 2 || !line.rest.empty())
            return listError(file, line.number,
                             "a line is: receive|send|log|device|lock|time|memory FUNCTION [packet=..] [handle=N]");
        int kind = StringSwitch<int>(line.words[0])
                       .Case("receive", PacketFunction::Receive)
                       .Case("send", PacketFunction::Send)
                       .Case("log", PacketFunction::Log)
                       .Case("device", PacketFunction::Device)
                       .Case("lock", PacketFunction::Lock)
                       .Case("time", PacketFunction::Time)
                       .Case("memory", PacketFunction::Memory)
                       .Case("none", -1)
                       .Default(-2);
        if (kind == -2)
            return listError(file, line.number,
                             "`" + line.words[0] + "` is none of receive, send, log, device, lock, time, memory, none");
        if (kind == -1) {
            functions.erase(line.words[1]);
            continue;
        }
        PacketFunction function{static_cast<PacketFunction::Kind>(kind), {}, {}};
        for (StringRef word : ArrayRef(line.words).drop_front(2)) {
            auto [key, value] = word.split('=');
            unsigned argument = 0;
            if (auto place = key == "packet" ? readPlace(value) : std::nullopt)
                function.packets.push_back(*place);
            else if (key == "handle" && !value.getAsInteger(10, argument))
                function.handles.push_back(argument);
            else
                return listError(file, line.number,
                                 "`" + word + "` is none of packet=return, packet=N, packet=*N, packet=F.P, handle=N");
        }
        functions[line.words[1]] = std::move(function);
    }
    return Error::success();
}

Error PacketFunctions::addReceive(StringRef one) {
    auto [name, rest] = one.split(':');
    if (name.empty()) return listError("--receive", 1, "a function is missing: NAME, or NAME:packet=..[,handle=N]");
    std::string line = ("receive " + name + " " + (rest.empty() ? "packet=1 handle=0" : rest)).str();
    std::replace(line.begin(), line.end(), ',', ' ');
    return add("--receive", line);
}

const PacketFunction *PacketFunctions::find(StringRef name) const {
    auto found = functions.find(name);
    return found == functions.end() ? nullptr : &found->second;
}

std::vector<StringRef> PacketFunctions::names(PacketFunction::Kind kind) const {
    std::vector<StringRef> names;
    for (const auto &entry : functions)
        if (entry.second.kind == kind) names.push_back(entry.first());
    sort(names);
    return names;
}

} // namespace catena
