#ifndef HARNESS_CONFORMANCE_DESCENDANTS_H_
#define HARNESS_CONFORMANCE_DESCENDANTS_H_

#include <sys/types.h>

#include <map>

#include "perfring/os/process.h"

namespace perfring::conformance {

// What a consumer leaves running: in a session of its own, or cloned untraced. Once the consumer
// has ended, it is this process's child, as are its own children when it ends in turn. The children
// that this process has before are nobody's consumers.
class Descendants {
 public:
  // Throws std::system_error if this process cannot see its children or have theirs.
  Descendants();
  // Ends all of them, and theirs.
  void end() const;

 private:
  bool is_from_before(pid_t child) const;

  std::map<pid_t, os::ProcessRef> before_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_DESCENDANTS_H_
