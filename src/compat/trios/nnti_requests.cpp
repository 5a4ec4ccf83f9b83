// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti.h: work requests and waiting for them.
#include "compat/trios/nnti.hpp"

#include <Trios_signal.h>

#include <chrono>

namespace nnti::trios {

namespace {

constexpr auto kLookForSignals = std::chrono::milliseconds(100);

struct RequestList {
  std::vector<RequestId> ids;
  std::vector<std::uint32_t> places;
  int transport_id = 0;
};

Outcome read_list(NNTI_work_request_t **list, std::uint32_t count, RequestList &out) {
  if (list == nullptr) return face::null_argument();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) continue;
    if (list[i]->datatype != NNTI_dt_work_request) return {face::kEINVAL, "a work request was never made"};
    if (!out.ids.empty() && list[i]->transport_id != out.transport_id)
      return {face::kEINVAL, "the work requests belong to different transports"};
    out.transport_id = list[i]->transport_id;
    out.ids.push_back(id_of(list[i]));
    out.places.push_back(i);
  }
  if (out.ids.empty()) return {face::kEINVAL, "there is no work request in the list"};
  return {};
}

/// The work request may be a copy that was unpacked, which does not know its buffer.
NNTI_status_t status_of(const Transport &transport, const NNTI_work_request_t &wr, const Event &event) {
  NNTI_status_t status{};
  status.datatype = NNTI_dt_status;
  status.op = static_cast<NNTI_buf_ops_t>(event.purpose);
  status.result = static_cast<NNTI_result_t>(face::number_of(event.code));
  auto memory = transport.context->memory_of(event.buffer);
  if (wr.ops != NNTI_ATOMICS && memory.ok()) status.start = reinterpret_cast<std::uintptr_t>(memory->front().data());
  status.offset = event.offset;
  status.length = event.length;
  const NNTI_peer_t other = peer_of(transport, event.peer.get());
  status.src = event.outward ? transport.handle.me : other;
  status.dest = event.outward ? other : transport.handle.me;
  return status;
}

/// A completion was taken: by its work request, which ends with it if it is an operation's, and into `status`.
Outcome taken(const Transport &transport, NNTI_work_request_t &wr, const Event &event, NNTI_status_t &status) {
  status = status_of(transport, wr, event);
  wr.result = status.result;
  if (event.purpose == Purpose::kLocalRead || event.purpose == Purpose::kLocalWrite) wr.transport_private = 0;
  return face::outcome_of(event);
}

/// Waits by `wait(deadline)`, which returns why nothing was taken; looks now and then whether a signal has come.
template <class Wait> Outcome wait_until(int timeout, Wait wait) {
  auto deadline = face::deadline_of(timeout);
  if (!deadline.ok()) return deadline.error();
  for (;;) {
    if (trios_exit_now()) return {face::kECANCELED, "a signal has told this process to leave"};
    const bool signals = catches_signals();
    const Deadline end = signals ? deadline->earlier(Deadline::in(kLookForSignals)) : *deadline;
    Status waited = wait(end);
    const bool go_on = signals && waited.code() == Code::kTimedOut && !deadline->passed();
    if (!go_on) return waited;
  }
}

void tell(NNTI_status_t *status, const Outcome &outcome) {
  const auto result = static_cast<NNTI_result_t>(outcome.number);
  if (result == NNTI_ETIMEDOUT || result == NNTI_EINTR || result == NNTI_ECANCELED) status->result = result;
}

/// For calls on one request: `call(context, id)`. One that has ended with its completion has nothing more to be done.
template <class Call> NNTI_result_t on_request(NNTI_work_request_t *wr, Call call) {
  return guarded([&] {
    return with_request(wr, [&](const TransportPtr &transport) -> Outcome { return call(*transport->context); });
  });
}

}  // namespace
}  // namespace nnti::trios

using namespace nnti::trios;
using nnti::Context;
using nnti::Deadline;
using nnti::Event;
using nnti::Status;
namespace face = nnti::face;

extern "C" {

NNTI_result_t NNTI_create_work_request(NNTI_buffer_t *reg_buf, NNTI_work_request_t *wr) {
  return on_owner(reg_buf, [&](const TransportPtr &transport) -> Outcome {
    if (wr == nullptr) return face::null_argument();
    auto request = transport->context->create_request(id_of(reg_buf));
    if (!request.ok()) return request.error();
    fill(wr, *transport, reg_buf, reg_buf->ops, *request);
    return {};
  });
}

NNTI_result_t NNTI_clear_work_request(NNTI_work_request_t *wr) {
  return on_request(wr, [&](Context &context) -> Outcome {
    if (wr->transport_private == 0) return {};
    return context.clear(id_of(wr));
  });
}

NNTI_result_t NNTI_destroy_work_request(NNTI_work_request_t *wr) {
  return on_request(wr, [&](Context &context) -> Outcome {
    if (wr->transport_private == 0) return {};
    auto status = context.destroy(id_of(wr));
    if (status.ok()) wr->transport_private = 0;
    return status;
  });
}

NNTI_result_t NNTI_cancel(NNTI_work_request_t *wr) {
  return on_request(wr, [&](Context &context) -> Outcome { return context.cancel(id_of(wr)); });
}

NNTI_result_t NNTI_cancelall(NNTI_work_request_t **wr_list, const uint32_t wr_count) {
  RequestList list;
  auto read = guarded([&] { return read_list(wr_list, wr_count, list); });
  for (const auto place : list.places) {
    if (read != NNTI_OK) return read;
    const auto result = NNTI_cancel(wr_list[place]);
    if (result != NNTI_OK) return result;
  }
  return read;
}

NNTI_result_t NNTI_wait(NNTI_work_request_t *wr, const int timeout, NNTI_status_t *status) {
  uint32_t which = 0;
  return NNTI_waitany(&wr, 1, timeout, &which, status);
}

NNTI_result_t NNTI_waitany(NNTI_work_request_t **wr_list, const uint32_t wr_count, const int timeout, uint32_t *which,
                           NNTI_status_t *status) {
  return guarded([&]() -> Outcome {
    if (which == nullptr || status == nullptr) return face::null_argument();
    RequestList list;
    if (auto outcome = read_list(wr_list, wr_count, list); !outcome.ok()) return outcome;
    auto transport = find_transport(list.transport_id);
    if (!transport) return face::not_open();
    Event event;
    std::size_t index = 0;
    auto waited = wait_until(timeout, [&](Deadline deadline) -> Status {
      auto any = transport->context->wait_any(list.ids, deadline, event);
      if (!any.ok()) return any.error();
      index = *any;
      return {};
    });
    if (!waited.ok()) return tell(status, waited), waited;
    *which = list.places[index];
    return taken(*transport, *wr_list[*which], event, *status);
  });
}

NNTI_result_t NNTI_waitall(NNTI_work_request_t **wr_list, const uint32_t wr_count, const int timeout,
                           NNTI_status_t **status) {
  return guarded([&]() -> Outcome {
    if (status == nullptr) return face::null_argument();
    RequestList list;
    if (auto outcome = read_list(wr_list, wr_count, list); !outcome.ok()) return outcome;
    for (const auto place : list.places)
      if (status[place] == nullptr) return face::null_argument();
    auto transport = find_transport(list.transport_id);
    if (!transport) return face::not_open();
    std::vector<Event> events(list.ids.size());
    auto waited = wait_until(
        timeout, [&](Deadline deadline) { return transport->context->wait_all(list.ids, deadline, events); });
    Outcome outcome = waited;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto place = list.places[i];
      if (!waited.ok()) {
        tell(status[place], waited);
        continue;
      }
      const auto one = taken(*transport, *wr_list[place], events[i], *status[place]);
      if (outcome.ok()) outcome = one;
    }
    return outcome;
  });
}

}  // extern "C"
