// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/api.hpp>

#include <nnti/c/handles.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

namespace nssi::c_api {
namespace {

/// A request whose stub is running, by the id that the stub gets.
struct ActiveRequest {
  Request &request;
  Runtime &runtime;
  xdrproc_t encode_result;
  const void *fiber;  ///< that runs the stub
};

/// A runtime's service. What was offered once stays offered; what it does is looked up: a service that is started again
/// may have other stubs for the same codes, or none.
struct Served {
  std::set<int> offered;
  std::map<int, nssi_svc_op> operations;  ///< since it was started last
  int killed_with = NSSI_OK;
};

/// How long the requests that were accepted may take when the service is killed.
constexpr std::chrono::seconds kFinish{10};

std::mutex mutex;
std::map<int, nssi_svc_op> operations;
std::map<unsigned long, ActiveRequest *> active;
std::map<const Runtime *, Served> served;
std::atomic<unsigned long> last_request{0};

/// Only for the stub that runs: nobody else may use its request.
ActiveRequest *find_active(unsigned long id) {
  std::lock_guard lock(mutex);
  auto it = active.find(id);
  return it != active.end() && it->second->runtime.current_fiber() == it->second->fiber ? it->second : nullptr;
}

class Activation {
 public:
  Activation(unsigned long id, ActiveRequest &request) : id_(id) {
    std::lock_guard lock(mutex);
    active[id_] = &request;
  }
  ~Activation() {
    std::lock_guard lock(mutex);
    active.erase(id_);
  }
  Activation(const Activation &) = delete;

 private:
  unsigned long id_;
};

/// Zeroed memory for a stub's arguments, and what their decoding allocated.
class Arguments {
 public:
  explicit Arguments(const nssi_svc_op &op) : op_(op), memory_(op.sizeof_args + 1) {}
  ~Arguments() { ::xdr_free(op_.decode_args, memory_.data()); }
  Arguments(const Arguments &) = delete;
  bool decode(std::span<const std::byte> bytes) { return xdr_decode(op_.decode_args, bytes, memory_.data()); }
  const void *get() const { return memory_.data(); }

 private:
  const nssi_svc_op &op_;
  std::vector<std::byte>
      memory_;  // the padding of larger elements is not zeroed; allocated, it is aligned for all types
};

NNTI_buffer_t handle_of(const Request &request, const NNTI_peer_t &caller, unsigned long id) {
  nnti::RemoteBuffer data;
  data.size_bytes = request.data_bytes();
  auto handle = nnti::buffer_to_c(data, caller);
  handle.buffer_addr.id = id;
  return handle;
}

Status answer(Request &request, int rc, const Bytes *result) {
  Bytes none(4);
  const Bytes code = xdr::encode(std::int32_t{rc});
  Bytes bytes = result != nullptr ? *result : none;
  std::copy(code.begin(), code.end(), bytes.begin());
  return request.reply(bytes);
}

std::optional<nssi_svc_op> find_op(const Runtime &runtime, int opcode) {
  std::lock_guard lock(mutex);
  const auto service = served.find(&runtime);
  if (service == served.end()) return std::nullopt;
  const auto found = service->second.operations.find(opcode);
  return found != service->second.operations.end() ? std::optional(found->second) : std::nullopt;
}

void run_stub(Runtime &runtime, Request &request) {
  const auto opcode = static_cast<int>(request.op());
  const auto found = find_op(runtime, opcode);
  if (!found)
    return (void)request.reply_error(
        {Code::kNotFound, fmt::format("the service was started anew, without operation {}", opcode)});
  const auto &op = *found;
  Arguments args(op);
  if (!args.decode(request.args()))
    return (void)request.reply_error(
        {Code::kBadMessage, "the arguments are not of the type that the service registered"});
  const auto id = ++last_request;
  ActiveRequest current{request, runtime, op.encode_res, runtime.current_fiber()};
  Activation activation(id, current);
  const auto caller = nnti::peer_to_c(request.caller(), {});
  const auto data = handle_of(request, caller, id);
  const auto result = handle_of(request, caller, id);
  const int rc = op.func(id, &caller, args.get(), &data, &result);
  if (rc != NSSI_OK) (void)answer(request, rc, nullptr);  // unless it has answered
}

/// Offers the operations that the runtime does not offer yet.
Status offer(Runtime &runtime, const std::map<int, nssi_svc_op> &wanted, std::set<int> &offered) {
  for (const auto &[opcode, op] : wanted) {
    if (offered.contains(opcode)) continue;
    auto status =
        runtime.add_operation({kInterface, 0, static_cast<OpCode>(opcode), fmt::format("op{}", opcode),
                               HandlerKind::kFiber, [&runtime](Request &request) { run_stub(runtime, request); }});
    if (!status.ok()) return status;
    offered.insert(opcode);
  }
  return {};
}

/// The operations that are registered now are the service's.
Status begin_service(Runtime &runtime) {
  std::unique_lock lock(mutex);
  auto wanted = operations;
  auto offered = served[&runtime].offered;
  lock.unlock();
  auto status = offer(runtime, wanted, offered);
  lock.lock();
  auto &service = served[&runtime];
  service.offered = std::move(offered);
  service.killed_with = NSSI_OK;
  if (status.ok()) service.operations = std::move(wanted);
  return status;
}

/// What it was killed with.
int end_service(const Runtime &runtime) {
  std::lock_guard lock(mutex);
  const auto service = served.find(&runtime);
  return service != served.end() ? service->second.killed_with : NSSI_OK;
}

int transfer(const NNTI_buffer_t *data_addr, const std::function<Status(Request &)> &move) {
  if (data_addr == nullptr) return fail(NSSI_EINVAL, "data_addr is NULL");
  auto *current = find_active(data_addr->buffer_addr.id);
  if (current == nullptr) return fail(NSSI_EINVAL, "data can be moved only within the stub of its request");
  auto status = move(current->request);
  return status.ok() ? NSSI_OK : fail(status.error());
}

}  // namespace

std::optional<RunningStub> running_stub(unsigned long request_id) {
  auto *current = find_active(request_id);
  if (current == nullptr) return std::nullopt;
  return RunningStub{static_cast<int>(current->request.op()), &current->runtime, &current->request};
}

bool adopt_request(unsigned long request_id) {
  std::lock_guard lock(mutex);
  const auto it = active.find(request_id);
  const auto *fiber = it != active.end() ? it->second->runtime.current_fiber() : nullptr;
  if (fiber != nullptr) it->second->fiber = fiber;
  return fiber != nullptr;
}

void add_kill(Runtime &runtime) {
  Handler kill = [&runtime](Request &request) {
    auto sig = xdr::decode<std::int32_t>(request.args());
    if (!sig.ok()) return (void)request.reply_error(sig.error());
    {
      std::lock_guard lock(mutex);
      served[&runtime].killed_with = *sig;
    }
    runtime.stop_when_done(Deadline::in(kFinish));
    (void)request.reply();  // who has the answer is refused from now on
  };
  (void)runtime.add_operation({kInterface, 0, kKillOp, "kill", HandlerKind::kShort, std::move(kill)});
}

void forget_service(const Runtime &runtime) {
  std::lock_guard lock(mutex);
  served.erase(&runtime);
}

}  // namespace nssi::c_api

using namespace nssi::c_api;

int nssi_service_init(const nssi_rpc_transport transport, const int, nssi_service *service) {
  return guarded([&]() -> int {
    if (service == nullptr) return fail(NSSI_EINVAL, "service is NULL");
    auto runtime = runtime_of(transport);
    if (!runtime) return NSSI_ENOTINIT;
    *service = {transport, NSSI_DEFAULT_ENCODE, nnti::peer_to_c({}, runtime->url())};
    return NSSI_OK;
  });
}

int nssi_service_add_op(const nssi_service *, const nssi_svc_op *op) {
  return guarded([&]() -> int {
    if (op == nullptr || op->func == nullptr || op->decode_args == nullptr || op->encode_res == nullptr)
      return fail(NSSI_EINVAL, "an operation needs a function and encodings; use xdr_void for none");
    std::lock_guard lock(mutex);
    if (!operations.emplace(op->opcode, *op).second) return fail(NSSI_EEXIST, "the operation's code is taken");
    return NSSI_OK;
  });
}

int nssi_register_server_stub(int opcode, nssi_rpc_proc func, size_t sizeof_args, xdrproc_t decode_args,
                              size_t sizeof_res, xdrproc_t encode_res) {
  return guarded([&]() -> int {
    const nssi_svc_op op = {opcode, func, sizeof_args, decode_args, sizeof_res, encode_res};
    return nssi_service_add_op(nullptr, &op);
  });
}

int nssi_service_start(nssi_service *service) {
  return guarded([&]() -> int {
    if (service == nullptr) return fail(NSSI_EINVAL, "service is NULL");
    auto runtime = runtime_of(service->transport_id);
    if (!runtime) return NSSI_ENOTINIT;
    if (auto status = begin_service(*runtime); !status.ok()) return fail(status.error());
    runtime->run();
    return end_service(*runtime);
  });
}

int nssi_service_fini(const nssi_service *) {
  return guarded([&]() -> int {
    std::lock_guard lock(mutex);
    operations.clear();
    return NSSI_OK;
  });
}

int nssi_get_data(const NNTI_peer_t *, void *buf, nssi_size len, const NNTI_buffer_t *data_addr) {
  return guarded([&]() -> int {
    if (buf == nullptr && len != 0) return fail(NSSI_EINVAL, "buf is NULL");
    return transfer(data_addr, [&](nssi::Request &r) { return r.get_data({static_cast<std::byte *>(buf), len}); });
  });
}

int nssi_put_data(const NNTI_peer_t *, const void *buf, nssi_size len, const NNTI_buffer_t *data_addr,
                  const long timeout) {
  return guarded([&]() -> int {
    if (buf == nullptr && len != 0) return fail(NSSI_EINVAL, "buf is NULL");
    return transfer(data_addr, [&](nssi::Request &r) {
      r.limit_transfers(timeout < 0 ? nssi::Deadline::never() : nssi::Deadline::in(std::chrono::milliseconds(timeout)));
      auto status = r.put_data({static_cast<const std::byte *>(buf), len});
      r.limit_transfers(nssi::Deadline::never());
      return status;
    });
  });
}

int nssi_send_result(const NNTI_peer_t *, unsigned long request_id, const int rc, void *result, const NNTI_buffer_t *) {
  return guarded([&]() -> int {
    auto *current = find_active(request_id);
    if (current == nullptr) return fail(NSSI_EINVAL, "a result can be sent only within the stub of its request");
    std::optional<nssi::Bytes> bytes;
    if (rc == NSSI_OK && result != nullptr) {
      bytes = xdr_encode(current->encode_result, result, 4);
      if (!bytes) return fail(NSSI_EENCODE, "the result cannot be encoded");
    }
    auto status = answer(current->request, rc, bytes ? &*bytes : nullptr);
    return status.ok() ? NSSI_OK : fail(status.error());
  });
}
