#ifndef HARNESS_CLI_RECORD_PERF_WORDS_H_
#define HARNESS_CLI_RECORD_PERF_WORDS_H_

// Formats the records that perfring decoded as `perf script -D` does, and parses perf's output.

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "harness/cli/cli_testing.h"
#include "harness/program/json.h"

namespace perfring::cli {

using Number = unsigned long long;

inline Number number(const Json& value) {
  return value.is_string() ? std::stoull(value.get<std::string>(), nullptr, 16)
                           : value.get<Number>();
}
// Returns a pid or tid. It is -1 for a task that has ended (kernel/events/core.c:
// perf_event_pid_type() at v6.18).
inline int task(const Json& record, const char* name) {
  return static_cast<int>(number(record[name]));
}
inline std::string alternate(Number value) {  // printf's %#llx
  return value == 0 ? std::string{"0"} : fmt::format("{:#x}", value);
}

// Formats the CPU and the time, as far as the record has them.
inline std::string stamp_of(const Json& record) {
  const bool is_sample = record["record"] == "SAMPLE";
  if (!is_sample && !record.contains("sample_id")) return "-1 -1 ";
  const Json& id = is_sample ? record : record["sample_id"];
  std::string text;
  if (id.contains("cpu")) text += fmt::format("{} ", number(id["cpu"]));
  if (id.contains("time")) text += fmt::format("{} ", number(id["time"]));
  return text;
}

inline std::string words_of_sample(const Json& record, unsigned period) {
  const auto of = [&](const char* name) { return number(record[name]); };
  // A field that a sample lacks is 0.
  const auto if_any = [&](const char* name) {
    return alternate(record.contains(name) ? of(name) : 0);
  };
  std::string text =
      fmt::format("(IP, {:#x}): {}/{}: {} period: {} addr: {}", number(record["header"]["misc"]),
                  task(record, "pid"), task(record, "tid"), if_any("ip"),
                  record.value("period", period), if_any("addr"));
  if (!record.contains("callchain")) return text;
  const Json& ips = record["callchain"]["ips"];
  text += fmt::format("\n... FP chain: nr:{}", ips.size());
  for (std::size_t i = 0; i < ips.size(); ++i) {
    text += fmt::format("\n..... {:2}: {:016x}", i, number(ips[i]));
  }
  return text;
}

inline std::string words_of_namespaces(const Json& record) {
  const Json& all = record["namespaces"];
  std::string text = fmt::format(" {}/{} - nr_namespaces: {}\n\t\t[", task(record, "pid"),
                                 task(record, "tid"), number(record["nr_namespaces"]));
  const char* const names[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
  for (std::size_t i = 0; i < all.size() && i < std::size(names); ++i) {
    if (i == 4) text += "\n\t\t ";
    text += fmt::format("{}/{}: {}/{:#x}{}", i, names[i], number(all[i]["dev"]),
                        number(all[i]["inode"]), i + 1 == all.size() ? "]" : ", ");
  }
  return text;
}

inline std::string words_of_switch(const Json& record) {
  const Number misc = number(record["header"]["misc"]);
  const bool out = (misc & 0x2000) != 0;
  const std::string how = !out                   ? " IN         "
                          : (misc & 0x4000) != 0 ? " OUT preempt"
                                                 : " OUT        ";
  if (record["record"] == "SWITCH") return how;
  return how + fmt::format("  {} pid/tid: {:5}/{:<5}", out ? "next" : "prev",
                           static_cast<int>(number(record["next_prev_pid"])),
                           static_cast<int>(number(record["next_prev_tid"])));
}

inline std::string words_of_mapping(const Json& record) {
  const auto of = [&](const char* name) { return number(record[name]); };
  const std::string filename = record["filename"];
  const std::string where =
      fmt::format(" {}/{}: [{}({}) @ {}", task(record, "pid"), task(record, "tid"),
                  alternate(of("addr")), alternate(of("len")), alternate(of("pgoff")));
  if (record["record"] == "MMAP") return where + "]: x " + filename;
  const Number prot = of("prot");
  const std::string file = record.contains("build_id")
                               ? "<" + record["build_id"].get<std::string>() + ">"
                               : fmt::format("{:02x}:{:02x} {} {}", of("maj"), of("min"), of("ino"),
                                             of("ino_generation"));
  return where + fmt::format(" {}]: {}{}{}{} {}", file, (prot & 1) != 0 ? 'r' : '-',
                             (prot & 2) != 0 ? 'w' : '-', (prot & 4) != 0 ? 'x' : '-',
                             (of("flags") & 1) != 0 ? 's' : 'p', filename);
}

inline std::string words_of_poke(const Json& record) {
  const std::string old_bytes = record["old_bytes"];
  const std::string new_bytes = record["new_bytes"];
  std::string text = fmt::format(" {:x}  old len {} new len {}", number(record["addr"]),
                                 old_bytes.size() / 2, new_bytes.size() / 2);
  for (const auto& [name, digits] : {std::pair{"Old", old_bytes}, std::pair{"New", new_bytes}}) {
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      if (i % 32 == 0) text += fmt::format("\n            {} bytes:", name);
      text += " " + digits.substr(i, 2);
    }
  }
  return text;
}

// Formats a record that perfring decoded as `perf script -D` does (tools/perf/util/event.c,
// session.c at v6.1). `period` is the period of the events, for samples without that field.
inline std::string in_perf_words(const Json& record, unsigned period) {
  const std::string type = record["record"];
  const auto of = [&](const char* name) { return number(record[name]); };
  const std::string begin =
      stamp_of(record) + fmt::format("{} [{:#x}]: PERF_RECORD_{}", alternate(number(record["at"])),
                                     number(record["header"]["size"]), type);
  if (type == "SAMPLE") return begin + words_of_sample(record, period);
  if (type == "NAMESPACES") return begin + words_of_namespaces(record);
  if (type == "SWITCH" || type == "SWITCH_CPU_WIDE") return begin + words_of_switch(record);
  if (type == "MMAP" || type == "MMAP2") return begin + words_of_mapping(record);
  if (type == "TEXT_POKE") return begin + words_of_poke(record);
  // `perf report -D` prints none of their fields.
  if (type == "THROTTLE" || type == "UNTHROTTLE") return begin + ": unhandled!";
  if (type == "KSYMBOL") {
    return begin + fmt::format(" addr {:x} len {} type {} flags {:#x} name {}", of("addr"),
                               of("len"), of("ksym_type"), of("flags"),
                               record["name"].get<std::string>());
  }
  if (type == "BPF_EVENT") {
    return begin + fmt::format(" type {}, flags {}, id {}", of("type"), of("flags"), of("id"));
  }
  if (type == "CGROUP") {
    return begin + fmt::format(" cgroup: {} {}", of("id"), record["path"].get<std::string>());
  }
  if (type == "LOST") return begin + fmt::format(": id:{}: lost:{}", of("id"), of("lost"));
  if (type == "LOST_SAMPLES") {  // written by perf
    const Json id = record.value("sample_id", Json::object());
    const char* const name = id.contains("identifier") ? "identifier" : "id";
    return begin + fmt::format(": id:{}: lost samples :{}",
                               id.contains(name) ? number(id[name]) : ~Number{0}, of("lost"));
  }
  // The attributes of a vector do not say what was counted: perf takes it for type 0, cycles.
  if (type == "READ") {
    return begin + fmt::format(": {} {} cycles:HG {}", task(record, "pid"), task(record, "tid"),
                               number(record["values"]["value"]));
  }
  if (type == "COMM") {
    const bool is_exec = (number(record["header"]["misc"]) & 0x2000) != 0;
    return begin + fmt::format("{}: {}:{}/{}", is_exec ? " exec" : "",
                               record["comm"].get<std::string>(), task(record, "pid"),
                               task(record, "tid"));
  }
  if (type == "FORK" || type == "EXIT") {
    return begin + fmt::format("({}:{}):({}:{})", task(record, "pid"), task(record, "tid"),
                               task(record, "ppid"), task(record, "ptid"));
  }
  return "another type: " + type;
}

// Parses perf's output into records by their offset, such as
// "0 71805660716770 0x248 [0x38]: PERF_RECORD_COMM exec: sh:15408/15408". The additional lines of a
// callchain, of namespaces or of poked bytes are part of their record.
inline std::map<std::string, std::string> read_by_perf(const std::string& printed) {
  std::map<std::string, std::string> records;
  std::string* last = nullptr;
  for (const std::string& line : lines_of(printed)) {
    const std::size_t type = line.find(": PERF_RECORD_");
    const std::size_t address_at = line.find(" [0x");
    const std::size_t at =
        address_at == std::string::npos ? address_at : line.rfind(' ', address_at - 1);
    if (type != std::string::npos && at != std::string::npos && at < type) {
      last = &(records[line.substr(at + 1, address_at - at - 1)] = line);
    } else if (last != nullptr &&
               (line.starts_with("... FP chain") || line.starts_with(".....") ||
                line.starts_with("\t\t") || line.find(" bytes:") != std::string::npos)) {
      *last += "\n" + line.substr(0, line.find(" (PERF_CONTEXT_"));  // only perf 7 prints it
    } else if (line.starts_with(" ... thread") || line.starts_with(".")) {
      last = nullptr;
    }
  }
  return records;
}

// Returns the ids of the file's events, if perf printed an ID_INDEX: " ... id: 498872  idx: 0 ...".
inline std::set<Number> ids_of(const std::string& printed) {
  constexpr std::string_view kId = " ... id: ";
  std::set<Number> ids;
  for (const std::string& line : lines_of(printed)) {
    if (line.starts_with(kId)) ids.insert(std::stoull(line.substr(kId.size())));
  }
  return ids;
}

// Whether a sample has the id of an event that another program opened. Since Linux 6.3 the samples
// of software events can (R25 in harness/RECORD_FACTS.md).
inline bool has_foreign_id(const Json& record, const std::set<Number>& ids) {
  if (ids.empty() || record["record"] != "SAMPLE") return false;
  const char* const name = record.contains("identifier") ? "identifier" : "id";
  return record.contains(name) && !ids.contains(number(record[name]));
}

// R28: whether perf takes the wrong bytes, the last ones, for the record's sample_id.
inline bool is_too_long(const Json& record) {
  const std::set<std::string> types{"KSYMBOL", "BPF_EVENT", "TEXT_POKE"};
  return types.contains(record["record"]) && record.contains("rest");
}

}  // namespace perfring::cli

#endif  // HARNESS_CLI_RECORD_PERF_WORDS_H_
