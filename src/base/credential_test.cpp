// SPDX-License-Identifier: BSD-3-Clause
#include "base/credential.hpp"

#include <gtest/gtest.h>

using nessie::Credential;
using nessie::Nonce;

namespace {
Nonce nonce_of(int value) {
  Nonce nonce{};
  nonce[0] = static_cast<std::byte>(value);
  return nonce;
}
const Nonce kMine = nonce_of(1), kTheirs = nonce_of(2);
}  // namespace

TEST(Credential, ProofIsAcceptedByWhoSharesTheSecret) {
  auto credential = Credential::generate();
  auto other = *Credential::from_hex(credential.to_hex());
  EXPECT_TRUE(other.check(credential.prove("connect", kMine, kTheirs), "connect", kMine, kTheirs));
}

TEST(Credential, ProofOfAnotherSecretRoleOrNonceIsRefused) {
  auto credential = Credential::generate();
  auto proof = credential.prove("connect", kMine, kTheirs);
  EXPECT_FALSE(Credential::generate().check(proof, "connect", kMine, kTheirs));
  EXPECT_FALSE(credential.check(proof, "accept", kMine, kTheirs));
  EXPECT_FALSE(credential.check(proof, "connect", kTheirs, kMine));
}

TEST(Credential, EmptyOnesMatchEachOther) {
  EXPECT_TRUE(Credential().check(Credential().prove("accept", kMine, kTheirs), "accept", kMine, kTheirs));
}

TEST(Credential, ProofIsTheHmacOfTheSecret) {
  // HMAC-SHA256 with a key of 32 zero bytes over 06 "accept" and 32 zero bytes; made with Python's hmac module.
  auto proof = Credential().prove("accept", Nonce{}, Nonce{});
  std::string hex;
  for (auto byte : proof) {
    constexpr const char *kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<int>(byte) >> 4];
    hex += kDigits[static_cast<int>(byte) & 15];
  }
  EXPECT_EQ(hex, "19b4599edb1c746ea7817798a637d559a26861a4347f51c2f713080ee419ad02");
}

TEST(Credential, TextIsCheckedStrictly) {
  auto hex = Credential::generate().to_hex();
  EXPECT_TRUE(Credential::from_hex(hex).ok());
  auto no_digit = hex;
  no_digit[0] = 'g';
  for (const auto &text : {std::string(), hex + "0", hex.substr(1), no_digit})
    EXPECT_EQ(Credential::from_hex(text).code(), nessie::Code::kInvalidArgument) << text;
}

TEST(Random, GivesDifferentNumbers) { EXPECT_NE(nessie::random_u64(), nessie::random_u64()); }
