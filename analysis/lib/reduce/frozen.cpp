// "We enhance the existing implementation to enable constant propagation on struct and class fields when they are used
// as config variables" (Deng and Wu, NFReducer, section V): here on any memory, by address.
#include "reduce/frozen.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace catena {

Frozen::Frozen(Module &program, const Image &image, const PacketPhase &phase, const LibraryEffects &library)
    : program(program), image(image), phase(phase) {
    // The blocks that the program itself fills: what a library allocates for itself is not looked into.
    for (Function &function : program)
        for (Instruction &instruction : instructions(function)) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            const Function *callee = call ? call->getCalledFunction() : nullptr;
            const auto *effects = callee ? library.find(callee->getName()) : nullptr;
            if (effects && any_of(*effects, [](const Effect &effect) { return effect.kind == Effect::ReturnsFresh; }))
                ownBlocks.insert(callNumber(*call));
        }
}

std::optional<unsigned> Frozen::objectOf(const GlobalVariable *global) const {
    if (auto found = byPlaceholder.find(global); found != byPlaceholder.end()) return found->second;
    auto found = image.symbols.find(global->getName().str());
    if (found == image.symbols.end() || global->isDeclaration()) return std::nullopt;
    return found->second;
}

bool Frozen::isKept(unsigned id, uint64_t begin, uint64_t end) const {
    const ImageObject &object = image.objects[id];
    if (end > object.bytes.size()) return false;
    if (!object.symbol.empty()) {
        auto written = phase.globals.find(object.symbol);
        return written == phase.globals.end() || !written->second.touches(begin, end);
    }
    if (object.freed || !phase.allocations.count(object.origin) || phase.freed.count(object.origin)) return false;
    auto written = phase.heap.find(object.origin);
    return written == phase.heap.end() || !written->second.touches(begin, end);
}

Constant *Frozen::address(const ImagePointer &pointer) {
    const ImageObject &object = image.objects[pointer.object];
    Constant *base;
    if (!object.symbol.empty()) {
        base = program.getNamedValue(object.symbol);
        // The program may have lost a symbol that nothing names any more.
        if (!base) return nullptr;
    } else {
        if (object.freed || phase.freed.count(object.origin)) return nullptr;
        GlobalVariable *&placeholder = placeholders[pointer.object];
        if (!placeholder) {
            auto *type =
                ArrayType::get(Type::getInt8Ty(program.getContext()), std::max<size_t>(object.bytes.size(), 1));
            placeholder =
                new GlobalVariable(program, type, false, GlobalValue::ExternalLinkage, nullptr, "catena.block");
            placeholder->setAlignment(Align(16));
            byPlaceholder[placeholder] = pointer.object;
        }
        base = placeholder;
    }
    if (!pointer.offset) return base;
    Type *byte = Type::getInt8Ty(program.getContext());
    return ConstantExpr::getInBoundsGetElementPtr(
        byte, base, ConstantInt::get(Type::getInt64Ty(program.getContext()), pointer.offset));
}

Constant *Frozen::load(const Value *pointer, Type *type, bool rely) {
    const DataLayout &layout = program.getDataLayout();
    if (!type->isIntegerTy() && !type->isPointerTy() && !type->isFloatingPointTy()) return nullptr;
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const auto *global = dyn_cast<GlobalVariable>(pointer->stripAndAccumulateConstantOffsets(layout, offset, true));
    if (!global || offset.isNegative() || global->isConstant()) return nullptr;
    auto id = objectOf(global);
    uint64_t begin = offset.getZExtValue(), size = layout.getTypeStoreSize(type).getFixedValue();
    if (!id || size > 8 || !isKept(*id, begin, begin + size)) return nullptr;
    const ImageObject &object = image.objects[*id];
    if (type->isPointerTy()) {
        if (auto found = object.pointers.find(begin); found != object.pointers.end()) {
            Constant *target = address(found->second);
            if (target && rely) facts[{*id, begin}] = {size, found->second, 0};
            return target;
        }
    }
    if (!object.steady(begin, begin + size)) return nullptr;
    uint64_t value = 0;
    memcpy(&value, object.bytes.data() + begin, size);
    if (type->isPointerTy() && value) return nullptr;
    if (rely) {
        Fact &fact = facts[{*id, begin}];
        if (fact.size < size) fact = {size, std::nullopt, value};
    }
    if (type->isPointerTy()) return ConstantPointerNull::get(cast<PointerType>(type));
    auto *bits =
        ConstantInt::get(program.getContext(),
                         APInt(64, value).trunc(size * 8).zextOrTrunc(type->getPrimitiveSizeInBits().getFixedValue()));
    return ConstantFoldCastInstruction(Instruction::BitCast, bits, type);
}

/// A load through one of several pointers, by the path taken, is one of several values by the same path.
Value *Frozen::loadOfChoice(LoadInst &read) {
    const DataLayout &layout = program.getDataLayout();
    APInt offset(layout.getIndexTypeSizeInBits(read.getPointerOperandType()), 0);
    auto *choice = dyn_cast<PHINode>(read.getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true));
    if (!choice) return nullptr;
    std::vector<Constant *> values;
    for (bool rely : {false, true}) {
        values.clear();
        for (Value *pointer : choice->incoming_values()) {
            auto *constant = dyn_cast<Constant>(pointer);
            if (!constant) return nullptr;
            Type *byte = Type::getInt8Ty(program.getContext());
            Constant *at =
                ConstantExpr::getGetElementPtr(byte, constant, ConstantInt::get(program.getContext(), offset));
            values.push_back(load(at, read.getType(), rely));
            if (!values.back()) return nullptr;
        }
    }
    auto *chosen = PHINode::Create(read.getType(), values.size(), read.getName(), choice->getIterator());
    for (unsigned i = 0; i < values.size(); ++i) chosen->addIncoming(values[i], choice->getIncomingBlock(i));
    return chosen;
}

std::optional<ImagePointer> Frozen::placeOf(const Constant &value) const {
    const DataLayout &layout = program.getDataLayout();
    APInt offset(layout.getIndexTypeSizeInBits(value.getType()), 0);
    const auto *base = dyn_cast<GlobalVariable>(value.stripAndAccumulateConstantOffsets(layout, offset, true));
    auto object = base && offset.isIntN(32) ? objectOf(base) : std::nullopt;
    return object ? std::optional(ImagePointer{*object, offset.getZExtValue()}) : std::nullopt;
}

bool Frozen::isAddress(const Constant &value) const { return value.isNullValue() || placeOf(value); }

Constant *Frozen::addresses(const std::vector<Constant *> &values) {
    PointerType *pointer = PointerType::getUnqual(program.getContext());
    if (!tables)
        tables = new GlobalVariable(program, ArrayType::get(pointer, 0), false, GlobalValue::ExternalLinkage, nullptr,
                                    "catena.tables");
    size_t begin = tabled.size();
    for (const Constant *value : values) tabled.push_back(placeOf(*value));
    return ConstantExpr::getInBoundsGetElementPtr(pointer, tables,
                                                  ConstantInt::get(Type::getInt64Ty(program.getContext()), begin));
}

unsigned Frozen::foldLoads(Function &function) {
    unsigned folded = 0;
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
        auto *read = dyn_cast<LoadInst>(&instruction);
        if (!read || !read->isSimple()) continue;
        Value *value = load(read->getPointerOperand(), read->getType(), true);
        if (!value) value = loadOfChoice(*read);
        if (!value) continue;
        read->replaceAllUsesWith(value);
        read->eraseFromParent();
        ++folded;
    }
    return folded;
}

std::map<std::string, uint64_t> Frozen::bytesByGlobal() const {
    std::map<std::string, uint64_t> bytes;
    for (const auto &[key, fact] : facts)
        if (const std::string &symbol = image.objects[key.first].symbol; !symbol.empty()) bytes[symbol] += fact.size;
    return bytes;
}

std::map<unsigned, uint64_t> Frozen::bytesBySite() const {
    std::map<unsigned, uint64_t> bytes;
    for (const auto &[key, fact] : facts)
        if (const ImageObject &object = image.objects[key.first]; object.symbol.empty())
            bytes[object.origin] += fact.size;
    return bytes;
}

/// The facts in an order in which every block is pointed to before anything is said of it.
std::vector<std::pair<Frozen::FactKey, Frozen::Fact>> Frozen::orderedFacts() const {
    std::vector<std::pair<FactKey, Fact>> ordered;
    std::set<FactKey> given;
    // From global variables over all pointers, breadth first.
    std::map<unsigned, FactKey> way;
    std::vector<unsigned> order;
    for (unsigned i = 0; i < image.objects.size(); ++i)
        if (const std::string &symbol = image.objects[i].symbol; !symbol.empty())
            if (const auto *global = program.getNamedGlobal(symbol); global && !global->isDeclaration())
                order.push_back(i);
    std::set<unsigned> reached(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i)
        for (const auto &[offset, pointer] : image.objects[order[i]].pointers)
            if (image.objects[pointer.object].symbol.empty() && reached.insert(pointer.object).second) {
                way[pointer.object] = {order[i], offset};
                order.push_back(pointer.object);
            }
    auto lead = [&](unsigned object) {
        std::vector<FactKey> steps;
        for (auto found = way.find(object); found != way.end() && given.insert(found->second).second;
             found = way.find(found->second.first))
            steps.push_back(found->second);
        for (const FactKey &step : reverse(steps))
            ordered.push_back({step, {8, image.objects[step.first].pointers.at(step.second), 0}});
    };
    for (const auto &pointer : tabled)
        if (pointer) lead(pointer->object);
    for (const auto &[object, placeholder] : placeholders)
        if (!placeholder->use_empty()) lead(object);
    for (const auto &[key, fact] : facts) {
        lead(key.first);
        if (fact.pointer) lead(fact.pointer->object);
        if (given.insert(key).second) ordered.push_back({key, fact});
    }
    return ordered;
}

void Frozen::replacePlaceholders(const std::map<unsigned, Constant *> &slots) {
    std::vector<Constant *> used;
    for (auto &[object, placeholder] : placeholders)
        if (placeholder) used.push_back(placeholder);
    convertUsersOfConstantsToInstructions(used);
    for (auto &[object, placeholder] : placeholders) {
        while (!placeholder->use_empty()) {
            Use &use = *placeholder->use_begin();
            auto *user = cast<Instruction>(use.getUser());
            auto *phi = dyn_cast<PHINode>(user);
            Instruction *at = phi ? phi->getIncomingBlock(use)->getTerminator() : user;
            auto *load = new LoadInst(placeholder->getType(), slots.at(object), "block", at->getIterator());
            if (!phi) {
                use.set(load);
                continue;
            }
            // A block that comes in several times brings the same value each time.
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
                if (phi->getIncomingBlock(i) == at->getParent() && phi->getIncomingValue(i) == placeholder)
                    phi->setIncomingValue(i, load);
        }
        placeholder->eraseFromParent();
    }
    placeholders.clear();
}

namespace {

GlobalVariable *table(Module &program, Type *element, ArrayRef<Constant *> values, bool constant, const char *name) {
    auto *array = ArrayType::get(element, values.size());
    return new GlobalVariable(program, array, constant, GlobalValue::ExternalLinkage, ConstantArray::get(array, values),
                              name);
}

void count(Module &program, uint64_t number, const char *name) {
    Type *word = Type::getInt64Ty(program.getContext());
    new GlobalVariable(program, word, true, GlobalValue::ExternalLinkage, ConstantInt::get(word, number), name);
}

} // namespace

void Frozen::finish(CallBase &reception) {
    LLVMContext &context = program.getContext();
    Type *half = Type::getInt32Ty(context), *word = Type::getInt64Ty(context);
    PointerType *pointer = PointerType::getUnqual(context);
    auto *type = StructType::get(context, {half, half, half, half, word});
    std::map<unsigned, unsigned> numbers;
    auto number = [&](unsigned object) { return numbers.try_emplace(object, numbers.size()).first->second; };
    std::vector<Constant *> entries;
    auto small = [&](uint64_t value) { return ConstantInt::get(half, value); };
    for (const auto &[key, fact] : orderedFacts())
        entries.push_back(ConstantStruct::get(
            type, {small(number(key.first)), small(fact.pointer ? number(fact.pointer->object) : UINT32_MAX),
                   small(key.second), small(fact.size),
                   ConstantInt::get(word, fact.pointer ? fact.pointer->offset : fact.value)}));
    std::vector<Constant *> filled;
    auto *place = StructType::get(context, {half, half});
    for (const auto &pointer : tabled)
        filled.push_back(ConstantStruct::get(
            place, {small(pointer ? number(pointer->object) : UINT32_MAX), small(pointer ? pointer->offset : 0)}));
    std::vector<Constant *> addresses(numbers.size(), ConstantPointerNull::get(pointer));
    for (auto [object, index] : numbers)
        if (!image.objects[object].symbol.empty())
            addresses[index] = program.getNamedValue(image.objects[object].symbol);
    table(program, type, entries, true, "catena_facts");
    count(program, entries.size(), "catena_fact_count");
    table(program, place, filled, true, "catena_tabled");
    count(program, filled.size(), "catena_tabled_count");
    auto *empty = ConstantPointerNull::get(pointer);
    GlobalVariable *all =
        table(program, pointer, std::vector<Constant *>(filled.size(), empty), false, "catena_tables");
    if (tables) {
        tables->replaceAllUsesWith(all);
        tables->eraseFromParent();
    }
    GlobalVariable *objects = table(program, pointer, addresses, false, "catena_objects");
    std::map<unsigned, Constant *> slots;
    for (auto [object, index] : numbers)
        slots[object] = ConstantExpr::getInBoundsGetElementPtr(
            objects->getValueType(), objects,
            ArrayRef<Constant *>{ConstantInt::get(word, 0), ConstantInt::get(word, index)});
    replacePlaceholders(slots);

    // Once is enough: what is not written later cannot change later.
    auto *entered = new GlobalVariable(program, Type::getInt1Ty(context), false, GlobalValue::InternalLinkage,
                                       ConstantInt::getFalse(context), "catena.entered");
    IRBuilder<> builder(&reception);
    Value *known = builder.CreateLoad(builder.getInt1Ty(), entered);
    Instruction *then = SplitBlockAndInsertIfThen(builder.CreateNot(known), reception.getIterator(), false);
    builder.SetInsertPoint(then);
    builder.CreateStore(builder.getTrue(), entered);
    builder.CreateCall(program.getOrInsertFunction("catena_enter", builder.getVoidTy()));
}

} // namespace catena
