#include "harness/conformance/supervisor/map_calls.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "harness/conformance/cases/cases.h"

namespace perfring::conformance {
namespace {

std::size_t size_of(std::uint64_t requested, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(requested, most));
}

}  // namespace

CallAnswer MapCalls::bpf(const Tracee& caller, const seccomp_data& call) {
  union bpf_attr attr{};
  const std::size_t size = size_of(call.args[2], sizeof(attr));
  if (!caller.read(call.args[1], &attr, size)) return {.value = -EFAULT};
  switch (call.args[0]) {
    case BPF_MAP_CREATE:
      if (attr.map_type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) return {.by_kernel = true};
      return {.fd = backend_.map().get()};
    case BPF_MAP_GET_FD_BY_ID:
      return {.fd = backend_.map().get()};
    case BPF_OBJ_GET_INFO_BY_FD:
      if (backend_.carries_out_calls() || !is_map(caller, attr.info.bpf_fd)) {
        return {.by_kernel = true};
      }
      return info(caller, call);
    case BPF_MAP_UPDATE_ELEM:
      return update(caller, attr);
    case BPF_MAP_DELETE_ELEM: {
      if (!is_map(caller, attr.map_fd)) return {.by_kernel = true};
      std::uint32_t key = 0;
      if (!caller.read(attr.key, &key, sizeof(key))) return {.value = -EFAULT};
      listener_.on_map_delete(key);
      return {.by_kernel = backend_.carries_out_calls()};
    }
    default:
      return {.by_kernel = true};
  }
}

CallAnswer MapCalls::update(const Tracee& caller, const bpf_attr& attr) {
  std::uint32_t key = 0;
  std::uint32_t fd = 0;
  const bool ours = is_map(caller, attr.map_fd);
  if (!ours || !caller.read(attr.key, &key, sizeof(key)) ||
      !caller.read(attr.value, &fd, sizeof(fd))) {
    return {.by_kernel = true};
  }
  ProgramEvent* const event = events_.find(caller, static_cast<int>(fd));
  if (event == nullptr) return {.by_kernel = backend_.carries_out_calls()};
  if (const int error = backend_.enter(key, *event); error != 0) return {.value = -error};
  listener_.on_map_update(key, *event);
  return {};
}

CallAnswer MapCalls::info(const Tracee& caller, const seccomp_data& call) {
  union bpf_attr attr{};
  caller.read(call.args[1], &attr, size_of(call.args[2], sizeof(attr)));
  bpf_map_info info{};
  info.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  info.id = 1;
  info.key_size = info.value_size = 4;
  info.max_entries = static_cast<std::uint32_t>(listener_.played_case().cpus);
  std::strcpy(info.name, "conform");
  const std::size_t size = std::min<std::size_t>(attr.info.info_len, sizeof(info));
  return {.value = caller.write(attr.info.info, &info, size) ? 0 : -EFAULT};
}

}  // namespace perfring::conformance
