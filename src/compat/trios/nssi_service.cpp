// SPDX-License-Identifier: BSD-3-Clause
// Trios_nssi_server.h, on the paper's interface.
#include <compat/trios/nssi_service.hpp>

#include <compat/trios/nssi_handover.hpp>

#include <Trios_timer.h>
#include <Trios_trace.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>
#include <utility>

namespace {

namespace paper = nssi::trios::paper;
using nssi::trios::Process;
using Time = std::chrono::steady_clock;

std::mutex mutex;
std::map<int, nssi_svc_op> operations;
std::map<unsigned long, Time::time_point> begun;  ///< of stubs that run
unsigned long ended = 0;                          ///< stubs
std::array<std::atomic<bool>, NSSI_RPC_COUNT> serving;
/// How many requests are left to the service of a transport; less than 0: it counts none.
std::array<std::atomic<int>, NSSI_RPC_COUNT> requests_left;

/// Of the service that is started with a function of the program's.
std::atomic<Process> process{nullptr};
std::atomic<nssi_service *> processed{nullptr};

class Running {
 public:
  explicit Running(unsigned long id) : id_(id) {
    std::lock_guard lock(mutex);
    begun[id_] = Time::now();
  }
  ~Running() {
    std::lock_guard lock(mutex);
    begun.erase(id_);
    ++ended;
  }
  Running(const Running &) = delete;

 private:
  unsigned long id_;
};

/// Trios' groups for what a service does.
std::atomic<int> counters{-1}, intervals{-1};

void register_groups() {
  int group = -1;
  if (trace_register_group("rpc-counter", &group) == 0) counters = group;
  if (trace_register_group("rpc-interval", &group) == 0) intervals = group;
}

/// Counts a stub and measures it, by its operation, if the groups are traced. What runs at once is told apart by the
/// request's number.
class Traced {
 public:
  explicit Traced(const paper::Incoming &request) : opcode_(request.opcode), request_(static_cast<int>(request.id)) {
    if (tracing_enabled(counters)) (void)trace_inc_count(counters, opcode_, request_, "");
    is_measured_ = tracing_enabled(intervals) && trace_start_interval(intervals, request_);
  }
  ~Traced() {
    if (is_measured_) (void)trace_end_interval(intervals, opcode_, request_, "");
  }
  Traced(const Traced &) = delete;

 private:
  const int opcode_, request_;
  bool is_measured_ = false;
};

/// No stub runs, and none has ended since `seen` was what it becomes now.
bool is_idle_since(unsigned long &seen) {
  std::lock_guard lock(mutex);
  return std::exchange(seen, ended) == ended && begun.empty();
}

/// Calls of the program's callback, if it has one.
paper::Ticks ticks_of(const nssi_service &service) {
  constexpr std::uint64_t kShortestMs = 100, kLongestMs = INT_MAX;
  if (service.progress_callback == 0) return {};
  const auto callback = reinterpret_cast<void (*)(bool is_idle)>(service.progress_callback);
  unsigned long seen = 0;
  (void)is_idle_since(seen);
  const auto every = std::clamp(service.progress_callback_timeout, kShortestMs, kLongestMs);
  return {std::chrono::milliseconds(every), [callback, seen]() mutable { callback(is_idle_since(seen)); }};
}

/// Who calls, as stubs see it. Clients need not listen: what stands for a URL names the caller, and no place.
NNTI_peer_t caller_of(const paper::Incoming &request) {
  NNTI_peer_t caller{};
  caller.datatype = NNTI_dt_peer;
  caller.peer.transport_id = static_cast<NNTI_transport_id_t>(request.transport);
  caller.peer.instance = request.peer;
  auto *end = fmt::format_to(caller.url, "client:");
  for (const auto byte : request.caller) end = fmt::format_to(end, "{:02x}", static_cast<unsigned>(byte));
  return caller;
}

/// What stands for the caller's memory. Its address is not told.
NNTI_buffer_t buffer_of(const paper::Incoming &request, const NNTI_peer_t &caller, NNTI_remote_addr_t &segment) {
  NNTI_buffer_t buffer{};
  buffer.datatype = NNTI_dt_buffer;
  buffer.transport_id = segment.transport_id = caller.peer.transport_id;
  buffer.buffer_owner = caller;
  if (segment.size != 0) buffer.buffer_segments = {1, &segment};
  buffer.payload_size = segment.size;
  buffer.num_elements = 1;
  buffer.transport_private = request.id;
  return buffer;
}

nssi_svc_op find_op(int opcode) {
  std::lock_guard lock(mutex);
  return operations.at(opcode);
}

/// Calls the stub of the request's operation, in any thread. Returns what it returns.
int call_stub(const paper::Incoming &request) {
  const auto op = find_op(request.opcode);
  const auto caller = caller_of(request);
  NNTI_remote_addr_t data_segment{}, result_segment{};
  data_segment.size = request.data_bytes;
  result_segment.size = NSSI_SHORT_RESULT_SIZE;
  const auto data = buffer_of(request, caller, data_segment);
  const auto result = buffer_of(request, caller, result_segment);
  return op.func != nullptr ? op.func(request.id, &caller, request.args, &data, &result)
                            : op.obj->doRPC(request.opcode, request.id, &caller, request.args, &data, &result);
}

/// A request as the program sees it.
std::unique_ptr<nssi_svc_rpc_request> describe(const paper::Incoming &request) {
  auto made = std::make_unique<nssi_svc_rpc_request>();
  made->svc = processed;
  made->caller = caller_of(request);
  made->id = request.id;
  made->arrival_time = trios_get_time();
  return made;
}

/// The service of that transport has served one more.
void count_request(int transport) {
  auto &left = requests_left[static_cast<std::size_t>(transport)];
  if (left.load() > 0 && --left == 0) paper::stop_service(transport);
}

int run_stub(const paper::Incoming &request) {
  const Running running(request.id);
  const Traced traced(request);
  const Process handing_over = process;
  const int rc =
      handing_over != nullptr ? nssi::trios::hand_over(describe(request), handing_over, request) : call_stub(request);
  count_request(request.transport);
  return rc;
}

bool is_transport(int transport) { return transport > NSSI_RPC_NULL && transport < NSSI_RPC_COUNT; }

}  // namespace

namespace nssi::trios {

NNTI_remote_addr_t no_memory{};

nssi_service service_of(nssi_rpc_transport transport, const NNTI_peer_t &host) {
  nssi_service service{};
  service.transport_id = transport;
  service.svc_host = host;
  service.req_size = NSSI_SHORT_REQUEST_SIZE;
  service.res_size = NSSI_SHORT_RESULT_SIZE;
  service.req_addr.datatype = NNTI_dt_buffer;
  service.req_addr.buffer_owner = host;
  service.req_addr.buffer_segments = {1, &no_memory};
  service.req_addr.payload_size = NSSI_SHORT_REQUEST_SIZE;
  service.max_reqs = -1;
  return service;
}

}  // namespace nssi::trios

int nssi_service_init(const nssi_rpc_transport transport, const int, nssi_service *service) {
  if (service == nullptr) return paper::fail(NSSI_EINVAL, "service is NULL");
  NNTI_peer_t host{};
  host.datatype = NNTI_dt_peer;
  if (int code = paper::get_url(transport, host.url, sizeof host.url); code != NSSI_OK) return code;
  *service = nssi::trios::service_of(transport, host);
  register_groups();
  return NSSI_OK;
}

int nssi_service_add_op(const nssi_service *, const nssi_svc_op *op) {
  if (op == nullptr || (op->func == nullptr) == (op->obj == nullptr))
    return paper::fail(NSSI_EINVAL, "an operation needs a function, or an object");
  const int code =
      paper::add_op(op->opcode, run_stub, op->sizeof_args, op->decode_args, op->sizeof_res, op->encode_res);
  if (code != NSSI_OK) return code;
  std::lock_guard lock(mutex);
  operations[op->opcode] = *op;
  return NSSI_OK;
}

int trios_register_server_stub(int opcode, nssi_rpc_proc func, NssiRpc *obj, size_t sizeof_args, xdrproc_t decode_args,
                               size_t sizeof_res, xdrproc_t encode_res) {
  const nssi_svc_op op{
      opcode,    func, obj, static_cast<uint32_t>(sizeof_args), decode_args, static_cast<uint32_t>(sizeof_res),
      encode_res};
  return nssi_service_add_op(nullptr, &op);
}

int nssi_service_start(nssi_service *service) { return nssi_service_start_wfn(service, nullptr); }

int nssi_service_start_wfn(nssi_service *service, int (*process_req)(nssi_svc_rpc_request *req)) {
  if (service == nullptr || !is_transport(service->transport_id))
    return paper::fail(NSSI_EINVAL, "the service was not initialised");
  if (service->max_reqs == 0) return NSSI_OK;
  const auto index = static_cast<std::size_t>(service->transport_id);
  requests_left[index] = service->max_reqs;
  processed = service;
  process = process_req;
  serving[index] = true;
  const int code = paper::start_service(service->transport_id, ticks_of(*service));
  serving[index] = false;
  return code;
}

int nssi_process_rpc_request(nssi_svc_rpc_request *request) { return nssi::trios::run_handed(request, call_stub); }

int nssi_service_fini(const nssi_service *) {
  paper::forget_ops();
  std::lock_guard lock(mutex);
  operations.clear();
  return NSSI_OK;
}

void nssi_service_abort(void) {
  for (int transport = 0; transport < NSSI_RPC_COUNT; ++transport)
    if (serving[static_cast<std::size_t>(transport)]) paper::stop_service(transport);
}

// --- within a stub ----------------------------------------------------------------------------------------------------

int nssi_get_data(const NNTI_peer_t *, void *buf, const nssi_size len, const NNTI_buffer_t *data_addr) {
  if (data_addr == nullptr) return paper::fail(NSSI_EINVAL, "data_addr is NULL");
  const auto id = data_addr->transport_private;
  return nssi::trios::on_its_thread(id, [&] { return paper::get_data(id, buf, len); });
}

int nssi_put_data(const NNTI_peer_t *, const void *buf, const nssi_size len, const NNTI_buffer_t *data_addr,
                  const long timeout) {
  if (data_addr == nullptr) return paper::fail(NSSI_EINVAL, "data_addr is NULL");
  const auto id = data_addr->transport_private;
  return nssi::trios::on_its_thread(id, [&] { return paper::put_data(id, buf, len, timeout); });
}

int nssi_send_result(const NNTI_peer_t *, unsigned long request_id, const int rc, void *result, const NNTI_buffer_t *) {
  return nssi::trios::on_its_thread(request_id, [&] { return paper::send_result(request_id, rc, result); });
}

double nssi_get_request_age(const NNTI_peer_t *, const int req_id) {
  std::lock_guard lock(mutex);
  const auto it = begun.find(static_cast<unsigned long>(req_id));
  if (it == begun.end()) return -1;
  return std::chrono::duration<double>(Time::now() - it->second).count();
}
