// SPDX-License-Identifier: BSD-3-Clause
#include "base/credential.hpp"

#include "base/config.hpp"
#include "base/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

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

class UsersCredential : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    file_ = folder_ + "/credential";
    config_.set("credential_file", file_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  nessie::Result<Credential> of() const { return Credential::of(config_); }

  std::string folder_ = "/tmp/nessie-credential-XXXXXX", file_;
  nessie::Config config_;
};

TEST_F(UsersCredential, IsMadeOnce_ForHisEyesOnly) {
  const auto first = of();
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  EXPECT_TRUE(first->is_set());
  EXPECT_EQ(of()->to_hex(), first->to_hex());
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "something was left behind";
}

TEST_F(UsersCredential, IsOne_WhoeverMakesIt) {
  std::array<std::string, 16> all;
  std::vector<std::thread> threads;
  for (auto &each : all) threads.emplace_back([&] { each = of()->to_hex(); });
  for (auto &each : threads) each.join();
  for (const auto &each : all) EXPECT_EQ(each, all[0]);
}

TEST_F(UsersCredential, ThatOthersCouldKnow_IsRefused) {
  ASSERT_TRUE(of().ok());
  ASSERT_EQ(::chmod(file_.c_str(), 0640), 0);
  EXPECT_EQ(of().code(), nessie::Code::kRefused);
  EXPECT_NE(of().error().message.find("chmod 600"), std::string::npos);
}

TEST_F(UsersCredential, ThatIsNone_IsToldWithItsFile) {
  ASSERT_TRUE(nessie::write_private_file(file_, "secret\n").ok());
  EXPECT_EQ(of().code(), nessie::Code::kInvalidArgument);
  EXPECT_NE(of().error().message.find(file_), std::string::npos);
  config_.set("credential_file", folder_ + "/missing/credential");
  EXPECT_EQ(of().code(), nessie::Code::kIo);
}

TEST_F(UsersCredential, GoesAfterTheJobs) {
  const auto job = Credential::generate();
  config_.set("credential", job.to_hex());
  EXPECT_EQ(of()->to_hex(), job.to_hex());
  config_.set("credential", "none");
  EXPECT_FALSE(of()->is_set());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST(Random, GivesDifferentNumbers) { EXPECT_NE(nessie::random_u64(), nessie::random_u64()); }
