// What the types of a request and its parts allow, and nobody means.

#include <elf.h>
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/check.h"
#include "perfring/event/event_error.h"
#include "perfring/event/request.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using testing::FakeSystem;
using testing::kFaults;

// What plan() says of a target, or nothing if it plans.
std::string refused(const Target& target) {
  FakeSystem machine;
  const auto made = plan({.events = {kFaults}, .target = target}, machine);
  return made ? "" : made.error().field + ": " + made.error().says;
}

TEST(TargetMisuseTest, ATaskBelow0IsNotEveryTask) {
  for (const pid_t task : {-1, -5, INT_MIN}) {
    const std::string says = "pid: there is no task " + std::to_string(task);
    EXPECT_EQ(refused(thread(task)), says);
    EXPECT_EQ(refused(thread(task).on({0})), says);
    EXPECT_EQ(refused(process(task).and_children()), says);
  }
}

TEST(TargetMisuseTest, ACpuBeyondAnIntIsNotAnyCpu) {
  for (const std::uint32_t cpu : {0x80000000U, 0xffffffffU}) {
    const std::string says = "cpu: there is no CPU " + std::to_string(cpu);
    EXPECT_EQ(refused(this_thread().on({0, cpu})), says);
    EXPECT_EQ(refused(event::system().on({cpu})), says);
    EXPECT_EQ(refused(child({"x"}).on({cpu})), says);
  }
  EXPECT_EQ(refused(this_thread().on({0x7fffffffU})), "") << "it is the kernel's to refuse";
}

TEST(TargetMisuseTest, AChildOrAFolderBelow0IsRefused) {
  FakeSystem machine;
  const auto says = [&](const Target& target, pid_t pid) {
    const auto made = plan({.events = {kFaults}, .target = target}, machine, pid);
    return made ? "" : made.error().field + ": " + made.error().says;
  };
  EXPECT_EQ(says(child({"x"}), -1), "pid: there is no task -1") << "the kernel's -1 is every task";
  EXPECT_EQ(says(cgroup("/x"), INT_MIN), "pid: -2147483648 is not a descriptor");
  EXPECT_EQ(says(child({"x"}), INT_MAX), "") << "it is the kernel's to refuse";
  EXPECT_EQ(says(this_thread(), -1), "") << "a thread has no use for it";
}

TEST(TargetMisuseTest, ATargetOfAnUnknownKindIsRefused) {
  constexpr const char* kUnknown = "target: the kind of target is unknown";
  EXPECT_EQ(refused({.kind = Target::Kind{5}}), kUnknown);
  EXPECT_EQ(refused({.kind = Target::Kind{255}, .cpus = {0}}), kUnknown);
}

TEST(EventMisuseTest, AMovedFromEventHasNoName) {
  FakeSystem machine;
  for (Event event : {tracepoint("sched:sched_switch"), pmu("msr/tsc/"), kFaults,
                      kprobe("x").adjust([](perf_event_attr& attr) { attr.pinned = 1; })}) {
    const Event taken = std::move(event);
    ASSERT_TRUE(taken.attr(machine)) << taken.name();
    const auto attr = event.attr(machine);  // NOLINT: moved from, on purpose
    const bool has_name = taken.kind() == Kind::Tracepoint || taken.kind() == Kind::Pmu;
    EXPECT_EQ(attr.has_value(), !has_name) << taken.name();
    EXPECT_EQ(event.name(), "");
    event = taken;
    EXPECT_EQ(event.attr(machine).has_value(), true);
  }
}

TEST(EventMisuseTest, AnEmptyFunctionChangesNothing) {
  FakeSystem machine;
  EXPECT_TRUE(kFaults.adjust(nullptr).attr(machine));
  EXPECT_TRUE(kFaults.adjust(std::function<void(perf_event_attr&)>{}).attr(machine));
}

TEST(EventMisuseTest, ATextEndsAtItsFirstNul) {
  FakeSystem machine;
  const std::string with_nul{"do_it\0else", 10};
  const Event probe = kprobe(with_nul);
  const perf_event_attr attr = probe.attr(machine).value();
  EXPECT_STREQ(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(attr.config1)), "do_it");
  const auto none = tracepoint(std::string{"sched:sched_switch\0", 19}).attr(machine);
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().says.ends_with("is not the name of a tracepoint")) << none.error().says;
  EXPECT_FALSE(by_name(std::string_view{"page-faults\0", 12}));
}

TEST(EventMisuseTest, NumbersOfAnySizeAreTakenAsTheyAre) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  FakeSystem machine;
  machine.be_root();
  EXPECT_EQ(kFaults.period(kAll).attr(machine)->sample_period, kAll);
  EXPECT_EQ(kFaults.frequency(kAll).attr(machine)->sample_freq, kAll);
  EXPECT_EQ(kFaults.sample(kAll).attr(machine)->sample_type, kAll);
  EXPECT_EQ(breakpoint(kAll, Access{200}, kAll).attr(machine)->bp_type, 200U);
  EXPECT_EQ(kFaults.kernel(Kernel{9}).attr(machine)->exclude_kernel, 0U);
  const perf_event_attr own{};
  EXPECT_TRUE((Event{Kind{77}, "of no kind", own, Kernel::Included}.attr(machine)));
  // The kernel refuses all of them, and check() names them.
  for (const Event& event :
       {kFaults.period(kAll), kFaults.frequency(kAll), kFaults.sample(kAll),
        breakpoint(kAll, Access{200}, kAll), breakpoint(64, Access::Write, 0)}) {
    const auto found = check(Request{.events = {event}, .target = this_thread()}, machine);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().severity, Finding::Severity::Refused);
  }
}

TEST(EventMisuseTest, AMegabyteOfANameIsRefusedInTime) {
  FakeSystem machine;
  const std::string longest(1 << 20, 'a');
  EXPECT_FALSE(by_name(longest));
  EXPECT_FALSE(tracepoint("sched:" + longest).attr(machine));
  EXPECT_FALSE(pmu("msr/" + longest + "/").attr(machine));
  EXPECT_FALSE(TracepointFormat::parse(longest));
}

TEST(CausesMisuseTest, AnErrorOf0OrLessHasNoCause) {
  FakeSystem machine;
  Ask ask;
  ask.attr = kFaults.attr(machine).value();
  for (const int error : {0, -1, INT_MIN}) {
    EXPECT_TRUE(causes_of(ask, error, machine).empty()) << error;
    EXPECT_TRUE(machine.asked.empty()) << "and nothing is asked of the system";
  }
  const auto failed = EventError::at_failure(EventError::Step{99}, 0, ask, "", machine);
  EXPECT_EQ(failed.message(), "an event of type 1 of this thread: impossible");
  EXPECT_EQ(EventError{}.message(), ": impossible");
  EXPECT_NE(EventError{}.explain().find("to change: see perf_event_open(2)"), std::string::npos);
}

// An ELF file by hand, whose code is at 0x413000 in memory and at 0x200 in the file.
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

// What file_offset_of() says of the symbol in a file of this content.
std::string place_of(const std::string& content, const char* symbol) {
  const std::string path = ::testing::TempDir() + "/misuse_test.elf";
  std::filesystem::remove(path);  // ext4 writes one through that is cut to 0 (auto_da_alloc)
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
  // The string table is moved to the end, where "target" has no NUL.
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
  EXPECT_TRUE(found(0).empty()) << "what cannot be read is not judged";
}

// A byte that is neither 0 nor 1 is not a value of a bool.
TEST(FieldMisuseTest, ABoolIsTrueUnlessItIs0) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::vector<std::byte> raw{std::byte{0xff}, std::byte(byte), std::byte{0xff}};
    const std::optional<bool> is = NumberField<bool>{1}.of(raw);
    ASSERT_TRUE(is.has_value());
    unsigned char seen = 0xff;
    std::memcpy(&seen, &*is, 1);
    EXPECT_EQ(seen, byte == 0 ? 0 : 1) << byte;
  }
}

TEST(FieldMisuseTest, AFieldMadeByHandReadsNothingOutside) {
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
