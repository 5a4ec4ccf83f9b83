// SPDX-License-Identifier: BSD-3-Clause
// Clients and services of atlas.x in C and in C++, each against the others, in one process and in two.
#include "atlas_rpc.hpp"

#include <gtest/gtest.h>

#include <nssi/stub.h>
#include <nssi/testing/testing.hpp>
#include <numeric>

#include "atlas_c.h"

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace FIRST = atlas::ATLAS::FIRST;

class Atlas final : public FIRST::Server {
 public:
  explicit Atlas(Runtime &runtime) : runtime_(runtime) {}
  Outcome<void> NOTHING(Request &) override { return {}; }
  Outcome<std::int32_t> ADD(Request &, std::int32_t a, std::int32_t b) override { return a + b; }
  Outcome<std::string> GREET(Request &, const std::string &name) override { return "hello " + name; }
  Outcome<atlas::point> MIRROR(Request &, const atlas::point &p) override { return atlas::point{-p.x, -p.y}; }
  Outcome<atlas::path> WALK(Request &, const atlas::point &from, std::uint32_t steps) override {
    atlas::path path;
    for (std::uint32_t i = 0; i < steps; ++i) path.push_back({from.x + static_cast<std::int32_t>(i), from.y});
    return path;
  }
  Outcome<std::int32_t> LENGTH(Request &, const atlas::path &path) override {
    return static_cast<std::int32_t>(path.size());
  }
  Outcome<atlas::found> FIND(Request &, const atlas::color &color) override {
    atlas::found found;
    found.select(color == atlas::color::RED);
    if (auto *where = found.where()) *where = {1, 2};
    return found;
  }
  Outcome<atlas::parcel> ECHO(Request &, const atlas::parcel &bytes) override { return bytes; }
  Outcome<atlas::grid> TURN(Request &, const atlas::grid &grid) override {
    return atlas::grid{grid[3], grid[2], grid[1], grid[0]};
  }
  Outcome<std::uint64_t> SUM(Request &request) override {
    Bytes data(request.data_bytes());
    if (auto status = request.get_data(data); !status.ok()) return status.error();
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::byte each) { return sum + std::to_integer<unsigned>(each); });
  }
  Outcome<void> FILL(Request &request, std::int32_t value) override {
    return request.put_data(Bytes(request.data_bytes(), static_cast<std::byte>(value)));
  }
  Outcome<void> NEGATE(Request &request) override {
    Bytes data(request.data_bytes());
    if (auto status = request.get_data(data); !status.ok()) return status;
    for (auto &each : data) each = ~each;
    return request.put_data(data);
  }
  Outcome<std::int32_t> REFUSE(Request &, std::int32_t cause) override {
    return Error{Code::kIo, "No space left on device: free some", nessie::Scope::kService, cause};
  }
  Outcome<void> WAIT(Request &, std::int32_t time_ms) override {
    runtime_.sleep_until(Deadline::in(milliseconds(time_ms)));
    return {};
  }
  Outcome<std::int32_t> PULL_TOO_MUCH(Request &request) override {
    std::byte byte{};
    auto status = request.get_data({&byte, 1}, request.data_bytes());
    return status.ok() ? Outcome<std::int32_t>(0) : Outcome<std::int32_t>(status.error());
  }

 private:
  Runtime &runtime_;
};

/// A service in C++ on a thread of its own.
class CppService {
 public:
  explicit CppService(const std::string &transport) : runtime_(open_runtime(options_for(transport, true))) {
    EXPECT_TRUE(atlas_.add_to(*runtime_).ok());
    thread_ = std::thread([this] { runtime_->run(); });
  }
  ~CppService() {
    runtime_->stop();
    thread_.join();
    runtime_.reset();  // ends the handlers
  }
  std::string url() const { return runtime_->url(); }

 private:
  std::unique_ptr<Runtime> runtime_;
  Atlas atlas_{*runtime_};
  std::thread thread_;
};

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
  explicit CService(const std::string &transport) : runtime_(open_in_c(transport)) {
    EXPECT_EQ(atlas_offer(runtime_), NESSIE_OK) << nssi_rt_last_error();
    EXPECT_EQ(keeper_offer(runtime_), NESSIE_OK) << nssi_rt_last_error();
    thread_ = std::thread([this] { EXPECT_EQ(nssi_rt_run(runtime_), NESSIE_OK); });
  }
  ~CService() {
    EXPECT_EQ(nssi_rt_stop(runtime_), NESSIE_OK);
    thread_.join();
    EXPECT_EQ(nssi_rt_close(runtime_), NESSIE_OK);
  }
  std::string url() const { return nssi_rt_url(runtime_); }

 private:
  nssi_rt_runtime *runtime_;
  std::thread thread_;
};

void check_by_c(const std::string &transport, const std::string &url, bool is_c_service) {
  auto *runtime = open_in_c(transport);
  std::uint64_t peer = 0;
  ASSERT_EQ(nssi_rt_connect(runtime, url.c_str(), 20'000, &peer), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_EQ(atlas_check(runtime, peer), 0);
  if (is_c_service) { EXPECT_EQ(atlas_check_c_service(runtime, peer), 0); }
  EXPECT_EQ(nssi_rt_close(runtime), NESSIE_OK);
}

void check_values_by_cpp(FIRST::Client &atlas) {
  EXPECT_TRUE(atlas.NOTHING().ok());
  EXPECT_EQ(*atlas.ADD(40, 2), 42);
  EXPECT_EQ(*atlas.GREET("Ada"), "hello Ada");
  EXPECT_EQ(*atlas.MIRROR({3, 4}), (atlas::point{-3, -4}));
  EXPECT_EQ(atlas.WALK({1, 1}, 3)->size(), 3u);
  EXPECT_EQ(*atlas.LENGTH({}), 0);
  EXPECT_EQ(*atlas.FIND(atlas::color::RED)->where(), (atlas::point{1, 2}));
  EXPECT_EQ(*atlas.TURN({1, 2, 3, 4}), (atlas::grid{4, 3, 2, 1}));
  for (std::size_t size : {0, 1, 511, 512, 4096, 100'000, 1 << 20})
    EXPECT_EQ(*atlas.ECHO(pattern(size)), pattern(size));
}

void check_by_cpp(const std::string &transport, const std::string &url) {
  auto runtime = open_runtime(options_for(transport, false));
  auto peer = runtime->connect(url, Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  FIRST::Client atlas(*runtime, *peer);
  check_values_by_cpp(atlas);
  auto buffer = runtime->allocate(100'000, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  EXPECT_TRUE(atlas.FILL(3, *buffer).ok());
  EXPECT_EQ(*atlas.SUM(*buffer), 300'000u);
  EXPECT_TRUE(atlas.NEGATE(*buffer).ok());
  EXPECT_EQ(buffer->bytes()[99'999], std::byte{0xfc});
  EXPECT_EQ(atlas.PULL_TOO_MUCH(*buffer).code(), Code::kOutOfRange);
  const auto refused = atlas.REFUSE(28);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().to_string(), Error({Code::kIo, "No space left on device: free some", {}, 28}).to_string());
  EXPECT_EQ(atlas.WALK({0, 0}, 9).code(), Code::kInternal);
  EXPECT_EQ(atlas.WAIT(60'000, {.deadline = Deadline::in(milliseconds(50))}).code(), Code::kTimedOut);
  EXPECT_EQ(runtime->call(atlas.service(), FIRST::ADD, Bytes(5)).wait().code(), Code::kBadMessage);
  EXPECT_EQ(*atlas.ADD(1, 1), 2);
}

class StubsInC : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
};

TEST_P(StubsInC, CallAServiceInC) { check_by_c(GetParam(), CService(GetParam()).url(), true); }
TEST_P(StubsInC, CallAServiceInCpp) { check_by_c(GetParam(), CppService(GetParam()).url(), false); }
TEST_P(StubsInC, ServeAClientInCpp) { check_by_cpp(GetParam(), CService(GetParam()).url()); }

TEST_P(StubsInC, BearNamesInSmallLetters_AndThoseOfCsHeaders) {
  CService service(GetParam());
  auto *runtime = open_in_c(GetParam());
  std::uint64_t peer = 0;
  ASSERT_EQ(nssi_rt_connect(runtime, service.url().c_str(), 20'000, &peer), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_EQ(keeper_check(runtime, peer), 0);
  EXPECT_EQ(nssi_rt_close(runtime), NESSIE_OK);
}

INSTANTIATE_TEST_SUITE_P(Over, StubsInC, ::testing::Values("inproc", "shm"),
                         [](const auto &info) { return info.param; });

/// A value of 8 GiB, of which only its size is ever asked.
bool_t code_what_is_too_large(XDR *stream, void *) {
  static char nothing = 0;
  if (stream->x_op != XDR_ENCODE) return TRUE;
  for (int i = 0; i < 2; ++i)
    if (XDR_PUTBYTES(stream, &nothing, 0xFFFF'FFFCu) == FALSE) return FALSE;
  return TRUE;
}

TEST(ServicesInC, AResultOf4GiB_IsTooLarge) {
  const nssi_stub_procedure procedure{FIRST::kInterface.program,
                                      FIRST::kInterface.version,
                                      99,
                                      "MUCH",
                                      0,
                                      0,
                                      nullptr,
                                      0,
                                      code_what_is_too_large,
                                      1,
                                      [](const void *, nssi_rt_request *, void *, void *) -> int { return NESSIE_OK; }};
  auto *service = open_in_c("inproc");
  const auto serve = [](void *what, nssi_rt_request *request) {
    nssi_stub_serve(request, static_cast<const nssi_stub_procedure *>(what), what);
  };
  ASSERT_EQ(nssi_stub_offer(service, 0, &procedure, serve, &procedure, NSSI_RT_FIBER), NESSIE_OK);
  std::thread thread([&] { EXPECT_EQ(nssi_rt_run(service), NESSIE_OK); });
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = client->connect(nssi_rt_url(service), Deadline::in(seconds(20)));
  const auto outcome = client->call({*peer, FIRST::kInterface, 0}, 99, {}).wait();
  EXPECT_EQ(outcome.code(), Code::kTooLarge);
  EXPECT_NE(outcome.error().message.find("MUCH"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(nssi_rt_stop(service), NESSIE_OK);
  thread.join();
  EXPECT_EQ(nssi_rt_close(service), NESSIE_OK);
}

TEST(StubsInCInTwoProcesses, ServeClientsInBothLanguages) {
  if (!available("shm")) GTEST_SKIP() << "this machine has no transport shm";
  Process service({ATLAS_C_PEER, "serve", "shm"});
  const auto url = service.line();
  ASSERT_FALSE(url.empty());
  check_by_c("shm", url, true);
  check_by_cpp("shm", url);
}

TEST(StubsInCInTwoProcesses, CallAServiceInCpp) {
  if (!available("shm")) GTEST_SKIP() << "this machine has no transport shm";
  CppService service("shm");
  Process client({ATLAS_C_PEER, "check", "shm", service.url()});
  EXPECT_EQ(client.wait_for_exit(), 0);
}

}  // namespace
}  // namespace nssi::testing
