// SPDX-License-Identifier: BSD-3-Clause
#include "logs.hpp"

#include "log_folder.hpp"

#include <base/fd.hpp>
#include <base/printable.hpp>
#include <nssi/nssi.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kServerPrefix = "server.";

/// The N of "server.N".
std::optional<int> index_in(const std::string &name) {
  int index = 0;
  if (!name.starts_with(kServerPrefix)) return std::nullopt;
  const auto *begin = name.data() + kServerPrefix.size(), *end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, index);
  return error == std::errc() && rest == end && index >= 0 ? std::optional(index) : std::nullopt;
}

}  // namespace

std::string Logs::path(int server) const { return fmt::format("{}/{}{}", folder, kServerPrefix, server); }

Result<Logs> find_logs(const std::string &given) {
  std::error_code error;
  auto path = fs::absolute(given, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const auto name = path.filename().string();
  const auto only = index_in(name);
  Logs logs{path.string(), only ? path.parent_path().string() : path.string(), {}, 1};
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error) && (only || name.starts_with(kLogFolderPrefix)))
      return logs;  // it was recovered before
    return Error{Code::kNotFound, fmt::format("{} is no folder of logs: `nessie run` says where a run has left one",
                                              printable(path.string()))};
  }
  for (fs::directory_iterator entry(logs.folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto index = index_in(entry->path().filename().string())) {
      logs.of = std::max(logs.of, *index + 1);
      if (!only || *only == *index) logs.servers.push_back(*index);
    }
  if (error) return Error{Code::kIo, fmt::format("cannot read {}: {}", printable(logs.folder), error.message())};
  if (logs.servers.empty() && !name.starts_with(kLogFolderPrefix))
    return Error{Code::kNotFound,
                 fmt::format("there is no log in {}: what a run has left is named nessie-log.…, and has "
                             "a folder server.N for each server",
                             printable(path.string()))};
  std::ranges::sort(logs.servers);
  return logs;
}

bool is_log_in_use(const std::string &log) {
  const Fd lock(::open((log + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<staging::Left> look_at_log(const std::string &log) {
  nssi::RuntimeOptions options;
  options.endpoint.transports = {"inproc"};
  options.endpoint.listen = false;
  const auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) return runtime.error();
  Result<staging::Left> left = Error{Code::kCancelled, "nothing was looked at"};
  (*runtime)->spawn([&] {
    left = staging::look_at_journal(**runtime, log);
    (*runtime)->stop();
  });
  (*runtime)->run();
  return left;
}

}  // namespace nessie::cli
