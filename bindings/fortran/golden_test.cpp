// SPDX-License-Identifier: BSD-3-Clause
// The Fortran that is made of golden.x: it makes the bytes that our C++ makes, takes those that it takes, and no
// others.
#include "xdr/idl/golden_values.hpp"

#include <gtest/gtest.h>
#include <nessie/codes.h>

#include <fstream>
#include <initializer_list>
#include <regex>
#include <string>
#include <tuple>

extern "C" std::int64_t golden_fortran_convert(std::int32_t type, const void *in, std::int64_t in_bytes, void *out,
                                               std::int64_t out_bytes);

namespace {

using namespace golden;
using Bytes = std::vector<std::byte>;

/// As golden_convert.f90 numbers them.
enum Type : std::int32_t {
  kEverything,
  kNode,
  kHolder,
  kNumbers,
  kAliases,
  kRest,
  kTree,
  kItem,
  kOffsets,
  kChoice,
  kTitle,
  kDigest,
  kNumber
};

/// Through a value in Fortran; nothing: the bytes were refused.
std::optional<Bytes> convert(Type type, const Bytes &bytes) {
  Bytes made(bytes.size() + 64);
  const auto *in = bytes.empty() ? made.data() : bytes.data();  // Fortran's arrays are somewhere, also empty ones
  const auto size = golden_fortran_convert(type, in, static_cast<std::int64_t>(bytes.size()), made.data(),
                                           static_cast<std::int64_t>(made.size()));
  EXPECT_NE(size, -2) << "what was decoded cannot be encoded";
  if (size < 0) return std::nullopt;
  made.resize(static_cast<std::size_t>(size));
  return made;
}

/// Of a random value; none: the types' union has no arm for it.
template <class T> Bytes random_bytes(unsigned seed) {
  Filler filler(seed);
  T value;
  filler(value);
  return filler.failed ? Bytes() : xdr::encode(value);
}

/// Calls `test` with a value of each type that has others in it.
template <class Test> void for_each_type(Test test) {
  test(everything(), kEverything);
  test(node(), kNode);
  test(holder(), kHolder);
  test(numbers(), kNumbers);
  test(aliases(), kAliases);
  test(rest(), kRest);
}

void append(Bytes &bytes, std::initializer_list<unsigned> words) {
  for (const auto word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(word >> shift));
}
Bytes words(std::initializer_list<unsigned> words) {
  Bytes bytes;
  append(bytes, words);
  return bytes;
}

TEST(IdlFortran, RandomValues_HaveTheBytesOfCpp_BothWays) {
  unsigned tried = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed)
    for_each_type([&](auto value, Type type) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      if (bytes.empty()) return;
      ++tried;
      ASSERT_EQ(convert(type, bytes), bytes) << type << " " << seed;
    });
  EXPECT_GT(tried, 10'000u);
}

TEST(IdlFortran, LargeArrays_HaveTheBytesOfCpp) {
  everything value;
  value.c = color::RED;
  for (int i = 0; i < 10'000; ++i) value.many.push_back({i, 1.5F * static_cast<float>(i), -0.25 * i});
  for (int i = 0; i < 10'001; ++i) value.places.push_back(std::int64_t{i} << 33);
  EXPECT_EQ(convert(kEverything, xdr::encode(value)), xdr::encode(value));
  numbers more;
  for (unsigned i = 0; i < 10'001; ++i) {
    more.flat.push_back(i * 0x01020304u);
    more.floats.push_back(static_cast<float>(i));
    more.wide.push_back(~std::uint64_t{i});
  }
  EXPECT_EQ(convert(kNumbers, xdr::encode(more)), xdr::encode(more));
}

TEST(IdlFortran, AnyBytesAreTakenOrRefused_AsByCpp) {
  std::mt19937 random(1);
  unsigned taken = 0, refused = 0;
  for (unsigned i = 0; i < 20'000; ++i)
    for_each_type([&](auto value, Type type) {
      auto bytes = random_bytes<decltype(value)>(i % 50 + 1);
      if (bytes.empty()) return;
      for (auto changes = random() % 4; changes != 0; --changes)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 2 != 0 ? random() : random() % 5);
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      const auto theirs = xdr::decode<decltype(value)>(bytes);
      ++(theirs.ok() ? taken : refused);
      const auto ours = convert(type, bytes);
      ASSERT_EQ(ours.has_value(), theirs.ok()) << type << " " << i;
      ASSERT_EQ(ours.value_or(bytes), bytes) << type << " " << i;
    });
  EXPECT_GT(taken, 10'000u);
  EXPECT_GT(refused, 10'000u);
}

TEST(IdlFortran, BytesThatEndEarly_AreRefused) {
  for_each_type([&](auto value, Type type) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      for (std::size_t size = 0; size < bytes.size(); ++size)
        ASSERT_FALSE(convert(type, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))));
    }
  });
}

TEST(IdlFortran, ACountThatIsNotThere_IsRefused) {
  const std::tuple<Type, Bytes> arrays[] = {
      {kOffsets, {}}, {kTree, words({1})}, {kNode, words({1})}, {kNumbers, Bytes(72)}, {kNumber, words({7})}};
  for (const auto &[type, before] : arrays)
    for (const unsigned count : {0x10000u, 0x1fffffffu, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
      auto bytes = before;
      append(bytes, {count, 0, 0, 0});
      EXPECT_FALSE(convert(type, bytes)) << type << " " << count;
    }
}

TEST(IdlFortran, AFlagIs0Or1_AnEnumHasAName_PaddingIsZero) {
  EXPECT_TRUE(convert(kChoice, words({1, 0})));
  EXPECT_FALSE(convert(kChoice, words({2, 0})));
  EXPECT_FALSE(convert(kChoice, words({1, 2})));
  EXPECT_TRUE(convert(kTitle, words({2, 0x61620000})));
  EXPECT_FALSE(convert(kTitle, words({2, 0x61620001})));
  EXPECT_FALSE(convert(kTitle, words({17, 0, 0, 0, 0, 0}))) << "longer than its bound";
  EXPECT_TRUE(convert(kDigest, Bytes(20)));
  EXPECT_FALSE(convert(kDigest, words({0, 0, 0, 0, 1})));
}

TEST(IdlFortran, AListOfAMillion_IsAnArray) {
  constexpr std::size_t kLinks = 1'000'000;
  for (const auto &[type, link_bytes] : {std::tuple(kNode, 12u), std::tuple(kItem, 8u)}) {
    Bytes bytes(kLinks * link_bytes);
    for (std::size_t i = 1; i < kLinks; ++i) bytes[i * link_bytes - 1] = std::byte{1};  // there is a next one
    EXPECT_TRUE(convert(type, bytes) == bytes) << type;
  }
}

TEST(IdlFortran, StructsLie64DeepInEachOtherAtMost_AsInCpp) {
  for (const int depth : {1, 63, 64, 65, 100'000}) {
    Bytes bytes;
    for (int i = 1; i < depth; ++i) append(bytes, {0, 1});
    append(bytes, {0, 0});
    EXPECT_EQ(xdr::decode<tree>(bytes).ok(), depth <= 64);
    EXPECT_EQ(convert(kTree, bytes).has_value(), depth <= 64) << depth;
  }
}

TEST(Fortran, HasTheTableOfCodes) {
  std::ifstream file(NESSIE_FORTRAN_MODULE);
  const std::string source(std::istreambuf_iterator<char>(file), {});
#define NESSIE_IN_FORTRAN(name, number, result, advice) \
  EXPECT_TRUE(std::regex_search(source, std::regex("nessie_" #name " = " #number "\\b", std::regex::icase))) << #name;
  NESSIE_CODES(NESSIE_IN_FORTRAN)
#undef NESSIE_IN_FORTRAN
}

}  // namespace
