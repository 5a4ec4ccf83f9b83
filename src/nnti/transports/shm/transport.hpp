// SPDX-License-Identifier: BSD-3-Clause
// shm: processes of one node. README.md, next to this file, says how it works and what it promises.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti::shm {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

}  // namespace nnti::shm
