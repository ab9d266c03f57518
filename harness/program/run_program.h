#ifndef HARNESS_PROGRAM_RUN_PROGRAM_H_
#define HARNESS_PROGRAM_RUN_PROGRAM_H_

#include <atomic>
#include <string>
#include <string_view>
#include <system_error>

namespace perfring {

// main() of every program: calls `body`, and turns what goes wrong outside it into a reason on
// stderr and kUsageOrEnvironment. Before that:
// - descriptors 0 to 2 that are closed are taken, so that no other file gets their numbers;
// - SIGPIPE and SIGXFSZ are ignored: a reader that has gone, a file that may not grow, are errors
//   like others; SIGCHLD is not, which the parent may have left so: children are waited for;
// - where memory runs out in code that may not throw, the program ends in the same way;
// - the folder is the user's: `bazel run` starts a program in one of its own.
int run_program(std::string_view name, int (*body)(int argc, char** argv), int argc, char** argv);

// What the system refused, and why: std::thread's own words are no more than "Resource temporarily
// unavailable".
std::string refusal(const std::system_error& error);

// As given to run_program().
std::string_view program_name();

// The command that runs `perfring`: that, or `bazel run //:perfring --` if Bazel started this
// process.
std::string invocation();

// The line that repeats a run of `perfring`: with these arguments, and as a comment with the
// version that it is for, the commit if the environment has it (PERFRING_COMMIT), and a note.
std::string replay_command(std::string_view arguments, std::string_view note = {});

// While one lives, SIGINT, SIGTERM and SIGHUP end the run with what there is so far: they set a
// flag, as often as they come. Before and after, and once something is delivered (console.h), they
// end the program; but where one SIGHUP has ended the run, the next ones, which a terminal that is
// closed sends, do not. Those that the parent has ignored (nohup) stay ignored. SIGQUIT ends the
// program at any time, with a core, as it ends perf. One at a time.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals() { let_signals_end_the_program(); }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

  const std::atomic<bool>& requested() const;

  // As if there were none: for a caller that may wait for a reader for ever.
  static void let_signals_end_the_program();
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_RUN_PROGRAM_H_
