// SPDX-License-Identifier: BSD-3-Clause
#include <service/copy_buffers.hpp>

#include <algorithm>
#include <bit>

namespace nessie::service {

namespace {

constexpr std::size_t kSmallest = 256 << 10;  // each takes a descriptor, and memory only where it is written

}  // namespace

// Sizes are powers of two, so that what one transfer leaves suits the next.
nssi::Result<std::optional<nnti::RegisteredBuffer>> CopyBuffers::take(std::size_t size_bytes) {
  const auto size = std::bit_ceil(std::max(size_bytes, kSmallest));
  std::optional<nnti::RegisteredBuffer> taken;
  if (auto &idle = idle_[size]; !idle.empty()) {
    taken = std::move(idle.back());
    idle.pop_back();
  } else {
    if (made_bytes_ + size > limit_bytes_) drop_idle(size);
    if (made_bytes_ + size > limit_bytes_ && taken_ > 0) return taken;
    auto made = runtime_.allocate(size, nnti::Rights::kReadWrite);
    if (!made.ok() && taken_ > 0) return taken;
    if (!made.ok()) return made.error();
    made_bytes_ += size;
    taken = std::move(*made);
  }
  ++taken_;
  return taken;
}

void CopyBuffers::give_back(nnti::RegisteredBuffer buffer) {
  --taken_;
  const auto size = buffer.bytes().size();
  idle_[size].push_back(std::move(buffer));
}

/// Makes room for a buffer of another size.
void CopyBuffers::drop_idle(std::size_t wanted_bytes) {
  for (auto &[size, idle] : idle_)
    while (!idle.empty() && made_bytes_ + wanted_bytes > limit_bytes_) {
      runtime_.unregister_memory(std::move(idle.back()));
      idle.pop_back();
      made_bytes_ -= size;
    }
}

}  // namespace nessie::service
