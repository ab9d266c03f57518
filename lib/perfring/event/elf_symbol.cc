#include "perfring/event/event.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring::event::internal {
namespace {

// The contents of an open file, or of one that was read already. The file is read, not mapped: if
// someone truncates a mapped file, SIGBUS ends this process.
class File {
 public:
  explicit File(std::string_view content) : content_{content}, size_{content.size()} {}
  File(int fd, std::uint64_t size) : fd_{fd}, size_{size} {}

  static constexpr std::size_t kMost = 4096;

  // Returns the bytes at an offset, at most kMost of them, valid until the next call; null if the
  // file ends before that.
  const char* bytes(std::uint64_t offset, std::size_t length) {
    if (offset > size_ || size_ - offset < length) return nullptr;
    if (fd_ < 0) return content_.data() + offset;
    const bool is_there = offset >= begin_ && offset + length <= begin_ + filled_;
    if (!is_there && !fill(offset, length)) return nullptr;
    return window_.data() + (offset - begin_);
  }

  // Why the file could not be read up to the size that it had.
  const std::string& failure() const { return failure_; }

 private:
  bool fill(std::uint64_t offset, std::size_t length) {
    begin_ = offset;
    filled_ = 0;
    while (filled_ < length) {
      const ssize_t count = ::pread(fd_, window_.data() + filled_, window_.size() - filled_,
                                    static_cast<off_t>(offset + filled_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) failure_ = ": " + std::generic_category().message(errno);
      if (count == 0) failure_ = " was truncated while it was read";
      if (count <= 0) return false;
      filled_ += static_cast<std::size_t>(count);
    }
    return true;
  }

  std::string_view content_{};
  int fd_ = -1;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;  // the window's offset in the file
  std::size_t filled_ = 0;   // bytes in the window
  std::array<char, kMost> window_;
  std::string failure_{};
};

std::unexpected<Finding> no_program(std::string problem) {
  return std::unexpected(Finding{.field = "uprobe_path",
                                 .says = std::move(problem),
                                 .advice = "give the path of a program or a library"});
}
std::unexpected<Finding> no_symbol(std::string problem) {
  return std::unexpected(Finding{
      .field = "probe_offset",
      .says = std::move(problem),
      .advice = "give a symbol of the file's symbol tables, as nm and nm -D list them, or an "
                "offset in the file"});
}

// Returns the value at an offset of the file; nullopt if the file ends before that. Copies it,
// because nothing in a file has to be aligned.
template <class T>
std::optional<T> at(File& file, std::uint64_t offset) {
  static_assert(sizeof(T) <= File::kMost);
  const char* const bytes = file.bytes(offset, sizeof(T));
  if (bytes == nullptr) return std::nullopt;
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool is_at(File& file, std::uint64_t offset, std::string_view text) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, File::kMost);
    const char* const bytes = file.bytes(offset, piece.size());
    if (bytes == nullptr || std::string_view{bytes, piece.size()} != piece) return false;
    text.remove_prefix(piece.size());
    offset += piece.size();
  }
  return at<char>(file, offset) == '\0';
}

template <class Header, class Segment, class Section, class Symbol>
class Elf {
 public:
  Elf(File& file, const Header& header) : file_{file}, header_{header} {}

  // `strings` is the same file. Names and symbols are read in turn, each through its own window.
  std::optional<std::uint64_t> address_of(std::string_view symbol, File& strings) const {
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      const auto table = at<Section>(file_, header_.e_shoff + i * sizeof(Section));
      if (!table) return std::nullopt;
      if (table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM) continue;
      const auto names = at<Section>(file_, header_.e_shoff + table->sh_link * sizeof(Section));
      if (!names) continue;
      for (std::uint64_t at_byte = 0; at_byte < table->sh_size; at_byte += sizeof(Symbol)) {
        const auto each = at<Symbol>(file_, table->sh_offset + at_byte);
        if (!each) break;
        if (each->st_shndx == SHN_UNDEF || each->st_value == 0) continue;
        if (is_at(strings, names->sh_offset + each->st_name, symbol)) {
          return each->st_value + local_entry(*each);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
      const auto segment = at<Segment>(file_, header_.e_phoff + i * sizeof(Segment));
      if (!segment) return std::nullopt;
      if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      const std::uint64_t inside = address - segment->p_vaddr;
      if (inside < segment->p_filesz) return segment->p_offset + inside;
    }
    return std::nullopt;
  }

  bool may_be_code(std::uint64_t offset) const {
    if (offset < sizeof(Header)) return false;  // the header may be in a code segment
    for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
      const auto segment = at<Segment>(file_, header_.e_phoff + i * sizeof(Segment));
      if (!segment) return true;
      if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
      if (offset >= segment->p_offset && offset - segment->p_offset < segment->p_filesz) {
        return true;
      }
    }
    return false;
  }

 private:
  // Calls from within the file enter a function after the instructions that set up its r2. Calls
  // from elsewhere execute those first, and continue here (64-bit ELF V2 ABI Specification, Power
  // Architecture, 3.4.1).
  std::uint64_t local_entry(const Symbol& symbol) const {
    if (header_.e_machine != EM_PPC64 || (header_.e_flags & EF_PPC64_ABI) != 2) return 0;
    return static_cast<std::uint64_t>(PPC64_LOCAL_ENTRY_OFFSET(symbol.st_other));
  }

  File& file_;
  Header header_;
};

template <class Header, class Segment, class Section, class Symbol>
std::expected<std::uint64_t, Finding> find(File& file, const std::string& path,
                                           std::string_view symbol) {
  const auto header = at<Header>(file, 0);
  if (!header) return no_program(path + " is truncated");
  const Elf<Header, Segment, Section, Symbol> elf{file, *header};
  File strings = file;
  const auto address = elf.address_of(symbol, strings);
  if (!strings.failure().empty()) return no_program(path + strings.failure());
  if (!address) {
    return no_symbol(path + " has no symbol " + std::string{symbol});
  }
  const auto offset = elf.offset_of(*address);
  if (!offset) return no_symbol(std::string{symbol} + " is not in the file " + path);
  return *offset;
}

bool is_own_elf(File& file) {
  constexpr auto kOwn = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const char* const identity = file.bytes(0, EI_NIDENT);
  return identity != nullptr && std::memcmp(identity, ELFMAG, SELFMAG) == 0 &&
         identity[EI_DATA] == kOwn;
}

bool is_64(File& file) {
  const char* const identity = file.bytes(0, EI_NIDENT);
  return identity != nullptr && identity[EI_CLASS] == ELFCLASS64;
}

template <class Header, class Segment, class Section, class Symbol>
bool may_be_code_of(File& file, std::uint64_t offset) {
  const auto header = at<Header>(file, 0);
  return !header || Elf<Header, Segment, Section, Symbol>{file, *header}.may_be_code(offset);
}

}  // namespace

bool may_be_code(std::string_view content, std::uint64_t offset) {
  File file{content};
  if (!is_own_elf(file)) return true;
  return is_64(file) ? may_be_code_of<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(file, offset)
                     : may_be_code_of<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>(file, offset);
}

std::expected<std::uint64_t, Finding> file_offset_of(const char* path, std::string_view symbol) {
  if (symbol.empty()) return no_symbol("no symbol is given");
  const os::Fd fd{::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status{};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0) {
    return no_program(std::string{path} + ": " + std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode) || status.st_size < EI_NIDENT) {
    return no_program(std::string{path} + " is not an ELF file");
  }
  File file{fd.get(), static_cast<std::uint64_t>(status.st_size)};
  std::expected<std::uint64_t, Finding> offset =
      no_program(std::string{path} + " is not an ELF file of this machine's byte order");
  if (is_own_elf(file)) {
    offset = is_64(file) ? find<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(file, path, symbol)
                         : find<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>(file, path, symbol);
  }
  if (!file.failure().empty()) return no_program(path + file.failure());
  return offset;
}

}  // namespace perfring::event::internal
