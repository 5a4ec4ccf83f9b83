// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/left.hpp>

#include <services/staging/handle.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

namespace staging {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::service::Log;
using nessie::service::LogDamage;
using nessie::service::LogRecord;

namespace {

/// Gathers from the records what a server has left.
class Gathering {
 public:
  explicit Gathering(Left &left) : left_(left) {}

  Status take(const LogRecord &record) {
    switch (static_cast<Logged>(record.kind)) {
      case Logged::kFile: return with<LoggedFile>(record, [&](const auto &file) { add(file, record.at.begin); });
      case Logged::kDefinition: return with<LoggedDefinition>(record, [&](const auto &one) { add(one); });
      case Logged::kDefined: return with<LoggedDefined>(record, [&](const auto &one) { add(one); });
      case Logged::kWrite: return with<LoggedWrite>(record, [&](const auto &one) { add(one, record.data_bytes); });
      case Logged::kClose: return with<LoggedClose>(record, [&](const auto &one) { add(one); });
      case Logged::kGone: return with<FileToken>(record, [&](FileToken token) { end(token); });
      case Logged::kClient: return with<LoggedClient>(record, [&](const auto &one) { add(one); });
      case Logged::kPart: return add_part(record);
      case Logged::kMoved: return with<FileToken>(record, [&](FileToken token) { forget(token); });
      case Logged::kStillGone: return with<FileToken>(record, [&](FileToken token) { note_gone(token); });
      case Logged::kFill: return with<FileToken>(record, [&](FileToken token) { filled(token, record.at.begin); });
    }
    return Error{Code::kUnsupported, fmt::format("the log has a record of kind {}, of a later version", record.kind)};
  }

 private:
  template <class T, class Take> Status with(const LogRecord &record, Take take) {
    const auto what = xdr::decode<T>(record.head);
    if (!what.ok()) return Error{Code::kBadMessage, "the log has a record that is none of a staging server's"};
    take(*what);
    return {};
  }
  /// What is told of a record of parts is at its first one. One of which a part is damaged is none.
  Status add_part(const LogRecord &record) {
    if (record.head.size() < kPartHeadBytes)
      return Error{Code::kBadMessage, "the log has a part of a record that is none"};
    const auto number = [&](std::size_t i) { return *xdr::decode<std::uint64_t>(record.head.subspan(8 * i, 8)); };
    const LoggedPart part{number(0), number(1), number(2)};
    if (part.at == 0) parts_[part.whole] = {record.at.begin, {}};
    const auto found = parts_.find(part.whole);
    if (found == parts_.end() || found->second.head.size() != part.at) return {};
    auto &[since, head] = found->second;
    head.insert(head.end(), record.head.begin() + kPartHeadBytes, record.head.end());
    if (part.kind == 0) return {};
    const auto whole = std::move(parts_.extract(found).mapped());
    auto as_one = record;
    as_one.kind = static_cast<std::uint16_t>(part.kind), as_one.at.begin = whole.since, as_one.head = whole.head;
    return part.kind == static_cast<std::uint64_t>(Logged::kPart) ? Status() : take(as_one);
  }
  LeftFile *find(FileToken token) {
    const auto found = left_.files.find(token);
    return found == left_.files.end() ? nullptr : &found->second;
  }
  void add(const LoggedFile &file, Lsn at) {
    left_.gone.erase(file.file);
    left_.files.try_emplace(file.file, LeftFile{file, at, at, {}, 0, {}, 0}).first->second.file = file;
  }
  void add(const LoggedDefinition &definition) {
    auto *file = find(definition.args.file);
    if (file == nullptr) return;
    file->unfinished = definition;
    if (!definition.is_amend) file->file.settled = {}, file->file.later.clear();  // clients count anew
  }
  void add(const LoggedDefined &defined) {
    auto *file = find(defined.file);
    if (file == nullptr || !file->unfinished) return;
    auto definition = *std::exchange(file->unfinished, std::nullopt);
    file->file.definitions = defined.number;
    file->defined_as = defined.nc_error;
    note_fill_modes(file->file, definition.args.definitions);
    file->file.is_defined = file->file.is_defined || (!definition.is_amend && defined.nc_error == 0);
    const auto is_known = [&](const CarriedOut &one) { return one.definition.args.number == defined.number; };
    if (defined.number != 0 && std::ranges::any_of(file->definitions, is_known)) return;  // it was noted once more
    file->definitions.push_back({std::move(definition), defined.nc_error});
  }
  void add(const LoggedWrite &write, std::uint64_t bytes) {
    auto *file = find(write.file);
    if (file == nullptr) return;
    file->bytes += bytes;
    if (!write.is_last) return;
    file->file.num_records = std::max(file->file.num_records, write.num_records);
    auto &client = left_.clients[write.client];
    client.client = write.client;
    client.answered = std::max(client.answered, write.answered);
    std::erase_if(client.done, [&](auto number) { return number <= client.answered; });
    client.done.push_back(write.number);
    auto &later = file->file.later;
    const auto call = std::ranges::find(later, write.call, &LoggedCall::call);
    if (call == later.end())
      later.push_back({write.call, 1});
    else
      ++call->writes;
  }
  void filled(FileToken token, Lsn at) {
    if (auto *file = find(token)) file->in_file = at;
  }
  void add(const LoggedClose &close) {
    auto *file = find(close.file);
    if (file == nullptr) return;
    file->file.is_closed = true;
    file->file.num_records = std::max(file->file.num_records, close.num_records);
  }
  void add(const LoggedClient &client) {
    auto &known = left_.clients[client.client];
    known = client;
  }
  void end(FileToken token) {
    left_.files.erase(token);
    left_.gone.insert(token);
  }
  void note_gone(FileToken token) {
    if (find(token) == nullptr) left_.gone.insert(token);  // otherwise it was attached again meanwhile
  }
  void forget(FileToken token) {
    left_.files.erase(token);
    left_.gone.erase(token);
  }

  struct Parts {
    Lsn since = 0;
    std::vector<std::byte> head;
  };
  Left &left_;
  std::map<std::uint64_t, Parts> parts_;  ///< of records of which the last one is to come
};

}  // namespace

void note_fill_modes(LoggedFile &file, const std::vector<Definition> &definitions) {
  auto &modes = file.fill_modes;
  for (const auto &definition : definitions) {
    const bool is_of_all = definition.kind == DefinitionKind::kSetFill;
    if (!is_of_all && definition.kind != DefinitionKind::kDefVarFill) continue;
    std::erase_if(modes, [&](const Definition &mode) {
      return is_of_all || (mode.kind == definition.kind && mode.varid == definition.varid);
    });
    modes.push_back(definition);
    modes.back().value.clear();  // it is an attribute of the file
  }
}

Log::Visitor gathering(Left &left) {
  return {
      .on_record = [gathering = Gathering(left)](const LogRecord &record) mutable { return gathering.take(record); },
      .on_damage = [&left](const LogDamage &damage) { left.damage.push_back(damage); },
      .skims = true};
}

Result<Left> look_at_journal(nssi::Runtime &runtime, const std::string &folder) {
  auto store = nessie::service::open_disk_store(runtime, {.directory = folder, .is_read_only = true});
  if (!store.ok()) return store.error();
  Left left;
  if (auto status = Log::look(runtime, *std::move(store), gathering(left)); !status.ok()) return status.error();
  return left;
}

nessie::Fd find_in_folder(const LoggedFile &file, int access) {
  const auto folder = std::filesystem::path(file.path).parent_path();
  const std::unique_ptr<DIR, int (*)(DIR *)> names(::opendir(folder.c_str()), &::closedir);
  const dirent *name = nullptr;
  while (names && file.born_ns != 0 && (name = ::readdir(names.get())) != nullptr) {
    if (name->d_ino != file.identity.inode) continue;
    nessie::Fd found(::openat(::dirfd(names.get()), name->d_name, access | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (found && identity_of(found.get()) == file.identity && born_ns(found.get()) == file.born_ns) return found;
  }
  return {};
}

Error why_not_found(int cause) {
  if (cause == 0)
    return {Code::kNotFound, "another file has its name now: rename the one that was written to this name again"};
  if (cause == ENOENT)
    return {Code::kNotFound, "it was moved to another folder, or removed: give it the name again that it had"};
  return {Code::kIo, fmt::format("it cannot be opened: {}", std::strerror(cause)), nessie::Scope::kOperation, cause};
}

}  // namespace staging
