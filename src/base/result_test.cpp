// SPDX-License-Identifier: BSD-3-Clause
#include <nessie/result.hpp>

#include <gtest/gtest.h>

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

TEST(Codes, EveryCodeHasANameAndAdvice) {
  for (int code = NESSIE_OK; code <= NESSIE_INTERNAL; ++code) {
    EXPECT_STRNE(nessie_code_name(code), "UNKNOWN") << code;
    EXPECT_STRNE(nessie_code_advice(code), "") << code;
  }
}

TEST(Codes, NumbersAreThoseOfTheWireForEver) {
  EXPECT_EQ(NESSIE_PEER_LOST, 2);
  EXPECT_EQ(NESSIE_BAD_MESSAGE, 11);
  EXPECT_EQ(NESSIE_INTERNAL, 15);
}

TEST(Codes, ACodeOfALaterVersionIsUnknown) { EXPECT_STREQ(nessie_code_name(999), "UNKNOWN"); }

TEST(Error, TextNamesCodeMessageAndCause) {
  Error error{Code::kPeerLost, "the staging server died", nessie::Scope::kPeer, 104};
  EXPECT_EQ(error.to_string(), "PEER_LOST: the staging server died (cause 104)");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<int> seven = 7, none = Error{Code::kNotFound, "no number"};
  EXPECT_EQ(*seven, 7);
  EXPECT_EQ(seven.code(), Code::kOk);
  EXPECT_EQ(none.code(), Code::kNotFound);
}

TEST(Status, CopiesItsError) {
  Status failed = Error{Code::kBusy, "later"};
  Status copy = failed;
  EXPECT_EQ(copy.error().message, "later");
  copy = Status{};
  EXPECT_TRUE(copy.ok());
  EXPECT_EQ(failed.code(), Code::kBusy);
}
