// SPDX-License-Identifier: BSD-3-Clause
// Transports that are loaded: which library, and why not.
#include "nnti/transport/module.hpp"

#include <gtest/gtest.h>
#include <nnti/nnti.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace {
std::string_view mpi_of_this_process = NESSIE_MPI_FLAVOUR " 9.9";
}

/// As a program that is linked to some MPI has it.
extern "C" [[gnu::visibility("default")]] int MPI_Get_library_version(char *text, int *length) {
  *length = static_cast<int>(mpi_of_this_process.copy(text, mpi_of_this_process.size()));
  return 0;
}

namespace nnti {
namespace {

struct Nobody final : EventSink {
  void on_message(PeerId, std::span<const std::byte>) override {}
  void on_peer_lost(PeerId, const nessie::Error &) override {}
};

nessie::Error refusal(const char *library) {
  Nobody nobody;
  EndpointOptions options;
  options.transports = {"mpi"};
  options.config.set("nnti.mpi.library", library);
  const auto opened = Endpoint::open(std::move(options), nobody);
  return opened.ok() ? nessie::Error{nessie::Code::kOk, ""} : opened.error();
}

TEST(TransportModule, OneThatIsNotThereIsNamed) {
  const auto error = refusal("/nowhere/libmpi_of_ours.so");
  EXPECT_EQ(error.code, nessie::Code::kUnsupported);
  EXPECT_NE(error.message.find("/nowhere/libmpi_of_ours.so"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("nnti.mpi.library"), std::string::npos) << error.message;
}

TEST(TransportModule, AnotherLibraryIsNoTransport) {
  const auto error = refusal(NNTI_NO_MODULE);
  EXPECT_EQ(error.code, nessie::Code::kUnsupported);
  EXPECT_NE(error.message.find("an unknown version"), std::string::npos) << error.message;
}

TEST(TransportModule, IsNotLoadedWhereTheProcessRunsAnotherMpi) {
  if (std::string_view(NESSIE_MPI_FLAVOUR).empty()) GTEST_SKIP() << "every MPI is taken for this one";
  const auto before = std::exchange(mpi_of_this_process, "Yet Another MPI\n2.0");
  const auto error = refusal("/nowhere/libmpi_of_ours.so");
  mpi_of_this_process = before;
  EXPECT_EQ(error.code, nessie::Code::kUnsupported);
  EXPECT_NE(error.message.find("runs Yet Another MPI,"), std::string::npos) << error.message;
}

TEST(TransportModule, TheSurveySaysWhyThereIsNone) {
  nessie::Config config;
  config.set("nnti.mpi.library", "/nowhere/libmpi_of_ours.so");
  const auto all = Endpoint::survey(config);
  const auto mpi = std::ranges::find(all, "mpi", &TransportInfo::name);
  ASSERT_NE(mpi, all.end());
  EXPECT_FALSE(mpi->available);
  EXPECT_NE(mpi->explanation.find("/nowhere"), std::string::npos) << mpi->explanation;
}

}  // namespace
}  // namespace nnti
