// Writing the report as JSON.
#include "report/json.h"

#include "report/table.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace catena {

namespace {

/// Names come from debug information and need not be UTF-8.
std::string text(StringRef bytes) { return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes); }

json::Object place(const Place &place) {
    json::Object object{{"file", text(place.file)}, {"line", place.line}};
    if (!place.function.empty()) object["function"] = text(place.function);
    return object;
}

json::Object variable(const Variable &variable) {
    static const char *const kinds[] = {"global", "static", "local", "parameter"};
    json::Array why, fields, output;
    for (const Step &step : variable.why) {
        json::Object one = place(step.place);
        one["what"] = text(step.what);
        why.push_back(std::move(one));
    }
    for (const std::string &field : variable.flowspace) fields.push_back(text(field));
    if (variable.packetOutput) output.push_back("packets");
    if (variable.logOutput) output.push_back("logs");
    json::Object object{{"name", text(variable.name)},
                        {"type", text(variable.type)},
                        {"kind", kinds[variable.kind]},
                        {"declared", place(variable.declared)},
                        {"top_level", variable.topLevel()},
                        {"updateable", variable.updateable},
                        {"access", accessPattern(variable.reads, variable.writes)},
                        {"reads", variable.reads},
                        {"writes", variable.writes},
                        {"output", std::move(output)},
                        {"unread", variable.unread},
                        {"why", std::move(why)}};
    if (variable.topLevel()) object["use"] = variable.use == Variable::Named ? "named" : "pointer";
    object["scope"] = variable.keyed ? json::Value(std::move(fields)) : json::Value(nullptr);
    return object;
}

json::Array updates(const std::vector<UpdateFound> &found) {
    json::Array array;
    for (const UpdateFound &one : found) {
        json::Object object = place(one.place);
        object["bits"] = one.bits;
        object["pruned"] = one.pruned;
        array.push_back(std::move(object));
    }
    return array;
}

json::Array places(const std::vector<PacketPlaceFound> &found) {
    json::Array array;
    for (const PacketPlaceFound &one : found) {
        json::Object object = place(one.place);
        object["name"] = text(one.name);
        array.push_back(std::move(object));
    }
    return array;
}

json::Array strings(const std::vector<std::string> &list) {
    json::Array array;
    for (const std::string &one : list) array.push_back(text(one));
    return array;
}

json::Object object(const StateReport &report) {
    json::Array variables;
    unsigned counts[6] = {};
    for (const Variable &one : report.variables) {
        json::Object described = variable(one);
        if (one.updateable) described["bit"] = counts[1];
        variables.push_back(std::move(described));
        counts[0] += one.topLevel(), counts[1] += one.updateable, counts[2] += one.packetOutput;
        counts[3] += one.logOutput, counts[4] += one.packetOutput && one.logOutput;
        counts[5] += one.unread;
    }
    json::Object seconds;
    for (const auto &[step, time] : report.seconds) seconds[step] = time;
    json::Object root{{"schema", 1},
                      {"program", text(report.program)},
                      {"counts", json::Object{{"variables", report.allVariables},
                                              {"persistent", report.variables.size()},
                                              {"top_level", counts[0]},
                                              {"updateable", counts[1]},
                                              {"impact_packets", counts[2]},
                                              {"impact_logs", counts[3]},
                                              {"impact_both", counts[4]},
                                              {"unread", counts[5]},
                                              {"procedures", report.procedures},
                                              {"packet_procedures", report.packetProcedures.size()},
                                              {"instructions", report.instructions},
                                              {"locations", report.locations},
                                              {"vertices", report.vertices},
                                              {"edges", report.edges}}},
                      {"seconds", std::move(seconds)},
                      {"variables", std::move(variables)},
                      {"receives", places(report.receives)},
                      {"sends", places(report.sends)},
                      {"logs", places(report.logs)},
                      {"loop_procedures", strings(report.loopProcedures)},
                      {"packet_procedures", strings(report.packetProcedures)},
                      {"unmodelled", strings(report.unmodelled)}};
    if (!report.updates.empty()) root["updates"] = updates(report.updates);
    return root;
}

} // namespace

void writeJson(const std::vector<StateReport> &reports, raw_ostream &out) {
    json::Array all;
    for (const StateReport &report : reports) all.push_back(object(report));
    json::Value value = all.size() == 1 ? std::move(all.front()) : json::Value(std::move(all));
    out << formatv("{0:2}", value) << "\n";
}

} // namespace catena
