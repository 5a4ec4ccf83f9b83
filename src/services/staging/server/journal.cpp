// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/journal.hpp>

#include <base/crc32c.hpp>

#include <xdr/codec.hpp>

#include <algorithm>
#include <filesystem>

namespace staging {

using nessie::Result;
using nessie::Status;
using nessie::service::LogRecord;

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostGone = 256;  // that clients have no answer of, at most
constexpr std::uint64_t kGoneSpan = 4 << 20;

}  // namespace

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

Status Journal::note(const LoggedWrite &write, Log::Bulk data, std::uint64_t size_bytes, std::uint32_t sum) {
  const auto head = xdr::encode(write);
  auto at = log_->append(static_cast<std::uint16_t>(Logged::kWrite), head, std::move(data), size_bytes,
                         ~nessie::join_crc32c(~std::uint32_t{0}, sum, size_bytes));
  ++notes_;
  return at.ok() ? Status() : at.error();
}

Status Journal::note_gone(FileToken token) {
  auto noted = append(Logged::kGone, token);
  if (noted.ok()) noted = await_written();  // before anything is released that tells of the file
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
  return replay(
      since->second, [=](FileToken token, Lsn) { return token == file; }, visitor);
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

}  // namespace staging
