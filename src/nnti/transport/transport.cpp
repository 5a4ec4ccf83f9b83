// SPDX-License-Identifier: BSD-3-Clause
// What a connection answers to what its transport cannot do.
#include "nnti/transport/transport.hpp"

namespace nnti {

Result<PeerView> Connection::view(const RemoteBuffer &, std::uint64_t, std::size_t) {
  return Error{Code::kUnsupported, "this memory of the peer is not mapped here"};
}

Status Connection::give_descriptor(std::uint64_t, int) {
  return Error{Code::kUnsupported, "descriptors are given to processes of this node only"};
}

Result<int> Connection::take_descriptor(std::uint64_t) {
  return Error{Code::kNotFound, "the peer is not on this node, and gives no descriptors"};
}

Result<pid_t> Connection::process() const {
  return Error{Code::kUnsupported, "the peer is not on this node: nobody vouches for its process"};
}

}  // namespace nnti
