// SPDX-License-Identifier: BSD-3-Clause
// How it is with the files of a run: by what its servers say, or by what is left of them.
#pragma once

#include <nessie/result.hpp>
#include <staging.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nessie::cli {

struct Logs;

/// Of several parts of a file the last in this order counts.
enum class FileCondition {
  kComplete,    ///< all that was acknowledged is in the file
  kDraining,    ///< a server puts it there
  kLoggedOnly,  ///< it is in a log, and nobody is putting it there
  kIncomplete,  ///< something did not reach the file, or is lost
};

struct RunFile {
  std::string path;
  FileCondition condition = FileCondition::kComplete;
  std::string durability = {};  ///< empty: not known
  bool is_open = false;         ///< by its program
  std::uint64_t bytes_acknowledged = 0, bytes_in_file = 0;
  std::string message = {};
  std::vector<std::string> missing = {};  ///< as FileReport has it
};

struct RunFiles {
  std::map<std::string, RunFile> files;  ///< by path
  std::uint64_t others = 0;              ///< that are complete, of which only the number is known
  std::vector<std::string> logs;         ///< that have what is not in the files
  std::vector<std::string> unreadable;   ///< what is left, and cannot be read, and why
  std::vector<std::string> silent;       ///< which servers did not answer, and why

  /// Several parts of one, as servers have it, become one.
  void add(RunFile file);
  void add(const staging::FilesResult &of_a_server);
  /// 74 (kExitDataLost): not all is in the files, and nobody is about to put it there. 1: a server did not answer.
  int exit_code() const;
};

/// Of what a server has told at its end, or a run in its summary: false, if the file is neither.
bool add_told(const std::string &report, RunFiles &all);
/// What is in logs; a server may have one open.
void add_logged(const Logs &logs, RunFiles &all);
/// What is left in the private folder of a run (run_directory.hpp) that has ended; and in its logs.
void add_left(const std::string &run_directory, RunFiles &all);

/// A line for all, then one for each file, those first that somebody has to look at; of many that are alike, some.
std::string describe(const RunFiles &all);
nlohmann::json to_json(const RunFiles &all);

}  // namespace nessie::cli
