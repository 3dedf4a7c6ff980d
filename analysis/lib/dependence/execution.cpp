// The call graph, and control flow over calls.
#include "dependence/execution.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace catena {

CallGraph::CallGraph(const Module &program, const PointsTo &pointsTo) {
    for (const Function &function : program)
        for (const Instruction &instruction : instructions(function)) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            if (!call) continue;
            auto add = [&](const Function *callee) {
                if (callee->isDeclaration() || is_contained(called[call], callee)) return;
                called[call].push_back(callee);
                callers[callee].push_back(call);
                callees[&function].push_back(callee);
            };
            for (const Function *callee : pointsTo.callees(*call)) add(callee);
            for (const Callback &callback : pointsTo.callbacks(*call)) {
                add(callback.function);
                if (!is_contained(callbacks, callback.function)) callbacks.push_back(callback.function);
            }
        }
}

const std::vector<const CallBase *> &CallGraph::callersOf(const Function *function) const {
    static const std::vector<const CallBase *> none;
    auto found = callers.find(function);
    return found == callers.end() ? none : found->second;
}

const std::vector<const Function *> &CallGraph::calledBy(const CallBase *call) const {
    static const std::vector<const Function *> none;
    auto found = called.find(call);
    return found == called.end() ? none : found->second;
}

DenseSet<const Function *> CallGraph::closure(const std::vector<const Function *> &from) const {
    DenseSet<const Function *> all;
    std::vector<const Function *> work = from;
    while (!work.empty()) {
        const Function *function = work.back();
        work.pop_back();
        if (!all.insert(function).second) continue;
        if (auto found = callees.find(function); found != callees.end()) append_range(work, found->second);
    }
    return all;
}

ExecutedAfter::ExecutedAfter(const CallGraph &calls, const Module &program, const std::vector<const CallBase *> &begin)
    : calls(calls) {
    for (const CallBase *call : begin) {
        continueAfter(call);
        // The function runs on, and is left some time: so do its callers.
        for (const Function *callee : calls.calledBy(call)) enter(callee);
    }
    // Signal handlers, threads and timers run at any time once they are known to the library.
    for (const Function *function : calls.calledBack()) enter(function);
    // longjmp leads behind setjmp, wherever it is called.
    for (const char *name : {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp"})
        if (const Function *jump = program.getFunction(name))
            for (const User *user : jump->users())
                if (const auto *call = dyn_cast<CallBase>(user)) continueAfter(call);
    DenseSet<const Function *> left;
    while (!work.empty()) {
        const Instruction *from = work.back();
        work.pop_back();
        const BasicBlock *block = from->getParent();
        partly.insert(block->getParent());
        const Instruction *&known = blocks[block];
        if (known && (known == from || known->comesBefore(from))) continue;
        const Instruction *end = known;
        known = from;
        for (const Instruction *at = from; at && at != end; at = at->getNextNode())
            if (const auto *call = dyn_cast<CallBase>(at))
                for (const Function *callee : calls.calledBy(call)) enter(callee);
        // What follows the block is known already if a part of the block was.
        if (end) continue;
        for (const BasicBlock *next : successors(block)) continueAt(&next->front());
        const Function *function = block->getParent();
        if (succ_empty(block) && left.insert(function).second)
            for (const CallBase *caller : calls.callersOf(function)) continueAfter(caller);
    }
}

ExecutedAfter::ExecutedAfter(const CallGraph &calls, const Module &program) : calls(calls) {
    for (const Function &function : program) whole.insert(&function);
}

void ExecutedAfter::continueAt(const Instruction *instruction) { work.push_back(instruction); }

void ExecutedAfter::continueAfter(const Instruction *instruction) {
    if (const Instruction *next = instruction->getNextNode())
        continueAt(next);
    else
        for (const BasicBlock *block : successors(instruction->getParent())) continueAt(&block->front());
}

void ExecutedAfter::enter(const Function *function) {
    if (whole.contains(function)) return;
    DenseSet<const Function *> below = calls.closure({function});
    whole.insert(below.begin(), below.end());
}

bool ExecutedAfter::contains(const Instruction *instruction) const {
    if (whole.contains(instruction->getFunction())) return true;
    auto found = blocks.find(instruction->getParent());
    return found != blocks.end() && (found->second == instruction || found->second->comesBefore(instruction));
}

} // namespace catena
