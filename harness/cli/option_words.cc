#include "harness/cli/option_words.h"

#include <cstddef>
#include <string_view>

namespace perfring::cli {
namespace {

struct Words {
  std::string_view library;
  std::string_view options;
};

constexpr Words kWords[] = {
    {" (or_else())", ""},
    {"changes({.switches = true})", "changes:switches"},
    {"request some of changes()", "give some, as -e changes:maps"},
    {"watch system()", "watch all tasks (-a)"},
    {"name the CPUs by on()", "mount sysfs: mount -t sysfs sysfs /sys"},
    {"use this_process(), system() or the like", "give -a, -p PID, or -- COMMAND"},
    {"see child_status() for how it ended, and open again", "run it on its own to see how it ends"},
    {"and count it (Counter)", "and count it with perf stat"},
    {", or use a Counter", ", or count with perf stat"},
    {"open a Sampler for each of them", "record each separately"},
    {"open a Sampler for each clock", "record each separately"},
    {"and a Sampler reads forwards", "and it is read forwards"},
    {"leave it out, or use an OverwritableRing", "leave it out"},
    {"put the event into a program's map, as PerfEventArray does", "use another event"},
    {"watch only other tasks, or expect the wait's own records: they arrive after longest_wait, "
     "and wake nobody",
     "watch only other processes (-p PID), or expect records of perfring itself among theirs"},
    {"leave batch at 0, so that they wake nobody, or wait in a process that is not watched",
     "watch only other processes (-p PID)"},
    {"leave watermark and wakeup_events unset, so that they wake nobody, or wait in a process that "
     "is not watched",
     "watch only other processes (-p PID)"},
};

}  // namespace

std::string to_option_words(std::string text) {
  for (const Words& each : kWords) {
    for (std::size_t at = 0; (at = text.find(each.library, at)) != std::string::npos;) {
      text.replace(at, each.library.size(), each.options);
      at += each.options.size();
    }
  }
  return text;
}

}  // namespace perfring::cli
