// The options of the small commands.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include "harness/cli/command_line.h"
#include "harness/cli/conform.h"
#include "harness/cli/faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/program/options.h"
#include "harness/script/script.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, EventsOptions& options) {
  CLI::App& events = *app.add_subcommand(
      "events",
      "Lists the events that this user can open here, and says why the others cannot be opened:\n"
      "those of the kernel, of the processor, of sysfs's PMUs and of tracefs.");
  events.add_option("PATTERN", options.pattern,
                    "Only the names that have this in them; * and ? as in a shell [all]");
  events.add_flag("--json", options.json, "Print a JSON object for each event, one a line");
  return events;
}

CLI::App& declare_command(CLI::App& app, RecordOptions& options) {
  CLI::App& record = *app.add_subcommand(
      "record",
      "Prints the records of events as they come, in the order of their times, and what was\n"
      "lost and late at the end; or writes them to a file that perf script and perf report read.\n"
      "An event is a name that `perfring events` lists, rCONFIG, SYSTEM:TRACEPOINT,\n"
      "PMU/TERM,.../, kprobe:FUNCTION, uprobe:PATH:SYMBOL, mem:0xADDRESS:rw:4 or\n"
      "changes:switches,execs,forks,maps.");
  record.add_option("-e,--event", options.events, "An event; may be given several times")
      ->required()
      ->type_name("EVENT")
      ->allow_extra_args(false);
  CLI::Option* const all = record.add_flag("-a,--all", options.all, "All processes, on all CPUs");
  CLI::Option* const pid =
      record.add_option("-p,--pid", options.pid, "A process, and what it starts")
          ->type_name("PID")
          ->check(number_from(1, std::numeric_limits<std::int32_t>::max()));
  record.add_option("COMMAND", options.command, "A command to run, behind --");
  record
      .add_option(
          "-o,--output", options.output,
          "Write a perf.data file, and print no record; - for stdout, as a pipe's perf.data")
      ->type_name("FILE");
  record
      .add_option("--seconds", options.seconds,
                  "How long [until the command or the process ends, or a signal]; a "
                  "command that runs on is sent SIGTERM")
      ->type_name("S")
      ->check(seconds());
  record.add_flag("-g,--callchains", options.callchains, "Callchains, too");
  record.add_flag("--json", options.json, "Print a JSON object for each record, one a line");
  all->excludes(pid);
  return record;
}

CLI::App& declare_command(CLI::App& app, DecodeOptions& options) {
  CLI::App& decode = *app.add_subcommand(
      "decode",
      "Prints the records of a file, one a line, by the names of the kernel's uapi. The file is\n"
      "a perf.data, or has a line of JSON for each record: its bytes, the attributes of its\n"
      "event, and what is known of it from elsewhere (harness/record/vectors.jsonl is one).");
  decode.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  decode.add_flag("--check", options.check,
                  "Print no record: compare each with what is known of it, and name every field "
                  "that differs");
  decode.add_flag("--json", options.json,
                  "Print a JSON object for each record; with --check, the outcome as JSON");
  return decode;
}

CLI::App& declare_command(CLI::App& app, InspectOptions& options) {
  CLI::App& inspect = *app.add_subcommand(
      "inspect",
      "Explains the ring in a file, record by record: where each lies, what is wrong with it, "
      "what\n"
      "perfring delivers, and where the tail goes. The file is a control page and its data pages,\n"
      "as they are mapped; with --case an index of vectors (harness/conformance/vectors).");
  inspect.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  CLI::Option* const id =
      inspect.add_option("--case", options.id, "FILE is an index of vectors: explain this case");
  inspect
      .add_option("--turn", options.turn, "The ring before this turn of the consumer's, from 1 on")
      ->check(number_from(1, 1000))
      ->needs(id)
      ->capture_default_str();
  inspect.add_flag("--fuzz", options.fuzz, "FILE is an input of fuzz/hostile_ring")->excludes(id);
  inspect
      .add_option("--sample-type", options.sample_type,
                  "The event's, such as TIME|RAW: it is not in the ring [RAW, or the case's]")
      ->excludes(id);
  inspect.add_flag("--json", options.json, "Print the records as JSON");
  inspect.add_option("--svg", options.svg, "Draw the ring to this file, too; - for stdout alone");
  return inspect;
}

CLI::App& declare_command(CLI::App& app, DiffOptions& options) {
  constexpr std::uint64_t kScriptsMax = 1'000'000'000;
  constexpr std::uint64_t kCpusMax = 65535;
  CLI::App& diff = *app.add_subcommand(
      "diff",
      "Runs random scripts (outputs, drains, polls, pauses...) on this machine's kernel and on\n"
      "the simulated one, and compares all that is visible after every step. A difference is\n"
      "shrunk. With --replay, compares the simulated kernel with what a kernel has shown before.");
  diff.add_option("--scripts", options.campaign.scripts, "The number of random scripts [10000]")
      ->type_name("N")
      ->check(number_from(1, kScriptsMax));
  diff.add_option("--seed", options.campaign.seed,
                  "The first script's seed; the next is one more [1]")
      ->type_name("S")
      ->check(number_from(0));
  diff.add_option("--steps", options.campaign.steps_max,
                  "The most steps that a script may have [80]")
      ->type_name("N")
      ->check(number_from(1, script::kStepsMax));
  diff.add_option("--cpu", options.cpu,
                  "The CPU to run on [the first that this process may run on]")
      ->type_name("C")
      ->check(number_from(0, kCpusMax));
  CLI::Option* const script = diff.add_option("--script", options.script,
                                              "Run the script in this file instead; - for stdin")
                                  ->type_name("FILE");
  CLI::Option* const record =
      diff.add_option("--record", options.record,
                      "Compare nothing: write what the live kernel shows to this folder, a trace "
                      "for each script; - for stdout, with --script")
          ->type_name("FOLDER");
  CLI::Option* const replay =
      diff.add_option("--replay", options.traces,
                      "Compare with the traces in this file instead, which needs no privilege; "
                      "repeatable")
          ->type_name("FILE")
          ->expected(1)
          ->take_all();
  diff.add_flag("--json", options.json, "Print the outcome as JSON");
  diff.parse_complete_callback([replay, script, record, &diff, &options] {
    for (const char* const name : {"--scripts", "--seed", "--steps", "--cpu"}) {
      if (replay->count() != 0 && diff.count(name) != 0) {
        throw CLI::ValidationError(name, "cannot be given together with --replay");
      }
      if (script->count() != 0 && std::string{name} != "--cpu" && diff.count(name) != 0) {
        throw CLI::ValidationError(name, "cannot be given together with --script");
      }
    }
    if (replay->count() != 0 && script->count() + record->count() != 0) {
      throw CLI::ValidationError("--replay", "cannot be given together with --script or --record");
    }
    if (record->count() != 0 && diff.count("--json") != 0) {
      throw CLI::ValidationError("--json", "cannot be given together with --record");
    }
    if (options.record == "-" && script->count() == 0) {
      throw CLI::ValidationError("--record", "- is for one trace: give --script");
    }
  });
  return diff;
}

CLI::App& declare_command(CLI::App& app, FaultsOptions& options) {
  std::vector<std::string> names;
  for (const faults::Fault& fault : faults::catalogue()) names.emplace_back(fault.name);
  std::vector<std::string> harnesses;
  for (const faults::Harness harness : faults::harnesses()) {
    harnesses.emplace_back(to_string(harness));
  }
  CLI::App& command = *app.add_subcommand(
      "faults",
      "Plants each fault of the catalogue in each harness, and checks that it is found as the\n"
      "invariant that the catalogue names.");
  command.add_option("faults", options.names, "The faults to plant [all]")
      ->type_name("NAME")
      ->check(one_of_many(names, "perfring faults --list"));
  command
      .add_option("--harness", options.harness,
                  fmt::format("Plant in one harness: {}", fmt::join(harnesses, ", ")))
      ->type_name("HARNESS")
      ->check(one_of(harnesses));
  const CLI::Option* const json =
      command.add_flag("--json", options.json, "Print the table as JSON");
  const CLI::Option* const markdown =
      command.add_flag("--markdown", options.markdown, "Print the table as Markdown");
  const CLI::Option* const list =
      command.add_flag("--list", options.list, "List the faults, and end");
  std::vector<const CLI::Option*> with_markdown;
  for (const CLI::Option* const option : command.get_options()) {
    if (option != json && option != list) with_markdown.push_back(option);
  }
  refuse_other_options(command, {{list, {json}}, {markdown, with_markdown}});
  return command;
}

CLI::App& declare_command(CLI::App& app, ConformOptions& options) {
  CLI::App& conform = *app.add_subcommand(
      "conform",
      "Checks a consumer of perf rings on the cases of harness/conformance: rings that real "
      "kernels\n"
      "produce, and hostile ones. Without a consumer, checks perfring itself.\n"
      "  perfring conform --adapter ./adapter     a program that drains a ring in a file\n"
      "  perfring conform -- ./consumer {pages}   a program as it is, on a simulated kernel,\n"
      "                                           or, with --live, on this machine's own\n"
      "{pages} in its words is replaced by the pages of the case's ring.\n"
      "harness/conformance/README.md says how to write an adapter, and what a program must print.");
  const CLI::Option* const adapter = conform.add_option(
      "--adapter", options.adapter, "A shell's command, run as COMMAND FILE PAGES SAMPLE_TYPE");
  const CLI::Option* const fault = conform.add_option(
      "--fault", options.fault, "Check a consumer with this fault of harness/faults");
  conform
      .add_option("--only", options.only,
                  "Only these cases: ids, or a beginning and * for all ids that begin so")
      ->delimiter(',');
  conform.add_flag("--reachable", options.reachable, "Only cases that a real kernel produces");
  conform.add_option("--known", options.known,
                     "A file of known failures: lines of an id and its outcome. Any other failure "
                     "is a violation, and so is a known one that no longer fails");
  conform
      .add_option("--reader", options.reader,
                  "The format of the program's output: lines, lines-24 (24 bytes of samples), "
                  "bpftool, bpftrace, perf-trace")
      ->check(one_of({"lines", "lines-24", "bpftool", "bpftrace", "perf-trace"}));
  conform.add_flag("--live", options.live,
                   "The program after -- runs on this machine's own kernel, which writes what it "
                   "can be made to write (as root); the other cases are not run");
  const CLI::Option* const list =
      conform.add_flag("--list", options.list, "Print the cases, and run none");
  const CLI::Option* const vectors = conform.add_flag(
      "--vectors", options.vectors, "Print the vectors of the cases as JSON, and run none");
  const CLI::Option* const json =
      conform.add_flag("--json", options.json, "Print the outcome as JSON");
  const CLI::Option* const markdown =
      conform.add_flag("--markdown", options.markdown, "Print the outcome as a Markdown table");
  conform.add_option("--junit", options.junit, "Write the outcome to this file as JUnit XML, too");
  const CLI::Option* const only = conform.get_option("--only");
  const CLI::Option* const reachable = conform.get_option("--reachable");
  refuse_other_options(conform, {{list, {only, reachable}}, {vectors, {only, reachable}}});
  for (const auto& [one, other] : {std::pair{adapter, fault}, {json, markdown}}) {
    conform.get_option(one->get_name())->excludes(conform.get_option(other->get_name()));
  }
  return conform;
}

// CLI11 must not see the --: after an option with several values, it takes -- for their end.
int take_program(int argc, const char* const* argv, ConformOptions& options) {
  if (argc < 2 || std::string_view{argv[1]} != "conform") return argc;
  const std::span all{argv, static_cast<std::size_t>(argc)};
  const auto dashes =
      std::ranges::find_if(all, [](const char* word) { return std::string_view{word} == "--"; });
  options.has_dashes = dashes != all.end();
  if (options.has_dashes) options.command.assign(dashes + 1, all.end());
  return static_cast<int>(dashes - all.begin());
}

// Refuses an empty command after --. The user meant a consumer, so perfring must not be checked in
// its place (P32).
std::string conflict(const ConformOptions& options) {
  if (options.command.empty()) {
    if (options.has_dashes) {
      return "no program is given after --: give one, or leave out -- to hold perfring itself to "
             "the cases";
    }
    if (!options.reader.empty()) return "--reader needs a program after --, whose output it reads";
    return options.live ? "--live needs a program after --, which is to run on this kernel" : "";
  }
  if (options.adapter.empty() && options.fault.empty()) return {};
  return "a program after -- is not run with --adapter or --fault: give one of them";
}

}  // namespace perfring::cli
