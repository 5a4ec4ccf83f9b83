// SPDX-License-Identifier: BSD-3-Clause
// How a workload is to be run, and what the workloads are.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>
#include <nnti/nnti.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Options {
  bool json = false;
  bool quick = false;  ///< under a minute
  bool once = false;   ///< as small as it gets: only to see that it works
  std::string transport = "shm";
  std::vector<const nnti::TransportKind *> extra_transports;  ///< that this program was linked with
  std::map<std::string, std::string> settings;                ///< of the endpoints of all but the staging workloads
  std::string plot;                                           ///< the picture's file; empty: none
  int processes = 0;                                          ///< of a staging workload, or of launch; 0: its own
  int servers = 0;                                            ///< of launch; 0: its own
  int repetitions(int full, int in_quick) const { return once ? 1 : quick ? in_quick : full; }
  /// Over the transport, with the settings. `spin_us`: nnti.spin_us; empty: the default.
  nnti::EndpointOptions endpoint(bool listen, const char *spin_us) const;
};

/// Measures and fills the report; an error if what it needs is missing or fails.
using Workload = nessie::Status (*)(const Options &options, Report &report);

nessie::Status rpc_latency(const Options &options, Report &report);
nessie::Status rpc_rate(const Options &options, Report &report);
nessie::Status rpc_memory(const Options &options, Report &report);
nessie::Status rpc_statistics(const Options &options, Report &report);
nessie::Status rpc_python(const Options &options, Report &report);
nessie::Status rpc_size(const Options &options, Report &report);
nessie::Status access_latency(const Options &options, Report &report);
nessie::Status nnti_latency(const Options &options, Report &report);
nessie::Status nnti_message_rate(const Options &options, Report &report);
nessie::Status nnti_bandwidth(const Options &options, Report &report);
nessie::Status nnti_multi_latency(const Options &options, Report &report);
nessie::Status nnti_pairs(const Options &options, Report &report);
nessie::Status nnti_clients(const Options &options, Report &report);
nessie::Status nnti_protocols(const Options &options, Report &report);
nessie::Status nnti_memory(const Options &options, Report &report);
nessie::Status nnti_idle(const Options &options, Report &report);
nessie::Status commsplitter(const Options &options, Report &report);
nessie::Status xdr_arrays(const Options &options, Report &report);
nessie::Status xfer(const Options &options, Report &report);
nessie::Status staging_s3d(const Options &options, Report &report);
nessie::Status staging_streams(const Options &options, Report &report);
nessie::Status staging_contiguous(const Options &options, Report &report);
nessie::Status staging_blocks(const Options &options, Report &report);
nessie::Status staging_climate(const Options &options, Report &report);
nessie::Status staging_flash(const Options &options, Report &report);
nessie::Status staging_restart(const Options &options, Report &report);
nessie::Status staging_overlap(const Options &options, Report &report);
nessie::Status staging_durability(const Options &options, Report &report);
nessie::Status staging_spill(const Options &options, Report &report);
nessie::Status staging_recovery(const Options &options, Report &report);
nessie::Status streams_pair(const Options &options, Report &report);
nessie::Status streams_coupling(const Options &options, Report &report);
nessie::Status streams_dart(const Options &options, Report &report);
nessie::Status streams_logged(const Options &options, Report &report);
nessie::Status streams_view(const Options &options, Report &report);
nessie::Status launch(const Options &options, Report &report);

/// Shows on a terminal how far a long run is.
class Progress {
 public:
  explicit Progress(int steps);
  ~Progress();
  void step(const std::string &next);

 private:
  int steps_, done_ = 0;
  bool shown_;
};

}  // namespace bench
