#ifndef PERFRING_RECORD_MAPPINGS_H_
#define PERFRING_RECORD_MAPPINGS_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Records of mappings and of code: Mmap, Mmap2, Ksymbol, BpfEvent, TextPoke. Fields are named as in
// the uapi's comments. decode() constructs these views.
// T and R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/view.h"

namespace perfring::record {

// The fields that Mmap and Mmap2 share.
class AnyMmap : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(12); }
  std::uint64_t addr() const noexcept { return get<std::uint64_t>(16); }
  std::uint64_t len() const noexcept { return get<std::uint64_t>(24); }
  std::uint64_t pgoff() const noexcept { return get<std::uint64_t>(32); }
  // From misc: the mapping is not executable (T6).
  bool is_data() const noexcept { return (header().misc & PERF_RECORD_MISC_MMAP_DATA) != 0; }

  using SideBand::SideBand;

 protected:
  internal::Walk after_pgoff() const noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "tid");
    walk.pass(8, "addr");
    walk.pass(8, "len");
    walk.pass(8, "pgoff");
    return walk;
  }
};

class Mmap : public AnyMmap {
 public:
  std::string_view filename() const noexcept { return string(filename_); }

  using AnyMmap::AnyMmap;
  const char* parse() noexcept {
    internal::Walk walk = after_pgoff();
    filename_ = walk.string("filename");
    return end_of(walk);
  }

 private:
  internal::Place filename_;
};

class Mmap2 : public AnyMmap {
 public:
  // The file's numbers, unless there is a build id in their place.
  std::optional<std::uint32_t> maj() const noexcept { return file<std::uint32_t>(40); }
  std::optional<std::uint32_t> min() const noexcept { return file<std::uint32_t>(44); }
  std::optional<std::uint64_t> ino() const noexcept { return file<std::uint64_t>(48); }
  std::optional<std::uint64_t> ino_generation() const noexcept { return file<std::uint64_t>(56); }
  // The build id, of build_id_size bytes. misc alone is not reliable (R14).
  std::optional<Bytes> build_id() const noexcept {
    if (!has_build_id()) return std::nullopt;
    return bytes(build_id_);
  }
  std::uint32_t prot() const noexcept { return get<std::uint32_t>(64); }
  std::uint32_t flags() const noexcept { return get<std::uint32_t>(68); }
  std::string_view filename() const noexcept { return string(filename_); }

  using AnyMmap::AnyMmap;
  const char* parse() noexcept {
    internal::Walk walk = after_pgoff();
    parse_file(walk);
    walk.pass(4, "prot");
    walk.pass(4, "flags");
    filename_ = walk.string("filename");
    return end_of(walk);
  }

 private:
  bool has_build_id() const noexcept {
    return layout().build_id() && (header().misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0;
  }
  template <class T>
  std::optional<T> file(std::size_t offset) const noexcept {
    if (has_build_id()) return std::nullopt;
    return get<T>(offset);
  }
  void parse_file(internal::Walk& walk) noexcept {
    if (!has_build_id()) {
      walk.pass(4, "maj");
      walk.pass(4, "min");
      walk.pass(8, "ino");
      walk.pass(8, "ino_generation");
      return;
    }
    const auto size = walk.length<std::uint8_t>("build_id_size");
    constexpr std::uint8_t kRoom = 20;
    if (size > kRoom) walk.fail("build_id_size");
    walk.pass(3, "build_id");  // reserved
    build_id_ = {static_cast<std::uint16_t>(walk.at()), size};
    walk.pass(kRoom, "build_id");
  }

  internal::Place build_id_;
  internal::Place filename_;
};

// Code of the kernel: of BPF programs, or out of line.
class Ksymbol : public SideBand {
 public:
  std::uint64_t addr() const noexcept { return get<std::uint64_t>(8); }
  std::uint32_t len() const noexcept { return get<std::uint32_t>(16); }
  std::uint16_t ksym_type() const noexcept { return get<std::uint16_t>(20); }
  std::uint16_t flags() const noexcept { return get<std::uint16_t>(22); }
  std::string_view name() const noexcept { return string(name_); }
  bool is_unregistered() const noexcept {
    return (flags() & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0;
  }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "addr");
    walk.pass(4, "len");
    walk.pass(2, "ksym_type");
    walk.pass(2, "flags");
    name_ = walk.string("name");
    return end_after_sample_id(walk);
  }

 private:
  internal::Place name_;
};

class BpfEvent : public SideBand {
 public:
  std::uint16_t type() const noexcept { return get<std::uint16_t>(8); }  // perf_bpf_event_type
  std::uint16_t flags() const noexcept { return get<std::uint16_t>(10); }
  std::uint32_t id() const noexcept { return get<std::uint32_t>(12); }
  Bytes tag() const noexcept { return Bytes{data() + 16, 8}; }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(2, "type");
    walk.pass(2, "flags");
    walk.pass(4, "id");
    walk.pass(8, "tag");
    return end_after_sample_id(walk);
  }
};

// The kernel's own code has changed: `old_bytes` are now `new_bytes`. Either may be empty.
class TextPoke : public SideBand {
 public:
  std::uint64_t addr() const noexcept { return get<std::uint64_t>(8); }
  std::uint16_t old_len() const noexcept { return old_.count; }
  std::uint16_t new_len() const noexcept { return new_.count; }
  Bytes old_bytes() const noexcept { return bytes(old_); }
  Bytes new_bytes() const noexcept { return bytes(new_); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "addr");
    const auto old_len = walk.length<std::uint16_t>("old_len");
    const auto new_len = walk.length<std::uint16_t>("new_len");
    old_ = walk.units(old_len, 1, "bytes");
    new_ = walk.units(new_len, 1, "bytes");
    walk.align();
    return end_after_sample_id(walk);
  }

 private:
  internal::Place old_;
  internal::Place new_;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_MAPPINGS_H_
