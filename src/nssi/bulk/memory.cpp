// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/memory.hpp>

#include <nssi/runtime/engine.hpp>

#include <utility>

namespace nssi {

Memory::Memory(Core &core, std::shared_ptr<Block> block)
    : core_(&core), block_(std::move(block)), bytes_(block_->bytes()) {}

Result<Memory> Memory::borrow(Runtime &runtime, std::size_t size_bytes) {
  Core &core = *runtime.engine_;
  Result<Memory> memory = Error{};
  core.run_as_driver([&] {
    auto block = core.blocks().take({}, size_bytes);
    memory = block.ok() ? Result<Memory>(Memory(core, std::make_shared<Block>(*std::move(block)))) : block.error();
  });
  return memory;
}

Memory::Memory(Memory &&other) noexcept
    : core_(other.core_), block_(std::move(other.block_)), bytes_(std::exchange(other.bytes_, {})) {}

Memory &Memory::operator=(Memory &&other) noexcept {
  if (this == &other) return *this;
  give_back();
  core_ = other.core_;
  block_ = std::move(other.block_);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

/// Blocks are the driver's, who takes it back at his next turn.
void Memory::give_back() {
  if (!block_) return;
  if (Turn turn(core_->driver()); turn) return block_.reset();
  core_->driver().hand_over([block = std::move(block_)]() mutable { block.reset(); });
}

}  // namespace nssi
