#ifndef HARNESS_CLI_RECORD_RECORD_SINK_H_
#define HARNESS_CLI_RECORD_RECORD_SINK_H_

// The destination of the records from `perfring record`.

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "harness/cli/record/record.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/output_file.h"
#include "harness/record/existing_tasks.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"
#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/record/decode.h"
#include "perfring/record/mappings.h"
#include "perfring/record/to_string.h"
#include "perfring/sampler/sampler.h"

namespace perfring::cli {

// Returns the description of the events for perf, under the names in the options.
inline record::PerfDataFeatures features_of(const RecordOptions& options) {
  record::PerfDataFeatures features;
  features.names = options.events;
  features.names.emplace_back("changes");
  event::System& system = event::real_system();
  const auto folder = event::internal::tracing_events(system);
  const auto text_of = [&](const std::string& file) {
    return folder ? system.read(*folder + "/" + file).value_or("") : "";
  };
  for (const std::string& name : options.events) {
    const auto event = event::by_name(name);
    if (!event || event->kind() != event::EventKind::Tracepoint) continue;
    const std::size_t colon = name.find(':');
    const std::string of_system = name.substr(0, colon);
    features.tracepoints.push_back(
        {of_system, text_of(of_system + "/" + name.substr(colon + 1) + "/format")});
  }
  if (!features.tracepoints.empty()) {
    features.header_page = text_of("header_page");
    features.header_event = text_of("header_event");
  }
  return features;
}

// Writes records as lines to stdout, or to a perf.data file. A file that cannot be sought (a pipe)
// gets the format that `perf record -o -` writes.
class RecordSink {
 public:
  RecordSink(const RecordOptions& options, const event::Sampler& sampler,
             const std::atomic<bool>& stop)
      : options_{options}, stop_{stop}, file_{options.output} {
    for (const event::Opened& each : sampler.events()) {
      events_.push_back({each.attr, each.ids});
      names_.push_back(each.name);
    }
  }

  // The destination's name, for messages.
  std::string where() const { return is_stdout() ? "stdout" : in_quotes(options_.output); }

  // Returns the reason if the destination cannot be opened, otherwise "". An existing file keeps
  // its name until begin().
  std::string open() {
    if (is_stdout()) {
      const bool is_bytes = !options_.output.empty();
      return is_bytes && ::isatty(STDOUT_FILENO) == 1
                 ? "--output: stdout is a terminal: give a file's name, or pipe it into perf "
                   "script -i -"
                 : "";
    }
    return file_.open();
  }

  // Writes the beginning of the file. Returns 0 or an errno.
  int begin() {
    if (options_.output.empty()) return 0;
    if (!is_stdout()) {
      if (const int error = file_.begin(); error != 0) return error;
    }
    text_ = file_.is_seekable() ? record::perf_data_header(events_, 0)
                                : record::piped_perf_data_header(events_, features_of(options_));
    // As records of the last event. A command has no task before it begins.
    const auto of =
        options_.command.empty() ? std::optional{static_cast<pid_t>(options_.pid)} : std::nullopt;
    const std::string tasks =
        record::existing_tasks(events_.back().attr, events_.back().ids.front(), of);
    written_ = tasks.size();
    text_ += tasks;
    return flush();
  }

  void put(const event::Delivered& each) {
    if (!options_.output.empty()) {
      put_bytes(each);
    } else if (options_.json) {
      Json json{{"event", name_of(each)}, {"late", each.late}};
      json.update(record::to_json(each.record));
      text_ += record::line_of(json);
    } else {
      text_ += one_line(name_of(each)) + (each.late ? " (late): " : ": ") + to_string(each.record) +
               "\n";
    }
  }

  // Number of samples that were not written to the file.
  std::uint64_t left_out() const { return left_out_; }

  // Whether the reader of the pipe is gone. poll(2) detects this without a write, and the next
  // write may be far in the future.
  bool is_unread() const {
    pollfd reader{.fd = fd(), .events = 0, .revents = 0};
    return ::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
  }

  // Writes everything that put() buffered. Returns 0 or an errno.
  int flush() {
    const int error = write_all(fd(), text_, stop_);
    text_.clear();
    return error;
  }

  // Writes the features after the records, and the header again, now with their sizes. Returns 0 or
  // an errno.
  int close() {
    if (!file_.is_seekable()) return 0;
    int error =
        write_all(fd(), record::perf_data_features(events_, written_, features_of(options_)));
    if (error != 0) return error;
    if (::lseek(fd(), 0, SEEK_SET) != 0) return errno;
    error = write_all(fd(), record::perf_data_header(events_, written_, /*finished=*/true));
    return error != 0 ? error : file_.end();
  }

  std::string why(int error) const {
    if (error == ETIMEDOUT) {
      return where() + " cannot be written: interrupted, and its reader is not reading";
    }
    if (!is_stdout()) return file_.why(error);
    return "stdout cannot be written: " + std::generic_category().message(error);
  }

 private:
  // R28: the number of bytes after sample_id, which must go: perf takes sample_id from the end.
  static std::size_t too_long_by(const record::Any& any) {
    if (const auto* const symbol = std::get_if<record::Ksymbol>(&any)) return symbol->rest().size();
    if (const auto* const program = std::get_if<record::BpfEvent>(&any)) {
      return program->rest().size();
    }
    const auto* const poke = std::get_if<record::TextPoke>(&any);
    return poke == nullptr ? 0 : poke->rest().size();
  }

  // Since Linux 6.3 a sample of a software event can have the id of an event that another program
  // opened (R25). perf 6.1 stops reading the file there, so the sample gets an id of its own event.
  // If several events may have written it, it is omitted.
  void put_bytes(const event::Delivered& each) {
    const std::size_t at = text_.size();
    perf_event_header header{};
    std::memcpy(&header, each.bytes.data(), std::min(sizeof header, each.bytes.size()));
    const bool is_sample = header.type == PERF_RECORD_SAMPLE;
    if (is_sample && each.event >= events_.size()) {
      ++left_out_;
      return;
    }
    const std::size_t size = each.bytes.size() - too_long_by(each.record);
    text_.append(reinterpret_cast<const char*>(each.bytes.data()), size);
    written_ += size;
    if (size != each.bytes.size()) {
      header.size = static_cast<std::uint16_t>(size);
      std::memcpy(text_.data() + at, &header, sizeof header);
    }
    constexpr std::size_t kIdAt = sizeof header;  // where PERF_SAMPLE_IDENTIFIER puts the id
    std::uint64_t id = 0;
    if (!is_sample || each.bytes.size() < kIdAt + sizeof id) return;
    const record::PerfDataEvent& event = events_[each.event];
    std::memcpy(&id, each.bytes.data() + kIdAt, sizeof id);
    if (std::ranges::find(event.ids, id) != event.ids.end()) return;
    std::memcpy(text_.data() + at + kIdAt, event.ids.data(), sizeof id);
  }

  int fd() const { return is_stdout() ? STDOUT_FILENO : file_.fd(); }
  bool is_stdout() const { return options_.output.empty() || options_.output == "-"; }
  std::string name_of(const event::Delivered& each) const {
    return each.event < names_.size() ? names_[each.event] : "an unknown event";
  }

  const RecordOptions& options_;
  const std::atomic<bool>& stop_;
  std::vector<record::PerfDataEvent> events_;
  std::vector<std::string> names_;
  GrowingFile file_;
  std::string text_;
  std::uint64_t written_ = 0;  // bytes of records
  std::uint64_t left_out_ = 0;
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_RECORD_RECORD_SINK_H_
