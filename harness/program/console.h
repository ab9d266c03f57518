#ifndef HARNESS_PROGRAM_CONSOLE_H_
#define HARNESS_PROGRAM_CONSOLE_H_

// A program's output: the verdict goes to stdout, and must arrive; all else goes to stderr, as far
// as it can. Either may be closed, full, or without a reader. And the files that it reads.

#include <atomic>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace perfring {

// Writes control characters, which could act on a terminal, and bytes that are not UTF-8 as \xNN.
// Newlines stay.
std::string printable(std::string_view text);
// The same, and newlines too: a name that is part of a line.
std::string one_line(std::string_view text);
// The same of its first line, cut where it is long: what another program said.
std::string first_line(std::string_view text);
// The same as one word of a shell's, quoted only if it must be.
std::string shell_word(std::string_view text);
// The same in a message: 'text', all of it on one line, cut where it is long.
std::string in_quotes(std::string_view text);

// Writes all of it, however long the reader takes. Returns 0 or an errno.
int write_all(int fd, std::string_view text);
// The same until `stop`: then a reader that takes nothing for a second is not waited for any more
// (ETIMEDOUT).
int write_all(int fd, std::string_view text, const std::atomic<bool>& stop);

// Writes "program: message" to stderr, as far as that is possible. Returns kUsageOrEnvironment.
int fail(std::string_view message);

// Writes to stdout and returns `code`; where that fails, says why and returns kUsageOrEnvironment.
// `what` names the text in that message.
int deliver(std::string_view text, int code, std::string_view what = "the verdict");
// The same to stderr, where stdout is for something else. A failure is ignored.
int deliver_to_stderr(std::string_view text, int code);

// A line on stderr that the next one replaces, if the terminal can do so. A line that would have to
// wait for a reader, or cannot be written, is left out.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& line) const;  // until the next
  void keep(const std::string& line) const;  // for good
  void clear() const;

 private:
  bool replaces_;
};

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

enum class Content { Text, Binary };

// The whole text of a file, or of stdin for "-". An error names `option`, the file, what the system
// said, and what is accepted: files that cannot be read, are larger than `limit`, or, where text is
// wanted, empty or binary. A file without an end costs no more than `limit`; a pipe is waited for,
// and signals end that.
std::expected<std::string, std::string> read_input(std::string_view option, const std::string& path,
                                                   std::size_t limit = kMiB,
                                                   Content content = Content::Text);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CONSOLE_H_
