// SPDX-License-Identifier: BSD-3-Clause
// Memory for arguments and results that do not fit a message: allocated so that peers of this node can map it,
// registered once, used again and again. Used by the driver.
//
// Design notes. Whoever was told of a block can reach it for as long as it is registered. So a block serves one peer
// only, and one of which it is not certain that its peer is done with it is not used again, but unregistered.
#pragma once

#include <base/budget.hpp>
#include <nnti/nnti.hpp>

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace nssi {

class Blocks;

/// Moves; goes back to its pool when dropped. Not to outlive it.
class Block {
 public:
  Block(Block &&other) noexcept;
  Block &operator=(Block &&other) noexcept;
  ~Block() { give_back(); }
  std::span<std::byte> bytes() const { return buffer_.bytes().first(size_bytes_); }
  /// Errors as nnti::RegisteredBuffer::describe_for.
  nessie::Result<nnti::RemoteBuffer> describe_for(nnti::PeerId peer) const;
  /// It may still be reached by its peer: it is not to be used again.
  void taint() { is_tainted_ = true; }

 private:
  friend class Blocks;
  Block(Blocks &pool, nnti::PeerId peer, nnti::RegisteredBuffer buffer, std::size_t size_bytes)
      : pool_(&pool), peer_(peer), buffer_(std::move(buffer)), size_bytes_(size_bytes) {}
  void give_back();

  Blocks *pool_;
  nnti::PeerId peer_;
  nnti::RegisteredBuffer buffer_;
  std::size_t size_bytes_;
  bool is_tainted_ = false;
};

class Blocks {
 public:
  /// Of the memory that is given back, `most_kept_bytes` are kept.
  explicit Blocks(std::size_t most_kept_bytes) : most_kept_bytes_(most_kept_bytes) {}
  void use(nnti::Endpoint &endpoint) { endpoint_ = &endpoint; }
  /// All blocks are charged there from now on. `shorten` has the driver call drop_kept() some time; any thread.
  void draw_from(nessie::Budget &budget, std::function<void()> shorten);
  /// What nobody uses.
  void drop_kept();
  /// For `peer`, which will be told where it is; PeerId{}: for nobody. What it holds is unspecified. kNoMemory.
  nessie::Result<Block> take(nnti::PeerId peer, std::size_t size_bytes);
  /// No block serves that peer any more.
  void forget(nnti::PeerId peer);
  /// Before the endpoint goes. Blocks that are given back later are dropped.
  void close();

 private:
  friend class Block;
  /// 16 KiB to 512 GiB: powers of two, and three sizes between each two of them.
  static constexpr std::size_t kSmallest = 14, kSizes = 1 + 4 * 25;
  using BySize = std::array<std::vector<nnti::RegisteredBuffer>, kSizes>;
  static std::size_t index_for(std::size_t size_bytes);
  static std::size_t size_of(std::size_t index);
  void give_back(nnti::PeerId peer, nnti::RegisteredBuffer buffer);
  void drop(nnti::RegisteredBuffer buffer);

  nnti::Endpoint *endpoint_ = nullptr;
  std::size_t most_kept_bytes_, kept_bytes_ = 0;
  std::optional<nessie::Budget::Account> account_;
  std::unordered_map<std::uint64_t, BySize> free_;  ///< by peer
};

}  // namespace nssi
