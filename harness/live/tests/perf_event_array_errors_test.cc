// Provokes every way in which the system refuses a map or an entry (K44).

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/bpf_common.h>
#include <linux/btf.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <gmock/gmock.h>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array.h"
#include "perfring/perf_event_array_error.h"

namespace perfring::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PerfEventArrayErrorsTest : public LiveTest {
 protected:
  // Returns the cause of a failure, which must be a T.
  template <class T, class Result>
  static T cause(const Result& result) {
    if (result) throw std::runtime_error("it succeeded");
    return std::get<T>(result.error().cause);
  }

  // Returns the emitter's map, by a descriptor that may only read it.
  PerfEventArray read_only_array() {
    const auto info = must(os::bpf_map_info_of(emitter().map_fd()));
    bpf_get_fd_by_id_opts options{};
    options.sz = sizeof(options);
    options.open_flags = BPF_F_RDONLY;
    const os::Fd read_only{bpf_map_get_fd_by_id_opts(info.id, &options)};
    if (read_only.get() < 0) throw std::system_error(errno, std::generic_category());
    return must(PerfEventArray::from_fd(read_only.get()));
  }
};

TEST_F(PerfEventArrayErrorsTest, AClosedDescriptorIsNoMap) {
  const auto array = PerfEventArray::from_fd(-1);
  const auto error = cause<SyscallError>(array);
  EXPECT_STREQ(error.call, "fcntl(F_DUPFD_CLOEXEC)");
  EXPECT_EQ(error.object, "map fd -1");
  EXPECT_EQ(error.io_error, std::errc::bad_file_descriptor);
  EXPECT_EQ(array.error().message(), "`fcntl(F_DUPFD_CLOEXEC)` failed: Bad file descriptor");
  EXPECT_EQ(array.error().explain(),
            "asked for: fcntl(F_DUPFD_CLOEXEC) of map fd -1\n"
            "the system said: Bad file descriptor\n"
            "to change: give the descriptor of an open BPF map");
}

TEST_F(PerfEventArrayErrorsTest, APipeIsNoMap) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const os::Fd in{ends[0]};
  const os::Fd out{ends[1]};
  const auto array = PerfEventArray::from_fd(in.get());
  const auto error = cause<SyscallError>(array);
  EXPECT_STREQ(error.call, "bpf_obj_get_info_by_fd");
  EXPECT_EQ(error.io_error, std::errc::invalid_argument);
  EXPECT_EQ(array.error().message(), "`bpf_obj_get_info_by_fd` failed: Invalid argument");
  EXPECT_EQ(error.object, "map fd " + std::to_string(in.get()));
  EXPECT_THAT(array.error().explain(), HasSubstr("to change: give a BPF map"));
}

TEST_F(PerfEventArrayErrorsTest, AMapOfAnotherTypeIsRefused) {
  for (const bpf_map_type type : {BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_HASH}) {
    const os::Fd map{bpf_map_create(type, nullptr, 4, 4, 1, nullptr)};
    ASSERT_GE(map.get(), 0);
    const auto array = PerfEventArray::from_fd(map.get());
    EXPECT_EQ(cause<InvalidMapType>(array).map_type, static_cast<std::uint32_t>(type));
    EXPECT_EQ(array.error().message(), "invalid map type " + std::to_string(type));
    EXPECT_THAT(array.error().explain(),
                AllOf(HasSubstr("the map is of type " + std::to_string(type)),
                      HasSubstr("give a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY (4)")));
  }
}

// BPF_OBJ_GET_INFO_BY_FD also answers for a program, and the info starts with the program's type. 4
// is BPF_PROG_TYPE_SCHED_ACT as well as the type of a perf event array.
TEST_F(PerfEventArrayErrorsTest, AProgramIsNoMap) {
  static_assert(static_cast<int>(BPF_PROG_TYPE_SCHED_ACT) ==
                static_cast<int>(BPF_MAP_TYPE_PERF_EVENT_ARRAY));
  for (const bpf_prog_type type : {BPF_PROG_TYPE_SCHED_ACT, BPF_PROG_TYPE_RAW_TRACEPOINT}) {
    std::array<bpf_insn, 2> instructions{};
    instructions[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
    instructions[1].code = BPF_JMP | BPF_EXIT;
    const os::Fd program{
        bpf_prog_load(type, nullptr, "GPL", instructions.data(), instructions.size(), nullptr)};
    ASSERT_GE(program.get(), 0);
    const auto array = PerfEventArray::from_fd(program.get());
    if (type == BPF_PROG_TYPE_SCHED_ACT) {
      EXPECT_EQ(cause<SyscallError>(array).io_error, std::errc::invalid_argument);
      EXPECT_THAT(array.error().explain(), HasSubstr("to change: give a BPF map"));
    } else {
      EXPECT_EQ(cause<InvalidMapType>(array).map_type, static_cast<std::uint32_t>(type));
    }
  }
}

// BTF's info begins with the address of a buffer, and none is given.
TEST_F(PerfEventArrayErrorsTest, BtfIsNoMap) {
  struct {
    btf_header header;
    btf_type type;
    std::uint32_t integer;
    char strings[5];
  } data{};
  data.header.magic = BTF_MAGIC;
  data.header.version = BTF_VERSION;
  data.header.hdr_len = sizeof(btf_header);
  data.header.type_len = sizeof(btf_type) + 4;
  data.header.str_off = sizeof(btf_type) + 4;
  data.header.str_len = sizeof data.strings;
  data.type.name_off = 1;
  data.type.info = BTF_KIND_INT << 24;
  data.type.size = 4;
  data.integer = 32;
  std::memcpy(data.strings, "\0int", sizeof data.strings);
  const os::Fd btf{
      bpf_btf_load(&data, offsetof(decltype(data), strings) + sizeof data.strings, nullptr)};
  ASSERT_GE(btf.get(), 0) << errno;
  const auto array = PerfEventArray::from_fd(btf.get());
  EXPECT_EQ(cause<InvalidMapType>(array).map_type, 0U);
}

// K44. The helper also returns E2BIG for such an index (perf_event_array_test.cc).
TEST_F(PerfEventArrayErrorsTest, AnIndexOutsideTheMapIsAnIOError) {
  if (!other_cpu()) GTEST_SKIP() << "only one CPU is online";
  auto emitter = must(Emitter::create(*other_cpu()));
  auto array = must(PerfEventArray::from_fd(emitter.map_fd()));
  const auto buffer = array.open(*other_cpu(), 8);
  const auto error = cause<PerfBufferError>(buffer);
  EXPECT_EQ(error.kind, PerfBufferError::Kind::IOError);
  EXPECT_EQ(error.io_error, std::errc::argument_list_too_long);  // E2BIG
  EXPECT_EQ(error.cpu, *other_cpu());
  EXPECT_EQ(error.page_count, 8u);
  EXPECT_EQ(buffer.error().message(), "Argument list too long");
  EXPECT_THAT(buffer.error().explain(),
              AllOf(HasSubstr("BPF_MAP_UPDATE_ELEM of index " + std::to_string(*other_cpu())),
                    HasSubstr("use an index below the map's max_entries")));
}

TEST_F(PerfEventArrayErrorsTest, AReadOnlyMapIsAnIOError) {
  auto array = read_only_array();
  const auto buffer = array.open(cpu());
  const auto error = cause<PerfBufferError>(buffer);
  EXPECT_EQ(error.kind, PerfBufferError::Kind::IOError);
  EXPECT_EQ(error.io_error, std::errc::operation_not_permitted);
  EXPECT_EQ(error.page_count, 2u);
  EXPECT_EQ(buffer.error().message(), "Operation not permitted");
  EXPECT_THAT(buffer.error().explain(), HasSubstr("a map that is not read-only"));
}

TEST_F(PerfEventArrayErrorsTest, ABufferThatCannotBeOpenedSaysWhy) {
  const auto refused = array().open(cpu(), 3);
  EXPECT_EQ(cause<PerfBufferError>(refused).kind, PerfBufferError::Kind::InvalidPageCount);
  EXPECT_EQ(refused.error().message(), "invalid page count 3, the value must be a power of two");
  const auto no_cpu = array().open(1u << 20);
  EXPECT_EQ(cause<PerfBufferError>(no_cpu).kind, PerfBufferError::Kind::OpenError);
  EXPECT_THAT(no_cpu.error().explain(), HasSubstr("choose an online CPU"));
  EXPECT_EQ(emit(8), -ENOENT);  // no entry was made
}

// K44, for the call that PerfEventArray makes: a descriptor that is not an event, or is closed.
TEST_F(PerfEventArrayErrorsTest, OnlyAnOpenEventCanBeAnEntry) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const os::Fd in{ends[0]};
  const os::Fd out{ends[1]};
  for (const int fd : {-1, in.get(), array().fd()}) {
    const auto updated = os::bpf_map_update(array().fd(), 0, static_cast<std::uint32_t>(fd));
    ASSERT_FALSE(updated.has_value()) << fd;
    EXPECT_EQ(updated.error(), std::errc::bad_file_descriptor) << fd;
  }
}

// Checks that a change of an entry, by set() or unset(), was refused: the call, the entry, and the
// system's error.
template <class Result>
void expect_entry_refused(const Result& changed, const char* call, const std::string& object,
                          std::errc code, const char* change) {
  ASSERT_FALSE(changed.has_value()) << object;
  const auto error = std::get<SyscallError>(changed.error().cause);
  EXPECT_STREQ(error.call, call);
  EXPECT_EQ(error.object, object);
  EXPECT_EQ(error.io_error, code) << error.io_error.message();
  EXPECT_THAT(changed.error().explain(),
              AllOf(HasSubstr(std::string{"asked for: "} + call + " of " + object + "\n"),
                    HasSubstr(change)));
}

TEST_F(PerfEventArrayErrorsTest, OnlyAnEventCanBeSet) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const os::Fd in{ends[0]};
  const os::Fd out{ends[1]};
  for (const int fd : {-1, in.get(), array().fd()}) {
    expect_entry_refused(array().set(cpu(), fd), "bpf_map_update_elem",
                         "index " + std::to_string(cpu()) + " with fd " + std::to_string(fd),
                         std::errc::bad_file_descriptor,
                         "give the descriptor of an open perf event");
  }
  EXPECT_EQ(emit(8), -ENOENT);
}

// K44. perf_event_fd_array_get_ptr() asks perf_event_read_local() (kernel/events/core.c).
TEST_F(PerfEventArrayErrorsTest, AnInheritedEventCannotBeSet) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.inherit = 1;
  const os::Fd event = must(os::perf_event_open(attr, cpu()));
  expect_entry_refused(array().set(cpu(), event.get()), "bpf_map_update_elem",
                       "index " + std::to_string(cpu()) + " with fd " + std::to_string(event.get()),
                       std::errc::operation_not_supported, "without attr.inherit");
}

// K44
TEST_F(PerfEventArrayErrorsTest, AnEmptyEntryCannotBeUnset) {
  expect_entry_refused(array().unset(cpu()), "bpf_map_delete_elem",
                       "index " + std::to_string(cpu()), std::errc::no_such_file_or_directory,
                       "the entry is empty already");
}

TEST_F(PerfEventArrayErrorsTest, SetOrUnsetOutsideMapIsOutOfBounds) {
  auto emitter = must(Emitter::create(3));
  auto array = must(PerfEventArray::from_fd(emitter.map_fd()));
  auto buffer = must(PerfEventArrayBuffer::open(cpu(), 1));
  must(array.set(2, buffer.fd()));
  must(array.unset(2));
  for (const auto& changed : {array.set(3, buffer.fd()), array.unset(3)}) {
    const auto error = cause<OutOfBounds>(changed);
    EXPECT_EQ(error.index, 3u);
    EXPECT_EQ(error.max_entries, 3u);
    EXPECT_EQ(changed.error().message(), "the index is 3 but `max_entries` is 3");
  }
}

TEST_F(PerfEventArrayErrorsTest, EntriesOfAReadOnlyMapCannotBeChanged) {
  auto array = read_only_array();
  auto buffer = must(PerfEventArrayBuffer::open(cpu(), 1));
  const std::string entry = "index " + std::to_string(cpu());
  expect_entry_refused(array.set(cpu(), buffer.fd()), "bpf_map_update_elem",
                       entry + " with fd " + std::to_string(buffer.fd()),
                       std::errc::operation_not_permitted, "neither read-only nor frozen");
  expect_entry_refused(array.unset(cpu()), "bpf_map_delete_elem", entry,
                       std::errc::operation_not_permitted, "neither read-only nor frozen");
}

}  // namespace
}  // namespace perfring::live
