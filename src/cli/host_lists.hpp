// SPDX-License-Identifier: BSD-3-Clause
// The formats in which launchers and batch systems name hosts. These functions read text, and nothing else.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

struct JobHost {
  std::string name;
  int slots = 0;      ///< how many processes it takes; 0: it was not told, and is as many as it has cores
  bool here = false;  ///< it is this one
  bool operator==(const JobHost &) const = default;
};

/// A host stands in each of these lists once, where it was named first; what more names of it give is added up.
using HostList = std::vector<JobHost>;

/// More hosts, or slots of one, are not believed.
inline constexpr int kMostHosts = 65'536, kMostSlots = 1'000'000;

/// "a:4,[fd00::1]:2,user@b" of --host and -hosts: a slot where no number is; not told where it is "*".
HostList read_host_words(std::string_view list);
/// A host file of Open MPI ("a slots=4") or of Hydra ("a:4"), or a rankfile ("rank 0=a slot=1").
HostList read_host_file(std::string_view text);
/// A host for each slot: PBS_NODEFILE, LSB_DJOB_HOSTFILE, LSB_HOSTS.
HostList read_repeated_hosts(std::string_view text);
/// "a 4 b 4" of LSB_MCPU_HOSTS.
HostList read_host_pairs(std::string_view text);
/// "a 4 all.q@a UNDEFINED", a line for each host and queue: SGE's PE_HOSTFILE.
HostList read_sge_file(std::string_view text);

/// "n[001-003,7],m1" of Slurm. kInvalidArgument: it is no such list, or has more than kMostHosts hosts.
Result<std::vector<std::string>> expand_slurm_hosts(std::string_view list);
/// The same with slots: "16(x2),8" says how many each of them has, in order; those behind the last are not told.
Result<HostList> read_slurm_hosts(std::string_view list, std::string_view counts);

/// "a:4,b" for --host and -hosts, where a host whose slots were not told has `otherwise` many; 0: it stands alone.
std::string to_host_words(const HostList &hosts, int otherwise = 0);

}  // namespace nessie::cli
