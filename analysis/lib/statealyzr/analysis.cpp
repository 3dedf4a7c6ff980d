// The steps in their order. Loop procedures are found on a program whose locals are all promoted; then the program is
// taken anew, and theirs are left as they are.
#include "statealyzr/analysis.h"

#include "program/bitcode.h"
#include "program/promotion.h"
#include "statealyzr/findings.h"
#include "statealyzr/flowspaces.h"
#include "statealyzr/output_impact.h"
#include "statealyzr/persistent_variables.h"
#include "statealyzr/unread_variables.h"
#include "statealyzr/updateable_variables.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>

using namespace llvm;

namespace catena {

char NoReception::ID;

namespace {

class Clock {
public:
    explicit Clock(StateReport &report) : report(report) {}
    void step(const char *name) {
        auto now = std::chrono::steady_clock::now();
        report.seconds.push_back({name, std::chrono::duration<double>(now - last).count()});
        last = now;
    }

private:
    StateReport &report;
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

Error noReception(const PacketFunctions &functions) {
    std::string known;
    for (StringRef name : functions.names(PacketFunction::Receive)) known += (known.empty() ? "" : ", ") + name.str();
    return make_error<NoReception>("no packet is received: the program calls none of " + known +
                                   ". Name the function that it receives packets with: --receive NAME, or a list by "
                                   "--functions FILE");
}

std::vector<PacketPlaceFound> places(const std::vector<PacketCall> &calls) {
    std::vector<PacketPlaceFound> found;
    for (const PacketCall &call : calls) found.push_back({call.name, placeOf(*call.call)});
    return found;
}

std::vector<LoopProcedure> findLoops(const Module &program, const CallGraph &calls,
                                     const std::vector<PacketCall> &receives, const AnalysisOptions &options) {
    if (options.loops.empty()) return loopProcedures(program, calls, receives);
    std::vector<LoopProcedure> loops;
    for (const std::string &name : options.loops)
        loops.push_back(namedLoop(*program.getFunction(name), calls, receives));
    return loops;
}

} // namespace

Expected<StateReport> findState(const ProgramSource &source, const AnalysisOptions &options, const FindingsUse &use) {
    StateReport report;
    Clock clock(report);
    StringSet<> kept;
    {
        auto program = source();
        if (!program) return program.takeError();
        report.program = (*program)->getSourceFileName();
        report.allVariables = countVariables(**program);
        for (const Function &function : **program) {
            report.procedures += !function.isDeclaration();
            report.instructions += function.getInstructionCount();
        }
        for (const std::string &name : options.loops)
            if (const Function *function = (*program)->getFunction(name); !function || function->isDeclaration())
                return failure("--loop " + name + ": the program has no function of this name");
        options.library.replaceCode(**program);
        promoteLocals(**program, {});
        clock.step("read");
        PointsTo pointsTo(**program, options.library, options.pointsTo());
        auto receives = packetCalls(**program, pointsTo, options.functions, PacketFunction::Receive);
        if (receives.empty()) return noReception(options.functions);
        CallGraph calls(**program, pointsTo);
        for (const LoopProcedure &loop : findLoops(**program, calls, receives, options))
            kept.insert(loop.function->getName());
        clock.step("loop procedures");
    }
    auto program = source();
    if (!program) return program.takeError();
    ValueToValueMapTy counterparts;
    std::unique_ptr<Module> original = use ? CloneModule(**program, counterparts) : nullptr;
    options.library.replaceCode(**program);
    promoteLocals(**program, kept);
    clock.step("read again");
    PointsTo pointsTo(**program, options.library, options.pointsTo());
    clock.step("points-to sets");
    auto listed = [&](PacketFunction::Kind kind) { return packetCalls(**program, pointsTo, options.functions, kind); };
    auto receives = listed(PacketFunction::Receive), sends = listed(PacketFunction::Send),
         logs = listed(PacketFunction::Log);
    CallGraph calls(**program, pointsTo);
    std::vector<LoopProcedure> loops;
    for (const LoopProcedure &loop : findLoops(**program, calls, receives, options))
        if (kept.contains(loop.function->getName())) loops.push_back(loop);
    Graph graph(**program, pointsTo);
    clock.step("dependence graph");
    report.variables = persistentVariables(**program, pointsTo, loops);
    PacketProcedures packet =
        packetProcedures(**program, graph, calls, receives, loops, options.without.contains("initialization"));
    markTopLevel(report.variables, packet, graph,
                 options.without.contains("handles") ? PacketFunctions() : options.functions);
    clock.step("packet procedures");
    auto statements = memoryStatements(packet, pointsTo);
    markUpdateable(report.variables, statements, packet, graph);
    clock.step("updateable variables");
    Flowspaces flowspaces(**program, packet, receives, loops, graph, calls, !options.without.contains("roots"));
    markFlowspaces(report.variables, flowspaces);
    clock.step("flowspaces");
    markOutputImpact(report.variables, sends, logs, packet, graph);
    markUnread(report.variables, packet, graph);
    clock.step("output impact");

    if (options.objects) {
        report.objects = stateObjects(report.variables, flowspaces, statements, packet, graph);
        clock.step("state objects");
    }
    report.receives = places(receives), report.sends = places(sends), report.logs = places(logs);
    for (const LoopProcedure &loop : loops) report.loopProcedures.push_back(loop.function->getName().str());
    report.sources = sourcePaths(**program);
    for (const Function &function : **program)
        if (const DISubprogram *begin = function.getSubprogram())
            report.procedurePlaces.push_back({begin->getFilename().str(), begin->getLine(), begin->getName().str()});
    for (const Function *function : packet.procedures) report.packetProcedures.push_back(function->getName().str());
    report.unmodelled.assign(pointsTo.unmodelled().begin(), pointsTo.unmodelled().end());
    report.locations = pointsTo.figures().locations;
    report.vertices = graph.size();
    report.edges = graph.edgeCount();
    if (use) {
        StateFindings findings{report,   **program, *original,  pointsTo,         calls,
                               receives, loops,     statements, *packet.executed, counterparts};
        if (Error error = use(findings)) return std::move(error);
        clock.step("instrumentation");
    }
    // What points into the program goes with it.
    for (Variable &variable : report.variables) variable.value = nullptr, variable.source = nullptr;
    return report;
}

} // namespace catena
