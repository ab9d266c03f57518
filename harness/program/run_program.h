#ifndef HARNESS_PROGRAM_RUN_PROGRAM_H_
#define HARNESS_PROGRAM_RUN_PROGRAM_H_

#include <atomic>
#include <string>
#include <string_view>
#include <system_error>

namespace perfring {

// The main() of every program: calls `body`. Prints the reason of an error that `body` throws to
// stderr, and returns kUsageOrEnvironment. Before that:
// - opens descriptors 0 to 2 if they are closed, so that no other file gets their numbers;
// - ignores SIGPIPE and SIGXFSZ, so that a missing reader and a file that may not grow are errors
//   like any other. Does not ignore SIGCHLD, even if the parent did: children are waited for;
// - makes the program end in the same way if memory runs out in code that must not throw;
// - changes to the user's folder: `bazel run` starts a program in a folder of its own.
int run_program(std::string_view name, int (*body)(int argc, char** argv), int argc, char** argv);

// Returns the refused resource and the reason: std::thread's own message is only "Resource
// temporarily unavailable".
std::string refusal(const std::system_error& error);

// Returns the name given to run_program().
std::string_view program_name();

// Returns the command that runs `perfring`: its name, or `bazel run --config=opt //:perfring --`
// if Bazel started this process.
std::string invocation();

// Returns the line that repeats a run of `perfring` with these arguments. A comment in it has the
// version, the commit if the environment has it (PERFRING_COMMIT), and a note.
std::string replay_command(std::string_view arguments, std::string_view note = {});

// While an object of this class exists, SIGINT, SIGTERM and SIGHUP end the run with the results so
// far: they set a flag, however often they arrive. Before and after, and once something is
// delivered (console.h), they end the program. But after a SIGHUP has ended the run, further ones,
// which a terminal that is closed sends, do not end the program. Signals that the parent has
// ignored (nohup) stay ignored. SIGQUIT ends the program at any time, with a core dump, as it ends
// perf. Only one object may exist at a time.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals() { restore_signals(); }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

  const std::atomic<bool>& requested() const;

  // Restores the signals' default, as without an object: for a caller that may wait for a reader
  // forever.
  static void restore_signals();
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_RUN_PROGRAM_H_
