// SPDX-License-Identifier: BSD-3-Clause
// Servers of streams as processes.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace streams {

/// Where a server announces itself if nobody says where: the first of them, to this user's other programs on this node
/// (places.hpp); the others nowhere, as the first one knows them. kInvalidArgument: a setting cannot be read. kIo: the
/// folder cannot be made.
nessie::Result<std::vector<std::string>> places_to_announce(const nessie::Config &config);

/// Whether it is the one of several that keeps account of streams, and so the one that hands them on. kInvalidArgument:
/// as places_to_announce().
nessie::Result<bool> is_first_server(const nessie::Config &config);

}  // namespace streams
