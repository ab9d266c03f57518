#include "harness/live/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace perfring::live {
namespace {

thread_local std::string* libbpf_log = nullptr;

int log_to_string(libbpf_print_level level, const char* format, std::va_list arguments) {
  if (level == LIBBPF_DEBUG || libbpf_log == nullptr) return 0;
  std::array<char, 4096> line;
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) *libbpf_log += line.data();
  return length;
}

// Collects what libbpf prints while it lives.
class LogCapture {
 public:
  LogCapture() : previous_{libbpf_set_print(log_to_string)} { libbpf_log = &text_; }
  ~LogCapture() {
    libbpf_log = nullptr;
    libbpf_set_print(previous_);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  libbpf_print_fn_t previous_;
};

// Whether the errno says that something is not allowed, or not there, on this machine.
bool is_missing(int error) {
  return error == EPERM || error == EACCES || error == ENOSYS || error == EOPNOTSUPP;
}

LiveError error_of(const char* name, const std::string& step, int error, const std::string& log) {
  LiveError result{
      step + " of the BPF object '" + name + "': " + std::generic_category().message(error),
      is_missing(error)};
  const std::string lacking = missing_capabilities();
  if (is_missing(error) && !lacking.empty()) {
    result.reason += "; this process lacks " + lacking + ": run as root, or grant them";
  } else {
    result.reason += "\n" + log;
  }
  return result;
}

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return true;  // then it is not to blame
  return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
}

}  // namespace

void BpfObject::Close::operator()(bpf_object* object) const {
  bpf_object__close(object);
}

std::expected<BpfObject, LiveError> BpfObject::load(
    std::span<const std::byte> elf, const char* name,
    const std::function<void(bpf_object*)>& configure) {
  LogCapture log;
  LIBBPF_OPTS(bpf_object_open_opts, options);
  options.object_name = name;
  BpfObject object{bpf_object__open_mem(elf.data(), elf.size(), &options)};
  if (object.get() == nullptr) return std::unexpected(error_of(name, "open", errno, log.text()));
  if (configure) configure(object.get());
  if (const int error = bpf_object__load(object.get()); error != 0) {
    return std::unexpected(error_of(name, "load", -error, log.text()));
  }
  return object;
}

int BpfObject::map_fd(const char* name) const {
  const int fd = bpf_object__find_map_fd_by_name(get(), name);
  return fd < 0 ? -1 : fd;
}

int BpfObject::program_fd(const char* name) const {
  const bpf_program* program = bpf_object__find_program_by_name(get(), name);
  return program == nullptr ? -1 : bpf_program__fd(program);
}

std::expected<std::uint32_t, std::error_code> test_run(int program_fd, std::uint32_t cpu,
                                                       std::span<const std::uint64_t> arguments) {
  std::array<std::uint64_t, 12> context{};  // as many as the kernel passes: MAX_BPF_FUNC_ARGS
  std::copy_n(arguments.begin(), std::min(arguments.size(), context.size()), context.begin());
  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.ctx_in = context.data();
  options.ctx_size_in = sizeof(context);
  options.cpu = cpu;
  options.flags = BPF_F_TEST_RUN_ON_CPU;
  if (const int error = bpf_prog_test_run_opts(program_fd, &options); error != 0) {
    return std::unexpected(std::error_code(-error, std::generic_category()));
  }
  return options.retval;
}

std::string missing_capabilities() {
  if (has_capability(CAP_SYS_ADMIN)) return {};
  const bool bpf = has_capability(CAP_BPF);
  const bool perfmon = has_capability(CAP_PERFMON);
  if (!bpf && !perfmon) return "CAP_BPF and CAP_PERFMON";
  if (!bpf) return "CAP_BPF";
  return perfmon ? "" : "CAP_PERFMON";
}

}  // namespace perfring::live
