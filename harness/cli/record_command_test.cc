// `perfring record` and `perfring events` on the machine's own kernel; and the file that it writes,
// as perf reads it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class RecordCommandTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "it needs root";
    PerfringTest::SetUp();
  }
  // Where tracepoints have their ids; it is mounted for the command alone, if it is not there.
  std::vector<std::string> with_tracefs() {
    return {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec \"$0\" \"$@\""};
  }
  std::vector<std::string> as_nobody() {
    return {"/usr/bin/setpriv", "--reuid=65534",       "--regid=65534",
            "--clear-groups",   "--bounding-set=-all", "--inh-caps=-all"};
  }
  void compare_with_perf(const std::string& file, unsigned period,
                         std::map<std::string, std::size_t>& counts);
};

TEST_F(RecordCommandTest, RecordsOfACommandAreALineEach) {
  const Ended ended = run({"record", "-e", "page-faults", "-e", "changes:execs", "--", "true"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = lines_of(ended.out);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_NE(ended.out.find("the changes: COMM misc 0x2000"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("page-faults: SAMPLE"), std::string::npos);
  EXPECT_NE(ended.err.find(fmt::format("{} records, 0 lost, 0 late", lines.size())),
            std::string::npos)
      << ended.err;
}

TEST_F(RecordCommandTest, JsonIsAnObjectALine) {
  const Ended ended = run({"record", "--json", "-g", "-e", "page-faults", "--", "true"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  for (const std::string& line : lines_of(ended.out)) {
    const json record = json::parse(line);
    EXPECT_EQ(record["event"], "the software event page-faults");
    if (record["record"] == "SAMPLE") {
      EXPECT_TRUE(record.contains("callchain")) << line;
    }
  }
}

TEST_F(RecordCommandTest, APlainUserSeesHisOwnSwitches) {
  const Ended ended = run({"record", "-e", "context-switches", "--", "sleep", "0.01"}, as_nobody());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("SWITCH"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("the changes instead"), std::string::npos) << ended.err;
}

TEST_F(RecordCommandTest, WhatCannotBeRecordedIsExplained) {
  const auto says = [this](const std::vector<std::string>& arguments, const std::string& why,
                           std::vector<std::string> before = {}) {
    const Ended ended = run(arguments, std::move(before));
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_NE(ended.err.find(why), std::string::npos) << ended.err;
  };
  says({"record", "-e", "page-faults"}, "no target is given");
  says({"record", "-e", "page-fault", "--", "true"}, "page-faults");
  says({"record", "-a", "-p", "1", "-e", "page-faults"}, "excludes");
  says({"record", "-e", "page-faults", "--", "/nonexistent"}, "there is no such program");
  says({"record", "-e", "page-faults", "-p", "2147483647"}, "there is no process 2147483647");
  says({"record", "-e", "page-faults", "-a"}, "watch your own tasks", as_nobody());
  says({"record", "-e", "page-faults", "-o", "/nonexistent/x", "--", "true"}, "cannot be written");
  says({"record", "-e", "nope:nope", "-a"}, "to change:");
}

TEST_F(RecordCommandTest, EventsSaysWhatOpensAndWhyTheOthersDoNot) {
  const Ended ended = run({"events", "page-faults", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json::parse(ended.out)["opens"], true);
  const Ended user = run({"events", "changes:namespaces", "--json"}, as_nobody());
  EXPECT_EQ(json::parse(user.out)["opens"], false) << user.out;
  EXPECT_NE(user.out.find("not for this user"), std::string::npos);
  EXPECT_EQ(run({"events", "no such \x01 event"}).exit_code, 2);
  EXPECT_EQ(run({"events", "L1-*-loads"}).exit_code, 0);
}

// Fields of a record, decoded by perfring, in the words of `perf script -D`
// (tools/perf/util/event.c, session.c at v6.1). `period`: the events', of samples that do not say
// it.
std::string in_perfs_words(const json& record, unsigned period) {
  const auto number = [](const json& value) {
    return value.is_string() ? std::stoull(value.get<std::string>(), nullptr, 16)
                             : value.get<unsigned long long>();
  };
  const json& id = record["record"] == "SAMPLE" ? record : record["sample_id"];
  std::string text = fmt::format("{} {} {:#x} [{:#x}]: PERF_RECORD_", 0, number(id["time"]),
                                 number(record["at"]), number(record["header"]["size"]));
  const std::string type = record["record"];
  const unsigned long long misc = number(record["header"]["misc"]);
  const auto of = [&](const char* name) { return number(record[name]); };
  const auto alternate = [](unsigned long long value) {  // printf's %#llx
    return value == 0 ? std::string{"0"} : fmt::format("{:#x}", value);
  };
  if (type == "SAMPLE") {
    // What a sample lacks is 0.
    const auto if_any = [&](const char* name) {
      return alternate(record.contains(name) ? of(name) : 0);
    };
    text += fmt::format("SAMPLE(IP, {:#x}): {}/{}: {} period: {} addr: {}", misc, of("pid"),
                        of("tid"), if_any("ip"), record.value("period", period), if_any("addr"));
    if (!record.contains("callchain")) return text;
    const json& ips = record["callchain"]["ips"];
    text += fmt::format("\n... FP chain: nr:{}", ips.size());
    for (std::size_t i = 0; i < ips.size(); ++i) {
      text += fmt::format("\n..... {:2}: {:016x}", i, number(ips[i]));
    }
    return text;
  }
  if (type == "KSYMBOL") {
    return text + fmt::format("KSYMBOL addr {:x} len {} type {} flags {:#x} name {}", of("addr"),
                              of("len"), of("ksym_type"), of("flags"),
                              record["name"].get<std::string>());
  }
  if (type == "BPF_EVENT") {
    return text +
           fmt::format("BPF_EVENT type {}, flags {}, id {}", of("type"), of("flags"), of("id"));
  }
  if (type == "NAMESPACES") {
    const json& all = record["namespaces"];
    text += fmt::format("NAMESPACES {}/{} - nr_namespaces: {}\n\t\t[", of("pid"), of("tid"),
                        of("nr_namespaces"));
    const char* const names[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
    for (std::size_t i = 0; i < all.size() && i < std::size(names); ++i) {
      if (i == 4) text += "\n\t\t ";
      text += fmt::format("{}/{}: {}/{:#x}{}", i, names[i], number(all[i]["dev"]),
                          number(all[i]["inode"]), i + 1 == all.size() ? "]" : ", ");
    }
    return text;
  }
  if (type == "COMM") {
    return text + fmt::format("COMM{}: {}:{}/{}", (misc & 0x2000) != 0 ? " exec" : "",
                              record["comm"].get<std::string>(), of("pid"), of("tid"));
  }
  if (type == "FORK" || type == "EXIT") {
    return text +
           fmt::format("{}({}:{}):({}:{})", type, of("pid"), of("tid"), of("ppid"), of("ptid"));
  }
  if (type == "SWITCH") {
    const bool out = (misc & 0x2000) != 0;
    const char* const how = !out                   ? "IN         "
                            : (misc & 0x4000) != 0 ? "OUT preempt"
                                                   : "OUT        ";
    return text + "SWITCH " + how;
  }
  if (type == "MMAP") {
    return text + fmt::format("MMAP {}/{}: [{}({}) @ {}]: x {}", static_cast<int>(of("pid")),
                              of("tid"), alternate(of("addr")), alternate(of("len")),
                              alternate(of("pgoff")), record["filename"].get<std::string>());
  }
  if (type != "MMAP2") return "another type: " + type;
  const unsigned long long prot = of("prot");
  return text + fmt::format("MMAP2 {}/{}: [{}({}) @ {} {:02x}:{:02x} {} {}]: {}{}{}{} {}",
                            of("pid"), of("tid"), alternate(of("addr")), alternate(of("len")),
                            alternate(of("pgoff")), of("maj"), of("min"), of("ino"),
                            of("ino_generation"), (prot & 1) != 0 ? 'r' : '-',
                            (prot & 2) != 0 ? 'w' : '-', (prot & 4) != 0 ? 'x' : '-',
                            (of("flags") & 1) != 0 ? 's' : 'p',
                            record["filename"].get<std::string>());
}

// "0 71805660716770 0x248 [0x38]: PERF_RECORD_COMM exec: sh:15408/15408", by the offset, with the
// lines of a callchain or of namespaces.
std::map<std::string, std::string> read_by_perf(const std::string& printed) {
  std::map<std::string, std::string> records;
  std::string* last = nullptr;
  for (const std::string& line : lines_of(printed)) {
    const std::size_t type = line.find(": PERF_RECORD_");
    const std::size_t at = line.find(" 0x");
    if (type != std::string::npos && at != std::string::npos && at < type) {
      last = &(records[line.substr(at + 1, line.find(' ', at + 1) - at - 1)] = line);
    } else if (last != nullptr && (line.starts_with("... FP chain") || line.starts_with(".....") ||
                                   line.starts_with("\t\t"))) {
      *last += "\n" + line;
    } else if (line.starts_with(" ... thread") || line.starts_with(".")) {
      last = nullptr;
    }
  }
  return records;
}

// Each record of `file` as perfring and perf decode it is the same; how many there are of each
// type, and with a callchain or raw bytes.
void RecordCommandTest::compare_with_perf(const std::string& file, unsigned period,
                                          std::map<std::string, std::size_t>& counts) {
  const Ended decoded = run({"decode", "--json", file});
  ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
  const Ended printed = shell("perf script -D -i " + file + " 2>&1");
  auto by_perf = read_by_perf(printed.out);
  for (const std::string& line : lines_of(decoded.out)) {
    const json record = json::parse(line);
    const std::string at = fmt::format("{:#x}", record["at"].get<std::size_t>());
    ASSERT_TRUE(by_perf.contains(at)) << at << "\n" << printed.out.substr(0, 2000);
    std::string perfs = by_perf[at];
    by_perf.erase(at);
    if (record["header"]["type"] >= 64) {  // perf's own
      ASSERT_NE(perfs.find(": PERF_RECORD_" + record["record"].get<std::string>()),
                std::string::npos)
          << perfs;
      ++counts["perf's own"];
      continue;
    }
    // The CPU: perf's first word.
    const json& id = record["record"] == "SAMPLE" ? record : record["sample_id"];
    const std::string cpu = std::to_string(id["cpu"].get<int>());
    ASSERT_EQ(perfs.substr(0, perfs.find(' ')), cpu);
    perfs.replace(0, perfs.find(' '), "0");
    ASSERT_EQ(in_perfs_words(record, period), perfs);
    ++counts[record["record"]];
    counts["callchain"] += record.contains("callchain");
    counts["raw"] += record.contains("raw");
  }
  EXPECT_TRUE(by_perf.empty()) << by_perf.begin()->second;
  EXPECT_EQ(shell("perf report --stdio -i " + file + " 2>&1").exit_code, 0);
}

TEST_F(RecordCommandTest, PerfReadsTheSameFieldsOutOfItsFile) {
  if (shell("command -v perf").exit_code != 0) GTEST_SKIP() << "it needs perf (ci/setup)";
  const std::string file = temporary("record_command_test.data");
  const std::string script =
      "for i in 1 2 3 4 5 6 7 8 9 10; do true | cat; done; sleep 0.01; unshare -n true; " +
      command({}).front() + " --seconds 0.01";
  const Ended ended = run(
      {"record", "-g", "-e", "page-faults", "-e", "sched:sched_switch", "-e",
       "changes:switches,namespaces,symbols,programs", "-o", file, "--", "/bin/sh", "-c", script},
      with_tracefs());
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, std::size_t> counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  EXPECT_GT(counts["SAMPLE"], 1000U);
  for (const char* const type : {"COMM", "FORK", "EXIT", "SWITCH", "MMAP2"}) {
    EXPECT_GT(counts[type], 5U) << type;
  }
  for (const char* const type : {"KSYMBOL", "BPF_EVENT", "NAMESPACES"}) {
    EXPECT_GT(counts[type], 0U) << type;
  }
  EXPECT_GT(counts["callchain"], 100U);
  // The tracepoint by its name, and its fields by theirs.
  const Ended traced = shell("perf script -F event,trace -i " + file +
                             " 2>/dev/null | grep -c 'sched:sched_switch:.* prev_pid=.* ==> '");
  EXPECT_GT(counts["raw"], 20U);
  EXPECT_EQ(traced.out, std::to_string(counts["raw"]) + "\n");
}

// Without records of them, perf shows a number for the program, and [unknown] for its code.
TEST_F(RecordCommandTest, PerfKnowsTheTasksThatExistedBefore) {
  if (shell("command -v perf").exit_code != 0) GTEST_SKIP() << "it needs perf (ci/setup)";
  struct Program {
    const char* command;
    const char* name;
    const char* code;  // where it spends its time
    const char* recorded;
  };
  const std::string file = temporary("record_command_test_before.data");
  for (const auto& [command_line, name, code, recorded] :
       {Program{"while :; do :; done", "sh", "(/usr/", "-p $pid"},
        Program{"exec dd if=/dev/zero of=/dev/null bs=64k", "dd", "([kernel.kallsyms])", "-a"}}) {
    const Ended ended = shell("sh -c '" + std::string{command_line} + "' & pid=$!; sleep 0.2; " +
                              command({}).front() + " record -e cpu-clock --seconds 1 " + recorded +
                              " -o " + file + "; kill $pid");
    std::map<std::string, std::size_t> counts;
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 10101010, counts)) << ended.err;
    for (const char* const type : {"SAMPLE", "COMM", "FORK", "MMAP", "MMAP2"}) {
      EXPECT_GT(counts[type], 0U) << name << " " << type << " " << ended.err;
    }
    const Ended named = shell("perf script -F comm,ip,dso -i " + file + " 2>&1 | grep '^ *" +
                              std::string{name} + " '");
    EXPECT_NE(named.out.find(code), std::string::npos) << named.out;
    EXPECT_EQ(named.out.find("[unknown]"), std::string::npos) << named.out;
  }
}

TEST_F(RecordCommandTest, AFileOfPerfRecordIsDecodedAsPerfDoes) {
  if (shell("command -v perf").exit_code != 0) GTEST_SKIP() << "it needs perf (ci/setup)";
  const std::string file = temporary("record_command_test_perf.data");
  const Ended ended = shell("perf record -q -a -g -e page-faults -e context-switches -o " + file +
                            " -- sh -c 'for i in 1 2 3 4 5; do true | cat; done' 2>&1");
  ASSERT_EQ(ended.exit_code, 0) << ended.out;
  std::map<std::string, std::size_t> counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  EXPECT_GT(counts["callchain"], 10U);
  for (const char* const type : {"COMM", "FORK", "EXIT", "MMAP", "MMAP2", "perf's own"}) {
    EXPECT_GT(counts[type], 0U) << type;
  }
}

TEST_F(RecordCommandTest, AFileThatIsCutOffIsDecodedUpToThere) {
  const std::string file = temporary("record_command_test_cut.data");
  ASSERT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "true"}).exit_code, 0);
  const std::string whole = contents(file);
  const auto all = lines_of(run({"decode", file}).out).size();
  // struct perf_file_header's data: what is behind the records is not decoded.
  std::array<std::uint64_t, 2> data{};
  std::memcpy(data.data(), whole.data() + 40, sizeof data);
  const std::size_t end = data[0] + data[1];
  ASSERT_LT(end, whole.size());
  const std::string cut = temporary("cut.data", whole.substr(0, end - 3));
  const Ended ended = run({"decode", cut});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(lines_of(ended.out).size(), all - 1);
  EXPECT_NE(ended.err.find("the records before that are printed"), std::string::npos) << ended.err;
  std::string swapped = whole;
  std::reverse(swapped.begin(), swapped.begin() + 8);
  const Ended other = run({"decode", temporary("swapped.data", swapped)});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("other byte order"), std::string::npos) << other.err;
  EXPECT_EQ(run({"decode", temporary("none.data", std::string("\0\1", 2))}).exit_code, 2);
}

}  // namespace
}  // namespace perfring::cli
