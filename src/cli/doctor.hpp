// SPDX-License-Identifier: BSD-3-Clause
// What `nessie doctor` looks at. Each function here judges values, wherever they come from; doctor_look.cpp reads those
// of this machine.
#pragma once

#include "launcher.hpp"

#include <nessie/result.hpp>
#include <nnti/nnti.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

enum class Health {
  kOk,
  kWarning,  ///< it works, though slower, or not for everybody
  kProblem,  ///< runs fail, or are not staged
};

struct Diagnosis {
  std::string name;
  Health verdict = Health::kOk;
  std::string sentence;
  std::string mend;  ///< what to type, or do; empty: nothing
};

/// As getrlimit() says it.
struct LimitPair {
  std::uint64_t soft, hard;
};
Diagnosis judge_open_files(LimitPair limit);
/// `has_rdma`: there are network devices that lock what is registered with them.
Diagnosis judge_locked_memory(LimitPair limit, bool has_rdma);

struct Room {
  std::uint64_t size_bytes, free_bytes;
};
/// Of /dev/shm; empty: it is not there.
Diagnosis judge_shared_memory(std::optional<Room> room);
/// `attempt`: what try_cross_memory_attach() says. `scope`: Yama's, if it has one.
Diagnosis judge_cross_memory_attach(const std::string &attempt, std::optional<int> scope);
Diagnosis judge_proc(bool is_mounted);
/// Whether a connection within this machine can be made.
Diagnosis judge_loopback(bool has_ip4, bool has_ip6);
/// `addresses`: what the name resolves to.
Diagnosis judge_host_name(const std::string &name, const std::vector<std::string> &addresses);

/// An MPI, by its launcher or as Nessie was built for it.
struct Mpi {
  MpiFlavour flavour = MpiFlavour::kUnknown;
  std::string version;  ///< "4.1.4"; empty: not known
};
struct LauncherFound {
  std::string path;  ///< empty: there is none in PATH
  Mpi mpi;
};
Diagnosis judge_launcher(const LauncherFound &mpiexec, const Mpi &built_for, bool has_srun);
/// The first "4.1.4" in what a program prints; empty: there is none.
std::string first_version_in(const std::string &text);

/// A library that this process has loaded, as programs that are started from here would.
struct LibraryFound {
  std::string path, version;
  std::string built_for;  ///< the version whose header Nessie was built with
};
Diagnosis judge_pnetcdf(const LibraryFound &library);
Diagnosis judge_mpi_library(const LibraryFound &library);

/// Open MPI's launcher refuses to run as root unless it is told, by two variables, that this is meant.
Diagnosis judge_root(bool is_root, MpiFlavour flavour, bool is_allowed);
Diagnosis judge_transports(const std::vector<nnti::TransportInfo> &transports, bool has_rdma);
/// `srun`: its path, if it is in PATH. `job`: the allocation that this process is in.
Diagnosis judge_slurm(const std::string &srun, const std::string &job);
/// `error`: of making a folder in it, an errno; 0: it can be made.
Diagnosis judge_temporary_folder(const std::string &folder, int error);
/// For this process, of those of the machine; `quota`: how much time of them the control group allows.
Diagnosis judge_processors(int allowed, int all, std::optional<double> quota);

struct Memory {
  std::uint64_t available_bytes;      ///< of the machine, its control group, and the job
  std::uint64_t group_bytes;          ///< what the control group has left; 2^64 - 1: it has no limit
  std::uint64_t within_limits_bytes;  ///< what ulimit -v, -d, -f leave a staging server
  std::uint64_t allocated_bytes;      ///< what Slurm has allocated on the node; 2^64 - 1: all of it, or this is no job
};
Diagnosis judge_memory(const Memory &memory);
/// Whether nessied and the library that is preloaded are where they belong.
Diagnosis judge_installation(const Status &found);
Diagnosis judge_settings(const Status &loaded);

/// All of the above, of this machine and this process. Forks, and opens network libraries.
std::vector<Diagnosis> look_at_everything();

}  // namespace nessie::cli
