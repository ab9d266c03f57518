#ifndef HARNESS_PROGRAM_CONSOLE_H_
#define HARNESS_PROGRAM_CONSOLE_H_

// A program's output: the verdict goes to stdout, and must arrive; everything else goes to stderr,
// as far as possible. Either may be closed, full, or without a reader. Also reads the program's
// input files.

#include <atomic>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace perfring {

// Returns the text with control characters, which could act on a terminal, and with bytes that are
// not UTF-8 written as \xNN. Keeps newlines.
std::string printable(std::string_view text);
// Also escapes newlines: for a name that is part of a line.
std::string one_line(std::string_view text);
// Returns the first line, escaped, and cut if it is long: for another program's output.
std::string first_line(std::string_view text);
// Returns the text, escaped, as one word for a shell, quoted only if necessary.
std::string shell_word(std::string_view text);
// Returns 'text' in quotes for a message: escaped, on one line, and cut if it is long.
std::string in_quotes(std::string_view text);

// Writes the whole text, however long the reader takes. Returns 0 or an errno.
int write_all(int fd, std::string_view text);
// Does the same until `stop` is set. From then on, returns ETIMEDOUT if the reader takes nothing
// for a second.
int write_all(int fd, std::string_view text, const std::atomic<bool>& stop);

// Writes "program: message" to stderr, as far as that is possible. Returns kUsageOrEnvironment.
int fail(std::string_view message);

// Writes to stdout, and returns `code`. If that fails, prints the reason and returns
// kUsageOrEnvironment. `what` names the text in that message.
int deliver(std::string_view text, int code, std::string_view what = "the verdict");
// Writes to stderr, if stdout is used for something else. Ignores a failure.
int deliver_to_stderr(std::string_view text, int code);

// A line on stderr that the next line replaces, if the terminal supports that. A line that would
// have to wait for a reader, or cannot be written, is dropped.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& line) const;  // until the next line
  void keep(const std::string& line) const;  // permanently
  void clear() const;

 private:
  bool replaces_;
};

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
// The limit for a file of records or of a ring: as hexadecimal, a record of 64 KiB takes 128 KiB.
inline constexpr std::size_t kRecordsMax = 64 * kMiB;

enum class Content { Text, Binary };

// Reads a whole file, or stdin for "-". An error names `option`, the file, the system's reason, and
// the accepted input. Refuses a file that cannot be read or is larger than `limit`, and for
// Content::Text an empty or binary one. Reads at most about `limit` from an endless file. Waits for
// a pipe; signals end this wait.
std::expected<std::string, std::string> read_input(std::string_view option, const std::string& path,
                                                   std::size_t limit = kMiB,
                                                   Content content = Content::Text);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CONSOLE_H_
