// SPDX-License-Identifier: BSD-3-Clause
// By which names a launcher may mean this host.
#pragma once

#include <string>

namespace nessie::cli {

/// Its name, with or without a domain, localhost, or one of its addresses. Nobody is asked to resolve a name.
bool is_this_host(const std::string &host);

}  // namespace nessie::cli
