// One constant, catena_program, that leads to all tables; and catena_cells, where a packet loop's procedure notes the
// addresses of its locals while it runs.
#include "export/state_tables.h"

#include "export/type_layouts.h"
#include "program/bitcode.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/MD5.h"

using namespace llvm;

namespace catena {

namespace {

class StateTables {
public:
    StateTables(StateFindings &findings, const RuntimeTables &tables)
        : findings(findings), tables(tables), program(findings.original), context(program.getContext()), names(program),
          texts(program), layouts(program, names, texts), word(Type::getInt64Ty(context)),
          half(Type::getInt32Ty(context)), pointer(PointerType::get(context, 0)) {}

    Error add() {
        std::array<uint8_t, 16> fingerprint = digest();
        if (Error error = addObjects()) return error;
        Constant *sites = addSites(), *boundaries = addBoundaries(), *functions = addFunctions();
        Constant *print = ConstantDataArray::get(context, ArrayRef(fingerprint));
        Constant *value =
            ConstantStruct::getAnon({print, list(objects), list(variables), sites, boundaries, functions,
                                     number(objects.size()), number(variables.size()), number(tables.sites.size() + 1),
                                     number(tables.boundaries.size()), number(functionCount)});
        new GlobalVariable(program, value->getType(), true, GlobalValue::ExternalLinkage, value, "catena_program");
        return Error::success();
    }

private:
    Constant *number(uint64_t value) { return ConstantInt::get(half, value); }
    Constant *null() { return ConstantPointerNull::get(pointer); }
    Constant *orNull(Constant *value) { return value ? value : null(); }
    Constant *treatment(Treatment how) { return number(static_cast<unsigned>(how)); }
    std::string describe(const Place &place) {
        return place.file + ":" + std::to_string(place.line) + " in " + place.function;
    }

    /// Return a pointer to a constant array.
    Constant *list(const std::vector<Constant *> &values) {
        if (values.empty()) return null();
        Constant *all = ConstantArray::get(ArrayType::get(values.front()->getType(), values.size()), values);
        return new GlobalVariable(program, all->getType(), true, GlobalValue::PrivateLinkage, all, "catena_table");
    }

    /// Tell one program, and one way of building it, from others.
    std::array<uint8_t, 16> digest() {
        SmallString<0> bytes;
        raw_svector_ostream out(bytes);
        WriteBitcodeToFile(program, out);
        MD5::MD5Result result = MD5::hash(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
        return result;
    }

    void addObject(StringRef name, Constant *address, uint64_t size, Constant *layout, Treatment how, bool cell) {
        objects.push_back(ConstantStruct::getAnon(
            {texts.of(name), address, ConstantInt::get(word, size), orNull(layout), treatment(how), number(cell)}));
    }

    /// Return how a variable's own memory is treated: by its type, unless pointers are stored where its type has none.
    Treatment treat(const Constant *layout, const SparseSet &own) {
        if (layout) return Treatment::Typed;
        for (Location location : own)
            if (!findings.pointsTo.contents(location).empty()) return Treatment::Words;
        return Treatment::Bytes;
    }

    void addVariable(const Variable &variable, size_t object) {
        int bit = variable.updateable ? static_cast<int>(bits++) : -1;
        variables.push_back(ConstantStruct::getAnon(
            {number(object), ConstantInt::getSigned(half, bit), number(!variable.entries.empty())}));
    }

    Error addObjects() {
        DenseMap<const GlobalVariable *, size_t> places;
        DenseMap<const GlobalVariable *, SparseSet> own;
        for (const Variable &variable : findings.report.variables)
            if (const auto *global = dyn_cast<GlobalVariable>(variable.value))
                if (const auto *original = findings.inOriginal(global)) own[original] = variable.own;
        std::vector<GlobalVariable *> globals;
        for (GlobalVariable &global : program.globals())
            if (!global.isDeclaration() && !global.isThreadLocal() && !global.getName().starts_with("llvm.") &&
                !global.getName().starts_with("catena_"))
                globals.push_back(&global);
        for (GlobalVariable *global : globals) {
            const DIGlobalVariable *source = sourceVariable(*global);
            Constant *layout = source ? layouts.of(source->getType()) : nullptr;
            auto known = own.find(global);
            Treatment how = global->isConstant() ? Treatment::Constant
                            : known != own.end() ? treat(layout, known->second)
                            : layout             ? Treatment::Typed
                                                 : Treatment::Words;
            places[global] = objects.size();
            addObject(source ? source->getName() : global->getName(), global,
                      program.getDataLayout().getTypeAllocSize(global->getValueType()), layout, how, false);
        }
        std::vector<std::pair<const Variable *, Value *>> cells;
        for (const Variable &variable : findings.report.variables) {
            if (const auto *global = dyn_cast<GlobalVariable>(variable.value)) {
                auto place = places.find(findings.inOriginal(global));
                // A variable of a thread belongs to no state that can be carried over.
                if (place == places.end())
                    return failure(variable.name + " is a variable of each thread: a standby cannot take it over");
                addVariable(variable, place->second);
            } else if (Value *cell = findings.inOriginal(variable.value)) {
                if (auto *local = dyn_cast<AllocaInst>(cell); local && !local->isStaticAlloca())
                    return failure(variable.declared.file + ":" + std::to_string(variable.declared.line) + ": " +
                                   variable.name + " has a size that is known only at run time, in the procedure of " +
                                   "the packet loop: a standby cannot take it over");
                cells.push_back({&variable, cell});
            }
        }
        addCells(cells);
        return Error::success();
    }

    /// The cells of a loop procedure: locals, and parameters that are given as copies.
    void addCells(const std::vector<std::pair<const Variable *, Value *>> &cells) {
        auto *type = ArrayType::get(pointer, std::max<size_t>(1, cells.size()));
        auto *addresses = new GlobalVariable(program, type, false, GlobalValue::InternalLinkage,
                                             ConstantAggregateZero::get(type), "catena_cells");
        for (auto [number, entry] : enumerate(cells)) {
            auto [variable, cell] = entry;
            Constant *at = ConstantExpr::getInBoundsGetElementPtr(
                type, addresses, ArrayRef<Constant *>{ConstantInt::get(word, 0), ConstantInt::get(word, number)});
            Constant *layout = layouts.of(variable->source->getType());
            addVariable(*variable, objects.size());
            auto *local = dyn_cast<AllocaInst>(cell);
            auto *parameter = dyn_cast<Argument>(cell);
            Function *procedure = local ? local->getFunction() : parameter->getParent();
            Type *held = local ? local->getAllocatedType() : parameter->getParamByValType();
            addObject(variable->name, at, program.getDataLayout().getTypeAllocSize(held), layout,
                      treat(layout, variable->own), true);
            IRBuilder<>(local ? local->getNextNode() : &*procedure->getEntryBlock().getFirstInsertionPt())
                .CreateStore(cell, at);
            for (Instruction &instruction : instructions(*procedure))
                if (isa<ReturnInst>(instruction)) IRBuilder<>(&instruction).CreateStore(null(), at);
        }
    }

    Constant *addSites() {
        std::vector<Constant *> rows;
        auto row = [&](const std::string &place, Constant *layout, Treatment how, ArrayRef<unsigned> entryOf) {
            std::vector<Constant *> bits;
            for (unsigned bit : entryOf) bits.push_back(number(bit));
            rows.push_back(ConstantStruct::getAnon(
                {texts.of(place), orNull(layout), list(bits), treatment(how), number(bits.size())}));
        };
        row("an allocation through a pointer", nullptr, Treatment::Words, {});
        for (const auto &[call, site] : tables.sites) {
            Treatment how = site.treatment;
            Constant *layout = nullptr;
            if (how == Treatment::Typed) {
                const DICompositeType *source = names.find(site.type);
                uint64_t size = program.getDataLayout().getTypeAllocSize(const_cast<StructType *>(site.type));
                layout = source && source->getSizeInBits() == size * 8 ? layouts.of(source) : nullptr;
                // Debug information that does not say what the struct is, or a struct that pointers are forced into.
                if (!layout) how = Treatment::Words;
            }
            row(describe(placeOf(*call)), layout, how, site.entryOf);
        }
        return list(rows);
    }

    Constant *addBoundaries() {
        std::vector<Constant *> rows;
        for (const Place &place : tables.boundaries)
            rows.push_back(ConstantStruct::getAnon({texts.of(describe(place))}));
        return list(rows);
    }

    Constant *addFunctions() {
        std::vector<Constant *> rows;
        for (Function &function : program)
            if (!function.isIntrinsic() && function.hasAddressTaken()) rows.push_back(&function);
        functionCount = rows.size();
        return list(rows);
    }

    StateFindings &findings;
    const RuntimeTables &tables;
    Module &program;
    LLVMContext &context;
    StructNames names;
    Texts texts;
    TypeLayouts layouts;
    IntegerType *word, *half;
    PointerType *pointer;
    std::vector<Constant *> objects, variables;
    unsigned bits = 0;
    size_t functionCount = 0;
};

} // namespace

Error addStateTables(StateFindings &findings, const RuntimeTables &tables) {
    return StateTables(findings, tables).add();
}

} // namespace catena
