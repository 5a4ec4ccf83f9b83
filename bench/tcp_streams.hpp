// SPDX-License-Identifier: BSD-3-Clause
// What a cable carries: bytes through plain TCP connections, from memory into memory.
#pragma once

#include "two_hosts.hpp"

#include <nessie/result.hpp>

#include <cstdint>

namespace bench {

/// What so many connections carry together, of `bytes` from host 0 into memory of host 1 that was used before, in MB/s.
nessie::Result<double> tcp_bandwidth(const TwoHosts &hosts, int streams, std::uint64_t bytes);

}  // namespace bench
