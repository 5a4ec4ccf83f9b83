// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/store.hpp>

#include <base/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace streams {

using nessie::service::Log;

// --- chunks -----------------------------------------------------------------------------------------------------------

Chunk::Chunk(Store &store, HeldBytes held, std::shared_ptr<Tally> tally)
    : store_(store), tally_(std::move(tally)), size_bytes_(held.bytes.size()), held_(std::move(held)) {
  store_.list(*this);
}

Chunk::Chunk(Store &store, std::uint64_t size_bytes, std::vector<LoggedPiece> logged, std::shared_ptr<Tally> tally)
    : store_(store), tally_(std::move(tally)), size_bytes_(size_bytes) {
  note_logged(std::move(logged));
}

Chunk::~Chunk() {
  free_memory();
  for (const auto &piece : logged_) {
    if (store_.log_ != nullptr) store_.log_->release(piece.at);
    store_.logged_bytes_ -= piece.bytes;
    tally_->log_bytes -= piece.bytes;
  }
  store_.notify();
}

void Chunk::free_memory() {
  if (!is_listed_) return;
  is_listed_ = false;
  store_.in_memory_.erase(at_);
  store_.used_ -= size_bytes_;
  tally_->memory_bytes -= size_bytes_;
  store_.account_.give_back(size_bytes_);
  store_.times_.full_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  held_ = {};
}

void Chunk::note_logged(std::vector<LoggedPiece> logged) {
  logged_ = std::move(logged);
  for (const auto &piece : logged_) {
    store_.logged_bytes_ += piece.bytes;
    tally_->log_bytes += piece.bytes;
  }
}

Reservation::Reservation(Store &store, std::uint64_t size_bytes) : store_(&store), bytes_(size_bytes) {
  store.reserved_ += bytes_;
}

Reservation::~Reservation() {
  if (store_ != nullptr) store_->reserved_ -= bytes_;
}

// --- memory -----------------------------------------------------------------------------------------------------------

Store::Store(nssi::Runtime &runtime, Budget &budget, std::uint64_t memory_bytes)
    : runtime_(runtime), limit_(memory_bytes), account_(budget, "streams"), changed_(runtime) {}

Store::~Store() = default;

void Store::list(Chunk &chunk) {
  chunk.at_ = in_memory_.insert(in_memory_.end(), &chunk);
  chunk.is_listed_ = true;
  chunk.since_ = std::chrono::steady_clock::now();
  used_ += chunk.size_bytes_;
  chunk.tally_->memory_bytes += chunk.size_bytes_;
  high_ = std::max(high_, used_);
  account_.take(chunk.size_bytes_);
}

std::shared_ptr<Chunk> Store::keep(HeldBytes held, const std::shared_ptr<Tally> &tally) {
  return std::make_shared<Chunk>(*this, std::move(held), tally);
}

void Store::note_times(std::chrono::steady_clock::duration empty, std::chrono::steady_clock::duration pending) {
  ++times_.count;
  times_.empty_s += std::chrono::duration<double>(empty).count();
  times_.pending_s += std::chrono::duration<double>(pending).count();
}

std::shared_ptr<Chunk> Store::find_logged(std::uint64_t size_bytes, std::vector<LoggedPiece> logged,
                                          const std::shared_ptr<Tally> &tally) {
  return std::make_shared<Chunk>(*this, size_bytes, std::move(logged), tally);
}

Status Store::await_room(nssi::Request &request, std::uint64_t size_bytes, Deadline deadline,
                         const std::function<bool()> &may_go_on) {
  while (!may_go_on()) {
    if (auto status = request.check(); !status.ok()) return status;
    if (deadline.passed()) return Error{Code::kTimedOut, "there is no room"};
    wanted_ = std::max(wanted_, size_bytes);
    begin_spilling();
    if (auto status = changed_.wait(deadline.earlier(Deadline::in(std::chrono::milliseconds(200))));
        !status.ok() && status.code() != Code::kTimedOut)
      return status;
  }
  return {};
}

// --- the log ----------------------------------------------------------------------------------------------------------

void Store::begin_spilling() {
  if (is_spilling_ || !can_spill()) return;
  is_spilling_ = true;
  runtime_.spawn([this] {
    spill();
    is_spilling_ = false;
    notify();
  });
}

std::string Store::log_trouble() const {
  if (log_ == nullptr) return {};
  const auto status = log_->status().ok() ? log_->room() : log_->status();
  return status.ok() ? std::string() : status.error().message;
}

bool Store::log_has_room(std::uint64_t size_bytes) const {
  if (log_ == nullptr || !log_trouble().empty()) return false;
  return log_->held_bytes() + size_bytes + 2 * log_->segment_bytes() <= log_limit_;
}

/// A fiber, until there is room for what was wanted.
void Store::spill() {
  const auto goal = limit_ - std::min(limit_, std::exchange(wanted_, 0));
  while (used_ > goal) {
    auto *chunk = oldest();
    if (chunk == nullptr || !log_has_room(chunk->size_bytes())) return;
    const auto share = chunk->shared_from_this();  // it may go meanwhile
    if (auto status = write_to_log(*chunk); !status.ok()) {
      if (std::exchange(warned_, status.error().message) != warned_)
        nessie::log::warning("what does not fit into memory cannot go to the log: {}", warned_);
      return;
    }
    warned_.clear();
    if (chunk->held_.release_pages) chunk->held_.release_pages();
    chunk->free_memory();
    notify();
  }
}

Chunk *Store::oldest() {
  const auto found = std::ranges::find_if(in_memory_, [](const Chunk *chunk) { return !chunk->is_moving_; });
  return found == in_memory_.end() ? nullptr : *found;
}

Status Store::write_to_log(Chunk &chunk) {
  if (!chunk.logged_.empty() || chunk.size_bytes_ == 0) return {};
  if (log_ != nullptr && !log_->status().ok()) return log_->status();
  if (!log_has_room(chunk.size_bytes_)) {
    const auto trouble = log_trouble();
    return Error{Code::kIo,
                 trouble.empty()
                     ? fmt::format("the log has no room for {} bytes: raise streams.log_bytes, or have readers end "
                                   "their steps",
                                   chunk.size_bytes_)
                     : trouble,
                 nessie::Scope::kOperation, ENOSPC};
  }
  const auto held = chunk.held_;
  chunk.is_moving_ = true;
  auto pieces = write_pieces(*log_, held.bytes);
  chunk.is_moving_ = false;
  if (!pieces.ok()) return pieces.error();
  chunk.note_logged(*std::move(pieces));
  return {};
}

Result<HeldBytes> Store::bytes_of(const Chunk &chunk, std::uint64_t first, std::uint64_t size_bytes) {
  if (chunk.is_in_memory()) return HeldBytes{chunk.held_.bytes.subspan(first, size_bytes), chunk.held_.keep};
  return read_pieces(*log_, chunk.logged_, first, size_bytes);
}

}  // namespace streams
