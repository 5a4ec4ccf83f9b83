// SPDX-License-Identifier: BSD-3-Clause
#include "commands.hpp"

#include "inspector.hpp"
#include "logs.hpp"
#include "run_files.hpp"
#include "run_lock.hpp"
#include "speech.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/file.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string_view>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{2}, kPatienceWithAll{10};  // with servers that do not answer

/// As nssi::find() takes it, and no folder or file.
bool is_place(const std::string &what) {
  constexpr std::array<std::string_view, 4> kKinds = {"file:", "pmix:", "dir:", "env:"};
  return what.find("://") != std::string::npos ||
         std::ranges::any_of(kKinds, [&](auto kind) { return what.starts_with(kind); });
}

/// One after the other: what cannot be reached holds up all that its runtime does.
void ask(Inspector &inspector, const std::vector<std::string> &urls, RunFiles &all) {
  const auto deadline = Deadline::in(kPatienceWithAll);
  for (const auto &url : urls) {
    const auto answer = inspector.files(url, Deadline::in(kPatience).earlier(deadline));
    if (answer.ok())
      all.add(*answer);
    else
      all.silent.push_back(fmt::format("{}: {}", url, answer.error().message));
  }
}

/// Of the run that `place` says; empty: of the one that this is under.
Status ask_run(const std::string &place, RunFiles &all) {
  const auto config = Config::load();
  if (!config) return config.error();
  auto urls = split(config->get_or("servers", ""), " \t\n");
  if (place.empty() && urls.empty())
    return Error{Code::kNotFound,
                 "NESSIE_SERVERS names no servers; run this under `nessie run`, or say where a process is, or which "
                 "folder is left"};
  const auto inspector = Inspector::open(*config);
  if (!inspector) return inspector.error();
  if (!place.empty()) {
    auto found = (*inspector)->find(place);
    if (!found) return found.error();
    urls = *std::move(found);
  }
  ask(**inspector, urls, all);
  return {};
}

/// With the job's secret, which the folder does not have.
Status ask_living(const std::string &folder, RunFiles &all) {
  std::vector<std::string> urls;
  for (int index = 0; index < NESSIE_MOST_SERVERS; ++index)
    if (auto url = first_line_of(fmt::format("{}/server.{}.url", folder, index)); !url.empty())
      urls.push_back(std::move(url));
  const auto config = Config::load();
  if (!config) return config.error();
  const auto inspector = Inspector::open(*config);
  if (!inspector) return inspector.error();
  ask(**inspector, urls, all);
  return {};
}

Status look_at_run(const std::string &folder, RunFiles &all) {
  const auto lock = lock_abandoned_run_folder(folder);
  if (!lock) return ask_living(folder, all);
  add_left(folder, all);
  return {};
}

Status look_at_logs(const std::string &folder, RunFiles &all) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored))
    return Error{Code::kNotFound, fmt::format("there is no {}: if it was a folder of logs that `nessie recover` has "
                                              "finished, all is in the files",
                                              printable(folder))};
  const auto logs = find_logs(folder);
  if (!logs) return logs.error();
  add_logged(*logs, all);
  return {};
}

Status gather(const std::string &what, RunFiles &all) {
  std::error_code ignored;
  if (what.empty() || is_place(what)) return ask_run(what, all);
  if (fs::is_regular_file(what, ignored)) {
    if (add_told(what, all)) return {};
    return Error{Code::kBadMessage,
                 fmt::format("{} is no summary of a run: name one that `nessie run --json` has written, or a folder",
                             printable(what))};
  }
  auto path = fs::absolute(what, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return is_run_folder_name(path.filename().string()) && fs::is_directory(path, ignored)
             ? look_at_run(path.string(), all)
             : look_at_logs(path.string(), all);
}

}  // namespace

int files(const FilesOptions &options) {
  RunFiles all;
  if (auto status = gather(options.what, all); !status.ok())
    return (void)say_failure("files", status.error().message), 2;
  if (options.json)
    fmt::print("{}\n", to_json(all).dump(2));
  else
    fmt::print("{}", describe(all));
  return all.exit_code();
}

}  // namespace nessie::cli
