#include <algorithm>
#include <optional>
#include <utility>

#include "harness/model/engine/explorer.h"

namespace perfring::model {

Result explore_for_shortest(const Program& program, const ExploreOptions& options) {
  Result result = explore(program, options);
  constexpr double kSecondsToShorten = 10;
  ExploreOptions shorter = options;
  shorter.bounds.seconds = std::min(options.bounds.seconds, kSecondsToShorten);
  std::optional<Trace> shortest = result.violation;
  for (std::optional<Trace> found = shortest; found;) {
    shorter.bounds.events = found->execution_events - 1;
    found = explore(program, shorter).violation;
    if (found && found->events.size() < shortest->events.size()) shortest = found;
  }
  result.violation = std::move(shortest);
  return result;
}

}  // namespace perfring::model
