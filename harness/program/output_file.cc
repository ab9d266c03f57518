#include "harness/program/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/program/console.h"
#include "harness/program/run_program.h"

namespace perfring {
namespace {

// A pipe without a reader is an error, not something to wait for.
constexpr int kToWrite = O_WRONLY | O_CLOEXEC | O_NONBLOCK;

constexpr mode_t mode_of(Readers readers) {
  return readers == Readers::OwnerAlone ? 0600 : 0666;
}

std::expected<void, std::string> written(std::string_view option, const std::string& path,
                                         int error) {
  if (error == 0) return {};
  return std::unexpected(fmt::format("{}: {} cannot be written: {}", option,
                                     path == "-" ? "stdout" : in_quotes(path),
                                     std::generic_category().message(error)));
}

// Returns the error that close() reports, or 0: some file systems (NFS) report only then that there
// was no room.
int close_error(int fd) {
  const int another = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return another >= 0 && ::close(another) != 0 ? errno : 0;
}

// Returns the file at the end of the path, nullopt if there is none, or the error if it cannot be
// determined.
using Found = std::optional<struct stat>;
std::expected<Found, int> found_at(const std::string& path) {
  struct stat of{};
  if (::stat(path.c_str(), &of) == 0) return of;
  if (errno != ENOENT) return std::unexpected(errno);
  return std::nullopt;
}

bool is_link(const std::string& path) {
  struct stat of{};
  return ::lstat(path.c_str(), &of) == 0 && S_ISLNK(of.st_mode);
}

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  return folder.empty() ? "." : folder;
}

// Whether the path is a link such as /dev/stdout or /dev/fd/3: the file that it leads to has other
// names.
bool is_link_of_the_system(const std::string& path) {
  if (!is_link(path)) return false;
  std::error_code none;
  const std::string folder = std::filesystem::canonical(folder_of(path), none).string() + "/";
  return folder.starts_with("/dev/") || folder.starts_with("/proc/");
}

// Returns the path that a new file can replace, of a regular file or of no file. Returns nullopt if
// the existing file must be written to.
std::optional<std::string> replaceable(const std::string& path, const Found& found) {
  if (!found) return is_link(path) ? std::nullopt : std::optional{path};
  if (!S_ISREG(found->st_mode) || is_link_of_the_system(path)) return std::nullopt;
  std::error_code none;
  const std::string leads_to = std::filesystem::canonical(path, none).string();
  return none ? std::nullopt : std::optional{leads_to};
}

// Makes the file belong to the user who runs this program, and readable by nobody else.
int keep_for_oneself(const os::Fd& file) {
  struct stat of{};
  if (::fstat(file.get(), &of) != 0) return errno;
  const bool is_anothers = of.st_uid != ::geteuid();
  if (is_anothers && ::fchown(file.get(), ::geteuid(), ::getegid()) != 0) return errno;
  return ::fchmod(file.get(), 0600) == 0 ? 0 : errno;
}

// Overwrites the existing file, and truncates it only after the new text is written.
int write_over(const std::string& path, std::string_view text, Readers readers) {
  // Appends to a file that the user has redirected to: it may already have contents.
  const bool is_redirected = is_link_of_the_system(path);
  const int flags = kToWrite | O_CREAT | (is_redirected ? O_APPEND : 0);
  const os::Fd file{::open(path.c_str(), flags, mode_of(readers))};
  if (file.get() < 0) return errno;
  // A device or a pipe belongs to the machine, and /dev/stdout to the user: do not restrict either
  // to its owner.
  struct stat of{};
  const bool is_file = ::fstat(file.get(), &of) == 0 && S_ISREG(of.st_mode);
  const bool hides = readers == Readers::OwnerAlone && is_file && !is_redirected;
  if (const int error = hides ? keep_for_oneself(file) : 0; error != 0) return error;
  if (const int error = write_all(file.get(), text); error != 0) return error;
  if (is_redirected) return close_error(file.get());
  // A file that is not regular, such as /dev/null, has no length.
  const bool is_cut = ::ftruncate(file.get(), static_cast<off_t>(text.size())) == 0;
  return is_cut || errno == EINVAL ? close_error(file.get()) : errno;
}

// Gives a file the owner and the mode of another, unless it is for its owner alone. Returns false
// if the system refuses.
bool take_after(const struct stat& old, const os::Fd& file, Readers readers) {
  if (readers == Readers::OwnerAlone) return true;
  const bool is_anothers = old.st_uid != ::geteuid() || old.st_gid != ::getegid();
  if (is_anothers && ::fchown(file.get(), old.st_uid, old.st_gid) != 0) return false;
  return ::fchmod(file.get(), old.st_mode & 0777U) == 0;
}

// Writes the new file next to the old one, and then moves it into the old one's place.
int write_beside(const os::Fd& file, const std::string& beside, const std::string& path,
                 std::string_view text) {
  if (const int error = write_all(file.get(), text); error != 0) return error;
  if (const int error = close_error(file.get()); error != 0) return error;
  return ::rename(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
}

int replace(const std::string& path, const Found& old, std::string_view text, Readers readers) {
  if (old && ::access(path.c_str(), W_OK) != 0) return errno;
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  const os::Fd file{
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_of(readers))};
  if (file.get() < 0) {
    const bool is_full = errno == ENOSPC || errno == EDQUOT;
    return is_full ? errno : write_over(path, text, readers);
  }
  // Another user's file that this user may write to, but not create, is overwritten.
  const bool is_like_it = !old || take_after(*old, file, readers);
  const int error = is_like_it ? write_beside(file, beside, path, text) : 0;
  if (!is_like_it || error != 0) ::unlink(beside.c_str());
  return is_like_it ? error : write_over(path, text, readers);
}

}  // namespace

std::expected<void, std::string> check_output(std::string_view option, const std::string& path,
                                              Readers readers) {
  const os::Fd file{::open(path.c_str(), kToWrite | O_CREAT, mode_of(readers))};
  return written(option, path, file.get() < 0 ? errno : 0);
}

std::expected<void, std::string> write_output(std::string_view option, const std::string& path,
                                              std::string_view text, Readers readers) {
  if (path == "-") {
    StopOnSignals::restore_signals();
    return written(option, path, write_all(STDOUT_FILENO, text));
  }
  const auto found = found_at(path);
  if (!found) return written(option, path, found.error());
  const auto place = replaceable(path, *found);
  return written(option, path,
                 place ? replace(*place, *found, text, readers) : write_over(path, text, readers));
}

std::string GrowingFile::why(int error) const {
  return fmt::format("{} cannot be {}: {}", in_quotes(path_), attempt_,
                     std::generic_category().message(error));
}

std::string GrowingFile::open() {
  const auto at_path = found_at(path_);
  if (!at_path) return why(at_path.error());
  const Found& found = *at_path;
  must_move_away_ = found && S_ISREG(found->st_mode) && found->st_size > 0;
  if (must_move_away_ && is_link_of_the_system(path_)) {
    return in_quotes(path_) + " leads to a file that is not empty: give that file's own name";
  }
  if (must_move_away_) {
    const std::string folder = folder_of(path_);
    if (::access(folder.c_str(), W_OK) == 0) return {};
    attempt_ = "renamed";
    return why(errno);
  }
  file_ = os::Fd{::open(path_.c_str(), kToWrite | O_CREAT, 0600)};
  return file_.get() < 0 ? why(errno) : "";
}

int GrowingFile::move_away() {
  const std::string old = path_ + ".old";
  attempt_ = "renamed to " + in_quotes(old);
  if (::rename(path_.c_str(), old.c_str()) != 0) return errno;
  attempt_ = "written";
  // O_EXCL: does not write to a file that has got this name in the meantime.
  file_ = os::Fd{::open(path_.c_str(), kToWrite | O_CREAT | O_EXCL, 0600)};
  if (file_.get() >= 0) return 0;
  const int error = errno;
  static_cast<void>(::renameat2(AT_FDCWD, old.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE));
  return error;
}

int GrowingFile::begin() {
  if (must_move_away_) {
    if (const int error = move_away(); error != 0) return error;
  }
  struct stat of{};
  if (::fstat(file_.get(), &of) != 0) return errno;
  if (S_ISREG(of.st_mode)) {
    if (of.st_size != 0) return EEXIST;  // it was empty at open()
    // (The mode of stdout's file is up to the program that has opened it.)
    const bool is_stdouts = is_link_of_the_system(path_);
    if (const int error = is_stdouts ? 0 : keep_for_oneself(file_); error != 0) return error;
  }
  is_seekable_ = ::lseek(file_.get(), 0, SEEK_SET) == 0;
  return 0;
}

int GrowingFile::end() const {
  return close_error(file_.get());
}

}  // namespace perfring
