// A field is where the steps from the beginning of a header lead.
#include "statealyzr/header_fields.h"

#include "library/list_file.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

HeaderFields::HeaderFields(const Module &program) : layout(program.getDataLayout()), structs(program) {
    for (const ListLine &line : parseList(lists::header_fields))
        for (StringRef member : line.rest)
            if (!line.words.empty()) listed[member] = line.words.front().str();
}

std::string HeaderFields::nameOf(const Value *pointer) const {
    uint64_t offset = 0;
    bool stepped = false;
    const DICompositeType *type = nullptr;
    while (const auto *step = dyn_cast<GEPOperator>(pointer)) {
        APInt distance(64, 0);
        if (!step->accumulateConstantOffset(layout, distance)) break;
        const auto *structure = dyn_cast<StructType>(step->getSourceElementType());
        // A step from header to header is no field.
        if (structure && step->getNumIndices() == 1) break;
        if (type && !structure) break;
        offset += distance.getZExtValue();
        stepped = true;
        if (structure) type = structs.find(structure);
        pointer = step->getPointerOperand();
    }
    // Before the pointer lies a header that was stepped over.
    if (static_cast<int64_t>(offset) < 0) return "";
    if (!type) return stepped ? "packet[" + std::to_string(offset) + "]" : "";
    std::string name = type->getName().str();
    if (name == "pcap_pkthdr" || name == "msghdr" || holdsPointers(type)) return "";
    // Headers within the program's own headers have the names they have alone.
    uint64_t inside = offset;
    for (const DICompositeType *inner = type; inner; inner = memberType(inner, inside)) {
        // Members within members: the longest listed beginning names the field.
        std::string member = memberAt(inner, inside);
        for (StringRef path = member; !path.empty(); path = path.rsplit('.').first) {
            auto known = listed.find((inner->getName() + "." + path).str());
            if (known != listed.end()) return known->second;
            if (!path.contains('.')) break;
        }
    }
    return name + "." + memberAt(type, offset);
}

} // namespace catena
