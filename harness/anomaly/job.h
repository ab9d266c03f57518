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
  unsigned long allocation = 0;  // the n-th fails, in place of a call
  std::string preload;           // what makes it fail
  std::vector<std::pair<std::string, std::string> >
      files;                      // names in its folder, and what is in them
  std::vector<std::string> then;  // run afterwards, with nothing failing
  int seconds = 60;               // then it hangs
};

// Throws std::exception for what is no job.
Job job_of(const Json& json);

// The processes of this PID namespace that belong to no job: process 1, and a bystander, whom the
// job has no business to signal.
class Bystander {
 public:
  Bystander();
  pid_t pid() const noexcept { return process_.id(); }
  bool lives() const;

 private:
  os::Process process_;
};

// Runs it in `folder`, which is emptied before. Returns what it did and left; the processes that it
// left are ended. This process is 1 of its PID namespace.
Json run(const Job& job, const std::string& folder, const Bystander& bystander);

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_JOB_H_
