// What packets may write, by the same analysis that says what they never write (written.h), is state; names are those
// of the program before it was reduced.
#include "reduce/movable.h"

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/MD5.h"

using namespace llvm;

namespace catena {

namespace {

/// How pointers are found, in the numbers of runtime/layout.h: any word that is the address of something known; or
/// not at all, as it never changes.
enum { Words = 2, Constants = 3 };

class StateTables {
public:
    StateTables(Module &program, const Reduction &reduction)
        : program(program), reduction(reduction), context(program.getContext()), half(Type::getInt32Ty(context)),
          word(Type::getInt64Ty(context)), pointer(PointerType::getUnqual(context)) {}

    void add(const std::set<std::string> &allocators) {
        Constant *objects = addObjects(), *functions = addFunctions();
        Constant *sites = addSites(allocators);
        Constant *value =
            ConstantStruct::getAnon({fingerprint(), objects, null(), sites, null(), functions, count(objectCount),
                                     count(0), count(siteNumbers.size() + 1), count(0), count(functionCount)});
        external(value, "catena_program");
        std::string where;
        for (const std::string &local : reduction.phase.outerLocals) where += (where.empty() ? "" : ", ") + local;
        if (!where.empty()) where = "packets write local variables outside of the packet loop's procedure: " + where;
        external(ConstantDataArray::getString(context, where), "catena_immovable");
    }

private:
    Constant *null() { return ConstantPointerNull::get(pointer); }
    Constant *count(uint64_t value) { return ConstantInt::get(half, value); }
    Constant *number(uint64_t value) { return ConstantInt::get(word, value); }

    Constant *table(const std::vector<Constant *> &values, Type *element) {
        auto *type = ArrayType::get(element, values.size());
        return new GlobalVariable(program, type, true, GlobalValue::PrivateLinkage, ConstantArray::get(type, values),
                                  "catena.table");
    }

    void external(Constant *value, const char *symbol) {
        new GlobalVariable(program, value->getType(), true, GlobalValue::ExternalLinkage, value, symbol);
    }

    void external(const std::vector<Constant *> &values, Type *element, const char *symbol) {
        external(ConstantArray::get(ArrayType::get(element, values.size()), values), symbol);
    }

    Constant *text(StringRef bytes) {
        Constant *value = ConstantDataArray::getString(context, bytes);
        return new GlobalVariable(program, value->getType(), true, GlobalValue::PrivateLinkage, value, "catena.text");
    }

    /// The program before it was reduced says which objects fit each other.
    Constant *fingerprint() {
        SmallString<0> bytes;
        raw_svector_ostream stream(bytes);
        WriteBitcodeToFile(*reduction.unreduced, stream);
        MD5 sum;
        sum.update(bytes);
        MD5::MD5Result result;
        sum.final(result);
        return ConstantDataArray::get(context, ArrayRef<uint8_t>(result));
    }

    /// A `struct written` of runtime/adapter/state.h.
    Constant *written(const WrittenBytes *bytes) {
        std::vector<WrittenBytes::Range> ranges;
        if (bytes) ranges = bytes->ranges;
        if (bytes && bytes->all) ranges = {{0, UINT64_MAX}};
        std::vector<Constant *> values;
        for (auto [begin, end, period] : ranges)
            values.push_back(ConstantStruct::getAnon({number(begin), number(end), number(period)}));
        Constant *at = values.empty() ? null() : table(values, values.front()->getType());
        return ConstantStruct::getAnon({at, number(values.size())});
    }

    bool isOfOnePacket(const std::string &name) const {
        auto parts = reduction.specialised.privates.find(name);
        return parts != reduction.specialised.privates.end() && parts->second.parts == parts->second.ofOnePacket;
    }

    Constant *addObjects() {
        std::vector<GlobalVariable *> all;
        for (GlobalVariable &global : program.globals())
            if (!global.isDeclaration() && !global.isThreadLocal() && global.hasName() &&
                !global.getName().starts_with("llvm.") && !global.getName().starts_with("catena"))
                all.push_back(&global);
        std::vector<Constant *> objects, state;
        for (GlobalVariable *global : all) {
            std::string name = global->getName().str();
            // To be in a table would make the compiler keep what no packet after sees.
            if (isOfOnePacket(name)) continue;
            uint64_t size = program.getDataLayout().getTypeAllocSize(global->getValueType()).getFixedValue();
            objects.push_back(ConstantStruct::getAnon(
                {text(name), global, number(size), null(), count(global->isConstant() ? Constants : Words), count(0)}));
            auto found = reduction.phase.globals.find(name);
            state.push_back(written(found == reduction.phase.globals.end() ? nullptr : &found->second));
        }
        objectCount = objects.size();
        Type *pair = StructType::get(context, {pointer, word});
        external(state, pair, "catena_written_objects");
        return objects.empty() ? null() : table(objects, objects.front()->getType());
    }

    Constant *addFunctions() {
        std::vector<Constant *> functions, names;
        for (Function &function : program) {
            if (function.isIntrinsic() || !function.hasAddressTaken()) continue;
            functions.push_back(&function);
            names.push_back(text(function.getName()));
        }
        functionCount = functions.size();
        external(names, pointer, "catena_function_names");
        return functions.empty() ? null() : table(functions, pointer);
    }

    Constant *addSites(const std::set<std::string> &allocators) {
        auto site = [&](StringRef place) { return ConstantStruct::getAnon({text(place), null(), count(Words)}); };
        // What comes from elsewhere may be anything.
        WrittenBytes anything;
        anything.all = true;
        std::vector<Constant *> sites{site("an unknown call")}, state{written(&anything)};
        for (auto [call, from] : numberedCalls(*reduction.unreduced)) {
            const Function *callee = from->getCalledFunction();
            if (!callee || !allocators.count(callee->getName().str())) continue;
            siteNumbers[call] = sites.size();
            Place place = placeOf(*from);
            sites.push_back(site(place.file + ":" + std::to_string(place.line)));
            auto found = reduction.phase.heap.find(call);
            state.push_back(written(found == reduction.phase.heap.end() ? nullptr : &found->second));
        }
        external(state, state.front()->getType(), "catena_written_sites");
        sayCalls();
        return table(sites, sites.front()->getType());
    }

    /// Copies of a call have its number.
    void sayCalls() {
        Constant *next = program.getOrInsertGlobal("catena_site", half);
        for (Function &function : program)
            for (Instruction &instruction : instructions(function))
                if (auto *call = dyn_cast<CallBase>(&instruction))
                    if (auto known = siteNumbers.find(callNumber(*call)); known != siteNumbers.end())
                        IRBuilder<>(call).CreateStore(count(known->second), next);
    }

    Module &program;
    const Reduction &reduction;
    LLVMContext &context;
    IntegerType *half, *word;
    PointerType *pointer;
    std::map<unsigned, uint64_t> siteNumbers;
    uint64_t objectCount = 0, functionCount = 0;
};

} // namespace

void addMovableState(Module &program, const Reduction &reduction, const std::set<std::string> &allocators) {
    StateTables(program, reduction).add(allocators);
}

} // namespace catena
