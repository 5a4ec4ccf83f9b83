// SPDX-License-Identifier: BSD-3-Clause
// Requests whose buffer is not what they say: a client of our own making describes memory as it likes.
#include <services/transfer/testing.hpp>

#include <gtest/gtest.h>

#include <nssi/wire/wire.hpp>

#include <map>

namespace transfer {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;
using testing::array_of;
using testing::Host;

/// A connection to the service, without a client's inside.
class Forger final : public nnti::EventSink {
 public:
  Forger(const std::string &transport, const std::string &url) {
    auto options = nssi::testing::options_for(transport, false);
    endpoint_ = *nnti::Endpoint::open(std::move(options.endpoint), *this);
    peer_ = *endpoint_->connect(url, Deadline::in(std::chrono::seconds(20)));
    send(nssi::wire::Hello{});
  }
  nnti::RegisteredBuffer lend(std::span<data_t> array, nnti::Rights rights) {
    return *endpoint_->register_memory(std::as_writable_bytes(array), rights);
  }
  nnti::RemoteBuffer describe(const nnti::RegisteredBuffer &buffer) { return *buffer.describe_for(peer_); }
  /// What the service answers. Progress is driven meanwhile, so that it can reach memory here.
  Status call(nssi::OpCode op, const xfer_args &args, const nnti::RemoteBuffer &data) {
    const auto bytes = xdr::encode(args);
    nssi::wire::Request request;
    request.prefix.id = ++last_ << 32;
    request.interface = XFER::ONE::kInterface;
    request.op = op;
    request.args = bytes;
    request.timeout_ms = 20000;
    request.data = nssi::wire::Buffer{data};
    send(request);
    const bool answered = nssi::testing::eventually([&] {
      endpoint_->progress();
      return answers_.contains(last_ << 32);
    });
    return answered ? answers_[last_ << 32] : Error{Code::kTimedOut, "no answer"};
  }

 private:
  template <class Message> void send(const Message &message) { (void)endpoint_->send(peer_, xdr::encode(message)); }
  void on_message(nssi::PeerId, std::span<const std::byte> message) override {
    nssi::wire::Result result;
    if (!nssi::wire::decode_result(message, result).ok()) return;
    answers_[result.prefix.id] = result.failure ? Status(nssi::wire::to_error(*result.failure)) : Status();
  }
  void on_peer_lost(nssi::PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  nssi::PeerId peer_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Status> answers_;
};

class TransferForged : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!nssi::testing::available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    host_.emplace(GetParam());
    forger_.emplace(GetParam(), host_->url());
    buffer_ = forger_->lend(std::span(array_).first(500), nnti::Rights::kReadWrite);
  }
  void TearDown() override { buffer_.reset(); }
  Status write(const nnti::RemoteBuffer &data, std::uint32_t len = 500) {
    return forger_->call(XFER::ONE::xfer_write_rdma, {len, 9, true, 0}, data);
  }
  Status read(const nnti::RemoteBuffer &data, std::uint32_t len = 500) {
    return forger_->call(XFER::ONE::xfer_read_rdma, {len, 8, true, 0}, data);
  }

  data_array_t array_ = array_of(1000, 9);
  std::optional<Host> host_;
  std::optional<Forger> forger_;
  nnti::RegisteredBuffer buffer_;
};

TEST_P(TransferForged, HonestBuffer_IsTaken) { EXPECT_TRUE(write(forger_->describe(buffer_)).ok()); }

TEST_P(TransferForged, WrongKey_ReachesNothing) {
  auto forged = forger_->describe(buffer_);
  forged.key ^= 1;
  EXPECT_FALSE(write(forged).ok());
  EXPECT_FALSE(read(forged).ok());
  EXPECT_TRUE(check(array_, 9).ok());
}

TEST_P(TransferForged, LargerThanWhatIsRegistered_ReachesNothingBeyond) {
  auto forged = forger_->describe(buffer_);
  forged.size_bytes *= 2;
  EXPECT_FALSE(write(forged, 1000).ok());
  EXPECT_FALSE(read(forged, 1000).ok());
  EXPECT_TRUE(check(std::span(array_).subspan(500), 9, 500).ok());
}

TEST_P(TransferForged, RightsThatWereNotGiven_AreNotThere) {
  buffer_ = forger_->lend(array_, nnti::Rights::kRemoteRead);
  auto forged = forger_->describe(buffer_);
  forged.rights = nnti::Rights::kReadWrite;
  EXPECT_FALSE(read(forged).ok());
  EXPECT_TRUE(check(array_, 9).ok());
  EXPECT_TRUE(write(forged).ok()) << "reading it is allowed";
}

INSTANTIATE_TEST_SUITE_P(Over, TransferForged, ::testing::Values("inproc", "shm", "ofi", "ucx"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace transfer
