// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/runtime.hpp>

#include <vector>

namespace nssi::c_runtime {
namespace {

Result<CallOptions> options_of(const nssi_rt_runtime &runtime, const nssi_rt_call_options *from) {
  CallOptions options;
  if (from == nullptr) return options;
  if (from->buffer != nullptr) {
    if (!is_open(from->buffer) || from->buffer->home != runtime.home)
      return invalid("the bulk buffer is freed, or of another runtime");
    options.data = &from->buffer->buffer;
  }
  if (from->timeout_ms != 0) {
    const auto deadline = deadline_of(from->timeout_ms);
    if (!deadline.ok()) return deadline.error();
    options.deadline = *deadline;
  }
  options.idempotent = from->idempotent != 0;
  options.one_way = from->one_way != 0;
  if (from->when_busy < NSSI_RT_WAIT_WHEN_BUSY || from->when_busy > NSSI_RT_FAIL_WHEN_BUSY)
    return invalid("when_busy is none of enum nssi_rt_when_busy");
  if (from->when_busy == NSSI_RT_FAIL_WHEN_BUSY) options.when_busy = CallOptions::WhenBusy::kFail;
  if (from->on_over != nullptr)
    options.on_over = [callback = from->on_over, context = from->context] { callback(context); };
  return options;
}

Service service_of(const nssi_rt_service &service) {
  return {{service.peer}, {service.program, service.version}, service.provider};
}

nssi_rt_call *opened(Handles<nssi_rt_call>::Taken one, Call call, const nssi_rt_call_options *options) {
  one->call = std::move(call);
  one->is_one_way = options != nullptr && options->one_way != 0;
  one->lends = options != nullptr ? options->buffer : nullptr;
  if (one->lends != nullptr) ++one->lends->lent;
  return Handles<nssi_rt_call>::open(std::move(one));
}

template <class Send>
Status start(nssi_rt_runtime *runtime, const nssi_rt_service *service, const nssi_rt_call_options *options,
             nssi_rt_call **call, Send send) {
  if (!is_open(runtime)) return invalid("the runtime is null or closed");
  if (service == nullptr || call == nullptr) return invalid("service or call is null");
  auto wanted = options_of(*runtime, options);
  if (!wanted.ok()) return wanted.error();
  auto one = Handles<nssi_rt_call>::take();
  *call = opened(std::move(one), send(*runtime->home->runtime, service_of(*service), *wanted), options);
  return {};
}

Status multicast(nssi_rt_runtime *runtime, std::span<const nssi_rt_service> services, uint32_t op,
                 std::span<const std::byte> args, const nssi_rt_call_options *options, nssi_rt_call **calls) {
  if (!is_open(runtime)) return invalid("the runtime is null or closed");
  auto wanted = options_of(*runtime, options);
  if (!wanted.ok()) return wanted.error();
  std::vector<Service> all;
  std::vector<Handles<nssi_rt_call>::Taken> taken;
  for (const auto &service : services) {
    all.push_back(service_of(service));
    taken.push_back(Handles<nssi_rt_call>::take());
  }
  auto made = runtime->home->runtime->multicast(all, op, args, *wanted);
  for (std::size_t i = 0; i < made.size(); ++i) calls[i] = opened(std::move(taken[i]), std::move(made[i]), options);
  return {};
}

/// The buffer is the caller's again.
void take_back_buffer(nssi_rt_call &call) {
  if (call.lends != nullptr) --call.lends->lent;
  call.lends = nullptr;
}

Status outcome_by(nssi_rt_call &call, Deadline deadline) {
  auto status = call.call.wait(deadline);
  if (status.code() != Code::kTimedOut || call.call.test()) take_back_buffer(call);
  return status;
}

template <class Use> Status for_each_call(nssi_rt_call *const *calls, std::uint64_t count, Use use) {
  if (calls == nullptr && count != 0) return invalid("calls is null");
  for (std::uint64_t i = 0; i < count; ++i)
    if (calls[i] != nullptr && !is_open(calls[i])) return invalid("a call of the array is freed");
  for (std::uint64_t i = 0; i < count; ++i)
    if (calls[i] != nullptr) use(i);
  return {};
}

Status wait_any(nssi_rt_call *const *calls, std::uint64_t count, Deadline deadline, std::uint64_t *which) {
  std::vector<Call *> in_progress(count);
  bool is_empty = true;
  auto status = for_each_call(calls, count, [&](std::uint64_t i) {
    is_empty = false;
    in_progress[i] = &calls[i]->call;
  });
  if (!status.ok()) return status;
  if (is_empty) return Error{Code::kNotFound, "there is no call in the array"};
  const auto place = nssi::wait_any(std::span<Call *const>(in_progress), deadline);
  if (!place.ok()) return place.error();
  *which = *place;
  return outcome_by(*calls[*place], Deadline::now());
}

template <class Use> int with(nssi_rt_call *call, Use use) {
  return guarded([&]() -> Status {
    if (!is_open(call)) return invalid("the call is null or freed");
    return use(*call);
  });
}

}  // namespace
}  // namespace nssi::c_runtime

using namespace nssi::c_runtime;
using nssi::Status;

int nssi_rt_start(nssi_rt_runtime *runtime, const nssi_rt_service *service, uint32_t op, const void *args,
                  uint64_t size_bytes, const nssi_rt_call_options *options, nssi_rt_call **call) {
  return guarded([&]() -> Status {
    if (args == nullptr && size_bytes != 0) return invalid("args is null");
    return start(runtime, service, options, call, [&](auto &it, const auto &at, const auto &wanted) {
      return it.call(at, op, std::span(static_cast<const std::byte *>(args), size_bytes), wanted);
    });
  });
}

int nssi_rt_start_encoded(nssi_rt_runtime *runtime, const nssi_rt_service *service, uint32_t op, uint64_t size_bytes,
                          nssi_rt_encoder encode, void *context, const nssi_rt_call_options *options,
                          nssi_rt_call **call) {
  return guarded([&]() -> Status {
    if (encode == nullptr) return invalid("encode is null");
    const nssi::Encoder encoder = [&](std::span<std::byte> at) { encode(context, at.data(), at.size()); };
    return start(runtime, service, options, call, [&](auto &it, const auto &at, const auto &wanted) {
      return it.call(at, op, static_cast<std::size_t>(size_bytes), encoder, wanted);
    });
  });
}

int nssi_rt_multicast(nssi_rt_runtime *runtime, const nssi_rt_service *services, uint64_t count, uint32_t op,
                      const void *args, uint64_t size_bytes, const nssi_rt_call_options *options,
                      nssi_rt_call **calls) {
  return guarded([&]() -> Status {
    if (count != 0 && (services == nullptr || calls == nullptr)) return invalid("services or calls is null");
    if (args == nullptr && size_bytes != 0) return invalid("args is null");
    return multicast(runtime, {services, count}, op, {static_cast<const std::byte *>(args), size_bytes}, options,
                     calls);
  });
}

int nssi_rt_wait(nssi_rt_call *call, int32_t timeout_ms) {
  return with(call, [&](nssi_rt_call &it) -> Status {
    const auto deadline = deadline_of(timeout_ms);
    return deadline.ok() ? outcome_by(it, *deadline) : deadline.error();
  });
}

int nssi_rt_test(nssi_rt_call *call, int32_t *over) {
  return with(call, [&](nssi_rt_call &it) -> Status {
    if (over == nullptr) return invalid("is_over is null");
    *over = it.call.test() ? 1 : 0;
    return {};
  });
}

int nssi_rt_wait_any(nssi_rt_call *const *calls, uint64_t count, int32_t timeout_ms, uint64_t *which) {
  return guarded([&]() -> Status {
    if (which == nullptr) return invalid("which is null");
    const auto deadline = deadline_of(timeout_ms);
    return deadline.ok() ? wait_any(calls, count, *deadline, which) : deadline.error();
  });
}

int nssi_rt_wait_all(nssi_rt_call *const *calls, uint64_t count, int32_t timeout_ms) {
  return guarded([&]() -> Status {
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    Status first;
    auto status = for_each_call(calls, count, [&](std::uint64_t i) {
      auto outcome = outcome_by(*calls[i], *deadline);
      if (first.ok()) first = std::move(outcome);
    });
    return status.ok() ? first : status;
  });
}

int nssi_rt_when_over(nssi_rt_call *call, nssi_rt_callback callback, void *context) {
  return with(call, [&](nssi_rt_call &it) -> Status {
    if (callback == nullptr) return invalid("callback is null");
    it.call.when_over([callback, context] { callback(context); });
    return {};
  });
}

int nssi_rt_result(const nssi_rt_call *call, const void **bytes, uint64_t *size_bytes) {
  return with(const_cast<nssi_rt_call *>(call), [&](nssi_rt_call &it) -> Status {
    if (bytes == nullptr || size_bytes == nullptr) return invalid("bytes or size_bytes is null");
    if (!it.call.test() || !outcome_by(it, nssi::Deadline::now()).ok())
      return invalid("the call is not over, or has no result: wait for it first");
    const auto view = it.call.view();
    *bytes = view.empty() ? nullptr : view.data();
    *size_bytes = view.size();
    return {};
  });
}

int nssi_rt_cancel(nssi_rt_call *call) {
  return with(call, [&](nssi_rt_call &it) -> Status {
    it.call.cancel();
    take_back_buffer(it);
    return {};
  });
}

int nssi_rt_free_call(nssi_rt_call *call) {
  return with(call, [&](nssi_rt_call &it) -> Status {
    if (!Handles<nssi_rt_call>::close(call)) return invalid("the call is being freed");
    it.call = nssi::Call();
    take_back_buffer(it);
    Handles<nssi_rt_call>::give_back(call);
    return {};
  });
}
