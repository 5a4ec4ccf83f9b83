// SPDX-License-Identifier: BSD-3-Clause
// A service of the paper's C interface, as clients of the runtime see it.
#include <gtest/gtest.h>

#include <nssi/c/api.hpp>
#include <nssi/drive/event.hpp>
#include <nssi/testing/testing.hpp>

namespace nssi::testing {
namespace {

using std::chrono::seconds;

constexpr int kWaitOp = 1, kGuessOp = 2;
constexpr auto kTransport = static_cast<nssi_rpc_transport>(NNTI_TRANSPORT_SHM);

std::atomic<Event *> gate{nullptr};
std::atomic<unsigned long> waiting_id{0};

/// Answers when the gate opens.
int wait_at_gate(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *,
                 const NNTI_buffer_t *result) {
  Event opens(*c_api::running_stub(id)->runtime);
  waiting_id = id;
  gate = &opens;
  const bool is_open = opens.wait().ok();
  gate = nullptr;
  return nssi_send_result(caller, id, is_open ? NSSI_OK : NSSI_ECANCELED, nullptr, result);
}

/// Uses the request of the stub that waits at the gate, and answers with what that gave, all in one.
int guess(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *data,
          const NNTI_buffer_t *result) {
  auto foreign = *data;
  foreign.buffer_addr.id = waiting_id;
  char byte = 0;
  const bool is_refused = nssi_get_data(caller, &byte, 1, &foreign) == NSSI_EINVAL &&
                          nssi_put_data(caller, &byte, 1, &foreign, -1) == NSSI_EINVAL &&
                          nssi_send_result(caller, waiting_id, NSSI_OK, nullptr, nullptr) == NSSI_EINVAL;
  return nssi_send_result(caller, id, is_refused ? NSSI_OK : NSSI_EIO, nullptr, result);
}

class NssiInC : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available("shm")) GTEST_SKIP() << "this machine has no transport shm";
    ASSERT_EQ(nssi_init(kTransport), NSSI_OK) << nssi_last_error();
    ASSERT_EQ(nssi_service_init(kTransport, 0, &service_), NSSI_OK);
    const auto code_nothing = reinterpret_cast<xdrproc_t>(reinterpret_cast<void (*)()>(&::xdr_void));
    ASSERT_EQ(nssi_register_server_stub(kWaitOp, wait_at_gate, 0, code_nothing, 0, code_nothing), NSSI_OK);
    ASSERT_EQ(nssi_register_server_stub(kGuessOp, guess, 0, code_nothing, 0, code_nothing), NSSI_OK);
    thread_ = std::thread([this] { ended_with_ = nssi_service_start(&service_); });
    client_ = open_runtime(options_for("shm", false));
    peer_ = *client_->connect(c_api::runtime_of(kTransport)->url(), Deadline::in(seconds(20)));
  }
  void TearDown() override {
    if (thread_.joinable()) thread_.join();
    client_.reset();
    EXPECT_EQ(nssi_service_fini(&service_), NSSI_OK);
    EXPECT_EQ(nssi_fini(kTransport), NSSI_OK);
  }
  Call call(OpCode op, const Bytes &args = {}) { return client_->call({peer_, c_api::kInterface, 0}, op, args); }

  nssi_service service_{};
  std::atomic<int> ended_with_{-1};
  std::thread thread_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_F(NssiInC, Killed_AServiceAnswersWhatItHasAccepted) {
  auto accepted = call(kWaitOp);
  ASSERT_TRUE(eventually([&] { return (void)accepted.test(), gate.load() != nullptr; }));
  EXPECT_TRUE(call(c_api::kKillOp, xdr::encode(std::int32_t{7})).wait().ok());
  EXPECT_EQ(call(kWaitOp).wait().code(), Code::kUnavailable);
  EXPECT_EQ(ended_with_, -1);
  if (auto *opens = gate.load(); opens != nullptr) opens->set();
  EXPECT_TRUE(accepted.wait().ok());
  EXPECT_TRUE(eventually([&] { return ended_with_ == 7; }));
}

TEST_F(NssiInC, AStubCannotUseTheRequestOfAnother) {
  char data = 'x';
  auto memory = *client_->register_memory(std::as_writable_bytes(std::span(&data, 1)),
                                          nnti::Rights::kRemoteRead | nnti::Rights::kRemoteWrite);
  CallOptions options;
  options.data = &memory;
  auto waits = client_->call({peer_, c_api::kInterface, 0}, kWaitOp, {}, options);
  ASSERT_TRUE(eventually([&] { return (void)waits.test(), gate.load() != nullptr; }));
  auto guesses = call(kGuessOp);
  ASSERT_TRUE(guesses.wait().ok());
  EXPECT_EQ(xdr::decode<std::int32_t>(guesses.result()).value(), NSSI_OK);
  gate.load()->set();
  ASSERT_TRUE(waits.wait().ok());
  EXPECT_TRUE(call(c_api::kKillOp, xdr::encode(std::int32_t{0})).wait().ok());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which stop a program that asks for so much
TEST_F(NssiInC, WhatThereIsNoMemoryFor_IsACode) {
  nssi_request request{};
  int which = -1, remote_rc = 0;
  EXPECT_EQ(nssi_waitany(&request, nssi_size{1} << 58, 0, &which, &remote_rc), NSSI_ENOMEM);
  EXPECT_TRUE(call(c_api::kKillOp, xdr::encode(std::int32_t{0})).wait().ok());
}
#endif

}  // namespace
}  // namespace nssi::testing
