// SPDX-License-Identifier: BSD-3-Clause
#include "base/users_credential.hpp"

#include "base/config.hpp"
#include "base/file.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace nessie {
namespace {

constexpr std::size_t kMostBytes = 256;

/// Empty: this user has none. Not the environment's, which differs between ways to become this user.
std::string home() {
  std::array<char, 4096> text{};
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return {};
  return found->pw_dir != nullptr && found->pw_dir[0] == '/' ? found->pw_dir : "";
}

Result<Credential> read(const std::string &path) {
  auto text = read_private_file(path, kMostBytes);
  if (!text.ok()) return text.error();
  auto credential = Credential::from_hex(std::string_view(*text).substr(0, text->find('\n')));
  if (!credential.ok()) return Error{Code::kInvalidArgument, fmt::format("{}: {}", path, credential.error().message)};
  return credential;
}

/// The file of whoever was first, if several make it at once.
Result<Credential> read_or_make(const std::string &path) {
  auto known = read(path);
  if (known.ok() || known.code() != Code::kNotFound) return known;
  const auto made = write_first_private_file(path, Credential::generate().to_hex() + "\n");
  if (!made.ok() && made.code() != Code::kExists) return made.error();
  return read(path);
}

/// That in which nobody else can replace anything. kIo: there is none, nor can it be made. kRefused: others can.
Status make_folder(const std::string &path) {
  struct stat status {};
  if ((::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(path.c_str(), &status) != 0)
    return Error{Code::kIo, fmt::format("cannot make {}: {}", path, std::strerror(errno)), Scope::kProcess, errno};
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error{Code::kRefused, fmt::format("{}, where this user's credential is, must be a folder of his own that "
                                             "nobody else can write: chmod go-w, or remove it",
                                             path)};
  return {};
}

Result<Credential> in_folder(const std::string &path) {
  if (auto made = make_folder(path); !made.ok()) return made.error();
  return read_or_make(path + "/credential");
}

}  // namespace

Result<Credential> users_credential(const std::optional<std::string> &file) {
  if (file) return read_or_make(*file);
  if (const auto mine = home(); !mine.empty()) {
    const auto folder = mine + "/.config";
    (void)::mkdir(folder.c_str(), 0700);
    auto credential = in_folder(folder + "/nessie");
    if (credential.ok() || credential.code() != Code::kIo) return credential;
  }
  auto credential = in_folder(fmt::format("/tmp/nessie-{}", ::geteuid()));
  if (credential.ok() || credential.code() != Code::kIo) return credential;
  auto error = credential.error();
  error.message +=
      "; it is for this user's credential: set NESSIE_CREDENTIAL to 64 hexadecimal digits, the same for all "
      "processes, or to none, to let anybody connect";
  return error;
}

Result<Credential> Credential::of(const Config &config) {
  const auto given = config.get("credential");
  if (!given) return users_credential(config.get("credential_file"));
  return *given == "none" ? Credential() : from_hex(*given);
}

Result<Credential> Credential::of_setting(const Config &config, const std::string &setting) {
  const auto hex = config.get(setting);
  return hex ? from_hex(*hex) : Credential();
}

}  // namespace nessie
