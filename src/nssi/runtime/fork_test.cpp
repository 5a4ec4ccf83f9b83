// SPDX-License-Identifier: BSD-3-Clause
// A child of fork() that destroys what is its parent's, as exit() does.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <sys/wait.h>
#include <unistd.h>

namespace nssi::testing {
namespace {

using std::chrono::seconds;

class NssiForks : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << GetParam() << " is not available here";
    server_.emplace(options_for(GetParam(), true));
    client_ = open_runtime(options_for(GetParam(), false));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    auto buffer = client_->allocate(100'000, nnti::Rights::kReadWrite);
    ASSERT_TRUE(buffer.ok());
    buffer_ = *std::move(buffer);
    std::ranges::copy(pattern(buffer_.bytes().size()), buffer_.bytes().begin());
  }
  Call pull() {
    CallOptions options;
    options.data = &buffer_;
    return client_->call(at(peer_), kPull, Bytes{}, options);
  }
  /// The child's exit status.
  int fork_one_that(const std::function<void()> &run) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      run();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  std::optional<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
  nnti::RegisteredBuffer buffer_;
};

TEST_P(NssiForks, AChildThatDestroysEverything_LeavesItsParentsAsItIs) {
  ASSERT_TRUE(pull().wait().ok());
  auto blocked = client_->call(at(peer_), kBlock, Bytes{});
  ASSERT_TRUE(eventually([&] { return blocked.test() || server_->service->blocked == 1; }));
  EXPECT_EQ(fork_one_that([&] {
              blocked = Call();
              buffer_ = nnti::RegisteredBuffer();
              client_.reset();
              server_->runtime.reset();
            }),
            0);
  auto pulled = pull();
  ASSERT_TRUE(pulled.wait().ok());
  EXPECT_TRUE(*xdr::decode<bool>(pulled.result()));
  server_->service->release_blocked();
  EXPECT_TRUE(blocked.wait().ok());
}

TEST_P(NssiForks, AChildMayOpenItsOwn) {
  ASSERT_TRUE(pull().wait().ok());
  EXPECT_EQ(fork_one_that([&] {
              auto own = open_runtime(options_for(GetParam(), false));
              const auto peer = own->connect(server_->runtime->url(), Deadline::in(seconds(10)));
              if (!peer.ok() || !own->call(at(*peer), kNoop, Bytes{}).wait().ok()) ::_exit(1);
              own.reset();
            }),
            0);
  EXPECT_TRUE(pull().wait().ok());
}

INSTANTIATE_TEST_SUITE_P(Over, NssiForks, ::testing::Values("shm", "ofi"), [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing
