// SPDX-License-Identifier: BSD-3-Clause
// What the network libraries' own measuring tools say of them: ucx_perftest (of active messages, as UCX has no others
// that are as fast) and libfabric's fi_pingpong, as their packagers built them. Each runs as two processes, bound to
// the cores that everybody's are bound to.
#pragma once

#include "rivals.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <vector>

namespace bench {

enum class Tool { kUcxPerftest, kFiPingpong };
const char *name_of(Tool tool);

/// Those that are installed; of the others it says aloud that they are missed.
std::vector<Tool> tools_here();

/// Half round trips by size, polling, in microseconds. kIo: the tool failed, or wrote what was not understood.
nessie::Result<FiguresBySize> half_round_trips(Tool tool, Network network, const std::vector<std::uint64_t> &sizes);

}  // namespace bench
