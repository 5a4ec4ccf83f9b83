// SPDX-License-Identifier: BSD-3-Clause
// What a command would start, as its files show it: `nessie check` judges by that.
#pragma once

#include "elf.hpp"
#include "environment.hpp"

#include <nessie/result.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

/// The program, or one of its libraries.
struct Object {
  std::string path;
  ElfFile elf;
  std::string pnetcdf_version = {};  ///< as ncmpi_inq_libvers() would say it; empty: it does not show
  bool late = false;                 ///< the program opened it, in a trial run
  bool deep = false;                 ///< it did so past all preloaded libraries (RTLD_DEEPBIND)
};

/// A short run of the program.
struct Trial {
  double seconds = 0;
  bool ended_itself = false;
  std::string ending;       ///< how, if so: "exited with 3"
  std::string became = {};  ///< the name of the program that it was in the end
};

struct Subject {
  std::string path;                     ///< of the program; of a script: of what interprets it
  std::vector<std::string> scripts;     ///< what it interprets, the outermost first
  std::string argument;                 ///< the first of its arguments that is a program itself; empty: none
  std::string rights;                   ///< rights of its own that the file gives: "the setuid bit"; empty: none
  bool rights_count = false;            ///< for whoever runs this: the dynamic linker forgets LD_PRELOAD
  std::vector<Object> objects;          ///< the program, then the libraries in the order in which they are loaded
  std::vector<std::string> missing;     ///< libraries that it needs and that are not found
  std::string why_unlisted;             ///< why nobody knows its libraries; empty: they are known
  std::vector<std::string> preloaded;   ///< LD_PRELOAD as it is now
  std::string preload_replaced;         ///< the word of the command that replaces LD_PRELOAD; empty: none
  std::optional<std::string> mismatch;  ///< what is wrong with the launcher
  std::optional<Trial> trial;

  const Object &program() const { return objects.front(); }
};

/// Of the program that a command starts, without its libraries. kNotFound: there is none. kRefused: it may not be read
/// or executed. kBadMessage: it is neither a program nor a script, or damaged.
Result<Subject> examine(const std::vector<std::string> &command, const Environment &environment);

/// What a file shows; nothing if it is no library that can be read.
std::optional<Object> read_library(const std::string &path);

}  // namespace nessie::cli
