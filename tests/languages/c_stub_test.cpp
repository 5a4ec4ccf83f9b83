// SPDX-License-Identifier: BSD-3-Clause
// What is particular to stubs in C: names, and results that are too large to be sent.
#include <gtest/gtest.h>

#include <nssi/stub.h>
#include <nssi/testing/testing.hpp>

#include "keeper_c.h"

namespace nssi::testing {
namespace {

using std::chrono::seconds;

nssi_rt_runtime *open_in_c(const std::string &transport) {
  nssi_rt_options options{};
  options.transports = transport.c_str();
  nssi_rt_runtime *runtime = nullptr;
  EXPECT_EQ(nssi_rt_open(&options, &runtime), NESSIE_OK) << nssi_rt_last_error();
  return runtime;
}

/// A service in C on a thread of its own.
class CService {
 public:
  explicit CService(const std::string &transport) : runtime(open_in_c(transport)) {}
  void run() {
    thread_ = std::thread([this] { EXPECT_EQ(nssi_rt_run(runtime), NESSIE_OK); });
  }
  ~CService() {
    EXPECT_EQ(nssi_rt_stop(runtime), NESSIE_OK);
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(nssi_rt_close(runtime), NESSIE_OK);
  }
  nssi_rt_runtime *const runtime;

 private:
  std::thread thread_;
};

TEST(StubsInC, BearNamesInSmallLetters_AndThoseOfCsHeaders) {
  CService service("inproc");
  ASSERT_EQ(keeper_offer(service.runtime), NESSIE_OK) << nssi_rt_last_error();
  service.run();
  auto *client = open_in_c("inproc");
  std::uint64_t peer = 0;
  ASSERT_EQ(nssi_rt_connect(client, nssi_rt_url(service.runtime), 20'000, &peer), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_EQ(keeper_check(client, peer), 0);
  EXPECT_EQ(nssi_rt_close(client), NESSIE_OK);
}

/// A value of 8 GiB, of which only its size is ever asked.
bool_t code_what_is_too_large(XDR *stream, void *) {
  static char nothing = 0;
  if (stream->x_op != XDR_ENCODE) return TRUE;
  for (int i = 0; i < 2; ++i)
    if (XDR_PUTBYTES(stream, &nothing, 0xFFFF'FFFCu) == FALSE) return FALSE;
  return TRUE;
}

TEST(StubsInC, AResultOf4GiB_IsTooLarge) {
  constexpr Interface kMuch{0x2000'0778, 1};
  const nssi_stub_procedure procedure{kMuch.program,
                                      kMuch.version,
                                      99,
                                      "MUCH",
                                      0,
                                      0,
                                      nullptr,
                                      0,
                                      code_what_is_too_large,
                                      1,
                                      [](const void *, nssi_rt_request *, void *, void *) -> int { return NESSIE_OK; }};
  const auto serve = [](void *what, nssi_rt_request *request) {
    nssi_stub_serve(request, static_cast<const nssi_stub_procedure *>(what), what);
  };
  CService service("inproc");
  ASSERT_EQ(nssi_stub_offer(service.runtime, 0, &procedure, serve, &procedure, NSSI_RT_FIBER), NESSIE_OK);
  service.run();
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = client->connect(nssi_rt_url(service.runtime), Deadline::in(seconds(20)));
  const auto outcome = client->call({*peer, kMuch, 0}, 99, {}).wait();
  EXPECT_EQ(outcome.code(), Code::kTooLarge);
  EXPECT_NE(outcome.error().message.find("MUCH"), std::string::npos) << outcome.error().message;
}

}  // namespace
}  // namespace nssi::testing
