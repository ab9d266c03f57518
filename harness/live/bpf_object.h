#ifndef PERFRING_HARNESS_LIVE_BPF_OBJECT_H_
#define PERFRING_HARNESS_LIVE_BPF_OBJECT_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>

struct bpf_object;  // bpf/libbpf.h

namespace perfring::live {

// Why the live kernel cannot be the producer.
struct LiveError {
  std::string reason;  // what was asked, what the system said, what to change
  bool missing;        // for want of a privilege or a facility: a test is skipped, not failed
};

// A BPF object file, loaded into the kernel by libbpf and unloaded on destruction. libbpf's own
// warnings go into LiveError::reason.
class BpfObject {
 public:
  // `configure` may change maps and constants before the load. `elf` need not outlive the call.
  static std::expected<BpfObject, LiveError> load(
      std::span<const std::byte> elf, const char* name,
      const std::function<void(bpf_object*)>& configure = {});

  bpf_object* get() const noexcept { return object_.get(); }
  // Descriptors that this object owns; -1 if there is no map, or program, of that name.
  int map_fd(const char* name) const;
  int program_fd(const char* name) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const;
  };
  explicit BpfObject(bpf_object* object) : object_{object} {}

  std::unique_ptr<bpf_object, Close> object_;
};

// Runs a raw-tracepoint program once on `cpu`, with up to 12 arguments (BPF_PROG_TEST_RUN).
// Returns what the program returned.
std::expected<std::uint32_t, std::error_code> test_run(int program_fd, std::uint32_t cpu,
                                                       std::span<const std::uint64_t> arguments);

// The capabilities that BPF output needs and this process lacks ("CAP_BPF and CAP_PERFMON"), or
// nothing.
std::string missing_capabilities();

}  // namespace perfring::live

#endif  // PERFRING_HARNESS_LIVE_BPF_OBJECT_H_
