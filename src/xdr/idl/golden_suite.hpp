// SPDX-License-Identifier: BSD-3-Clause
// What holds for every codec that is made of golden.x: it makes the bytes that our C++ makes, takes those that it
// takes, and no others. Each language's test instantiates it.
#pragma once

#include "golden_values.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace golden_suite {

using Bytes = std::vector<std::byte>;

struct Codec {
  const char *name;
  /// Decodes all of the bytes as a value of the type, and encodes that. Nothing: the bytes were refused.
  std::optional<Bytes> (*convert)(const char *type, const Bytes &bytes);
  bool strings_end_at_zero = false;  ///< as C's do, whatever was decoded
};

/// Of a random value; none: the type's union has no arm for it.
template <class T> Bytes random_bytes(unsigned seed) {
  Filler filler(seed);
  T value;
  filler(value);
  return filler.failed ? Bytes() : xdr::encode(value);
}

/// Calls `test` with a value of each type that has others in it.
template <class Test> void for_each_type(Test test) {
  test(golden::everything(), "everything");
  test(golden::node(), "node");
  test(golden::holder(), "holder");
  test(golden::numbers(), "numbers");
  test(golden::aliases(), "aliases");
  test(golden::rest(), "rest");
}

/// Calls `test` with some ten thousand random values: type, bytes, and a number that brings the value back.
template <class Test> void for_each_random_value(Test test) {
  unsigned tried = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed)
    for_each_type([&](auto value, const char *type) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      if (bytes.empty()) return;
      ++tried;
      test(type, bytes, seed);
    });
  EXPECT_GT(tried, 10'000u);
}

inline void append(Bytes &bytes, std::initializer_list<unsigned> words) {
  for (const auto word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(word >> shift));
}
inline Bytes words(std::initializer_list<unsigned> words) {
  Bytes bytes;
  append(bytes, words);
  return bytes;
}

/// Calls `test` with a type, the bytes before an array's count, and a count that is not followed by as many elements.
template <class Test> void for_each_count_that_is_not_there(Test test) {
  const std::pair<const char *, Bytes> arrays[] = {
      {"offsets", {}}, {"tree", words({1})}, {"node", words({1})}, {"numbers", Bytes(72)}, {"number", words({7})}};
  for (const auto &[type, before] : arrays)
    for (const unsigned count : {0x10000u, 0x1fffffffu, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
      auto bytes = before;
      append(bytes, {count, 0, 0, 0});
      test(type, bytes);
    }
}

class Golden : public testing::TestWithParam<Codec> {
 protected:
  static std::optional<Bytes> convert(const char *type, const Bytes &bytes) { return GetParam().convert(type, bytes); }
};

TEST_P(Golden, RandomValues_HaveTheBytesOfCpp_BothWays) {
  for_each_random_value([&](const char *type, const Bytes &bytes, unsigned seed) {
    ASSERT_EQ(convert(type, bytes), bytes) << type << " " << seed;
  });
}

TEST_P(Golden, LargeArrays_HaveTheBytesOfCpp) {
  golden::everything value;
  value.c = golden::color::RED;
  for (int i = 0; i < 10'000; ++i) value.many.push_back({i, 1.5F * static_cast<float>(i), -0.25 * i});
  for (int i = 0; i < 100'001; ++i) value.places.push_back(std::int64_t{i} << 33);
  EXPECT_EQ(convert("everything", xdr::encode(value)), xdr::encode(value));
  golden::numbers more;
  for (unsigned i = 0; i < 10'001; ++i) {
    more.flat.push_back(i * 0x01020304u);
    more.floats.push_back(static_cast<float>(i));
    more.wide.push_back(~std::uint64_t{i});
  }
  EXPECT_EQ(convert("numbers", xdr::encode(more)), xdr::encode(more));
}

TEST_P(Golden, AnyBytesAreTakenOrRefused_AsByCpp) {
  std::mt19937 random(1);
  unsigned taken = 0, refused = 0;
  for (unsigned i = 0; i < 20'000; ++i)
    for_each_type([&](auto value, const char *type) {
      auto bytes = random_bytes<decltype(value)>(i % 50 + 1);
      if (bytes.empty()) return;
      for (auto changes = random() % 4; changes != 0; --changes)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 2 != 0 ? random() : random() % 5);
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      const auto by_cpp = xdr::decode<decltype(value)>(bytes);
      ++(by_cpp.ok() ? taken : refused);
      const auto made = convert(type, bytes);
      ASSERT_EQ(made.has_value(), by_cpp.ok()) << type << " " << i;
      if (!by_cpp.ok()) return;
      ASSERT_TRUE(*made == bytes || GetParam().strings_end_at_zero) << type << " " << i;
      ASSERT_EQ(xdr::encode(*by_cpp), bytes) << type << " " << i;
    });
  EXPECT_GT(taken, 10'000u);
  EXPECT_GT(refused, 10'000u);
}

TEST_P(Golden, BytesThatEndEarly_AreRefused) {
  for_each_type([&](auto value, const char *type) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      for (std::size_t size = 0; size < bytes.size(); ++size)
        ASSERT_FALSE(convert(type, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))));
    }
  });
}

TEST_P(Golden, ACountThatIsNotThere_IsRefused) {
  for_each_count_that_is_not_there(
      [](const char *type, const Bytes &bytes) { EXPECT_FALSE(convert(type, bytes)) << type; });
}

TEST_P(Golden, AFlagIs0Or1_AnEnumHasAName_PaddingIsZero) {
  EXPECT_TRUE(convert("choice", words({1, 0})));
  EXPECT_FALSE(convert("choice", words({2, 0})));
  EXPECT_FALSE(convert("choice", words({1, 2})));
  EXPECT_TRUE(convert("title", words({2, 0x61620000})));
  EXPECT_FALSE(convert("title", words({2, 0x61620001})));
  EXPECT_FALSE(convert("title", words({17, 0, 0, 0, 0, 0}))) << "longer than its bound";
  EXPECT_TRUE(convert("digest", Bytes(20)));
  EXPECT_FALSE(convert("digest", words({0, 0, 0, 0, 1})));
}

TEST_P(Golden, AListOfAMillion_IsCodedAndFreedWithoutRecursion) {
  constexpr std::size_t kLinks = 1'000'000;
  for (const auto &[type, link_bytes] : {std::tuple("node", 12u), std::tuple("item", 8u)}) {
    Bytes bytes(kLinks * link_bytes);
    for (std::size_t i = 1; i < kLinks; ++i) bytes[i * link_bytes - 1] = std::byte{1};  // there is a next one
    EXPECT_TRUE(convert(type, bytes) == bytes) << type;
  }
}

TEST_P(Golden, StructsLie64DeepInEachOtherAtMost_AsInCpp) {
  for (const int depth : {1, 63, 64, 65, 100'000}) {
    Bytes bytes;
    for (int i = 1; i < depth; ++i) append(bytes, {0, 1});
    append(bytes, {0, 0});
    EXPECT_EQ(xdr::decode<golden::tree>(bytes).ok(), depth <= 64);
    EXPECT_EQ(convert("tree", bytes).has_value(), depth <= 64) << depth;
  }
}

}  // namespace golden_suite
