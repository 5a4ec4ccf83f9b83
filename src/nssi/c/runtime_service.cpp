// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/runtime.hpp>
#include <nssi/wire/wire.hpp>

#include <cstring>

namespace nssi::c_runtime {
namespace {

thread_local const Runtime *short_handlers_runtime = nullptr;

/// Says, while it lives, that a short handler runs in this thread.
class ShortHandler {
 public:
  explicit ShortHandler(const Runtime *runtime) : before_(short_handlers_runtime) { short_handlers_runtime = runtime; }
  ~ShortHandler() { short_handlers_runtime = before_; }
  ShortHandler(const ShortHandler &) = delete;

 private:
  const Runtime *before_;
};

/// A handle for the request of a handler, while that runs.
class Incoming {
 public:
  explicit Incoming(Request &request) {
    auto one = Handles<nssi_rt_request>::take();
    one->request = &request;
    one->last = Status();
    one->replied = false;
    handle_ = Handles<nssi_rt_request>::open(std::move(one));
  }
  ~Incoming() {
    Handles<nssi_rt_request>::close(handle_);
    Handles<nssi_rt_request>::give_back(handle_);
  }
  Incoming(const Incoming &) = delete;
  nssi_rt_request *get() { return handle_; }

 private:
  nssi_rt_request *handle_ = nullptr;
};

Handler handler_of(const Runtime &runtime, const nssi_rt_operation &operation) {
  const nssi_rt_handler handler = operation.handler;
  auto *context = operation.context;
  if (operation.kind != NSSI_RT_SHORT) return [=](Request &request) { handler(context, Incoming(request).get()); };
  return [=, it = &runtime](Request &request) {
    ShortHandler current(it);
    handler(context, Incoming(request).get());
  };
}

/// Calls `use` with the C++ request; an error stays with the handle as well, for handlers that return its code.
template <class Use> int with(const nssi_rt_request *request, Use use) {
  if (!is_open(request)) return fail(Code::kInvalidArgument, "the request is null, or its handler has returned");
  auto *handle = const_cast<nssi_rt_request *>(request);
  return guarded([&]() -> Status {
    Status status = use(*handle->request);
    if (!status.ok()) handle->last = status;
    return status;
  });
}

/// As with(), for functions that answer the request.
template <class Use> int answer(nssi_rt_request *request, Use use) {
  return with(request, [&](Request &it) -> Status {
    request->replied = true;
    return use(it);
  });
}

Error error_of(int32_t code, int32_t scope, int32_t cause, const char *message) {
  return {static_cast<Code>(code), message != nullptr ? message : nessie_code_advice(code),
          static_cast<nessie::Scope>(scope), cause};
}

Status check(const nssi_rt_operation *operation) {
  if (operation == nullptr || operation->handler == nullptr) return invalid("an operation needs a handler");
  if (operation->kind < NSSI_RT_FIBER || operation->kind > NSSI_RT_BULK_NOW)
    return invalid("the kind of the operation is none of enum nssi_rt_kind");
  return {};
}

constexpr HandlerKind kKinds[] = {HandlerKind::kFiber, HandlerKind::kShort, HandlerKind::kBulk, HandlerKind::kBulkNow};

}  // namespace

bool in_short_handler_of(const Runtime &runtime) { return short_handlers_runtime == &runtime; }

}  // namespace nssi::c_runtime

using namespace nssi::c_runtime;
using nssi::Status;

int nssi_rt_add_operation(nssi_rt_runtime *runtime, const nssi_rt_operation *operation) {
  return guarded([&]() -> Status {
    if (!is_open(runtime)) return invalid("the runtime is null or closed");
    if (auto status = check(operation); !status.ok()) return status;
    auto &it = *runtime->home->runtime;
    return it.add_operation({{operation->program, operation->version},
                             operation->provider,
                             operation->op,
                             operation->name != nullptr ? operation->name : "",
                             kKinds[operation->kind],
                             handler_of(it, *operation),
                             {},
                             operation->reads_args_once != 0});
  });
}

int nssi_rt_run(nssi_rt_runtime *runtime) {
  return guarded([&]() -> Status {
    if (!is_open(runtime)) return invalid("the runtime is null or closed");
    auto &it = *runtime->home->runtime;
    if (it.in_fiber() || in_short_handler_of(it)) return invalid("a handler cannot run its own runtime");
    it.run();
    return {};
  });
}

int nssi_rt_stop(nssi_rt_runtime *runtime) {
  if (!is_open(runtime)) return fail(nssi::Code::kInvalidArgument, "the runtime is null or closed");
  runtime->home->runtime->stop();
  return NESSIE_OK;
}

int nssi_rt_stop_when_done(nssi_rt_runtime *runtime, int32_t timeout_ms) {
  if (!is_open(runtime)) return fail(nssi::Code::kInvalidArgument, "the runtime is null or closed");
  if (timeout_ms < -1) return fail(nssi::Code::kInvalidArgument, "a timeout is -1, for none, or at least 0 ms");
  runtime->home->runtime->stop_when_done(nssi::Deadline::from_ms(timeout_ms));
  return NESSIE_OK;
}

// --- within a handler -------------------------------------------------------------------------------------------------

uint64_t nssi_rt_caller(const nssi_rt_request *request) {
  return is_open(request) ? request->request->caller().value : 0;
}

int nssi_rt_caller_identity(const nssi_rt_request *request, uint8_t identity[16]) {
  return with(request, [&](nssi::Request &it) -> Status {
    if (identity == nullptr) return invalid("identity is null");
    const auto bytes = it.caller_identity();
    std::memcpy(identity, bytes.data(), bytes.size());
    return {};
  });
}

int32_t nssi_rt_role(const nssi_rt_request *request) {
  return is_open(request) && request->request->role() == nssi::Role::kOperator ? NSSI_RT_OPERATOR : NSSI_RT_USER;
}

uint32_t nssi_rt_op(const nssi_rt_request *request) { return is_open(request) ? request->request->op() : 0; }

int nssi_rt_args(const nssi_rt_request *request, const void **bytes, uint64_t *size_bytes) {
  return with(request, [&](nssi::Request &it) -> Status {
    if (bytes == nullptr || size_bytes == nullptr) return invalid("bytes or size_bytes is null");
    const auto args = it.args();
    *bytes = args.empty() ? nullptr : args.data();
    *size_bytes = args.size();
    return {};
  });
}

uint64_t nssi_rt_data_bytes(const nssi_rt_request *request) {
  return is_open(request) ? request->request->data_bytes() : 0;
}

int64_t nssi_rt_time_left_ms(const nssi_rt_request *request) {
  if (!is_open(request)) return 0;
  const auto deadline = request->request->deadline();
  if (deadline.is_never()) return -1;
  if (deadline.passed()) return 0;
  return std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - nessie::Clock::now()).count();
}

int nssi_rt_check(const nssi_rt_request *request) {
  return with(request, [](const nssi::Request &it) { return it.check(); });
}

int nssi_rt_get_data(nssi_rt_request *request, void *destination, uint64_t size_bytes, uint64_t offset) {
  return with(request, [&](nssi::Request &it) -> Status {
    if (destination == nullptr && size_bytes != 0) return invalid("destination is null");
    return it.get_data({static_cast<std::byte *>(destination), size_bytes}, offset);
  });
}

int nssi_rt_put_data(nssi_rt_request *request, const void *source, uint64_t size_bytes, uint64_t offset) {
  return with(request, [&](nssi::Request &it) -> Status {
    if (source == nullptr && size_bytes != 0) return invalid("source is null");
    return it.put_data({static_cast<const std::byte *>(source), size_bytes}, offset);
  });
}

int nssi_rt_view_data(const nssi_rt_request *request, const void **bytes, uint64_t *size_bytes) {
  return with(request, [&](nssi::Request &it) -> Status {
    if (bytes == nullptr || size_bytes == nullptr) return invalid("bytes or size_bytes is null");
    const auto *view = it.view_data();
    if (view == nullptr)
      return nssi::Error{nssi::Code::kUnsupported,
                         "the caller's buffer cannot be read in place from here; nssi_rt_get_data() it"};
    *bytes = view->bytes().data();
    *size_bytes = view->bytes().size();
    return {};
  });
}

int nssi_rt_reply(nssi_rt_request *request, const void *result, uint64_t size_bytes) {
  if (result == nullptr && size_bytes != 0) return fail(nssi::Code::kInvalidArgument, "result is null");
  return answer(request, [&](nssi::Request &it) {
    return it.reply(std::span(static_cast<const std::byte *>(result), size_bytes));
  });
}

int nssi_rt_reply_encoded(nssi_rt_request *request, uint64_t size_bytes, nssi_rt_encoder encode, void *context) {
  if (encode == nullptr) return fail(nssi::Code::kInvalidArgument, "encode is null");
  return answer(request, [&](nssi::Request &it) {
    return it.reply(static_cast<std::size_t>(size_bytes),
                    [&](std::span<std::byte> at) { encode(context, at.data(), at.size()); });
  });
}

int nssi_rt_reply_error(nssi_rt_request *request, int32_t code, int32_t scope, int32_t cause, const char *message) {
  if (!nssi::wire::is_error(code, scope))
    return fail(nssi::Code::kInvalidArgument, "the code is none of nessie/codes.h, or OK; or the scope is none");
  return answer(request, [&](nssi::Request &it) { return it.reply_error(error_of(code, scope, cause, message)); });
}
