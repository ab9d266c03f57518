#ifndef HARNESS_SCRIPT_SCRIPT_H_
#define HARNESS_SCRIPT_SCRIPT_H_

// A script: the steps done to a ring, as data, to be run on the simulated kernel (harness/rig) or
// on a live one (harness/differential), printed, parsed, generated and shrunk. Nothing here runs
// one; UnderWay is for those who do.

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

// The set-up of the ring.
struct Settings {
  kernel::Word word = kernel::Word::k64;
  std::uint64_t pages = 1;  // of data, a power of two up to kPagesMax
  std::uint64_t sample_type = PERF_SAMPLE_RAW;
  bool sample_id_all = false;
  bool watermark = false;    // what `wakeup` is:
  std::uint64_t wakeup = 1;  // wakeup_events, or wakeup_watermark; 32 bits
  bool write_backward = false;
  bool overwrite = false;      // mapped read-only
  std::uint64_t start = 0;     // how much was written and read before; a multiple of 8
  std::uint64_t events = 1;    // or 2: the second writes to the ring of the first (SET_OUTPUT)
  Epoll epoll = Epoll::Level;  // how the events are in the epoll instance
  bool before_5_2 = false;     // the kernel is older: data_head may go back for a moment (K59)

  bool operator==(const Settings&) const = default;
};

enum class Action {
  Output,   // bpf_perf_event_output of `number` bytes
  Drain,    // data_tail moves past `number` records, as far as there are
  Throw,    // the same; where a consumer is at work, because its callback throws at the last one
  Tail,     // data_tail += number, on or off a record
  Poll,     // poll(2), for POLLIN and POLLRDNORM
  Epoll,    // epoll_wait(2)
  Rearm,    // EPOLL_CTL_MOD with the same events as at first
  Pause,    // PERF_EVENT_IOC_PAUSE_OUTPUT 1
  Resume,   // PERF_EVENT_IOC_PAUSE_OUTPUT 0
  Disable,  // PERF_EVENT_IOC_DISABLE
  Enable,   // PERF_EVENT_IOC_ENABLE
  Die,      // nested in an output: its CPU stops there for good, and no later output does anything
};

struct Step {
  Action action = Action::Output;
  std::uint64_t number = 0;
  bool second = false;  // by the second event, where the action may be either's

  // A step that is nested happens in the midst of the last step before it that is less deep: at
  // that output's step `at` (between two of its memory accesses, as an interrupt does, or a
  // consumer on another CPU), or while a drain's callback has the event `at`. Both count from 0.
  // If that moment never comes, the step happens right after.
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
// Bytes of a file that is read as a script: kStepsMax steps are about that, at most.
inline constexpr std::size_t kFileMax = std::size_t{4} << 20;
inline constexpr std::uint64_t kDepthMax = 3;  // one deeper than the kernel lets an output be
inline constexpr std::uint64_t kAtMax = 65535;

// Whether the action has a number, whether the second event may do it, and whether other steps may
// be nested in it.
bool has_number(Action action);
bool has_second(Action action);
bool has_nested(Action action);

// Whether a step is nested. Such a script is for the simulated kernel only.
bool nests(const Script& script);

// The first of these steps, and those after it that are nested in it. Precondition: there is one.
std::span<const Step> first_with_nested(std::span<const Step> steps);

// The steps that a runner has under way, each in the midst of the one before it, and which of the
// steps nested in the innermost are still to come.
class UnderWay {
 public:
  std::size_t depth() const { return depth_; }
  // Precondition: depth() != 0.
  const Step& innermost() const { return *frames_[depth_ - 1].step; }

  // Begins the first of these, in which the others are nested. Precondition: depth() < kDepthMax
  // + 2.
  void begin(std::span<const Step> step_and_nested);
  void end() { --depth_; }

  // At each moment of the innermost step, if there is one: calls perform(at_a_moment,
  // step_and_nested) for what is nested there. It may begin steps, which end before it returns, and
  // may throw.
  template <class Perform>
  void moment(Perform perform) {
    if (depth_ == 0) return;
    Frame& frame = frames_[depth_ - 1];
    const std::uint64_t moment = frame.moment++;
    if (!frame.nested.empty()) due(frame, moment, perform);
  }
  // At the innermost step's end: the same for what no moment has had.
  template <class Perform>
  void rest(Perform perform) {
    due(frames_[depth_ - 1], std::nullopt, perform);
  }

 private:
  struct Frame {
    const Step* step = nullptr;
    std::span<const Step> nested{};  // and those nested in them
    std::vector<bool> done{};        // of `nested`
    std::uint64_t moment = 0;
  };

  template <class Perform>
  void due(Frame& frame, std::optional<std::uint64_t> moment, Perform& perform) {
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

// Why it cannot be run; nullopt if it can.
std::optional<std::string> why_impossible(const Settings& settings);
std::optional<std::string> why_impossible(const Settings& settings, const Step& step);
// The greatest depth of a step after these. Precondition: each of them may follow those before it.
std::uint64_t deepest(std::span<const Step> before);
// Why `step` may not follow these; nullopt if it may. The same precondition.
std::optional<std::string> why_misplaced(std::span<const Step> before, const Step& step);
std::optional<std::string> why_impossible(const Script& script);

// As text: settings that are not the default, one a line, then the steps. '#' begins a comment.
//   pages 2
//   sample_type RAW|TIME
//   output 40
//   > at 5 output 16      nested: at step 5 of the output of 40 bytes
//   >> at 0 drain 1       and in the midst of that one
//   > at 9 die            the producer, at step 9 of that output
//   30 times output 125   that step, 30 times
//   drain 1
std::string to_text(const Settings& settings);
std::string to_text(const Step& step);
std::string to_text(const Script& script);

// Why a script that begins so is not taken, if so. Asked after each line.
using Refusal = std::function<std::optional<std::string>(const Script& so_far)>;

// The script that a text states, and that can be run. Or an error, which names line and reason.
std::expected<Script, std::string> parse_script(std::string_view text, const Refusal& refuse = {});

// For texts that hold more than a script: whether the line is a setting's, which was taken over.
// An error if it is, and is wrong. The line has no comment, and something else than blanks.
std::expected<bool, std::string> parse_setting(std::string_view line, Settings& settings);
std::expected<Step, std::string> parse_step(std::string_view line);

// Without its comment, and the blanks around it.
std::string_view without_comment(std::string_view line);

// The payload of the step with this number: no two are alike, on any machine the same.
void fill_payload(std::span<std::byte> payload, std::uint64_t step);

struct GenerateOptions {
  std::size_t steps_max = 80;
  std::uint64_t pages_max = 64;
  std::uint64_t page_size = 4096;  // where rings end, which is where sizes are interesting
  bool any_word = false;           // 32-bit kernels, too
  bool any_start = false;          // any starting position, the interesting ones above all
  bool nested = false;             // steps in the midst of others, and drains that throw
};

// The random script of this seed: with the same options the same one on every machine. It can be
// run, and leans to what is interesting: sizes around multiples of 8, the ring's size and 2^16;
// watermarks around the ring's size; rings that are full.
Script generate(std::uint64_t seed, const GenerateOptions& options = {});

// The shortest script found for which `fails` still holds: fewer steps first (delta debugging),
// then settings nearer to the usual ones, then smaller numbers. `fails` holds for `script`, is
// only asked about scripts that can be run, and at most `limit` times.
Script shrink(Script script, const std::function<bool(const Script&)>& fails,
              std::size_t limit = 2000);

}  // namespace perfring::script

#endif  // HARNESS_SCRIPT_SCRIPT_H_
