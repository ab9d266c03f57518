#ifndef HARNESS_SCRIPT_SCRIPT_H_
#define HARNESS_SCRIPT_SCRIPT_H_

// A script: the steps done to a ring, as data. It runs on the simulated kernel (harness/rig) or on
// a live one (harness/differential), and can be printed, parsed, generated and shrunk. Nothing here
// runs a script; ActiveSteps is for its runners.

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/kernel/perf_event.h"

namespace perfring::script {

enum class Epoll { Level, Edge, Oneshot };

// The setup of the ring.
struct Settings {
  kernel::Word word = kernel::Word::k64;
  std::uint64_t pages = 1;  // of data, a power of two up to kPagesMax
  std::uint64_t sample_type = PERF_SAMPLE_RAW;
  bool sample_id_all = false;
  bool watermark = false;    // `wakeup` is wakeup_watermark, not wakeup_events
  std::uint64_t wakeup = 1;  // 32 bits
  bool write_backward = false;
  bool overwrite = false;      // mapped read-only
  std::uint64_t start = 0;     // bytes written and read before; a multiple of 8
  std::uint64_t events = 1;    // 1 or 2: the second writes to the ring of the first (SET_OUTPUT)
  Epoll epoll = Epoll::Level;  // how the events are registered with epoll
  bool before_5_2 = false;     // a kernel before 5.2: data_head may go back for a moment (K59)

  bool operator==(const Settings&) const = default;
};

enum class Action {
  Output,   // bpf_perf_event_output of `number` bytes
  Drain,    // data_tail moves past `number` records, or all if there are fewer
  Throw,    // the same; a consumer's callback throws at the last record
  Tail,     // data_tail += number, to a record's end or not
  Poll,     // poll(2), for POLLIN and POLLRDNORM
  Epoll,    // epoll_wait(2)
  Rearm,    // EPOLL_CTL_MOD with the original events
  Pause,    // PERF_EVENT_IOC_PAUSE_OUTPUT 1
  Resume,   // PERF_EVENT_IOC_PAUSE_OUTPUT 0
  Disable,  // PERF_EVENT_IOC_DISABLE
  Enable,   // PERF_EVENT_IOC_ENABLE
  Die,      // nested in an output: its CPU stops there forever, and later outputs do nothing
};

struct Step {
  Action action = Action::Output;
  std::uint64_t number = 0;
  bool second = false;  // by the second event; only if has_second(action)

  // A nested step happens during the last preceding step of less depth: at that output's step `at`
  // (between two of its memory accesses, like an interrupt or a consumer on another CPU), or while
  // a drain's callback has the event number `at`. Both count from 0. If that moment never comes,
  // the nested step happens right after the outer one.
  std::uint64_t depth = 0;
  std::uint64_t at = 0;

  bool operator==(const Step&) const = default;
};

struct Script {
  Settings settings;
  std::vector<Step> steps;

  bool operator==(const Script&) const = default;
};

inline constexpr std::uint64_t kPagesMax = 1024;
inline constexpr std::uint64_t kOutputMax = 262144;
inline constexpr std::size_t kStepsMax = 100000;
// The maximum size of a script file in bytes. kStepsMax steps take at most about that much.
inline constexpr std::size_t kFileMax = std::size_t{4} << 20;
inline constexpr std::uint64_t kDepthMax = 3;  // one deeper than the kernel allows for an output
inline constexpr std::uint64_t kAtMax = 65535;

// has_number(): the action has a number. has_second(): the second event may do it. has_nested():
// other steps may be nested in it.
bool has_number(Action action);
bool has_second(Action action);
bool has_nested(Action action);

// Whether the script has nested steps. Only the simulated kernel can run such a script.
bool has_nested_steps(const Script& script);

// Returns the first step and the steps that are nested in it. Precondition: `steps` is not empty.
std::span<const Step> first_with_nested(std::span<const Step> steps);

// The steps that a runner has begun, each nested in the one before it, and the nested steps of the
// innermost one that are still to come.
class ActiveSteps {
 public:
  std::size_t depth() const { return depth_; }
  // Precondition: depth() != 0.
  const Step& innermost() const { return *frames_[depth_ - 1].step; }

  // Begins the first of these steps; the other steps are nested in it. Precondition: depth() <
  // kDepthMax + 2.
  void begin(std::span<const Step> step_and_nested);
  void end() { --depth_; }

  // A moment of the innermost step, if there is one: calls perform(at_a_moment, step_and_nested)
  // for each step that is nested at this moment. perform() may begin steps, which must end before
  // it returns, and may throw.
  template <class Perform>
  void pass_moment(Perform perform) {
    if (depth_ == 0) return;
    Frame& frame = frames_[depth_ - 1];
    const std::uint64_t moment = frame.moment++;
    if (!frame.nested.empty()) perform_due(frame, moment, perform);
  }
  // The innermost step's end: calls perform() for each nested step that no moment has performed.
  template <class Perform>
  void perform_rest(Perform perform) {
    perform_due(frames_[depth_ - 1], std::nullopt, perform);
  }

 private:
  struct Frame {
    const Step* step = nullptr;
    std::span<const Step> nested{};  // at all depths
    std::vector<bool> done{};        // for each of `nested`
    std::uint64_t moment = 0;
  };

  template <class Perform>
  void perform_due(Frame& frame, std::optional<std::uint64_t> moment, Perform& perform) {
    for (std::size_t i = 0; i < frame.nested.size(); ++i) {
      const Step& step = frame.nested[i];
      if (step.depth != frame.step->depth + 1 || frame.done[i]) continue;
      if (moment && step.at != *moment) continue;
      frame.done[i] = true;
      perform(moment.has_value(), first_with_nested(frame.nested.subspan(i)));
    }
  }

  // One for each depth, and one for a step that a runner's caller begins.
  std::array<Frame, kDepthMax + 2> frames_;
  std::size_t depth_ = 0;
};

// Returns why the settings, the step or the script cannot be run; nullopt if they can.
std::optional<std::string> why_impossible(const Settings& settings);
std::optional<std::string> why_impossible(const Settings& settings, const Step& step);
// Returns the greatest depth that a step after these may have. Precondition: each of these steps
// may follow the steps before it.
std::uint64_t deepest(std::span<const Step> before);
// Returns why `step` may not follow these steps; nullopt if it may. The same precondition.
std::optional<std::string> why_misplaced(std::span<const Step> before, const Step& step);
std::optional<std::string> why_impossible(const Script& script);

// A script as text: the settings that are not the default, one per line, then the steps. '#' begins
// a comment.
//   pages 2
//   sample_type RAW|TIME
//   output 40
//   > at 5 output 16      nested: at step 5 of the output of 40 bytes
//   >> at 0 drain 1       nested: at step 0 of the output of 16 bytes
//   > at 9 die            the producer dies at step 9 of the output of 40 bytes
//   30 times output 125   the step, 30 times
//   drain 1
std::string to_text(const Settings& settings);
std::string to_text(const Step& step);
std::string to_text(const Script& script);

// Returns why a script that begins like this is refused, or nullopt. Called after each line.
using Refusal = std::function<std::optional<std::string>(const Script& so_far)>;

// Parses a script, and checks that it can be run. An error names the line and the reason.
std::expected<Script, std::string> parse_script(std::string_view text, const Refusal& refuse = {});

// For texts that contain more than a script. Returns true if the line is a setting, and changes
// `settings`; false if the line is something else; an error if the setting is wrong. Precondition:
// the line is not blank, and has no comment.
std::expected<bool, std::string> parse_setting(std::string_view line, Settings& settings);
std::expected<Step, std::string> parse_step(std::string_view line);

// Returns the line without its comment and without the blanks around it.
std::string_view without_comment(std::string_view line);

// Fills the payload of the step with this number. Payloads differ from each other, and are the same
// on every machine.
void fill_payload(std::span<std::byte> payload, std::uint64_t step);

struct GenerateOptions {
  std::size_t steps_max = 80;
  std::uint64_t pages_max = 64;
  std::uint64_t page_size = 4096;  // rings end at multiples of it, where sizes are interesting
  bool any_word = false;           // also 32-bit kernels
  bool any_start = false;          // any starting position, mostly interesting ones
  bool nested = false;             // nested steps, and drains that throw
};

// Returns the random script of this seed: with the same options, the same script on every machine.
// The script can be run. It favors interesting values: sizes around multiples of 8, the ring's size
// and 2^16; watermarks around the ring's size; full rings.
Script generate(std::uint64_t seed, const GenerateOptions& options = {});

// Returns the shortest script found for which `fails` still holds: first with fewer steps (delta
// debugging), then with settings closer to the defaults, then with smaller numbers. Precondition:
// `fails` holds for `script`. It is called only for scripts that can be run, and at most `limit`
// times.
Script shrink(Script script, const std::function<bool(const Script&)>& fails,
              std::size_t limit = 2000);

}  // namespace perfring::script

#endif  // HARNESS_SCRIPT_SCRIPT_H_
