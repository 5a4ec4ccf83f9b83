// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti.h: transports, peers, buffers.
#include "compat/trios/atomic_variables.hpp"
#include "compat/trios/nnti.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace nnti::trios {

namespace {

constexpr std::array<std::string_view, 10> kOldTransports = {"ptl", "portals", "ib",   "gni",     "gemini",
                                                             "mpi", "dcmf",    "pami", "bgqpami", "local"};

struct Transports {
  std::mutex mutex;
  std::array<TransportPtr, NNTI_TRANSPORT_COUNT> open;
};

/// Never destroyed: a thread may still be inside a call while the process exits.
Transports &transports() {
  static auto *all = new Transports;
  return *all;
}

bool is_id(int id) { return id > 0 && id < NNTI_TRANSPORT_COUNT; }

Result<TransportPtr> open(int id, const char *my_url) {
  auto options = face::options_for(id, my_url, kOldTransports);
  if (!options.ok()) return options.error();
  options->atomic_variables = variables_wanted();
  auto context = Context::open(std::move(*options));
  if (!context.ok()) return context.error();
  if ((*context)->url().size() >= NNTI_URL_LEN)
    return Error{Code::kUnsupported, "the URLs of this transport are too long"};
  auto transport = std::make_shared<Transport>();
  transport->context = std::move(*context);
  transport->handle.datatype = NNTI_dt_transport;
  transport->handle.id = static_cast<NNTI_transport_id_t>(id);
  transport->handle.me = peer_of(*transport, transport->context->id(), transport->context->url());
  return transport;
}

/// From mpi://<world>/<rank>/<port>.
void fill_process(NNTI_remote_process_t &process, std::string_view url) {
  constexpr std::string_view kMpi = "mpi://";
  if (!url.starts_with(kMpi)) return;
  const auto end_of_world = url.find('/', kMpi.size());
  if (end_of_world == url.npos) return;
  process.NNTI_remote_process_t_u.mpi.rank = std::atoi(std::string(url.substr(end_of_world + 1)).c_str());
}

NNTI_remote_addr_t segment_of(NNTI_transport_id_t id, std::span<const std::byte> memory) {
  NNTI_remote_addr_t segment{};
  segment.transport_id = id;
  segment.buf = reinterpret_cast<std::uintptr_t>(memory.data());
  segment.size = memory.size();
  if (id == NNTI_TRANSPORT_MPI) segment.NNTI_remote_addr_t_u.mpi.size = segment.size;
  return segment;
}

/// The handle of a buffer that was `made`; written last.
Outcome describe(const TransportPtr &transport, const Result<BufferHandle> &made, NNTI_buffer_t *out) {
  if (!made.ok()) return made.error();
  auto memory = transport->context->memory_of(made->local());
  if (!memory.ok()) return memory.error();
  std::vector<NNTI_remote_addr_t> segments;
  for (const auto &piece : *memory) segments.push_back(segment_of(transport->handle.id, piece));
  NNTI_buffer_t buffer{};
  buffer.datatype = NNTI_dt_buffer;
  buffer.transport_id = transport->handle.id;
  buffer.buffer_owner = transport->handle.me;
  buffer.ops = static_cast<NNTI_buf_ops_t>(made->purposes);
  buffer.payload_size = made->element_size;
  buffer.num_elements = made->elements;
  buffer.payload = segments[0].buf;
  buffer.transport_private = made->id;
  std::lock_guard guard(transport->mutex);
  auto &kept = transport->segments[made->id] = std::move(segments);
  buffer.buffer_segments = {static_cast<unsigned>(kept.size()), kept.data()};
  *out = buffer;
  return {};
}

Result<TransportPtr> open_once(int id, const char *my_url, bool is_for_nssi) {
  std::lock_guard guard(transports().mutex);
  TransportPtr known = is_id(id) ? transports().open[static_cast<std::size_t>(id)] : nullptr;
  if (known) {
    known->is_for_nssi &= is_for_nssi;
    return known;
  }
  auto opened = open(id, my_url);
  if (!opened.ok()) return opened;
  (*opened)->is_for_nssi = is_for_nssi;
  face::add_context((*opened)->context);
  return transports().open[static_cast<std::size_t>(id)] = *opened;
}

Outcome close_transport(const TransportPtr &transport) {
  {
    std::lock_guard guard(transports().mutex);
    auto &open = transports().open[transport->handle.id];
    if (open != transport) return face::not_open();
    open.reset();
  }
  (void)face::remove_context(transport->context->id());
  transport->context->close();
  return {};
}

}  // namespace

Outcome open_for_nssi(const NNTI_transport_t &handle) {
  auto opened = open_once(handle.id, nullptr, true);
  return opened.ok() ? Outcome() : Outcome(opened.error());
}

void close_for_nssi(int id) {
  auto transport = find_transport(id);
  if (transport && transport->is_for_nssi) (void)close_transport(transport);
}

std::size_t variables_wanted() {
  constexpr std::size_t kDefault = 512, kMost = 1 << 20;
  const char *text = std::getenv("TRIOS_NNTI_MIN_ATOMIC_VARS");
  const auto number = text ? std::strtoull(text, nullptr, 10) : 0;
  return std::min(std::max<std::size_t>(number, kDefault), kMost);
}

TransportPtr find_transport(int id) {
  std::lock_guard guard(transports().mutex);
  return is_id(id) ? transports().open[static_cast<std::size_t>(id)] : nullptr;
}

TransportPtr transport_of(ProcessId process) {
  std::lock_guard guard(transports().mutex);
  for (const auto &transport : transports().open)
    if (transport && transport->context->id() == process) return transport;
  return nullptr;
}

NNTI_peer_t peer_of(const Transport &transport, ProcessId process, std::string_view url) {
  NNTI_peer_t peer{};
  peer.datatype = NNTI_dt_peer;
  if (url.size() < sizeof peer.url) url.copy(peer.url, url.size());
  peer.peer.transport_id = transport.handle.id;
  peer.peer.instance = process.value;
  fill_process(peer.peer, url);
  return peer;
}

NNTI_peer_t peer_of(const Transport &transport, const PeerInfo *peer) {
  return peer ? peer_of(transport, peer->process, peer->url) : peer_of(transport, {}, {});
}

BufferHandle handle_of(const NNTI_buffer_t &buffer) {
  BufferHandle handle;
  handle.owner = {buffer.buffer_owner.peer.instance};
  handle.id = buffer.transport_private;
  handle.purposes = static_cast<Purpose>(buffer.ops);
  handle.element_size = buffer.payload_size;
  handle.elements = buffer.num_elements;
  return handle;
}

}  // namespace nnti::trios

using namespace nnti::trios;
using nnti::Purpose;
namespace face = nnti::face;

extern "C" {

NNTI_result_t NNTI_init(const NNTI_transport_id_t trans_id, const char *my_url, NNTI_transport_t *trans_hdl) {
  return guarded([&]() -> Outcome {
    if (trans_hdl == nullptr) return face::null_argument();
    auto transport = open_once(face::number_of(trans_id), my_url, false);
    if (!transport.ok()) return transport.error();
    *trans_hdl = (*transport)->handle;
    return {};
  });
}

NNTI_result_t NNTI_get_url(const NNTI_transport_t *trans_hdl, char *url, const uint64_t maxlen) {
  return on_transport(trans_hdl,
                      [&](const TransportPtr &transport) { return face::copy_url(*transport->context, url, maxlen); });
}

NNTI_result_t NNTI_fini(const NNTI_transport_t *trans_hdl) { return on_transport(trans_hdl, close_transport); }

NNTI_result_t NNTI_connect(const NNTI_transport_t *trans_hdl, const char *url, const int timeout,
                           NNTI_peer_t *peer_hdl) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (url == nullptr || peer_hdl == nullptr) return face::null_argument();
    auto deadline = face::deadline_of(timeout);
    if (!deadline.ok()) return deadline.error();
    auto peer = transport->context->connect(url, *deadline);
    if (!peer.ok()) return peer.error();
    *peer_hdl = peer_of(*transport, peer->get());
    return {};
  });
}

NNTI_result_t NNTI_disconnect(const NNTI_transport_t *trans_hdl, NNTI_peer_t *peer_hdl) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (peer_hdl == nullptr) return face::null_argument();
    return transport->context->disconnect({peer_hdl->peer.instance});
  });
}

NNTI_result_t NNTI_interrupt(const NNTI_transport_t *trans_hdl) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    transport->context->interrupt();
    return {};
  });
}

// --- buffers ----------------------------------------------------------------------------------------------------------

NNTI_result_t NNTI_alloc(const NNTI_transport_t *trans_hdl, const uint64_t element_size, const uint64_t num_elements,
                         const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (reg_buf == nullptr) return face::null_argument();
    return describe(transport, transport->context->allocate(element_size, num_elements, static_cast<Purpose>(ops)),
                    reg_buf);
  });
}

NNTI_result_t NNTI_register_memory(const NNTI_transport_t *trans_hdl, char *buffer, const uint64_t element_size,
                                   const uint64_t num_elements, const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (reg_buf == nullptr) return face::null_argument();
    if (ops & NNTI_BOP_RECV_QUEUE) return {face::kEINVAL, "a receive queue comes from NNTI_alloc"};
    auto made = transport->context->register_memory(buffer, element_size, num_elements, static_cast<Purpose>(ops));
    return describe(transport, made, reg_buf);
  });
}

NNTI_result_t NNTI_register_segments(const NNTI_transport_t *trans_hdl, char **segments,
                                     const uint64_t *segment_lengths, const uint64_t num_segments,
                                     const NNTI_buf_ops_t ops, NNTI_buffer_t *reg_buf) {
  return on_transport(trans_hdl, [&](const TransportPtr &transport) -> Outcome {
    if (segments == nullptr || segment_lengths == nullptr || reg_buf == nullptr) return face::null_argument();
    const auto pieces = face::pieces_of(segments, segment_lengths, num_segments);
    return describe(transport, transport->context->register_segments(pieces, static_cast<Purpose>(ops)), reg_buf);
  });
}

NNTI_result_t NNTI_unregister_memory(NNTI_buffer_t *reg_buf) {
  return on_owner(reg_buf, [&](const TransportPtr &transport) -> Outcome {
    auto status = transport->context->unregister(id_of(reg_buf));
    if (!status.ok()) return status;
    std::lock_guard guard(transport->mutex);
    transport->segments.erase(reg_buf->transport_private);
    reg_buf->buffer_segments = {0, nullptr};
    return {};
  });
}

NNTI_result_t NNTI_free(NNTI_buffer_t *reg_buf) { return NNTI_unregister_memory(reg_buf); }

}  // extern "C"
