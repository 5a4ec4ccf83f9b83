// SPDX-License-Identifier: BSD-3-Clause
// What `nessie info` has found out, and how it is printed.
#pragma once

#include "probe.hpp"

#include <nnti/nnti.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

/// All that `nessie info` says.
struct InfoReport {
  std::vector<nnti::TransportInfo> transports;  ///< in order of preference
  std::vector<nnti::Fact> thresholds, limits;
  std::string cross_memory_attach;
  std::string peer;                     ///< its URL; empty: a process started for the purpose
  std::vector<Probe> probes;            ///< one for each URL of the peer
  std::optional<Result<Probe>> chosen;  ///< over the whole list; empty: nobody was connected to
};

void print_text(const InfoReport &report);
void print_json(const InfoReport &report);

}  // namespace nessie::cli
