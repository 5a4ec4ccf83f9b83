// SPDX-License-Identifier: BSD-3-Clause
// The C interface, over every transport that this machine has. Two transports live in this process; a thread inside
// NNTI_wait gives the second one progress, while the test uses both.
#include <nnti/c/handles.hpp>

#include <gtest/gtest.h>
#include <rpc/types.h>
#include <rpc/xdr.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

extern "C" int nnti_header_compiles_as_c(void);

namespace {

constexpr int kWatchdogMs = 20'000;

class Opened {
 public:
  explicit Opened(NNTI_transport_id_t id) { result = NNTI_init(id, nullptr, &handle); }
  ~Opened() {
    if (result == NNTI_OK) NNTI_fini(&handle);
  }
  std::string url() const {
    char text[NNTI_URL_LEN] = "";
    EXPECT_EQ(NNTI_get_url(&handle, text, sizeof text), NNTI_OK);
    return text;
  }
  NNTI_transport_t handle{};
  NNTI_result_t result;
};

/// Memory and its registration.
struct Buffer {
  Buffer(const Opened &transport, std::size_t element, std::size_t elements, NNTI_buf_ops_t ops,
         const NNTI_peer_t *peer = nullptr)
      : memory(element * elements) {
    result = NNTI_register_memory(&transport.handle, memory.data(), element, elements, ops, peer, &handle);
    EXPECT_EQ(result, NNTI_OK) << nnti_last_error();
  }
  ~Buffer() { NNTI_unregister_memory(&handle); }
  void fill(char first) { std::iota(memory.begin(), memory.end(), first); }
  std::vector<char> memory;
  NNTI_buffer_t handle{};
  NNTI_result_t result;
};

/// Keeps a transport's progress going.
class Progress {
 public:
  explicit Progress(const Opened &transport) : nothing_(transport, 1, 1, NNTI_RECV_DST), thread_([this] { run(); }) {}
  ~Progress() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    NNTI_status_t status;
    while (!stop_) NNTI_wait(&nothing_.handle, 0, 20, &status);
  }
  Buffer nothing_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

NNTI_result_t wait_for(const Buffer &buffer, NNTI_status_t &status, NNTI_buf_ops_t ops = 0) {
  return NNTI_wait(&buffer.handle, ops, kWatchdogMs, &status);
}

class CApi : public testing::TestWithParam<NNTI_transport_id_t> {
 protected:
  void SetUp() override {
    client = std::make_unique<Opened>(GetParam());
    if (client->result == NNTI_ENOTSUP) GTEST_SKIP() << nnti_last_error();
    server = std::make_unique<Opened>(GetParam());
    ASSERT_EQ(client->result, NNTI_OK) << nnti_last_error();
    ASSERT_EQ(server->result, NNTI_OK) << nnti_last_error();
    progress = std::make_unique<Progress>(*server);
    ASSERT_EQ(NNTI_connect(&client->handle, server->url().c_str(), kWatchdogMs, &peer), NNTI_OK) << nnti_last_error();
  }
  void TearDown() override { progress.reset(); }

  std::unique_ptr<Opened> client, server;
  std::unique_ptr<Progress> progress;
  NNTI_peer_t peer{};  ///< the server, as the client sees it
};

TEST_P(CApi, SentMessages_FillTheQueuesElementsInTurn_WrappingRound) {
  Buffer queue(*server, 64, 3, NNTI_RECV_QUEUE), message(*client, 64, 1, NNTI_SEND_SRC);
  for (int i = 0; i < 7; ++i) {
    message.fill(static_cast<char>(i));
    NNTI_status_t sent, got;
    ASSERT_EQ(NNTI_send(&peer, &message.handle, nullptr), NNTI_OK) << nnti_last_error();
    ASSERT_EQ(wait_for(message, sent, NNTI_SEND_SRC), NNTI_OK);
    EXPECT_EQ(sent.length, 64u);
    ASSERT_EQ(wait_for(queue, got, NNTI_RECV_QUEUE), NNTI_OK);
    EXPECT_EQ(got.offset, static_cast<std::uint64_t>(i % 3) * 64);
    EXPECT_EQ(got.length, 64u);
    EXPECT_EQ(got.start, queue.handle.payload);
    EXPECT_EQ(got.src.peer.instance, client->handle.me.peer.instance);
    EXPECT_EQ(std::memcmp(queue.memory.data() + got.offset, message.memory.data(), 64), 0);
  }
}

TEST_P(CApi, BufferHandleInAMessage_IsADestinationForPutAndASourceForGet) {
  Buffer target(*server, 100'000, 1, NNTI_PUT_DST | NNTI_GET_SRC),
      inbox(*client, sizeof(NNTI_buffer_t), 1, NNTI_RECV_DST);
  Buffer letter(*server, sizeof(NNTI_buffer_t), 1, NNTI_SEND_SRC);
  std::memcpy(letter.memory.data(), &target.handle, sizeof target.handle);
  NNTI_peer_t back = client->handle.me;
  ASSERT_EQ(NNTI_send(&back, &letter.handle, &inbox.handle), NNTI_OK) << nnti_last_error();
  NNTI_status_t status;
  ASSERT_EQ(wait_for(inbox, status), NNTI_OK);
  NNTI_buffer_t remote;
  std::memcpy(&remote, inbox.memory.data(), sizeof remote);

  Buffer source(*client, 50'000, 1, NNTI_PUT_SRC), copy(*client, 50'000, 1, NNTI_GET_DST);
  source.fill(3);
  ASSERT_EQ(NNTI_put(&source.handle, 10'000, 40'000, &remote, 60'000), NNTI_OK) << nnti_last_error();
  ASSERT_EQ(wait_for(source, status, NNTI_PUT_SRC), NNTI_OK) << nnti_last_error();
  EXPECT_EQ(status.offset, 10'000u);
  EXPECT_EQ(status.length, 40'000u);
  EXPECT_EQ(std::memcmp(target.memory.data() + 60'000, source.memory.data() + 10'000, 40'000), 0);
  ASSERT_EQ(NNTI_get(&remote, 60'000, 40'000, &copy.handle, 5'000), NNTI_OK) << nnti_last_error();
  ASSERT_EQ(wait_for(copy, status, NNTI_GET_DST), NNTI_OK) << nnti_last_error();
  EXPECT_EQ(std::memcmp(copy.memory.data() + 5'000, source.memory.data() + 10'000, 40'000), 0);
}

TEST_P(CApi, TargetRegisteredWithEvents_SeesPutsAndGets_AndOthersDoNot) {
  Buffer loud(*server, 256, 1, NNTI_PUT_DST | NNTI_GET_SRC | NNTI_BOP_WITH_EVENTS),
      quiet(*server, 256, 1, NNTI_PUT_DST);
  Buffer source(*client, 256, 1, NNTI_PUT_SRC), copy(*client, 256, 1, NNTI_GET_DST);
  NNTI_status_t status;
  ASSERT_EQ(NNTI_put(&source.handle, 0, 10, &quiet.handle, 0), NNTI_OK);
  ASSERT_EQ(wait_for(source, status), NNTI_OK);
  ASSERT_EQ(NNTI_put(&source.handle, 0, 100, &loud.handle, 7), NNTI_OK);
  ASSERT_EQ(wait_for(source, status), NNTI_OK);
  ASSERT_EQ(NNTI_get(&loud.handle, 20, 30, &copy.handle, 0), NNTI_OK);
  ASSERT_EQ(wait_for(copy, status), NNTI_OK);
  ASSERT_EQ(wait_for(loud, status, NNTI_GET_SRC), NNTI_OK);
  EXPECT_EQ(status.offset, 20u);
  EXPECT_EQ(status.length, 30u);
  ASSERT_EQ(wait_for(loud, status, NNTI_PUT_DST), NNTI_OK);
  EXPECT_EQ(status.offset, 7u);
  EXPECT_EQ(status.length, 100u);
  EXPECT_EQ(NNTI_wait(&quiet.handle, 0, 0, &status), NNTI_ETIMEDOUT);
}

TEST_P(CApi, MessageLargerThanAnElement_FailsAtTheSender_AndTheQueueGoesOn) {
  Buffer queue(*server, 32, 2, NNTI_RECV_QUEUE), large(*client, 33, 1, NNTI_SEND_SRC),
      fits(*client, 32, 1, NNTI_SEND_SRC);
  NNTI_status_t status;
  EXPECT_EQ(NNTI_send(&peer, &large.handle, &queue.handle), NNTI_EMSGSIZE);
  ASSERT_EQ(NNTI_send(&peer, &large.handle, nullptr), NNTI_OK);
  EXPECT_EQ(wait_for(large, status), NNTI_EMSGSIZE);
  EXPECT_EQ(status.result, NNTI_EMSGSIZE);
  ASSERT_EQ(NNTI_send(&peer, &fits.handle, nullptr), NNTI_OK);
  EXPECT_EQ(wait_for(fits, status), NNTI_OK);
  EXPECT_EQ(wait_for(queue, status), NNTI_OK);
}

TEST_P(CApi, PeerWithoutAReceiveQueue_RefusesMessages) {
  Buffer message(*client, 8, 1, NNTI_SEND_SRC);
  NNTI_status_t status;
  ASSERT_EQ(NNTI_send(&peer, &message.handle, nullptr), NNTI_OK);
  EXPECT_EQ(wait_for(message, status), NNTI_ENOENT);
}

TEST_P(CApi, Misuse_GivesAnError_AndChangesNothing) {
  Buffer target(*server, 64, 1, NNTI_PUT_DST), hidden(*server, 64, 1, NNTI_GET_DST), mine(*client, 64, 1, NNTI_PUT_SRC);
  NNTI_status_t status;
  std::uint32_t which = 77;
  EXPECT_EQ(NNTI_put(nullptr, 0, 1, &target.handle, 0), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&mine.handle, 0, 1, nullptr, 0), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&mine.handle, 0, 65, &target.handle, 0), NNTI_EINVAL);
  char *piece = mine.memory.data();
  const uint64_t piece_bytes = 8;
  NNTI_buffer_t of_pieces{};
  EXPECT_EQ(
      NNTI_register_segments(&client->handle, &piece, &piece_bytes, UINT64_MAX, NNTI_PUT_SRC, nullptr, &of_pieces),
      NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&mine.handle, 1, UINT64_MAX, &target.handle, 0), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&mine.handle, 0, 60, &target.handle, 5), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&mine.handle, 0, 1, &hidden.handle, 0), NNTI_EPERM);
  EXPECT_EQ(NNTI_get(&target.handle, 0, 1, &mine.handle, 0), NNTI_EPERM);
  EXPECT_EQ(NNTI_put(&mine.handle, 0, 1, &mine.handle, 0), NNTI_EPERM);
  EXPECT_EQ(NNTI_send(&peer, &mine.handle, &target.handle), NNTI_EPERM);
  EXPECT_EQ(NNTI_send(nullptr, &mine.handle, nullptr), NNTI_EINVAL);
  EXPECT_EQ(NNTI_wait(&mine.handle, NNTI_GET_DST, 0, &status), NNTI_EINVAL);
  EXPECT_EQ(NNTI_wait(&mine.handle, 0, 0, nullptr), NNTI_EINVAL);
  EXPECT_EQ(NNTI_waitany(nullptr, 1, 0, 0, &which, &status), NNTI_EINVAL);
  const NNTI_buffer_t *twice[] = {&mine.handle, nullptr, &mine.handle}, *none[] = {nullptr};
  EXPECT_EQ(NNTI_waitany(twice, 3, 0, 0, &which, &status), NNTI_EINVAL);
  EXPECT_EQ(NNTI_waitany(none, 1, 0, 0, &which, &status), NNTI_EINVAL);
  EXPECT_EQ(which, 77u);
  EXPECT_EQ(NNTI_wait(&mine.handle, 0, 0, &status), NNTI_ETIMEDOUT);
  NNTI_buffer_t unset{};
  EXPECT_EQ(NNTI_unregister_memory(&unset), NNTI_EINVAL);
  EXPECT_EQ(NNTI_wait(&unset, 0, 0, &status), NNTI_EINVAL);
  EXPECT_STRNE(nnti_last_error(), "");
}

TEST_P(CApi, RegistrationThatMakesNoSense_IsRefused) {
  char byte = 0;
  NNTI_buffer_t handle{};
  const auto *transport = &client->handle;
  EXPECT_EQ(NNTI_register_memory(transport, nullptr, 1, 1, NNTI_PUT_SRC, nullptr, &handle), NNTI_EINVAL);
  EXPECT_EQ(NNTI_register_memory(transport, &byte, 1, 1, 0x4000, nullptr, &handle), NNTI_EINVAL);
  NNTI_peer_t stranger{};
  EXPECT_EQ(NNTI_register_memory(transport, &byte, 1, 1, NNTI_PUT_SRC, &stranger, &handle), NNTI_ENOENT);
  EXPECT_EQ(handle.buffer_addr.id, 0u);
}

TEST_P(CApi, BufferForOnePeer_CarriesItsDescription_AndRefusesOthers) {
  Buffer hello(*client, 8, 1, NNTI_SEND_SRC), queue(*server, 8, 1, NNTI_RECV_QUEUE);
  NNTI_status_t status;
  ASSERT_EQ(NNTI_send(&peer, &hello.handle, nullptr), NNTI_OK);
  ASSERT_EQ(wait_for(queue, status), NNTI_OK);
  Buffer target(*server, 64, 1, NNTI_PUT_DST, &status.src), mine(*client, 64, 1, NNTI_PUT_SRC);
  EXPECT_EQ(target.handle.buffer_addr.described_for, client->handle.me.peer.instance);
  mine.fill(9);
  ASSERT_EQ(NNTI_put(&mine.handle, 0, 64, &target.handle, 0), NNTI_OK);
  ASSERT_EQ(wait_for(mine, status), NNTI_OK);
  EXPECT_EQ(target.memory, mine.memory);

  Opened other(GetParam());
  NNTI_peer_t theirs;
  ASSERT_EQ(NNTI_connect(&other.handle, server->url().c_str(), kWatchdogMs, &theirs), NNTI_OK);
  Buffer others(other, 64, 1, NNTI_PUT_SRC);
  ASSERT_EQ(NNTI_put(&others.handle, 0, 64, &target.handle, 0), NNTI_OK);
  EXPECT_EQ(wait_for(others, status), NNTI_EPERM);
  EXPECT_EQ(target.memory, mine.memory);
}

TEST_P(CApi, WaitAnyAndAll_TakeWhatIsThere) {
  Buffer target(*server, 64, 1, NNTI_PUT_DST), one(*client, 64, 1, NNTI_PUT_SRC), two(*client, 64, 1, NNTI_PUT_SRC);
  const NNTI_buffer_t *list[] = {&one.handle, nullptr, &two.handle};
  std::uint32_t which = 9;
  NNTI_status_t any, first, third, *statuses[] = {&first, nullptr, &third};
  ASSERT_EQ(NNTI_put(&two.handle, 0, 5, &target.handle, 0), NNTI_OK);
  ASSERT_EQ(NNTI_waitany(list, 3, 0, kWatchdogMs, &which, &any), NNTI_OK);
  EXPECT_EQ(which, 2u);
  EXPECT_EQ(any.length, 5u);
  ASSERT_EQ(NNTI_put(&two.handle, 0, 6, &target.handle, 0), NNTI_OK);
  EXPECT_EQ(NNTI_waitall(list, 3, 0, 50, statuses), NNTI_ETIMEDOUT);
  ASSERT_EQ(NNTI_put(&one.handle, 0, 7, &target.handle, 0), NNTI_OK);
  ASSERT_EQ(NNTI_waitall(list, 3, 0, kWatchdogMs, statuses), NNTI_OK);
  EXPECT_EQ(first.length, 7u);
  EXPECT_EQ(third.length, 6u);
}

TEST_P(CApi, Disconnect_CancelsWhatIsPending_AndThePeerIsGone) {
  Buffer queue(*server, 8, 1, NNTI_RECV_QUEUE), one(*client, 8, 1, NNTI_SEND_SRC), two(*client, 8, 1, NNTI_SEND_SRC);
  NNTI_status_t status;
  ASSERT_EQ(NNTI_send(&peer, &one.handle, nullptr), NNTI_OK);
  ASSERT_EQ(wait_for(one, status), NNTI_OK);
  ASSERT_EQ(NNTI_send(&peer, &two.handle, nullptr), NNTI_OK);
  EXPECT_EQ(NNTI_wait(&two.handle, 0, 50, &status), NNTI_ETIMEDOUT);
  EXPECT_EQ(NNTI_unregister_memory(&two.handle), NNTI_EAGAIN);
  ASSERT_EQ(NNTI_disconnect(&client->handle, &peer), NNTI_OK);
  EXPECT_EQ(wait_for(two, status), NNTI_ECANCELED);
  EXPECT_EQ(NNTI_send(&peer, &two.handle, nullptr), NNTI_EPEERLOST);
  EXPECT_EQ(NNTI_disconnect(&client->handle, &peer), NNTI_ENOENT);
  ASSERT_EQ(NNTI_connect(&client->handle, server->url().c_str(), kWatchdogMs, &peer), NNTI_OK) << nnti_last_error();
}

TEST_P(CApi, Connect_ReturnsAPeerThatIsConnected_AndRefusesNonsense) {
  NNTI_peer_t again{};
  EXPECT_EQ(NNTI_connect(&client->handle, server->url().c_str(), 0, &again), NNTI_OK);
  EXPECT_EQ(again.peer.instance, peer.peer.instance);
  EXPECT_EQ(NNTI_connect(&client->handle, "no url", 100, &again), NNTI_EINVAL);
  EXPECT_EQ(NNTI_connect(&client->handle, "carrier-pigeon://roof", 100, &again), NNTI_ENOTSUP);
  char small[4];
  EXPECT_EQ(NNTI_get_url(&client->handle, small, sizeof small), NNTI_EMSGSIZE);
}

TEST_P(CApi, Fini_EndsWaits_AndHandlesAreDeadAfterwards) {
  Opened extra(GetParam());
  Buffer queue(extra, 8, 1, NNTI_RECV_QUEUE);
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    NNTI_status_t status;
    waiting = true;
    const auto result = wait_for(queue, status);
    EXPECT_TRUE(result == NNTI_ECANCELED || result == NNTI_ENOTINIT);
  });
  while (!waiting) std::this_thread::yield();
  EXPECT_EQ(NNTI_fini(&extra.handle), NNTI_OK);
  waiter.join();
  NNTI_status_t status;
  EXPECT_EQ(NNTI_wait(&queue.handle, 0, 0, &status), NNTI_ENOTINIT);
  EXPECT_EQ(NNTI_fini(&extra.handle), NNTI_ENOTINIT);
}

std::string name_of(const testing::TestParamInfo<NNTI_transport_id_t> &info) {
  return nnti::transports_of(info.param)->front();
}
INSTANTIATE_TEST_SUITE_P(Transports, CApi,
                         testing::Values(NNTI_TRANSPORT_INPROC, NNTI_TRANSPORT_SHM, NNTI_TRANSPORT_TCP,
                                         NNTI_TRANSPORT_OFI),
                         name_of);

// --- without a peer -----------------------------------------------------------------------------------------------------

TEST(CApiInit, TransportsThatDoNotExistHere_AreRefused) {
  NNTI_transport_t handle{};
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_GEMINI, nullptr, &handle), NNTI_ENOTSUP);
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_NULL, nullptr, &handle), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(static_cast<NNTI_transport_id_t>(NNTI_TRANSPORT_COUNT + 1), nullptr, &handle), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_AUTO, nullptr, nullptr), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_AUTO, "not a url", &handle), NNTI_EINVAL);
  EXPECT_EQ(NNTI_fini(&handle), NNTI_ENOTINIT);
  EXPECT_EQ(nnti_header_compiles_as_c(), 0);
}

TEST(CApiXdr, Handles_SurviveARoundTrip_AndTruncationsAreRefused) {
  auto owner = nnti::peer_to_c({7}, "shm://somewhere;ofi://10.0.0.1:4711?provider=tcp", 42);
  auto buffer = nnti::buffer_to_c({1, 2, 3, 4, 5, nnti::Rights::kReadWrite}, owner);
  std::array<char, 2048> bytes{};
  XDR xdr;
  xdrmem_create(&xdr, bytes.data(), bytes.size(), XDR_ENCODE);
  ASSERT_EQ(xdr_NNTI_buffer_t(&xdr, &buffer), 1);
  const auto size = xdr_getpos(&xdr);
  NNTI_buffer_t decoded{};
  xdrmem_create(&xdr, bytes.data(), size, XDR_DECODE);
  ASSERT_EQ(xdr_NNTI_buffer_t(&xdr, &decoded), 1);
  EXPECT_STREQ(decoded.buffer_owner.url, owner.url);
  EXPECT_EQ(decoded.buffer_owner.peer.instance, 42u);
  const auto remote = nnti::buffer_from_c(decoded);
  EXPECT_EQ(remote.key, 1u);
  EXPECT_EQ(remote.size_bytes, 3u);
  EXPECT_EQ(remote.rights, nnti::Rights::kReadWrite);
  for (unsigned short_size = 0; short_size < size; short_size += 4) {
    NNTI_buffer_t untouched{};
    xdrmem_create(&xdr, bytes.data(), short_size, XDR_DECODE);
    EXPECT_EQ(xdr_NNTI_buffer_t(&xdr, &untouched), 0);
    EXPECT_EQ(untouched.payload_size, 0u);
  }
}

}  // namespace
