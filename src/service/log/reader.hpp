// SPDX-License-Identifier: BSD-3-Clause
// Reads a store from one position on: in large pieces, the next one while the last is looked at; or piece by piece,
// where most of it is to be passed over.
#pragma once

#include <nssi/nssi.hpp>
#include <service/log/store.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace nessie::service {

struct FreePages {
  void operator()(std::byte *memory) const { ::operator delete (memory, std::align_val_t{kLogAlignment}); }
};
using Pages = std::unique_ptr<std::byte[], FreePages>;
/// Null: the system has no memory.
inline Pages allocate_pages(std::size_t size_bytes) {
  return Pages(static_cast<std::byte *>(::operator new (size_bytes, std::align_val_t{kLogAlignment}, std::nothrow)));
}

class LogReader {
 public:
  enum class Way { kAhead, kHops };
  LogReader(nssi::Runtime &runtime, std::shared_ptr<LogStore> store, Way way);
  ~LogReader();
  LogReader(const LogReader &) = delete;

  /// What lies at `at`: at least `size_bytes`, of which there may be kMostBlockBytes; less where the store has no more.
  /// What cannot be read for a fault of the disk is zeros. Borrowed until the next call. Errors as the store's.
  Result<std::span<const std::byte>> view(Lsn at, std::size_t size_bytes);
  /// What it takes.
  static std::size_t memory_bytes();

 private:
  struct Window;
  struct Ahead;
  Status go_to(Lsn at, std::size_t size_bytes);
  Status go_on(Lsn at);
  Result<std::shared_ptr<Window>> next_window(Lsn at);
  void start_ahead();
  nssi::Runtime &runtime_;
  const std::shared_ptr<LogStore> store_;
  const Way way_;
  std::size_t piece_bytes_ = kLogAlignment;
  std::shared_ptr<Window> window_, spare_;
  std::shared_ptr<Ahead> ahead_;
};

}  // namespace nessie::service
