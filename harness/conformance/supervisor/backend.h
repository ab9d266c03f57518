#ifndef HARNESS_CONFORMANCE_SUPERVISOR_BACKEND_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/live/emitter.h"
#include "harness/script/script.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {

// The kernel behind a program's perf events: it opens them, has the map in which the program enters
// them, and writes their rings.
// Errors: functions that return an int return 0 or an errno.
class Backend {
 public:
  virtual ~Backend() = default;

  // Whether this machine's kernel carries out the program's calls, which are then only watched.
  // Otherwise they are emulated.
  virtual bool carries_out_calls() const = 0;

  // Opens an event of event.attr on event.cpu. event.file is its descriptor.
  virtual int open(ProgramEvent& event) const = 0;
  // Whether the descriptor is the event's.
  virtual bool is_of(const ProgramEvent& event, const os::Fd& file) const = 0;
  // Maps the event's ring, of so many bytes, into this process.
  virtual int map_ring(ProgramEvent& event, std::size_t length) const = 0;
  // Puts a producer behind the mapped ring. `plays`: the case can be played in it. Throws
  // std::runtime_error if the machine's kernel refuses.
  virtual void make_producer(ProgramEvent& event, const script::Settings& settings,
                             bool plays) const = 0;

  // The program's map.
  virtual const os::Fd& map() const = 0;
  bool is_map(const os::Fd& file) const;
  // Enters the event in the map.
  virtual int enter(std::uint32_t key, const ProgramEvent& event) const = 0;
};

// The simulated kernel. The program's descriptors are memfds.
class SimulatedBackend final : public Backend {
 public:
  // With `loads_programs`, the map is one of the machine's kernel, so that it loads BPF programs
  // that use it. A kernel that refuses will tell the program so.
  explicit SimulatedBackend(bool loads_programs);

  bool carries_out_calls() const override { return false; }
  int open(ProgramEvent& event) const override;
  bool is_of(const ProgramEvent& event, const os::Fd& file) const override;
  int map_ring(ProgramEvent& event, std::size_t length) const override;
  void make_producer(ProgramEvent& event, const script::Settings& settings,
                     bool plays) const override;
  const os::Fd& map() const override { return map_; }
  int enter(std::uint32_t, const ProgramEvent&) const override { return 0; }

 private:
  os::Fd map_;
};

// The machine's own kernel, which writes at the emitter's request. The program gets the emitter's
// map.
class LiveBackend final : public Backend {
 public:
  // The emitter must outlive this object.
  explicit LiveBackend(live::Emitter& emitter);

  bool carries_out_calls() const override { return true; }
  int open(ProgramEvent& event) const override;
  bool is_of(const ProgramEvent& event, const os::Fd& file) const override;
  int map_ring(ProgramEvent& event, std::size_t length) const override;
  void make_producer(ProgramEvent& event, const script::Settings& settings,
                     bool plays) const override;
  const os::Fd& map() const override { return map_; }
  int enter(std::uint32_t key, const ProgramEvent& event) const override;

 private:
  live::Emitter& emitter_;
  os::Fd map_;
};

// Returns why the machine's own kernel cannot play this case in this process, or nullopt.
std::optional<std::string> why_not_live(const Case& of);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_BACKEND_H_
