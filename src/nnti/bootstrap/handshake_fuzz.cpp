// SPDX-License-Identifier: BSD-3-Clause
// What a peer says to a connector during the handshake.
#include "nnti/bootstrap/conversations.hpp"

#include <sys/socket.h>

#include <array>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) return 0;
  nessie::Fd ours(ends[0]), theirs(ends[1]);
  (void)!::send(theirs.get(), data, size, MSG_NOSIGNAL);
  theirs.reset();
  nessie::Credential credential;
  nnti::bootstrap::Connector connector(std::move(ours), "shm", credential, {});
  (void)connector.advance();
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return nnti::bootstrap::conversations(); }
