// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/blocks.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace nssi {

Block::Block(Block &&other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      peer_(other.peer_),
      buffer_(std::move(other.buffer_)),
      size_bytes_(other.size_bytes_),
      is_tainted_(other.is_tainted_) {}

Block &Block::operator=(Block &&other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::exchange(other.pool_, nullptr);
  peer_ = other.peer_;
  buffer_ = std::move(other.buffer_);
  size_bytes_ = other.size_bytes_;
  is_tainted_ = other.is_tainted_;
  return *this;
}

void Block::give_back() {
  auto *pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  if (is_tainted_)
    pool->drop(std::move(buffer_));
  else
    pool->give_back(peer_, std::move(buffer_));
}

nessie::Result<nnti::RemoteBuffer> Block::describe_for(nnti::PeerId peer) const {
  auto remote = buffer_.describe_for(peer);
  if (remote.ok()) remote->size_bytes = size_bytes_;
  return remote;
}

std::size_t Blocks::index_for(std::size_t size_bytes) {
  if (size_bytes <= std::size_t{1} << kSmallest) return 0;
  const auto width = static_cast<std::size_t>(std::bit_width(size_bytes - 1));
  const auto quarter = (size_bytes - 1 - (std::size_t{1} << (width - 1))) >> (width - 3);
  return 4 * (width - kSmallest - 1) + quarter + 1;
}

std::size_t Blocks::size_of(std::size_t index) {
  if (index == 0) return std::size_t{1} << kSmallest;
  const auto below = std::size_t{1} << (kSmallest + (index - 1) / 4);
  return below + ((index - 1) % 4 + 1) * (below / 4);
}

nessie::Result<Block> Blocks::take(nnti::PeerId peer, std::size_t size_bytes) {
  const auto index = index_for(size_bytes);
  if (endpoint_ == nullptr || index >= kSizes)
    return nessie::Error{nessie::Code::kNoMemory, "there is no block of memory of that size"};
  auto &free = free_[peer.value][index];
  if (free.empty()) {
    auto buffer = endpoint_->allocate(size_of(index), nnti::Rights::kRemoteRead);
    if (!buffer.ok()) return buffer.error();
    if (account_) account_->take(buffer->bytes().size());
    return Block(*this, peer, *std::move(buffer), size_bytes);
  }
  auto buffer = std::move(free.back());
  free.pop_back();
  kept_bytes_ -= buffer.bytes().size();
  return Block(*this, peer, std::move(buffer), size_bytes);
}

void Blocks::give_back(nnti::PeerId peer, nnti::RegisteredBuffer buffer) {
  const auto size_bytes = buffer.bytes().size();
  const auto of_peer = free_.find(peer.value);
  if (endpoint_ == nullptr || of_peer == free_.end() || kept_bytes_ + size_bytes > most_kept_bytes_)
    return drop(std::move(buffer));
  kept_bytes_ += size_bytes;
  of_peer->second[index_for(size_bytes)].push_back(std::move(buffer));
}

void Blocks::drop(nnti::RegisteredBuffer buffer) {
  if (account_) account_->give_back(buffer.bytes().size());
  buffer.reset();
}

void Blocks::draw_from(nessie::Budget &budget, std::function<void()> shorten) {
  account_.emplace(budget, "nssi.blocks", nessie::Budget::Callbacks{.on_shortage = std::move(shorten)});
}

void Blocks::drop_kept() {
  for (auto &[peer, sizes] : free_)
    for (auto &free : sizes)
      for (auto &buffer : std::exchange(free, {})) drop(std::move(buffer));
  kept_bytes_ = 0;
}

void Blocks::forget(nnti::PeerId peer) {
  const auto of_peer = free_.find(peer.value);
  if (of_peer == free_.end()) return;
  for (auto &free : of_peer->second)
    for (auto &buffer : free) {
      kept_bytes_ -= buffer.bytes().size();
      drop(std::move(buffer));
    }
  free_.erase(of_peer);
}

void Blocks::close() {
  endpoint_ = nullptr;
  drop_kept();
  free_.clear();
}

}  // namespace nssi
