// SPDX-License-Identifier: BSD-3-Clause
// The C++ that is made of golden.x: what breaks the interface is refused. That its bytes are those of rpcgen and
// libtirpc is proved by c_test.cpp.
#include <gtest/gtest.h>

#include <golden.hpp>

#include <names.hpp>

namespace {

using namespace golden;
using nessie::Code;
using Bytes = std::vector<std::byte>;

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

template <class Link> void expect_a_million_of(std::size_t link_bytes) {
  constexpr std::size_t kLinks = 1'000'000;
  Bytes bytes(kLinks * link_bytes);
  for (std::size_t i = 1; i < kLinks; ++i) bytes[i * link_bytes - 1] = std::byte{1};  // there is a next one
  auto first = xdr::decode<Link>(bytes);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(xdr::encode(*first), bytes);
  Link moved = std::move(*first);
  moved = Link();
}

TEST(IdlCpp, AListOfAMillion_IsDecodedAndDestroyedWithoutRecursion) {
  expect_a_million_of<node>(12);
  expect_a_million_of<item>(8);
}

TEST(IdlCpp, ProgramsAndConstantsHaveTheirNumbers) {
  EXPECT_EQ(CALCULATOR::kProgram, 0x20000001u);
  EXPECT_EQ(CALCULATOR::FIRST::kVersion, 1u);
  EXPECT_EQ(CALCULATOR::FIRST::ADD, 1u);
  EXPECT_EQ(MOST, 16);
  EXPECT_EQ(NEGATIVE, -5);
}

}  // namespace
