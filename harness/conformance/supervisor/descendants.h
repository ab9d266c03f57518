#ifndef HARNESS_CONFORMANCE_SUPERVISOR_DESCENDANTS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_DESCENDANTS_H_

#include <sys/types.h>

#include <map>

#include "perfring/os/process.h"

namespace perfring::conformance {

// The processes that a consumer leaves running, even in a session of their own, or cloned untraced.
// They become this process's children when the consumer ends, and so do their own children when
// they end. Children that this process had before are left alone.
class Descendants {
 public:
  // Throws std::system_error if this process cannot list its children, or cannot adopt theirs.
  Descendants();
  // Kills all of them, and their descendants.
  void end() const;

 private:
  bool is_from_before(pid_t child) const;

  std::map<pid_t, os::ProcessRef> before_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_DESCENDANTS_H_
