// A tracepoint's id, by its name in tracefs.

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/event/text.h"

namespace perfring::event::internal {

std::expected<std::uint64_t, Finding> tracepoint_id(const std::string& name, System& system) {
  const auto refused = [](std::string says, std::string advice) {
    return std::unexpected(wrong("config", std::move(says), std::move(advice)));
  };
  std::string_view part = name;
  const std::string group{cut(part, ':')};
  const bool is_path = name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
  if (group.empty() || part.empty() || is_path || name.find("..") != std::string::npos) {
    return refused(in_quotes(name) + " is not the name of a tracepoint",
                   "give SYSTEM:NAME, as sched:sched_switch");
  }
  const auto folder = tracing_events(system);
  if (!folder) {
    if (folder.error().value() == EACCES || folder.error().value() == EPERM) {
      return refused(
          "tracefs, where tracepoints have their ids, may not be read: " + folder.error().message(),
          "run as root, or let this user read /sys/kernel/tracing");
    }
    return refused("tracefs, where tracepoints have their ids, is not mounted",
                   "mount -t tracefs tracefs /sys/kernel/tracing");
  }
  const auto text = system.read(*folder + "/" + group + "/" + std::string{part} + "/id");
  if (!text) {
    if (text.error().value() != ENOENT) {
      return refused("the id of " + in_quotes(name) + " may not be read: " + text.error().message(),
                     "run as root, or let this user read /sys/kernel/tracing");
    }
    // A group has files as well as the folders of its tracepoints: enable, filter, header_page.
    const auto folders = [&system](const std::string& in) {
      auto names = system.list(in).value_or(std::vector<std::string>{});
      std::erase_if(names, [&](const std::string& each) {
        const auto found = system.look_at(in + "/" + each);
        return !found || found->type != FileKind::Type::Folder;
      });
      return names;
    };
    if (const auto names = folders(*folder + "/" + group); !names.empty()) {
      return refused("there is no tracepoint " + in_quotes(name),
                     "the most similar of " + group + " are " + nearest(part, names));
    }
    return refused("there is no group of tracepoints " + in_quotes(group),
                   "the most similar are " + nearest(group, folders(*folder)));
  }
  const auto id = number_of(std::string_view{*text}.substr(0, text->find('\n')));
  if (!id || *id == 0)
    return refused("the id of " + in_quotes(name) + " is not a number", "look at " + *folder);
  return *id;
}

}  // namespace perfring::event::internal
