#include "harness/live/bpf_object.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stdio.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "perfring/os/syscalls.h"

namespace perfring::live {
namespace {

// Returns the system's error text, with advice if any is known.
std::string describe(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (error_number == EMFILE) text += " (raise the limit, ulimit -n)";
  return text;
}

// Collects libbpf's messages on this thread while it lives.
class Log {
 public:
  Log() {
    static const auto silenced = libbpf_set_print(&Log::print);
    static_cast<void>(silenced);
    current_ = &text_;
  }
  ~Log() { current_ = nullptr; }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Returns "what failed: errno's text", followed by the log.
  std::unexpected<std::string> failed(const std::string& what, int error_number) const {
    std::string text = what + ": " + describe(error_number);
    if (!text_.empty()) text += "\nlibbpf said:\n" + text_;
    return std::unexpected(std::move(text));
  }

 private:
  static int print(libbpf_print_level level, const char* format, va_list arguments) {
    if (current_ == nullptr || level == LIBBPF_DEBUG) return 0;
    char* line = nullptr;
    const int length = vasprintf(&line, format, arguments);
    if (length < 0) return 0;
    current_->append(line, static_cast<std::size_t>(length));
    std::free(line);
    return length;
  }

  static inline thread_local std::string* current_ = nullptr;
  std::string text_;
};

std::expected<os::Fd, std::string> own(int fd, const std::string& what) {
  if (fd < 0) return std::unexpected(what + " is not in the object, or not loaded");
  auto duplicate = os::duplicate(fd);
  if (!duplicate) return std::unexpected(what + ": " + describe(duplicate.error().value()));
  return *std::move(duplicate);
}

}  // namespace

std::expected<BpfObject, std::string> BpfObject::open(std::span<const std::byte> elf,
                                                      const char* name) {
  const Log log;
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = name;
  bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), &options);
  if (object == nullptr) return log.failed(std::string{"opening the BPF object "} + name, errno);
  return BpfObject{object, name};
}

std::expected<void, std::string> BpfObject::set_max_entries(const char* map,
                                                            std::uint32_t max_entries) {
  const Log log;
  bpf_map* found = bpf_object__find_map_by_name(object_.get(), map);
  if (found == nullptr) return std::unexpected(name_ + " has no map " + map);
  if (const int rc = bpf_map__set_max_entries(found, max_entries); rc != 0) {
    return log.failed(std::string{"setting max_entries of "} + map, -rc);
  }
  return {};
}

std::expected<void, std::string> BpfObject::load() {
  const Log log;
  if (const int rc = bpf_object__load(object_.get()); rc != 0) {
    return log.failed("loading the BPF object " + name_, -rc);
  }
  return {};
}

std::expected<os::Fd, std::string> BpfObject::map(const char* name) const {
  const Log log;
  return own(bpf_object__find_map_fd_by_name(object_.get(), name), std::string{"map "} + name);
}

std::expected<os::Fd, std::string> BpfObject::program(const char* name) const {
  const Log log;
  const bpf_program* found = bpf_object__find_program_by_name(object_.get(), name);
  return own(found == nullptr ? -1 : bpf_program__fd(found), std::string{"program "} + name);
}

std::expected<int, std::error_code> test_run(int program_fd, std::uint32_t cpu,
                                             std::span<const std::uint64_t> arguments) {
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.ctx_in = arguments.data();
  options.ctx_size_in = static_cast<__u32>(arguments.size_bytes());
  options.flags = BPF_F_TEST_RUN_ON_CPU;
  options.cpu = cpu;
  if (const int rc = bpf_prog_test_run_opts(program_fd, &options); rc != 0) {
    return std::unexpected(std::error_code(-rc, std::generic_category()));
  }
  return static_cast<int>(options.retval);
}

}  // namespace perfring::live
