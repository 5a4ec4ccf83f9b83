// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/blocks.hpp>
#include <service/log/format.hpp>

#include <algorithm>

namespace nessie::service {

namespace {

constexpr std::size_t kLeastBlockBytes = 2 * kLogAlignment, kLeastBlocks = 2;

}  // namespace

LogBlocks::LogBlocks(Budget &budget, const LogOptions &options)
    : block_bytes_(std::clamp(options.block_bytes / kLogAlignment * kLogAlignment, kLeastBlockBytes,
                              log_format::kMostBlockBytes)),
      most_(std::max(options.most_blocks, kLeastBlocks)),
      account_(budget, options.name, {.on_shortage = [this] { drop_kept(); }}) {}

std::unique_ptr<LogBlocks::Block> LogBlocks::try_take(bool is_bulk) {
  if (bulk_ + ordinary_ + (is_bulk && ordinary_ == 0 ? 1 : 0) >= most_) return nullptr;
  auto memory = take_memory(!is_bulk && ordinary_ == 0);
  if (!memory) return nullptr;
  (is_bulk ? bulk_ : ordinary_) += 1;
  auto block = std::make_unique<Block>();
  block->memory = std::move(memory);
  block->is_bulk = is_bulk;
  return block;
}

void LogBlocks::give_back(std::unique_ptr<Block> block) {
  (block->is_bulk ? bulk_ : ordinary_) -= 1;
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(block->memory));
}

/// Null: the process's budget, or the system's memory, has no room now.
Pages LogBlocks::take_memory(bool must) {
  {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      auto memory = std::move(kept_.back());
      kept_.pop_back();
      return memory;
    }
  }
  if (must)
    account_.take(block_bytes_);
  else if (!account_.try_take(block_bytes_))
    return nullptr;
  auto memory = allocate_pages(block_bytes_);
  if (!memory) account_.give_back(block_bytes_);
  return memory;
}

/// Another pool is short. Whoever is at the memory just now may be the one that made it short: then nothing is dropped.
void LogBlocks::drop_kept() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  account_.give_back(kept_.size() * block_bytes_);
  kept_.clear();
}

}  // namespace nessie::service
