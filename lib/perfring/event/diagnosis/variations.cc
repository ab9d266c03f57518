// The ways to change one thing in a request (R1).

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/system.h"

namespace perfring::event::internal {
namespace {

using Aspect = Variation::Aspect;

constexpr std::array kSampleBits{"IP",
                                 "TID",
                                 "TIME",
                                 "ADDR",
                                 "READ",
                                 "CALLCHAIN",
                                 "ID",
                                 "CPU",
                                 "PERIOD",
                                 "STREAM_ID",
                                 "RAW",
                                 "BRANCH_STACK",
                                 "REGS_USER",
                                 "STACK_USER",
                                 "WEIGHT",
                                 "DATA_SRC",
                                 "IDENTIFIER",
                                 "TRANSACTION",
                                 "REGS_INTR",
                                 "PHYS_ADDR",
                                 "AUX",
                                 "CGROUP",
                                 "DATA_PAGE_SIZE",
                                 "CODE_PAGE_SIZE",
                                 "WEIGHT_STRUCT"};
constexpr std::array kReadBits{"TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST"};
constexpr std::array kBranchBits{"USER",       "KERNEL",     "HV",       "ANY",       "ANY_CALL",
                                 "ANY_RETURN", "IND_CALL",   "ABORT_TX", "IN_TX",     "NO_TX",
                                 "COND",       "CALL_STACK", "IND_JUMP", "CALL",      "NO_FLAGS",
                                 "NO_CYCLES",  "TYPE_SAVE",  "HW_INDEX", "PRIV_SAVE", "COUNTERS"};
// The bits of the word after read_format, in declaration order; precise_ip has two.
constexpr std::array kFlags{"disabled",
                            "inherit",
                            "pinned",
                            "exclusive",
                            "exclude_user",
                            "exclude_kernel",
                            "exclude_hv",
                            "exclude_idle",
                            "mmap",
                            "comm",
                            "freq",
                            "inherit_stat",
                            "enable_on_exec",
                            "task",
                            "watermark",
                            "precise_ip",
                            "precise_ip",
                            "mmap_data",
                            "sample_id_all",
                            "exclude_host",
                            "exclude_guest",
                            "exclude_callchain_kernel",
                            "exclude_callchain_user",
                            "mmap2",
                            "comm_exec",
                            "use_clockid",
                            "context_switch",
                            "write_backward",
                            "namespaces",
                            "ksymbol",
                            "bpf_event",
                            "aux_output",
                            "cgroup",
                            "text_poke",
                            "build_id",
                            "inherit_thread",
                            "remove_on_exec",
                            "sigtrap",
                            "defer_callchain",
                            "defer_output"};
constexpr std::size_t kFlagsAt = offsetof(perf_event_attr, read_format) + 8;
// The bits of aux_action, the word after aux_sample_size (since Linux 6.13).
constexpr std::array kAuxActions{"aux_start_paused", "aux_pause", "aux_resume"};
constexpr std::size_t kAuxActionAt = offsetof(perf_event_attr, aux_sample_size) + 4;

template <std::size_t n>
std::string name_of(const char* prefix, const std::array<const char*, n>& names, unsigned bit) {
  const std::string name = bit < names.size() ? names[bit] : "bit " + std::to_string(bit);
  return bit < names.size() ? prefix + name : std::string{prefix} + "(" + name + ")";
}

// On big-endian machines, bit n of a bit-field is counted from the other end of the word.
template <class Word>
Word flag(unsigned bit) {
  constexpr unsigned kLast = 8 * sizeof(Word) - 1;
  return Word{1} << (std::endian::native == std::endian::little ? bit : kLast - bit);
}
template <class Word>
void clear_flag(perf_event_attr& attr, std::size_t offset, unsigned bit) {
  Word word = 0;
  std::byte* const at = reinterpret_cast<std::byte*>(&attr) + offset;
  std::memcpy(&word, at, sizeof word);
  word &= ~flag<Word>(bit);
  std::memcpy(at, &word, sizeof word);
}

class Variations {
 public:
  explicit Variations(const OpenArgs& args) : args_{args} {}

  std::vector<Variation> all() {
    bits("PERF_SAMPLE_", kSampleBits, &perf_event_attr::sample_type);
    bits("PERF_FORMAT_", kReadBits, &perf_event_attr::read_format);
    bits("PERF_SAMPLE_BRANCH_", kBranchBits, &perf_event_attr::branch_sample_type);
    values();
    flags();
    places();
    return std::move(all_);
  }

 private:
  template <class Change>
  void add(std::string field, Aspect aspect, const Change& change) {
    OpenArgs changed = args_;
    change(changed);
    const bool same = std::memcmp(&changed.attr, &args_.attr, sizeof args_.attr) == 0 &&
                      changed.pid == args_.pid && changed.cpu == args_.cpu &&
                      changed.group_fd == args_.group_fd && changed.flags == args_.flags &&
                      changed.config3 == args_.config3 && changed.config4 == args_.config4;
    if (!same) all_.push_back({std::move(field), aspect, changed});
  }

  template <std::size_t n, class Word>
  void bits(const char* prefix, const std::array<const char*, n>& names, Word word) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      add(name_of(prefix, names, bit), Aspect::Value,
          [&](OpenArgs& args) { args.attr.*word &= ~(std::uint64_t{1} << bit); });
    }
  }

  void values() {
    const auto value = [this](const char* field, auto change) {
      add(field, Aspect::Value, [&](OpenArgs& args) { change(args.attr); });
    };
    constexpr std::uint64_t kHarmless = 1'000'000;
    if (args_.attr.freq != 0) {
      value("sample_freq", [](perf_event_attr& attr) { attr.sample_freq = 1; });
    } else if (args_.attr.sample_period != 0) {
      value("sample_period", [](perf_event_attr& attr) { attr.sample_period = kHarmless; });
    }
    // For PMUs that only count. (The kernel never objects to the period of the other types.)
    const bool may_only_count = args_.attr.type != PERF_TYPE_SOFTWARE &&
                                args_.attr.type != PERF_TYPE_TRACEPOINT &&
                                args_.attr.type != PERF_TYPE_BREAKPOINT;
    if (may_only_count && args_.attr.sample_period != 0) {
      value("sample_period", [](perf_event_attr& attr) {
        attr.freq = 0;
        attr.sample_period = 0;
      });
    }
    value("size", [](perf_event_attr& attr) { attr.size = sizeof attr; });
    if ((args_.attr.sample_type & PERF_SAMPLE_REGS_USER) != 0) {
      value("sample_regs_user", [](perf_event_attr& attr) { attr.sample_regs_user = 1; });
    }
    if ((args_.attr.sample_type & PERF_SAMPLE_REGS_INTR) != 0) {
      value("sample_regs_intr", [](perf_event_attr& attr) { attr.sample_regs_intr = 1; });
    }
    if ((args_.attr.sample_type & PERF_SAMPLE_STACK_USER) != 0) {
      value("sample_stack_user", [](perf_event_attr& attr) { attr.sample_stack_user = 8; });
    }
    value("sample_max_stack", [](perf_event_attr& attr) { attr.sample_max_stack = 0; });
    if (args_.attr.use_clockid != 0) {
      value("clockid", [](perf_event_attr& attr) { attr.clockid = CLOCK_MONOTONIC; });
    }
    if (args_.attr.type == PERF_TYPE_BREAKPOINT) {
      value("bp_type", [](perf_event_attr& attr) { attr.bp_type = 3; });
      // If the length is valid, the fault is the address.
      const bool executes = (args_.attr.bp_type & HW_BREAKPOINT_X) != 0;
      const bool is_length = executes
                                 ? args_.attr.bp_len == sizeof(long)
                                 : std::has_single_bit(args_.attr.bp_len) && args_.attr.bp_len <= 8;
      if (!is_length) value("bp_len", [](perf_event_attr& attr) { attr.bp_len = 1; });
      alignas(8) static std::uint64_t somewhere;
      value("bp_addr", [](perf_event_attr& attr) {
        attr.bp_addr = reinterpret_cast<std::uintptr_t>(&somewhere);
      });
    }
    add("group_fd", Aspect::Value, [](OpenArgs& args) { args.group_fd = -1; });
    // A kernel that does not have config3 does not have config4.
    add(args_.config4 != 0 ? "config4" : "config3", Aspect::Value,
        [](OpenArgs& args) { args.config3 = args.config4 = 0; });
  }

  void flags() {
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::string name = bit < kFlags.size() ? kFlags[bit] : "flag " + std::to_string(bit);
      if (name == "disabled" || name == "freq" || name == "exclude_kernel") continue;
      add(name, Aspect::Value, [&](OpenArgs& args) {
        clear_flag<std::uint64_t>(args.attr, kFlagsAt, bit);
        if (name == "use_clockid") args.attr.clockid = 0;
      });
    }
    for (unsigned bit = 0; bit < 32; ++bit) {
      add(bit < kAuxActions.size() ? kAuxActions[bit] : "aux_action", Aspect::Value,
          [&](OpenArgs& args) { clear_flag<std::uint32_t>(args.attr, kAuxActionAt, bit); });
    }
    add("exclude_kernel", Aspect::Exclusion, [](OpenArgs& args) {
      const bool set = args.attr.exclude_kernel == 0;
      args.attr.exclude_kernel = set;
      args.attr.exclude_hv = set;
      args.attr.exclude_callchain_kernel = set;
    });
  }

  void places() {
    const bool is_cgroup = (args_.flags & PERF_FLAG_PID_CGROUP) != 0;
    if (!is_cgroup && args_.cpu > 0) {
      add("cpu", Aspect::Place, [](OpenArgs& args) { args.cpu = 0; });
    }
    if (!is_cgroup && args_.pid > 0) {
      add("pid", Aspect::Place, [](OpenArgs& args) { args.pid = 0; });
    }
    const auto own = [](OpenArgs& args) {
      args.pid = 0;
      args.cpu = -1;
      args.flags = 0;
    };
    add("pid", Aspect::Place, own);
    // Both at once: at paranoid 2, either alone changes nothing.
    add("pid, exclude_kernel", Aspect::Place, [&](OpenArgs& args) {
      own(args);
      args.attr.exclude_kernel = 1;
      args.attr.exclude_hv = 1;
      args.attr.exclude_callchain_kernel = 1;
    });
    add("type", Aspect::Event, [](OpenArgs& args) {
      args.attr.type = PERF_TYPE_SOFTWARE;
      args.attr.config = PERF_COUNT_SW_DUMMY;
      args.attr.config1 = 0;
      args.attr.config2 = 0;
      args.config3 = args.config4 = 0;
      args.attr.bp_type = 0;
    });
  }

  const OpenArgs& args_;
  std::vector<Variation> all_;
};

}  // namespace

std::vector<Variation> variations(const OpenArgs& args) {
  return Variations{args}.all();
}

}  // namespace perfring::event::internal
