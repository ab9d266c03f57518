#include "harness/cli/events.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "harness/program/options.h"

namespace perfring::cli {

CLI::App& declare_command(CLI::App& app, EventsOptions& options) {
  CLI::App& events = *app.add_subcommand(
      "events",
      "Lists the events that can be opened here, by this user, and says of the others why they\n"
      "cannot: those of the kernel, of the processor, of sysfs's PMUs and of tracefs.");
  events.add_option("PATTERN", options.pattern,
                    "Only the names that have this in them; * and ? as in a shell [all]");
  events.add_flag("--json", options.json, "Print a JSON object for each event");
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
  CLI::Option* const command =
      record.add_option("COMMAND", options.command, "A command to run, behind --");
  record.add_option("-o,--output", options.output, "Write a perf.data file, and print no record")
      ->type_name("FILE");
  record.add_option("--seconds", options.seconds, "How long [until the command ends, or a signal]")
      ->type_name("S")
      ->check(seconds());
  record.add_flag("-g,--callchains", options.callchains, "Callchains, too");
  record.add_flag("--json", options.json, "Print a JSON object for each record");
  all->excludes(pid);
  all->excludes(command);
  pid->excludes(command);
  return record;
}

}  // namespace perfring::cli
