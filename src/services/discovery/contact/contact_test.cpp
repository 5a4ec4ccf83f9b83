// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/contact.hpp"

#include <gtest/gtest.h>

namespace nessie::service {
namespace {

Contact example() {
  return {"directory",
          "shm://8a46-f0/nessie-1;ofi://10.0.0.7:41213?provider=tcp",
          {{{0x4e534449, 1}, 0}, {{0x20000101, 2}, 7}},
          {"node17", "8a46c1ff-0d2b", 4026531836, 4711, 12345},
          0x1f2e3d4c5b6a7988};
}

/// The golden text of version 1: README.md describes it.
constexpr const char *kText =
    "nessie-contact 1\n"
    "service = directory\n"
    "url = shm://8a46-f0/nessie-1\n"
    "url = ofi://10.0.0.7:41213?provider=tcp\n"
    "offer = 0x4e534449 version 1 provider 0\n"
    "offer = 0x20000101 version 2 provider 7\n"
    "host = node17\n"
    "boot = 8a46c1ff-0d2b\n"
    "pid-space = 4026531836\n"
    "pid = 4711\n"
    "started = 12345\n"
    "incarnation = 1f2e3d4c5b6a7988\n"
    "end\n";

std::string with(std::string_view old, std::string_view instead) {
  std::string text = kText;
  return text.replace(text.find(old), old.size(), instead);
}

TEST(Contact, IsTheTextOfTheFormat) {
  ASSERT_TRUE(to_text(example()).ok());
  EXPECT_EQ(*to_text(example()), kText);
  ASSERT_TRUE(parse_contact(kText).ok());
  EXPECT_EQ(*parse_contact(kText), example());
}

TEST(Contact, OfALaterProgram_MayHaveMoreKeys) {
  EXPECT_EQ(*parse_contact(with("host", "colour = blue\nhost")), example());
}

TEST(Contact, OfAnotherVersion_IsToldApart) {
  const auto contact = parse_contact(with("nessie-contact 1", "nessie-contact 2"));
  EXPECT_EQ(contact.code(), Code::kUnsupported);
  EXPECT_NE(contact.error().message.find("version 2"), std::string::npos) << contact.error().message;
}

TEST(Contact, ThatIsNone_IsABadMessageWithItsLine) {
  const std::string text = kText;
  for (const auto &wrong : {std::string(),
                            std::string("\n"),
                            std::string("nessie\n"),
                            std::string(100000, 'x'),
                            with("contact 1", "contact x"),
                            with("end\n", ""),
                            with("end\n", "end"),
                            text + "\n",
                            with("host", "HOST"),
                            with("pid = 4711", "pid = -1"),
                            with("pid = 4711", "pid = 0"),
                            with("pid = 4711", "pid = 99999999999999999999"),
                            with("pid = 4711", "pid = 1x"),
                            with("pid = 4711", "pid=4711"),
                            with("pid = 4711", "pid = "),
                            with("pid = 4711", "pid = 1\npid = 1"),
                            with("shm://8a46-f0/nessie-1", "not a url"),
                            with("service = directory", "service = a b"),
                            with("node17", std::string_view("no\0de", 5)),
                            with("node17", "no\x1b[2Jde"),
                            with("node17", std::string(2000, 'n')),
                            with("0x4e534449 version 1", "4e534449 version 1"),
                            with("version 1 provider", "version 1 provide"),
                            with("1f2e3d4c5b6a7988", "1f2e3d4c5b6a79880")}) {
    const auto contact = parse_contact(wrong);
    ASSERT_EQ(contact.code(), Code::kBadMessage) << wrong;
    EXPECT_TRUE(contact.error().message.starts_with("line ")) << contact.error().message;
  }
}

TEST(Contact, ThatCannotBeWritten_IsNot) {
  auto contact = example();
  contact.process.host = "two\nlines";
  EXPECT_EQ(to_text(contact).code(), Code::kInvalidArgument);
  contact = example();
  contact.service = "a service";
  EXPECT_EQ(to_text(contact).code(), Code::kInvalidArgument);
  contact = example();
  contact.url.clear();
  EXPECT_EQ(to_text(contact).code(), Code::kInvalidArgument);
  contact = example();
  contact.offers.resize(kMaxOffers + 1);
  EXPECT_EQ(to_text(contact).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace nessie::service
