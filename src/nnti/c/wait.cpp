// SPDX-License-Identifier: BSD-3-Clause
// nnti/nnti.h: waiting on buffers. A message's element belongs to the thread that took it until that thread next waits
// for the same buffer; so each thread keeps a list of what it holds.
#include "nnti/c/private.hpp"

#include <algorithm>

namespace nnti::c_api {

namespace {

struct Held {
  std::weak_ptr<Context> context;
  BufferId buffer;
  std::uint32_t element;
};

/// What a thread holds; given back when the thread ends.
class HeldElements {
 public:
  ~HeldElements() {
    for (const auto &held : held_) give_back(held);
  }
  void add(const std::shared_ptr<Context> &context, const Event &event) {
    if (event.element != Event::kNoElement) held_.push_back({context, event.buffer, event.element});
  }
  void give_back_those_of(BufferId buffer) {
    std::erase_if(held_, [&](const Held &held) {
      if (held.buffer != buffer) return false;
      give_back(held);
      return true;
    });
  }

 private:
  static void give_back(const Held &held) {
    if (auto context = held.context.lock()) (void)context->release(held.buffer, held.element).ok();
  }
  std::vector<Held> held_;
};

thread_local HeldElements held_elements;

/// The buffers of a list, with their places in it.
struct BufferList {
  std::vector<BufferId> ids;
  std::vector<std::uint32_t> places;
  const NNTI_buffer_t *first = nullptr;
};

Outcome read_list(const NNTI_buffer_t **list, std::uint32_t count, BufferList &out) {
  if (list == nullptr) return face::null_argument();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) continue;
    if (out.first == nullptr) out.first = list[i];
    if (list[i]->buffer_owner.peer.instance != out.first->buffer_owner.peer.instance)
      return {face::kEINVAL, "the buffers belong to different transports"};
    out.ids.push_back(id_of(list[i]));
    out.places.push_back(i);
  }
  if (out.ids.empty()) return {face::kEINVAL, "there is no buffer in the list"};
  return {};
}

NNTI_status_t status_of(const Context &context, const NNTI_buffer_t &buffer, const Event &event) {
  NNTI_status_t status{};
  status.datatype = NNTI_dt_status;
  status.op = static_cast<NNTI_buf_ops_t>(event.purpose);
  if (event.purpose == Purpose::kLocalRead || event.purpose == Purpose::kLocalWrite) status.op |= NNTI_BOP_WITH_EVENTS;
  status.result = result_of(event.code);
  status.start = buffer.payload;
  status.offset = event.offset;
  status.length = event.length;
  const NNTI_peer_t other = event.peer ? peer_to_c(*event.peer) : nnti::peer_to_c({}, {});
  const NNTI_peer_t me = myself(context);
  status.src = event.outward ? me : other;
  status.dest = event.outward ? other : me;
  return status;
}

/// Finds the context, and gives back what this thread holds of the buffers that it now waits for.
template <class Wait> Outcome wait_for(const BufferList &list, int timeout, Wait wait) {
  auto deadline = face::deadline_of(timeout);
  if (!deadline.ok()) return deadline.error();
  auto context = face::find_context({list.first->buffer_owner.peer.instance});
  if (!context) return with_owner(list.first, [](Context &) -> Outcome { return face::not_open(); });
  for (const auto id : list.ids) held_elements.give_back_those_of(id);
  return wait(context, *deadline);
}

}  // namespace
}  // namespace nnti::c_api

using namespace nnti::c_api;

extern "C" {

NNTI_result_t NNTI_wait(const NNTI_buffer_t *reg_buf, const NNTI_buf_ops_t remote_op, const int timeout,
                        NNTI_status_t *status) {
  uint32_t which = 0;
  return NNTI_waitany(&reg_buf, 1, remote_op, timeout, &which, status);
}

NNTI_result_t NNTI_waitany(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, uint32_t *which, NNTI_status_t *status) {
  return guarded([&]() -> Outcome {
    if (which == nullptr || status == nullptr) return nnti::face::null_argument();
    BufferList list;
    if (auto outcome = read_list(buf_list, buf_count, list); !outcome.ok()) return outcome;
    return wait_for(list, timeout,
                    [&](const std::shared_ptr<nnti::Context> &context, nnti::Deadline deadline) -> Outcome {
                      nnti::Event event;
                      auto index = context->wait_any(list.ids, static_cast<nnti::Purpose>(remote_op), deadline, event);
                      if (!index.ok()) return index.error();
                      held_elements.add(context, event);
                      *which = list.places[*index];
                      *status = status_of(*context, *buf_list[*which], event);
                      return nnti::face::outcome_of(event);
                    });
  });
}

NNTI_result_t NNTI_waitall(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, NNTI_status_t **status) {
  return guarded([&]() -> Outcome {
    if (status == nullptr) return nnti::face::null_argument();
    BufferList list;
    if (auto outcome = read_list(buf_list, buf_count, list); !outcome.ok()) return outcome;
    for (const auto place : list.places)
      if (status[place] == nullptr) return nnti::face::null_argument();
    return wait_for(
        list, timeout, [&](const std::shared_ptr<nnti::Context> &context, nnti::Deadline deadline) -> Outcome {
          std::vector<nnti::Event> events(list.ids.size());
          auto waited = context->wait_all(list.ids, static_cast<nnti::Purpose>(remote_op), deadline, events);
          if (!waited.ok()) return waited.error();
          Outcome outcome;
          for (std::size_t i = 0; i < events.size(); ++i) {
            held_elements.add(context, events[i]);
            *status[list.places[i]] = status_of(*context, *buf_list[list.places[i]], events[i]);
            if (outcome.ok()) outcome = nnti::face::outcome_of(events[i]);
          }
          return outcome;
        });
  });
}

}  // extern "C"
