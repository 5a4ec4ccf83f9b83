// SPDX-License-Identifier: BSD-3-Clause
// The functions of nnti/nnti.h: they check what can be checked without a lock, find the transport, and call it.
#include "nnti/c_api_transport.hpp"

#include <base/log.hpp>

#include <algorithm>
#include <exception>
#include <new>
#include <unordered_set>

namespace {

using nnti::c_api::CTransport;
using nnti::c_api::Outcome;

/// The transports of this process. Handles name them by a random number, so that a handle that is not one of ours, or
/// no longer, is told apart.
class Registry {
 public:
  void add(std::shared_ptr<CTransport> transport) {
    std::lock_guard guard(mutex_);
    const auto instance = transport->instance();
    open_.emplace(instance, std::move(transport));
  }
  std::shared_ptr<CTransport> find(std::uint64_t instance) {
    std::lock_guard guard(mutex_);
    auto found = open_.find(instance);
    return found == open_.end() ? nullptr : found->second;
  }
  std::shared_ptr<CTransport> remove(std::uint64_t instance) {
    std::lock_guard guard(mutex_);
    auto node = open_.extract(instance);
    if (node.empty()) return nullptr;
    closed_.insert(instance);
    return std::move(node.mapped());
  }
  bool was_open(std::uint64_t instance) {
    std::lock_guard guard(mutex_);
    return closed_.contains(instance);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<CTransport>> open_;
  std::unordered_set<std::uint64_t> closed_;
};

/// Never destroyed: a thread may still be inside a call while the process exits.
Registry &registry() {
  static auto *the_registry = new Registry;
  return *the_registry;
}

thread_local std::string last_error;

NNTI_result_t report(const Outcome &outcome) {
  if (!outcome.ok()) last_error = std::string(nnti_err_str(outcome.result)) + ": " + outcome.message;
  return outcome.result;
}

Outcome null_argument() { return {NNTI_EINVAL, "an argument is NULL"}; }

/// Nothing is thrown into C.
template <class Call> NNTI_result_t guarded(Call call) noexcept {
  try {
    return report(call());
  } catch (const std::bad_alloc &) { return NNTI_ENOMEM; } catch (const std::exception &error) {
    nessie::log::error("NNTI: {}", error.what());
    return NNTI_EIO;
  }
}

Outcome not_open() { return {NNTI_ENOTINIT, "the transport is not open; call NNTI_init first"}; }

template <class Call> Outcome with_transport(const NNTI_transport_t *handle, Call call) {
  if (handle == nullptr) return null_argument();
  auto transport = handle->datatype == NNTI_dt_transport ? registry().find(handle->me.peer.instance) : nullptr;
  return transport ? call(*transport) : not_open();
}

/// For calls that name their transport by a buffer of ours.
template <class Call> Outcome with_owner(const NNTI_buffer_t *buffer, Call call) {
  if (buffer == nullptr) return null_argument();
  if (buffer->datatype != NNTI_dt_buffer) return {NNTI_EINVAL, "the buffer's handle is none; register it first"};
  const auto instance = buffer->buffer_owner.peer.instance;
  if (auto transport = registry().find(instance)) return call(*transport);
  if (registry().was_open(instance)) return not_open();
  return {NNTI_EPERM, "the buffer is a peer's; this can only be done with one's own"};
}

bool is_transport_id(int id) { return id > NNTI_TRANSPORT_NULL && id < NNTI_TRANSPORT_COUNT; }

/// The buffers of a list, with their places in it.
struct BufferList {
  std::vector<std::uint64_t> ids;
  std::vector<std::uint32_t> places;
  const NNTI_buffer_t *first = nullptr;
};

Outcome read_list(const NNTI_buffer_t **list, std::uint32_t count, BufferList &out) {
  if (list == nullptr) return null_argument();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) continue;
    if (out.first == nullptr) out.first = list[i];
    if (list[i]->buffer_owner.peer.instance != out.first->buffer_owner.peer.instance)
      return {NNTI_EINVAL, "the buffers belong to different transports"};
    out.ids.push_back(list[i]->buffer_addr.id);
    out.places.push_back(i);
  }
  if (out.ids.empty()) return {NNTI_EINVAL, "there is no buffer in the list"};
  auto sorted = out.ids;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return {NNTI_EINVAL, "a buffer is named twice"};
  return {};
}

}  // namespace

extern "C" {

const char *nnti_last_error(void) { return last_error.c_str(); }

NNTI_result_t NNTI_init(const NNTI_transport_id_t trans_id, const char *my_url, NNTI_transport_t *trans_hdl) {
  return guarded([&]() -> Outcome {
    if (trans_hdl == nullptr) return null_argument();
    if (!is_transport_id(trans_id)) return {NNTI_EINVAL, "there is no transport with that number"};
    auto opened = CTransport::open(trans_id, my_url);
    if (auto *failure = std::get_if<Outcome>(&opened)) return *failure;
    auto transport = std::get<std::shared_ptr<CTransport>>(opened);
    NNTI_transport_t handle{};
    handle.datatype = NNTI_dt_transport;
    handle.id = trans_id;
    handle.me = transport->me();
    registry().add(std::move(transport));
    *trans_hdl = handle;
    return {};
  });
}

NNTI_result_t NNTI_get_url(const NNTI_transport_t *trans_hdl, char *url, const uint64_t maxlen) {
  return guarded([&] {
    return with_transport(trans_hdl, [&](CTransport &transport) -> Outcome {
      if (url == nullptr) return null_argument();
      const std::string &text = transport.url();
      if (text.size() >= maxlen) return {NNTI_EMSGSIZE, "the URL needs " + std::to_string(text.size() + 1) + " bytes"};
      std::memcpy(url, text.c_str(), text.size() + 1);
      return {};
    });
  });
}

NNTI_result_t NNTI_fini(const NNTI_transport_t *trans_hdl) {
  return guarded([&]() -> Outcome {
    if (trans_hdl == nullptr) return null_argument();
    auto transport = registry().remove(trans_hdl->me.peer.instance);
    if (!transport) return not_open();
    transport->close();
    return {};
  });
}

NNTI_result_t NNTI_connect(const NNTI_transport_t *trans_hdl, const char *url, const int timeout,
                           NNTI_peer_t *peer_hdl) {
  return guarded([&] {
    return with_transport(trans_hdl, [&](CTransport &transport) -> Outcome {
      if (url == nullptr || peer_hdl == nullptr) return null_argument();
      return transport.connect(url, timeout, peer_hdl);
    });
  });
}

NNTI_result_t NNTI_disconnect(const NNTI_transport_t *trans_hdl, NNTI_peer_t *peer_hdl) {
  return guarded([&] {
    return with_transport(trans_hdl, [&](CTransport &transport) -> Outcome {
      if (peer_hdl == nullptr) return null_argument();
      return transport.disconnect(peer_hdl->peer.instance);
    });
  });
}

NNTI_result_t NNTI_register_memory(const NNTI_transport_t *trans_hdl, char *buffer, const uint64_t element_size,
                                   const uint64_t num_elements, const NNTI_buf_ops_t ops, const NNTI_peer_t *peer,
                                   NNTI_buffer_t *reg_buf) {
  return guarded([&] {
    return with_transport(trans_hdl, [&](CTransport &transport) -> Outcome {
      if (buffer == nullptr || reg_buf == nullptr) return null_argument();
      return transport.register_memory(buffer, element_size, num_elements, ops, peer, reg_buf);
    });
  });
}

NNTI_result_t NNTI_unregister_memory(NNTI_buffer_t *reg_buf) {
  return guarded([&] {
    return with_owner(reg_buf,
                      [&](CTransport &transport) { return transport.unregister_memory(reg_buf->buffer_addr.id); });
  });
}

NNTI_result_t NNTI_send(const NNTI_peer_t *peer_hdl, const NNTI_buffer_t *msg_hdl, const NNTI_buffer_t *dest_hdl) {
  return guarded([&] {
    return with_owner(msg_hdl, [&](CTransport &transport) -> Outcome {
      if (peer_hdl == nullptr) return null_argument();
      return transport.send(peer_hdl->peer.instance, msg_hdl->buffer_addr.id, dest_hdl);
    });
  });
}

NNTI_result_t NNTI_put(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset) {
  return guarded([&] {
    return with_owner(src_buffer_hdl, [&](CTransport &transport) -> Outcome {
      if (dest_buffer_hdl == nullptr) return null_argument();
      return transport.access(CTransport::Direction::kPut, src_buffer_hdl->buffer_addr.id, src_offset, src_length,
                              *dest_buffer_hdl, dest_offset);
    });
  });
}

NNTI_result_t NNTI_get(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset) {
  return guarded([&] {
    return with_owner(dest_buffer_hdl, [&](CTransport &transport) -> Outcome {
      if (src_buffer_hdl == nullptr) return null_argument();
      return transport.access(CTransport::Direction::kGet, dest_buffer_hdl->buffer_addr.id, dest_offset, src_length,
                              *src_buffer_hdl, src_offset);
    });
  });
}

NNTI_result_t NNTI_wait(const NNTI_buffer_t *reg_buf, const NNTI_buf_ops_t remote_op, const int timeout,
                        NNTI_status_t *status) {
  uint32_t which = 0;
  return NNTI_waitany(&reg_buf, 1, remote_op, timeout, &which, status);
}

NNTI_result_t NNTI_waitany(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, uint32_t *which, NNTI_status_t *status) {
  return guarded([&]() -> Outcome {
    if (which == nullptr || status == nullptr) return null_argument();
    BufferList list;
    if (auto outcome = read_list(buf_list, buf_count, list); !outcome.ok()) return outcome;
    return with_owner(list.first, [&](CTransport &transport) {
      std::vector<std::pair<std::size_t, NNTI_status_t>> taken;
      auto outcome = transport.wait(CTransport::Want::kAny, list.ids, remote_op, timeout, taken);
      if (taken.empty()) return outcome;
      *which = list.places[taken.front().first];
      *status = taken.front().second;
      return outcome;
    });
  });
}

NNTI_result_t NNTI_waitall(const NNTI_buffer_t **buf_list, const uint32_t buf_count, const NNTI_buf_ops_t remote_op,
                           const int timeout, NNTI_status_t **status) {
  return guarded([&]() -> Outcome {
    if (status == nullptr) return null_argument();
    BufferList list;
    if (auto outcome = read_list(buf_list, buf_count, list); !outcome.ok()) return outcome;
    for (const auto place : list.places)
      if (status[place] == nullptr) return null_argument();
    return with_owner(list.first, [&](CTransport &transport) {
      std::vector<std::pair<std::size_t, NNTI_status_t>> taken;
      auto outcome = transport.wait(CTransport::Want::kAll, list.ids, remote_op, timeout, taken);
      for (const auto &[index, completion] : taken) *status[list.places[index]] = completion;
      return outcome;
    });
  });
}

}  // extern "C"
