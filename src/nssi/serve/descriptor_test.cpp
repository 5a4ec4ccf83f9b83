// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that callers and services of a node give each other.
#include <nnti/conformance/given_file_testing.hpp>
#include <nssi/testing/testing.hpp>

#include <gtest/gtest.h>

namespace nssi::testing {
namespace {

constexpr OpCode kGive = 201, kTake = 202;
constexpr std::uint64_t kKey = 7;

using nnti::given::file_with;
using nnti::given::text_in;

/// A service that gives a file, and one that takes it back.
class NssiDescriptors : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = std::make_unique<ServiceThread>(options_for(GetParam(), true), [this](Runtime &runtime) {
      add(runtime, kGive, [this](Request &r) { answer(r, r.give_descriptor(kKey, theirs_.get())); });
      add(runtime, kTake, [this](Request &r) { take(r); });
    });
    client_ = open_runtime(options_for(GetParam(), false));
    auto peer = client_->connect(server_->runtime->url(), Deadline::in(std::chrono::seconds(20)));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peer_ = *peer;
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
  }

  static void add(Runtime &runtime, OpCode op, Handler handler) {
    (void)runtime.add_operation(
        {kInterface, 0, op, "descriptor" + std::to_string(op), HandlerKind::kShort, std::move(handler)});
  }
  static void answer(Request &request, const Status &status) {
    (void)(status.ok() ? request.reply() : request.reply_error(status.error()));
  }
  void take(Request &request) {
    auto taken = request.take_descriptor(kKey);
    if (!taken.ok()) return (void)request.reply_error(taken.error());
    const nessie::Fd file(*taken);
    (void)request.reply(xdr::encode(text_in(file.get())));
  }
  Status call(OpCode op) { return client_->call(at(peer_), op, {}).wait(); }

  nessie::Fd theirs_ = file_with("of the service");
  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiDescriptors, AreThereWithTheResult_OrRefusedBetweenNodes) {
  const auto given = call(kGive);
  if (!given.ok()) {
    EXPECT_EQ(given.code(), Code::kUnsupported);
    EXPECT_FALSE(client_->can_view(peer_));
    return;
  }
  auto taken = client_->take_descriptor(peer_, kKey);
  ASSERT_TRUE(taken.ok()) << taken.error().to_string();
  const nessie::Fd file(*taken);
  EXPECT_EQ(text_in(file.get()), "of the service");
  EXPECT_EQ(client_->take_descriptor(peer_, kKey).code(), Code::kNotFound) << "a second time";
}

TEST_P(NssiDescriptors, GoToTheServiceWithTheRequest) {
  const auto mine = file_with("of the caller");
  if (!client_->give_descriptor(peer_, kKey, mine.get()).ok()) return;  // between nodes
  auto call = client_->call(at(peer_), kTake, {});
  ASSERT_TRUE(call.wait().ok());
  EXPECT_EQ(*xdr::decode<std::string>(call.result()), "of the caller");
}

TEST_P(NssiDescriptors, ThatNobodyHasGivenAreNotFound) {
  EXPECT_EQ(call(kTake).code(), Code::kNotFound);
  EXPECT_EQ(client_->take_descriptor(peer_, kKey).code(), Code::kNotFound);
}

TEST_P(NssiDescriptors, OfAServiceThatIsGone_AreLost) {
  server_.reset();
  EXPECT_FALSE(call(kGive).ok());
  EXPECT_TRUE(eventually([&] { return !client_->take_descriptor(peer_, kKey).ok(); }));
}

INSTANTIATE_TEST_SUITE_P(Over, NssiDescriptors, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing
