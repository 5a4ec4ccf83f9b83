// SPDX-License-Identifier: BSD-3-Clause
#include "standing.hpp"

#include <base/file.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";
constexpr std::size_t kLongestName = 64, kLargestRecord = 1 << 20;

Result<fs::path> folder() {
  const char *state = std::getenv("XDG_STATE_HOME"), *home = std::getenv("HOME");
  fs::path path;
  if (state != nullptr && *state == '/')
    path = fs::path(state) / "nessie/serve";
  else if (home != nullptr && *home == '/')
    path = fs::path(home) / ".local/state/nessie/serve";
  else
    return Error{Code::kNotFound, "neither HOME nor XDG_STATE_HOME says where to keep what is served: set one"};
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  if (error)
    return Error{Code::kIo, fmt::format("cannot make {}: {}; set XDG_STATE_HOME", path.string(), error.message()),
                 Scope::kProcess, error.value()};
  return path;
}

Status check_name(const std::string &name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (!name.empty() && name.size() <= kLongestName && name.front() != '.' && std::ranges::all_of(name, is_plain))
    return {};
  return Error{Code::kInvalidArgument,
               fmt::format("'{}' is no name: it has 1 to {} letters, digits, '_', '-' and '.', and begins with none of "
                           "the last",
                           printable(name), kLongestName)};
}

nlohmann::json to_json(const Standing &standing) {
  const auto &keeper = standing.keeper;
  return {{"name", standing.name},
          {"host", keeper.host},
          {"boot", keeper.boot},
          {"pid_space", keeper.pid_space},
          {"pid", keeper.pid},
          {"started", keeper.started},
          {"urls", standing.urls},
          {"credential", standing.credential},
          {"boards", standing.boards},
          {"staging", standing.has_staging},
          {"directory", standing.has_directory}};
}

Result<Standing> from_json(const std::string &text, const std::string &path) {
  try {
    const auto json = nlohmann::json::parse(text);
    Standing standing;
    auto &keeper = standing.keeper;
    json.at("name").get_to(standing.name), json.at("urls").get_to(standing.urls);
    json.at("credential").get_to(standing.credential), json.at("boards").get_to(standing.boards);
    json.at("staging").get_to(standing.has_staging), json.at("directory").get_to(standing.has_directory);
    json.at("host").get_to(keeper.host), json.at("boot").get_to(keeper.boot), json.at("pid").get_to(keeper.pid);
    json.at("pid_space").get_to(keeper.pid_space), json.at("started").get_to(keeper.started);
    return standing;
  } catch (const nlohmann::json::exception &) {
    return Error{Code::kBadMessage, fmt::format("{} is no record of `nessie serve`: remove it", path)};
  }
}

Result<std::string> only_name() {
  auto names = standing_names();
  if (!names) return names.error();
  if (names->size() == 1) return names->front();
  if (names->empty()) return Error{Code::kNotFound, "nothing is served: `nessie serve` starts servers"};
  return Error{Code::kNotFound, fmt::format("say which: {}", fmt::join(*names, ", "))};
}

}  // namespace

Result<StandingFiles> StandingFiles::of(const std::string &name) {
  if (auto status = check_name(name); !status.ok()) return status.error();
  const auto in = folder();
  if (!in) return in.error();
  const auto path = (*in / name).string();
  return StandingFiles{path + std::string(kSuffix), path + ".log", path + ".stop", path + ".end"};
}

bool StandingFiles::are_to_stop() const {
  std::error_code ignored;
  return fs::exists(stop, ignored);
}

Result<std::vector<std::string>> standing_names() {
  const auto in = folder();
  if (!in) return in.error();
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(*in, ignored)) {
    const auto file = entry.path().filename().string();
    if (!file.ends_with(kSuffix)) continue;
    const auto name = file.substr(0, file.size() - kSuffix.size());
    if (check_name(name).ok()) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Status write_standing(const Standing &standing) {
  const auto files = StandingFiles::of(standing.name);
  if (!files) return files.error();
  return write_first_private_file(files->record, to_json(standing).dump(2) + "\n");
}

Result<Standing> find_standing(const std::string &asked) {
  const auto name = asked.empty() ? only_name() : Result<std::string>(asked);
  if (!name) return name.error();
  const auto files = StandingFiles::of(*name);
  if (!files) return files.error();
  const auto text = read_private_file(files->record, kLargestRecord);
  if (text.code() == Code::kNotFound) {
    const auto names = standing_names();
    const bool others = names.ok() && !names->empty();
    return Error{Code::kNotFound, fmt::format("nothing is served under '{}'; {}", *name,
                                              others ? fmt::format("there is: {}", fmt::join(*names, ", "))
                                                     : "`nessie serve` starts servers")};
  }
  if (!text) return text.error();
  auto standing = from_json(*text, files->record);
  if (!standing) return standing.error();
  const auto found = service::look_for(standing->keeper);
  if (found.life == service::Life::kGone)
    return Error{Code::kPeerLost,
                 fmt::format("what was served under '{}' was killed: {}; `nessie clean` removes what is left, `nessie "
                             "serve --name {}` serves it again",
                             *name, found.why, *name)};
  return standing;
}

}  // namespace nessie::cli
