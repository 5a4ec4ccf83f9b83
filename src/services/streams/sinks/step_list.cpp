// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/step_list.hpp"

#include "services/streams/sinks/disk.hpp"

#include <base/file.hpp>
#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

namespace nessie::streams::sinks {

namespace {

constexpr const char *kEnding = ".steps";
constexpr int kVersion = 1;
constexpr char kBehind = '\t';

/// "nessie-steps 1 IDENTITY NAME"
std::string head_of(const Origin &origin) {
  return fmt::format("nessie-steps {} {:016x} {}\n", kVersion, origin.identity, origin.stream);
}

std::optional<Origin> parse_head(const std::string &line) {
  int version = 0, name_at = 0;
  std::uint64_t identity = 0;
  const int found = std::sscanf(line.c_str(), "nessie-steps %d %16" SCNx64 " %n", &version, &identity, &name_at);
  if (found != 2 || version != kVersion || name_at == 0) return std::nullopt;
  return Origin{line.substr(static_cast<std::size_t>(name_at)), identity};
}

/// "NUMBER RECORDS", and variables that are behind, each after a tabulator, which no name has.
std::string line_of(const StepList::Entry &entry) {
  auto line = fmt::format("{} {}", entry.number, entry.records);
  for (const auto &name : entry.behind) line += kBehind + name;
  return line + "\n";
}

std::optional<StepList::Entry> parse_entry(const std::string &line) {
  StepList::Entry entry;
  int end = 0;
  const int found = std::sscanf(line.c_str(), "%" SCNu64 " %" SCNd64 "%n", &entry.number, &entry.records, &end);
  auto at = static_cast<std::size_t>(end);
  if (found != 2 || entry.records < 0 || (at < line.size() && line[at] != kBehind)) return std::nullopt;
  while (at < line.size()) {
    const auto next = std::min(line.find(kBehind, at + 1), line.size());
    entry.behind.insert(line.substr(at + 1, next - at - 1));
    at = next;
  }
  return entry;
}

Error no_list(const std::string &path) {
  return {Code::kBadMessage, fmt::format("{} is no list of the steps that a file has", printable(path))};
}

}  // namespace

bool StepList::is_beside(const std::string &path) { return ::access((path + kEnding).c_str(), F_OK) == 0; }

Status StepList::remove(const std::string &path) {
  return ::unlink((path + kEnding).c_str()) == 0 || errno == ENOENT ? Status()
                                                                    : Status(cannot("remove", path + kEnding));
}

Result<StepList> StepList::create(const std::string &path, const Origin &origin) {
  Fd fd(::open((path + kEnding).c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_TRUNC, 0666));
  if (!fd) return cannot("write", path + kEnding);
  StepList list(path + kEnding, std::move(fd), origin);
  if (auto written = list.write(head_of(origin)); !written.ok()) return written.error();
  if (auto synced = sync_folder_of(path); !synced.ok()) return synced.error();
  return list;
}

Result<StepList> StepList::open(const std::string &path) {
  const auto text = read_file(path + kEnding);
  if (!text.ok()) return text.error();
  Fd fd(::open((path + kEnding).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return cannot("open", path + kEnding);
  auto end = text->find('\n');
  const auto origin = end == std::string::npos ? std::nullopt : parse_head(text->substr(0, end));
  if (!origin) return no_list(path + kEnding);
  StepList list(path + kEnding, std::move(fd), *origin);
  for (auto begin = end + 1; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto entry = parse_entry(text->substr(begin, end - begin));
    if (!entry) return no_list(path + kEnding);
    list.last_ = *entry;
  }
  list.end_ = static_cast<std::int64_t>(text->rfind('\n') + 1);
  if (::ftruncate(list.fd_.get(), list.end_) != 0) return cannot("write", list.path_);
  return list;
}

Status StepList::add(const Entry &entry) {
  if (auto written = write(line_of(entry)); !written.ok()) return written;
  last_ = entry;
  return {};
}

Status StepList::write(const std::string &line) {
  const auto size = static_cast<ssize_t>(line.size());
  if (::pwrite(fd_.get(), line.data(), line.size(), end_) != size) return cannot("write", path_);
  if (auto synced = sync_file(fd_, path_); !synced.ok()) return synced;
  end_ += size;
  return {};
}

}  // namespace nessie::streams::sinks
