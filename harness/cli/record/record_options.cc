#include "harness/cli/record/record.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, EventsOptions& options) {
  CLI::App& events = *app.add_subcommand(
      "events",
      "Lists the events of the kernel, of the processor, of sysfs's PMUs and of tracefs, which\n"
      "of them this user can open here, and why the others cannot be opened.");
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

}  // namespace perfring::cli
