#include "perfring/event/event.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring::event::internal {
namespace {

using File = std::span<const std::byte>;

std::unexpected<Finding> no_program(std::string says) {
  return std::unexpected(Finding{.field = "uprobe_path",
                                 .says = std::move(says),
                                 .advice = "give the path of a program or a library"});
}
std::unexpected<Finding> no_symbol(std::string says) {
  return std::unexpected(Finding{
      .field = "probe_offset",
      .says = std::move(says),
      .advice = "give a symbol of the file's symbol tables, as nm and nm -D list them, or an "
                "offset in the file"});
}

// The value at an offset of the file; nullopt if the file ends before that. It is copied, since
// nothing in a file has to be aligned.
template <class T>
std::optional<T> at(File file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

bool is_at(File file, std::uint64_t offset, std::string_view text) {
  if (offset > file.size() || file.size() - offset <= text.size()) return false;
  const auto* const place = reinterpret_cast<const char*>(file.data()) + offset;
  return std::string_view{place, text.size()} == text && place[text.size()] == '\0';
}

template <class Header, class Segment, class Section, class Symbol>
class Elf {
 public:
  Elf(File file, const Header& header) : file_{file}, header_{header} {}

  std::optional<std::uint64_t> address_of(std::string_view symbol) const {
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
        if (is_at(file_, names->sh_offset + each->st_name, symbol)) {
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
    if (offset < sizeof(Header)) return false;  // which may be in a segment of code
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
  // Calls from within the file enter a function after the instructions that set up its r2; calls
  // from elsewhere run those first, and come here next (64-bit ELF V2 ABI Specification, Power
  // Architecture, 3.4.1).
  std::uint64_t local_entry(const Symbol& symbol) const {
    if (header_.e_machine != EM_PPC64 || (header_.e_flags & EF_PPC64_ABI) != 2) return 0;
    return static_cast<std::uint64_t>(PPC64_LOCAL_ENTRY_OFFSET(symbol.st_other));
  }

  File file_;
  Header header_;
};

template <class Header, class Segment, class Section, class Symbol>
std::expected<std::uint64_t, Finding> find(File file, const std::string& path,
                                           std::string_view symbol) {
  const auto header = at<Header>(file, 0);
  if (!header) return no_program(path + " is cut off");
  const Elf<Header, Segment, Section, Symbol> elf{file, *header};
  const auto address = elf.address_of(symbol);
  if (!address) {
    return no_symbol(path + " has no symbol " + std::string{symbol});
  }
  const auto offset = elf.offset_of(*address);
  if (!offset) return no_symbol(std::string{symbol} + " is not in the file " + path);
  return *offset;
}

bool is_own_elf(File file) {
  constexpr auto kOwn = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const auto* const identity = reinterpret_cast<const unsigned char*>(file.data());
  return file.size() >= EI_NIDENT && std::memcmp(identity, ELFMAG, SELFMAG) == 0 &&
         identity[EI_DATA] == kOwn;
}

bool is_64(File file) {
  return reinterpret_cast<const unsigned char*>(file.data())[EI_CLASS] == ELFCLASS64;
}

template <class Header, class Segment, class Section, class Symbol>
bool may_be_code_of(File file, std::uint64_t offset) {
  const auto header = at<Header>(file, 0);
  return !header || Elf<Header, Segment, Section, Symbol>{file, *header}.may_be_code(offset);
}

}  // namespace

bool may_be_code(std::string_view content, std::uint64_t offset) {
  const File file = std::as_bytes(std::span{content.data(), content.size()});
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
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size < EI_NIDENT) {
    return no_program(std::string{path} + " is not an ELF file");
  }
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    return no_program(std::string{path} + ": " + std::generic_category().message(errno));
  }
  const File file{static_cast<const std::byte*>(mapped), size};
  std::expected<std::uint64_t, Finding> offset =
      no_program(std::string{path} + " is not an ELF file of this machine's byte order");
  if (is_own_elf(file)) {
    offset = is_64(file) ? find<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>(file, path, symbol)
                         : find<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>(file, path, symbol);
  }
  ::munmap(mapped, size);
  return offset;
}

}  // namespace perfring::event::internal
