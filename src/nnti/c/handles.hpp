// SPDX-License-Identifier: BSD-3-Clause
// The C handles of nnti/nnti.h and their C++ meanings, for the C faces of NNTI and NSSI.
#pragma once

#include <nnti/c/paper_types.hpp>

#include <nnti/nnti.h>
#include <nnti/context.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nnti {

/// A handle of the peer `id` of some endpoint of this process. `instance` names the peer's process to other processes;
/// 0 where nobody asks. A URL that does not fit the handle is left out.
NNTI_peer_t peer_to_c(PeerId id, std::string_view url, std::uint64_t instance = 0);
NNTI_peer_t peer_to_c(const PeerInfo &peer);
NNTI_peer_t myself(const Context &context);
inline PeerId peer_from_c(const NNTI_peer_t &peer) { return {peer.peer.local_id}; }

/// A handle of one element, owned by `owner`, that carries `remote`.
NNTI_buffer_t buffer_to_c(const RemoteBuffer &remote, const NNTI_peer_t &owner);
RemoteBuffer buffer_from_c(const NNTI_buffer_t &buffer);

/// A handle as the engine takes it. Nothing in it is trusted.
BufferHandle handle_from_c(const NNTI_buffer_t &buffer);
NNTI_buffer_t handle_to_c(const BufferHandle &handle, const NNTI_peer_t &owner, const void *payload);

/// The purposes PUT_DST, GET_SRC that `rights` allow, and back.
NNTI_buf_ops_t ops_of(Rights rights);
Rights rights_of(NNTI_buf_ops_t ops);

/// What EndpointOptions::transports must be for `id` (empty: all); nothing if there is no such transport here.
std::optional<std::vector<std::string>> transports_of(NNTI_transport_id_t id);

NNTI_result_t result_of(Code code);

}  // namespace nnti
