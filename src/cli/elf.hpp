// SPDX-License-Identifier: BSD-3-Clause
// What a program's or a library's file says of itself, without any of it being run. The file comes from outside: every
// offset in it is checked, and no more than a part of it is held in memory.
#pragma once

#include <nessie/result.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

using Names = std::set<std::string, std::less<>>;

/// Whether a name begins so.
bool has_prefix(const Names &names, std::string_view prefix);

struct ElfFile {
  bool of_this_machine = false;     ///< if not, nothing else is known of it
  std::string interpreter;          ///< its dynamic linker; empty: it has none
  std::string soname;               ///< the name by which others need it
  std::vector<std::string> needed;  ///< names of the libraries that it is linked to
  Names defined;                    ///< what others find in it
  Names wanted;                     ///< what it looks for in others
  Names hidden;                     ///< functions of PnetCDF that it has for itself; none where that was stripped

  bool defines(std::string_view name) const { return defined.contains(name); }
  bool wants(std::string_view name) const { return wanted.contains(name); }
};

/// kNotFound, kRefused: it cannot be read; the cause is errno. kUnsupported: it is no regular file in the format ELF.
/// kBadMessage: it is, but a damaged one.
Result<ElfFile> read_elf(const std::string &path);
/// The same, of what is open; reads by position.
Result<ElfFile> read_elf(int fd);

}  // namespace nessie::cli
