// SPDX-License-Identifier: BSD-3-Clause
// Trios_nssi_client.h, on the paper's interface.
#include <compat/trios/nnti.hpp>
#include <compat/trios/nssi_paper.hpp>
#include <compat/trios/nssi_service.hpp>

#include <Trios_nssi_client.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

namespace paper = nssi::trios::paper;

/// Nobody waits for these; their ends are seen when the next one starts, or the transport closes.
struct Responseless {
  int transport;
  paper::Call call;
};
std::mutex mutex;
std::vector<Responseless> responseless;

std::uint64_t peer_of(const nssi_service &service) { return service.svc_host.peer.instance; }

paper::Call call_of(const nssi_request &request) {
  return {request.id, request.opcode, request.error_code, request.error_code, request.status, request.result};
}

/// Notes in the request what became of its call. The callback runs when it ends.
int note(nssi_request &request, const paper::Call &call, int code) {
  const bool has_ended = request.id != 0 && call.id == 0;
  request.id = call.id;
  request.error_code = call.error_code != NSSI_OK ? call.error_code : call.remote_rc;
  request.status = static_cast<nssi_request_status>(call.status);
  if (has_ended && request.callback != nullptr) (void)request.callback(&request);
  return code;
}

/// A request that is over says again what it said: what its stub answered is no error of the call.
int outcome_of(const nssi_request &request, int *remote_rc) {
  if (request.status == NSSI_REQUEST_NULL) return paper::fail(NSSI_EINVAL, "the request was never sent");
  if (remote_rc != nullptr) *remote_rc = request.error_code;
  return request.status == NSSI_REQUEST_COMPLETE ? static_cast<int>(NSSI_OK) : request.error_code;
}

template <class Look> int look_at(nssi_request *request, int *remote_rc, Look look) {
  if (request == nullptr) return paper::fail(NSSI_EINVAL, "request is NULL");
  if (request->id == 0) return outcome_of(*request, remote_rc);
  auto call = call_of(*request);
  const int code = look(call);
  return note(*request, call, code);
}

void forget_ended() {
  std::erase_if(responseless, [](Responseless &each) { return paper::test(each.call, nullptr) != NSSI_EWOULDBLOCK; });
}

int send_responseless(nssi_request &request) {
  if (request.data != nullptr || request.result != nullptr)
    return paper::fail(NSSI_EINVAL, "a responseless request has no data and no result");
  const auto &service = *request.svc;
  paper::Call call;
  const int code =
      paper::start(service.transport_id, peer_of(service), request.opcode, request.args, nullptr, 0, nullptr, call);
  if (code != NSSI_OK) return code;
  request.status = NSSI_REQUEST_COMPLETE;
  std::lock_guard lock(mutex);
  forget_ended();
  responseless.push_back({service.transport_id, call});
  return NSSI_OK;
}

/// Requests that were sent are carried out, if their service lives.
void finish_responseless(int transport) {
  std::vector<Responseless> left;
  {
    std::lock_guard lock(mutex);
    std::erase_if(responseless, [&](Responseless &each) {
      if (each.transport != transport) return false;
      left.push_back(each);
      return true;
    });
  }
  for (auto &each : left) (void)paper::wait(each.call, -1, nullptr);
}

class Watch {
 public:
  explicit Watch(int timeout_ms) : timeout_ms_(timeout_ms) {}
  /// -1: for ever.
  int left_ms() const {
    if (timeout_ms_ < 0) return -1;
    const auto gone = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
    return gone.count() >= timeout_ms_ ? 0 : timeout_ms_ - static_cast<int>(gone.count());
  }

 private:
  const int timeout_ms_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

/// NNTI's handles of the transports that are open here, which programs of Trios declare themselves, as `transports`.
/// They may have another variable of that name.
NNTI_transport_t trios_transports[NSSI_RPC_COUNT];
extern "C" __attribute__((weak, alias("trios_transports"))) NNTI_transport_t transports[NSSI_RPC_COUNT];

int nssi_init(const nssi_rpc_transport transport) {
  const int code = paper::init(transport);
  if (code != NSSI_OK) return code;
  trios_transports[transport] = nnti::trios::handle_of_nssi(static_cast<NNTI_transport_id_t>(transport));
  return code;
}

int nssi_fini(const nssi_rpc_transport transport) {
  finish_responseless(transport);
  const int code = paper::fini(transport);
  if (code != NSSI_OK || paper::is_open(transport)) return code;
  trios_transports[transport] = {};
  nnti::trios::close_for_nssi(transport);
  return code;
}

// --- services ---------------------------------------------------------------------------------------------------------

int nssi_get_service(const nssi_rpc_transport transport, const char *url, const int timeout, nssi_service *result) {
  if (result == nullptr) return paper::fail(NSSI_EINVAL, "result is NULL");
  paper::Peer peer;
  if (int code = paper::get_service(transport, url, timeout, peer); code != NSSI_OK) return code;
  NNTI_peer_t host{};
  host.datatype = NNTI_dt_peer;
  host.peer.instance = peer.id;
  std::strncpy(host.url, peer.url.c_str(), sizeof host.url - 1);
  *result = nssi::trios::service_of(transport, host);
  return NSSI_OK;
}

int nssi_get_services(const nssi_rpc_transport transport, const char **url, const int num_servers, const int timeout,
                      nssi_service *result) {
  if (url == nullptr || result == nullptr) return paper::fail(NSSI_EINVAL, "url or result is NULL");
  for (int i = 0; i < num_servers; ++i)
    if (int code = nssi_get_service(transport, url[i], timeout, &result[i]); code != NSSI_OK) return code;
  return NSSI_OK;
}

int nssi_free_service(const nssi_rpc_transport transport, nssi_service *svc) {
  if (svc == nullptr) return paper::fail(NSSI_EINVAL, "svc is NULL");
  return paper::free_service(transport, peer_of(*svc));
}

int nssi_kill(const nssi_service *svc, const int sig, const long timeout) {
  if (svc == nullptr) return paper::fail(NSSI_EINVAL, "svc is NULL");
  return paper::kill(svc->transport_id, peer_of(*svc), sig, timeout);
}

int nssi_trace_reset(const nssi_service *svc, const char *fname, const int ftype, const char *enable,
                     const long timeout) {
  if (svc == nullptr) return paper::fail(NSSI_EINVAL, "svc is NULL");
  return paper::reset_trace(svc->transport_id, peer_of(*svc), fname, ftype, enable, timeout);
}

// --- calls ------------------------------------------------------------------------------------------------------------

int nssi_create_request(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_size,
                        void *result, nssi_request *request) {
  if (svc == nullptr || request == nullptr) return paper::fail(NSSI_EINVAL, "svc or request is NULL");
  *request = nssi_request{};
  request->svc = svc;
  request->opcode = opcode;
  request->args = args;
  request->data = data;
  request->data_size = data_size;
  request->result = result;
  request->sync_timeout = -1;
  return NSSI_OK;
}

int nssi_send_request(nssi_request *request) {
  if (request == nullptr || request->svc == nullptr) return paper::fail(NSSI_EINVAL, "the request was not created");
  if (int code = nssi_lookup_xdr_encoding(request->opcode, nullptr, nullptr, nullptr); code != NSSI_OK) return code;
  if (request->is_responseless) return send_responseless(*request);
  const auto &service = *request->svc;
  paper::Call call;
  const int code = paper::start(service.transport_id, peer_of(service), request->opcode, request->args, request->data,
                                request->data_size, request->result, call);
  if (code != NSSI_OK) return code;
  request->id = call.id;
  request->status = NSSI_PROCESSING_REQUEST;
  int remote_rc = NSSI_OK;
  return request->is_sync ? nssi_timedwait(request, request->sync_timeout, &remote_rc) : static_cast<int>(NSSI_OK);
}

int nssi_call_rpc(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len, void *result,
                  nssi_request *request) {
  const int code = nssi_create_request(svc, opcode, args, data, data_len, result, request);
  return code != NSSI_OK ? code : nssi_send_request(request);
}

int nssi_call_rpc_sync(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len,
                       void *result) {
  nssi_request request;
  if (int code = nssi_call_rpc(svc, opcode, args, data, data_len, result, &request); code != NSSI_OK) return code;
  int remote_rc = NSSI_OK;
  const int code = nssi_wait(&request, &remote_rc);
  return code != NSSI_OK ? code : remote_rc;
}

// --- waiting ----------------------------------------------------------------------------------------------------------

int nssi_wait(nssi_request *request, int *remote_rc) { return nssi_timedwait(request, -1, remote_rc); }

int nssi_timedwait(nssi_request *request, int timeout, int *remote_rc) {
  return look_at(request, remote_rc, [&](paper::Call &call) { return paper::wait(call, timeout, remote_rc); });
}

int nssi_test(nssi_request *request, int *remote_rc) {
  return look_at(request, remote_rc, [&](paper::Call &call) { return paper::test(call, remote_rc); });
}

int nssi_get_status(nssi_request *request, int *status, int *rc) {
  if (request == nullptr || status == nullptr) return paper::fail(NSSI_EINVAL, "request or status is NULL");
  if (request->id != 0) (void)nssi_test(request, rc);
  *status = request->status;
  if (rc != nullptr) *rc = request->error_code;
  return NSSI_OK;
}

int nssi_waitany(nssi_request *req_array, nssi_size req_count, int timeout, int *which, int *remote_rc) {
  if (req_array == nullptr || which == nullptr) return paper::fail(NSSI_EINVAL, "req_array or which is NULL");
  std::vector<paper::Call> calls;
  for (nssi_size i = 0; i < req_count; ++i) calls.push_back(call_of(req_array[i]));
  std::size_t place = req_count;
  const int code = paper::wait_any(calls, timeout, place, remote_rc);
  if (place == req_count) return code;
  *which = static_cast<int>(place);
  return note(req_array[place], calls[place], code);
}

int nssi_waitall(nssi_request *req_array, nssi_size req_count, int timeout) {
  if (req_array == nullptr) return paper::fail(NSSI_EINVAL, "req_array is NULL");
  const Watch watch(timeout);
  int first = NSSI_OK;
  for (nssi_size i = 0; i < req_count; ++i) {
    int remote_rc = NSSI_OK;
    const int code = nssi_timedwait(&req_array[i], watch.left_ms(), &remote_rc);
    if (first == NSSI_OK) first = code != NSSI_OK ? code : remote_rc;
  }
  return first;
}

// --- several services -------------------------------------------------------------------------------------------------

int nssi_multicast_rpc(const nssi_service *svcs, const nssi_size num_svcs, const int opcode, void *args, void *data,
                       nssi_size data_size, void *results, nssi_size result_size, nssi_request *requests) {
  if (svcs == nullptr || requests == nullptr) return paper::fail(NSSI_EINVAL, "svcs or requests is NULL");
  for (nssi_size i = 0; i < num_svcs; ++i) {
    void *result = results != nullptr ? static_cast<char *>(results) + i * result_size : nullptr;
    const int code = nssi_call_rpc(&svcs[i], opcode, args, data, data_size, result, &requests[i]);
    if (code == NSSI_OK) continue;
    (void)nssi_waitall(requests, i, -1);  // so that nothing is lent any more
    return code;
  }
  return NSSI_OK;
}

int nssi_multicast_rpc_sync(const nssi_service *svcs, const nssi_size num_svcs, const int opcode, void *args,
                            void *data, nssi_size data_size, void *results, nssi_size result_size) {
  std::vector<nssi_request> requests(num_svcs + 1);
  const int code =
      nssi_multicast_rpc(svcs, num_svcs, opcode, args, data, data_size, results, result_size, requests.data());
  return code != NSSI_OK ? code : nssi_waitall(requests.data(), num_svcs, -1);
}

// --- atomic variables -------------------------------------------------------------------------------------------------

int nssi_atomic_increment(const nssi_service *svc, const uint64_t remote_atomic, const uint64_t local_atomic) {
  if (svc == nullptr) return paper::fail(NSSI_EINVAL, "svc is NULL");
  return paper::fetch_add(svc->transport_id, peer_of(*svc), remote_atomic, local_atomic, 1);
}

int nssi_atomic_decrement(const nssi_service *svc, const uint64_t remote_atomic, const uint64_t local_atomic) {
  if (svc == nullptr) return paper::fail(NSSI_EINVAL, "svc is NULL");
  return paper::fetch_add(svc->transport_id, peer_of(*svc), remote_atomic, local_atomic, -1);
}

int nssi_atomic_read(const nssi_service *svc, const uint64_t local_atomic, int64_t *value) {
  if (svc == nullptr || value == nullptr) return paper::fail(NSSI_EINVAL, "svc or value is NULL");
  return paper::read_variable(svc->transport_id, local_atomic, *value);
}
