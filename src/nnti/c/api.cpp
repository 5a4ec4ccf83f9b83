// SPDX-License-Identifier: BSD-3-Clause
// nnti/nnti.h: transports, peers, buffers and operations. Each function finds the context and hands on.
#include "nnti/c/private.hpp"

#include <cstring>

namespace nnti::c_api {

namespace {

/// Which peer a buffer is for; 0: any.
Result<ProcessId> only_for(const NNTI_peer_t *peer) {
  if (peer == nullptr) return ProcessId{};
  if (peer->peer.instance == 0) return Error{Code::kNotFound, "the peer is not connected"};
  return ProcessId{peer->peer.instance};
}

/// Registers by `make(only_for)`; the handle is written last.
template <class Make>
Outcome add_buffer(Context &context, const NNTI_transport_t &transport, const NNTI_peer_t *peer, NNTI_buffer_t *out,
                   Make make) {
  if (out == nullptr) return face::null_argument();
  auto only = only_for(peer);
  if (!only.ok()) return only.error();
  Result<BufferHandle> made = make(*only);
  if (!made.ok()) return made.error();
  auto memory = context.memory_of(made->local());
  if (!memory.ok()) return memory.error();
  *out = handle_to_c(*made, myself(context), memory->front().data());
  out->transport_id = transport.id;
  return {};
}

}  // namespace
}  // namespace nnti::c_api

using namespace nnti::c_api;
namespace face = nnti::face;
using nnti::BufferHandle;
using nnti::Context;
using nnti::handle_from_c;
using nnti::ProcessId;
using nnti::Purpose;

extern "C" {

const char *nnti_last_error(void) { return face::last_error().c_str(); }

NNTI_result_t NNTI_init(const NNTI_transport_id_t trans_id, const char *my_url, NNTI_transport_t *trans_hdl) {
  return guarded([&]() -> Outcome {
    if (trans_hdl == nullptr) return face::null_argument();
    auto options = face::options_for(face::number_of(trans_id), my_url);
    if (!options.ok()) return options.error();
    auto context = Context::open(std::move(*options));
    if (!context.ok()) return context.error();
    if ((*context)->url().size() >= NNTI_URL_LEN) return {face::kENOTSUP, "the URLs of this transport are too long"};
    NNTI_transport_t handle{};
    handle.datatype = NNTI_dt_transport;
    handle.id = trans_id;
    handle.me = myself(**context);
    face::add_context(std::move(*context));
    *trans_hdl = handle;
    return {};
  });
}

NNTI_result_t NNTI_get_url(const NNTI_transport_t *trans_hdl, char *url, const uint64_t maxlen) {
  return on_transport(trans_hdl, [&](Context &context) { return face::copy_url(context, url, maxlen); });
}

NNTI_result_t NNTI_fini(const NNTI_transport_t *trans_hdl) {
  return guarded([&]() -> Outcome {
    if (trans_hdl == nullptr) return face::null_argument();
    auto context = face::remove_context({trans_hdl->me.peer.instance});
    if (!context) return face::not_open();
    context->close();
    return {};
  });
}

NNTI_result_t NNTI_connect(const NNTI_transport_t *trans_hdl, const char *url, const int timeout,
                           NNTI_peer_t *peer_hdl) {
  return on_transport(trans_hdl, [&](Context &context) -> Outcome {
    if (url == nullptr || peer_hdl == nullptr) return face::null_argument();
    auto deadline = face::deadline_of(timeout);
    if (!deadline.ok()) return deadline.error();
    auto peer = context.connect(url, *deadline);
    if (!peer.ok()) return peer.error();
    *peer_hdl = peer_to_c(**peer);
    return {};
  });
}

NNTI_result_t NNTI_disconnect(const NNTI_transport_t *trans_hdl, NNTI_peer_t *peer_hdl) {
  return on_transport(trans_hdl, [&](Context &context) -> Outcome {
    if (peer_hdl == nullptr) return face::null_argument();
    return context.disconnect({peer_hdl->peer.instance});
  });
}

NNTI_result_t NNTI_interrupt(const NNTI_transport_t *trans_hdl) {
  return on_transport(trans_hdl, [&](Context &context) -> Outcome {
    context.interrupt();
    return {};
  });
}

// --- buffers ----------------------------------------------------------------------------------------------------------

NNTI_result_t NNTI_register_memory(const NNTI_transport_t *trans_hdl, char *buffer, const uint64_t element_size,
                                   const uint64_t num_elements, const NNTI_buf_ops_t ops, const NNTI_peer_t *peer,
                                   NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](Context &context) {
    return add_buffer(context, *trans_hdl, peer, reg_buf, [&](ProcessId only) {
      return context.register_memory(buffer, element_size, num_elements, static_cast<Purpose>(ops), only);
    });
  });
}

NNTI_result_t NNTI_register_segments(const NNTI_transport_t *trans_hdl, char **segments,
                                     const uint64_t *segment_lengths, const uint64_t num_segments,
                                     const NNTI_buf_ops_t ops, const NNTI_peer_t *peer, NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](Context &context) -> Outcome {
    if (segments == nullptr || segment_lengths == nullptr) return face::null_argument();
    const auto pieces = face::pieces_of(segments, segment_lengths, num_segments);
    return add_buffer(context, *trans_hdl, peer, reg_buf, [&](ProcessId only) {
      return context.register_segments(pieces, static_cast<Purpose>(ops), only);
    });
  });
}

NNTI_result_t NNTI_alloc(const NNTI_transport_t *trans_hdl, const uint64_t element_size, const uint64_t num_elements,
                         const NNTI_buf_ops_t ops, const NNTI_peer_t *peer, NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](Context &context) {
    return add_buffer(context, *trans_hdl, peer, reg_buf, [&](ProcessId only) {
      return context.allocate(element_size, num_elements, static_cast<Purpose>(ops), only);
    });
  });
}

NNTI_result_t NNTI_unregister_memory(NNTI_buffer_t *reg_buf) {
  return on_owner(reg_buf, [&](Context &context) -> Outcome { return context.unregister(id_of(reg_buf)); });
}

NNTI_result_t NNTI_free(NNTI_buffer_t *reg_buf) { return NNTI_unregister_memory(reg_buf); }

NNTI_result_t NNTI_cancel(const NNTI_buffer_t *reg_buf) {
  return on_owner(reg_buf, [&](Context &context) -> Outcome { return context.cancel(id_of(reg_buf)); });
}

// --- operations -------------------------------------------------------------------------------------------------------

NNTI_result_t NNTI_send(const NNTI_peer_t *peer_hdl, const NNTI_buffer_t *msg_hdl, const NNTI_buffer_t *dest_hdl) {
  return on_owner(msg_hdl, [&](Context &context) -> Outcome {
    if (peer_hdl == nullptr) return face::null_argument();
    const auto destination = dest_hdl ? handle_from_c(*dest_hdl) : BufferHandle();
    return context.send({peer_hdl->peer.instance}, id_of(msg_hdl), dest_hdl ? &destination : nullptr);
  });
}

NNTI_result_t NNTI_put(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset) {
  return on_owner(src_buffer_hdl, [&](Context &context) -> Outcome {
    if (dest_buffer_hdl == nullptr) return face::null_argument();
    return context.put(id_of(src_buffer_hdl), src_offset, src_length, handle_from_c(*dest_buffer_hdl), dest_offset);
  });
}

NNTI_result_t NNTI_get(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset) {
  return on_owner(dest_buffer_hdl, [&](Context &context) -> Outcome {
    if (src_buffer_hdl == nullptr) return face::null_argument();
    return context.get(handle_from_c(*src_buffer_hdl), src_offset, src_length, id_of(dest_buffer_hdl), dest_offset);
  });
}

NNTI_result_t NNTI_scatter(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_length,
                           const NNTI_buffer_t **dest_buffer_list, const uint64_t dest_count) {
  return on_owner(src_buffer_hdl, [&](Context &context) -> Outcome {
    std::vector<BufferHandle> remotes;
    if (auto outcome = face::read_remotes(dest_buffer_list, dest_count, handle_from_c, remotes); !outcome.ok())
      return outcome;
    return context.scatter(id_of(src_buffer_hdl), src_length, remotes);
  });
}

NNTI_result_t NNTI_gather(const NNTI_buffer_t **src_buffer_list, const uint64_t src_length, const uint64_t src_count,
                          const NNTI_buffer_t *dest_buffer_hdl) {
  return on_owner(dest_buffer_hdl, [&](Context &context) -> Outcome {
    std::vector<BufferHandle> remotes;
    if (auto outcome = face::read_remotes(src_buffer_list, src_count, handle_from_c, remotes); !outcome.ok())
      return outcome;
    return context.gather(remotes, src_length, id_of(dest_buffer_hdl));
  });
}

NNTI_result_t NNTI_fetch_add(const NNTI_buffer_t *target_hdl, const uint64_t target_offset, const int64_t operand,
                             const NNTI_buffer_t *result_hdl, const uint64_t result_offset) {
  return on_owner(result_hdl, [&](Context &context) -> Outcome {
    if (target_hdl == nullptr) return face::null_argument();
    return context.fetch_add(handle_from_c(*target_hdl), target_offset, static_cast<uint64_t>(operand),
                             id_of(result_hdl), result_offset);
  });
}

NNTI_result_t NNTI_compare_swap(const NNTI_buffer_t *target_hdl, const uint64_t target_offset, const int64_t expected,
                                const int64_t desired, const NNTI_buffer_t *result_hdl, const uint64_t result_offset) {
  return on_owner(result_hdl, [&](Context &context) -> Outcome {
    if (target_hdl == nullptr) return face::null_argument();
    return context.compare_swap(handle_from_c(*target_hdl), target_offset, static_cast<uint64_t>(expected),
                                static_cast<uint64_t>(desired), id_of(result_hdl), result_offset);
  });
}

}  // extern "C"
