#ifndef PERFRING_WAIT_UEVENTS_H_
#define PERFRING_WAIT_UEVENTS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The kernel's messages about CPU hotplug. Internal to RingSet.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring::internal {

struct CpuChange {
  std::uint32_t cpu;
  bool online;  // false: it has gone offline

  bool operator==(const CpuChange&) const = default;
};

// Parses a message that begins with "online@/devices/system/cpu/cpu7" (or "offline@...") and a zero
// byte. Returns nullopt for any other (lib/kobject_uevent.c: kobject_uevent_env() at v6.18).
std::optional<CpuChange> parse_uevent(std::string_view message) noexcept;

// A socket that receives the kernel's uevents (W41).
//
// Threads: one at a time.
class Uevents {
 public:
  static std::expected<Uevents, std::error_code> open() noexcept;
  // Takes a socket that must not block and that receives whole messages.
  explicit Uevents(os::Fd socket) noexcept : socket_{std::move(socket)} {}

  // The descriptor to watch.
  int fd() const noexcept { return socket_.get(); }

  // Passes the changes received since the last call to f(CpuChange). Returns false if messages were
  // dropped for want of room.
  template <class F>
  bool read(F&& f) {
    bool all = true;
    for (;;) {
      const Message message = receive();
      if (message.end) return all;
      if (message.dropped) all = false;
      if (message.change) f(*message.change);
    }
  }

 private:
  struct Message {
    bool end = false;  // no message is left
    bool dropped = false;
    std::optional<CpuChange> change{};
  };

  Message receive() noexcept;

  os::Fd socket_;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_WAIT_UEVENTS_H_
