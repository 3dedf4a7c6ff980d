// The vertices and edges of every procedure: values by their uses, memory by points-to sets, control by
// post-dominance, calls by arguments and results.
#include "dependence/graph_builder.h"

#include "dependence/control.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

uint64_t storeBytes(const Instruction &at, Type *type) {
    return at.getModule()->getDataLayout().getTypeStoreSize(type).getKnownMinValue();
}

bool isIgnored(const Instruction &instruction) {
    if (isa<DbgInfoIntrinsic>(instruction)) return true;
    const auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
    return intrinsic && intrinsic->isLifetimeStartOrEnd();
}

} // namespace

SparseSet written(const Instruction &instruction, const PointsTo &pointsTo) {
    if (const auto *store = dyn_cast<StoreInst>(&instruction))
        return pointsTo.touched(store->getPointerOperand(),
                                storeBytes(instruction, store->getValueOperand()->getType()));
    if (const auto *change = dyn_cast<AtomicRMWInst>(&instruction))
        return pointsTo.touched(change->getPointerOperand(), storeBytes(instruction, change->getType()));
    if (const auto *change = dyn_cast<AtomicCmpXchgInst>(&instruction))
        return pointsTo.touched(change->getPointerOperand(),
                                storeBytes(instruction, change->getNewValOperand()->getType()));
    return {};
}

SparseSet readBy(const Instruction &instruction, const PointsTo &pointsTo) {
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
        return pointsTo.touched(load->getPointerOperand(), storeBytes(instruction, load->getType()));
    if (isa<AtomicRMWInst>(instruction) || isa<AtomicCmpXchgInst>(instruction)) return written(instruction, pointsTo);
    if (const auto *argument = dyn_cast<VAArgInst>(&instruction))
        return pointsTo.reachable(pointsTo.of(argument->getPointerOperand()));
    SparseSet copied;
    if (const auto *call = dyn_cast<CallBase>(&instruction))
        // Structs that are passed as a copy are read by the call itself.
        for (unsigned i = 0; i < call->arg_size(); ++i)
            if (call->isByValArgument(i))
                copied.add(
                    pointsTo.touched(call->getArgOperand(i), storeBytes(instruction, call->getParamByValType(i))));
    return copied;
}

uint64_t accessedBytes(const CallBase &call, const Function &callee) {
    bool told = is_contained({"memcmp", "bcmp", "memcpy", "memmove", "mempcpy", "memset", "strncmp", "strncasecmp",
                              "strncpy", "timingsafe_bcmp", "CRYPTO_memcmp"},
                             callee.getName());
    return told && call.arg_size() == 3 ? mostBytes(call.getArgOperand(2)) : 0;
}

LibraryAccess libraryAccess(const CallBase &call, const Function &callee, const PointsTo &pointsTo) {
    LibraryAccess access;
    auto argument = [&](unsigned i) -> const Value * { return i < call.arg_size() ? call.getArgOperand(i) : nullptr; };
    auto direct = [&](SparseSet &to, unsigned i, uint64_t size) {
        if (const Value *given = argument(i)) to.add(pointsTo.touched(given, size));
    };
    auto deep = [&](SparseSet &to, unsigned i) {
        if (const Value *given = argument(i)) to.add(pointsTo.reachable(pointsTo.of(given)));
    };
    if (callee.isIntrinsic()) {
        const auto *memory = dyn_cast<MemIntrinsic>(&call);
        if (!memory && callee.getIntrinsicID() != Intrinsic::vacopy) return access;
        uint64_t size = memory ? mostBytes(memory->getLength()) : 0;
        direct(access.writes, 0, size);
        if (!isa<MemSetInst>(call)) direct(access.reads, 1, size);
        return access;
    }
    const std::vector<Effect> *effects = pointsTo.library().find(callee.getName());
    auto kept = [&](SparseSet &to, const Effect &effect) {
        if (const Object *object = pointsTo.memory().find(nullptr, effect.memory))
            to.add(pointsTo.locationsOf(*object));
    };
    if (!effects) {
        for (unsigned i = 0; i < call.arg_size(); ++i) deep(access.reads, i), direct(access.writes, i, 0);
        return access;
    }
    uint64_t size = accessedBytes(call, callee);
    for (const Effect &effect : *effects) switch (effect.kind) {
        case Effect::Reads:
        case Effect::ReturnsPointee:
        case Effect::CallsThrough:
            direct(access.reads, effect.a, size);
            break;
        case Effect::ReadsDeep:
        case Effect::ReturnsReached:
            deep(access.reads, effect.a);
            break;
        case Effect::Writes:
        case Effect::StoresNew:
            direct(access.writes, effect.a, size);
            break;
        case Effect::WritesDeep:
            deep(access.writes, effect.a);
            break;
        case Effect::Copies:
            direct(access.reads, effect.a, size);
            direct(access.writes, effect.b, size);
            break;
        case Effect::Stores:
            direct(access.writes, effect.b, 8);
            break;
        case Effect::Keeps:
            kept(access.writes, effect);
            break;
        case Effect::Links:
            direct(access.writes, effect.a, 0);
            direct(access.writes, effect.b, 0);
            break;
        case Effect::KeepsCopy:
            direct(access.reads, effect.a, 0);
            kept(access.writes, effect);
            break;
        case Effect::GivesCopy:
            direct(access.writes, effect.b, 0);
            kept(access.reads, effect);
            break;
        case Effect::ReturnsKept:
        case Effect::CallsKept:
            kept(access.reads, effect);
            break;
        case Effect::StoresMemory:
            direct(access.writes, effect.b, 8);
            break;
        default:
            break;
        }
    return access;
}

Vertex GraphBuilder::add(VertexKind kind, const Function *function, const Value *value, uint32_t index) {
    graph.vertices.push_back({kind, function, value, index});
    return static_cast<Vertex>(graph.vertices.size() - 1);
}

void GraphBuilder::edge(Vertex from, Vertex to, EdgeKind kind) {
    if (from != noVertex && to != noVertex && from != to) graph.all.push_back({from, to, kind});
}

void GraphBuilder::build() {
    for (const Function &function : program)
        if (!function.isDeclaration()) makeVertices(function);
    findStored();
    for (const Function &function : program)
        if (!function.isDeclaration()) connect(function);
}

void GraphBuilder::makeVertices(const Function &function) {
    graph.entries[&function] = add(VertexKind::Entry, &function, &function);
    graph.results[&function] = add(VertexKind::Result, &function, nullptr);
    for (const Argument &parameter : function.args())
        graph.instructions[&parameter] = add(VertexKind::Parameter, &function, &parameter, parameter.getArgNo());
    for (const BasicBlock &block : function) {
        blocks[&block] = add(VertexKind::Block, &function, &block);
        for (const Instruction &instruction : block) {
            if (isIgnored(instruction)) continue;
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (!call) {
                graph.instructions[&instruction] = add(VertexKind::Instruction, &function, &instruction);
                continue;
            }
            // In this order: Graph::ofArgument counts on it.
            graph.calls[call] = add(VertexKind::Call, &function, call);
            graph.instructions[call] = add(VertexKind::CallResult, &function, call);
            for (unsigned i = 0; i < call->arg_size(); ++i) add(VertexKind::Argument, &function, call, i);
        }
    }
}

void GraphBuilder::findStored() {
    for (const Function &function : program) {
        if (function.isDeclaration()) continue;
        for (const Argument &parameter : function.args())
            if (parameter.hasByValAttr()) stored.add(pointsTo.of(&parameter));
        for (const Instruction &instruction : instructions(function)) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (!call) {
                stored.add(written(instruction, pointsTo));
                continue;
            }
            LibraryAccess access;
            auto with = [&](const Function &callee) {
                LibraryAccess one = libraryAccess(*call, callee, pointsTo);
                access.reads.add(one.reads);
                access.writes.add(one.writes);
            };
            if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic())
                with(*callee);
            else
                for (const Function *each : pointsTo.callees(*call))
                    if (each->isDeclaration()) with(*each);
            stored.add(access.writes);
            if (!access.reads.empty() || !access.writes.empty()) libraryAccesses[call] = std::move(access);
        }
    }
}

Vertex GraphBuilder::definition(Location location) {
    auto [at, isNew] = graph.locations.try_emplace(location, noVertex);
    if (isNew) at->second = add(VertexKind::Definition, nullptr, nullptr, location);
    return at->second;
}

void GraphBuilder::reads(Vertex vertex, const SparseSet &locations) {
    // What nobody stores to needs no edges: strings, tables.
    SparseSet read = locations.without(locations.without(stored));
    if (read.empty()) return;
    if (read.size() == 1) {
        edge(definition(*read.begin()), vertex, EdgeKind::Memory);
        return;
    }
    auto [at, isNew] = readSets.try_emplace(read, noVertex);
    if (isNew) {
        at->second = add(VertexKind::Accesses, nullptr, nullptr);
        for (Location location : read) edge(definition(location), at->second, EdgeKind::Memory);
    }
    edge(at->second, vertex, EdgeKind::Memory);
}

void GraphBuilder::writes(Vertex vertex, const SparseSet &locations) {
    if (locations.empty()) return;
    if (locations.size() == 1) {
        edge(vertex, definition(*locations.begin()), EdgeKind::Memory);
        return;
    }
    auto [at, isNew] = writeSets.try_emplace(locations, noVertex);
    if (isNew) {
        at->second = add(VertexKind::Accesses, nullptr, nullptr);
        for (Location location : locations) edge(at->second, definition(location), EdgeKind::Memory);
    }
    edge(vertex, at->second, EdgeKind::Memory);
}

void GraphBuilder::connect(const Function &function) {
    connectControl(function);
    if (!exits.empty()) connectExits(function);
    for (const Argument &parameter : function.args())
        if (parameter.hasByValAttr())
            writes(graph.ofValue(&parameter), pointsTo.touched(&parameter, bytes(parameter.getParamByValType())));
    for (const Instruction &instruction : instructions(function))
        if (const auto *call = dyn_cast<CallBase>(&instruction)) {
            if (!isIgnored(instruction)) connectCall(*call);
        } else {
            connectInstruction(instruction);
        }
}

uint64_t GraphBuilder::bytes(Type *type) const {
    return program.getDataLayout().getTypeAllocSize(type).getKnownMinValue();
}

void GraphBuilder::connectControl(const Function &function) {
    auto controllers = controlDependence(function);
    Vertex entry = graph.entryOf(&function);
    for (const BasicBlock &block : function) {
        Vertex vertex = blockVertex(&block);
        bool depends = false;
        for (const BasicBlock *branch : controllers.lookup(&block)) {
            // A loop's head decides about its own next round; the first round is the entry's.
            edge(graph.of(branch->getTerminator()), vertex, EdgeKind::Control);
            depends |= branch != &block;
        }
        if (!depends) edge(entry, vertex, EdgeKind::Control);
        for (const Instruction &instruction : block) {
            if (isIgnored(instruction)) continue;
            const auto *call = dyn_cast<CallBase>(&instruction);
            edge(vertex, call ? graph.ofCall(call) : graph.of(&instruction), EdgeKind::Control);
        }
    }
}

/// What follows a call that may not return depends on it, and so does whether the procedure itself returns.
void GraphBuilder::connectExits(const Function &function) {
    SmallPtrSet<const BasicBlock *, 8> left;
    for (const BasicBlock &block : function) {
        const CallBase *before = nullptr;
        for (const Instruction &instruction : block) {
            if (isIgnored(instruction)) continue;
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (before) edge(graph.of(before), call ? graph.ofCall(call) : graph.of(&instruction), EdgeKind::Control);
            if (!call || !exits.contains(call)) continue;
            edge(graph.ofCall(call), graph.of(call), EdgeKind::Control);
            edge(graph.of(call), graph.resultOf(&function), EdgeKind::Control);
            if (!isa<InvokeInst>(call)) before = call, left.insert(&block);
        }
    }
    if (left.empty()) return;
    auto controllers = controlDependence(function, left);
    for (const BasicBlock &block : function)
        for (const BasicBlock *from : controllers.lookup(&block))
            if (left.contains(from))
                for (const Instruction &instruction : *from)
                    if (const auto *call = dyn_cast<CallBase>(&instruction);
                        call && !isa<InvokeInst>(call) && exits.contains(call))
                        edge(graph.of(call), blockVertex(&block), EdgeKind::Control);
}

void GraphBuilder::connectInstruction(const Instruction &instruction) {
    Vertex vertex = graph.of(&instruction);
    if (vertex == noVertex) return;
    const Value *address = getLoadStorePointerOperand(&instruction);
    for (const Use &operand : instruction.operands())
        edge(graph.ofValue(operand.get()), vertex,
             operand.get() == address && !(isa<StoreInst>(instruction) && operand.getOperandNo() == 0)
                 ? EdgeKind::Address
                 : EdgeKind::Data);
    if (const auto *phi = dyn_cast<PHINode>(&instruction))
        // Which value it takes is decided by which block was executed before.
        for (const BasicBlock *block : phi->blocks()) {
            edge(blockVertex(block), vertex, EdgeKind::Control);
            if (succ_size(block) > 1) edge(graph.of(block->getTerminator()), vertex, EdgeKind::Control);
        }
    if (const auto *end = dyn_cast<ReturnInst>(&instruction); end && end->getReturnValue())
        edge(vertex, graph.resultOf(instruction.getFunction()), EdgeKind::Data);
    reads(vertex, readBy(instruction, pointsTo));
    writes(vertex, written(instruction, pointsTo));
}

void GraphBuilder::connectCall(const CallBase &call) {
    Vertex executed = graph.ofCall(&call), result = graph.of(&call);
    for (unsigned i = 0; i < call.arg_size(); ++i)
        edge(graph.ofValue(call.getArgOperand(i)), graph.ofArgument(&call, i), EdgeKind::Data);
    // Which function is called.
    edge(graph.ofValue(call.getCalledOperand()), executed, EdgeKind::Data);
    edge(executed, result, EdgeKind::Control);
    bool outside = call.isInlineAsm() || call.getIntrinsicID() != Intrinsic::not_intrinsic;
    for (const Function *callee : pointsTo.callees(call))
        if (callee->isDeclaration())
            outside = true;
        else
            enter(call, *callee);
    if (outside || pointsTo.callees(call).empty())
        for (unsigned i = 0; i < call.arg_size(); ++i) edge(graph.ofArgument(&call, i), result, EdgeKind::Data);
    auto access = libraryAccesses.find(&call);
    if (access != libraryAccesses.end()) {
        reads(result, access->second.reads);
        writes(result, access->second.writes);
    }
    for (const Callback &callback : pointsTo.callbacks(call)) enterCallback(call, callback);
}

void GraphBuilder::enter(const CallBase &call, const Function &callee) {
    edge(graph.ofCall(&call), graph.entryOf(&callee), EdgeKind::In);
    edge(graph.resultOf(&callee), graph.of(&call), EdgeKind::Out);
    for (unsigned i = 0; i < call.arg_size(); ++i) {
        Vertex given = graph.ofArgument(&call, i);
        if (i >= callee.arg_size()) {
            if (!callee.isVarArg()) continue;
            // Variable arguments are memory of the callee.
            if (const Object *rest = pointsTo.memory().find(&callee, 1)) {
                SparseSet locations = pointsTo.locationsOf(*rest);
                stored.add(locations);
                writes(given, locations);
            }
            continue;
        }
        const Argument *parameter = callee.getArg(i);
        edge(given, graph.ofValue(parameter), EdgeKind::In);
        if (parameter->hasByValAttr())
            reads(given, pointsTo.touched(call.getArgOperand(i), bytes(parameter->getParamByValType())));
    }
}

void GraphBuilder::enterCallback(const CallBase &call, const Callback &callback) {
    Vertex result = graph.of(&call);
    edge(result, graph.entryOf(callback.function), EdgeKind::In);
    for (unsigned i = 0; i < callback.arguments.size() && i < callback.function->arg_size(); ++i) {
        Vertex parameter = graph.ofValue(callback.function->getArg(i));
        int given = callback.arguments[i];
        if (given >= 0)
            edge(graph.ofArgument(&call, static_cast<unsigned>(given)), parameter, EdgeKind::In);
        else if (given == Effect::newObject)
            edge(result, parameter, EdgeKind::In);
        else if (given <= Effect::firstKept)
            if (const Object *kept = pointsTo.memory().find(nullptr, Effect::firstKept - given))
                reads(parameter, pointsTo.locationsOf(*kept));
    }
    // Of a thread, who joins it gets the result: by the thread's number, which pthread_create stores.
    edge(graph.resultOf(callback.function), result, EdgeKind::Out);
}

} // namespace catena
