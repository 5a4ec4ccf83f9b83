// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/api.hpp>

#include <nnti/c/handles.hpp>
#include <xdr/codec.hpp>

#include <algorithm>
#include <climits>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace nssi::c_api {
namespace {

struct Encoding {
  xdrproc_t args, result;
};

/// A call in progress; named by nssi_request's id, which may be copied or forged.
struct PendingCall {
  std::shared_ptr<Runtime> runtime;  // outlives the rest
  nnti::RegisteredBuffer data;
  Call call;
  xdrproc_t decode_result = nullptr;

  ~PendingCall() {
    call = Call();  // before the buffer that it lends
    if (data.valid()) runtime->unregister_memory(std::move(data));
  }
};

std::mutex mutex;
std::unordered_map<int, Encoding> encodings;
std::unordered_map<nssi_size, std::shared_ptr<PendingCall>> pending;
nssi_size last_id = 0;

std::optional<Encoding> find_encoding(int opcode) {
  std::lock_guard lock(mutex);
  auto it = encodings.find(opcode);
  return it == encodings.end() ? std::nullopt : std::optional(it->second);
}

std::shared_ptr<PendingCall> find_pending(nssi_size id) {
  std::lock_guard lock(mutex);
  auto it = pending.find(id);
  return it == pending.end() ? nullptr : it->second;
}

Deadline deadline_of(long timeout_ms) {
  return Deadline::from_ms(static_cast<int>(std::clamp<long>(timeout_ms, -1, INT_MAX)));
}

/// What came back: the stub's code, then the result. Returns the call's own code.
int take_answer(PendingCall &call, nssi_request &request) {
  const auto bytes = call.call.view();
  auto rc = xdr::decode<std::int32_t>(bytes.first(std::min<std::size_t>(bytes.size(), 4)));
  if (!rc.ok()) return fail(rc.error());
  request.remote_rc = *rc;
  if (*rc != NSSI_OK || request.result == nullptr) return NSSI_OK;
  if (xdr_decode(call.decode_result, bytes.subspan(4), request.result)) return NSSI_OK;
  return fail(NSSI_EDECODE, "the result is not of the type that the client registered");
}

int finish(PendingCall &call, nssi_request &request, const Status &status) {
  request.error_code = status.ok() ? take_answer(call, request) : fail(status.error());
  if (request.error_code != NSSI_OK) request.remote_rc = request.error_code;
  request.status = request.error_code == NSSI_OK          ? NSSI_REQUEST_COMPLETE
                   : request.error_code == NSSI_ETIMEDOUT ? NSSI_REQUEST_TIMEDOUT
                                                          : NSSI_REQUEST_ERROR;
  std::shared_ptr<PendingCall> over;
  std::lock_guard lock(mutex);
  if (auto it = pending.find(request.id); it != pending.end()) {
    over = std::move(it->second);  // destroyed after the lock is
    pending.erase(it);
  }
  request.id = 0;
  return request.error_code;
}

int wait_until(nssi_request &request, Deadline deadline, int *remote_rc) {
  int code = request.error_code;
  if (request.id != 0) {
    auto call = find_pending(request.id);
    if (!call) return fail(NSSI_EINVAL, "the request is not in progress");
    auto status = call->call.wait(deadline);
    if (status.code() == Code::kTimedOut && !call->call.test()) return fail(status.error());
    code = finish(*call, request, status);
  } else if (request.status == NSSI_REQUEST_NULL) {
    return fail(NSSI_EINVAL, "the request was never sent");
  }
  if (remote_rc != nullptr) *remote_rc = request.remote_rc;
  return code;
}

nssi::Service service_of(const nssi_service &service) { return {nnti::peer_from_c(service.svc_host), kInterface, 0}; }

Result<nnti::RegisteredBuffer> lend(Runtime &runtime, void *data, nssi_size size_bytes) {
  return runtime.register_memory({static_cast<std::byte *>(data), size_bytes}, nnti::Rights::kReadWrite);
}

}  // namespace

void forget_calls(const Runtime &runtime) {
  std::vector<std::shared_ptr<PendingCall>> over;
  std::lock_guard lock(mutex);
  for (auto it = pending.begin(); it != pending.end();) {
    const bool its = it->second->runtime.get() == &runtime;
    if (its) over.push_back(std::move(it->second));
    it = its ? pending.erase(it) : std::next(it);
  }
}

}  // namespace nssi::c_api

using namespace nssi::c_api;

int nssi_register_xdr_encoding(int opcode, xdrproc_t encode_args, xdrproc_t, xdrproc_t encode_result) {
  return guarded([&]() -> int {
    if (encode_args == nullptr || encode_result == nullptr)
      return fail(NSSI_EINVAL, "an encoding is NULL; use xdr_void");
    std::lock_guard lock(mutex);
    encodings[opcode] = {encode_args, encode_result};
    return NSSI_OK;
  });
}

int nssi_get_service(const nssi_rpc_transport transport, const char *url, const int timeout, nssi_service *result) {
  return guarded([&]() -> int {
    if (url == nullptr || result == nullptr) return fail(NSSI_EINVAL, "url or result is NULL");
    auto runtime = runtime_of(transport);
    if (!runtime) return NSSI_ENOTINIT;
    auto peer = runtime->connect(url, deadline_of(timeout));
    if (!peer.ok()) return fail(peer.error());
    *result = {transport, NSSI_DEFAULT_ENCODE, nnti::peer_to_c(*peer, url)};
    return NSSI_OK;
  });
}

int nssi_free_service(const nssi_rpc_transport transport, nssi_service *svc) {
  return guarded([&]() -> int {
    if (svc == nullptr) return fail(NSSI_EINVAL, "svc is NULL");
    auto runtime = runtime_of(transport);
    if (!runtime) return NSSI_ENOTINIT;
    runtime->disconnect(nnti::peer_from_c(svc->svc_host));
    return NSSI_OK;
  });
}

int nssi_call_rpc(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len, void *result,
                  nssi_request *request) {
  return guarded([&]() -> int {
    if (svc == nullptr || request == nullptr) return fail(NSSI_EINVAL, "svc or request is NULL");
    auto runtime = runtime_of(svc->transport_id);
    if (!runtime) return NSSI_ENOTINIT;
    auto encoding = find_encoding(opcode);
    if (!encoding) return fail(NSSI_ENOENT, "no encoding is registered for this operation: NSSI_REGISTER_CLIENT_STUB");
    auto bytes = xdr_encode(encoding->args, args);
    if (!bytes) return fail(NSSI_EENCODE, "the arguments cannot be encoded");
    auto call = std::make_shared<PendingCall>();
    call->runtime = runtime;
    call->decode_result = encoding->result;
    nssi::CallOptions options;
    if (data != nullptr && data_len != 0) {
      auto buffer = lend(*runtime, data, data_len);
      if (!buffer.ok()) return fail(buffer.error());
      call->data = *std::move(buffer);
      options.data = &call->data;
    }
    call->call = runtime->call(service_of(*svc), static_cast<nssi::OpCode>(opcode), *bytes, options);
    std::lock_guard lock(mutex);
    pending.emplace(++last_id, std::move(call));
    *request = {last_id, opcode, NSSI_OK, NSSI_OK, NSSI_PROCESSING_REQUEST, result};
    return NSSI_OK;
  });
}

int nssi_call_rpc_sync(const nssi_service *svc, const int opcode, void *args, void *data, nssi_size data_len,
                       void *result) {
  return guarded([&]() -> int {
    nssi_request request;
    if (int rc = nssi_call_rpc(svc, opcode, args, data, data_len, result, &request); rc != NSSI_OK) return rc;
    int remote_rc = NSSI_OK;
    int rc = nssi_wait(&request, &remote_rc);
    return rc != NSSI_OK ? rc : remote_rc;
  });
}

int nssi_wait(nssi_request *request, int *remote_rc) { return nssi_timedwait(request, -1, remote_rc); }

int nssi_timedwait(nssi_request *request, int timeout, int *remote_rc) {
  return guarded([&]() -> int {
    if (request == nullptr) return fail(NSSI_EINVAL, "request is NULL");
    return wait_until(*request, deadline_of(timeout), remote_rc);
  });
}

int nssi_test(nssi_request *request, int *remote_rc) {
  return guarded([&]() -> int {
    if (request == nullptr) return fail(NSSI_EINVAL, "request is NULL");
    if (auto call = find_pending(request->id); call && !call->call.test()) return NSSI_EWOULDBLOCK;
    return wait_until(*request, nssi::Deadline::now(), remote_rc);
  });
}

int nssi_waitany(nssi_request *requests, nssi_size count, int timeout, int *which, int *remote_rc) {
  return guarded([&]() -> int {
    if (requests == nullptr || which == nullptr) return fail(NSSI_EINVAL, "requests or which is NULL");
    std::vector<std::shared_ptr<PendingCall>> pending(count);
    std::vector<nssi::Call *> calls(count);
    for (nssi_size i = 0; i < count; ++i) {
      if (requests[i].id == 0) continue;
      pending[i] = find_pending(requests[i].id);
      if (!pending[i]) return fail(NSSI_EINVAL, "a request of the array is not in progress");
      calls[i] = &pending[i]->call;
    }
    if (std::ranges::all_of(calls, [](const auto *call) { return call == nullptr; }))
      return fail(NSSI_ENOENT, "no request of the array is in progress");
    const auto place = nssi::wait_any(calls, deadline_of(timeout));
    if (!place.ok()) return fail(place.error());
    *which = static_cast<int>(*place);
    return wait_until(requests[*place], nssi::Deadline::now(), remote_rc);
  });
}

int nssi_waitall(nssi_request *requests, nssi_size count, int timeout) {
  return guarded([&]() -> int {
    if (requests == nullptr) return fail(NSSI_EINVAL, "requests is NULL");
    const auto deadline = deadline_of(timeout);
    int first = NSSI_OK;
    for (nssi_size i = 0; i < count; ++i) {
      int remote_rc = NSSI_OK;
      int rc = wait_until(requests[i], deadline, &remote_rc);
      if (first == NSSI_OK) first = rc != NSSI_OK ? rc : remote_rc;
    }
    return first;
  });
}

int nssi_kill(const nssi_service *svc, const int sig, const long timeout) {
  return guarded([&]() -> int {
    if (svc == nullptr) return fail(NSSI_EINVAL, "svc is NULL");
    auto runtime = runtime_of(svc->transport_id);
    if (!runtime) return NSSI_ENOTINIT;
    nssi::CallOptions options;
    if (timeout >= 0) options.deadline = deadline_of(timeout);
    auto call = runtime->call(service_of(*svc), kKillOp, xdr::encode(std::int32_t{sig}), options);
    auto status = call.wait();
    return status.ok() ? NSSI_OK : fail(status.error());
  });
}
