// SPDX-License-Identifier: BSD-3-Clause
// The memory of blocks that are being filled or written: a few, used again and again.
#pragma once

#include <base/budget.hpp>
#include <service/log/log.hpp>
#include <service/log/reader.hpp>

#include <mutex>
#include <vector>

namespace nessie::service {

/// Memory, and what is in it.
struct Log::Bulk::Block {
  Pages memory;
  bool is_bulk = false;
  Lsn lsn = 0;
  std::size_t used_bytes = 0, most_bytes = 0;
};

class LogBlocks {
 public:
  using Block = Log::Bulk::Block;
  LogBlocks(Budget &budget, const LogOptions &options);

  /// Null: there is none now. Bulk blocks leave one to the others, so that those can be written while bulk blocks are
  /// being filled.
  std::unique_ptr<Block> try_take(bool is_bulk);
  void give_back(std::unique_ptr<Block> block);
  std::size_t block_bytes() const { return block_bytes_; }
  /// For memory to read with.
  Budget::Account &account() { return account_; }

 private:
  Pages take_memory(bool must);
  void drop_kept();

  const std::size_t block_bytes_, most_;
  std::size_t bulk_ = 0, ordinary_ = 0;
  std::mutex mutex_;  ///< guards what is kept, which another thread may want
  std::vector<Pages> kept_;
  Budget::Account account_;
};

}  // namespace nessie::service
