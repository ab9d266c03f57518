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
      "Lists the events of the kernel, of the processor, of sysfs's PMUs and of tracefs. Says\n"
      "which of them this user can open here, and why the others cannot be opened.");
  events.add_option("PATTERN", options.pattern,
                    "Only names that contain or match PATTERN; * and ? as in a shell [all]");
  events.add_flag("--json", options.json, "Print a JSON object for each event, one per line");
  return events;
}

CLI::App& declare_command(CLI::App& app, RecordOptions& options) {
  CLI::App& record = *app.add_subcommand(
      "record",
      "Prints the records of events as they arrive, in time order, and at the end how many were\n"
      "lost and late; or writes them to a file for perf script and perf report.\n"
      "An event is a name that `perfring events` lists, rCONFIG, SYSTEM:TRACEPOINT,\n"
      "PMU/TERM,.../, kprobe:FUNCTION, uprobe:PATH:SYMBOL, mem:0xADDRESS:rw:4 or\n"
      "changes:switches,execs,forks,maps.");
  record.add_option("-e,--event", options.events, "The event to record; repeatable")
      ->required()
      ->type_name("EVENT")
      ->allow_extra_args(false);
  CLI::Option* const all = record.add_flag("-a,--all", options.all, "All processes, on all CPUs");
  CLI::Option* const pid =
      record.add_option("-p,--pid", options.pid, "A process and the children that it starts")
          ->type_name("PID")
          ->check(number_from(1, std::numeric_limits<std::int32_t>::max()));
  record.add_option("COMMAND", options.command, "The command to run, after --");
  record
      .add_option(
          "-o,--output", options.output,
          "Write a perf.data file instead of printing records; - writes the pipe format to stdout")
      ->type_name("FILE");
  record
      .add_option("--seconds", options.seconds,
                  "How long to record [until the command or the process ends, or a signal]; a "
                  "command that is still running then is sent SIGTERM")
      ->type_name("S")
      ->check(seconds());
  record.add_flag("-g,--callchains", options.callchains, "Record callchains, too");
  record.add_flag("--json", options.json, "Print a JSON object for each record, one per line");
  all->excludes(pid);
  return record;
}

CLI::App& declare_command(CLI::App& app, DecodeOptions& options) {
  CLI::App& decode = *app.add_subcommand(
      "decode",
      "Prints the records of a file, one per line, with the names of the kernel's uapi. FILE is a\n"
      "perf.data file, or has a line of JSON for each record: its bytes, the attributes of its\n"
      "event, and its values as known from another source (see harness/record/vectors.jsonl).");
  decode.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  decode.add_flag(
      "--check", options.check,
      "Print no records: compare each with its known values, and name every field that differs");
  decode.add_flag("--json", options.json,
                  "Print a JSON object for each record; with --check, the outcome as JSON");
  return decode;
}

CLI::App& declare_command(CLI::App& app, InspectOptions& options) {
  CLI::App& inspect = *app.add_subcommand(
      "inspect",
      "Explains the ring in a file, record by record: where each is, what is wrong with it, what\n"
      "perfring delivers, and where it moves data_tail. FILE is a control page and its data "
      "pages,\n"
      "as they are mapped; with --case, an index of vectors (harness/conformance/vectors).");
  inspect.add_option("FILE", options.file, "The file to read; - for stdin")->required();
  CLI::Option* const id =
      inspect.add_option("--case", options.id, "FILE is an index of vectors: explain this case");
  inspect
      .add_option("--turn", options.turn, "Show the ring before the consumer's Nth turn, from 1")
      ->check(number_from(1, 1000))
      ->needs(id)
      ->capture_default_str();
  inspect.add_flag("--fuzz", options.fuzz, "FILE is an input of fuzz/hostile_ring")->excludes(id);
  inspect
      .add_option("--sample-type", options.sample_type,
                  "The event's sample_type, such as TIME|RAW; the ring does not contain it [RAW, "
                  "or the case's]")
      ->excludes(id);
  inspect.add_flag("--json", options.json, "Print the records as JSON");
  inspect.add_option("--svg", options.svg,
                     "Also draw the ring to this file; - draws to stdout and prints nothing else");
  return inspect;
}

CLI::App& declare_command(CLI::App& app, DiffOptions& options) {
  constexpr std::uint64_t kScriptsMax = 1'000'000'000;
  constexpr std::uint64_t kCpusMax = 65535;
  CLI::App& diff = *app.add_subcommand(
      "diff",
      "Runs random scripts (outputs, drains, polls, pauses...) on this machine's kernel and on\n"
      "the simulated one, and compares everything visible after every step. A script with a\n"
      "difference is shrunk. --replay compares the simulated kernel with recorded traces instead.");
  diff.add_option("--scripts", options.campaign.scripts, "The number of random scripts [10000]")
      ->type_name("N")
      ->check(number_from(1, kScriptsMax));
  diff.add_option("--seed", options.campaign.seed,
                  "The first script's seed; each further script's is one higher [1]")
      ->type_name("S")
      ->check(number_from(0));
  diff.add_option("--steps", options.campaign.steps_max,
                  "The maximum number of steps in a script [80]")
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
                      "Compare nothing: record the live kernel in this folder, one trace for each "
                      "script; - for stdout, with --script")
          ->type_name("FOLDER");
  CLI::Option* const replay =
      diff.add_option(
              "--replay", options.traces,
              "Compare with the traces in this file instead, without privileges; repeatable")
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
      throw CLI::ValidationError("--record", "- takes only one trace: give --script");
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
      "Plants each fault of the catalogue in each harness, and checks that the harness reports\n"
      "the invariant that the catalogue names.");
  command.add_option("faults", options.names, "The faults to plant [all]")
      ->type_name("NAME")
      ->check(one_of_many(names, "perfring faults --list"));
  command
      .add_option(
          "--harness", options.harness,
          fmt::format("Plant the faults in only one harness: {}", fmt::join(harnesses, ", ")))
      ->type_name("HARNESS")
      ->check(one_of(harnesses));
  const CLI::Option* const json =
      command.add_flag("--json", options.json, "Print the table as JSON");
  const CLI::Option* const markdown =
      command.add_flag("--markdown", options.markdown, "Print the table as Markdown");
  const CLI::Option* const list =
      command.add_flag("--list", options.list, "List the faults, and exit");
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
      "Checks a consumer of perf rings against the cases of harness/conformance: rings that real "
      "kernels\n"
      "produce, and hostile ones. Without a consumer, checks perfring itself.\n"
      "  perfring conform --adapter ./adapter     a program that drains a ring in a file\n"
      "  perfring conform -- ./consumer {pages}   an unmodified program, on a simulated kernel\n"
      "                                           or, with --live, on this machine's own\n"
      "{pages} in its arguments is replaced by the number of pages of the case's ring.\n"
      "harness/conformance/README.md says how to write an adapter, and what a program must print.");
  const CLI::Option* const adapter = conform.add_option(
      "--adapter", options.adapter, "A shell command, run as COMMAND FILE PAGES SAMPLE_TYPE");
  const CLI::Option* const fault = conform.add_option(
      "--fault", options.fault, "Check a consumer with this fault of harness/faults");
  conform
      .add_option("--only", options.only,
                  "Only these cases: ids, or a prefix and * for all ids that begin with it")
      ->delimiter(',');
  conform.add_flag("--reachable", options.reachable, "Only cases that a real kernel produces");
  conform.add_option("--known", options.known,
                     "A file of known failures, each line an id and its outcome. Any other failure "
                     "is a violation, and so is a known failure that no longer occurs");
  conform
      .add_option("--reader", options.reader,
                  "The format of the program's output: lines, lines-24 (24 bytes of samples), "
                  "bpftool, bpftrace, perf-trace")
      ->check(one_of({"lines", "lines-24", "bpftool", "bpftrace", "perf-trace"}));
  conform.add_flag("--live", options.live,
                   "The program after -- runs on this machine's kernel (as root); cases that a "
                   "live kernel cannot produce are not run");
  const CLI::Option* const list =
      conform.add_flag("--list", options.list, "List the cases, and run none");
  const CLI::Option* const vectors = conform.add_flag(
      "--vectors", options.vectors, "Print the vectors of the cases as JSON, and run none");
  const CLI::Option* const json =
      conform.add_flag("--json", options.json, "Print the outcome as JSON");
  const CLI::Option* const markdown =
      conform.add_flag("--markdown", options.markdown, "Print the outcome as a Markdown table");
  conform.add_option("--junit", options.junit, "Also write the outcome to this file as JUnit XML");
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
      return "no program is given after --: give one, or leave out -- to check perfring itself";
    }
    if (!options.reader.empty())
      return "--reader needs a program after --: it reads that program's output";
    return options.live ? "--live needs a program after --: it runs that program on this kernel"
                        : "";
  }
  if (options.adapter.empty() && options.fault.empty()) return {};
  return "a program after -- cannot be combined with --adapter or --fault: give only one of them";
}

}  // namespace perfring::cli
