#ifndef HARNESS_PROGRAM_OUTPUT_FILE_H_
#define HARNESS_PROGRAM_OUTPUT_FILE_H_

// The files that a program writes. One that was there before is not lost, whatever happens while
// the new one is written.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring {

// Who may read a file: as the umask has it, or, where it may hold what is kept from other users
// (addresses of the kernel's, records of all tasks), its owner alone (0600).
enum class Readers : std::uint8_t { AsUsual, OwnerAlone };

// Writes a file, or stdout for "-". An error names `option`, the file and what the system said. A
// regular file is replaced by the whole new one, with the old one's owner and mode, and stays as it
// is where that cannot be written; one in a folder that takes no new files, or of an owner that
// cannot be kept, is written over. One for its owner alone belongs to who runs this program.
std::expected<void, std::string> write_output(std::string_view option, const std::string& path,
                                              std::string_view text,
                                              Readers readers = Readers::AsUsual);
// Checks that it can open that file. The file keeps its contents; a missing one is created.
std::expected<void, std::string> check_output(std::string_view option, const std::string& path,
                                              Readers readers = Readers::AsUsual);

// A file that grows while the program runs, for its owner alone. As `perf record` does, one of that
// name that is not empty becomes NAME.old, which is replaced, and a link that leads to one likewise
// (tools/perf/util/data.c: check_backup() and open_file_write() at v6.18). Beyond perf: a link of
// the system's (/dev/stdout) that leads to such a file is refused, a folder is left alone, and an
// empty file is no longer everybody's to read.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_{std::move(path)} {}

  // Why it cannot be written, or nothing. A file that is there keeps its name and contents.
  std::string open();
  // Moves away what open() has found, and begins at the beginning. 0 or an errno: EEXIST if
  // somebody else has begun to write to the file that open() found empty.
  int begin();

  // 0, once all that was written is there, or an errno.
  int end() const;
  // "'FILE' cannot be written: No space left on device".
  std::string why(int error) const;

  int fd() const { return file_.get(); }
  // Not a pipe, a terminal and the like, once it has begun.
  bool is_sought() const { return is_sought_; }

 private:
  int move_away();

  std::string path_;
  std::string tried_ = "written";
  os::Fd file_;
  bool is_in_the_way_ = false;  // a file that is not empty
  bool is_sought_ = false;
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_OUTPUT_FILE_H_
