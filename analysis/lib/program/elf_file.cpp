// Bitcode files in one section stand one behind the other, without any table. Each is a magic number and blocks at
// offsets divisible by four, and each block says how long it is (LLVM Bitcode File Format, "Magic Numbers" and
// "ENTER_SUBBLOCK Encoding"): so where the next magic number stands, the next file begins.
#include "program/elf_file.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using object::ELF64LE;
using object::ELFFile;

namespace catena {

namespace {

constexpr StringRef magic("BC\xC0\xDE");

std::vector<StringRef> split(StringRef section) {
    std::vector<StringRef> parts;
    while (section.size() >= 8) {
        // What begins otherwise is left as it is: reading it will say what is wrong.
        uint64_t end = 4;
        while (section.starts_with(magic) && end + 8 <= section.size() && !section.substr(end).starts_with(magic))
            end += 8 + 4 * uint64_t(support::endian::read32le(section.data() + end + 4));
        if (!section.starts_with(magic) || end + 8 > section.size()) end = section.size();
        parts.push_back(section.take_front(end));
        section = section.drop_front(end);
    }
    return parts;
}

/// Return a string of the dynamic section's string table.
Expected<std::string> dynamicString(const ELFFile<ELF64LE> &elf, uint64_t table, uint64_t offset) {
    auto begin = elf.toMappedAddr(table);
    if (!begin) return begin.takeError();
    const uint8_t *end = elf.end();
    if (*begin < elf.base() || *begin >= end || offset >= uint64_t(end - *begin))
        return createStringError(inconvertibleErrorCode(), "a name outside of the file");
    StringRef rest(reinterpret_cast<const char *>(*begin + offset), size_t(end - *begin - offset));
    return rest.take_until([](char c) { return c == 0; }).str();
}

Error readDynamic(const ELFFile<ELF64LE> &elf, ElfFile &file) {
    auto entries = elf.dynamicEntries();
    if (!entries) return entries.takeError();
    uint64_t table = 0;
    for (const auto &entry : *entries) {
        if (entry.d_tag == ELF::DT_STRTAB) table = entry.d_un.d_ptr;
        // An executable that may lie anywhere is a shared object to the loader; this tells it from libraries.
        if (entry.d_tag == ELF::DT_FLAGS_1 && (entry.d_un.d_val & ELF::DF_1_PIE)) file.kind = ElfFile::Executable;
    }
    for (const auto &entry : *entries) {
        if (entry.d_tag != ELF::DT_SONAME && entry.d_tag != ELF::DT_NEEDED) continue;
        auto name = dynamicString(elf, table, entry.d_un.d_val);
        if (!name) return name.takeError();
        if (entry.d_tag == ELF::DT_SONAME)
            file.soname = *name;
        else
            file.needed.push_back(*name);
    }
    return Error::success();
}

} // namespace

bool isElf(StringRef bytes) { return bytes.starts_with("\x7f\x45LF"); }

Expected<ElfFile> readElf(MemoryBufferRef buffer) {
    StringRef bytes = buffer.getBuffer();
    if (bytes.size() < sizeof(ELF::Elf64_Ehdr) || uint8_t(bytes[ELF::EI_CLASS]) != ELF::ELFCLASS64 ||
        uint8_t(bytes[ELF::EI_DATA]) != ELF::ELFDATA2LSB)
        return createStringError(inconvertibleErrorCode(), "it is not of 64 bits, least byte first");
    auto elf = ELFFile<ELF64LE>::create(bytes);
    if (!elf) return elf.takeError();
    ElfFile file;
    uint16_t type = elf->getHeader().e_type;
    file.kind = type == ELF::ET_EXEC  ? ElfFile::Executable
                : type == ELF::ET_DYN ? ElfFile::SharedLibrary
                                      : ElfFile::Object;
    auto sections = elf->sections();
    if (!sections) return sections.takeError();
    for (const auto &section : *sections) {
        auto name = elf->getSectionName(section);
        if (!name) return name.takeError();
        if (*name != bitcodeSection && *name != ".llvmbc") continue;
        auto contents = elf->getSectionContents(section);
        if (!contents) return contents.takeError();
        append_range(file.bitcode, split(toStringRef(*contents)));
    }
    if (type != ELF::ET_REL)
        if (Error error = readDynamic(*elf, file)) return error;
    return file;
}

} // namespace catena
