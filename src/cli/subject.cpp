// SPDX-License-Identifier: BSD-3-Clause
#include "subject.hpp"

#include "launcher.hpp"
#include "run_directory.hpp"

#include <base/config.hpp>
#include <base/fd.hpp>
#include <base/file.hpp>
#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <optional>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = 256;  // of a script, as the kernel reads it
constexpr int kMostInterpreters = 5;
constexpr std::size_t kLongestVersion = 40;
constexpr std::uintmax_t kLargestLibrary = 256 << 20;

Error error_of(Code code, const std::string &path, std::string_view what) {
  return Error{code, fmt::format("{}: {}", printable(path), what)};
}

Error why_not_found(const std::string &word) {
  std::error_code error;
  if (word.find('/') == std::string::npos) return error_of(Code::kNotFound, word, "there is no such program in PATH");
  if (!fs::exists(word, error)) return error_of(Code::kNotFound, word, "there is no such file");
  return error_of(Code::kRefused, word, "it cannot be executed: it is no regular file, or lacks the right (chmod +x)");
}

// --- rights -----------------------------------------------------------------------------------------------------------

/// Where the file is on a file system, or this is a process, that gives no rights.
bool gives_none(const std::string &path) {
  struct statvfs system {};
  const bool nosuid = ::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0;
  return nosuid || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

/// As the kernel: what counts is whether they are others than those of who runs it.
void note_rights(Subject &subject) {
  struct stat status {};
  if (::stat(subject.path.c_str(), &status) != 0) return;
  const bool user = (status.st_mode & S_ISUID) != 0;
  const bool group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  const bool capable = ::getxattr(subject.path.c_str(), "security.capability", nullptr, 0) > 0;
  const bool changes_user = user && status.st_uid != ::getuid(), changes_group = group && status.st_gid != ::getgid();
  const bool adds = capable && ::getuid() != 0;
  subject.rights = changes_user    ? "the setuid bit"
                   : changes_group ? "the setgid bit"
                   : capable       ? "capabilities"
                   : user          ? "the setuid bit"
                   : group         ? "the setgid bit"
                                   : "";
  subject.rights_count = (changes_user || changes_group || adds) && !gives_none(subject.path);
}

// --- scripts ----------------------------------------------------------------------------------------------------------

std::string head_of(const std::string &path) {
  std::array<char, kLongestLine> head{};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto got = file ? ::pread(file.get(), head.data(), head.size(), 0) : -1;
  return got <= 0 ? std::string() : std::string(head.data(), static_cast<std::size_t>(got));
}

/// What /usr/bin/env looks for in PATH.
std::string program_of_env(const std::vector<std::string> &words) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!words[i].starts_with('-') && words[i].find('=') == std::string::npos) return words[i];
  return {};
}

/// The interpreter of a script that begins so. Without a line that names one, a shell takes it.
std::string interpreter_in(const std::string &head) {
  if (!head.starts_with("#!")) return "/bin/sh";
  auto line = head.substr(2, head.find('\n') - 2);
  std::ranges::replace(line, '\t', ' ');
  std::vector<std::string> words;
  for (auto &word : split(line, " "))
    if (!word.empty()) words.push_back(word);
  if (words.empty()) return {};
  return fs::path(words[0]).filename() == "env" ? program_of_env(words) : words[0];
}

Status follow(const std::string &path, const Environment &environment, Subject &subject) {
  auto elf = read_elf(path);
  if (elf.ok()) {
    std::error_code error;
    const auto whole = fs::absolute(path, error);
    subject.path = error ? path : whole.lexically_normal().string();
    subject.objects.push_back({subject.path, std::move(*elf)});
    note_rights(subject);
    return {};
  }
  if (elf.code() != Code::kUnsupported) return error_of(elf.code(), path, elf.error().message);
  const auto head = head_of(path);
  if (head.empty() || head.find('\0') != std::string::npos)
    return error_of(Code::kBadMessage, path, "it is neither a program nor a script");
  subject.scripts.push_back(path);
  const auto interpreter = interpreter_in(head);
  const auto found = find_program(interpreter, environment);
  if (subject.scripts.size() > kMostInterpreters || found.empty())
    return error_of(Code::kBadMessage, path,
                    fmt::format("its interpreter, '{}', is not there", printable(interpreter)));
  return follow(found, environment, subject);
}

// --- PnetCDF ----------------------------------------------------------------------------------------------------------

bool is_version_digit(char character) {
  return character == '.' || std::isdigit(static_cast<unsigned char>(character)) != 0;
}

/// "1.12.3 of February 21, 2022", as the library's file has it, mostly behind the word "version".
std::string version_in(std::string_view bytes) {
  for (auto of = bytes.find(" of "); of != std::string_view::npos; of = bytes.find(" of ", of + 1)) {
    auto begin = of;
    while (begin > 0 && is_version_digit(bytes[begin - 1])) --begin;
    if (bytes.substr(begin, of - begin).find('.') == std::string_view::npos) continue;
    const auto before = bytes.substr(0, begin);
    if (!before.ends_with('\0') && !before.ends_with("version ")) continue;
    const auto text = bytes.substr(begin, kLongestVersion);
    const auto line = text.substr(0, text.find_first_of(std::string_view("\0$\n", 3)));
    return std::string(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return {};
}

}  // namespace

Result<Subject> examine(const std::vector<std::string> &command, const Environment &environment) {
  const auto place = find_program_behind(command, environment);
  const auto &word = command[place];
  const auto path = find_program(word, environment);
  if (path.empty()) return why_not_found(word);
  if (place + 1 < command.size() && find_launcher(command, environment) == place)
    return error_of(Code::kNotFound, word, "no word behind it is a program that is there and can be executed");
  Subject subject;
  if (auto followed = follow(path, environment, subject); !followed) return followed.error();
  const auto argument = std::find_if(command.begin() + static_cast<std::ptrdiff_t>(place) + 1, command.end(),
                                     [&](const auto &each) { return !find_program(each, environment).empty(); });
  if (argument != command.end()) subject.argument = *argument;
  subject.preloaded = split(environment.get("LD_PRELOAD").value_or(""), kPreloadSeparators);
  subject.preload_replaced = preload_in(command);
  subject.mismatch = mismatch(command, environment);
  return subject;
}

std::optional<Object> read_library(const std::string &path) {
  auto elf = read_elf(path);
  if (!elf || !elf->of_this_machine) return std::nullopt;
  Object object{path, std::move(*elf)};
  std::error_code error;
  if (!object.elf.defines("ncmpi_inq_libvers") || fs::file_size(path, error) > kLargestLibrary) return object;
  if (const auto bytes = read_file(path)) object.pnetcdf_version = version_in(*bytes);
  return object;
}

}  // namespace nessie::cli
