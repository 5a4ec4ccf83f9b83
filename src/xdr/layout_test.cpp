// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <xdr/codec.hpp>

namespace {

using xdr::detail::pattern_of;
using Bytes = std::vector<std::byte>;

enum class Shade : std::uint32_t { kRed = 1 };

struct Plain {
  std::uint32_t id = 0;
  float weight = 0;
  double value = 0;
  bool operator==(const Plain &) const = default;
  template <class A> void xdr(A &a) { a(id, weight, value); }
};
struct Words {
  std::int32_t a = 0, b = 0, c = 0;
  bool operator==(const Words &) const = default;
  template <class A> void xdr(A &x) { x(a, b, c); }
};
struct Nested {
  double at = 0;
  std::array<Plain, 3> plain{};
  std::array<float, 4> floats{};
  bool operator==(const Nested &) const = default;
  template <class A> void xdr(A &a) { a(at, plain, floats); }
};
struct Padded {
  std::int32_t id = 0;
  double value = 0;
  bool operator==(const Padded &) const = default;
  template <class A> void xdr(A &a) { a(id, value); }
};
struct Reordered {
  std::int32_t a = 0, b = 0;
  template <class A> void xdr(A &x) { x(b, a); }
};
struct Partial {
  std::int32_t a = 0, b = 0;
  template <class A> void xdr(A &x) { x(a); }
};
struct Flagged {
  bool flag = false;
  std::array<char, 3> rest{};
  template <class A> void xdr(A &a) { a(flag); }
};
struct Coloured {
  Shade colour = Shade::kRed;
  template <class A> void xdr(A &a) { a(colour); }
};
struct Conditional {
  std::int32_t has = 1, value = 0;
  template <class A> void xdr(A &a) {
    a(has);
    if (has != 0) a(value);
  }
};
struct Even {
  std::int32_t number = 0;
  template <class A> void xdr(A &a) {
    a(number);
    if (number == 77) a.fail("77 is odd");
  }
};
struct HoldsEven {
  double other = 0;
  std::array<Even, 2> even{};
  template <class A> void xdr(A &a) { a(other, even); }
};
struct Large {
  std::array<double, 40> numbers{};
  template <class A> void xdr(A &a) { a(numbers); }
};

struct Text {
  std::string text;
  template <class A> void xdr(A &a) { a(text); }
};
struct Record {
  std::int32_t number = 0;
  bool flag = false;
  Shade colour = Shade::kRed;
  std::array<std::byte, 5> opaque{};
  std::array<std::int32_t, 2> pair{};
  bool operator==(const Record &) const = default;
  template <class A> void xdr(A &a) { a(number, flag, colour, opaque, pair); }
};

TEST(Layout, StructsOfNumbersOnly_ArePlain) {
  EXPECT_NE(pattern_of<Plain>(), nullptr);
  EXPECT_NE(pattern_of<Nested>(), nullptr);
  EXPECT_EQ(pattern_of<Words>(), &xdr::kWordsPattern);
  EXPECT_EQ((pattern_of<std::array<double, 3>>()), &xdr::kDoubleWordsPattern);
  EXPECT_EQ(pattern_of<float>(), &xdr::kWordsPattern);
}

TEST(Layout, StructsThatDifferFromTheirXdr_AreNot) {
  EXPECT_EQ(pattern_of<Padded>(), nullptr);
  EXPECT_EQ(pattern_of<Reordered>(), nullptr);
  EXPECT_EQ(pattern_of<Partial>(), nullptr);
}

TEST(Layout, StructsWhoseValuesAreChecked_AreNot) {
  EXPECT_EQ(pattern_of<Flagged>(), nullptr);
  EXPECT_EQ(pattern_of<Coloured>(), nullptr);
  EXPECT_EQ(pattern_of<Even>(), nullptr) << "fail() is not reached while looking";
  EXPECT_EQ(pattern_of<HoldsEven>(), nullptr);
  EXPECT_EQ(pattern_of<Conditional>(), nullptr);
}

TEST(Layout, WhatIsNoCandidate_IsNotAsked) {
  EXPECT_FALSE(xdr::detail::PlainCandidate<Text>);
  EXPECT_FALSE(xdr::detail::PlainCandidate<Large>);
  EXPECT_FALSE(xdr::detail::PlainCandidate<bool>);
}

template <class T> Bytes one_by_one(const std::vector<T> &values) {
  Bytes bytes = xdr::encode(static_cast<std::uint32_t>(values.size()));
  for (const auto &value : values) {
    const auto element = xdr::encode(value);
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  return bytes;
}

/// Values made of whatever bytes, which every number allows.
template <class T, class Random> std::vector<T> random_values(std::size_t count, Random &random) {
  std::vector<T> values;
  while (values.size() != count) {
    Bytes bytes(xdr::encoded_size(T{}));
    for (auto &b : bytes) b = static_cast<std::byte>(random() % 0x70);  // no NaN, which equals nothing
    values.push_back(*xdr::decode<T>(bytes));
  }
  return values;
}

template <class T> class ArraysOf : public testing::Test {};
using Elements =
    testing::Types<Plain, Words, Nested, Padded, std::array<double, 3>, double, std::int32_t, std::uint64_t>;
TYPED_TEST_SUITE(ArraysOf, Elements);

TYPED_TEST(ArraysOf, EverySize_HaveTheBytesOfTheirElements) {
  std::mt19937 random(1);
  for (std::size_t count : {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 100, 511, 512, 513, 2000, 5000}) {
    const auto values = random_values<TypeParam>(count, random);
    const auto bytes = xdr::encode(values);
    ASSERT_EQ(bytes, one_by_one(values)) << count;
    const auto copy = xdr::decode<std::vector<TypeParam>>(bytes);
    ASSERT_TRUE(copy.ok()) << copy.error().message;
    ASSERT_EQ(*copy, values) << count;
  }
}

TYPED_TEST(ArraysOf, WhatIsLeftFromBefore_IsOverwritten) {
  std::mt19937 random(2);
  std::vector<TypeParam> reused;
  for (std::size_t count : {100, 3000, 40, 0, 2000, 3000, 5000, 5}) {
    const auto values = random_values<TypeParam>(count, random);
    ASSERT_TRUE(xdr::decode_into(xdr::encode(values), reused).ok());
    ASSERT_EQ(reused, values);
  }
}

TYPED_TEST(ArraysOf, ACountBeyondTheMessage_IsRefused_AndNothingIsKept) {
  std::vector<TypeParam> values(100);
  auto bytes = xdr::encode(values);
  for (std::size_t missing : {std::size_t{4}, bytes.size() - 4, bytes.size() / 8 * 4}) {
    Bytes cut(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(missing));
    EXPECT_EQ(xdr::decode_into(cut, values).code(), nessie::Code::kBadMessage);
  }
  xdr::Reader reader(std::span<const std::byte>(bytes.data(), 4));
  reader(values);
  EXPECT_FALSE(reader.ok());
  if (pattern_of<TypeParam>() != nullptr) { EXPECT_TRUE(values.empty()); }
}

TEST(Arrays, ElementsThatTheirStructRefuses_AreRefused) {
  std::vector<Even> values(100);
  values[50].number = 77;
  EXPECT_EQ(xdr::decode<std::vector<Even>>(xdr::encode(values)).code(), nessie::Code::kBadMessage);
  std::vector<HoldsEven> holders(100);
  holders[99].even[1].number = 77;
  EXPECT_EQ(xdr::decode<std::vector<HoldsEven>>(xdr::encode(holders)).code(), nessie::Code::kBadMessage);
}

TEST(Arrays, LargeStructs_AreSwappedArrayByArray) {
  std::vector<Large> values(3);
  values[2].numbers[39] = 1.5;
  const auto bytes = xdr::encode(values);
  EXPECT_EQ(bytes.size(), 4 + 3 * 40 * 8U);
  const auto copy = xdr::decode<std::vector<Large>>(bytes);
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ((*copy)[2].numbers, values[2].numbers);
}

TEST(Arrays, FixedArraysOfPlainStructs_AreTheirElements) {
  std::array<Plain, 20> values{};
  for (std::uint32_t i = 0; i < 20; ++i) values[i] = {i, 1.5F, -static_cast<double>(i)};
  const auto bytes = xdr::encode(values);
  EXPECT_EQ(bytes.size(), 320U);
  EXPECT_EQ((*xdr::decode<std::array<Plain, 20>>(bytes)), values);
  EXPECT_EQ((xdr::decode<std::array<Plain, 20>>(std::span(bytes).first(316)).code()), nessie::Code::kBadMessage);
}

TEST(Fields, FixedOnes_AreReadAsOneByOne) {
  Record record{7, true, Shade::kRed, {}, {-1, 1}};
  record.opaque.fill(std::byte{9});
  const auto bytes = xdr::encode(record);
  EXPECT_EQ(bytes.size(), 28U);
  EXPECT_EQ(*xdr::decode<Record>(bytes), record);
}

std::string fault_of(std::span<const std::byte> bytes) {
  const auto record = xdr::decode<Record>(bytes);
  return record.ok() ? "" : record.error().message;
}

TEST(Fields, AFaultAmongFixedOnes_IsToldWithItsPlace) {
  auto bytes = xdr::encode(Record{});
  bytes[7] = std::byte{2};
  EXPECT_NE(fault_of(bytes).find("at byte 8, a flag"), std::string::npos) << fault_of(bytes);
  bytes[7] = std::byte{1};
  bytes[19] = std::byte{1};
  EXPECT_NE(fault_of(bytes).find("at byte 12, padding"), std::string::npos) << fault_of(bytes);
  bytes[19] = std::byte{0};
  EXPECT_EQ(fault_of(bytes), "");
  const auto cut = std::span(bytes).first(26);
  EXPECT_NE(fault_of(cut).find("at byte 24, the message ends"), std::string::npos) << fault_of(cut);
}

struct Branch {
  std::vector<Branch> branches;
  std::vector<Plain> plain;
  template <class A> void xdr(A &a) { a(branches, plain); }
};

Branch branch(int levels) {
  Branch out;
  out.plain.resize(100);
  if (levels != 1) out.branches.push_back(branch(levels - 1));
  return out;
}

TEST(Arrays, PlainStructs_CountAsNested) {
  EXPECT_TRUE(xdr::decode<Branch>(xdr::encode(branch(xdr::kMaxDepth - 1))).ok());
  EXPECT_FALSE(xdr::decode<Branch>(xdr::encode(branch(xdr::kMaxDepth))).ok());
}

}  // namespace
