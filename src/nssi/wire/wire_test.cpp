// SPDX-License-Identifier: BSD-3-Clause
// The wire format, byte by byte, as README.md says it.
#include <gtest/gtest.h>

#include <nssi/wire/wire.hpp>

#include <string>

namespace nssi::wire {
namespace {

using nessie::Code;

std::string hex(const std::vector<std::byte> &bytes) {
  static const char *digits = "0123456789abcdef";
  std::string text;
  for (auto b : bytes) {
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

bool is_bad_request(const std::vector<std::byte> &bytes) {
  Request request;
  return decode_request(bytes, request).code() == Code::kBadMessage;
}
bool is_bad_result(const std::vector<std::byte> &bytes) {
  Result result;
  return decode_result(bytes, result).code() == Code::kBadMessage;
}

constexpr std::byte kTwo[] = {std::byte{0xaa}, std::byte{0xbb}};
const Buffer kBuffer{{1, 2, 3, 4, 5, nnti::Rights::kReadWrite}};
const std::string kBufferHex =
    "0000000000000001"
    "0000000000000002"
    "0000000000000003"
    "0000000000000004"
    "00000005"
    "00000003";

TEST(NssiWire, RequestIsAsWritten) {
  Request request;
  request.prefix.id = 9;
  request.interface = {0x20000101, 3};
  request.provider = 2;
  request.op = 105;
  request.timeout_ms = 30000;
  request.data = kBuffer;
  request.args = kTwo;
  EXPECT_EQ(hex(xdr::encode(request)),
            "4e530201"
            "0000000000000009"
            "20000101"
            "00000003"
            "00000002"
            "00000069"
            "00007530"
            "00000001" +
                kBufferHex + "00000002aabb0000");
  EXPECT_LE(xdr::encode(request).size(), kMaxRequestOverhead + 2);
  request.long_args = kBuffer;
  request.trace.emplace();
  EXPECT_LE(xdr::encode(request).size(), kMaxRequestOverhead + 2);
}

TEST(NssiWire, WhatCarriesNothingMoreHasTheSameBytes) {
  Request request;
  PlainRequest plain_request;
  for (RequestHead *head : {static_cast<RequestHead *>(&request), static_cast<RequestHead *>(&plain_request)})
    *head = {{Kind::kRequest, 9}, {0x20000101, 3}, 2, 105, 30000};
  request.args = plain_request.args = kTwo;
  EXPECT_EQ(hex(xdr::encode(plain_request)), hex(xdr::encode(request)));
  Result result;
  PlainResult plain_result;
  result.prefix.id = plain_result.prefix.id = 9;
  result.result = plain_result.result = kTwo;
  EXPECT_EQ(hex(xdr::encode(plain_result)), hex(xdr::encode(result)));
}

TEST(NssiWire, WhatTheRequestBeforeCarriedIsForgotten) {
  Request full;
  full.data = kBuffer;
  full.is_one_way.emplace();
  full.trace.emplace();
  Request decoded;
  const auto forgotten = [&](std::vector<std::byte> next) {
    EXPECT_TRUE(decode_request(xdr::encode(full), decoded).ok());
    EXPECT_TRUE(decoded.data && decoded.is_one_way && decoded.trace && !decoded.long_args);
    (void)decode_request(next, decoded);
    return !decoded.data && !decoded.is_one_way && !decoded.trace;
  };
  EXPECT_TRUE(forgotten(xdr::encode(Request())));
  EXPECT_TRUE(forgotten({}));
  EXPECT_TRUE(forgotten(std::vector<std::byte>(36)));
  EXPECT_TRUE(decode_request(xdr::encode(Request()), decoded).ok());
  EXPECT_TRUE(forgotten(xdr::encode(Request())));
}

TEST(NssiWire, ResultIsAsWritten) {
  Result result;
  result.prefix.id = 9;
  result.result = kTwo;
  EXPECT_EQ(hex(xdr::encode(result)),
            "4e530202"
            "0000000000000009"
            "00000000"
            "00000002aabb0000");
  result.result = {};
  result.failure = Failure{12, 2, 28, "full"};
  EXPECT_EQ(hex(xdr::encode(result)),
            "4e530202"
            "0000000000000009"
            "00000001"
            "0000000c"
            "00000002"
            "0000001c"
            "0000000466756c6c"
            "00000000");
  result.failure.reset();
  result.long_result = kBuffer;
  EXPECT_EQ(hex(xdr::encode(result)),
            "4e530202"
            "0000000000000009"
            "00000002" +
                kBufferHex + "00000000");
  EXPECT_LE(xdr::encode(result).size(), kMaxResultOverhead);
}

TEST(NssiWire, ControlMessagesArePrefixes) {
  EXPECT_EQ(hex(xdr::encode(Prefix{Kind::kResultFetched, 1})), "4e5302030000000000000001");
  EXPECT_EQ(hex(xdr::encode(Prefix{Kind::kCancel, 1})), "4e5302040000000000000001");
  EXPECT_EQ(hex(xdr::encode(Prefix{Kind::kCancelled, 1})), "4e5302050000000000000001");
}

TEST(NssiWire, HelloAndWelcomeAreAsWritten) {
  Hello hello;
  hello.session[0] = std::byte{0xab};
  EXPECT_EQ(hex(xdr::encode(hello)), "4e5302060000000000000000ab000000000000000000000000000000");
  Welcome welcome;
  welcome.incarnation = 0x0123456789abcdef;
  EXPECT_EQ(hex(xdr::encode(welcome)), "4e53020700000000000000000123456789abcdef00000000000000000000000000000000");
  RoleProof proof;
  proof.url = "shm:a";
  proof.proof[31] = std::byte{0xcd};
  EXPECT_EQ(hex(xdr::encode(proof)),
            "4e53020a0000000000000000"
            "0000000573686d3a61000000" +
                std::string(62, '0') + "cd");
}

TEST(NssiWire, BusyAndInvitedAreAsWritten) {
  EXPECT_EQ(hex(xdr::encode(Busy{{Kind::kBusy, 5}, 250})), "4e5302080000000000000005000000fa");
  EXPECT_EQ(hex(xdr::encode(Invited{{Kind::kInvited, 0}, {0x20000001, 2}, 3})),
            "4e5302090000000000000000200000010000000200000003");
}

TEST(NssiWire, AFlagIsABitOfWhatARequestCarries) {
  Request request;
  request.does_not_wait.emplace();
  EXPECT_EQ(xdr::encode(request)[35], std::byte{4});
  request.is_one_way.emplace();
  EXPECT_EQ(xdr::encode(request)[35], std::byte{12});
  request.trace = Trace{0x0123456789abcdef, 5};
  EXPECT_EQ(hex(xdr::encode(request)).substr(64),
            "0000004c"
            "0123456789abcdef"
            "0000000000000005"
            "00000000");
  Request again;
  ASSERT_TRUE(decode_request(xdr::encode(request), again).ok());
  EXPECT_TRUE(again.does_not_wait && again.is_one_way && again.trace);
  EXPECT_EQ(again.trace->span, 5u);
}

TEST(NssiWire, WhereScatteredDataAreIsAsWritten) {
  const Segments segments{{kBuffer}, {{0, 1, 2}, {0, 0, 1}}};
  const auto list = xdr::encode(segments);
  EXPECT_EQ(hex(list), "00000001" + kBufferHex +
                           "00000002"
                           "0000000000000000000000010000000000000002"
                           "0000000000000000000000000000000000000001");
  EXPECT_EQ(list.size(), list_bytes(1, 2));
  Request request;
  request.segments = list;
  const auto message = xdr::encode(request);
  EXPECT_EQ(message[35], std::byte{32});
  EXPECT_EQ(hex(message).substr(72), "00000058" + hex(list) + "00000000");
  request.segments.reset();
  request.data = kBuffer;
  request.data_is_list.emplace();
  EXPECT_EQ(xdr::encode(request)[35], std::byte{17});
  request.long_args = kBuffer;
  EXPECT_LE(xdr::encode(request).size(), kMaxRequestOverhead);
}

bool is_bad_list(const std::vector<Buffer> &buffers, const std::vector<Segment> &segments) {
  Segments decoded;
  const auto list = xdr::encode(Segments{buffers, segments});
  Request request;
  request.segments = list;
  const bool is_bad = decode_segments(list, decoded).code() == Code::kBadMessage;
  EXPECT_EQ(is_bad, is_bad_request(xdr::encode(request)));
  return is_bad;
}

TEST(NssiWire, RefusesListsOfSegmentsThatAreNone) {
  constexpr auto kMost = ~std::uint64_t{0};
  EXPECT_FALSE(is_bad_list({kBuffer}, {{0, 0, 3}, {0, 2, 1}}));
  EXPECT_TRUE(is_bad_list({}, {}));
  EXPECT_TRUE(is_bad_list({kBuffer}, {}));
  EXPECT_TRUE(is_bad_list({kBuffer, kBuffer}, {{0, 0, 3}})) << "more buffers than segments";
  EXPECT_TRUE(is_bad_list({kBuffer}, {{1, 0, 3}})) << "no such buffer";
  EXPECT_TRUE(is_bad_list({kBuffer}, {{0, 0, 0}})) << "empty";
  EXPECT_TRUE(is_bad_list({kBuffer}, {{0, 0, 4}}));
  EXPECT_TRUE(is_bad_list({kBuffer}, {{0, 2, 2}}));
  EXPECT_TRUE(is_bad_list({kBuffer}, {{0, 4, 1}}));
  EXPECT_TRUE(is_bad_list({kBuffer}, {{0, kMost, 2}})) << "its end is beyond 64 bits";
  const Buffer all{{1, 2, kMost, 4, 5, nnti::Rights::kReadWrite}};
  EXPECT_FALSE(is_bad_list({all}, {{0, 0, kMost}}));
  EXPECT_TRUE(is_bad_list({all}, {{0, 0, kMost}, {0, 0, 1}})) << "their sum is beyond 64 bits";
  EXPECT_TRUE(is_bad_list({Buffer{{1, 2, 3, 4, 5, static_cast<nnti::Rights>(4)}}}, {{0, 0, 1}}));
  EXPECT_TRUE(is_bad_list({kBuffer}, std::vector<Segment>(kMostSegments + 1, {0, 0, 1})));
}

TEST(NssiWire, ARequestDescribesItsDataOnce) {
  const auto list = xdr::encode(Segments{{kBuffer}, {{0, 1, 2}}});
  Request request;
  request.segments = list;
  request.data = kBuffer;
  EXPECT_TRUE(is_bad_request(xdr::encode(request)));
  request.data.reset();
  EXPECT_FALSE(is_bad_request(xdr::encode(request)));
  request.data_is_list.emplace();
  EXPECT_TRUE(is_bad_request(xdr::encode(request)));
  request.segments.reset();
  EXPECT_TRUE(is_bad_request(xdr::encode(request))) << "the list is nowhere";
  request.data = kBuffer;
  request.data->remote.size_bytes = kMostListBytes;
  EXPECT_FALSE(is_bad_request(xdr::encode(request)));
  request.data->remote.size_bytes = ~std::uint64_t{0};  // which a service would be charged for
  EXPECT_TRUE(is_bad_request(xdr::encode(request)));
}

TEST(NssiWire, RefusesWhatIsNotOneOfItsMessages) {
  Request request;
  EXPECT_TRUE(is_bad_result(xdr::encode(request)));
  EXPECT_FALSE(prefix_of(std::vector<std::byte>(11)));
  EXPECT_FALSE(prefix_of(std::vector<std::byte>(12)));
  auto unknown = xdr::encode(request);
  unknown[35] = std::byte{128};
  EXPECT_TRUE(is_bad_request(unknown)) << "it carries what nobody knows";
  request.data = Buffer{{1, 2, 3, 4, 5, static_cast<nnti::Rights>(4)}};
  EXPECT_TRUE(is_bad_request(xdr::encode(request)));
  request.data.reset();
  request.args = kTwo;
  request.long_args = kBuffer;
  EXPECT_TRUE(is_bad_request(xdr::encode(request)));
  Result result;
  result.failure = Failure{0, 0, 0, ""};
  EXPECT_TRUE(is_bad_result(xdr::encode(result))) << "an error without a code";
}

TEST(NssiWire, AnErrorsTextIsCutWhereACharacterBegins) {
  const auto sent = [](const std::string &text) {
    return std::string(to_failure({Code::kIo, text, nessie::Scope::kService, 0}).message);
  };
  EXPECT_EQ(sent(std::string(2048, 'x')).size(), 2048u);
  EXPECT_EQ(sent(std::string(3000, 'x')).size(), 2048u);
  for (const std::string character : {"\u00e9", "\u20ac", "\U0001F600"})
    for (std::size_t before = 2040; before <= 2048; ++before) {
      const auto fits = (2048 - before) / character.size();
      std::string text(before, 'x');
      for (int i = 0; i < 100; ++i) text += character;
      EXPECT_EQ(sent(text), text.substr(0, before + fits * character.size())) << before;
    }
  EXPECT_LE(sent(std::string(3000, '\x80')).size(), 2048u) << "what is no UTF-8";
}

TEST(NssiWire, KnowsWhatIsAnError) {
  EXPECT_TRUE(is_error(NESSIE_TIMED_OUT, 0));
  EXPECT_TRUE(is_error(NESSIE_UNAVAILABLE, 3));
  for (const std::int64_t code : {NESSIE_OK + 0, -1, INT32_MIN, NESSIE_UNAVAILABLE + 1})
    EXPECT_FALSE(is_error(code, 0));
  for (const std::int64_t scope : {-1, 4}) EXPECT_FALSE(is_error(NESSIE_IO, scope));
}

TEST(NssiWire, ErrorsTravelWhole) {
  const nessie::Error before{Code::kIo, "No space left on device", nessie::Scope::kService, 28};
  const auto after = to_error(to_failure(before));
  EXPECT_EQ(after.code, before.code);
  EXPECT_EQ(after.scope, before.scope);
  EXPECT_EQ(after.cause, before.cause);
  EXPECT_EQ(after.message, before.message);
}

}  // namespace
}  // namespace nssi::wire
