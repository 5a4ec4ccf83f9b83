// SPDX-License-Identifier: BSD-3-Clause
#include "run_files.hpp"

#include "log_folder.hpp"
#include "logs.hpp"
#include "losses.hpp"
#include "speech.hpp"
#include "summary.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/file.hpp>
#include <base/printable.hpp>
#include <services/staging/durability.hpp>
#include <services/staging/handle.hpp>
#include <services/staging/report_json.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace nessie::cli {

namespace {

using nlohmann::json;
using staging::FileReport;
using By = std::map<std::string, RunFile>;

constexpr std::array kWords = {"complete", "draining", "logged only", "incomplete"};
constexpr std::size_t kMostAlike = 20;  // files of one condition that are listed
constexpr std::size_t kMostRanges = 8;  // of a file

const char *word_for(FileCondition condition) { return kWords.at(static_cast<std::size_t>(condition)); }

std::string durability_of(staging::Durability durability) {
  return durability == staging::Durability::kInherited ? std::string() : std::string(staging::name_of(durability));
}

RunFile told(const FileReport &report) {
  const bool is_lost = report.nc_error != 0 || !report.message.empty();
  return {report.path,
          is_lost ? FileCondition::kIncomplete : FileCondition::kComplete,
          {},
          false,
          report.bytes_acknowledged,
          is_lost ? report.bytes_in_file : report.bytes_acknowledged,  // what was overwritten came there once
          report.message,
          report.missing};
}

RunFile told(const staging::FileState &state) {
  auto file = told(state.report);
  const bool is_closed = state.stage == staging::FileStage::kClosed;
  file.durability = durability_of(state.durability);
  file.is_open = state.stage == staging::FileStage::kOpen;
  if (state.report.nc_error != 0 || is_closed) return file;
  const bool is_drained = file.is_open && state.bytes_pending == 0 && state.report.message.empty();
  file.condition = is_drained ? FileCondition::kComplete : FileCondition::kDraining;
  file.bytes_in_file = file.bytes_acknowledged - std::min(file.bytes_acknowledged, state.bytes_pending);
  return file;
}

/// Why its log's part cannot be put into the file; empty: it can.
std::string why_not_there(const staging::LoggedFile &file) {
  struct stat ignored {};
  if (staging::identity_of(file.path) == file.identity || staging::find_in_folder(file, O_RDONLY)) return "";
  if (::stat(file.path.c_str(), &ignored) != 0) return staging::why_not_found(errno).message;
  return staging::why_not_found(0).message;
}

RunFile logged(const staging::LeftFile &left, bool is_in_use) {
  auto condition = is_in_use ? FileCondition::kDraining : FileCondition::kLoggedOnly;
  auto message = is_in_use ? "a staging server has its log open, and puts it there" : why_not_there(left.file);
  return {left.file.path, condition, durability_of(left.file.durability), false, left.bytes, 0, std::move(message), {}};
}

/// Beside a server, which may use again what is being read, damage says nothing.
void note_damage(const staging::Left &left, const std::string &log, By &files, RunFiles &all) {
  for (const auto &damage : left.damage) {
    bool is_of_a_file = false;
    for (const auto &[token, file] : left.files) {
      if (file.since > damage.at.begin) continue;
      auto &hit = files[file.file.path];
      hit.condition = FileCondition::kIncomplete;
      hit.message = "some of what was acknowledged may be missing: " + damage.what;
      is_of_a_file = true;
    }
    if (!is_of_a_file) all.unreadable.push_back(fmt::format("{}: {}", log, damage.what));
  }
}

/// `files`: what is known otherwise of the files of that server.
void add_log(const std::string &log, By files, RunFiles &all) {
  const bool is_in_use = is_log_in_use(log);
  const auto left = look_at_log(log);
  if (!left.ok()) {
    all.unreadable.push_back(fmt::format("{}: {}", log, left.error().message));
  } else {
    for (const auto &[token, file] : left->files) {
      auto known = logged(file, is_in_use);
      auto &same = files[known.path];
      if (same.bytes_acknowledged > 0)
        known.bytes_acknowledged = same.bytes_acknowledged, known.bytes_in_file = same.bytes_in_file;
      same = std::move(known);
    }
    if (!is_in_use) note_damage(*left, log, files, all);
  }
  const bool has_some = !left.ok() || !left->files.empty() || !left->damage.empty();
  if (has_some && !is_in_use) all.logs.push_back(log);
  for (auto &[path, file] : files) all.add(std::move(file));
}

By lost_by(const std::string &run_directory, int index, RunFiles &all) {
  By files;
  const auto lost = read_losses(run_directory, index);
  if (!lost.ok())
    all.unreadable.push_back(fmt::format("what staging server {} held is not known: {}", index, lost.error().message));
  else
    for (const auto &report : *lost) files[report.path] = told(report);
  return files;
}

}  // namespace

void RunFiles::add(RunFile file) {
  const auto [at, is_new] = files.try_emplace(file.path, file);
  if (is_new) return;
  auto &known = at->second;
  known.condition = std::max(known.condition, file.condition);
  known.is_open |= file.is_open;
  known.bytes_acknowledged += file.bytes_acknowledged;
  known.bytes_in_file += file.bytes_in_file;
  if (known.durability.empty()) known.durability = file.durability;
  if (known.message.find(file.message) == std::string::npos)
    known.message += (known.message.empty() ? "" : "; ") + file.message;
  known.missing.insert(known.missing.end(), file.missing.begin(), file.missing.end());
}

void RunFiles::add(const staging::FilesResult &of_a_server) {
  for (const auto &state : of_a_server.files) add(told(state));
  others += of_a_server.others;
}

int RunFiles::exit_code() const {
  const bool is_lost =
      std::ranges::any_of(files, [](const auto &file) { return file.second.condition >= FileCondition::kLoggedOnly; });
  return is_lost || !unreadable.empty() ? kExitDataLost : silent.empty() ? 0 : 1;
}

bool add_told(const std::string &report, RunFiles &all) {
  const auto text = read_file(report);
  const auto parsed = text.ok() ? json::parse(*text, nullptr, false) : json();
  const auto reports = staging::reports_in(parsed);
  if (!reports) return false;
  for (const auto &file : *reports) all.add(told(file));
  const auto log = parsed.find("log");  // of a run's summary
  if (log == parsed.end() || !log->is_string()) return true;
  if (const auto logs = find_logs(log->get<std::string>()); logs.ok()) add_logged(*logs, all);
  return true;
}

void add_logged(const Logs &logs, RunFiles &all) {
  for (const int index : logs.servers) add_log(logs.path(index), {}, all);
}

void add_left(const std::string &run_directory, RunFiles &all) {
  std::error_code ignored;
  const auto logs = logged_in(run_directory);
  for (int index = 0; index < NESSIE_MOST_SERVERS; ++index) {
    const auto file = [&](const char *suffix) { return fmt::format("{}/server.{}.{}", run_directory, index, suffix); };
    const auto log = fmt::format("{}/server.{}", logs, index);
    const bool has_told = add_told(file("report"), all);
    const bool was_there =
        std::filesystem::exists(file("ledger"), ignored) || std::filesystem::exists(file("url"), ignored);
    auto lost = !has_told && was_there ? lost_by(run_directory, index, all) : By();
    if (!logs.empty() && std::filesystem::is_directory(log, ignored))
      add_log(log, std::move(lost), all);
    else
      for (auto &[path, one] : lost) all.add(std::move(one));
  }
}

// --- for people ------------------------------------------------------------------------------------------------------

namespace {

std::string describe_bytes(const RunFile &file) {
  if (file.condition == FileCondition::kComplete) return format_size(file.bytes_acknowledged);
  if (file.condition == FileCondition::kLoggedOnly) return format_size(file.bytes_acknowledged);
  return fmt::format("{} of {}", format_size(file.bytes_in_file), format_size(file.bytes_acknowledged));
}

std::string describe_total(const RunFiles &all) {
  std::array<std::uint64_t, kWords.size()> counts{all.others};
  std::uint64_t acknowledged = 0, in_file = 0;
  for (const auto &[path, file] : all.files) {
    ++counts.at(static_cast<std::size_t>(file.condition));
    acknowledged += file.bytes_acknowledged, in_file += file.bytes_in_file;
  }
  auto text = counted(all.files.size() + all.others, "file");
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts.at(i) > 0)
      text += fmt::format("{} {} {}", text.find(':') == std::string::npos ? ":" : ",", counts.at(i), kWords.at(i));
  return text + fmt::format("; {} of {} in the files\n", format_size(in_file), format_size(acknowledged));
}

std::string describe_missing(const RunFile &file) {
  std::string text;
  for (std::size_t i = 0; i < std::min(file.missing.size(), kMostRanges); ++i)
    text += fmt::format("  missing: {}\n", printable(file.missing[i]));
  if (file.missing.size() > kMostRanges)
    text += fmt::format("  … and {} more ranges (--json has all)\n", file.missing.size() - kMostRanges);
  return text;
}

std::string describe_alike(const RunFiles &all, FileCondition condition) {
  std::vector<const RunFile *> alike;
  for (const auto &[path, file] : all.files)
    if (file.condition == condition) alike.push_back(&file);
  auto unnamed = condition == FileCondition::kComplete ? all.others : 0;
  if (alike.size() > kMostAlike) unnamed += alike.size() - kMostAlike, alike.resize(kMostAlike);
  std::size_t width = 0;
  for (const auto *file : alike) width = std::max(width, describe_bytes(*file).size());
  std::string text;
  for (const auto *file : alike) {
    text += fmt::format("{:<11}  {:>{}}  {:<10}  {}{}{}{}\n", word_for(condition), describe_bytes(*file), width,
                        file->durability.empty() ? "-" : file->durability, printable(file->path),
                        file->is_open ? " (open)" : "", file->message.empty() ? "" : ": ", printable(file->message));
    text += describe_missing(*file);
  }
  if (unnamed > 0) text += fmt::format("{:<11}  … and {} more (--json)\n", word_for(condition), unnamed);
  return text;
}

/// Logs that lie in one folder are finished together.
std::string describe_logs(const std::vector<std::string> &logs) {
  std::map<std::string, std::vector<std::string>> by_folder;
  for (const auto &log : logs) by_folder[std::filesystem::path(log).parent_path().string()].push_back(log);
  std::string text;
  for (const auto &[folder, there] : by_folder)
    text += fmt::format("`nessie recover {0}` puts what is in {0} into the files\n",
                        printable(there.size() == 1 ? there.front() : folder));
  return text;
}

}  // namespace

std::string describe(const RunFiles &all) {
  auto text = describe_total(all);
  for (const auto condition :
       {FileCondition::kIncomplete, FileCondition::kLoggedOnly, FileCondition::kDraining, FileCondition::kComplete})
    text += describe_alike(all, condition);
  text += describe_logs(all.logs);
  for (const auto &what : all.unreadable) text += fmt::format("cannot be read: {}\n", printable(what));
  for (const auto &server : all.silent) text += fmt::format("no answer: {}\n", printable(server));
  return text;
}

json to_json(const RunFiles &all) {
  auto files = json::array();
  for (const auto &[path, file] : all.files) {
    files.push_back({{"path", to_utf8(path)},
                     {"state", word_for(file.condition)},
                     {"durability", file.durability.empty() ? json() : json(file.durability)},
                     {"open", file.is_open},
                     {"bytes_acknowledged", file.bytes_acknowledged},
                     {"bytes_in_file", file.bytes_in_file},
                     {"message", to_utf8(file.message)},
                     {"missing", staging::to_json(file.missing)}});
    if (!is_utf8(path)) files.back()["path_bytes"] = hex_bytes(path);
  }
  return {{"files", files},
          {"others_complete", all.others},
          {"logs", staging::to_json(all.logs)},
          {"unreadable", staging::to_json(all.unreadable)},
          {"silent", staging::to_json(all.silent)},
          {"exit_code", all.exit_code()}};
}

}  // namespace nessie::cli
