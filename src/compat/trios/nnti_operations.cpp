// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti.h: send, put, get, scatter, gather, atomics.
#include "compat/trios/nnti.hpp"

namespace nnti::trios {

void fill(NNTI_work_request_t *wr, const Transport &transport, const NNTI_buffer_t *buffer, NNTI_buf_ops_t ops,
          RequestId request) {
  *wr = {};
  wr->datatype = NNTI_dt_work_request;
  wr->transport_id = transport.handle.id;
  wr->reg_buf = const_cast<NNTI_buffer_t *>(buffer);
  wr->ops = ops;
  wr->result = NNTI_OK;
  wr->transport_private = request.value;
}

namespace {

/// Starts an operation on our `buffer` and fills in its work request.
template <class Start>
NNTI_result_t start(const NNTI_buffer_t *buffer, NNTI_buf_ops_t ops, NNTI_work_request_t *wr, Start begin) {
  return on_owner(buffer, [&](const TransportPtr &transport) -> Outcome {
    if (wr == nullptr) return face::null_argument();
    RequestId request;
    Outcome outcome = begin(*transport->context, &request);
    if (outcome.ok()) fill(wr, *transport, buffer, ops, request);
    return outcome;
  });
}

/// An atomic operation on a variable of a peer.
template <class Begin>
NNTI_result_t start_atomic(const NNTI_transport_t *handle, const NNTI_peer_t *peer, uint64_t target, uint64_t result,
                           NNTI_work_request_t *wr, Begin begin) {
  return on_transport(handle, [&](const TransportPtr &transport) -> Outcome {
    if (peer == nullptr || wr == nullptr) return face::null_argument();
    constexpr uint64_t kWord = sizeof(uint64_t);
    if (target > UINT64_MAX / kWord / 2 || result > UINT64_MAX / kWord / 2)
      return {face::kEINVAL, "there is no such atomic variable"};
    Context &context = *transport->context;
    RequestId request;
    Outcome outcome = begin(context, context.variables_of({peer->peer.instance}), target * kWord,
                            context.variables_of(context.id()).local(), result * kWord, &request);
    if (outcome.ok()) fill(wr, *transport, nullptr, NNTI_ATOMICS, request);
    return outcome;
  });
}

}  // namespace
}  // namespace nnti::trios

using namespace nnti::trios;
using nnti::BufferHandle;
using nnti::BufferId;
using nnti::Context;
using nnti::RequestId;
namespace face = nnti::face;

extern "C" {

NNTI_result_t NNTI_send(const NNTI_peer_t *peer_hdl, const NNTI_buffer_t *msg_hdl, const NNTI_buffer_t *dest_hdl,
                        NNTI_work_request_t *wr) {
  return start(msg_hdl, NNTI_SEND_SRC, wr, [&](Context &context, RequestId *request) -> Outcome {
    if (peer_hdl == nullptr) return face::null_argument();
    const auto destination = dest_hdl ? handle_of(*dest_hdl) : BufferHandle();
    return context.send({peer_hdl->peer.instance}, id_of(msg_hdl), dest_hdl ? &destination : nullptr, request);
  });
}

NNTI_result_t NNTI_put(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset, NNTI_work_request_t *wr) {
  return start(src_buffer_hdl, NNTI_PUT_SRC, wr, [&](Context &context, RequestId *request) -> Outcome {
    if (dest_buffer_hdl == nullptr) return face::null_argument();
    return context.put(id_of(src_buffer_hdl), src_offset, src_length, handle_of(*dest_buffer_hdl), dest_offset,
                       request);
  });
}

NNTI_result_t NNTI_get(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_offset, const uint64_t src_length,
                       const NNTI_buffer_t *dest_buffer_hdl, const uint64_t dest_offset, NNTI_work_request_t *wr) {
  return start(dest_buffer_hdl, NNTI_GET_DST, wr, [&](Context &context, RequestId *request) -> Outcome {
    if (src_buffer_hdl == nullptr) return face::null_argument();
    return context.get(handle_of(*src_buffer_hdl), src_offset, src_length, id_of(dest_buffer_hdl), dest_offset,
                       request);
  });
}

NNTI_result_t NNTI_scatter(const NNTI_buffer_t *src_buffer_hdl, const uint64_t src_length,
                           const NNTI_buffer_t **dest_buffer_list, const uint64_t dest_count, NNTI_work_request_t *wr) {
  return start(src_buffer_hdl, NNTI_PUT_SRC, wr, [&](Context &context, RequestId *request) -> Outcome {
    std::vector<BufferHandle> remotes;
    if (auto outcome = face::read_remotes(dest_buffer_list, dest_count, handle_of, remotes); !outcome.ok())
      return outcome;
    return context.scatter(id_of(src_buffer_hdl), src_length, remotes, request);
  });
}

NNTI_result_t NNTI_gather(const NNTI_buffer_t **src_buffer_list, const uint64_t src_length, const uint64_t src_count,
                          const NNTI_buffer_t *dest_buffer_hdl, NNTI_work_request_t *wr) {
  return start(dest_buffer_hdl, NNTI_GET_DST, wr, [&](Context &context, RequestId *request) -> Outcome {
    std::vector<BufferHandle> remotes;
    if (auto outcome = face::read_remotes(src_buffer_list, src_count, handle_of, remotes); !outcome.ok())
      return outcome;
    return context.gather(remotes, src_length, id_of(dest_buffer_hdl), request);
  });
}

// --- atomic variables -------------------------------------------------------------------------------------------------

NNTI_result_t NNTI_atomic_set_callback(const NNTI_transport_t *trans_hdl, const uint64_t local_atomic,
                                       NNTI_callback_fn_t cbfunc, void *context) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    std::function<void()> changed;
    if (cbfunc) changed = [=, handle = transport->handle] { (void)cbfunc(&handle, local_atomic, context); };
    return transport->context->on_variable_changed(local_atomic, std::move(changed));
  });
}

NNTI_result_t NNTI_atomic_read(const NNTI_transport_t *trans_hdl, const uint64_t local_atomic, int64_t *value) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (value == nullptr) return face::null_argument();
    auto read = transport->context->read_variable(local_atomic);
    if (!read.ok()) return read.error();
    *value = *read;
    return {};
  });
}

NNTI_result_t NNTI_atomic_fop(const NNTI_transport_t *trans_hdl, const NNTI_peer_t *peer_hdl,
                              const uint64_t target_atomic, const uint64_t result_atomic, const int64_t operand,
                              const NNTI_atomic_op_t op, NNTI_work_request_t *wr) {
  return start_atomic(trans_hdl, peer_hdl, target_atomic, result_atomic, wr,
                      [&](Context &context, const BufferHandle &target, uint64_t offset, BufferId result,
                          uint64_t result_offset, RequestId *request) -> Outcome {
                        if (op != NNTI_ATOMIC_FADD) return {face::kEINVAL, "there is no such atomic operation"};
                        return context.fetch_add(target, offset, static_cast<uint64_t>(operand), result, result_offset,
                                                 request);
                      });
}

NNTI_result_t NNTI_atomic_cswap(const NNTI_transport_t *trans_hdl, const NNTI_peer_t *peer_hdl,
                                const uint64_t target_atomic, const uint64_t result_atomic,
                                const int64_t compare_operand, const int64_t swap_operand, NNTI_work_request_t *wr) {
  return start_atomic(trans_hdl, peer_hdl, target_atomic, result_atomic, wr,
                      [&](Context &context, const BufferHandle &target, uint64_t offset, BufferId result,
                          uint64_t result_offset, RequestId *request) -> Outcome {
                        return context.compare_swap(target, offset, static_cast<uint64_t>(compare_operand),
                                                    static_cast<uint64_t>(swap_operand), result, result_offset,
                                                    request);
                      });
}

}  // extern "C"
