// SPDX-License-Identifier: BSD-3-Clause
// NNTI_dt_unpack and NNTI_dt_free.
#include <Trios_nnti.h>

#include <base/testing/fuzz.hpp>

namespace {

using nessie::fuzz::Bytes;

/// Room for whichever handle the bytes claim to be.
union Handle {
  NNTI_datatype_t datatype;
  NNTI_transport_t transport;
  NNTI_peer_t peer;
  NNTI_buffer_t buffer;
  NNTI_work_request_t request;
  NNTI_status_t status;
};

NNTI_transport_t &transport() {
  static NNTI_transport_t opened = [] {
    NNTI_transport_t handle{};
    (void)NNTI_init(NNTI_TRANSPORT_INPROC, nullptr, &handle);
    return handle;
  }();
  return opened;
}

template <class T> Bytes packed(T &handle) {
  uint64_t size = 0;
  if (NNTI_dt_sizeof(&transport(), &handle, &size) != NNTI_OK) return {};
  Bytes bytes(size);
  if (NNTI_dt_pack(&transport(), &handle, reinterpret_cast<char *>(bytes.data()), size) != NNTI_OK) return {};
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  Handle handle{};
  const auto bytes = std::as_bytes(std::span(data, size));
  Bytes copy(bytes.begin(), bytes.end());  // so that a read beyond the end is seen
  auto *text = reinterpret_cast<char *>(copy.data());
  if (NNTI_dt_unpack(&transport(), &handle, text, copy.size()) != NNTI_OK) return 0;
  Bytes again;
  switch (handle.datatype) {
    case NNTI_dt_transport: again = packed(handle.transport); break;
    case NNTI_dt_peer: again = packed(handle.peer); break;
    case NNTI_dt_buffer: again = packed(handle.buffer); break;
    case NNTI_dt_work_request: again = packed(handle.request); break;
    case NNTI_dt_status: again = packed(handle.status); break;
  }
  // What was unpacked can be packed, unless it claims to be a buffer of ours that is none.
  if (again.size() > copy.size() || (again.empty() && handle.datatype != NNTI_dt_buffer)) __builtin_trap();
  (void)NNTI_dt_free(&transport(), &handle);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  static char memory[4][64];
  char *pieces[] = {memory[0], memory[2]};
  const uint64_t lengths[] = {10, 20};
  NNTI_buffer_t buffer{}, segments{};
  (void)NNTI_register_memory(&transport(), memory[0], 64, 4, NNTI_PUT_DST, &buffer);
  (void)NNTI_register_segments(&transport(), pieces, lengths, 2, NNTI_GET_SRC, &segments);
  NNTI_work_request_t request{};
  (void)NNTI_create_work_request(&buffer, &request);
  NNTI_status_t status{};
  status.datatype = NNTI_dt_status;
  status.src = status.dest = transport().me;
  return {packed(transport()), packed(transport().me), packed(buffer),
          packed(segments),    packed(request),        packed(status)};
}
