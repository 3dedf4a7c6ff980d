// Writing the manifest.
#include "report/manifest.h"

#include "report/table.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace catena {

namespace {

std::string text(StringRef bytes) { return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes); }

} // namespace

void writeManifest(const StateReport &report, raw_ostream &out) {
    json::Array objects;
    for (const StateObject &object : report.objects) {
        json::Array scope;
        for (const std::string &field : object.scope) scope.push_back(text(field));
        std::string declared = object.declared.file + ":" + std::to_string(object.declared.line);
        objects.push_back(json::Object{{"name", text(object.name)},
                                       {"type", text(object.type)},
                                       {"declared", text(declared)},
                                       {"scope", std::move(scope)},
                                       {"access", accessPattern(object.reads, object.writes)},
                                       {"from_packets", object.fromPackets},
                                       {"unread", object.unread}});
    }
    json::Object root{{"manifest", 1}, {"program", text(report.program)}, {"objects", std::move(objects)}};
    out << formatv("{0:2}", json::Value(std::move(root))) << "\n";
}

} // namespace catena
