// SPDX-License-Identifier: BSD-3-Clause
// Small programs and libraries, byte by byte, for tests of what reads them.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace nessie::cli {

/// What is to be in the file; by default a program that calls PnetCDF.
struct ElfSample {
  enum class Hash { kNone, kGnu, kSysv };
  std::string interpreter = "/lib64/ld-linux-x86-64.so.2";
  std::string soname = {};
  std::vector<std::string> needed = {"libpnetcdf.so.4", "libmpi.so.40"};
  std::vector<std::string> wanted = {"ncmpi_create", "MPI_Init"};
  std::vector<std::string> defined = {"answer", "question"};
  std::vector<std::string> hidden = {};
  Hash hash = Hash::kGnu;

  std::string bytes() const;
};

/// Puts the parts of a file behind each other. It is mapped as it is, from address 0 on.
class ElfWriter {
 public:
  explicit ElfWriter(const ElfSample &sample) : sample_(sample) {}
  std::string write() {
    bytes_.resize(sizeof(ElfW(Ehdr)) + kSegments * sizeof(ElfW(Phdr)));
    put_interpreter();
    put_symbols();
    put_hash();
    put_relocations();
    put_dynamic();
    put_hidden();
    put_head();
    return bytes_;
  }

 private:
  static constexpr std::size_t kSegments = 3;

  template <class T> std::size_t put(const std::vector<T> &values) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const auto place = bytes_.size();
    bytes_.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    return place;
  }
  std::uint32_t name(const std::string &text) {
    const auto place = names_.size();
    names_ += text + '\0';
    return static_cast<std::uint32_t>(place);
  }
  void put_interpreter() {
    segments_[0].p_type = sample_.interpreter.empty() ? PT_NULL : PT_INTERP;
    segments_[0].p_offset = bytes_.size();
    segments_[0].p_filesz = sample_.interpreter.size() + 1;
    bytes_ += sample_.interpreter + '\0';
  }
  std::vector<ElfW(Sym)> symbols_of(const std::vector<std::string> &names, std::uint16_t section) {
    std::vector<ElfW(Sym)> symbols;
    for (const auto &text : names) {
      ElfW(Sym) symbol{};
      symbol.st_name = name(text);
      symbol.st_shndx = section;
      symbols.push_back(symbol);
    }
    return symbols;
  }
  void put_symbols() {
    std::vector<ElfW(Sym)> symbols(1);
    for (const auto &symbol : symbols_of(sample_.wanted, SHN_UNDEF)) symbols.push_back(symbol);
    for (const auto &symbol : symbols_of(sample_.defined, 1)) symbols.push_back(symbol);
    note(DT_SYMTAB, put(symbols));
  }
  void put_hash() {
    const auto first = static_cast<std::uint32_t>(1 + sample_.wanted.size());
    const auto count = static_cast<std::uint32_t>(sample_.defined.size());
    if (sample_.hash == ElfSample::Hash::kSysv) note(DT_HASH, put(std::vector<std::uint32_t>{1, first + count, 0}));
    if (sample_.hash != ElfSample::Hash::kGnu) return;
    std::vector<std::uint32_t> table = {1, first, 1, 0, 0, 0, count == 0 ? 0 : first};
    for (std::uint32_t i = 1; i <= count; ++i) table.push_back(i == count ? 3 : 2);
    note(DT_GNU_HASH, put(table));
  }
  void put_relocations() {
    std::vector<ElfW(Rela)> relocations;
    for (std::uint64_t i = 1; i <= sample_.wanted.size(); ++i) {
      ElfW(Rela) relocation{};
      relocation.r_info = sizeof(ElfW(Addr)) == 8 ? i << 32 : i << 8;
      relocations.push_back(relocation);
    }
    note(DT_JMPREL, put(relocations));
    note(DT_PLTRELSZ, relocations.size() * sizeof(ElfW(Rela)));
  }
  void note(std::int64_t tag, std::uint64_t value) {
    ElfW(Dyn) entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic_.push_back(entry);
  }
  void put_dynamic() {
    for (const auto &library : sample_.needed) note(DT_NEEDED, name(library));
    if (!sample_.soname.empty()) note(DT_SONAME, name(sample_.soname));
    note(DT_STRSZ, names_.size());
    note(DT_STRTAB, put(std::vector<char>(names_.begin(), names_.end())));
    note(DT_NULL, 0);
    segments_[2].p_type = PT_DYNAMIC;
    segments_[2].p_offset = put(dynamic_);
    segments_[2].p_filesz = dynamic_.size() * sizeof(ElfW(Dyn));
  }
  void put_hidden() {
    if (sample_.hidden.empty()) return;
    names_.assign(1, '\0');
    const auto symbols = symbols_of(sample_.hidden, 1);
    std::vector<ElfW(Shdr)> sections(2);
    sections[0].sh_type = SHT_SYMTAB;
    sections[0].sh_offset = put(symbols);
    sections[0].sh_size = symbols.size() * sizeof(ElfW(Sym));
    sections[0].sh_link = 1;
    sections[1].sh_type = SHT_STRTAB;
    sections[1].sh_offset = put(std::vector<char>(names_.begin(), names_.end()));
    sections[1].sh_size = names_.size();
    sections_at_ = put(sections);
  }
  void put_head() {
    segments_[1].p_type = PT_LOAD;
    segments_[1].p_filesz = segments_[1].p_memsz = bytes_.size();
    ElfW(Ehdr) head = __ehdr_start;
    head.e_type = ET_DYN;
    head.e_phoff = sizeof head;
    head.e_phnum = kSegments;
    head.e_phentsize = sizeof(ElfW(Phdr));
    head.e_shoff = sections_at_;
    head.e_shnum = sections_at_ == 0 ? 0 : 2;
    head.e_shentsize = sizeof(ElfW(Shdr));
    std::memcpy(bytes_.data(), &head, sizeof head);
    std::memcpy(bytes_.data() + sizeof head, segments_, sizeof segments_);
  }

  const ElfSample &sample_;
  std::string bytes_;
  std::string names_ = std::string(1, '\0');
  std::vector<ElfW(Dyn)> dynamic_;
  std::size_t sections_at_ = 0;
  ElfW(Phdr) segments_[kSegments] = {};
};

inline std::string ElfSample::bytes() const { return ElfWriter(*this).write(); }

}  // namespace nessie::cli
