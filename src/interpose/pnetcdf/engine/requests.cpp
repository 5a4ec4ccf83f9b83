// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/requests.hpp>

#include <algorithm>

namespace interpose {

// --- the attached buffer -------------------------------------------------------------------------------------------------

int AttachedBuffer::take(std::int64_t size_bytes, std::span<std::byte> &bytes) {
  if (size_ - used_ < size_bytes) return -1;
  bytes = memory_.span().subspan(static_cast<std::size_t>(used_), static_cast<std::size_t>(size_bytes));
  used_ += size_bytes;
  slots_.push_back({size_bytes, true});
  return static_cast<int>(slots_.size()) - 1;
}

void AttachedBuffer::release(int slot) {
  if (slot >= 0 && slot < static_cast<int>(slots_.size())) slots_[static_cast<std::size_t>(slot)].used = false;
}

void AttachedBuffer::reclaim() {
  while (!slots_.empty() && !slots_.back().used) {
    used_ -= slots_.back().size;
    slots_.pop_back();
  }
}

void AttachedBuffer::clear() {
  slots_.clear();
  used_ = 0;
}

// --- the queues ------------------------------------------------------------------------------------------------------------

int Queue::add(Request request) {
  newest_id_ = pending_.empty() ? first_id_ : newest_id_ + 2;
  request.id = newest_id_;
  pending_.emplace_hint(pending_.end(), newest_id_, std::move(request));
  return newest_id_;
}

Request *Queue::find(int id) {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

Request Queue::take(int id) { return std::move(pending_.extract(id).mapped()); }

std::vector<Request> Queue::take_all() {
  std::vector<Request> all;
  all.reserve(pending_.size());
  for (auto &[id, request] : pending_) all.push_back(std::move(request));
  pending_.clear();
  return all;
}

bool Queue::uses_attached_buffer() const {
  return std::ranges::any_of(pending_, [](const auto &pair) { return pair.second.attached_slot >= 0; });
}

}  // namespace interpose
