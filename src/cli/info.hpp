// SPDX-License-Identifier: BSD-3-Clause
// nessie info: how processes reach each other from this machine, why so, and how well.
#pragma once

#include "probe.hpp"

#include <nnti/nnti.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

struct InfoOptions {
  std::string url;   ///< whom to connect to; empty: a process forked for the purpose
  bool all = false;  ///< with `url`: test every URL of the list, not only the chosen one
  bool test = true;  ///< measure
  bool json = false;
  bool settings = false;  ///< list the settings instead
};

int info(const InfoOptions &options);

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
