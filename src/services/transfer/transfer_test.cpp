// SPDX-License-Identifier: BSD-3-Clause
// The service and its clients, over every transport of this machine.
#include <services/transfer/client/client.hpp>
#include <services/transfer/testing.hpp>

#include <gtest/gtest.h>

#include <random>

namespace transfer {
namespace {

using nessie::Code;
using nssi::testing::open_runtime;
using nssi::testing::options_for;

using testing::array_of;
using testing::Host;
using testing::kPiece;
using testing::small_pieces;

/// None, one, and around one piece and two; more.
constexpr std::uint32_t kLengths[] = {0, 1, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 2 * kPiece + 1, 100'000};
const Options kValidated{.seed = -1030, .validate = true};

TEST(TransferSettings, WhatNoMachineHas_IsRefused) {
  for (const auto &[key, value] : {std::pair{"transfer.threads", "4294967296"}, {"transfer.piece", "8E"}}) {
    nessie::Config config;
    config.set(key, value);
    EXPECT_EQ(server_options(config).code(), Code::kInvalidArgument) << key;
  }
}

/// A client with a runtime of its own.
class Visitor {
 public:
  Visitor(const std::string &transport, const std::string &url)
      : runtime_(open_runtime(options_for(transport, false))) {
    auto peer = runtime_->connect(url, nessie::Deadline::in(std::chrono::seconds(20)));
    if (!peer) throw std::runtime_error(peer.error().to_string());
    client_.emplace(*runtime_, *peer);
  }
  Client *operator->() { return &*client_; }
  nssi::Runtime &runtime() { return *runtime_; }
  /// Allocated, and right.
  Array array(std::uint32_t len, std::int32_t seed) {
    auto array = client_->allocate(len);
    if (!array) throw std::runtime_error(array.error().to_string());
    fill(array->elements(), seed);
    return *std::move(array);
  }

 private:
  std::unique_ptr<nssi::Runtime> runtime_;
  std::optional<Client> client_;
};

struct Case {
  std::string transport;
  unsigned threads;
};

class Transfer : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!nssi::testing::available(GetParam().transport))
      GTEST_SKIP() << "this machine has no transport " << GetParam().transport;
    host_.emplace(GetParam().transport, GetParam().threads);
    client_.emplace(GetParam().transport, host_->url());
  }
  Visitor &client() { return *client_; }

  std::optional<Host> host_;
  std::optional<Visitor> client_;
};

TEST_P(Transfer, RightArrays_AreTakenOfAnyLength) {
  for (const auto len : kLengths) {
    auto array = array_of(len, kValidated.seed);
    EXPECT_TRUE(client()->write_encode(array, kValidated).ok()) << len;
    EXPECT_TRUE(client()->write_rdma(client().array(std::max(len, 1u), kValidated.seed), kValidated).ok()) << len;
    auto lent = client()->lend(array);
    if (len == 0) continue;
    ASSERT_TRUE(lent.ok());
    EXPECT_TRUE(client()->write_rdma(*lent, kValidated).ok()) << len;
  }
}

TEST_P(Transfer, ReadsGiveTheArrayOfTheSeed) {
  for (const auto len : kLengths) {
    data_array_t read(len);
    ASSERT_TRUE(client()->read_encode(read, kValidated).ok());
    EXPECT_EQ(read, array_of(len, kValidated.seed));
    EXPECT_EQ(*client()->stub().xfer_read_encode({len, kValidated.seed, true, 0}), read);
    auto array = client().array(len + 1, 7);
    const auto options = nssi::CallOptions{};
    ASSERT_TRUE(client()->stub().xfer_read_rdma({len, kValidated.seed, true, 0}, array.buffer(), options).ok());
    EXPECT_TRUE(check(array.elements().first(len), kValidated.seed).ok());
    EXPECT_EQ(array.elements()[len], element(7, len)) << "the service wrote beyond what was asked for";
  }
}

TEST_P(Transfer, PartsOfAnArray_HaveItsElements) {
  const auto whole = array_of(2 * kPiece, 9);
  auto &stub = client()->stub();
  const data_array_t part(whole.begin() + 100, whole.end());
  const auto len = static_cast<std::uint32_t>(part.size());
  EXPECT_TRUE(stub.xfer_write_encode({len, 9, true, 100}, part).ok());
  EXPECT_EQ(*stub.xfer_read_encode({len, 9, true, 100}), part);
  auto array = client().array(len, 9 + 100);
  EXPECT_TRUE(stub.xfer_write_rdma({len, 9, true, 100}, array.buffer()).ok());
  EXPECT_EQ(stub.xfer_write_rdma({len, 9, true, 101}, array.buffer()).code(), Code::kBadMessage);
  ASSERT_TRUE(stub.xfer_read_rdma({len, 10, true, 100}, array.buffer()).ok());
  EXPECT_TRUE(check(array.elements(), 10, 100).ok());
}

TEST_P(Transfer, OneWrongElement_IsNamedWhereverItIs) {
  for (const std::uint32_t wrong : {0u, kPiece - 1, kPiece, 3 * kPiece + 5, 50 * kPiece - 1}) {
    auto array = client().array(50 * kPiece, kValidated.seed);
    array.elements()[wrong].float_val += 1;
    const data_array_t copy(array.elements().begin(), array.elements().end());
    for (const auto &status : {client()->write_rdma(array, kValidated), client()->write_encode(copy, kValidated)}) {
      EXPECT_EQ(status.code(), Code::kBadMessage);
      EXPECT_NE(status.error().message.find("element " + std::to_string(wrong)), std::string::npos)
          << status.error().message;
    }
    EXPECT_TRUE(client()->write_rdma(array).ok()) << "nobody asked whether it is right";
  }
}

TEST_P(Transfer, OfWrongElementsInTheLastTwoPieces_TheFirstIsNamed) {
  for (const std::uint32_t pieces : {2u, 3u, 4u}) {
    auto array = client().array(pieces * kPiece, kValidated.seed);
    const auto first = (pieces - 2) * kPiece + 7;
    for (const auto wrong : {first, first + kPiece}) array.elements()[wrong].int_val += 1;
    const auto status = client()->write_rdma(array, kValidated);
    EXPECT_EQ(status.code(), Code::kBadMessage);
    EXPECT_NE(status.error().message.find("element " + std::to_string(first) + " "), std::string::npos)
        << status.error().message;
  }
}

TEST_P(Transfer, WrongSeed_IsRefused) {
  const auto array = client().array(1000, 1);
  EXPECT_EQ(client()->write_rdma(array, {.seed = 2, .validate = true}).code(), Code::kBadMessage);
  EXPECT_EQ(client()->write_encode(array_of(1000, 1), {.seed = 2, .validate = true}).code(), Code::kBadMessage);
}

TEST_P(Transfer, UnvalidatedReads_FillTheWholeArrayWithNothingOfOthers) {
  const auto secret = client().array(4 * kPiece, 123'456);
  ASSERT_TRUE(client()->write_rdma(secret).ok());
  ASSERT_TRUE(client()->write_rdma(secret, {.seed = 123'456, .validate = true}).ok());
  auto array = client().array(4 * kPiece, 1);
  ASSERT_TRUE(client()->read_rdma(array).ok());
  for (std::uint32_t i = 0; i < array.len(); ++i) {
    ASSERT_NE(array.elements()[i], element(1, i)) << "element " << i << " was left out";
    ASSERT_NE(array.elements()[i], element(123'456, i)) << "element " << i << " is what was written before";
  }
}

TEST_P(Transfer, BufferThatIsTooSmall_IsRefusedAndLeftAsItWas) {
  auto array = client().array(kPiece, 5);
  auto &stub = client()->stub();
  EXPECT_EQ(stub.xfer_write_rdma({kPiece + 1, 5, false, 0}, array.buffer()).code(), Code::kOutOfRange);
  EXPECT_EQ(stub.xfer_read_rdma({kPiece + 1, 6, true, 0}, array.buffer()).code(), Code::kOutOfRange);
  EXPECT_EQ(stub.xfer_read_rdma({0xffffffff, 6, true, 0}, array.buffer()).code(), Code::kOutOfRange);
  EXPECT_TRUE(check(array.elements(), 5).ok());
}

TEST_P(Transfer, BufferWithoutRightsOrNone_IsRefused) {
  auto &stub = client()->stub();
  auto memory = array_of(10, 0);
  auto readable =
      client().runtime().register_memory(std::as_writable_bytes(std::span(memory)), nnti::Rights::kRemoteRead);
  ASSERT_TRUE(readable.ok());
  EXPECT_EQ(stub.xfer_read_rdma({10, 1, true, 0}, *readable).code(), Code::kInvalidArgument);
  EXPECT_EQ(stub.xfer_write_rdma({10, 0, true, 0}, nnti::RegisteredBuffer()).code(), Code::kInvalidArgument);
  const auto args = xdr::encode(xfer_args{10, 0, false, 0});
  for (const auto op : {XFER::ONE::xfer_write_rdma, XFER::ONE::xfer_read_rdma})  // as no stub would
    EXPECT_EQ(client().runtime().call(stub.service(), op, args).wait().code(), Code::kOutOfRange);
  EXPECT_TRUE(check(memory, 0).ok());
}

/// What a client sends that has no right to write, but says that it may read or write: the memory's owner knows.
TEST_P(Transfer, BufferOfTheWrongDirection_IsRefusedByItsOwnersRights) {
  auto memory = array_of(10, 0);
  auto readable =
      client().runtime().register_memory(std::as_writable_bytes(std::span(memory)), nnti::Rights::kRemoteRead);
  ASSERT_TRUE(readable.ok());
  nssi::CallOptions options;
  options.data = &*readable;
  auto call = client().runtime().call(client()->stub().service(), XFER::ONE::xfer_read_rdma,
                                      xdr::encode(xfer_args{10, 1, true, 0}), options);
  EXPECT_FALSE(call.wait().ok());
  EXPECT_TRUE(check(memory, 0).ok());
  EXPECT_TRUE(client()->write_encode(memory, {.validate = true}).ok()) << "the connection is as it was";
}

TEST_P(Transfer, LengthThatIsNotTheArrays_IsRefused) {
  EXPECT_EQ(client()->stub().xfer_write_encode({9, 0, true, 0}, array_of(10, 0)).code(), Code::kInvalidArgument);
  EXPECT_EQ(client()->stub().xfer_write_encode({11, 0, false, 0}, array_of(10, 0)).code(), Code::kInvalidArgument);
}

TEST_P(Transfer, ReadsBeyondTheServicesLimit_SayWhatToDo) {
  const auto most = static_cast<std::uint32_t>(small_pieces(0).most_encoded_bytes / sizeof(data_t));
  EXPECT_TRUE(client()->stub().xfer_read_encode({most, 0, false, 0}).ok());
  const auto refused = client()->stub().xfer_read_encode({most + 1, 0, false, 0});
  EXPECT_EQ(refused.code(), Code::kTooLarge);
  EXPECT_NE(refused.error().message.find("xfer_read_rdma"), std::string::npos);
}

TEST_P(Transfer, GarbageForArguments_IsABadMessageAndTheServiceGoesOn) {
  std::mt19937 random(1);
  const auto whole = xdr::encode(array_of(20, 1));
  for (int i = 0; i < 200; ++i) {
    auto bytes = whole;
    for (auto &each : std::span(bytes).first(16)) each = static_cast<std::byte>(random());
    bytes.resize(random() % bytes.size());
    const auto op = 1 + static_cast<nssi::OpCode>(random() % 4);
    EXPECT_FALSE(client().runtime().call(client()->stub().service(), op, bytes).wait().ok());
  }
  EXPECT_TRUE(client()->write_encode(array_of(10, 0), {.validate = true}).ok());
}

TEST_P(Transfer, ManyClientsAtOnce_EachHasItsOwnData) {
  constexpr int kClients = 8;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i)
    threads.emplace_back([&, i] {
      Visitor visitor(GetParam().transport, host_->url());
      const Options options{.seed = 1000 * i, .validate = true};
      auto array = visitor.array(10 * kPiece + static_cast<std::uint32_t>(i), options.seed);
      bool good = true;
      for (int round = 0; round < 10; ++round) {
        good = good && visitor->write_rdma(array, options).ok() && visitor->read_rdma(array, options).ok();
        data_array_t read(array.len());
        good = good && visitor->read_encode(read, options).ok() && visitor->write_encode(read, options).ok();
      }
      if (good) ++right;
    });
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(right, kClients);
}

TEST_P(Transfer, ManyCallsOfOneClientAtOnce_WaitForLanesAndEnd) {
  constexpr std::int32_t kCalls = 32;
  std::vector<Array> arrays;
  std::vector<nssi::Future<void>> calls;
  for (std::int32_t i = 0; i < kCalls; ++i) arrays.push_back(client().array(5 * kPiece, 0));
  for (std::int32_t i = 0; i < kCalls; ++i) {
    const auto &buffer = arrays[static_cast<std::size_t>(i)].buffer();
    calls.push_back(client()->stub().xfer_read_rdma_async({5 * kPiece, i, true, 0}, buffer));
  }
  for (auto &call : calls) EXPECT_TRUE(call.wait().ok());
  for (std::int32_t i = 0; i < kCalls; ++i)
    EXPECT_TRUE(check(arrays[static_cast<std::size_t>(i)].elements(), i).ok()) << "call " << i;
}

INSTANTIATE_TEST_SUITE_P(Over, Transfer,
                         ::testing::Values(Case{"inproc", 1}, Case{"shm", 0}, Case{"shm", 1}, Case{"shm", 3},
                                           Case{"ofi", 1}, Case{"ucx", 1}),
                         [](const auto &info) { return info.param.transport + std::to_string(info.param.threads); });

TEST(TransferArray, SeedsBeyondTheEnd_WrapAround) {
  data_array_t array(10);
  fill(array, std::numeric_limits<std::int32_t>::max() - 1024 - 4);
  EXPECT_EQ(array[4].int_val, std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(array[5].int_val, std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(array[5].double_val, -2147483648.0);
}

TEST(TransferArray, EveryFieldIsChecked) {
  for (int field = 0; field < 3; ++field) {
    auto array = array_of(1000, 3);
    if (field == 0) array[700].int_val ^= 1;
    if (field == 1) array[700].float_val = 0;
    if (field == 2) array[700].double_val = -array[700].double_val;
    const auto status = check(array, 3);
    EXPECT_EQ(status.code(), Code::kBadMessage);
    EXPECT_NE(status.error().message.find("element 700 "), std::string::npos);
  }
}

}  // namespace
}  // namespace transfer
