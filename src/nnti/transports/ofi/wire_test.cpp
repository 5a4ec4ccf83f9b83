// SPDX-License-Identifier: BSD-3-Clause
// The decoders of the ofi transport take any bytes.
#include "nnti/transports/ofi/wire.hpp"

#include "nnti/transports/ofi/library.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace {

using namespace nnti::ofi;
using Bytes = std::vector<std::byte>;

TEST(OfiWire, Hello_SurvivesARoundTrip_AndEveryTruncationIsRefused) {
  const auto bytes = encode_hello({42, "tcp;ofi_rxm", Bytes(16, std::byte{1})});
  auto hello = decode_hello(bytes);
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->token, 42u);
  EXPECT_EQ(hello->provider, "tcp;ofi_rxm");
  EXPECT_EQ(hello->name.size(), 16u);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_hello(std::span(bytes).first(size)).ok());
}

void count_signal(int) {}

TEST(OfiLibrary, LeavesTheProgramsSignalHandlersAsTheyAre) {
  ::unsetenv("IPATH_NO_BACKTRACE");
  ::unsetenv("HFI_NO_BACKTRACE");
  struct sigaction own {};
  own.sa_handler = count_signal;
  ASSERT_EQ(::sigaction(SIGTERM, &own, nullptr), 0);
  if (!load_library().ok()) GTEST_SKIP() << "this machine has no libfabric";
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, count_signal);
  ASSERT_EQ(::sigaction(SIGINT, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

}  // namespace
