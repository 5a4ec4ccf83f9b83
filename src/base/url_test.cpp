// SPDX-License-Identifier: BSD-3-Clause
#include "base/url.hpp"

#include <gtest/gtest.h>

using nessie::Code;
using nessie::Url;

TEST(Url, SplitsIntoTransportAddressAndQuery) {
  auto url = Url::parse("ofi+tcp://10.0.0.1:7000?provider=tcp&key=a%3Db");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->transport, "ofi+tcp");
  EXPECT_EQ(url->address, "10.0.0.1:7000");
  EXPECT_EQ(url->query.at("provider"), "tcp");
  EXPECT_EQ(url->query.at("key"), "a=b");
}

TEST(Url, TextParsesBackToTheSame) {
  Url url{"shm", "host/name", {{"a", "1;2&3=4%"}, {"b", "x y"}}};
  auto back = Url::parse(url.to_string());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->query, url.query);
  EXPECT_EQ(back->to_string(), url.to_string());
}

TEST(Url, RefusesWhatIsNoUrl) {
  for (std::string text :
       {"", "shm", "shm:/x", "://x", "Shm://x", "9p://x", "shm://", "shm://?a=b", "shm://x?a", "shm://x?=b",
        "shm://x?a=1&a=2", "shm://x?a=%4", "shm://x?a=%zz", "shm://x?a=%00", "shm://a b", "shm://a;shm://b"})
    EXPECT_EQ(Url::parse(text).code(), Code::kInvalidArgument) << text;
  EXPECT_EQ(Url::parse("shm://" + std::string(2000, 'x')).code(), Code::kInvalidArgument);
  EXPECT_EQ(Url::parse(std::string_view("shm://a\0b", 9)).code(), Code::kInvalidArgument);
}

TEST(UrlList, KeepsItsOrder) {
  auto urls = Url::parse_list("inproc://a;shm://b;ofi://c");
  ASSERT_TRUE(urls.ok());
  ASSERT_EQ(urls->size(), 3u);
  EXPECT_EQ((*urls)[0].transport, "inproc");
  EXPECT_EQ((*urls)[2].address, "c");
}

TEST(UrlList, RefusesEmptyElements) {
  for (const char *text : {"", ";", "shm://a;", ";shm://a", "shm://a;;shm://b"})
    EXPECT_EQ(Url::parse_list(text).code(), Code::kInvalidArgument) << text;
}
