// SPDX-License-Identifier: BSD-3-Clause
// Random values of golden.x's types.
#pragma once

#include "golden.hpp"

#include <algorithm>
#include <random>

/// Gives every field of a generated type some value: an archive that reads from nowhere.
class Filler {
 public:
  static constexpr bool kReads = true;
  explicit Filler(unsigned seed) : random_(seed) {}
  template <class... Fields> void operator()(Fields &...fields) { (fill(fields), ...); }
  void fail(const char *) { failed = true; }
  bool failed = false;

 private:
  std::size_t few(std::size_t most) { return random_() % (std::min<std::size_t>(most, 5) + 1); }
  template <class T> static constexpr std::size_t most_of() {
    if constexpr (xdr::detail::HasBound<T>) return T::kMost;
    return 5;
  }
  template <class T> void fill(T &v) {
    using namespace xdr::detail;
    if constexpr (NamedEnum<T>) {
      do v = static_cast<T>(static_cast<int>(random_() % 8) - 4);
      while (!xdr_has_name(v));
    } else if constexpr (std::same_as<T, bool>) {
      v = random_() % 2 != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      // Among them what unions switch on.
      const std::uint32_t large = random_() % 2 != 0 ? 4'000'000'000 : static_cast<std::uint32_t>(random_());
      v = random_() % 2 != 0 ? static_cast<T>(static_cast<int>(random_() % 6) - 2) : static_cast<T>(large);
    } else if constexpr (OwnedBytes<T>) {
      v.resize(few(most_of<T>()));
      for (auto &each : v) each = static_cast<typename T::value_type>('a' + random_() % 26);
    } else if constexpr (std::same_as<T, std::byte>) {
      v = static_cast<std::byte>(random_());
    } else if constexpr (kIsArray<T>) {
      for (auto &each : v) fill(each);
    } else if constexpr (Sequence<T>) {
      if (++depth_ < 4) v.resize(few(most_of<T>()));
      for (auto &each : v) fill(each);
      --depth_;
    } else if constexpr (kIsOptional<T>) {
      if (random_() % 2 != 0) fill(v.emplace());
    } else {
      v.xdr(*this);
    }
  }

  std::mt19937 random_;
  int depth_ = 0;
};
