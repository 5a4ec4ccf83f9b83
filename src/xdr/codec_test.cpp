// SPDX-License-Identifier: BSD-3-Clause
// Rules and shapes; that the bytes are libtirpc's is proved by idl/c_test.cpp.
#include <gtest/gtest.h>

#include <boost/container/small_vector.hpp>
#include <cmath>
#include <random>
#include <xdr/codec.hpp>

namespace {

using Bytes = std::vector<std::byte>;

enum class Colour : std::uint32_t { kRed = 1, kBlue = 7 };
enum class Narrow : std::uint8_t { kOne = 1 };

struct Inner {
  std::int32_t number = 0;
  std::string name;
  bool operator==(const Inner &) const = default;
  template <class A> void xdr(A &a) { a(number, name); }
};

struct Everything {
  std::int32_t i = 0;
  std::uint32_t u = 0;
  std::int64_t h = 0;
  std::uint64_t uh = 0;
  bool flag = false;
  Colour colour = Colour::kRed;
  float f = 0;
  double d = 0;
  std::string text;
  Bytes opaque;
  std::vector<std::int32_t> ints;
  boost::container::small_vector<std::int64_t, 4> hypers;
  std::vector<double> doubles;
  std::vector<Inner> inners;
  std::array<std::byte, 5> fixed{};
  std::array<std::int32_t, 2> pair{};
  std::optional<Inner> maybe;
  bool operator==(const Everything &) const = default;
  template <class A> void xdr(A &a) {
    a(i, u, h, uh, flag, colour, f, d, text, opaque, ints, hypers, doubles, inners, fixed, pair, maybe);
  }
};

struct Tree {
  std::vector<Tree> children;
  template <class A> void xdr(A &a) { a(children); }
};

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

template <class Random> std::string random_text(Random &random) {
  std::string text(random() % 9, 'x');
  for (char &c : text) c = static_cast<char>(random());
  return text;
}

template <class Random> Everything random_everything(Random &random) {
  Everything e;
  e.i = static_cast<std::int32_t>(random());
  e.u = static_cast<std::uint32_t>(random());
  e.h = static_cast<std::int64_t>(random());
  e.uh = random();
  e.flag = random() % 2 != 0;
  e.colour = random() % 2 != 0 ? Colour::kRed : Colour::kBlue;
  e.f = static_cast<float>(e.i) / 3;
  e.d = static_cast<double>(e.h) / 7;
  e.text = random_text(random);
  e.opaque.assign(random() % 7, std::byte(random()));
  for (auto n = random() % 5; n != 0; --n) {
    e.ints.push_back(static_cast<std::int32_t>(random()));
    e.hypers.push_back(static_cast<std::int64_t>(random()));
    e.doubles.push_back(static_cast<double>(random()));
    e.inners.push_back({static_cast<std::int32_t>(random()), random_text(random)});
  }
  for (auto &b : e.fixed) b = std::byte(random());
  for (auto &n : e.pair) n = static_cast<std::int32_t>(random());
  if (random() % 2 != 0) e.maybe = Inner{1, random_text(random)};
  return e;
}

TEST(XdrGolden, IntegersAreBigEndian) {
  EXPECT_EQ(xdr::encode(std::int32_t{-2}), bytes_of({0xff, 0xff, 0xff, 0xfe}));
  EXPECT_EQ(xdr::encode(std::uint32_t{0x01020304}), bytes_of({1, 2, 3, 4}));
  EXPECT_EQ(xdr::encode(std::uint64_t{0x0102030405060708}), bytes_of({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(XdrGolden, StringsCarryTheirLengthAndZeroPadding) {
  EXPECT_EQ(xdr::encode(std::string("hello")), bytes_of({0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0}));
  EXPECT_EQ(xdr::encode(std::string()), bytes_of({0, 0, 0, 0}));
}

struct Sample {
  std::uint32_t id = 0;
  float weight = 0;
  double value = 0;
  template <class A> void xdr(A &a) { a(id, weight, value); }
};

TEST(XdrRoundTrip, ReturnsWhatWasEncoded) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    auto before = random_everything(random);
    auto bytes = xdr::encode(before);
    EXPECT_EQ(bytes.size() % 4, 0U);
    auto after = xdr::decode<Everything>(bytes);
    ASSERT_TRUE(after.ok()) << after.error().to_string();
    EXPECT_EQ(*after, before);
  }
}

TEST(XdrRoundTrip, EncodeIntoReusesTheBuffer) {
  Bytes bytes;
  bytes.reserve(100);
  const auto *memory = bytes.data();
  xdr::encode_into(std::string("some text"), bytes);
  xdr::encode_into(std::string("short"), bytes);
  EXPECT_EQ(bytes.data(), memory);
  EXPECT_EQ(bytes, xdr::encode(std::string("short")));
}

TEST(XdrRoundTrip, EncodeToRefusesABufferThatIsTooSmall) {
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(xdr::encode_to(std::uint64_t{1}, buffer), 8U);
  EXPECT_EQ(xdr::encode_to(std::string("too long"), buffer), 0U);
}

TEST(XdrRoundTrip, ViewsPointIntoTheMessage) {
  auto bytes = xdr::encode(std::string("view"));
  auto view = xdr::decode<std::string_view>(bytes);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(*view, "view");
  EXPECT_EQ(static_cast<const void *>(view->data()), bytes.data() + 4);
}

/// Of so many random elements: as span and as vector they are the same bytes, and come back to where a span points.
template <class T, class Make> void expect_spans_are_arrays(std::size_t count, Make make) {
  std::vector<T> elements, decoded(count);
  while (elements.size() < count) elements.push_back(make());
  const auto bytes = xdr::encode(elements);
  EXPECT_EQ(xdr::encode(std::span<const T>(elements)), bytes);
  EXPECT_EQ(xdr::encode(std::span<T>(elements)), bytes);
  std::span<T> there(decoded);
  ASSERT_TRUE(xdr::decode_into(bytes, there).ok());
  EXPECT_EQ(xdr::encode(decoded), bytes);
  for (const auto other : {count + 1, count - 1}) {
    decoded.resize(other);
    there = decoded;
    EXPECT_EQ(xdr::decode_into(bytes, there).code(), nessie::Code::kBadMessage) << other << " instead of " << count;
  }
  decoded.resize(count);
  there = decoded;
  EXPECT_EQ(xdr::decode_into(std::span(bytes).first(bytes.size() - 4), there).code(), nessie::Code::kBadMessage);
}

TEST(XdrRoundTrip, SpansAreArraysThatLieSomewhereElse) {
  std::mt19937 random(4);
  for (const std::size_t count : {1U, 3U, 15U, 16U, 17U, 64U, 1000U}) {
    expect_spans_are_arrays<double>(count, [&] { return static_cast<double>(random()) / 3; });
    expect_spans_are_arrays<std::int32_t>(count, [&] { return static_cast<std::int32_t>(random()); });
    expect_spans_are_arrays<Inner>(count, [&] {
      return Inner{static_cast<std::int32_t>(random()), random_text(random)};
    });
    expect_spans_are_arrays<Sample>(count, [&] {
      return Sample{static_cast<std::uint32_t>(random()), static_cast<float>(random()), static_cast<double>(random())};
    });
  }
  std::span<double> none;
  EXPECT_TRUE(xdr::decode_into(xdr::encode(none), none).ok());
}

TEST(XdrRoundTrip, SpecialFloatsSurvive) {
  auto nan = xdr::decode<double>(xdr::encode(std::nan("")));
  ASSERT_TRUE(nan.ok());
  EXPECT_TRUE(std::isnan(*nan));
  EXPECT_TRUE(std::signbit(*xdr::decode<float>(xdr::encode(-0.0F))));
}

template <class T> nessie::Code code_of(const Bytes &bytes) { return xdr::decode<T>(bytes).code(); }

TEST(XdrDecode, RefusesMalformedMessages) {
  using nessie::Code;
  EXPECT_EQ(code_of<std::int32_t>(bytes_of({0, 0, 1})), Code::kBadMessage) << "truncated";
  EXPECT_EQ(code_of<std::int32_t>(bytes_of({0, 0, 0, 1, 0})), Code::kBadMessage) << "trailing byte";
  EXPECT_EQ(code_of<bool>(bytes_of({0, 0, 0, 2})), Code::kBadMessage) << "bool of 2";
  EXPECT_EQ(code_of<std::optional<bool>>(bytes_of({1, 0, 0, 1, 0, 0, 0, 0})), Code::kBadMessage) << "optional";
  EXPECT_EQ(code_of<std::string>(bytes_of({0, 0, 0, 1, 'x', 0, 0, 1})), Code::kBadMessage) << "padding";
  EXPECT_EQ(code_of<std::string>(bytes_of({0, 0, 0, 1, 'x'})), Code::kBadMessage) << "padding is missing";
  EXPECT_EQ(code_of<Narrow>(bytes_of({0, 0, 1, 1})), Code::kBadMessage) << "enum too large for its type";
}

TEST(XdrDecode, RefusesCountsBeyondTheMessageWithoutSpendingMemory) {
  auto huge = bytes_of({0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0});
  EXPECT_EQ(code_of<std::string>(huge), nessie::Code::kBadMessage);
  EXPECT_EQ(code_of<Bytes>(huge), nessie::Code::kBadMessage);
  EXPECT_EQ(code_of<std::vector<double>>(huge), nessie::Code::kBadMessage);
  EXPECT_EQ(code_of<std::vector<Inner>>(huge), nessie::Code::kBadMessage);
}

TEST(XdrDecode, RefusesEndlessNesting) {
  Bytes bytes;
  for (int i = 0; i < 10000; ++i)
    for (int b : {0, 0, 0, 1}) bytes.push_back(static_cast<std::byte>(b));
  EXPECT_EQ(code_of<Tree>(bytes), nessie::Code::kBadMessage);
}

TEST(XdrDecode, SaysWhereTheFaultIs) {
  auto result = xdr::decode<Inner>(bytes_of({0, 0, 0, 1, 0, 0, 0, 9}));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("at byte 8"), std::string::npos) << result.error().message;
}

TEST(XdrDecode, MutatedMessagesAreRefusedOrReencodeToThemselves) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    auto bytes = xdr::encode(random_everything(random));
    for (auto n = random() % 4; n != 0; --n) bytes[random() % bytes.size()] = std::byte(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto value = xdr::decode<Everything>(bytes);
    if (value.ok()) { EXPECT_EQ(xdr::encode(*value), bytes); }
  }
}

/// Nothing of the bytes is touched.
TEST(XdrCodec, WhatIsLongerThanACountCanSay_IsNotEncoded) {
  const std::byte one{};
  std::span<const std::byte> bytes(&one, std::size_t{1} << 32);
  xdr::Sizer sizer;
  sizer(bytes);
  EXPECT_NE(sizer.fault(), nullptr);
  bytes = bytes.first(0xFFFFFFFF);
  xdr::Sizer fits;
  fits(bytes);
  EXPECT_EQ(fits.fault(), nullptr);
}

}  // namespace
