// SPDX-License-Identifier: BSD-3-Clause
// The C++ that is made of golden.x: its bytes are those of rpcgen and libtirpc; what breaks the interface is refused.
#include "golden_side.h"
#include "golden_values.hpp"

#include <gtest/gtest.h>

#include <names.hpp>

namespace {

using namespace golden;
using nessie::Code;
using Bytes = std::vector<std::byte>;

/// From us to libtirpc, and back.
template <class T> void expect_same_bytes(const T &value, const char *type) {
  auto bytes = xdr::encode_checked(value);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  Bytes theirs(bytes->size() + 64);
  const auto *it = golden_find(&golden_rpcgen, type);
  const long size = golden_convert(it, it, reinterpret_cast<char *>(bytes->data()), bytes->size(),
                                   reinterpret_cast<char *>(theirs.data()), theirs.size());
  ASSERT_GE(size, 0) << "libtirpc does not take our bytes";
  theirs.resize(static_cast<std::size_t>(size));
  EXPECT_EQ(theirs, *bytes);
  const auto copy = xdr::decode<T>(theirs);
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(xdr::encode(*copy), theirs);
}

template <class T> void expect_same_bytes_of_one(const char *type, unsigned seed, unsigned &tried) {
  Filler filler(seed);
  T value;
  filler(value);
  if (filler.failed) return;
  ++tried;
  expect_same_bytes(value, type);
}

TEST(IdlCpp, NamesThatAreTakenGetAnother_AndStayApart) {
  const taken::names::point point{1, 2, 3, 4, 5, 6};
  const auto bytes = xdr::encode(point);
  ASSERT_EQ(bytes.size(), 24u);
  EXPECT_EQ(bytes[19], std::byte{5}) << "errno";
  EXPECT_EQ(xdr::decode<taken::names::point>(bytes)->point_, 1);
  taken::names::chosen chosen;
  chosen.select(taken::names::word::class_);
  chosen.select_()->errno_ = 7;
  EXPECT_EQ(xdr::decode<taken::names::chosen>(xdr::encode(chosen))->select_()->errno_, 7);
  EXPECT_EQ(static_cast<int>(taken::names::word::class_), 2);
  EXPECT_EQ(static_cast<int>(taken::names::word::errno_), 3);
}

TEST(IdlCpp, RandomValues_HaveTheBytesOfLibtirpc_BothWays) {
  unsigned tried = 0;
  for (unsigned seed = 1; seed <= 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    expect_same_bytes_of_one<everything>("everything", seed, tried);
    expect_same_bytes_of_one<node>("node", seed, tried);
    expect_same_bytes_of_one<holder>("holder", seed, tried);
    expect_same_bytes_of_one<numbers>("numbers", seed, tried);
    expect_same_bytes_of_one<aliases>("aliases", seed, tried);
    expect_same_bytes_of_one<rest>("rest", seed, tried);
  }
  EXPECT_GT(tried, 10'000u);
}

TEST(IdlCpp, LargeArraysOfStructsOfNumbers_HaveTheBytesOfLibtirpc) {
  everything value;
  value.c = color::RED;
  for (int i = 0; i < 1000; ++i) value.many.push_back({i, 1.5F * static_cast<float>(i), -0.25 * i});
  expect_same_bytes(value, "everything");
}

TEST(IdlCpp, AStructOfOneInt_HasTheGoldenBytes) {
  const point value{-2, 1.5F, -0.25};
  const unsigned char golden_bytes[] = {0xff, 0xff, 0xff, 0xfe, 0x3f, 0xc0, 0, 0, 0xbf, 0xd0, 0, 0, 0, 0, 0, 0};
  const auto bytes = xdr::encode(value);
  ASSERT_EQ(bytes.size(), sizeof golden_bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), golden_bytes, sizeof golden_bytes), 0);
}

TEST(IdlCpp, WhatIsLongerThanItsBound_IsNeitherEncodedNorDecoded) {
  everything value;
  value.c = color::RED;
  value.bounded = std::string("seven..");
  const auto fits = xdr::encode_checked(value);
  ASSERT_TRUE(fits.ok());
  value.bounded = std::string("eight...");
  EXPECT_EQ(xdr::encode_checked(value).code(), Code::kInvalidArgument);
  EXPECT_EQ(xdr::decode<everything>(xdr::encode(value)).code(), Code::kBadMessage);
  value.bounded.clear();
  value.titles.resize(4);
  EXPECT_EQ(xdr::encode_checked(value).code(), Code::kInvalidArgument);
  EXPECT_EQ(xdr::decode<everything>(xdr::encode(value)).code(), Code::kBadMessage);
}

TEST(IdlCpp, AnEnumHasNoOtherValues) {
  everything value;  // 0 is no color
  EXPECT_EQ(xdr::encode_checked(value).code(), Code::kInvalidArgument);
  EXPECT_EQ(xdr::decode<everything>(xdr::encode(value)).code(), Code::kBadMessage);
}

TEST(IdlCpp, AUnion_BeginsWithItsFirstArm_AndHoldsWhatItSays) {
  number value;
  EXPECT_EQ(value.kind, -1);
  ASSERT_NE(value.small(), nullptr);
  EXPECT_EQ(value.large(), nullptr);
  value.select(3);
  ASSERT_NE(value.words(), nullptr);
  *value.words() = "three";
  const auto copy = xdr::decode<number>(xdr::encode(value));
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(*copy, value);
  value.kind = 2;  // behind its back
  EXPECT_EQ(xdr::encode_checked(value).code(), Code::kInvalidArgument);
  value.select(77);
  EXPECT_NE(value.raw(), nullptr);
}

TEST(IdlCpp, AUnionWithoutADefault_RefusesOtherCases) {
  answer value;
  value.c = static_cast<color>(7);
  EXPECT_EQ(xdr::encode_checked(value).code(), Code::kInvalidArgument);
  EXPECT_EQ(xdr::decode<answer>(Bytes(4)).code(), Code::kBadMessage);
}

TEST(IdlCpp, AChainOfAMillion_IsDecodedAndDestroyedWithoutRecursion) {
  constexpr std::size_t kLinks = 1'000'000, kLinkBytes = 12;
  Bytes bytes(kLinks * kLinkBytes);
  for (std::size_t i = 0; i + 1 < kLinks; ++i) bytes[i * kLinkBytes + 11] = std::byte{1};  // there is a next one
  auto first = xdr::decode<node>(bytes);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(xdr::encode(*first), bytes);
  node moved = std::move(*first);
  moved = node();
}

TEST(IdlCpp, AListThatIsCalledSo_IsDecodedAndDestroyedWithoutRecursion) {
  constexpr std::size_t kLinks = 1'000'000, kLinkBytes = 8;
  Bytes bytes(kLinks * kLinkBytes);
  for (std::size_t i = 0; i + 1 < kLinks; ++i) bytes[i * kLinkBytes + 7] = std::byte{1};  // there is a next one
  auto first = xdr::decode<item>(bytes);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(xdr::encode(*first), bytes);
}

TEST(IdlCpp, ATreeThatIsTooDeep_IsRefused) {
  Bytes bytes;
  for (int i = 0; i < 100'000; ++i) bytes.insert(bytes.end(), {{}, {}, {}, {}, {}, {}, {}, std::byte{1}});
  EXPECT_EQ(xdr::decode<tree>(bytes).code(), Code::kBadMessage);
}

TEST(IdlCpp, AnyBytes_AreDecodedOrRefused) {
  std::mt19937 random(1);
  Filler filler(7);
  everything all;
  holder some;
  filler(all);
  filler(some);
  const Bytes corpus[] = {xdr::encode(all), xdr::encode(some)};
  for (int i = 0; i < 50'000; ++i) {
    Bytes bytes = corpus[random() % 2];
    for (auto changes = random() % 4; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 4 == 0 ? random() % bytes.size() : bytes.size());
    const auto one = xdr::decode<everything>(bytes);
    EXPECT_TRUE(!one.ok() || xdr::encode_checked(*one).ok());
    const auto other = xdr::decode<holder>(bytes);
    EXPECT_TRUE(!other.ok() || xdr::encode_checked(*other).ok());
  }
}

TEST(IdlCpp, ProgramsAndConstantsHaveTheirNumbers) {
  EXPECT_EQ(CALCULATOR::kProgram, 0x20000001u);
  EXPECT_EQ(CALCULATOR::FIRST::kVersion, 1u);
  EXPECT_EQ(CALCULATOR::FIRST::ADD, 1u);
  EXPECT_EQ(MOST, 16);
  EXPECT_EQ(NEGATIVE, -5);
}

}  // namespace
