#include "perfring/wait/uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>

namespace perfring::internal {

std::optional<CpuChange> parse_uevent(std::string_view message) noexcept {
  message = message.substr(0, message.find('\0'));
  constexpr std::string_view came = "online@/devices/system/cpu/cpu";
  constexpr std::string_view went = "offline@/devices/system/cpu/cpu";
  CpuChange change{};
  change.online = message.starts_with(came);
  if (!change.online && !message.starts_with(went)) return std::nullopt;
  message.remove_prefix(change.online ? came.size() : went.size());
  const char* const end = message.data() + message.size();
  const auto parsed = std::from_chars(message.data(), end, change.cpu);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return change;
}

std::expected<Uevents, std::error_code> Uevents::open() noexcept {
  const auto failed = [] {
    return std::unexpected(std::error_code(errno, std::generic_category()));
  };
  Uevents uevents{os::Fd{
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT)}};
  if (uevents.fd() < 0) return failed();
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;  // the kernel's own; 2 is udev's
  if (::bind(uevents.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return failed();
  }
  return uevents;
}

Uevents::Message Uevents::receive() noexcept {
  char text[4096];  // UEVENT_BUFFER_SIZE is 2048 (include/linux/kobject.h at v6.18)
  sockaddr_nl from{};
  socklen_t length = sizeof(from);
  const ssize_t size =
      ::recvfrom(socket_.get(), text, sizeof(text), 0, reinterpret_cast<sockaddr*>(&from), &length);
  if (size < 0) {
    if (errno == ENOBUFS) return {.dropped = true};
    return {.end = true};
  }
  // Ignore what other processes send to the group.
  if (length == sizeof(from) && from.nl_family == AF_NETLINK && from.nl_pid != 0) return {};
  if (size == 0) return {};
  return {.change = parse_uevent({text, static_cast<std::size_t>(size)})};
}

}  // namespace perfring::internal
