// The constraints of calls whose code is not there, by the library list; and of functions that only allocate.
#include "pointsto/constraint_builder.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

/// Numbers that tell the objects of one call apart.
enum ObjectNumber { returnedObject = 0, unknownObject = 1, firstStored = 16, firstGiven = 128 };

/// The object of an allocation; its size is known where the argument is constant.
uint64_t allocatedBytes(const CallBase &call, const Function &callee) {
    StringRef name = callee.getName();
    auto constant = [&](unsigned i) -> uint64_t {
        const auto *value = i < call.arg_size() ? dyn_cast<ConstantInt>(call.getArgOperand(i)) : nullptr;
        return value ? value->getLimitedValue() : 0;
    };
    if (name == "malloc" || name == "_Znwm") return constant(0);
    if (name == "calloc") return constant(0) * constant(1);
    return 0;
}

} // namespace

bool ConstraintBuilder::bindIntrinsic(const CallBase &call, const Function &callee) {
    switch (callee.getIntrinsicID()) {
    case Intrinsic::memcpy:
    case Intrinsic::memcpy_inline:
    case Intrinsic::memmove: {
        solver.copyMemory(argument(call, 1), argument(call, 0), mostBytes(call.getArgOperand(2)));
        return true;
    }
    case Intrinsic::vastart: {
        // A list of variable arguments points to them at two offsets (System V ABI for x86-64, §3.5.7).
        const Function *function = call.getFunction();
        NodeId given = solver.newNode();
        solver.address(given, memory.at(memory.object(Object::Variadic, function, 1), 0));
        NodeId part = solver.newNode();
        for (int64_t offset : {0, 8, 16}) solver.step(argument(call, 0), part, {offset});
        solver.store(given, part, 8);
        return true;
    }
    case Intrinsic::vacopy:
        solver.copyMemory(argument(call, 1), argument(call, 0), 24);
        return true;
    default:
        // Those that return a pointer (launder, ptrmask, expect) return an argument.
        for (unsigned i = 0; i < call.arg_size(); ++i) solver.copy(argument(call, i), node(&call));
        return true;
    }
}

void ConstraintBuilder::bindLibrary(const CallBase &call, const Function &callee) {
    const std::vector<Effect> *effects = library.find(callee.getName());
    if (!effects) {
        bindUnknown(call, callee);
        return;
    }
    int number = 0;
    for (const Effect &effect : *effects) applyEffect(call, callee, effect, number++);
}

/// Return where pointers lead that are followed some times.
NodeId ConstraintBuilder::followed(NodeId pointer, unsigned times) {
    for (unsigned time = 0; time < times; ++time) {
        auto [at, isNew] = ends.try_emplace({pointer, times - time}, Solver::nothing);
        if (isNew) {
            NodeId inside = solver.newNode();
            at->second = solver.newNode();
            solver.copy(pointer, inside);
            // A method lies anywhere in its table.
            if (times > 1) solver.step(pointer, inside, Solver::anywhere);
            if (times > 1 && time + 1 == times && solver.tablesApart)
                solver.copy(solver.loadedOfTables(inside), at->second);
            else
                solver.load(inside, at->second, 8);
        }
        pointer = at->second;
    }
    return pointer;
}

void ConstraintBuilder::applyEffect(const CallBase &call, const Function &callee, const Effect &effect, int number) {
    auto returns = [&](Object::Kind kind, const Value *site, uint64_t size) {
        solver.address(node(&call), memory.at(memory.object(kind, site, returnedObject, nullptr, size), 0));
    };
    switch (effect.kind) {
    case Effect::ReturnsFresh:
        returns(Object::Heap, &call, allocatedBytes(call, callee));
        break;
    case Effect::ReturnsOpaque:
        returns(Object::Library, &call, 0);
        break;
    case Effect::ReturnsStatic: {
        Location own = memory.at(memory.object(Object::Library, &callee, unknownObject), 0);
        solver.address(node(&call), own);
        // What a library hands out is full of pointers into itself (struct hostent).
        solver.address(solver.contentOf(own), own);
        break;
    }
    case Effect::ReturnsArgument: {
        NodeId given = argument(call, effect.a);
        const auto *all = library.find(callee.getName());
        solver.copy(given, node(&call));
        if (any_of(*all, [](const Effect &other) { return other.kind == Effect::ReturnsFresh; }))
            solver.copyMemory(given, node(&call), 0);
        break;
    }
    case Effect::ReturnsCast:
        if (effect.b < call.arg_size() && castTo(call.getArgOperand(effect.b), argument(call, effect.a), node(&call)))
            break;
        [[fallthrough]];
    case Effect::ReturnsInto:
        solver.step(argument(call, effect.a), node(&call), Solver::anywhere);
        solver.copy(argument(call, effect.a), node(&call));
        break;
    case Effect::ReturnsReached: {
        NodeId reach = solver.newNode(), inside = solver.newNode();
        solver.copy(argument(call, effect.a), reach);
        solver.step(reach, inside, Solver::anywhere);
        solver.copy(reach, inside);
        solver.load(inside, reach, 8);
        solver.copy(reach, node(&call));
        break;
    }
    case Effect::Links: {
        NodeId one = solver.newNode(), other = solver.newNode();
        for (auto [argumentNumber, around] : {std::pair(effect.a, one), std::pair(effect.b, other)}) {
            solver.copy(argument(call, argumentNumber), around);
            solver.step(argument(call, argumentNumber), around, Solver::anywhere);
        }
        solver.store(argument(call, effect.a), other, 8);
        solver.store(argument(call, effect.b), one, 8);
        break;
    }
    case Effect::ReturnsPointee: {
        NodeId pointer = solver.newNode();
        solver.load(argument(call, effect.a), pointer, 8);
        solver.step(pointer, node(&call), Solver::anywhere);
        solver.copy(pointer, node(&call));
        break;
    }
    case Effect::Copies: {
        uint64_t size = call.arg_size() == 3 ? mostBytes(call.getArgOperand(2)) : 0;
        solver.copyMemory(argument(call, effect.a), argument(call, effect.b), size);
        break;
    }
    case Effect::Stores: {
        NodeId inside = solver.newNode();
        solver.step(argument(call, effect.a), inside, Solver::anywhere);
        solver.copy(argument(call, effect.a), inside);
        solver.store(inside, argument(call, effect.b), 8);
        break;
    }
    case Effect::Keeps: {
        NodeId kept = solver.contentOf(memory.ofLibrary(effect.memory));
        solver.step(argument(call, effect.a), kept, Solver::anywhere);
        solver.copy(argument(call, effect.a), kept);
        break;
    }
    case Effect::ReturnsKept:
        solver.copy(solver.contentOf(memory.ofLibrary(effect.memory)), node(&call));
        break;
    case Effect::ReturnsMemory:
        solver.address(node(&call), memory.ofLibrary(effect.memory));
        break;
    case Effect::GivesCopy: {
        // What is kept has one location; in the program's struct it may lie at any offset.
        NodeId into = solver.newNode();
        solver.copy(argument(call, effect.b), into);
        solver.step(argument(call, effect.b), into, Solver::anywhere);
        solver.store(solver.contentOf(memory.ofLibrary(effect.memory)), into, 8);
        break;
    }
    case Effect::KeepsCopy:
    case Effect::StoresMemory: {
        NodeId pointer = solver.newNode();
        solver.address(pointer, memory.ofLibrary(effect.memory));
        if (effect.kind == Effect::KeepsCopy) solver.copyMemory(argument(call, effect.a), pointer, 0);
        if (effect.kind == Effect::StoresMemory) solver.store(pointer, argument(call, effect.b), 8);
        break;
    }
    case Effect::StoresNew: {
        Location stored = memory.at(memory.object(Object::Library, &call, firstStored + number), 0);
        NodeId pointer = solver.newNode();
        solver.address(pointer, stored);
        // Lists of the library (getifaddrs) point on to more of their own.
        solver.address(solver.contentOf(stored), stored);
        solver.store(pointer, argument(call, effect.a), 8);
        break;
    }
    case Effect::Calls:
    case Effect::StartsThread:
        callThrough(argument(call, effect.a), call, &effect);
        break;
    case Effect::CallsKept:
    case Effect::CallsThrough: {
        bool kept = effect.kind == Effect::CallsKept;
        NodeId pointer = kept ? solver.contentOf(memory.ofLibrary(effect.memory)) : argument(call, effect.a);
        callThrough(followed(pointer, effect.b), call, &effect);
        break;
    }
    case Effect::Reads:
    case Effect::ReadsDeep:
    case Effect::Writes:
    case Effect::WritesDeep:
        break;
    }
}

void ConstraintBuilder::bindCallback(const CallBase &call, const Effect &effect, const Function &callee) {
    if (callee.isDeclaration() || !bound.insert({{&call, &effect}, &callee}).second) return;
    Callback callback{&callee, effect.arguments, effect.kind == Effect::StartsThread};
    auto &there = callbacks[&call];
    if (is_contained(there, callback)) return;
    there.push_back(callback);
    for (unsigned i = 0; i < effect.arguments.size() && i < callee.arg_size(); ++i) {
        NodeId parameter = arrival(*callee.getArg(i));
        int given = effect.arguments[i];
        if (given == Effect::newObject)
            solver.address(parameter, memory.at(memory.object(Object::Library, &call, firstGiven + int(i)), 0));
        else if (given >= 0)
            solver.copy(argument(call, static_cast<unsigned>(given)), parameter);
        else if (given <= Effect::firstKept)
            solver.copy(solver.contentOf(memory.ofLibrary(Effect::firstKept - given)), parameter);
    }
    // A thread's result is kept for who joins it.
    if (effect.kind == Effect::StartsThread && effect.b)
        solver.copy(resultOf(callee), solver.contentOf(memory.ofLibrary(effect.memory)));
    // tsearch and bsearch compare elements: any pointer into the array is given.
    if (effect.arguments.size() == 2 && effect.arguments[1] >= 0)
        for (unsigned i = 0; i < 2 && i < callee.arg_size(); ++i)
            solver.step(argument(call, static_cast<unsigned>(effect.arguments[i])), node(callee.getArg(i)),
                        Solver::anywhere);
}

void ConstraintBuilder::bindUnknown(const CallBase &call, const Function &callee) {
    unmodelled.insert(callee.getName().str());
    // Everything that the function can get at: what its arguments point to, on and on.
    NodeId reach = solver.newNode(), inside = solver.newNode();
    solver.step(reach, inside, Solver::anywhere);
    solver.copy(reach, inside);
    solver.load(inside, reach, 8);
    // What its arguments directly point to: it may store there, and call functions whose pointers lie there.
    NodeId near = solver.newNode(), inNear = solver.newNode();
    solver.load(near, inNear, 8);
    Location own = memory.at(memory.object(Object::Library, &call, unknownObject), 0);
    solver.address(reach, own);
    solver.address(solver.contentOf(own), own);
    static const Effect callsBack{Effect::Calls, 0, 0, {0, 1, 2, 3, 4, 5, 6, 7}};
    for (unsigned i = 0; i < call.arg_size(); ++i) {
        NodeId given = argument(call, i);
        solver.copy(given, reach);
        solver.copy(given, near);
        solver.step(given, near, Solver::anywhere);
        callThrough(given, call, &callsBack);
    }
    solver.store(reach, near, 8);
    callThrough(inNear, call, &callsBack);
    solver.copy(reach, node(&call));
}

void ConstraintBuilder::bindAllocator(const CallBase &call, const Function &callee, const Allocator &allocator) {
    ObjectId object = memory.object(Object::Heap, &call, returnedObject);
    solver.address(node(&call), memory.at(object, allocator.header));
    // What the allocator stored in its object (through its own pointer to it) is in this one too.
    if (allocator.fills) solver.copyMemory(resultOf(callee), node(&call), 0);
    // What is grown keeps what it holds; what others grow does not come here.
    for (unsigned parameter : allocator.returned) {
        solver.copy(argument(call, parameter), node(&call));
        solver.copyMemory(argument(call, parameter), node(&call), 0);
    }
}

} // namespace catena
