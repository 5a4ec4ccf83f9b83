// SPDX-License-Identifier: BSD-3-Clause
// inproc: endpoints of one process, each driven by a thread of its own or all by one. For tests, and for embedding a
// service in its client. Address: the endpoint's name within the process.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti::inproc {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

}  // namespace nnti::inproc
