#ifndef FUZZ_PARSERS_PARSER_H_
#define FUZZ_PARSERS_PARSER_H_

// Shared by the targets of text parsers. Any text is a parser's input: it may be refused, with a
// reason, or accepted, and then within the limits that the parser states.

#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fuzz/input.h"
#include "harness/program/options.h"

namespace perfring::fuzz {

// Whether a text was accepted.
template <class T>
bool accepted(const std::expected<T, std::string>& parsed) {
  if (!parsed) expect(!parsed.error().empty(), "refused without a reason");
  return parsed.has_value();
}

// A command line: a program's name, `before`, and each line of a text as one argument.
class Arguments {
 public:
  explicit Arguments(std::string_view text, std::vector<std::string> before = {})
      : words_{std::move(before)} {
    words_.insert(words_.begin(), "program");
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      words_.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (const std::string& word : words_) pointers_.push_back(word.c_str());
  }
  int count() const { return static_cast<int>(pointers_.size()); }
  const char* const* values() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<const char*> pointers_;
};

// The options that a command line was parsed to. Null if there is nothing to run: then the parser
// answers with a text.
template <class Options>
const Options* options_of(const std::variant<Options, Answer>& parsed) {
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    expect(!answer->text.empty(), "an answer without words");
  }
  return std::get_if<Options>(&parsed);
}

}  // namespace perfring::fuzz

#endif  // FUZZ_PARSERS_PARSER_H_
