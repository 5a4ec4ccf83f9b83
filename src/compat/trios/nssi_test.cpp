// SPDX-License-Identifier: BSD-3-Clause
// What Trios' NSSI has beyond the paper's: requests that are filled by hand, objects as stubs, several services.
#include <Trios_nssi_client.h>
#include <Trios_nssi_server.h>
#include <Trios_trace.h>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

enum : int { kDoubleOp = 1, kCountOp = 2, kObjectOp = 3, kAgeOp = 4, kBothWaysOp = 5, kBlankOp = 6 };
constexpr auto kServing = NSSI_RPC_LOCAL, kCalling = NSSI_RPC_SHM;

std::atomic<int> counted{0};

struct Seen {
  NNTI_peer_t caller;
  NNTI_remote_addr_t segment;
};
std::mutex seen_mutex;
Seen last_seen{};  ///< by turn_bits()
Seen seen() {
  std::lock_guard lock(seen_mutex);
  return last_seen;
}

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
  if (data->buffer_segments.NNTI_remote_addr_array_t_len == 1) {
    std::lock_guard lock(seen_mutex);
    last_seen = {*caller, *data->buffer_segments.NNTI_remote_addr_array_t_val};
  }
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

TEST_F(TriosNssi, AStubIsToldWhoCalls_AndWhereItsDataAre) {
  std::string first(100, 'x'), second(100, 'y');
  ASSERT_EQ(nssi_call_rpc_sync(&service(), kBothWaysOp, nullptr, first.data(), first.size(), nullptr), NSSI_OK);
  const std::string url = seen().caller.url;
  EXPECT_EQ(url.substr(0, 7), "client:");
  EXPECT_EQ(seen().caller.peer.transport_id, static_cast<int>(kServing));
  EXPECT_EQ(seen().segment.size, first.size());
  ASSERT_EQ(nssi_call_rpc_sync(&service(), kBothWaysOp, nullptr, second.data(), second.size(), nullptr), NSSI_OK);
  EXPECT_EQ(url, seen().caller.url);
}

extern "C" NNTI_transport_t transports[NSSI_RPC_COUNT];

TEST_F(TriosNssi, NntisHandlesOfItsTransportsAreThere_AsTriosProgramsDeclareThem) {
  NNTI_buffer_t buffer{};
  EXPECT_EQ(NNTI_alloc(&transports[NSSI_RPC_INPROC], NSSI_SHORT_REQUEST_SIZE, 1, NNTI_SEND_SRC, &buffer),
            NNTI_ENOTINIT);
  ASSERT_EQ(
      NNTI_alloc(&transports[service().transport_id], NNTI_BUFFER_SIZE(&service().req_addr), 1, NNTI_SEND_SRC, &buffer),
      NNTI_OK)
      << nnti_last_error();
  nssi_request request;
  int value = 4, result = 0, rc = -1;
  ASSERT_EQ(nssi_create_request(&service(), kDoubleOp, &value, nullptr, 0, &result, &request), NSSI_OK);
  request.app_pinned_short_request = TRUE;
  request.short_request_hdl = &buffer;
  ASSERT_EQ(nssi_send_request(&request), NSSI_OK);
  EXPECT_EQ(nssi_wait(&request, &rc), NSSI_OK);
  EXPECT_EQ(result, 8);
  EXPECT_EQ(NNTI_free(&buffer), NNTI_OK);
}

TEST(TriosNssiTransports, EndWithNssi_UnlessTheProgramOpenedThem) {
  NNTI_buffer_t buffer{};
  NNTI_transport_t own{};
  for (const bool has_own : {false, true}) {
    ASSERT_EQ(nssi_init(NSSI_RPC_INPROC), NSSI_OK);
    const auto handle = transports[NSSI_RPC_INPROC];
    ASSERT_EQ(NNTI_alloc(&handle, 8, 1, NNTI_SEND_SRC, &buffer), NNTI_OK);
    if (has_own) { ASSERT_EQ(NNTI_init(NNTI_TRANSPORT_INPROC, nullptr, &own), NNTI_OK); }
    ASSERT_EQ(nssi_fini(NSSI_RPC_INPROC), NSSI_OK);
    EXPECT_EQ(NNTI_free(&buffer), has_own ? NNTI_OK : NNTI_ENOTINIT);
  }
  EXPECT_EQ(NNTI_fini(&own), NNTI_OK);
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

template <class T> std::vector<char> encoded(T &value, bool_t (*code)(XDR *, T *)) {
  std::vector<char> bytes(xdr_sizeof(reinterpret_cast<xdrproc_t>(code), &value));
  XDR xdr;
  xdrmem_create(&xdr, bytes.data(), static_cast<unsigned>(bytes.size()), XDR_ENCODE);
  EXPECT_TRUE(code(&xdr, &value));
  return bytes;
}
template <class T> bool decode(std::vector<char> bytes, T &value, bool_t (*code)(XDR *, T *)) {
  XDR xdr;
  xdrmem_create(&xdr, bytes.data(), static_cast<unsigned>(bytes.size()), XDR_DECODE);
  return code(&xdr, &value);
}
template <class T> void release(T &value, bool_t (*code)(XDR *, T *)) {
  xdr_free(reinterpret_cast<xdrproc_t>(code), reinterpret_cast<char *>(&value));
}

TEST_F(TriosNssi, AServiceMayBeSentInAMessage) {
  auto sent = service();
  sent.max_reqs = 7;
  sent.progress_callback = 1;
  auto bytes = encoded(sent, xdr_nssi_service);
  nssi_service got{};
  ASSERT_TRUE(decode(bytes, got, xdr_nssi_service));
  EXPECT_EQ(got.transport_id, kCalling);
  EXPECT_EQ(got.max_reqs, 7);
  EXPECT_EQ(got.progress_callback, 0u) << "another process's function";
  EXPECT_EQ(got.req_addr.payload_size, static_cast<std::uint64_t>(NSSI_SHORT_REQUEST_SIZE));
  int value = 4, result = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&got, kDoubleOp, &value, nullptr, 0, &result), NSSI_OK) << nssi_last_error();
  EXPECT_EQ(result, 8);
  release(got, xdr_nssi_service);
  release(sent, xdr_nssi_service);  // its segment is nobody's memory
  bytes.pop_back();
  EXPECT_FALSE(decode(bytes, got, xdr_nssi_service));
}

TEST_F(TriosNssi, HeadersMayBeSentInAMessage_WithAndWithoutAddresses) {
  nssi_request_header asked{}, asked_again{};
  asked.opcode = kDoubleOp;
  asked.fetch_data = TRUE;
  asked.data_addr = service().req_addr;
  ASSERT_TRUE(decode(encoded(asked, xdr_nssi_request_header), asked_again, xdr_nssi_request_header));
  EXPECT_EQ(asked_again.opcode, asked.opcode);
  EXPECT_EQ(asked_again.data_addr.buffer_segments.NNTI_remote_addr_array_t_len, 1u);
  EXPECT_EQ(asked_again.args_addr.datatype, 0);
  release(asked_again, xdr_nssi_request_header);
  nssi_result_header answered{}, answered_again{};
  answered.rc = NSSI_EPERM;
  ASSERT_TRUE(decode(encoded(answered, xdr_nssi_result_header), answered_again, xdr_nssi_result_header));
  EXPECT_EQ(answered_again.rc, static_cast<std::uint32_t>(NSSI_EPERM));
  auto code = NSSI_EAGAIN, unknown = static_cast<nssi_return_codes>(1017);
  EXPECT_TRUE(decode(encoded(code, xdr_nssi_return_codes), unknown, xdr_nssi_return_codes));
  EXPECT_EQ(unknown, NSSI_EAGAIN);
  EXPECT_FALSE(decode({0, 0, 3, static_cast<char>(0xf9)}, code, xdr_nssi_return_codes)) << "1017 is NNTI's";
}

TEST_F(TriosNssi, ServicesAndHeadersArePrinted) {
  nssi_request_header asked{};
  asked.data_addr = service().req_addr;
  nssi_result_header answered{};
  answered.rc = NSSI_EPERM;
  std::ostringstream out;
  fprint_nssi_service(out, "svc", "LINE", &service());
  fprint_nssi_request_header(out, "asked", "LINE", &asked);
  fprint_nssi_result_header(out, "answered", "LINE", &answered);
  fprint_nssi_return_code(out, "rc", "LINE", NSSI_EAGAIN);
  fprint_nssi_request_header(out, "none", "LINE", nullptr);
  for (const std::string text : {"LINE svc = nssi_service {\n", "LINE     rpc_encode = NSSI_RPC_XDR\n",
                                 "LINE     args_addr = NULL\n", "LINE     data_addr = NNTI_buffer_t {\n",
                                 "LINE     rc = NSSI_EPERM\n", "LINE rc = NSSI_EAGAIN\n", "LINE none = NULL\n"})
    EXPECT_NE(out.str().find(text), std::string::npos) << text << out.str();
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
  EXPECT_EQ(
      std::vector<int>({NSSI_OK, NSSI_EIO, NSSI_EPERM, NSSI_EDECODE, NSSI_EENCODE, NSSI_EWOULDBLOCK, NSSI_EAGAIN}),
      std::vector<int>({0, 1001, 1012, 1013, 1014, 1015, 1016}));
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

TEST_F(TriosNssi, RequestsOfAnotherService_AreNotCounted) {
  nssi_service other{};
  ASSERT_EQ(nssi_service_init(kCalling, NSSI_SHORT_REQUEST_SIZE, &other), NSSI_OK);
  other.max_reqs = 2;
  nssi_service at_other;
  std::thread thread([&] { EXPECT_EQ(nssi_service_start(&other), NSSI_OK); });
  ASSERT_EQ(nssi_get_service(kServing, other.svc_host.url, 20'000, &at_other), NSSI_OK) << nssi_last_error();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(nssi_call_rpc_sync(&service(), kCountOp, nullptr, nullptr, 0, nullptr), NSSI_OK) << nssi_last_error();
  for (int i = 0; i < 2; ++i) {
    nssi_request request;
    int rc = -1;
    ASSERT_EQ(nssi_call_rpc(&at_other, kCountOp, nullptr, nullptr, 0, nullptr, &request), NSSI_OK);
    EXPECT_EQ(nssi_timedwait(&request, 5'000, &rc), NSSI_OK) << nssi_last_error();
  }
  nssi_service_abort();
  thread.join();
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

TEST_F(TriosNssi, StubsMayRunOnTheUserLevelThreadOfALaterRequest) {
  static std::deque<nssi_svc_rpc_request *> batch;
  nssi_service_abort();
  thread_.join();
  thread_ = std::thread([this] {
    ended_with_ = nssi_service_start_wfn(&serving_, [](nssi_svc_rpc_request *request) -> int {
      batch.push_back(request);
      if (batch.size() < 2) return NSSI_OK;
      for (; !batch.empty(); batch.pop_front())
        EXPECT_EQ(nssi_process_rpc_request(batch.front()), NSSI_OK) << nssi_last_error();
      return NSSI_OK;
    });
  });
  std::string data[2] = {std::string(10'000, 'x'), std::string(10'000, 'x')};
  nssi_request requests[2];
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(nssi_call_rpc(&service(), kBothWaysOp, nullptr, data[i].data(), data[i].size(), nullptr, &requests[i]),
              NSSI_OK);
  EXPECT_EQ(nssi_waitall(requests, 2, -1), NSSI_OK) << nssi_last_error();
  for (const auto &each : data) EXPECT_EQ(each, std::string(10'000, static_cast<char>(~'x')));
}

/// Pulls its data in two threads at once; only this one, which runs the stub, may.
int pull_in_two_threads(const unsigned long id, const NNTI_peer_t *caller, const void *, const NNTI_buffer_t *data,
                        const NNTI_buffer_t *result) {
  constexpr int kTimes = 100;
  int refused = 0, moved = 0;
  char byte = 0, others_byte = 0;
  std::thread other([&] {
    for (int i = 0; i < kTimes; ++i) refused += nssi_get_data(caller, &others_byte, 1, data) == NSSI_EINVAL;
  });
  for (int i = 0; i < kTimes; ++i) moved += nssi_get_data(caller, &byte, 1, data) == NSSI_OK;
  other.join();
  return nssi_send_result(caller, id, refused == kTimes && moved == kTimes ? NSSI_OK : NSSI_EIO, nullptr, result);
}

TEST_F(TriosNssi, OnlyTheThreadThatRunsAStubMovesItsData) {
  constexpr int kOp = 100;
  nssi_service_abort();
  thread_.join();
  ASSERT_EQ(NSSI_REGISTER_SERVER_STUB(kOp, pull_in_two_threads, void, void), NSSI_OK);
  ASSERT_EQ(NSSI_REGISTER_CLIENT_STUB(kOp, void, void, void), NSSI_OK);
  Crew crew;
  thread_ = std::thread([this] { ended_with_ = nssi_service_start_wfn(&serving_, Crew::enqueue); });
  char byte = 'x';
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kOp, nullptr, &byte, 1, nullptr), NSSI_OK) << nssi_last_error();
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
  static std::atomic<nssi_svc_rpc_request *> kept;
  kept = nullptr;
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

// --- progress callbacks -----------------------------------------------------------------------------------------------

/// What a progress callback was told.
struct Progress {
  static inline std::atomic<int> idle{0}, busy{0}, elsewhere{0};
  static inline std::atomic<std::thread::id> server;
  static inline std::atomic<const nssi_service *> asks{nullptr};

  static void note(bool is_idle) {
    ++(is_idle ? idle : busy);
    if (std::this_thread::get_id() != server) ++elsewhere;
  }
  static void call(bool) {
    int value = 21, result = 0;
    if (nssi_call_rpc_sync(asks, kDoubleOp, &value, nullptr, 0, &result) == NSSI_OK && result == 42) ++idle;
  }
};

class TriosNssiProgress : public TriosNssi {
 protected:
  void SetUp() override {
    TriosNssi::SetUp();
    nssi_service_abort();
    thread_.join();
    Progress::idle = Progress::busy = Progress::elsewhere = 0;
  }
  void start(void (*callback)(bool is_idle), uint64_t timeout_ms = 1) {
    serving_.progress_callback = reinterpret_cast<uint64_t>(callback);
    serving_.progress_callback_timeout = timeout_ms;
    thread_ = std::thread([this] {
      Progress::server = std::this_thread::get_id();
      ended_with_ = nssi_service_start(&serving_);
    });
  }
};

TEST_F(TriosNssiProgress, IsToldOfIdlenessAndOfWork) {
  const auto begin = std::chrono::steady_clock::now();
  start(Progress::note);
  while (Progress::idle < 2) std::this_thread::yield();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200)) << "100 ms is the least";
  while (Progress::busy < 2)
    EXPECT_EQ(nssi_call_rpc_sync(&service(), kCountOp, nullptr, nullptr, 0, nullptr), NSSI_OK) << nssi_last_error();
  const int idle = Progress::idle;
  while (Progress::idle == idle) std::this_thread::yield();
  EXPECT_EQ(Progress::elsewhere, 0) << "in the thread that serves";
  EXPECT_EQ(nssi_kill(&service(), 9, 20'000), NSSI_OK) << nssi_last_error();
  thread_.join();
  EXPECT_EQ(ended_with_, 9);
}

TEST_F(TriosNssiProgress, AServiceThatIsStartedAnewHasOnlyItsOwnCallback) {
  start(Progress::note);
  while (Progress::idle == 0) std::this_thread::yield();
  nssi_service_abort();
  thread_.join();
  const int before = Progress::idle + Progress::busy;
  static std::atomic<int> others;
  others = 0;
  start([](bool) { ++others; }, 0);
  while (others < 3) std::this_thread::yield();
  EXPECT_EQ(Progress::idle + Progress::busy, before);
}

TEST_F(TriosNssiProgress, ACallbackMayCallAService) {
  ASSERT_EQ(nssi_rpc_init(NSSI_RPC_INPROC, NSSI_DEFAULT_ENCODE, nullptr), NSSI_OK) << nssi_last_error();
  nssi_service other, asked;
  ASSERT_EQ(nssi_service_init(NSSI_RPC_INPROC, NSSI_SHORT_REQUEST_SIZE, &other), NSSI_OK);
  std::thread others_thread([&] { EXPECT_EQ(nssi_service_start(&other), NSSI_OK); });
  ASSERT_EQ(nssi_get_service(kServing, other.svc_host.url, 20'000, &asked), NSSI_OK) << nssi_last_error();
  Progress::asks = &asked;
  start(Progress::call);
  while (Progress::idle == 0) std::this_thread::yield();
  nssi_service_abort();
  others_thread.join();
  thread_.join();
  EXPECT_EQ(nssi_rpc_fini(NSSI_RPC_INPROC), NSSI_OK);
}

// --- traces -----------------------------------------------------------------------------------------------------------

/// Where all are operators.
class TriosNssiTrace : public TriosNssi {
 protected:
  void SetUp() override {
    ::setenv("NESSIE_OPERATOR_CREDENTIAL", std::string(64, '7').c_str(), 1);
    TriosNssi::SetUp();
  }
  void TearDown() override {
    TriosNssi::TearDown();
    ::unsetenv("NESSIE_OPERATOR_CREDENTIAL");
    EXPECT_EQ(trace_fini(), 0);
    std::filesystem::remove(path_);
  }
  int reset(const std::string &file, const std::string &groups) {
    return nssi_trace_reset(&service(), file.c_str(), TRACE_SDDF_ASCII, groups.c_str(), 20'000);
  }
  std::string text() const {
    std::stringstream bytes;
    bytes << std::ifstream(path_).rdbuf();
    return bytes.str();
  }
  void call_once() {
    int value = 21, result = 0;
    EXPECT_EQ(nssi_call_rpc_sync(&service(), kDoubleOp, &value, nullptr, 0, &result), NSSI_OK) << nssi_last_error();
  }

  const std::string path_ = testing::TempDir() + "trios-" + std::to_string(::getpid()) + ".trace";
};

TEST_F(TriosNssiTrace, BeginsAnewInTheFile) {
  call_once();
  ASSERT_EQ(reset(path_, "rpc-interval,rpc-counter"), NSSI_OK) << nssi_last_error();
  EXPECT_TRUE(std::filesystem::exists(path_));
  call_once();
  ASSERT_EQ(reset("", ""), NSSI_OK) << nssi_last_error();
  const auto first = text();
  EXPECT_NE(first.find("rpc-interval\tinterval\t1\t"), std::string::npos) << first;
  EXPECT_NE(first.find("rpc-counter\tcount\t1\t"), std::string::npos) << first;
  EXPECT_EQ(std::ranges::count(first, '\n'), 2) << "the call before is not in it: " << first;
  ASSERT_EQ(nssi_trace_reset(&service(), path_.c_str(), TRACE_SDDF_BINARY, nullptr, -1), NSSI_OK);
  call_once();
  ASSERT_EQ(reset("", ""), NSSI_OK);
  EXPECT_EQ(text(), "") << "overwritten, and no group is traced";
}

TEST_F(TriosNssiTrace, CannotBeReset_SaysWhy) {
  ASSERT_EQ(reset(path_, "rpc-interval"), NSSI_OK) << nssi_last_error();
  EXPECT_EQ(reset(path_ + ".is-no-folder/trace", ""), NSSI_EIO);
  EXPECT_NE(std::string(nssi_last_error()).find("No such file"), std::string::npos) << nssi_last_error();
  EXPECT_EQ(reset(std::string(5000, 'x'), ""), NSSI_EINVAL);
  EXPECT_EQ(reset("", std::string(600, 'x')), NSSI_EINVAL);
  EXPECT_EQ(nssi_trace_reset(nullptr, "", TRACE_SDDF_ASCII, "", -1), NSSI_EINVAL);
  call_once();
  EXPECT_EQ(reset(path_, "rpc-interval,no-such-group"), NSSI_EINVAL) << "of those that there are, it writes";
  call_once();
  ASSERT_EQ(reset("", ""), NSSI_OK);
  EXPECT_EQ(std::ranges::count(text(), '\n'), 1) << text();
}

TEST_F(TriosNssiTrace, OfAServiceThatDoesNotServe_IsWaitedForUntilTheTimeout) {
  nssi_service_abort();
  thread_.join();
  EXPECT_EQ(nssi_trace_reset(&service(), "", TRACE_SDDF_ASCII, "", 50), NSSI_ETIMEDOUT);
}

TEST_F(TriosNssi, ATraceIsNotBegunForAUser) {
  const auto path = testing::TempDir() + "trios-user-" + std::to_string(::getpid()) + ".trace";
  EXPECT_EQ(nssi_trace_reset(&service(), path.c_str(), TRACE_SDDF_ASCII, "", 20'000), NSSI_EPERM);
  EXPECT_FALSE(std::filesystem::exists(path));
}

// --- atomic variables -------------------------------------------------------------------------------------------------

/// Fetches by increments, each as it was before, into a variable of its own.
std::vector<int64_t> fetch(const nssi_service &service, uint64_t remote, uint64_t local, int times) {
  std::vector<int64_t> values(times, -1);
  for (auto &value : values) {
    EXPECT_EQ(nssi_atomic_increment(&service, remote, local), NSSI_OK) << nssi_last_error();
    EXPECT_EQ(nssi_atomic_read(&service, local, &value), NSSI_OK) << nssi_last_error();
  }
  return values;
}

TEST_F(TriosNssi, AtomicVariables_GiveEachOfConcurrentClientsValuesOfItsOwn) {
  constexpr int kTimes = 1000;
  constexpr auto kOther = NSSI_RPC_INPROC;
  ASSERT_EQ(nssi_init(kOther), NSSI_OK) << nssi_last_error();
  nssi_service others;
  ASSERT_EQ(nssi_get_service(kOther, serving_.svc_host.url, 20'000, &others), NSSI_OK) << nssi_last_error();
  std::vector<int64_t> values[3];
  std::thread threads[] = {std::thread([&] { values[0] = fetch(service(), 7, 1, kTimes); }),
                           std::thread([&] { values[1] = fetch(service(), 7, 2, kTimes); }),
                           std::thread([&] { values[2] = fetch(others, 7, 1, kTimes); })};
  for (auto &each : threads) each.join();
  std::vector<int64_t> all;
  for (const auto &each : values) {
    EXPECT_TRUE(std::ranges::is_sorted(each));
    all.insert(all.end(), each.begin(), each.end());
  }
  std::ranges::sort(all);
  for (int i = 0; i < 3 * kTimes; ++i) ASSERT_EQ(all[i], i);
  int64_t value = -1;
  EXPECT_EQ(nssi_atomic_read(&serving_, 7, &value), NSSI_OK) << "at the service";
  EXPECT_EQ(value, 3 * kTimes);
  EXPECT_EQ(nssi_fini(kOther), NSSI_OK);
}

TEST_F(TriosNssi, AtomicVariables_AreCountedDown_AndLessThanNothing) {
  int64_t value = 0;
  EXPECT_EQ(nssi_atomic_increment(&service(), 511, 0), NSSI_OK) << nssi_last_error();
  for (const int64_t former : {1, 0, -1}) {
    EXPECT_EQ(nssi_atomic_decrement(&service(), 511, 0), NSSI_OK) << nssi_last_error();
    EXPECT_EQ(nssi_atomic_read(&service(), 0, &value), NSSI_OK);
    EXPECT_EQ(value, former);
  }
  EXPECT_EQ(nssi_atomic_read(&serving_, 511, &value), NSSI_OK);
  EXPECT_EQ(value, -2);
  EXPECT_EQ(nssi_atomic_read(&service(), 511, &value), NSSI_OK);
  EXPECT_EQ(value, 0) << "the client's own";
}

TEST_F(TriosNssi, AtomicVariables_ThatDoNotExist_AreRefused_AndNothingChanges) {
  int64_t value = 4711;
  EXPECT_EQ(nssi_atomic_increment(&service(), 512, 0), NSSI_EINVAL) << "at the service";
  EXPECT_EQ(nssi_atomic_increment(&service(), UINT64_MAX, 0), NSSI_EINVAL);
  EXPECT_EQ(nssi_atomic_decrement(&service(), 3, 512), NSSI_EINVAL) << "here";
  EXPECT_EQ(nssi_atomic_read(&service(), 512, &value), NSSI_EINVAL);
  EXPECT_EQ(nssi_atomic_read(&service(), 0, nullptr), NSSI_EINVAL);
  EXPECT_EQ(nssi_atomic_increment(nullptr, 0, 0), NSSI_EINVAL);
  EXPECT_EQ(value, 4711);
  EXPECT_EQ(nssi_atomic_read(&serving_, 3, &value), NSSI_OK);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(nssi_init(kCalling), NSSI_OK) << "once more";
  EXPECT_EQ(nssi_atomic_increment(&service(), 3, 0), NSSI_OK);
  EXPECT_EQ(nssi_fini(kCalling), NSSI_OK);
}

TEST_F(TriosNssi, AtomicVariables_BeginWithZeroWhenTheTransportIsOpenedAnew) {
  int64_t value = 4711;
  EXPECT_EQ(nssi_atomic_increment(&service(), 3, 0), NSSI_OK);
  nssi_service_abort();
  thread_.join();
  EXPECT_EQ(nssi_rpc_fini(kServing), NSSI_OK);
  EXPECT_EQ(nssi_atomic_read(&serving_, 3, &value), NSSI_ENOTINIT);
  EXPECT_EQ(value, 4711);
  EXPECT_EQ(nssi_rpc_init(kServing, NSSI_DEFAULT_ENCODE, nullptr), NSSI_OK);
  EXPECT_EQ(nssi_atomic_read(&serving_, 3, &value), NSSI_OK);
  EXPECT_EQ(value, 0);
}

// --- daemons ----------------------------------------------------------------------------------------------------------

/// What a daemon is like, one line; a number says what is wrong.
std::string describe_daemon(const std::string &folder) {
  std::ostringstream text;
  text << (::getsid(0) == ::getpid()) << (::umask(022) == 0) << (std::filesystem::current_path() == folder);
  for (const auto *name : {"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"})
    text << ' ' << std::filesystem::read_symlink(name).string();
  text << ' ' << nssi_rpc_init(kServing, NSSI_DEFAULT_ENCODE, nullptr) << nssi_rpc_fini(kServing) << '\n';
  return text.str();
}

TEST(TriosNssiDaemon, GoesOnInASessionOfItsOwn_WhileItsParentEnds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto folder = std::filesystem::current_path().string();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    nssi_daemonize();
    ::alarm(60);
    const auto text = describe_daemon(folder);
    ::_exit(::write(ends[1], text.data(), text.size()) < 0);
  }
  ::close(ends[1]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char line[200] = "";
  EXPECT_GT(::read(ends[0], line, sizeof line - 1), 0);
  EXPECT_STREQ(line, "111 /dev/null /dev/null /dev/null 00\n");
  EXPECT_EQ(::read(ends[0], line, 1), 0) << "it has ended";
  ::close(ends[0]);
}

TEST_F(TriosNssi, DoesNotBecomeADaemonOnceATransportIsOpen) {
  const auto me = ::getpid(), session = ::getsid(0);
  nssi_daemonize();
  EXPECT_EQ(::getpid(), me);
  EXPECT_EQ(::getsid(0), session);
  int value = 21, result = 0;
  EXPECT_EQ(nssi_call_rpc_sync(&service(), kDoubleOp, &value, nullptr, 0, &result), NSSI_OK) << nssi_last_error();
}

}  // namespace
