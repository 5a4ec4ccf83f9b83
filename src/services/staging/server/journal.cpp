// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/journal.hpp>

#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace staging {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::service::LogDamage;
using nessie::service::LogRecord;

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostGone = 256;  // that clients have no answer of, at most
constexpr std::uint64_t kGoneSpan = 4 << 20;

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
  }
}

bool Journal::is_in(const std::string &folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / "lock", ignored);
}

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, nessie::Budget &budget,
                                               const std::string &folder) {
  std::error_code ignored;  // open_disk_store() tells
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  auto store = nessie::service::open_disk_store(runtime, {.directory = folder});
  if (!store.ok()) return store.error();
  auto journal = open(runtime, budget, *std::move(store));
  if (journal.ok()) (*journal)->folder_ = folder;
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, nessie::Budget &budget,
                                               std::unique_ptr<nessie::service::LogStore> store) {
  auto log = Log::open(runtime, budget, std::move(store), {.name = "staging.log"});
  if (!log.ok()) return log.error();
  return std::unique_ptr<Journal>(new Journal(*std::move(log)));
}

void Journal::remove(std::unique_ptr<Journal> journal) {
  const auto folder = journal->folder_;
  journal.reset();
  std::error_code ignored;
  if (!folder.empty()) fs::remove_all(folder, ignored);
}

// --- what is to be kept ----------------------------------------------------------------------------------------------

Status Journal::note_file(FileToken token, const std::function<LoggedFile()> &look) {
  needed_since_.try_emplace(token, log_->end());
  for (;;) {
    const auto before = notes_;
    const auto status = append(Logged::kFile, look());
    if (!status.ok() || notes_ == before + 1) return status;
  }
}

std::uint64_t Journal::bytes_since(FileToken token) const {
  const auto found = needed_since_.find(token);
  return found != needed_since_.end() ? log_->end() - found->second : 0;
}

void Journal::need_since(FileToken token, Lsn since) {
  const auto found = needed_since_.find(token);
  if (found == needed_since_.end()) return;
  found->second = std::max(found->second, since);
  release();
}

Status Journal::note(const LoggedWrite &write, std::span<const std::byte> data) {
  return append(Logged::kWrite, write, data);
}

Status Journal::note_gone(FileToken token) {
  auto noted = append(Logged::kGone, token);
  needed_since_.erase(token);
  gone_.push_back(token);
  if (gone_.size() > kMostGone) gone_.pop_front();
  release();
  return noted;
}

/// Whoever has had no answer to the close of a file asks for it again: what is released must not take with it that the
/// file is gone.
void Journal::note_gone_again() {
  if (log_->end() - gone_since_ < kGoneSpan) return;
  gone_before_ = std::exchange(gone_since_, log_->end());
  for (const auto token : gone_) (void)append(Logged::kGone, token);
}

bool Journal::has_noted(std::uint64_t client, FileToken token) const {
  const auto noted = noted_clients_.find(client);
  const auto needed = needed_since_.find(token);
  return noted != noted_clients_.end() && needed != needed_since_.end() && noted->second >= needed->second;
}

void Journal::release() {
  note_gone_again();
  auto needed = gone_.empty() ? log_->end() : gone_before_;  // what was noted again last may be on its way yet
  for (const auto &[token, since] : needed_since_) needed = std::min(needed, since);
  log_->release({0, needed});
}

// --- what somebody has left ------------------------------------------------------------------------------------------

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
      case Logged::kWrite: return with<LoggedWrite>(record, [&](const auto &one) { add(one); });
      case Logged::kClose: return with<LoggedClose>(record, [&](const auto &one) { add(one); });
      case Logged::kGone: return with<FileToken>(record, [&](FileToken token) { end(token); });
      case Logged::kClient: return with<LoggedClient>(record, [&](const auto &one) { add(one); });
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
  LeftFile *find(FileToken token) {
    const auto found = left_.files.find(token);
    return found == left_.files.end() ? nullptr : &found->second;
  }
  void add(const LoggedFile &file, Lsn at) {
    left_.gone.erase(file.file);
    left_.files.try_emplace(file.file, LeftFile{file, at, at, {}, {}, {}}).first->second.file = file;
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
    file->definitions.push_back({std::move(definition), defined.nc_error});
  }
  void add(const LoggedWrite &write) {
    auto *file = find(write.file);
    if (file == nullptr || !write.is_last) return;
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

  Left &left_;
};

}  // namespace

Result<Left> Journal::look() {
  Left left;
  Gathering gathering(left);
  const auto status = log_->replay(0, {.on_record = [&](const LogRecord &record) { return gathering.take(record); },
                                       .on_damage = [&](const LogDamage &damage) { left.damage.push_back(damage); },
                                       .skims = true});
  if (!status.ok()) return status.error();
  for (const auto &[token, file] : left.files) needed_since_[token] = file.since;
  for (const auto &[client, known] : left.clients) noted_clients_.try_emplace(client, 0);
  gone_.assign(left.gone.begin(), left.gone.end());
  release();
  return left;
}

Status Journal::replay(const Left &left, const Visitor &visitor) {
  auto from = log_->end();
  for (const auto &[token, file] : left.files) from = std::min(from, file.in_file);
  const auto is_left = [&](FileToken token, Lsn at) {
    const auto found = left.files.find(token);
    return found != left.files.end() && found->second.in_file <= at;
  };
  return log_->replay(from, {.on_record = [&](const LogRecord &record) -> Status {
                               if (record.kind != static_cast<std::uint16_t>(Logged::kWrite)) return {};
                               const auto write = xdr::decode<LoggedWrite>(record.head);
                               if (!write.ok() || !is_left(write->file, record.at.begin)) return {};
                               return visitor.on_write(*write, record.data);
                             },
                             .on_damage = visitor.on_damage});
}

}  // namespace staging
