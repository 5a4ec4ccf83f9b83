// SPDX-License-Identifier: BSD-3-Clause
// Well-formed inputs, and mutations of them, the same ones each time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace nnti::fuzz {

inline void mutate(std::vector<std::byte> &bytes, std::mt19937 &random) {
  for (auto changes = 1 + random() % 4; changes != 0 && !bytes.empty(); --changes) {
    const auto at = static_cast<std::ptrdiff_t>(random() % bytes.size());
    auto &byte = bytes[static_cast<std::size_t>(at)];
    switch (random() % 6) {
      case 0: byte = static_cast<std::byte>(random()); break;
      case 1: byte ^= static_cast<std::byte>(1u << random() % 8); break;
      case 2: byte = static_cast<std::byte>(random() % 2 ? 0xff : 0x80); break;
      case 3: bytes.resize(static_cast<std::size_t>(at)); break;
      case 4: bytes.insert(bytes.begin() + at, 1 + random() % 8, std::byte{0xff}); break;
      default: bytes.erase(bytes.begin() + at); break;
    }
  }
}

inline void feed(void (*target)(std::span<const std::byte>), const std::vector<std::vector<std::byte>> &corpus,
                 int mutations) {
  for (const auto &input : corpus) target(input);
  std::mt19937 random(1);
  for (int i = 0; i < mutations; ++i) {
    auto input = corpus[random() % corpus.size()];
    mutate(input, random);
    target(input);
  }
}

}  // namespace nnti::fuzz
