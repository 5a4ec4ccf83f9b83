// SPDX-License-Identifier: BSD-3-Clause
// The sockets beneath libfabric's TCP, to end what libfabric itself cannot end.
//
// Design notes. libfabric before 1.18 frees a read twice, and crashes, if a connection is closed after a part of the
// answer has come (in its words: "RX entry is freed twice"). It is right if the socket ends first: then the reads fail
// one by one, and nothing is left that closing could free. libfabric hands no sockets out; the kernel lists them.
#pragma once

#include <cstddef>
#include <span>

namespace nnti::ofi {

/// Shuts down this process's TCP connections between two fabric addresses, each a sockaddr: those from here to the port
/// of `theirs`, and those that came to the port of `ours` from the same host (from others there, too: a connection that
/// came has no port that tells whose it is). Any thread.
void shut_sockets_between(std::span<const std::byte> ours, std::span<const std::byte> theirs);

}  // namespace nnti::ofi
