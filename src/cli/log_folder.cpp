// SPDX-License-Identifier: BSD-3-Clause
#include "log_folder.hpp"

#include "run_lock.hpp"

#include <base/file.hpp>
#include <base/printable.hpp>
#include <base/random.hpp>
#include <base/storage.hpp>
#include <services/staging/durability.hpp>

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace nessie::cli {

namespace {

constexpr const char *kNote = "/log.folder";

std::string default_base() {
  const char *said = std::getenv("TMPDIR");
  return folder_on_disk().value_or(said != nullptr && *said == '/' ? said : "/tmp");
}

}  // namespace

bool keeps_files(std::string_view durability) {
  const auto rules = staging::DurabilityRules::parse(durability);
  return rules.ok() && !rules->keeps_nothing();
}

Result<LogFolder> LogFolder::choose(const std::string &base, std::string_view durability) {
  const auto rules = staging::DurabilityRules::parse(durability);
  if (!rules.ok()) return rules.error();
  const bool is_needed = !base.empty() || !rules->keeps_nothing();
  std::error_code ignored;
  const auto in = base.empty() ? default_base() : std::filesystem::absolute(base, ignored).string();
  if (!is_needed) return LogFolder(fmt::format("{}/{}{:016x}", in, kLogFolderPrefix, random_u64()));
  auto path = fmt::format("{}/{}XXXXXX", in, kLogFolderPrefix);
  if (mkdtemp(path.data()) != nullptr) {
    LogFolder made(std::move(path));
    made.lock_ = lock_folder(made.path_);
    return made;
  }
  const int cause = errno;
  return Error{Code::kIo,
               fmt::format("cannot make a folder for logs in {}: {}; --log says where else", printable(in),
                           std::strerror(cause)),
               Scope::kProcess, cause};
}

bool LogFolder::remove() const { return path_.empty() || ::rmdir(path_.c_str()) == 0 || errno == ENOENT; }

void LogFolder::note_in(const std::string &run_directory) const { (void)write_file(run_directory + kNote, path_); }

std::string logged_in(const std::string &run_directory) { return first_line_of(run_directory + kNote); }

std::string describe_left(const std::string &folder) {
  return fmt::format("what is not in the files is kept in {0}: `nessie recover {0}` puts it there", printable(folder));
}

}  // namespace nessie::cli
