#ifndef HARNESS_LIVE_BPF_OBJECT_H_
#define HARNESS_LIVE_BPF_OBJECT_H_

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "perfring/os/fd.h"

namespace perfring::live {

// A BPF object file while it is being loaded. map() and program() return descriptors that outlive
// it. Its other maps and programs are closed with it.
//
// Errors: a text for people, which ends with libbpf's messages. libbpf prints nothing.
class BpfObject {
 public:
  // Parses an object that bpf_object.bzl embedded. `name` is for messages.
  static std::expected<BpfObject, std::string> open(std::span<const std::byte> elf,
                                                    const char* name);

  // Call it before load().
  std::expected<void, std::string> set_max_entries(const char* map, std::uint32_t max_entries);

  std::expected<void, std::string> load();

  // Call it after load(). Returns another descriptor of the same open file.
  std::expected<os::Fd, std::string> map(const char* name) const;
  std::expected<os::Fd, std::string> program(const char* name) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };

  BpfObject(bpf_object* object, const char* name) : object_{object}, name_{name} {}

  std::unique_ptr<bpf_object, Close> object_;
  std::string name_;
};

// Runs a raw-tracepoint program once, on `cpu`, with these tracepoint arguments
// (BPF_PROG_TEST_RUN). Returns the program's result.
std::expected<int, std::error_code> test_run(int program_fd, std::uint32_t cpu,
                                             std::span<const std::uint64_t> arguments);

}  // namespace perfring::live

#endif  // HARNESS_LIVE_BPF_OBJECT_H_
