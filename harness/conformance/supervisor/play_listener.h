#ifndef HARNESS_CONFORMANCE_SUPERVISOR_PLAY_LISTENER_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_PLAY_LISTENER_H_

#include <cstdint>
#include <string>

#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/program_event.h"

namespace perfring::conformance {

// Is told what a program's calls do, and makes the decisions that depend on the case.
class PlayListener {
 public:
  virtual ~PlayListener() = default;
  virtual const Case& played_case() const = 0;
  // `event` has its memory, and needs a producer.
  virtual void on_map(ProgramEvent& event) = 0;
  virtual void on_map_refused(const std::string& why) = 0;
  virtual void on_enabled(ProgramEvent& event) = 0;
  virtual void on_map_update(std::uint64_t key, ProgramEvent& event) = 0;
  virtual void on_map_delete(std::uint64_t key) = 0;
  virtual void on_wait() = 0;
  virtual void on_not_emulated(const std::string& what) = 0;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_PLAY_LISTENER_H_
