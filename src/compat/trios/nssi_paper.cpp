// SPDX-License-Identifier: BSD-3-Clause
#include <compat/trios/nssi_paper.hpp>

#include <compat/trios/nssi_standard.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

namespace nssi::trios::paper {
namespace {

int to_paper(int code) {
  switch (code) {
#define NSSI_TO_PAPER(name, number, number_in_trios) \
  case number_in_trios: return number;
    NESSIE_RESULTS(NSSI_TO_PAPER, NESSIE_NO_RESULT)
#undef NSSI_TO_PAPER
    default: return code;
  }
}

nssi_service service_of(int transport, std::uint64_t peer) {
  nssi_service service{};
  service.transport_id = transport_id(transport);
  service.svc_host.peer.local_id = peer;
  return service;
}

nssi_request request_of(const Call &call) {
  return {
      call.id,    call.opcode, to_paper(call.error_code), call.remote_rc, static_cast<nssi_request_status>(call.status),
      call.result};
}

/// What became of the call; `code` is what the wait returned.
int take(Call &call, const nssi_request &request, int code, int *remote_rc) {
  const bool is_over = call.id != 0 && request.id == 0;
  call.id = request.id;
  call.error_code = to_trios(request.error_code);
  call.remote_rc = request.error_code == NSSI_OK ? request.remote_rc : call.error_code;
  call.status = request.status;
  if (remote_rc != nullptr && (is_over || request.id == 0)) *remote_rc = call.remote_rc;
  return to_trios(code);
}

NNTI_buffer_t data_of(unsigned long request) {
  NNTI_buffer_t buffer{};
  buffer.buffer_addr.id = request;
  return buffer;
}

Stub the_stub = nullptr;                                                   ///< of every operation
std::array<std::atomic<const Runtime *>, NNTI_TRANSPORT_COUNT> serving{};  ///< by transport

int transport_of(const Runtime *runtime) {
  const auto place = std::find(serving.begin(), serving.end(), runtime);
  return place != serving.end() ? static_cast<int>(place - serving.begin()) : 0;
}

int run_stub(const unsigned long id, const NNTI_peer_t *caller, const void *args, const NNTI_buffer_t *data,
             const NNTI_buffer_t *) {
  const auto running = c_api::running_stub(id);
  if (!running) return NSSI_EINVAL;
  Incoming incoming{id,  transport_of(running->runtime), running->opcode, caller->peer.local_id, data->payload_size, {},
                    args};
  std::ranges::copy(running->request->caller_identity(), incoming.caller.begin());
  return the_stub(incoming);
}

/// Does the ticks of a service while it serves, in a fiber of its runtime: on the thread that serves.
class Ticking {
 public:
  Ticking(int transport, const Ticks &ticks) {
    if (!ticks.tick) return;
    runtime_ = c_api::runtime_of(transport_id(transport));
    if (!runtime_) return;
    end_ = std::make_shared<Event>(*runtime_);
    runtime_->spawn([end = end_, ticks] {
      while (end->wait(Deadline::in(ticks.every)).code() == Code::kTimedOut) ticks.tick();
    });
  }
  ~Ticking() {
    if (end_) end_->set();
  }
  Ticking(const Ticking &) = delete;

 private:
  std::shared_ptr<Runtime> runtime_;  // outlives the event
  std::shared_ptr<Event> end_;
};

}  // namespace

int to_trios(int code) {
  // NOLINTBEGIN(bugprone-branch-clone): Trios has one number for several of ours
  switch (code) {
#define NSSI_TO_TRIOS(name, number, number_in_trios) \
  case number: return number_in_trios;
    NESSIE_RESULTS(NSSI_TO_TRIOS, NSSI_TO_TRIOS)
#undef NSSI_TO_TRIOS
    default: return code;
  }
  // NOLINTEND(bugprone-branch-clone)
}

const char *last_error() { return nssi_last_error(); }
const char *name_of(int code) { return nssi_err_str(to_paper(code)); }
int fail(int code, const char *sentence) { return c_api::fail(code, sentence); }

int init(int transport) {
  const int code = to_trios(nssi_init(transport_id(transport)));
  const auto runtime = code == NSSI_OK ? c_api::runtime_of(transport_id(transport)) : nullptr;
  if (!runtime) return code;
  add_fetch_add(transport, *runtime);
  add_reset_trace(*runtime);
  return code;
}
int fini(int transport) { return to_trios(nssi_fini(transport_id(transport))); }
int get_url(int transport, char *url, std::uint32_t most) {
  return to_trios(nssi_get_url(transport_id(transport), url, most));
}

bool is_open(int transport) { return c_api::runtime_of(transport_id(transport)) != nullptr; }

// --- clients ----------------------------------------------------------------------------------------------------------

int get_service(int transport, const char *url, int timeout_ms, Peer &peer) {
  nssi_service service{};
  const int code = nssi_get_service(transport_id(transport), url, timeout_ms, &service);
  if (code == NSSI_OK) peer = {service.svc_host.peer.local_id, url};
  return to_trios(code);
}

int free_service(int transport, std::uint64_t peer) {
  auto service = service_of(transport, peer);
  return to_trios(nssi_free_service(transport_id(transport), &service));
}

int kill(int transport, std::uint64_t peer, int signal, long timeout_ms) {
  const auto service = service_of(transport, peer);
  return to_trios(nssi_kill(&service, signal, timeout_ms));
}

int register_encoding(int opcode, xdrproc_t args, xdrproc_t result) {
  return to_trios(nssi_register_xdr_encoding(opcode, args, nullptr, result));
}

int start(int transport, std::uint64_t peer, int opcode, void *args, void *data, std::uint64_t size_bytes, void *result,
          Call &call) {
  const auto service = service_of(transport, peer);
  nssi_request request{};
  const int code = nssi_call_rpc(&service, opcode, args, data, size_bytes, result, &request);
  if (code == NSSI_OK) call = {request.id, opcode, 0, 0, request.status, result};
  return to_trios(code);
}

int wait(Call &call, int timeout_ms, int *remote_rc) {
  auto request = request_of(call);
  const int code = nssi_timedwait(&request, timeout_ms, nullptr);
  return take(call, request, code, remote_rc);
}

int test(Call &call, int *remote_rc) {
  auto request = request_of(call);
  const int code = nssi_test(&request, nullptr);
  return take(call, request, code, remote_rc);
}

int wait_any(std::span<Call> calls, int timeout_ms, std::size_t &which, int *remote_rc) {
  std::vector<nssi_request> requests;
  for (auto &call : calls) requests.push_back(request_of(call));
  int place = -1;
  const int code = nssi_waitany(requests.data(), requests.size(), timeout_ms, &place, nullptr);
  if (place < 0) return to_trios(code);
  which = static_cast<std::size_t>(place);
  return take(calls[which], requests[which], code, remote_rc);
}

// --- servers ----------------------------------------------------------------------------------------------------------

int add_op(int opcode, Stub stub, std::size_t sizeof_args, xdrproc_t decode_args, std::size_t sizeof_res,
           xdrproc_t encode_res) {
  the_stub = stub;
  const nssi_svc_op op{opcode, run_stub, sizeof_args, decode_args, sizeof_res, encode_res};
  return to_trios(nssi_service_add_op(nullptr, &op));
}

int start_service(int transport, const Ticks &ticks) {
  const Ticking ticking(transport, ticks);
  const auto *runtime = c_api::runtime_of(transport_id(transport)).get();
  serving[static_cast<std::size_t>(transport_of(runtime))] = nullptr;  // of one that is closed, at the same address
  serving[static_cast<std::size_t>(transport)] = runtime;
  auto service = service_of(transport, 0);
  return to_trios(nssi_service_start(&service));
}

void stop_service(int transport) {
  if (auto runtime = c_api::runtime_of(transport_id(transport))) runtime->stop();
}

void forget_ops() { (void)nssi_service_fini(nullptr); }

int get_data(unsigned long request, void *to, std::uint64_t size_bytes) {
  const auto data = data_of(request);
  return to_trios(nssi_get_data(nullptr, to, size_bytes, &data));
}

int put_data(unsigned long request, const void *from, std::uint64_t size_bytes, long timeout_ms) {
  const auto data = data_of(request);
  return to_trios(nssi_put_data(nullptr, from, size_bytes, &data, timeout_ms));
}

int send_result(unsigned long request, int rc, void *result) {
  return to_trios(nssi_send_result(nullptr, request, rc, result, nullptr));
}

bool is_mine(unsigned long request) { return c_api::running_stub(request).has_value(); }

bool adopt(unsigned long request) { return c_api::adopt_request(request); }

struct Signal::Impl {
  Runtime &runtime;
  std::unique_ptr<Event> event = std::make_unique<Event>(runtime);
};

Signal::Signal(unsigned long request) : impl_(new Impl{*c_api::running_stub(request)->runtime}) {}
Signal::~Signal() = default;
void Signal::renew() { impl_->event = std::make_unique<Event>(impl_->runtime); }
void Signal::set() { impl_->event->set(); }
bool Signal::in_user_level_thread() const { return impl_->runtime.in_fiber(); }
bool Signal::wait() { return impl_->event->wait().ok(); }

}  // namespace nssi::trios::paper
