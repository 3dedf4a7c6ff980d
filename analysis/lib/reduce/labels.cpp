// Algorithm 1 (Deng and Wu, NFReducer):
//
//      3 VS = VS U GlobalVarDecls(S)
//      4 VS = VS U StaticVarDecls(S)
//      5 VS = VS U LocalVarDecls(LoopProc)
//   6-15 SV = those that an assignment in LoopProc writes
//     16 CV = VS - SV
//  17-21 without those that LoopProc does not use
//
// Two departures. A state variable "maintains cross-packet information" by the text; one that every packet sets anew
// before it is read does not, and is a temporary one here. And a variable that leads to state (a table, an open file)
// is not written itself: it is configuration.
#include "reduce/labels.h"

using namespace llvm;

namespace catena {

unsigned Labels::count(Label label) const {
    return count_if(variables, [&](const LabelledVariable &variable) { return variable.label == label; });
}

Labels labelVariables(const Module &program, const Reception &reception, const PacketPhase &phase, const Frozen &frozen,
                      const std::map<std::string, PrivateParts> &privates, const GivenLabels &given) {
    Labels labels;
    for (const LiftedLocal &parameter : reception.callbackParameters)
        labels.variables.push_back({Label::Packet, parameter.name, parameter.type, parameter.declared,
                                    reception.name + " hands the packet over in it"});
    auto rested = frozen.bytesByGlobal();
    for (const GlobalVariable &global : program.globals()) {
        if (global.isDeclaration() || global.isConstant()) continue;
        std::string symbol = global.getName().str();
        LabelledVariable variable;
        if (auto local = reception.locals.find(symbol); local != reception.locals.end()) {
            variable.name = local->second.name, variable.type = local->second.type;
            variable.declared = local->second.declared;
        } else if (const DIGlobalVariable *source = sourceVariable(global)) {
            variable.name = source->getName().str(), variable.type = typeName(source->getType());
            variable.declared = {source->getFilename().str(), source->getLine(), ""};
        } else {
            continue;
        }
        auto written = phase.globals.find(symbol);
        bool writes = written != phase.globals.end();
        if (!phase.used.count(symbol) && !writes) continue;
        auto own = privates.find(symbol);
        if (is_contained(reception.packetVariables, symbol) && writes) {
            variable.label = Label::Packet;
            variable.why = reception.name + " hands the packet over in it";
        } else if (own != privates.end() && own->second.parts == own->second.ofOnePacket) {
            variable.label = Label::Temporary;
            variable.why = "every packet sets it before it reads it";
        } else if (writes) {
            variable.label = Label::State;
            variable.why = "packet processing may write it";
            if (auto bytes = rested.find(symbol); bytes != rested.end())
                variable.why += ", but for " + std::to_string(bytes->second) + " bytes that are used as configuration";
            if (own != privates.end() && own->second.ofOnePacket)
                variable.why += "; " + std::to_string(own->second.ofOnePacket) + " of " +
                                std::to_string(own->second.parts) + " parts are of one packet only";
        } else {
            variable.label = Label::Configuration;
            auto bytes = rested.find(symbol);
            variable.why = bytes == rested.end()
                               ? "never written while packets are processed; nothing was gained by its value"
                               : "never written while packets are processed";
        }
        if (auto known = given.find(symbol); known != given.end()) {
            variable.why = "given by " + known->second.where;
            variable.label = known->second.label;
        }
        labels.variables.push_back(std::move(variable));
    }
    auto order = [](const LabelledVariable &variable) {
        return std::tuple(variable.label, variable.declared.file, variable.declared.line, variable.name);
    };
    sort(labels.variables, [&](const auto &a, const auto &b) { return order(a) < order(b); });
    return labels;
}

} // namespace catena
