// Parsing files: the symbols of an ELF file, and the fields of a tracepoint's format.

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using perfring::testing::FakeKernel;
using testing::FakeSystem;

// Builds an ELF file with code at 0x413000 in memory and at 0x200 in the file.
template <class Header, class Segment, class Section, class Symbol>
std::string elf_file(unsigned char elf_class) {
  constexpr std::uint64_t kCode = 0x413000;
  constexpr std::uint64_t kCodeAt = 0x200;
  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = elf_class;
  header.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  header.e_shoff = 0x400;
  header.e_shnum = 3;
  const auto segment = [](std::uint32_t type, auto offset, auto address) {
    Segment each{};
    each.p_type = type;
    each.p_flags = PF_R | PF_X;
    each.p_offset = static_cast<decltype(each.p_offset)>(offset);
    each.p_vaddr = static_cast<decltype(each.p_vaddr)>(address);
    each.p_filesz = 0x100;
    each.p_memsz = 0x1000;
    return each;
  };
  const auto symbol = [](std::uint32_t name, std::uint64_t value, std::uint16_t section) {
    Symbol each{};
    each.st_name = name;
    each.st_value = static_cast<decltype(each.st_value)>(value);
    each.st_shndx = section;
    return each;
  };
  const std::string_view names{"\0target\0undefined\0bss\0last\0first\0", 33};
  const Symbol symbols[] = {symbol(0, 0, 0),
                            symbol(8, kCode + 8, SHN_UNDEF),
                            symbol(1, kCode + 0x34, 1),
                            symbol(18, kCode + 0x100, 1),
                            symbol(22, kCode + 0xff, 1),
                            symbol(27, kCode, 1)};
  Section table{};
  table.sh_type = SHT_SYMTAB;
  table.sh_offset = 0x300;
  table.sh_size = sizeof symbols;
  table.sh_link = 2;
  Section strings{};
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = 0x3c0;
  strings.sh_size = static_cast<decltype(strings.sh_size)>(names.size());
  std::string file(0x400, '\0');
  const auto put = [&file](std::size_t at, const auto& value) {
    if (file.size() < at + sizeof value) file.resize(at + sizeof value);
    std::memcpy(&file[at], &value, sizeof value);
  };
  put(0, header);
  put(sizeof header, segment(PT_NOTE, 0, kCode));
  put(sizeof header + sizeof(Segment), segment(PT_LOAD, kCodeAt, kCode));
  put(0x300, symbols);
  static_assert(sizeof symbols <= 0xc0);
  file.replace(0x3c0, names.size(), names);
  put(0x400 + sizeof(Section), table);
  put(0x400 + 2 * sizeof(Section), strings);
  return file;
}

// Returns file_offset_of()'s answer for a symbol in a file with this content.
std::string place_of(const std::string& content, const char* symbol) {
  const std::string path = ::testing::TempDir() + "/parsed_files_test.elf";
  std::filesystem::remove(path);  // ext4 flushes a file that is truncated to 0 (auto_da_alloc)
  std::ofstream{path, std::ios::binary} << content;
  const auto offset = internal::file_offset_of(path.c_str(), symbol);
  if (offset) return std::to_string(*offset);
  std::string error = offset.error().says;
  return error.replace(error.find(path), path.size(), "it");
}

TEST(ElfSymbolTest, ASymbolsPlaceInTheFileIsNotItsAddress) {
  for (const std::string& file :
       {elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64),
        elf_file<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>(ELFCLASS32)}) {
    EXPECT_EQ(place_of(file, "target"), std::to_string(0x200 + 0x34));
    EXPECT_EQ(place_of(file, "last"), std::to_string(0x200 + 0xff));
    EXPECT_EQ(place_of(file, "first"), std::to_string(0x200));
    EXPECT_EQ(place_of(file, "undefined"), "it has no symbol undefined");
    EXPECT_EQ(place_of(file, "targe"), "it has no symbol targe");
    EXPECT_EQ(place_of(file, "arget"), "it has no symbol arget");
    EXPECT_EQ(place_of(file, "bss"), "bss is not in the file it");
    for (std::size_t size = 0; size < file.size(); size += 3) {
      EXPECT_NE(place_of(file.substr(0, size), "undefined"), "") << size;
    }
    for (std::size_t at = EI_NIDENT; at + 4 <= file.size(); at += 4) {
      for (const std::uint32_t word : {0U, 1U, 0x7fffffffU, ~0U}) {
        std::string damaged = file;
        std::memcpy(&damaged[at], &word, sizeof word);
        EXPECT_NE(place_of(damaged, "target"), "") << at;
      }
    }
  }
}

// The file is truncated between fstat() and the read: to nothing, in its header, in its symbols, in
// their names, before the last of these names, and after all that is read.
TEST(ElfSymbolTest, AFileThatIsCutOffMeanwhileIsAnError) {
  FakeKernel kernel;
  const auto place = [&kernel](std::size_t size, long cut_to) {
    std::string file = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
    constexpr std::uint32_t kFarName = 0x8000;
    std::memcpy(&file[0x300 + 2 * sizeof(Elf64_Sym)], &kFarName, sizeof kFarName);
    file.resize(size);
    kernel.files["/cut"] = file;
    kernel.cut_to = cut_to;
    const auto offset = internal::file_offset_of("/cut", "first");
    return offset ? std::to_string(*offset) : offset.error().says;
  };
  const std::string offset = std::to_string(0x200);
  constexpr std::size_t kPages = 1 << 16;
  EXPECT_EQ(place(kPages, -1), offset);
  for (const long cut_to : {0, 8, 0x40, 0x300, 0x3c0, 0x8000}) {
    EXPECT_EQ(place(kPages, cut_to), "/cut was truncated while it was read") << cut_to;
  }
  EXPECT_EQ(place(kPages, 0x9000), offset);
}

// The windows used for reading hold neither all symbols nor all names.
TEST(ElfSymbolTest, ASymbolIsFoundAcrossAnyBoundaryOfAWindow) {
  for (std::size_t shift = 4096 - 0x500; shift < 4096 + 8; shift += 8) {
    std::string file = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
    for (const std::size_t section : {1U, 2U}) {
      Elf64_Off offset = 0;
      char* const at =
          &file[0x400 + section * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset)];
      std::memcpy(&offset, at, sizeof offset);
      offset += shift;
      std::memcpy(at, &offset, sizeof offset);
    }
    const Elf64_Off sections = 0x400 + shift;
    std::memcpy(&file[offsetof(Elf64_Ehdr, e_shoff)], &sections, sizeof sections);
    file.insert(0x300, shift, '\0');
    ASSERT_EQ(place_of(file, "last"), std::to_string(0x200 + 0xff)) << shift;
    ASSERT_EQ(place_of(file, "lost"), "it has no symbol lost") << shift;
  }
  const std::string name(10'000, 'x');
  std::string file = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
  const auto at = static_cast<std::uint32_t>(file.size() - 0x3c0);
  std::memcpy(&file[0x300 + 2 * sizeof(Elf64_Sym)], &at, sizeof at);
  file += name + '\0';
  EXPECT_EQ(place_of(file, name.c_str()), std::to_string(0x200 + 0x34));
  EXPECT_EQ(place_of(file, (name + 'x').c_str()), "it has no symbol " + name + 'x');
  EXPECT_EQ(place_of(file, name.substr(1).c_str()), "it has no symbol " + name.substr(1));
}

TEST(ElfSymbolTest, OnPpc64ElfV2ASymbolsPlaceIsItsLocalEntry) {
  const auto place = [](Elf64_Half machine, Elf64_Word abi, unsigned char other) {
    std::string file = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
    std::memcpy(&file[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof machine);
    std::memcpy(&file[offsetof(Elf64_Ehdr, e_flags)], &abi, sizeof abi);
    file[0x300 + 2 * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_other)] = static_cast<char>(other);
    return place_of(file, "target");
  };
  EXPECT_EQ(place(EM_PPC64, 2, 3 << 5), std::to_string(0x200 + 0x34 + 8));
  EXPECT_EQ(place(EM_PPC64, 2, 2 << 5 | STV_PROTECTED), std::to_string(0x200 + 0x34 + 4));
  EXPECT_EQ(place(EM_PPC64, 2, 1 << 5), std::to_string(0x200 + 0x34));
  EXPECT_EQ(place(EM_PPC64, 1, 3 << 5), std::to_string(0x200 + 0x34));
  EXPECT_EQ(place(EM_X86_64, 2, 3 << 5), std::to_string(0x200 + 0x34));
}

TEST(ElfSymbolTest, ANameThatTheFilesEndCutsOffDoesNotMatch) {
  std::string file = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
  // Moves the string table to the end of the file, where "target" has no NUL.
  const std::uint64_t names = file.size() - 1;
  std::memcpy(&file[0x400 + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset)], &names, 8);
  EXPECT_EQ(place_of(file + "target", "target"), "it has no symbol target");
  EXPECT_EQ(place_of(file + std::string{"target\0", 7}, "target"), std::to_string(0x200 + 0x34));
}

// R26
TEST(ElfSymbolTest, CodeIsInAnExecutableSegment) {
  using Segment = Elf64_Phdr;
  const std::string wide = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
  const std::string narrow = elf_file<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>(ELFCLASS32);
  for (const std::string& file : {wide, narrow}) {
    for (const std::uint64_t place : {0x200U, 0x234U, 0x2ffU}) {
      EXPECT_TRUE(internal::may_be_code(file, place)) << place;
    }
    for (const std::uint64_t place : {0U, 0x1ffU, 0x300U, ~0U}) {
      EXPECT_FALSE(internal::may_be_code(file, place)) << place;
    }
    for (std::size_t size = 0; size < file.size(); size += 3) {
      static_cast<void>(internal::may_be_code(file.substr(0, size), 0));
    }
  }
  std::string data = wide;
  data[sizeof(Elf64_Ehdr) + sizeof(Segment) + offsetof(Segment, p_flags)] = PF_R;
  if (std::endian::native == std::endian::little) {
    EXPECT_FALSE(internal::may_be_code(data, 0x234)) << "no segment is executable";
  }
  std::string whole = wide;
  const std::uint64_t from_0 = 0;
  std::memcpy(&whole[sizeof(Elf64_Ehdr) + sizeof(Segment) + offsetof(Segment, p_offset)], &from_0,
              sizeof from_0);
  EXPECT_FALSE(internal::may_be_code(whole, sizeof(Elf64_Ehdr) - 1)) << "it is the header";
  EXPECT_TRUE(internal::may_be_code(whole, sizeof(Elf64_Ehdr)));
  EXPECT_TRUE(internal::may_be_code("", 0)) << "of any other file nothing is known";
  EXPECT_TRUE(internal::may_be_code(wide.substr(0, 0x80), 0x40)) << "nor of segments further on";
}

TEST(ElfSymbolTest, AUprobeOutsideOfCodeIsNamed) {
  FakeSystem machine;
  machine.be_root();
  machine.files["/prog"] = elf_file<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(ELFCLASS64);
  machine.kinds["/prog"] = {FileKind::Type::Regular, machine.files["/prog"].size(), 0};
  const auto found = [&](std::uint64_t offset) {
    return check(Request{.events = {uprobe("/prog", offset)}}, machine);
  };
  EXPECT_TRUE(found(0x234).empty());
  ASSERT_EQ(found(0).size(), 1U);
  EXPECT_EQ(found(0).front().field, "probe_offset");
  EXPECT_EQ(found(0).front().severity, Finding::Severity::Silent);
  machine.files.erase("/prog");
  EXPECT_TRUE(found(0).empty()) << "it judges no file that it cannot read";
}

// As printed by the kernel (L: sched:sched_process_exec, and sched:sched_switch's comm).
constexpr const char* kFormat =
    "name: sched_process_exec\nID: 310\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
    "\tfield:__rel_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\nprint fmt: \"filename=%s\", __get_str(filename)\n";

class TracepointFormatTest : public ::testing::Test {
 protected:
  TracepointFormat format = TracepointFormat::parse(kFormat).value();
  std::vector<std::byte> raw = std::vector<std::byte>(64);

  template <class T>
  void put(std::size_t at, const T& value) {
    std::memcpy(raw.data() + at, &value, sizeof value);
  }
};

TEST_F(TracepointFormatTest, ReadsTypedFieldsByName) {
  put(4, std::int32_t{-7});
  put(16, std::array{'s', 'h', '\0', 'x'});
  put(8, std::uint32_t{6 << 16 | 40});
  put(40, std::array{'/', 'b', 'i', 'n', '/', 'x'});
  put(32, std::uint32_t{3 << 16 | 12});  // counted from 36
  put(48, std::array{'a', 'b', '\0'});
  EXPECT_EQ(format.field<std::int32_t>("common_pid")->of(raw), -7);
  EXPECT_EQ(format.field<std::uint16_t>("common_type")->of(raw), 0);
  EXPECT_EQ(format.text("comm")->of(raw), "sh");
  EXPECT_EQ(format.text("filename")->of(raw), "/bin/x");
  EXPECT_EQ(format.text("name")->of(raw), "ab");
}

TEST_F(TracepointFormatTest, AnotherTypeOrNameIsRefusedWhenItIsBound) {
  ASSERT_FALSE(format.field<std::uint32_t>("pid"));
  EXPECT_NE(format.field<std::uint32_t>("pid").error().says.find("a signed integer of 4 bytes"),
            std::string::npos);
  EXPECT_FALSE(format.field<std::int64_t>("pid"));
  EXPECT_FALSE(format.field<std::int16_t>("common_type")) << "it is unsigned";
  ASSERT_FALSE(format.field<char>("comm"));
  EXPECT_NE(format.field<char>("comm").error().says.find("an array"), std::string::npos);
  EXPECT_FALSE(format.field<std::uint32_t>("filename"));
  EXPECT_NE(format.text("pid").error().says.find("not text"), std::string::npos);
  EXPECT_NE(format.text("com").error().advice.find("comm"), std::string::npos);
  EXPECT_FALSE(TracepointFormat::parse(""));
  EXPECT_EQ(format.fields().size(), 6U);
  EXPECT_FALSE(TracepointFormat::parse("\tfield:int x;\toffset:y;\tsize:4;\tsigned:1;\n"));
}

TEST_F(TracepointFormatTest, NothingOutsideTheRawDataIsRead) {
  const auto pid = format.field<std::int32_t>("pid").value();
  const auto filename = format.text("filename").value();
  const auto comm = format.text("comm").value();
  for (std::size_t size = 0; size <= raw.size(); ++size) {
    const std::vector<std::byte> cut{raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(size)};
    EXPECT_EQ(pid.of(cut).has_value(), size >= 16) << size;
    EXPECT_EQ(comm.of(cut).has_value(), size >= 32) << size;
  }
  for (const std::uint32_t location : {0xffffffffU, 0x0001ffffU, 0xffff0000U, 0x00010040U}) {
    put(8, location);
    EXPECT_FALSE(filename.of(raw)) << location;
  }
  put(8, std::uint32_t{1 << 16 | 63});
  EXPECT_TRUE(filename.of(raw));
}

// Both halves of a location have 16 bits.
TEST_F(TracepointFormatTest, LocationHalvesAre16BitsWide) {
  raw.assign(0xffff + 0x1234, std::byte{'x'});
  const auto filename = format.text("filename").value();
  put(8, std::uint32_t{0x1234} << 16 | 0xffff);
  ASSERT_TRUE(filename.of(raw));
  EXPECT_EQ(filename.of(raw)->size(), 0x1234U);
  EXPECT_EQ(static_cast<const void*>(filename.of(raw)->data()), raw.data() + 0xffff);
  raw.pop_back();
  EXPECT_FALSE(filename.of(raw));
  put(8, std::uint32_t{0xffff} << 16 | 16);
  EXPECT_EQ(filename.of(raw)->size(), 0xffffU);
}

// Neither the bytes of a pointer nor characters of more than one byte are text.
TEST(TracepointTextTest, OnlyAnArrayOfCharIsText) {
  const auto is_text = [](const std::string& declared) {
    const auto parsed =
        TracepointFormat::parse("\tfield:" + declared + ";\toffset:8;\tsize:16;\tsigned:0;\n");
    if (!parsed) return parsed.error().says;
    EXPECT_EQ(parsed->fields().front().name, "name");
    const auto text = parsed->text("name");
    return text ? "text" : text.error().says;
  };
  for (const char* const declared :
       {"char name[16]", "const char name[16]", "__data_loc char[] name", "__rel_loc char[] name",
        "__data_loc const char[] name"}) {
    EXPECT_EQ(is_text(declared), "text") << declared;
  }
  for (const char* const type : {"char *", "const char *", "char * const", "unsigned char",
                                 "char16_t", "const char32_t", "character", "u8"}) {
    const std::string expected = std::string{"the field name is not text ("} + type + ")";
    EXPECT_EQ(is_text(std::string{type} + " name[2]"), expected);
    EXPECT_EQ(is_text(std::string{"__data_loc "} + type + "[] name"), expected);
  }
  EXPECT_EQ(is_text("char name"), "the field name is not text (char)") << "it is one character";
}

// A byte other than 0 and 1 is not a valid bool.
TEST(FieldMisuseTest, ABoolIsTrueUnlessItIs0) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::vector<std::byte> raw{std::byte{0xff}, std::byte(byte), std::byte{0xff}};
    const std::optional<bool> is = NumberField<bool>{1}.of(raw);
    ASSERT_TRUE(is.has_value());
    unsigned char stored = 0xff;
    std::memcpy(&stored, &*is, 1);
    EXPECT_EQ(stored, byte == 0 ? 0 : 1) << byte;
  }
}

TEST(FieldMisuseTest, AHandMadeFieldReadsNothingOutside) {
  constexpr std::size_t kLast = ~std::size_t{0};
  const std::vector<std::byte> raw(16);
  for (const std::size_t offset : {kLast, kLast - 3, kLast - 7, std::size_t{9}}) {
    EXPECT_FALSE(NumberField<std::uint64_t>{offset}.of(raw)) << offset;
  }
  EXPECT_FALSE(NumberField<std::uint8_t>{0}.of({}));
  EXPECT_FALSE(NumberField<bool>{16}.of(raw));
  using Place = FieldFormat::Place;
  for (const Place place : {Place::Here, Place::DataLocation, Place::Relative, Place{9}}) {
    FieldFormat format{.name = "x", .type = "char", .offset = kLast, .size = kLast, .place = place};
    EXPECT_FALSE(TextField{format}.of(raw));
    format.offset = 15;
    EXPECT_FALSE(TextField{format}.of(raw));
    EXPECT_FALSE(TextField{format}.of({}));
  }
}

}  // namespace
}  // namespace perfring::event
