// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key. No network exposes it: peers ask, and the owner checks.
#pragma once

#include "nnti/transport/registration_check.hpp"

#include <unordered_map>

namespace nnti::framed {

class Memory;

/// All regions that are registered with a transport.
class Memories {
 public:
  void add(Memory &memory);
  /// Returns when no transfer touches the memory any more.
  void remove(Memory &memory);
  /// Null: none has that key (any more).
  Memory *find(std::uint64_t key) const {
    const auto found = memories_.find(key);
    return found == memories_.end() ? nullptr : found->second;
  }

 protected:
  ~Memories() = default;

 private:
  /// The region has no key any more.
  virtual void end_transfers(const Memory &memory) = 0;

  std::unordered_map<std::uint64_t, Memory *> memories_;
};

class Memory : public TransportMemory {
 public:
  Memory(Memories &memories, const MemoryRegion &region)
      : memories_(memories), region_(region), key_(nessie::random_u64()) {
    memories_.add(*this);
  }
  ~Memory() override { memories_.remove(*this); }
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override {
    RemoteBuffer remote;
    remote.key = key_;
    remote.size_bytes = region_.bytes.size();
    remote.rights = region_.rights;
    return remote;
  }

  std::uint64_t key() const { return key_; }
  const MemoryRegion &region() const { return region_; }
  /// Whether a peer may reach `length` bytes at `offset` with the right `needed`: kOk, kRefused, kOutOfRange.
  Code check(Rights needed, std::uint64_t offset, std::uint64_t length) const {
    return check_access(region_.bytes.size(), region_.rights, offset, length, needed).code();
  }
  std::span<std::byte> range(std::uint64_t offset, std::uint64_t length) const {
    return region_.bytes.subspan(offset, length);
  }

 private:
  Memories &memories_;
  MemoryRegion region_;
  std::uint64_t key_;
};

inline void Memories::add(Memory &memory) { memories_.emplace(memory.key(), &memory); }
inline void Memories::remove(Memory &memory) {
  memories_.erase(memory.key());
  end_transfers(memory);
}

/// The code of an access to `memory` (null: of no buffer).
inline Code check(const Memory *memory, Rights needed, std::uint64_t offset, std::uint64_t length) {
  return memory == nullptr ? Code::kRefused : memory->check(needed, offset, length);
}

}  // namespace nnti::framed
