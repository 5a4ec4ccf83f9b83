// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/client/arena.hpp>

#include <algorithm>

namespace streams {

namespace {

constexpr std::size_t kAlignment = 64, kSmallestBuffer = 256 << 10, kLargestShared = 2 << 20;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Arena::~Arena() {
  drop_step();
  keep_only({});
}

Result<StepPart *> Arena::new_part(std::size_t size_bytes) {
  auto part = std::make_unique<StepPart>();
  if (size_bytes > 0) {
    auto buffer = session_->take_buffer(size_bytes);
    if (!buffer.ok()) return buffer.error();
    part->buffer = *std::move(buffer);
    part->args.buffer = ++last_number_;
  }
  parts_.push_back(std::move(part));
  return parts_.back().get();
}

/// What is small shares a buffer: of as much as the step before took, so that one is enough.
Result<Arena::Place> Arena::make_room(std::size_t size_bytes, bool is_constant) {
  auto *&open = is_constant ? open_constants_ : open_;
  if (open == nullptr || open->is_sent || open->used + size_bytes > open->buffer.bytes().size()) {
    const auto shared = std::clamp(last_step_bytes_, kSmallestBuffer, kLargestShared);
    auto part = new_part(std::max(size_bytes, is_constant ? kSmallestBuffer : shared));
    if (!part.ok()) return part.error();
    open = *part;
  }
  Place place{open, open->used, open->buffer.bytes().data() + open->used};
  open->used = aligned(open->used + size_bytes);
  return place;
}

Result<StepPart *> Arena::lend(std::span<const std::byte> data) {
  auto part = new_part(0);
  if (!part.ok()) return part;
  auto &it = **part;
  it.is_lent = true;
  it.used = data.size();
  if (std::uint64_t offset = 0; const auto *whole = session_->find_allocated(data, offset)) {
    it.lent = {{whole, offset, data.size()}};
    return part;
  }
  const std::span<std::byte> memory(const_cast<std::byte *>(data.data()), data.size());  // it is only read
  auto buffer = session_->runtime().register_memory(memory, nnti::Rights::kRemoteRead);
  if (!buffer.ok()) {
    parts_.pop_back();
    return buffer.error();
  }
  it.buffer = *std::move(buffer);
  return part;
}

void Arena::recycle(StepPart &part) {
  if (!part.buffer.valid()) return;
  if (part.is_lent)
    session_->runtime().unregister_memory(std::move(part.buffer));
  else
    session_->give_back(std::move(part.buffer));
}

void Arena::end_step() {
  last_step_bytes_ = 0;
  for (auto &part : parts_) {
    if (!part->is_lent) last_step_bytes_ += part->used;
    if (part->is_kept && part->buffer.valid() && !part->is_lent)
      kept_.emplace(part->args.buffer, std::move(part->buffer));
    else
      recycle(*part);
  }
  parts_.clear();
  open_ = open_constants_ = nullptr;
}

void Arena::drop_step() {
  for (auto &part : parts_) recycle(*part);
  parts_.clear();
  open_ = open_constants_ = nullptr;
}

void Arena::release(const std::vector<std::uint64_t> &numbers) {
  for (const auto number : numbers)
    if (auto kept = kept_.extract(number); !kept.empty()) session_->give_back(std::move(kept.mapped()));
}

void Arena::keep_only(const std::vector<std::uint64_t> &numbers) {
  for (auto at = kept_.begin(); at != kept_.end();) {
    const bool is_kept = std::ranges::find(numbers, at->first) != numbers.end();
    if (!is_kept) session_->runtime().unregister_memory(std::move(at->second));
    at = is_kept ? std::next(at) : kept_.erase(at);
  }
}

}  // namespace streams
