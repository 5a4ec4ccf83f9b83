// SPDX-License-Identifier: BSD-3-Clause
// For tests of all that moves bytes: bytes that can be told apart, what becomes of operations, and waiting for a state.
#pragma once

#include <nnti/nnti.hpp>

#include <chrono>
#include <cstring>
#include <vector>

namespace nnti {

inline constexpr std::chrono::seconds kWatchdog{60};  ///< within which everything happens that a test waits for

namespace test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  ///< everything is many times slower, and the heap is another one
#else
inline constexpr bool kSanitized = false;
#endif

using Bytes = std::vector<std::byte>;

template <class T> std::span<const std::byte> raw(const T &value) { return std::as_bytes(std::span(&value, 1)); }

/// Bytes that differ from place to place.
inline Bytes pattern(std::size_t size_bytes, unsigned seed = 1) {
  Bytes bytes(size_bytes + sizeof(std::uint32_t));
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::size_t at = 0; at < size_bytes; at += sizeof state) {
    state = state * 1664525u + 1013904223u;
    auto word = state ^ state >> 16;
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  bytes.resize(size_bytes);
  return bytes;
}

/// How an operation ended.
struct Outcome final : Completion {
  void on_complete(Status result) override {
    ++times;
    status = std::move(result);
  }
  int times = 0;
  Status status;
};

/// Takes steps until `state` holds. False: the watchdog bit.
template <class State, class Step> [[nodiscard]] bool until(State state, Step step) {
  for (const auto watchdog = Deadline::in(kWatchdog); !state(); step())
    if (watchdog.passed()) return false;
  return true;
}

}  // namespace test
}  // namespace nnti
