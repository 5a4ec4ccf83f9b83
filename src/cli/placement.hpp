// SPDX-License-Identifier: BSD-3-Clause
// Where a job's staging servers are to run, and where its program. Nothing is started or changed here: all that counts
// is in the arguments, and nodes are taken to have the same cores each.
#pragma once

#include "allocation.hpp"
#include "cores.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

/// What `--place` says.
struct PlaceWish {
  enum class Kind {
    kNear,      ///< "near": where `nessie run` is
    kNode,      ///< "node", "node:2": on the last nodes of the job, from which the program is kept
    kEachNode,  ///< "each-node", "each-node:2": so many on each node
    kNuma,      ///< "numa": one on each NUMA domain of each node
    kHosts      ///< "host:a,b": on these
  };
  Kind kind = Kind::kNear;
  int count = 0;                   ///< behind the colon of kNode and kEachNode; 0: nothing was
  std::vector<std::string> hosts;  ///< of kHosts
};
/// kInvalidArgument: it says none of these.
Result<PlaceWish> parse_place(std::string_view words);

struct PlacementRequest {
  Allocation allocation;
  Ranks ranks;
  NodeCores cores;  ///< not used by kNear
  PlaceWish wish;
  int servers = 0;  ///< of all nodes together; 0: nobody said how many
};

struct ServerPlace {
  int index = 0;
  std::string host;   ///< as the job names it
  bool here = false;  ///< that is where `nessie run` is: no launcher is needed to start it
  std::string cores;  ///< hardware threads for it alone, or those of its NUMA domain: "6-7"; empty: any
  bool operator==(const ServerPlace &) const = default;
};

struct Placement {
  std::vector<ServerPlace> servers;   ///< by index
  HostList program;                   ///< the hosts that stay for the program
  std::vector<int> ranks;             ///< how many processes of it each of these will have, as far as can be told
  HostList servers_only;              ///< the hosts that the program is to be kept from
  std::vector<std::string> warnings;  ///< sentences
};

/// kInvalidArgument: there are not enough hosts, too many servers, or a host is none of the job's; it says what to do.
Result<Placement> place_servers(const PlacementRequest &request);

/// "6-7/6-7": the cores of each server, by index; empty: any may run anywhere.
std::string cores_by_index(const std::vector<ServerPlace> &places);

/// For `--dry-run`: a line for each server and one for the program, each with a newline at its end.
std::string describe(const Placement &placement);
nlohmann::json to_json(const Placement &placement);

}  // namespace nessie::cli
