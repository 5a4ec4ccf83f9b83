// SPDX-License-Identifier: BSD-3-Clause
#include "abandoned.hpp"
#include "abandoned_logs.hpp"
#include "commands.hpp"
#include "log_folder.hpp"
#include "losses.hpp"
#include "run_directory.hpp"
#include "run_lock.hpp"
#include "speech.hpp"
#include "summary.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/printable.hpp>
#include <services/staging/report_json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace nessie::cli {

namespace {

struct Removed {
  std::string path;
  std::uint64_t size_bytes;
};
struct Kept {
  std::string path, why;
};
struct Cleaning {
  bool is_rehearsal = false;
  std::vector<FolderUser> ended;
  std::vector<Removed> removed;
  std::vector<Kept> kept;
  RunRecord lost;  ///< by servers that were killed
  bool failed = false;
};

std::string words_for(const std::vector<FolderUser> &users) {
  std::vector<std::string> words;
  for (const auto &user : users) words.push_back(fmt::format("{} (process {})", printable(user.name), user.pid));
  return fmt::format("in use by {}", fmt::join(words, ", "));
}

/// In a rehearsal the servers are still there, which would have ended.
bool is_in_use(const AbandonedFolder &folder, bool is_rehearsal) {
  for (const auto &user : folder.users)
    if (!user.is_server || !is_rehearsal) return true;
  return false;
}

/// What was acknowledged and is in no file; where no server is left that would write it.
void note_losses_of(const AbandonedFolder &folder, Cleaning &cleaning) {
  for (int index = 0; folder.users.empty() && index < NESSIE_MOST_SERVERS; ++index)
    add_losses(read_losses(folder.path, index), cleaning.lost);
}

/// A run that has just made its folder makes another one.
void remove_bare(const AbandonedFolder &folder, Cleaning &cleaning) {
  if (cleaning.is_rehearsal || ::rmdir(folder.path.c_str()) == 0)
    cleaning.removed.push_back({folder.path, folder.size_bytes});
}

void remove(const AbandonedFolder &folder, Cleaning &cleaning) {
  if (!folder.lock) return remove_bare(folder, cleaning);
  if (is_in_use(folder, cleaning.is_rehearsal)) return cleaning.kept.push_back({folder.path, words_for(folder.users)});
  note_losses_of(folder, cleaning);
  std::error_code error;
  if (!cleaning.is_rehearsal) error = remove_run_folder(folder.path);
  if (!error) return cleaning.removed.push_back({folder.path, folder.size_bytes});
  cleaning.failed = true;
  cleaning.kept.push_back({folder.path, "it cannot be removed: " + error.message()});
}

void remove(const AbandonedLogs &logs, Cleaning &cleaning) {
  if (!logs.why_kept.empty()) return cleaning.kept.push_back({logs.path, logs.why_kept});
  const auto failure = cleaning.is_rehearsal ? std::string() : remove_abandoned_logs(logs);
  if (failure.empty()) return cleaning.removed.push_back({logs.path, logs.size_bytes});
  cleaning.failed = true;
  cleaning.kept.push_back({logs.path, "it cannot be removed: " + failure});
}

/// Where runs may have had logs, or have spilled: where they do it by themselves, where the settings say, where the
/// folders that are left say, and where the user does.
std::vector<std::string> folders_of_logs(const std::vector<AbandonedFolder> &runs, std::vector<std::string> folders) {
  const auto own = run_folder_bases();
  folders.insert(folders.end(), own.begin(), own.end());
  const auto config = Config::load();
  for (const auto *setting : {"staging.log", "staging.spill"})
    if (config) folders.push_back(config->get_or(setting, ""));
  for (const auto &run : runs)
    if (const auto logs = logged_in(run.path); !logs.empty())
      folders.push_back(std::filesystem::path(logs).parent_path().string());
  return folders;
}

Cleaning clean_up(const CleanOptions &options) {
  Cleaning cleaning;
  cleaning.is_rehearsal = options.dry_run;
  auto folders = find_abandoned_folders();
  const auto logs_in = folders_of_logs(folders, options.folders);
  cleaning.ended = options.dry_run ? servers_of(folders) : end_servers(folders);
  for (const auto &folder : folders) remove(folder, cleaning);
  for (const auto &logs : find_abandoned_logs(logs_in)) remove(logs, cleaning);
  return cleaning;
}

std::uint64_t bytes_of(const Cleaning &cleaning) {
  std::uint64_t sum = 0;
  for (const auto &each : cleaning.removed) sum += each.size_bytes;
  return sum;
}

void print_text(const Cleaning &cleaning) {
  const auto *would = cleaning.is_rehearsal ? "would have " : "";
  for (const auto &server : cleaning.ended)
    fmt::print("{}ended nessied (process {}), whose `nessie run` is gone\n", would, server.pid);
  for (const auto &each : cleaning.removed)
    fmt::print("{}removed {} ({})\n", would, printable(each.path), format_size(each.size_bytes));
  for (const auto &each : cleaning.kept) fmt::print("left {}: {}\n", printable(each.path), printable(each.why));
  if (cleaning.removed.empty() && cleaning.kept.empty()) {
    fmt::print("nothing to do: no `nessie run` of this user has left anything behind\n");
  } else {
    fmt::print("{}removed {}, {}, and ended {}\n", would, counted(cleaning.removed.size(), "folder"),
               format_size(bytes_of(cleaning)), counted(cleaning.ended.size(), "server"));
  }
}

void print_json(const Cleaning &cleaning) {
  auto ended = nlohmann::json::array(), removed = ended, kept = ended;
  for (const auto &server : cleaning.ended) ended.push_back({{"pid", server.pid}, {"name", server.name}});
  for (const auto &each : cleaning.removed)
    removed.push_back({{"path", to_utf8(each.path)}, {"bytes", each.size_bytes}});
  for (const auto &each : cleaning.kept) kept.push_back({{"path", to_utf8(each.path)}, {"why", to_utf8(each.why)}});
  const nlohmann::json all = {{"dry_run", cleaning.is_rehearsal},
                              {"bytes", bytes_of(cleaning)},
                              {"ended", ended},
                              {"removed", removed},
                              {"left", kept},
                              {"lost", staging::to_json(cleaning.lost.lost)}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int clean(const CleanOptions &options) {
  const auto cleaning = clean_up(options);
  options.json ? print_json(cleaning) : print_text(cleaning);
  return cleaning.failed ? 1 : 0;
}

}  // namespace nessie::cli
