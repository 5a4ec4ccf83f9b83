// SPDX-License-Identifier: BSD-3-Clause
// A UCX that is missing, too old, or told to use what is not there: each is an error that says what to do.
#include "nnti/transports/ucx/library.hpp"

#include "nnti/transports/ucx/transport.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace nnti::ucx {
namespace {

struct NobodyListens final : EventSink {
  void on_message(PeerId, std::span<const std::byte>) override {}
  void on_peer_lost(PeerId, const Error &) override {}
};

bool says(const Error &error, std::string_view words) { return error.message.find(words) != std::string::npos; }

Result<std::unique_ptr<Endpoint>> open_with(const std::string &setting, const std::string &value) {
  static NobodyListens nobody;
  EndpointOptions options;
  options.transports = {"ucx"};
  options.config.set("nnti.ucx.address", "127.0.0.1");
  options.config.set(setting, value);
  return Endpoint::open(std::move(options), nobody);
}

bool ucx_is_here() { return load_library().ok(); }

TEST(UcxLibrary, ThatIsMissing_SaysWhatToInstall) {
  const auto loaded = load_library("libucp-of-nowhere.so.0");
  ASSERT_EQ(loaded.code(), Code::kUnsupported);
  EXPECT_TRUE(says(loaded.error(), "libucp-of-nowhere.so.0")) << loaded.error().message;
  EXPECT_TRUE(says(loaded.error(), "install UCX 1.12 or newer")) << loaded.error().message;
}

TEST(UcxLibrary, ThatLacksAFunction_SaysWhich) {
  const auto loaded = load_library("libc.so.6");
  ASSERT_EQ(loaded.code(), Code::kUnsupported);
  EXPECT_TRUE(says(loaded.error(), "libc.so.6 lacks ucp_get_version; install UCX 1.12")) << loaded.error().message;
}

TEST(UcxLibrary, ThatIsTooOld_SaysWhichVersionItIs) {
  const auto loaded = load_library(NNTI_OLD_UCX);
  ASSERT_EQ(loaded.code(), Code::kUnsupported);
  EXPECT_TRUE(says(loaded.error(), "UCX 1.11.2")) << loaded.error().message;
  EXPECT_TRUE(says(loaded.error(), "install UCX 1.12")) << loaded.error().message;
}

TEST(UcxLibrary, LeavesTheSignalsOfTheProcessAlone) {
  std::signal(SIGSEGV, SIG_DFL);
  if (!ucx_is_here()) GTEST_SKIP() << "UCX is not installed here";
  EXPECT_EQ(std::signal(SIGSEGV, SIG_DFL), SIG_DFL);
}

struct UcxSettings : testing::Test {
  void SetUp() override {
    if (!ucx_is_here()) GTEST_SKIP() << "UCX is not installed here: " << load_library().error().message;
  }
};

TEST_F(UcxSettings, TransportsThatUcxDoesNotHave_AreNamed_AndWhereToLook) {
  const auto opened = open_with("nnti.ucx.tls", "pigeon");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.code(), Code::kUnsupported) << opened.error().to_string();
  EXPECT_TRUE(says(opened.error(), "'pigeon'")) << opened.error().message;
  EXPECT_TRUE(says(opened.error(), "nnti.ucx.tls")) << opened.error().message;
  EXPECT_TRUE(says(opened.error(), "ucx_info -d")) << opened.error().message;
}

TEST_F(UcxSettings, TransportsThatAreNotThere_AreToldByTheSurvey) {
  nessie::Config config;
  config.set("nnti.ucx.tls", "pigeon");
  const auto info = survey(config);
  EXPECT_FALSE(info.available);
  EXPECT_NE(info.explanation.find("nnti.ucx.tls"), std::string::npos) << info.explanation;
}

TEST_F(UcxSettings, TransportsThatAreThere_AreUsed) {
  nessie::Config config;
  config.set("nnti.ucx.tls", "tcp");
  const auto info = survey(config);
  ASSERT_TRUE(info.available) << info.explanation;
  EXPECT_NE(info.explanation.find("tcp/"), std::string::npos) << info.explanation;
}

TEST_F(UcxSettings, PortThatIsNone_IsInvalid) {
  for (const char *port : {"65536", "-1", "http"}) {
    const auto opened = open_with("nnti.ucx.port", port);
    ASSERT_EQ(opened.code(), Code::kInvalidArgument) << port;
    EXPECT_TRUE(says(opened.error(), "nnti.ucx.port")) << opened.error().message;
  }
}

TEST_F(UcxSettings, AddressThatIsNotOurs_IsNamed) {
  const auto opened = open_with("nnti.ucx.address", "192.0.2.254");
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(says(opened.error(), "192.0.2.254")) << opened.error().message;
}

}  // namespace
}  // namespace nnti::ucx
