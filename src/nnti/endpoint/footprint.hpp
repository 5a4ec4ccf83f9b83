// SPDX-License-Identifier: BSD-3-Clause
// What a peer costs in memory, by what the transport allocates for it. `nessie bench nnti-memory` holds it against what
// a process really grows by.
#pragma once

#include "nnti/transports/shm/layout.hpp"

namespace nnti::shm {

/// Bytes of one process, for each of its peers. Memory that two processes map counts half in each.
struct Footprint {
  double connected = 0;  ///< nothing was sent
  double used = 0;       ///< messages went both ways
};
Footprint footprint_of_peer(ChannelKind channel, std::uint64_t slots);
/// Bytes of one process, however many peers use its shared queue.
std::size_t footprint_of_queue(std::uint64_t entries);

}  // namespace nnti::shm
