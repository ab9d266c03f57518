#include "harness/bench/fill_program.h"

#include <bpf/bpf.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "harness/bench/fill.h"
#include "harness/bench/fill_args.h"

namespace perfring::bench {

std::string failure(const std::string& what, int error) {
  return what + ": " + std::generic_category().message(std::abs(error));
}

std::expected<FillProgram, std::string> FillProgram::load() {
  libbpf_set_print(nullptr);  // what fails is said in one line, by us
  const auto bytes = live::fill();
  bpf_object* const object = bpf_object__open_mem(bytes.data(), bytes.size(), nullptr);
  if (object == nullptr) return std::unexpected(failure("opening the BPF program", errno));
  FillProgram program{object};
  bpf_map* const events = bpf_object__find_map_by_name(object, "events");
  if (const int cpus = libbpf_num_possible_cpus(); cpus < 0) {
    return std::unexpected(failure("counting the CPUs", cpus));
  } else {
    bpf_map__set_max_entries(events, static_cast<__u32>(cpus));
  }
  if (const int error = bpf_object__load(object); error != 0) {
    return std::unexpected(failure("loading the BPF program", error));
  }
  return program;
}

int FillProgram::events_fd() const {
  return bpf_object__find_map_fd_by_name(object_.get(), "events");
}

std::expected<void, std::string> FillProgram::run(const Workload& workload) const {
  std::array<std::uint64_t, FILL_ARGS> arguments{};
  arguments[FILL_EVENTS] = workload.count.events;
  arguments[FILL_CHOICES] = workload.mix.choices;
  for (unsigned i = 0; i < PAYLOAD_CHOICES_MAX; ++i) {
    arguments[FILL_BYTES + i] = workload.mix.bytes[i];
  }
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.ctx_in = arguments.data();
  options.ctx_size_in = sizeof(arguments);
  const bpf_program* const program = bpf_object__find_program_by_name(object_.get(), "fill");
  if (const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options); error != 0) {
    return std::unexpected(failure("running the BPF program", error));
  }
  if (options.retval != 0) {
    return std::unexpected("the kernel refused " + std::to_string(options.retval) + " events");
  }
  return {};
}

}  // namespace perfring::bench
