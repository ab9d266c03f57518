// `perfring decode`.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/record/record.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/output_file.h"
#include "harness/program/verdict.h"
#include "harness/record/known_fields.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"
#include "harness/script/script.h"
#include "perfring/record/decode.h"
#include "perfring/record/fields.h"
#include "perfring/record/layout.h"
#include "perfring/record/read_values.h"
#include "perfring/record/to_string.h"

namespace perfring::cli {
namespace {

using record::Comparison;
using record::Difference;
using record::Vector;

std::string text_of(const Vector& vector) {
  const std::string name = one_line(vector.name) + ": ";
  if (!vector.is_read) {
    const record::Layout layout{vector.attr};
    return name + to_string(record::decode(vector.bytes, layout)) + "\n";
  }
  const auto values = record::ReadValues::over(vector.bytes, vector.attr.read_format);
  return name + "read(2): " + (values ? to_string(*values) : "too short") + "\n";
}

// Shortens a value to fit into a line.
std::string shown(const std::string& value) {
  constexpr std::size_t kLongest = 200;
  return value.size() <= kLongest ? value : value.substr(0, kLongest) + "...";
}

class Check {
 public:
  explicit Check(const record::VectorsRead& read)
      : vectors_{read.vectors}, refused_{read.refused.size()} {
    for (const Vector& vector : vectors_) {
      comparisons_.push_back(compare(vector, record::decoded(vector)));
      const Comparison& last = comparisons_.back();
      compared_ += last.compared;
      of_known_ += last.of_known;
      differences_ += last.differences.size();
      absent_ += last.absent.size();
    }
  }

  Conclusion conclusion() const {
    std::string nothing;
    if (of_known_ == 0) nothing = "no known field of the records could be compared";
    if (refused_ != 0) nothing = counted(refused_, "line") + " could not be read";
    return conclude(differences_ != 0, false, std::move(nothing));
  }

  std::string table() const {
    std::string text;
    for_each([&text](const std::string& name, const Comparison& comparison) {
      for (const Difference& each : comparison.differences) {
        text += fmt::format("{}: {} is known to be {}, decoded as {}\n", name, one_line(each.field),
                            shown(each.known), shown(each.decoded));
      }
    });
    for_each([&text](const std::string& name, const Comparison& comparison) {
      for (const std::string& field : comparison.absent) {
        text += fmt::format("{}: {} is known, but not in the record: not compared\n", name,
                            one_line(field));
      }
    });
    text +=
        fmt::format("{}, {} compared, {} not in its record: ", counted(vectors_.size(), "record"),
                    counted(compared_, "value"), absent_);
    const Conclusion so = conclusion();
    if (so.verdict == Verdict::NotShown) return text + so.not_shown + "\n";
    return text +
           (differences_ == 0 ? "all values match\n" : counted(differences_, "difference") + "\n");
  }

  std::string json() const {
    Json json = to_json(conclusion());
    json["records"] = vectors_.size();
    json["compared"] = compared_;
    json["refused_lines"] = refused_;
    json["differences"] = Json::array();
    json["absent"] = Json::array();
    for_each([&json](const std::string& name, const Comparison& comparison) {
      for (const Difference& each : comparison.differences) {
        json["differences"].push_back({{"name", name},
                                       {"field", each.field},
                                       {"known", each.known},
                                       {"decoded", each.decoded}});
      }
      for (const std::string& field : comparison.absent) {
        json["absent"].push_back({{"name", name}, {"field", field}});
      }
    });
    return dump(json);
  }

 private:
  template <class Each>
  void for_each(const Each& each) const {
    for (std::size_t i = 0; i < vectors_.size(); ++i) {
      each(one_line(vectors_[i].name), comparisons_[i]);
    }
  }

  const std::vector<Vector>& vectors_;
  std::size_t refused_;
  std::vector<Comparison> comparisons_;
  std::size_t compared_ = 0;
  std::size_t of_known_ = 0;
  std::size_t differences_ = 0;
  std::size_t absent_ = 0;
};

std::string line_of(std::uint64_t at, const record::Any& any, const DecodeOptions& options) {
  const char* const perfs = record::perf_type_name(record::header_of(any).type);
  if (options.json) {
    Json json{{"at", at}};
    json.update(record::to_json(any));
    if (perfs != nullptr) json["record"] = perfs;
    return record::line_of(json);
  }
  return fmt::format("{:#x}: {}{}\n", at, perfs == nullptr ? "" : fmt::format("perf's {}: ", perfs),
                     to_string(any));
}

// Prints the records of a perf.data file, including perf's own. Prints while reading, because the
// file may be larger than the memory.
int decode_perf_data(record::PerfDataSource source, const std::string& name,
                     const DecodeOptions& options) {
  if (options.check)
    return fail("--check: a perf.data file has no known values to compare its records with");
  auto read = record::PerfData::over(std::move(source));
  if (!read) return fail(fmt::format("FILE: {}: {}", name, read.error()));
  std::string lines;
  int delivered = kHolds;
  std::uint64_t compressed = 0;
  const auto pass_on = [&] {
    delivered = deliver(lines, kHolds, "the records");
    lines.clear();
    return delivered == kHolds;
  };
  std::string why = read->for_each([&](const record::PerfData::Record& each) {
    const record::Any any = read->decoded(each);
    lines += line_of(each.at, any, options);
    const auto type = record::header_of(any).type;
    compressed += type == record::kPerfCompressed || type == record::kPerfCompressed2;
    return lines.size() < kMiB || pass_on();
  });
  if (delivered != kHolds || !pass_on()) return delivered;
  if (why.empty() && compressed != 0) {
    why = counted(compressed, "compressed record") +
          ": perfring cannot decompress, so the records inside are missing (record without -z)";
  } else if (!why.empty()) {
    why += ": only the records before that were printed";
  }
  return why.empty() ? kHolds : fail(fmt::format("FILE: {}: {}", name, why));
}

// Opens a regular file if it begins like a perf.data file. stdin may be such a file, too, if its
// offset is 0.
std::optional<record::PerfDataSource> large_perf_data(const std::string& path) {
  const bool is_stdin = path == "-";
  if (is_stdin && ::lseek(STDIN_FILENO, 0, SEEK_CUR) != 0) return std::nullopt;
  auto source = record::in_file(is_stdin ? "/dev/stdin" : path);
  std::string magic(8, '\0');
  if (!source || source->read(0, magic) != magic.size()) return std::nullopt;
  return record::is_perf_data(magic) ? std::move(source) : std::nullopt;
}

// Returns why a file is not text, in the words of read_input(), or "".
std::string why_no_text(std::string_view file) {
  if (file.empty()) return "is empty";
  const std::size_t at = file.find('\0');
  if (at == std::string_view::npos) return {};
  return fmt::format("is neither a perf.data file nor text: byte {} is 0", at);
}

// Prints the errors in a file's lines, after the good lines were printed. Returns the exit code.
int fail_of(const std::vector<std::string>& refused, const std::string& name) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, refused.size()); ++i) {
    fail(fmt::format("FILE: {}: {}", name, refused[i]));
  }
  if (refused.size() > kMost) {
    fail(fmt::format("FILE: {}: and {} more lines like these", name, refused.size() - kMost));
  }
  return kUsageOrEnvironment;
}

}  // namespace

int run_command(const DecodeOptions& options) {
  const std::string name = options.file == "-" ? "stdin" : in_quotes(options.file);
  if (auto source = large_perf_data(options.file)) {
    return decode_perf_data(*std::move(source), name, options);
  }
  const auto text = read_input("FILE", options.file, kRecordsMax, Content::Binary);
  if (!text) return fail(text.error());
  if (record::is_perf_data(*text)) {
    return decode_perf_data(record::in_memory(*text), name, options);
  }
  if (const std::string why = why_no_text(*text); !why.empty()) {
    return fail(fmt::format("FILE: {} {}", name, why));
  }
  const record::VectorsRead read = record::read_vectors(*text);
  if (read.vectors.empty() && read.refused.empty()) {
    return fail(fmt::format("FILE: {} has no record", name));
  }
  std::string output;
  int code = kHolds;
  if (read.vectors.empty()) return fail_of(read.refused, name);
  if (options.check) {
    const Check check{read};
    output = options.json ? check.json() : check.table();
    code = exit_code(check.conclusion().verdict);
  } else {
    for (const Vector& vector : read.vectors) {
      output += options.json ? record::line_of(record::decoded(vector)) : text_of(vector);
    }
  }
  const int delivered = deliver(output, code, options.check ? "the verdict" : "the records");
  if (delivered != code || read.refused.empty()) return delivered;
  const int failed = fail_of(read.refused, name);
  return code == kViolated ? code : failed;
}

}  // namespace perfring::cli
