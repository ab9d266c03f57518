#ifndef HARNESS_PROGRAM_OUTPUT_FILE_H_
#define HARNESS_PROGRAM_OUTPUT_FILE_H_

// The files that a program writes. An existing file is not lost, whatever happens while the new one
// is written.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring {

// The readers of a file: as the umask says, or, if the file may contain data that is kept from
// other users (kernel addresses, records of all tasks), its owner alone (0600).
enum class Readers : std::uint8_t { AsUsual, OwnerAlone };

// Writes a file, or stdout for "-". An error names `option`, the file and the system's reason. The
// whole new file replaces a regular file, with the old file's owner and mode; if the new file
// cannot be written, the old one stays as it is. If the folder takes no new files, or the owner
// cannot be kept, the old file is overwritten. A file for its owner alone belongs to the user who
// runs this program.
std::expected<void, std::string> write_output(std::string_view option, const std::string& path,
                                              std::string_view text,
                                              Readers readers = Readers::AsUsual);
// Checks that the file can be opened. The file keeps its contents; a missing one is created.
std::expected<void, std::string> check_output(std::string_view option, const std::string& path,
                                              Readers readers = Readers::AsUsual);

// A file that grows while the program runs, for its owner alone. As with `perf record`, a file of
// that name that is not empty becomes NAME.old, and replaces an earlier NAME.old; so does a link
// that leads to such a file (tools/perf/util/data.c: check_backup() and open_file_write() at
// v6.18). Unlike perf, this class refuses a link of the system's (/dev/stdout) that leads to such a
// file, leaves a folder alone, and does not leave an empty file readable by everyone.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_{std::move(path)} {}

  // Returns why the file cannot be written, or "". An existing file keeps its name and contents.
  std::string open();
  // Moves away the file that open() has found, and begins at the beginning. Returns 0 or an errno:
  // EEXIST if somebody else has begun to write to the file that open() found empty.
  int begin();

  // Returns 0 if everything was written, or an errno.
  int end() const;
  // Returns "'FILE' cannot be written: No space left on device".
  std::string why(int error) const;

  int fd() const { return file_.get(); }
  // Whether the file is seekable, unlike a pipe or a terminal. Valid after begin().
  bool is_seekable() const { return is_seekable_; }

 private:
  int move_away();

  std::string path_;
  std::string attempt_ = "written";
  os::Fd file_;
  bool must_move_away_ = false;  // the existing file is not empty
  bool is_seekable_ = false;
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_OUTPUT_FILE_H_
