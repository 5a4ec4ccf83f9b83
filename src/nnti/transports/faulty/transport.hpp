// SPDX-License-Identifier: BSD-3-Clause
// faulty+X: the transport X through a network that loses, doubles, delays and overtakes messages, fails transfers,
// breaks connections and falls silent, as often as the settings nnti.faulty.* say. For tests, of Nessie and of what
// stands on it. README.md has the settings.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti::faulty {

/// "shm" for "faulty+shm"; empty for a name that is no faulty transport's.
std::optional<std::string_view> name_of_inner(std::string_view name);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

}  // namespace nnti::faulty
