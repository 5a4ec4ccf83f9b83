// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/journal.hpp>

#include <base/crc32c.hpp>
#include <base/random.hpp>

#include <xdr/codec.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <vector>

namespace staging {

using nessie::Result;
using nessie::Status;
using nessie::service::LogRecord;

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostGone = 256;  // that clients have no answer of, at most
constexpr std::uint64_t kGoneSpan = 4 << 20, kShareOfGone = 8;
constexpr std::uint64_t kAround = 2 * nessie::service::kLogAlignment;  // the data of a record, at most: in its block

}  // namespace

bool Journal::is_in(const std::string &folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / "lock", ignored);
}

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, nessie::Budget &budget,
                                               const nessie::service::DiskStoreOptions &options,
                                               const JournalLimits &limits) {
  std::error_code ignored;  // open_disk_store() tells
  fs::create_directories(fs::path(options.directory).parent_path(), ignored);
  auto store = nessie::service::open_disk_store(runtime, options);
  if (!store.ok()) return store.error();
  auto journal = open(runtime, budget, *std::move(store), limits);
  if (journal.ok()) (*journal)->folder_ = options.directory;
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, nessie::Budget &budget,
                                               std::unique_ptr<nessie::service::LogStore> store,
                                               const JournalLimits &limits) {
  auto log = Log::open(runtime, budget, std::move(store), {.name = "staging.log"});
  if (!log.ok()) return log.error();
  return std::unique_ptr<Journal>(new Journal(runtime, *std::move(log), limits));
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
  std::erase(gone_, token);  // it was detached, and is attached again
  return append_latest(Logged::kFile, look);
}

Status Journal::note_client(std::uint64_t client, const std::function<LoggedClient()> &look) {
  noted_clients_[client] = end();
  return append_latest(Logged::kClient, look);
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

Status Journal::note(const LoggedWrite &write, Log::Bulk data, std::uint64_t size_bytes, std::uint32_t sum) {
  const auto head = xdr::encode(write);
  auto at = log_->append(static_cast<std::uint16_t>(Logged::kWrite), head, std::move(data), size_bytes,
                         ~nessie::join_crc32c(~std::uint32_t{0}, sum, size_bytes));
  ++notes_;
  return at.ok() ? Status() : at.error();
}

Status Journal::note_gone(FileToken token) {
  if (gone_.empty()) gone_since_ = log_->end();
  gone_.push_back(token);
  if (gone_.size() > kMostGone) gone_.pop_front();
  return note_not_needed(Logged::kGone, token);
}

Status Journal::note_moved(FileToken token) {
  std::erase(gone_, token);
  return note_not_needed(Logged::kMoved, token);
}

Status Journal::note_not_needed(Logged kind, FileToken token) {
  auto noted = append(kind, token);
  if (noted.ok()) noted = await_written();  // before anything is released that tells of the file
  needed_since_.erase(token);
  filled_.erase(token);
  release();
  return noted;
}

/// Whoever has had no answer to the close of a file asks for it again: what is released must not take with it that the
/// file is gone.
void Journal::note_gone_again() {
  const auto since = log_->end();
  if (gone_.empty() || since - gone_since_ < std::min(kGoneSpan, limits_.crowded_bytes / kShareOfGone)) return;
  const auto tokens = gone_;
  for (const auto token : tokens)
    if (is_gone(token) && !append(Logged::kStillGone, token).ok()) return;
  if (await_written().ok()) gone_since_ = std::max(gone_since_, since);
}

bool Journal::has_noted(std::uint64_t client, FileToken token) const {
  const auto noted = noted_clients_.find(client);
  const auto needed = needed_since_.find(token);
  return noted != noted_clients_.end() && needed != needed_since_.end() && noted->second >= needed->second;
}

bool Journal::has(FileToken token) const { return needed_since_.contains(token) || is_gone(token); }

bool Journal::is_gone(FileToken token) const { return std::ranges::find(gone_, token) != gone_.end(); }

Lsn Journal::needed() const {
  auto needed = gone_.empty() ? log_->end() : gone_since_;
  for (const auto &[token, since] : needed_since_) needed = std::min(needed, since);
  return needed;
}

void Journal::release() {
  note_gone_again();
  log_->release({0, needed()});
  cannot_be_shortened = false;
  released_.notify_all();
}

// --- its room --------------------------------------------------------------------------------------------------------

std::uint64_t Journal::taken_bytes() const {
  const auto segment_bytes = log_->segment_bytes();
  return log_->end() - needed() / segment_bytes * segment_bytes;
}

std::optional<Journal::Room> Journal::take_room(std::uint64_t size_bytes) {
  const auto taken = size_bytes + kAround;
  if (limits_.most_bytes != 0 && taken_bytes() + about_to_be_written_ + taken > limits_.most_bytes) return std::nullopt;
  return std::optional<Room>(std::in_place, *this, taken);
}

std::vector<FileToken> Journal::crowding() const {
  std::vector<std::pair<Lsn, FileToken>> old;
  for (const auto &[token, since] : needed_since_)
    if (log_->end() - since > limits_.crowded_bytes / 2) old.emplace_back(since, token);
  std::ranges::sort(old);
  std::vector<FileToken> tokens;
  for (const auto &[since, token] : old) tokens.push_back(token);
  return tokens;
}

// --- what somebody has left ------------------------------------------------------------------------------------------

Result<Left> Journal::look() {
  Left left;
  if (auto status = log_->replay(0, gathering(left)); !status.ok()) return status.error();
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
  return replay(from, is_left, visitor);
}

Status Journal::replay(FileToken file, const Visitor &visitor) {
  const auto since = needed_since_.find(file);
  if (since == needed_since_.end()) return {};
  if (auto status = await_written(); !status.ok()) return status;
  const auto filled = filled_.find(file);
  return replay(
      filled != filled_.end() ? std::max(since->second, filled->second) : since->second,
      [=](FileToken token, Lsn) { return token == file; }, visitor);
}

Status Journal::replay(Lsn from, const std::function<bool(FileToken, Lsn)> &is_wanted, const Visitor &visitor) {
  return log_->replay(from, {.on_record = [&](const LogRecord &record) -> Status {
                               if (record.kind != static_cast<std::uint16_t>(Logged::kWrite)) return {};
                               const auto write = xdr::decode<LoggedWrite>(record.head);
                               if (!write.ok() || !is_wanted(write->file, record.at.begin)) return {};
                               return visitor.on_write(*write, record.data);
                             },
                             .on_damage = visitor.on_damage});
}

/// A record whose head is too long for one; others may come between its parts.
Status Journal::append_parts(Logged kind, std::span<const std::byte> head) {
  LoggedPart part{nessie::random_u64()};
  while (part.kind == 0) {
    const auto some = head.subspan(part.at, std::min(head.size() - part.at, kMostHead));
    if (part.at + some.size() == head.size()) part.kind = static_cast<std::uint64_t>(kind);
    std::vector<std::byte> bytes;
    for (const auto number : {part.whole, part.at, part.kind})
      std::ranges::copy(xdr::encode(number), std::back_inserter(bytes));
    bytes.insert(bytes.end(), some.begin(), some.end());
    const auto at = log_->append(static_cast<std::uint16_t>(Logged::kPart), bytes, {});
    if (!at.ok()) return at.error();
    part.at += some.size();
  }
  ++notes_;
  return {};
}

}  // namespace staging
