// SPDX-License-Identifier: BSD-3-Clause
// Design notes. What counts is what the dynamic linker goes by: the segments, and the tables that the dynamic one
// names. They do not say how many symbols there are; that is the largest number that a hash table or a relocation
// mentions. Sections, which may be missing, are asked for hidden names only.
#include "elf.hpp"

#include <base/fd.hpp>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

// Our own file's head: of the format of this machine.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace nessie::cli {

namespace {

using Head = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);
using Entry = ElfW(Dyn);
using Relocation = ElfW(Rela);
using Address = ElfW(Addr);

constexpr std::uint64_t kMostBytes = 256 << 20;  // of one table
constexpr std::uint64_t kLongestName = 4096;
constexpr std::uint64_t kLongestChain = 1 << 16;
constexpr std::string_view kHiddenPrefix = "ncmpi";

std::uint32_t symbol_of(const Relocation &relocation) {
  return static_cast<std::uint32_t>(sizeof(Address) == 8 ? std::uint64_t{relocation.r_info} >> 32
                                                         : relocation.r_info >> 8);
}

/// The strings of a table, one behind the other.
class Strings {
 public:
  Strings() = default;
  explicit Strings(std::vector<char> text) : text_(std::move(text)) {}
  /// Empty: there is none, or it has no end.
  std::string_view at(std::uint64_t place) const {
    if (place >= text_.size()) return {};
    const auto *begin = text_.data() + place;
    const auto *end = static_cast<const char *>(std::memchr(begin, 0, text_.size() - place));
    return end == nullptr ? std::string_view() : std::string_view(begin, static_cast<std::size_t>(end - begin));
  }

 private:
  std::vector<char> text_;
};

class Reader {
 public:
  Reader(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  Result<ElfFile> read();

 private:
  /// So many bytes of the file as values; nothing: they are not there, or too many.
  template <class T> std::optional<std::vector<T>> table(std::uint64_t offset, std::uint64_t size_bytes) const;
  /// What must be there: otherwise the file is damaged.
  template <class T> std::vector<T> needed_table(std::optional<std::uint64_t> offset, std::uint64_t size_bytes);
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
  std::optional<std::uint64_t> value_of(std::int64_t tag) const;
  std::optional<std::uint64_t> place_of(std::int64_t tag) const;

  void read_segments();
  void read_interpreter();
  void read_dynamic();
  void read_symbols();
  void read_hidden();
  void note_hidden(const std::vector<Section> &sections, const Section &symbols);
  std::uint64_t count_symbols();
  std::uint64_t count_by_hash();
  std::uint64_t count_by_gnu_hash();
  std::uint64_t count_by_relocations(std::int64_t table_tag, std::int64_t size_tag);

  const int fd_;
  const std::uint64_t size_;
  bool damaged_ = false;
  Head head_{};
  std::vector<Segment> segments_;
  std::vector<Entry> dynamic_;
  Strings names_;
  ElfFile file_;
};

bool read_all(int fd, void *to, std::size_t size, std::uint64_t offset) {
  auto *next = static_cast<char *>(to);
  while (size > 0) {
    const auto got = ::pread(fd, next, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got, offset += static_cast<std::uint64_t>(got), size -= static_cast<std::size_t>(got);
  }
  return true;
}

template <class T> std::optional<std::vector<T>> Reader::table(std::uint64_t offset, std::uint64_t size_bytes) const {
  if (offset > size_ || size_bytes > size_ - offset || size_bytes > kMostBytes) return std::nullopt;
  std::vector<T> values(size_bytes / sizeof(T));
  if (!read_all(fd_, values.data(), values.size() * sizeof(T), offset)) return std::nullopt;
  return values;
}

template <class T> std::vector<T> Reader::needed_table(std::optional<std::uint64_t> offset, std::uint64_t size_bytes) {
  auto values = offset ? table<T>(*offset, size_bytes) : std::nullopt;
  if (!values) damaged_ = true;
  return values ? std::move(*values) : std::vector<T>();
}

/// Where in the file is what the program sees at this address.
std::optional<std::uint64_t> Reader::offset_of(std::uint64_t address) const {
  for (const auto &segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t within = address - segment.p_vaddr;
    if (within >= segment.p_filesz || segment.p_offset > size_ || within > size_ - segment.p_offset) continue;
    return segment.p_offset + within;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Reader::value_of(std::int64_t tag) const {
  for (const auto &entry : dynamic_)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return std::nullopt;
}

std::optional<std::uint64_t> Reader::place_of(std::int64_t tag) const {
  const auto address = value_of(tag);
  return address ? offset_of(*address) : std::nullopt;
}

void Reader::read_segments() {
  if (head_.e_phnum == 0) return;
  if (head_.e_phentsize != sizeof(Segment)) damaged_ = true;
  segments_ = needed_table<Segment>(head_.e_phoff, std::uint64_t{head_.e_phnum} * sizeof(Segment));
}

void Reader::read_interpreter() {
  for (const auto &segment : segments_) {
    if (segment.p_type != PT_INTERP) continue;
    if (segment.p_filesz > kLongestName) damaged_ = true;
    if (damaged_) return;
    file_.interpreter = Strings(needed_table<char>(segment.p_offset, segment.p_filesz)).at(0);
    if (file_.interpreter.empty()) damaged_ = true;
    return;
  }
}

void Reader::read_dynamic() {
  const auto segment = std::ranges::find(segments_, Address{PT_DYNAMIC}, &Segment::p_type);
  if (segment == segments_.end()) return;
  dynamic_ = needed_table<Entry>(segment->p_offset, segment->p_filesz);
  dynamic_.erase(std::ranges::find(dynamic_, DT_NULL, &Entry::d_tag), dynamic_.end());
  if (!value_of(DT_STRTAB)) return;
  names_ = Strings(needed_table<char>(place_of(DT_STRTAB), value_of(DT_STRSZ).value_or(0)));
  for (const auto &entry : dynamic_) {
    if (entry.d_tag == DT_NEEDED) file_.needed.emplace_back(names_.at(entry.d_un.d_val));
    if (entry.d_tag == DT_SONAME) file_.soname = names_.at(entry.d_un.d_val);
  }
}

std::uint64_t Reader::count_by_hash() {
  if (!value_of(DT_HASH)) return 0;
  const auto head = needed_table<std::uint32_t>(place_of(DT_HASH), 2 * sizeof(std::uint32_t));
  return head.empty() ? 0 : head[1];
}

// The table: how many chains there are, the number of the first symbol in them, the size and the shift of a filter, the
// filter, where each chain begins, and for each symbol its hash, with the lowest bit set in the last of a chain.
std::uint64_t Reader::count_by_gnu_hash() {
  constexpr std::uint64_t kWord = sizeof(std::uint32_t);
  const auto place = place_of(DT_GNU_HASH);
  if (!value_of(DT_GNU_HASH)) return 0;
  const auto head = needed_table<std::uint32_t>(place, 4 * kWord);
  if (head.empty()) return 0;
  const std::uint64_t chains = head[0], first = head[1];
  const auto begins_at = *place + 4 * kWord + std::uint64_t{head[2]} * sizeof(Address);
  const auto begins = needed_table<std::uint32_t>(begins_at, chains * kWord);
  const std::uint64_t last = begins.empty() ? 0 : *std::ranges::max_element(begins);
  if (last == 0 || last < first) return first;
  const auto chain_at = begins_at + (chains + last - first) * kWord;
  const auto most = std::min(kLongestChain * kWord, size_ - std::min(size_, chain_at));
  const auto hashes = needed_table<std::uint32_t>(chain_at, most);
  const auto end = std::ranges::find_if(hashes, [](std::uint32_t hash) { return (hash & 1) != 0; });
  if (end == hashes.end()) damaged_ = true;
  return last + static_cast<std::uint64_t>(end - hashes.begin()) + 1;
}

std::uint64_t Reader::count_by_relocations(std::int64_t table_tag, std::int64_t size_tag) {
  const auto size = value_of(size_tag).value_or(0);
  if (!value_of(table_tag) || size == 0) return 0;
  std::uint64_t most = 0;
  for (const auto &relocation : needed_table<Relocation>(place_of(table_tag), size))
    most = std::max<std::uint64_t>(most, symbol_of(relocation));
  return most + 1;
}

std::uint64_t Reader::count_symbols() {
  return std::max({count_by_hash(), count_by_gnu_hash(), count_by_relocations(DT_RELA, DT_RELASZ),
                   count_by_relocations(DT_JMPREL, DT_PLTRELSZ)});
}

void Reader::read_symbols() {
  if (!value_of(DT_SYMTAB)) return;
  for (const auto &symbol : needed_table<Symbol>(place_of(DT_SYMTAB), count_symbols() * sizeof(Symbol))) {
    const auto name = names_.at(symbol.st_name);
    if (!name.empty()) (symbol.st_shndx == SHN_UNDEF ? file_.wanted : file_.defined).emplace(name);
  }
}

void Reader::note_hidden(const std::vector<Section> &sections, const Section &symbols) {
  const auto &link = sections[symbols.sh_link];
  auto text = table<char>(link.sh_offset, link.sh_size);
  const auto all = table<Symbol>(symbols.sh_offset, symbols.sh_size);
  if (!text || !all) return;
  const Strings names(std::move(*text));
  for (const auto &symbol : *all) {
    const auto name = names.at(symbol.st_name);
    if (symbol.st_shndx != SHN_UNDEF && name.starts_with(kHiddenPrefix)) file_.hidden.emplace(name);
  }
}

void Reader::read_hidden() {
  if (head_.e_shentsize != sizeof(Section)) return;
  const auto sections = table<Section>(head_.e_shoff, std::uint64_t{head_.e_shnum} * sizeof(Section));
  if (!sections) return;
  const auto symbols = std::ranges::find(*sections, Elf32_Word{SHT_SYMTAB}, &Section::sh_type);
  if (symbols != sections->end() && symbols->sh_link < sections->size()) note_hidden(*sections, *symbols);
}

bool is_of_this_machine(const Head &head) {
  const auto same = [&](int place) { return head.e_ident[place] == __ehdr_start.e_ident[place]; };
  return same(EI_CLASS) && same(EI_DATA) && head.e_machine == __ehdr_start.e_machine;
}

Result<ElfFile> Reader::read() {
  const auto magic = table<char>(0, SELFMAG);
  if (!magic || std::memcmp(magic->data(), ELFMAG, SELFMAG) != 0)
    return Error{Code::kUnsupported, "it is not in the format of programs, ELF"};
  const auto head = table<Head>(0, sizeof(Head));
  if (!head) return Error{Code::kBadMessage, "its file is cut off"};
  head_ = head->front();
  file_.of_this_machine = is_of_this_machine(head_);
  if (!file_.of_this_machine) return file_;
  read_segments();
  read_interpreter();
  read_dynamic();
  read_symbols();
  read_hidden();
  if (damaged_) return Error{Code::kBadMessage, "its file is damaged, or cut off"};
  return std::move(file_);
}

}  // namespace

bool has_prefix(const Names &names, std::string_view prefix) {
  const auto found = names.lower_bound(prefix);
  return found != names.end() && found->starts_with(prefix);
}

Result<ElfFile> read_elf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{Code::kUnsupported, "it is not a regular file"};
  return Reader(fd, static_cast<std::uint64_t>(status.st_size)).read();
}

Result<ElfFile> read_elf(const std::string &path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO would be waited for
  if (file) return read_elf(file.get());
  const int cause = errno;
  const auto code = cause == ENOENT || cause == ENOTDIR ? Code::kNotFound : Code::kRefused;
  return Error{code, std::strerror(cause), Scope::kOperation, cause};
}

}  // namespace nessie::cli
