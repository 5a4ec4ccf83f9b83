// SPDX-License-Identifier: BSD-3-Clause
// Tells, before it happens, which memory the process unmaps, remaps or empties, whoever asks for it: the application, a
// library, or libc within malloc and free. The README says how, and what cannot be seen.
//
// Threads: everything here may be called by any thread.
#pragma once

#include "nnti/registration_cache/address_range.hpp"

#include <nessie/result.hpp>

#include <string>

namespace nnti {

/// Is told of changes.
class MemoryListener {
 public:
  /// The pages of `range` are about to lose what they hold. Runs on the thread that asks for it, which may be within
  /// malloc or free: must not allocate, must not call what does, and must not take a lock that somebody holds while
  /// doing so. The kernel has not been asked yet, and is asked only when this has returned.
  virtual void memory_changing(AddressRange range) noexcept = 0;

 protected:
  ~MemoryListener() = default;
};

namespace memory_events {

/// Begins to watch the process's memory, with the first call; tests that every kind of change is really seen.
/// kUnsupported, with the reason: not all of them are. That is final: later calls say the same.
nessie::Status watch();

/// Adds a listener; watch() has been successful. kBusy: there are too many (kMaxListeners).
inline constexpr int kMaxListeners = 32;
nessie::Status subscribe(MemoryListener &listener);
/// Afterwards `listener` is not called, nor is it being called.
void unsubscribe(MemoryListener &listener) noexcept;

/// Whether the change of pages in `range` has begun, and not ended yet: what is registered there now might not last.
bool changing(AddressRange range) noexcept;

/// Whether everything is still watched. False: something else has patched libc since. Costs about a dozen loads.
bool intact() noexcept;
/// Watches again what somebody has taken away. Every listener is told first that all memory changes. As watch().
nessie::Status repair();

/// In a forked child: no other thread changes anything any more, whatever they had begun.
void begin_anew_in_child() noexcept;

}  // namespace memory_events
}  // namespace nnti
