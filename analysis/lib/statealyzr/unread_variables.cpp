// A variable is unread if a forward slice from all that is stored in it, and in what it leads to, stays within it. It
// leaves where another variable or the heap is written, and where a function without code is called, gets an argument
// or reads memory: nobody knows what that function does with it. Temporary locals are passed through. A condition on
// the variable counts by what it decides: `if (count < MAX) count++` reads `count` only to update it.
//
// Such a variable impacts no output, but not every variable without impact is unread: another one may be computed from
// it. What is unread need not be moved, cloned or stored anywhere.
#include "statealyzr/unread_variables.h"

#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

bool isOutside(const CallBase &call, const PointsTo &pointsTo) {
    if (call.getIntrinsicID() != Intrinsic::not_intrinsic) return false;
    const auto &callees = pointsTo.callees(call);
    return call.isInlineAsm() || callees.empty() ||
           any_of(callees, [](const Function *callee) { return callee->isDeclaration(); });
}

} // namespace

bool isUnread(const SparseSet &within, const SparseSet &persistent, const PacketProcedures &packet,
              const Graph &graph) {
    const PointsTo &pointsTo = graph.pointsTo();
    auto isRead = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        if (info.kind == VertexKind::Definition) {
            if (within.contains(info.index)) return false;
            bool temporary = pointsTo.memory().objectOf(info.index).kind == Object::Stack;
            return !temporary || persistent.contains(info.index);
        }
        if (info.kind != VertexKind::Call && info.kind != VertexKind::Argument && info.kind != VertexKind::CallResult)
            return false;
        return isOutside(*cast<CallBase>(info.value), pointsTo);
    };
    std::vector<Vertex> stored;
    for (Location location : within) stored.push_back(graph.ofLocation(location));
    // A slice is as large as what it meets; the first thing read ends the search.
    bool read = false;
    SliceLimits limits;
    limits.vertices = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
        return !instruction || packet.executed->contains(instruction);
    };
    limits.ends = [&](Vertex vertex) { return read = read || isRead(vertex); };
    Slice slice(graph, stored, Slice::Forward, limits);
    return !read;
}

void markUnread(std::vector<Variable> &variables, const PacketProcedures &packet, const Graph &graph) {
    SparseSet persistent;
    for (const Variable &variable : variables) persistent.add(variable.own);
    for (Variable &variable : variables)
        if (variable.updateable && !variable.packetOutput && !variable.logOutput)
            variable.unread = isUnread(variable.reach, persistent, packet, graph);
}

} // namespace catena
