// Methods of classes with virtual functions work on objects of their class: an object becomes one when a constructor
// stores the address of a virtual table in it, and to call a method on anything else is an error of the program (C++20
// [class.mfct.non-static], paragraph 2). So of what is given to a method as its object, only what is made an object of
// its class or of one derived from it arrives. Casts do not matter, nor how memory came by; where the classes of
// objects are not known everything arrives.
#include "pointsto/constraint_builder.h"

#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

NodeId ConstraintBuilder::objectsOf(const GlobalVariable &information) {
    auto [at, isNew] = objects.try_emplace(&information, Solver::nothing);
    if (isNew) solver.copy(ofAnyClass, at->second = solver.newNode());
    return at->second;
}

void ConstraintBuilder::findObjectsOfClasses() {
    ofAnyClass = solver.newNode();
    for (const GlobalVariable *table : virtualTables.tables()) {
        const VirtualTables::Class &found = virtualTables.classOf(*table);
        if (found.escapes) {
            allUnsure |= found.open;
            unsure.insert(found.lineage.begin(), found.lineage.end());
        }
        NodeId made = solver.newNode();
        for (const StoreInst *store : found.stores) solver.copy(node(store->getPointerOperand()), made);
        auto holds = [&](const Value *variable) {
            solver.copy(node(variable), made);
            solver.step(node(variable), made, Solver::anywhere);
        };
        for (const GlobalVariable *constant : found.constants) {
            holds(constant);
            // Variables that begin as copies of a constant.
            for (const User *user : constant->users())
                if (const auto *copy = dyn_cast<MemTransferInst>(user)) holds(copy->getRawDest());
        }
        for (const GlobalVariable *ancestor : found.lineage) solver.copy(made, objectsOf(*ancestor));
        if (found.open) solver.copy(made, ofAnyClass);
    }
}

/// Return the node that takes what calls give to a parameter.
NodeId ConstraintBuilder::arrival(const Argument &parameter) {
    const Function &method = *parameter.getParent();
    if (!solver.tablesApart || allUnsure || !parameter.getType()->isPointerTy()) return node(&parameter);
    auto [at, isNew] = arrivals.try_emplace(&parameter, Solver::nothing);
    if (!isNew) return at->second;
    const GlobalVariable *information = virtualTables.classOfMethod(method);
    if (!information || &objectParameter(method) != &parameter || unsure.contains(information))
        return at->second = node(&parameter);
    NodeId given = at->second = solver.newNode();
    // An object begins with its table's address, so with fields no other place in it will do.
    solver.filter(given, objectsOf(*information), Solver::Through::Locations, node(&parameter));
    return given;
}

/// Write what dynamic_cast returns: where objects of a class begin in what it is given, since that is where they hold
/// the addresses of their tables.
bool ConstraintBuilder::castTo(const Value *information, NodeId given, NodeId to) {
    const auto *global = dyn_cast<GlobalVariable>(information->stripPointerCasts());
    if (!solver.tablesApart || allUnsure || !global || !global->hasInitializer() || unsure.contains(global))
        return false;
    NodeId ofClass = objectsOf(*global);
    solver.filter(ofClass, given, Solver::Through::Objects, to);
    // Those of libraries.
    solver.filter(given, ofClass, Solver::Through::Locations, to);
    return true;
}

/// Return whether what a load gets is only called: functions in virtual tables are then found where it is called.
bool ConstraintBuilder::isOnlyCalled(const LoadInst &load) const {
    return !load.use_empty() && all_of(load.users(), [&](const User *user) {
        const auto *call = dyn_cast<CallBase>(user);
        return call && call->getCalledOperand() == &load && !call->hasArgument(&load) &&
               tableCall(*call, memory.dataLayout());
    });
}

/// Return the node of what a load gets, of memory without fields.
NodeId ConstraintBuilder::loadedBy(const LoadInst &load) {
    NodeId pointer = node(load.getPointerOperand()), plain = solver.loaded(pointer);
    if (!solver.tablesApart || !mayReadTable(load) || isOnlyCalled(load)) return plain;
    NodeId any = solver.newNode();
    solver.copy(plain, any);
    solver.copy(solver.loadedOfTables(pointer), any);
    return any;
}

} // namespace catena
