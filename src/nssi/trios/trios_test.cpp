// SPDX-License-Identifier: BSD-3-Clause
// What Trios' NSSI has beyond the paper's: requests that are filled by hand, objects as stubs, several services.
#include <Trios_nssi_client.h>
#include <Trios_nssi_server.h>

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

enum : int { kDoubleOp = 1, kCountOp = 2, kObjectOp = 3, kAgeOp = 4, kBothWaysOp = 5, kBlankOp = 6 };
constexpr auto kServing = NSSI_RPC_LOCAL, kCalling = NSSI_RPC_SHM;

std::atomic<int> counted{0};

int twice(const unsigned long id, const NNTI_peer_t *caller, const int *value, const NNTI_buffer_t *,
          const NNTI_buffer_t *result) {
  int doubled = 2 * *value;
  return nssi_send_result(caller, id, NSSI_OK, &doubled, result);
}
int count(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *,
          const NNTI_buffer_t *result) {
  ++counted;
  return nssi_send_result(caller, id, NSSI_OK, nullptr, result);
}
int ask_age(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *,
            const NNTI_buffer_t *result) {
  int is_known = nssi_get_request_age(caller, static_cast<int>(id)) >= 0 && nssi_get_request_age(caller, 0) < 0;
  return nssi_send_result(caller, id, NSSI_OK, &is_known, result);
}
int turn_bits(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *data,
              const NNTI_buffer_t *result) {
  std::string bytes(NNTI_BUFFER_SIZE(data), '\0');
  int rc = nssi_get_data(caller, bytes.data(), bytes.size(), data);
  for (auto &each : bytes) each = static_cast<char>(~each);
  if (rc == NSSI_OK) rc = nssi_put_data(caller, bytes.data(), bytes.size(), data, -1);
  return nssi_send_result(caller, id, rc, nullptr, result);
}
/// Arguments that tell whether the memory they are decoded into was zeroed, and leave it otherwise.
struct Blank {
  char bytes[64];
};
std::atomic<int> soiled{0};
bool_t xdr_Blank(XDR *xdrs, Blank *value) {
  if (xdrs->x_op == XDR_DECODE)
    for (char byte : value->bytes) soiled += byte != 0;
  if (xdrs->x_op == XDR_FREE) std::memset(value->bytes, 0xff, sizeof value->bytes);
  return TRUE;
}
class Adder final : public NssiRpc {
 public:
  explicit Adder(int summand) : summand_(summand) {}
  int doRPC(const int opcode, const unsigned long id, const NNTI_peer_t *caller, const void *args,
            const NNTI_buffer_t *, const NNTI_buffer_t *result) override {
    int sum = opcode == kObjectOp ? summand_ + *static_cast<const int *>(args) : -1;
    return nssi_send_result(caller, id, NSSI_OK, &sum, result);
  }

 private:
  int summand_;
};

class TriosNssi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(nssi_rpc_init(kServing, NSSI_DEFAULT_ENCODE, nullptr), NSSI_OK) << nssi_last_error();
    ASSERT_EQ(nssi_init(kCalling), NSSI_OK) << nssi_last_error();
    ASSERT_EQ(nssi_service_init(kServing, NSSI_SHORT_REQUEST_SIZE, &serving_), NSSI_OK);
    offer();
    thread_ = std::thread([this] { ended_with_ = nssi_service_start(&serving_); });
    const char *urls[] = {serving_.svc_host.url, serving_.svc_host.url};
    ASSERT_EQ(nssi_get_services(kCalling, urls, 2, 20'000, services_), NSSI_OK) << nssi_last_error();
  }
  void TearDown() override {
    if (thread_.joinable()) nssi_service_abort(), thread_.join();
    EXPECT_EQ(nssi_fini(kCalling), NSSI_OK);
    EXPECT_EQ(nssi_service_fini(&serving_), NSSI_OK);
    EXPECT_EQ(nssi_rpc_fini(kServing), NSSI_OK);
    EXPECT_EQ(nssi_clear_xdr_encodings(), NSSI_OK);
  }
  void offer() {
    EXPECT_EQ(NSSI_REGISTER_SERVER_STUB(kDoubleOp, twice, int, int), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_SERVER_STUB(kCountOp, count, void, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_SERVER_STUB(kAgeOp, ask_age, void, int), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_SERVER_STUB(kBothWaysOp, turn_bits, void, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_SERVER_OBJ(kObjectOp, &adder_, int, int), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_SERVER_STUB(kBlankOp, count, Blank, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kBlankOp, Blank, void, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kDoubleOp, int, void, int), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kCountOp, void, void, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kAgeOp, void, void, int), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kBothWaysOp, void, void, void), NSSI_OK);
    EXPECT_EQ(NSSI_REGISTER_CLIENT_STUB(kObjectOp, int, void, int), NSSI_OK);
  }
  const nssi_service &service() const { return services_[0]; }

  Adder adder_{40};
  nssi_service serving_{}, services_[2];
  std::atomic<int> ended_with_{-1};
  std::thread thread_;
};

TEST_F(TriosNssi, StubsMayBeFunctionsOrObjects) {
  int value = 2, result = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kDoubleOp, &value, nullptr, 0, &result), NSSI_OK) << nssi_last_error();
  EXPECT_EQ(result, 4);
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kObjectOp, &value, nullptr, 0, &result), NSSI_OK);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kAgeOp, nullptr, nullptr, 0, &result), NSSI_OK);
  EXPECT_EQ(result, 1);
}

TEST_F(TriosNssi, DataGoBothWays) {
  std::string bytes(100'000, 'x');
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kBothWaysOp, nullptr, bytes.data(), bytes.size(), nullptr), NSSI_OK);
  EXPECT_EQ(bytes, std::string(100'000, static_cast<char>(~'x')));
}

int note_end(nssi_request *request) { return ++*static_cast<int *>(request->callback_args); }

TEST_F(TriosNssi, ARequestFilledByHand_IsEncodedWhenItIsSent) {
  int value = 0, result = 0, ends = 0, rc = -1, status = 0;
  nssi_request request;
  ASSERT_EQ(nssi_create_request(&service(), kDoubleOp, &value, nullptr, 0, &result, &request), NSSI_OK);
  EXPECT_EQ(nssi_wait(&request, &rc), NSSI_EINVAL) << "it was not sent";
  value = 21;
  request.callback = note_end;
  request.callback_args = &ends;
  ASSERT_EQ(nssi_send_request(&request), NSSI_OK);
  EXPECT_EQ(nssi_wait(&request, &rc), NSSI_OK);
  EXPECT_EQ(nssi_wait(&request, &rc), NSSI_OK) << "a second time";
  EXPECT_EQ(nssi_get_status(&request, &status, &rc), NSSI_OK);
  EXPECT_EQ(status, NSSI_REQUEST_COMPLETE);
  EXPECT_EQ(rc, NSSI_OK);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(ends, 1);
}

TEST_F(TriosNssi, ASyncRequestIsOverWhenItWasSent) {
  int value = 21, result = 0;
  nssi_request request;
  ASSERT_EQ(nssi_create_request(&service(), kDoubleOp, &value, nullptr, 0, &result, &request), NSSI_OK);
  request.is_sync = TRUE;
  EXPECT_EQ(nssi_send_request(&request), NSSI_OK);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(request.status, NSSI_REQUEST_COMPLETE);
}

TEST_F(TriosNssi, AResponselessRequestIsCarriedOut) {
  const int before = counted;
  int rc = -1, result = 0;
  for (int i = 0; i < 10; ++i) {
    nssi_request request;
    ASSERT_EQ(nssi_create_request(&service(), kCountOp, nullptr, nullptr, 0, nullptr, &request), NSSI_OK);
    request.is_responseless = TRUE;
    EXPECT_EQ(nssi_send_request(&request), NSSI_OK);
    EXPECT_EQ(nssi_wait(&request, &rc), NSSI_OK);
  }
  nssi_request wrong;
  ASSERT_EQ(nssi_create_request(&service(), kDoubleOp, &rc, nullptr, 0, &result, &wrong), NSSI_OK);
  wrong.is_responseless = TRUE;
  EXPECT_EQ(nssi_send_request(&wrong), NSSI_EINVAL) << "it wants a result";
  EXPECT_EQ(nssi_fini(kCalling), NSSI_OK);
  EXPECT_EQ(counted, before + 10) << "when the transport was closed";
  EXPECT_EQ(nssi_init(kCalling), NSSI_OK);
}

TEST_F(TriosNssi, ArgumentsAreDecodedIntoZeroedMemory_AsRpcgensCodecsWant) {
  Blank blank{};
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(nssi_call_rpc_sync(&service(), kBlankOp, &blank, nullptr, 0, nullptr), NSSI_OK) << nssi_last_error();
  EXPECT_EQ(soiled, 0);
}

TEST_F(TriosNssi, ServicesAreDescribedSoThatTheyCanBeCompared) {
  for (const auto &service : {services_[0], services_[1], serving_}) {
    ASSERT_EQ(service.req_addr.buffer_segments.NNTI_remote_addr_array_t_len, 1u);
    EXPECT_EQ(service.req_addr.buffer_segments.NNTI_remote_addr_array_t_val[0].size, 0u);
    EXPECT_STREQ(service.req_addr.buffer_owner.url, serving_.svc_host.url);
  }
}

TEST_F(TriosNssi, TheHeadersThatTriosSent_HaveTheirFields) {
  nssi_request_header asked{};
  nssi_result_header answered{};
  asked.is_responseless = TRUE;
  asked.res_addr.payload_size = answered.result_size = NSSI_SHORT_RESULT_SIZE;
  EXPECT_EQ(asked.res_addr.payload_size, answered.result_size);
  EXPECT_GT(sizeof asked, sizeof answered);
}

TEST_F(TriosNssi, AMulticastAsksSeveralServices) {
  int value = 21, results[2] = {0, 0};
  EXPECT_EQ(nssi_multicast_rpc_sync(services_, 2, kDoubleOp, &value, nullptr, 0, results, sizeof(int)), NSSI_OK);
  EXPECT_EQ(results[0], 42);
  EXPECT_EQ(results[1], 42);
}

TEST_F(TriosNssi, CodesAreThoseOfTrios) {
  nssi_request request;
  int rc = 0, code = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&service(), 99, nullptr, nullptr, 0, nullptr), NSSI_ENOENT) << "no encoding";
  int value = 1, result = 0;
  ASSERT_EQ(nssi_call_rpc(&service(), kDoubleOp, &value, nullptr, 0, &result, &request), NSSI_OK);
  while ((code = nssi_test(&request, &rc)) == NSSI_EWOULDBLOCK) {}
  EXPECT_EQ(code, NSSI_OK);
  EXPECT_STREQ(nssi_err_str(NSSI_EWOULDBLOCK), "NSSI_EWOULDBLOCK");
  EXPECT_STREQ(nssi_err_str(NSSI_EDECODE), "NSSI_EDECODE");
}

TEST_F(TriosNssi, AKilledServiceReturnsTheSignal) {
  EXPECT_EQ(nssi_kill(&service(), 9, 20'000), NSSI_OK) << nssi_last_error();
  thread_.join();
  EXPECT_EQ(ended_with_, 9);
}

TEST_F(TriosNssi, AServiceEndsAfterItsLastRequest) {
  nssi_service_abort();
  thread_.join();
  serving_.max_reqs = 3;
  thread_ = std::thread([this] { ended_with_ = nssi_service_start(&serving_); });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(nssi_call_rpc_sync(&service(), kCountOp, nullptr, nullptr, 0, nullptr), NSSI_OK) << nssi_last_error();
  thread_.join();
  EXPECT_EQ(ended_with_, NSSI_OK);
}

/// Threads of the program's, in front of a queue.
class Crew {
 public:
  Crew() {
    for (auto &each : threads_) each = std::thread([this] { work(); });
    crew = this;
  }
  ~Crew() {
    push(nullptr);
    for (auto &each : threads_) each.join();
  }
  static int enqueue(nssi_svc_rpc_request *request) {
    crew->push(request);
    return NSSI_OK;
  }
  static int refuse(nssi_svc_rpc_request *) { return NSSI_EAGAIN; }

 private:
  void push(nssi_svc_rpc_request *request) {
    std::lock_guard lock(mutex_);
    queue_.push_back(request);
    pushed_.notify_all();
  }
  /// Until null, which stays for the others.
  nssi_svc_rpc_request *pop() {
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [this] { return !queue_.empty(); });
    auto *request = queue_.front();
    if (request != nullptr) queue_.pop_front();
    return request;
  }
  void work() {
    while (auto *request = pop()) EXPECT_EQ(nssi_process_rpc_request(request), NSSI_OK) << nssi_last_error();
  }

  static inline Crew *crew = nullptr;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<nssi_svc_rpc_request *> queue_;
  std::thread threads_[3];
};

TEST_F(TriosNssi, StubsMayRunInThreadsOfTheProgram) {
  constexpr int kCalls = 20;
  nssi_service_abort();
  thread_.join();
  Crew crew;
  thread_ = std::thread([this] { ended_with_ = nssi_service_start_wfn(&serving_, Crew::enqueue); });
  std::vector<std::string> data(kCalls, std::string(10'000, 'x'));
  std::vector<nssi_request> requests(kCalls);
  for (int i = 0; i < kCalls; ++i)
    EXPECT_EQ(nssi_call_rpc(&service(), kBothWaysOp, nullptr, data[i].data(), data[i].size(), nullptr, &requests[i]),
              NSSI_OK);
  EXPECT_EQ(nssi_waitall(requests.data(), kCalls, -1), NSSI_OK) << nssi_last_error();
  for (const auto &each : data) EXPECT_EQ(each, std::string(10'000, static_cast<char>(~'x')));
  int value = 2, result = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kObjectOp, &value, nullptr, 0, &result), NSSI_OK);
  EXPECT_EQ(result, 42);
  nssi_service_abort();
  thread_.join();
}

TEST_F(TriosNssi, ARequestThatTheProgramRefuses_IsAnsweredSo) {
  nssi_service_abort();
  thread_.join();
  thread_ = std::thread([this] { ended_with_ = nssi_service_start_wfn(&serving_, Crew::refuse); });
  int value = 2, result = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kDoubleOp, &value, nullptr, 0, &result), NSSI_EAGAIN);
  EXPECT_EQ(nssi_process_rpc_request(nullptr), NSSI_ENOENT);
}

TEST_F(TriosNssi, ARequestThatNobodyTakes_GoesOnUntilItsTransportEnds) {
  static std::atomic<nssi_svc_rpc_request *> kept{nullptr};
  nssi_service_abort();
  thread_.join();
  thread_ = std::thread([this] {
    ended_with_ = nssi_service_start_wfn(&serving_, [](nssi_svc_rpc_request *request) -> int {
      kept = request;
      return NSSI_OK;
    });
  });
  nssi_request request;
  int value = 2, result = 0, rc = 4711;
  ASSERT_EQ(nssi_call_rpc(&service(), kDoubleOp, &value, nullptr, 0, &result, &request), NSSI_OK);
  while (kept == nullptr && nssi_test(&request, &rc) == NSSI_EWOULDBLOCK) {}
  EXPECT_EQ(nssi_timedwait(&request, 1, &rc), NSSI_ETIMEDOUT);
  EXPECT_NE(request.id, 0u) << "it goes on";
  EXPECT_EQ(rc, 4711) << "and has no answer yet";
  nssi_service_abort();
  thread_.join();
  EXPECT_EQ(nssi_rpc_fini(kServing), NSSI_OK);
  EXPECT_EQ(nssi_process_rpc_request(kept), NSSI_ENOENT);
  EXPECT_EQ(nssi_rpc_init(kServing, NSSI_DEFAULT_ENCODE, nullptr), NSSI_OK);
}

TEST_F(TriosNssi, AProgressCallbackIsRefused) {
  nssi_service_abort();
  thread_.join();
  serving_.progress_callback = 1;
  EXPECT_EQ(nssi_service_start(&serving_), NSSI_ENOTSUP);
}

}  // namespace
