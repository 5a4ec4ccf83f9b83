// SPDX-License-Identifier: BSD-3-Clause
#include "stream_print.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

using streams::Type;

template <class T> std::span<const std::byte> bytes(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}

TEST(StreamText, ShowsElementsInRows) {
  const std::vector<double> values = {1, 2.5, -3, 4, 5, 6};
  EXPECT_EQ(text_of(Type::kDouble, {2, 3}, bytes(values)), "[[1 2.5 -3]\n [4 5 6]]");
  EXPECT_EQ(text_of(Type::kDouble, {1, 2, 3}, bytes(values)), "[[[1 2.5 -3]\n  [4 5 6]]]");
  EXPECT_EQ(text_of(Type::kDouble, {}, bytes(values).first(8)), "1");
  EXPECT_EQ(text_of(Type::kDouble, {0}, {}), "[]");
  EXPECT_EQ(json_of(Type::kDouble, {2, 3}, bytes(values)).dump(), "[[1.0,2.5,-3.0],[4.0,5.0,6.0]]");
}

TEST(StreamText, ShowsTextByRowsAndBytesAsNumbers) {
  const std::vector<char> text = {'a', 'b', '\0', 'c', 'd', 'e'};
  EXPECT_EQ(text_of(Type::kChar, {2, 3}, bytes(text)), "[\"ab\" \"cde\"]");
  EXPECT_EQ(json_of(Type::kChar, {6}, bytes(text)).dump(), "\"ab\"");
  EXPECT_EQ(text_of(Type::kUint8, {2}, bytes(std::vector<std::uint8_t>{7, 255})), "[7 255]");
  EXPECT_EQ(json_of(Type::kInt8, bytes(std::vector<std::int8_t>{-7})).dump(), "-7");
}

TEST(StreamText, SaysWhoIsThere) {
  streams::StreamInfo stream;
  stream.name = "flow", stream.steps = 12, stream.oldest = 3, stream.writers = 4, stream.connected = 3;
  stream.state = streams::StreamInfo::State::kInterrupted, stream.why = "a writer died";
  stream.readers.push_back({"plot", streams::Reading::kEvery, 1, 1, 10, 2, 0});
  stream.variables.push_back({"T", Type::kFloat, {8, 9}, {}, true});
  const auto text = describe(stream);
  for (const char *part :
       {"flow  interrupted, 12 steps, from 3 on, 3 of 4 writers, 1 reader", "a writer died", "T  constant float (8, 9)",
        "read by 'plot': every step, 1 of 1 process here, 2 steps behind"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto json = to_json(stream);
  EXPECT_EQ(json["readers"][0]["lag"], 2);
  EXPECT_EQ(json["variables"][0]["shape"].dump(), "[8,9]");
}

}  // namespace
}  // namespace nessie::cli
