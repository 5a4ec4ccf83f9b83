// SPDX-License-Identifier: BSD-3-Clause
// Where a run's staging servers are, as its programs ask.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <nessie/result.hpp>
#include <nssi/nssi.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace launch {

/// How long a run's servers may take to start: run.start_timeout. kInvalidArgument.
nessie::Result<std::chrono::milliseconds> start_timeout(const nessie::Config &config);

/// How NESSIE_SERVERS names a run that knows where its servers are; behind it stands the run's URL.
inline constexpr std::string_view kScheme = "launch:";

/// The servers' URLs in `list` (NESSIE_SERVERS), which white space separates; those that the run knows, if it is
/// `launch:URL`: waits until all have started. "|" stands for ";". kTimedOut: they have not. kNotFound: one will never
/// start; the message says why, or the list is empty. kPeerLost: the run is gone. Otherwise as Runtime::connect().
nessie::Result<std::vector<std::string>> servers_in(std::string list, nssi::Runtime &runtime,
                                                    nessie::Deadline deadline);

}  // namespace launch
