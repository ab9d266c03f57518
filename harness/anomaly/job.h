#ifndef HARNESS_ANOMALY_JOB_H_
#define HARNESS_ANOMALY_JOB_H_

// One run of a program in the room, with one thing that fails.

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/anomaly/injector.h"
#include "harness/program/json.h"
#include "perfring/os/process.h"

namespace perfring::anomaly {

struct Job {
  std::vector<std::string> command;  // begins with the program's path
  Injection injection;
  unsigned long allocation = 0;  // fail the n-th allocation instead of a call
  std::string preload;           // the library that makes it fail
  std::vector<std::pair<std::string, std::string> >
      files;                      // file names in the folder, and their contents
  std::vector<std::string> then;  // run afterwards, with nothing failing
  int seconds = 60;               // a longer run counts as hung
};

// Throws std::exception if the JSON is not a valid job.
Job job_of(const Json& json);

// A process of this PID namespace that does not belong to the job. A job that signals it is at
// fault.
class Bystander {
 public:
  Bystander();
  pid_t pid() const noexcept { return process_.id(); }
  bool is_alive() const;

 private:
  os::Process process_;
};

// Empties `folder` and runs the job in it. Returns what the job did and left; kills the processes
// that it left. The caller must be process 1 of its PID namespace.
Json run(const Job& job, const std::string& folder, const Bystander& bystander);

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_JOB_H_
