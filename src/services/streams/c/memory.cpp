// SPDX-License-Identifier: BSD-3-Clause
// Memory that servers reach, by where it is.
#include <services/streams/c/handles.hpp>

#include <mutex>
#include <unordered_map>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Status;

namespace {

struct Allocated {
  std::mutex mutex;
  std::unordered_map<void *, Memory> by_address;
};

/// For ever: memory may be freed by a destructor that runs at the very end.
Allocated &allocated() {
  static auto *all = new Allocated;
  return *all;
}

}  // namespace

int nessie_stream_allocate(uint64_t size_bytes, void **memory) {
  return guarded([&]() -> Status {
    if (memory == nullptr) return invalid("memory is null");
    auto made = Memory::allocate(size_bytes);
    if (!made.ok()) return made.error();
    auto *const begin = made->bytes().data();
    auto &all = allocated();
    const std::lock_guard lock(all.mutex);
    all.by_address.emplace(begin, *std::move(made));
    *memory = begin;
    return {};
  });
}

int nessie_stream_free(void *memory) {
  return guarded([&]() -> Status {
    if (memory == nullptr) return {};
    auto &all = allocated();
    std::unique_lock lock(all.mutex);
    const auto freed = all.by_address.extract(memory);
    lock.unlock();
    return freed.empty() ? Status(invalid("the memory is not of nessie_stream_allocate(), or was freed")) : Status();
  });
}
