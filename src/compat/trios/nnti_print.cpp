// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti_fprint_types.h: handles and statuses as text.
#include "compat/trios/print.hpp"
#include "nnti/c/face.hpp"

#include <Trios_nnti_fprint_types.h>

#include <cstring>

namespace nnti::trios {

void describe(Page &page, const NNTI_remote_addr_t &addr) {
  page.line("transport_id", static_cast<int>(addr.transport_id));
  page.line("buf", fmt::format("{:#x}", addr.buf));
  page.line("size", addr.size);
}

void describe(Page &page, const NNTI_peer_t &peer) {
  page.line("url", std::string_view(peer.url, strnlen(peer.url, sizeof peer.url)));
  page.line("transport_id", static_cast<int>(peer.peer.transport_id));
  page.line("instance", fmt::format("{:#x}", peer.peer.instance));
  if (peer.peer.transport_id == NNTI_TRANSPORT_MPI) page.line("rank", peer.peer.NNTI_remote_process_t_u.mpi.rank);
}

void describe(Page &page, const NNTI_buffer_t &buffer) {
  page.line("transport_id", static_cast<int>(buffer.transport_id));
  page.line("ops", static_cast<unsigned>(buffer.ops));
  page.line("payload_size", buffer.payload_size);
  page.line("num_elements", buffer.num_elements);
  page.line("payload", fmt::format("{:#x}", buffer.payload));
  page.line("segments", buffer.buffer_segments.NNTI_remote_addr_array_t_len);
  page.line("buffer_owner.url",
            std::string_view(buffer.buffer_owner.url, strnlen(buffer.buffer_owner.url, NNTI_URL_LEN)));
}

void describe(Page &page, const NNTI_status_t &status) {
  page.line("op", static_cast<unsigned>(status.op));
  page.line("result", nnti_err_str(status.result));
  page.line("start", fmt::format("{:#x}", status.start));
  page.line("offset", status.offset);
  page.line("length", status.length);
  page.line("src.url", std::string_view(status.src.url, strnlen(status.src.url, NNTI_URL_LEN)));
  page.line("dest.url", std::string_view(status.dest.url, strnlen(status.dest.url, NNTI_URL_LEN)));
}

}  // namespace nnti::trios

const char *nnti_err_str(const int rc) { return nnti::face::name_of(rc); }

TRIOS_PRINTS(fprint_NNTI_remote_addr, NNTI_remote_addr_t)
TRIOS_PRINTS(fprint_NNTI_peer, NNTI_peer_t)
TRIOS_PRINTS(fprint_NNTI_buffer, NNTI_buffer_t)
TRIOS_PRINTS(fprint_NNTI_status, NNTI_status_t)
