#include "harness/program/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <functional>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/program/console.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/version.h"

namespace perfring {
namespace {

constexpr double kSecondsMax = 86400;

CLI::Validator accepting(std::function<bool(const std::string&)> accepts, std::string accepted) {
  return CLI::Validator(
      [accepts = std::move(accepts), accepted = std::move(accepted)](const std::string& text) {
        if (accepts(text)) return std::string{};
        return not_accepted(text, accepted);
      },
      "");
}

// Returns the Levenshtein distance: the number of characters to insert, remove or change.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // of a prefix of `a` to each prefix of `b`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

template <class Each>
void for_each_app(CLI::App& app, const Each& each) {
  each(app);
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    each(*command);
  }
}

// Keeps the lines of descriptions as they are: CLI11 wraps them since 2.5.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_description_formatting(false); }) {
    formatter.enable_description_formatting(false);
    formatter.enable_footer_formatting(false);
  }
}

void prepare(CLI::App& app) {
  keep_lines(*app.get_formatter());
  app.allow_extras();
  app.footer(kExitCodes);
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(not_empty());
  }
  app.set_version_flag("--version", fmt::format("{} {}", program_name(), PERFRING_VERSION));
}

// Returns the error's message. CLI11's own messages for these errors do not say what to do.
std::string why(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  for (const CLI::App* at = &app; at != nullptr;) {
    for (const CLI::Option* const option : at->get_options()) {
      if (option->get_items_expected_max() == 1 && option->count() > 1) {
        return fmt::format("{} is given {} times: give it once", option->get_name(),
                           option->count());
      }
    }
    at = at->get_subcommands().empty() ? nullptr : at->get_subcommands().front();
  }
  if (text.find("missing") != std::string::npos) {
    return text.substr(0, text.find(':')) + ": its value is missing";
  }
  return text;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

Answer refused(const std::string& message) {
  return {message + "\nRun with --help for the accepted options.", true};
}

bool has_flag(CLI::App& app, const std::string& name) {
  bool found = false;
  for_each_app(app, [&](CLI::App& each) {
    const CLI::Option* const option = each.get_option_no_throw(name);
    found = found || (option != nullptr && option->get_items_expected_max() == 0);
  });
  return found;
}

// Refuses "--seed= 5", which would count as "--seed 5", and a value for a flag ("--json=no").
std::optional<Answer> refuse_wrong_value(CLI::App& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string_view::npos) continue;
    if (equals == argument.size() - 1) {
      return refused(fmt::format("{} has no value after '='", in_quotes(argument)));
    }
    const std::string name{argument.substr(0, equals)};
    if (has_flag(app, name)) return refused(name + " takes no value");
  }
  return std::nullopt;
}

// Returns the program, its command and --help, if --help or -h is among the arguments; else
// nothing.
std::vector<const char*> words_of_help(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> commands = names_of_commands(app);
  const char* command = nullptr;
  bool wants_help = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    wants_help = wants_help || word == "--help" || word == "-h";
    const bool is_command = std::ranges::find(commands, word) != commands.end();
    if (command == nullptr && is_command) command = argv[i];
  }
  if (!wants_help) return {};
  std::vector<const char*> words{argv[0]};
  if (command != nullptr) words.push_back(command);
  words.push_back("--help");
  return words;
}

}  // namespace

int print_answer(const Answer& answer) {
  return answer.refused ? fail(answer.text) : deliver(answer.text, kHolds, "the help");
}

std::string not_accepted(std::string_view text, std::string_view accepted) {
  return fmt::format("{} is not accepted: give {}", in_quotes(text), accepted);
}

CLI::Validator number_from(std::uint64_t least, std::uint64_t most) {
  return accepting(
      [least, most](const std::string& text) {
        const auto value = parse_number(text);
        return value && *value >= least && *value <= most;
      },
      fmt::format("a number from {} to {}", least, most));
}

CLI::Validator power_of_two_up_to(std::uint64_t most) {
  return accepting(
      [most](const std::string& text) {
        const auto value = parse_number(text);
        return value && std::has_single_bit(*value) && *value <= most;
      },
      fmt::format("a power of two from 1 to {}", most));
}

CLI::Validator seconds() {
  return accepting(
      [](const std::string& text) {
        const auto value = parse_number<double>(text);
        return value && *value > 0 && *value <= kSecondsMax;
      },
      fmt::format("a number of seconds above 0, up to {}", kSecondsMax));
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string accepted = fmt::format("one of {}", fmt::join(names, ", "));
  return accepting(
      [names = std::move(names)](const std::string& text) {
        return std::ranges::find(names, text) != names.end();
      },
      accepted);
}

CLI::Validator one_of_many(std::vector<std::string> names, const std::string& lister) {
  const auto find = [names = std::move(names), lister](const std::string& text) {
    if (std::ranges::find(names, text) != names.end()) return std::string{};
    return fmt::format("{} is not accepted: {}", in_quotes(text), nearest_to(text, names, lister));
  };
  return CLI::Validator{find, ""};
}

std::string nearest_to(std::string_view name, std::vector<std::string> names,
                       std::string_view lister) {
  constexpr std::size_t kNamed = 3;
  const auto distance = [name](const std::string& other) {
    return std::pair{edit_distance(name, other), other};
  };
  std::vector<std::string> nearest(std::min(kNamed, names.size()));
  std::ranges::partial_sort_copy(names, nearest, {}, distance, distance);
  return fmt::format("the nearest {} {}; {} prints all", nearest.size() == 1 ? "is" : "are",
                     fmt::join(nearest, ", "), in_quotes(lister));
}

CLI::Validator no_longer_than(std::size_t bytes) {
  return accepting([bytes](const std::string& text) { return text.size() <= bytes; },
                   fmt::format("at most {} bytes", bytes));
}

CLI::Validator not_empty() {
  return accepting([](const std::string& text) { return !text.empty(); },
                   "a value, or leave the option out");
}

void refuse_other_options(CLI::App& command, std::vector<ExclusiveOption> all) {
  command.parse_complete_callback([&command, all = std::move(all)] {
    for (const ExclusiveOption& alone : all) {
      if (alone.option->count() == 0) continue;
      for (const CLI::Option* const other : command.get_options()) {
        const bool may = other == alone.option || std::ranges::count(alone.with, other) != 0;
        if (other->count() == 0 || may) continue;
        throw CLI::ValidationError(other->get_name(),
                                   "cannot be given together with " + alone.option->get_name());
      }
    }
  });
}

std::optional<Answer> parse(CLI::App& app, int argc, const char* const* argv) {
  for_each_app(app, prepare);
  const std::vector<const char*> help = words_of_help(app, argc, argv);
  if (!help.empty()) {
    argc = static_cast<int>(help.size());
    argv = help.data();
  }
  if (auto answer = refuse_wrong_value(app, argc, argv)) return answer;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return Answer{std::string{version.what()} + "\n"};
  } catch (const CLI::Success&) {
    return Answer{app.help()};
  } catch (const CLI::ParseError& error) {
    return refused(why(app, error));
  }
  std::vector<std::string> left = app.remaining(true);
  std::erase(left, "--");  // "--" ends the options
  if (left.empty()) return std::nullopt;
  std::string message = fmt::format("{} is not {} here", in_quotes(left.front()),
                                    left.front().starts_with("-") ? "an option" : "expected");
  if (app.get_subcommands().empty() && !names_of_commands(app).empty()) {
    message += fmt::format("; the commands are {}", fmt::join(names_of_commands(app), ", "));
  }
  return refused(message);
}

}  // namespace perfring
