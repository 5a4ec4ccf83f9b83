// SPDX-License-Identifier: BSD-3-Clause
#include "doctor.hpp"

#include "run_directory.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <regex>

namespace nessie::cli {

namespace {

constexpr std::uint64_t kFewestFiles = 128;         // a process takes 27, and one for each peer and file
constexpr std::uint64_t kEnoughFiles = 1024;        // what most systems start with
constexpr std::uint64_t kSmallShm = 64 << 20;       // what container engines give if nothing else is said
constexpr std::uint64_t kLeastShm = 16 << 20;       // Open MPI takes 4 MiB for each rank
constexpr std::uint64_t kLittleMemory = 256 << 20;  // a quarter of it is what a server has at least
constexpr std::uint64_t kLeastWithinLimits = 32 << 20;

Diagnosis ok(std::string name, std::string sentence) { return {std::move(name), Health::kOk, std::move(sentence), ""}; }
Diagnosis warning(std::string name, std::string sentence, std::string mend) {
  return {std::move(name), Health::kWarning, std::move(sentence), std::move(mend)};
}
Diagnosis problem(std::string name, std::string sentence, std::string mend) {
  return {std::move(name), Health::kProblem, std::move(sentence), std::move(mend)};
}

std::string size_text(std::uint64_t size) { return size == RLIM_INFINITY ? "unlimited" : format_size(size); }
std::string count_text(std::uint64_t count) { return count == RLIM_INFINITY ? "unlimited" : std::to_string(count); }

std::string words_for(const Mpi &mpi) {
  return mpi.version.empty() ? name_of(mpi.flavour) : fmt::format("{} {}", name_of(mpi.flavour), mpi.version);
}

/// "4.1" of "4.1.4": what programs that were built for one may run with the other of.
std::string series_of(const std::string &version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

std::string launcher_of(MpiFlavour flavour) {
  return flavour == MpiFlavour::kOpenMpi ? "mpiexec.openmpi" : "mpiexec.mpich";
}

/// A library that has only TCP says so in these words; without any network it says nothing of it.
bool has_more_than_tcp(const nnti::TransportInfo &transport) {
  const bool is_library = transport.name == "ofi" || transport.name == "ucx";
  return is_library && transport.available && transport.explanation.find("nothing but TCP") == std::string::npos;
}

}  // namespace

Diagnosis judge_open_files(LimitPair limit) {
  const auto name = "open files";
  const auto sentence =
      fmt::format("{} at once, {} if a process asks for more", count_text(limit.soft), count_text(limit.hard));
  if (limit.soft >= kEnoughFiles) return ok(name, sentence);
  const auto mend = limit.hard >= kEnoughFiles
                        ? fmt::format("ulimit -n {}", std::min<std::uint64_t>(limit.hard, 4 * kEnoughFiles))
                        : "as root: echo '* - nofile 65536' >> /etc/security/limits.conf, and log in again";
  if (limit.soft >= kFewestFiles)
    return warning(name, sentence + ", which is little: each peer and each file takes some", mend);
  return problem(name, sentence + ": further files go native, or cannot be opened", mend);
}

Diagnosis judge_locked_memory(LimitPair limit, bool has_rdma) {
  const auto name = "locked memory";
  const auto size = size_text(limit.soft);
  if (!has_rdma) return ok(name, size + ", which matters to networks with RDMA only, and there is none");
  if (limit.soft == RLIM_INFINITY) return ok(name, size + ", as the network with RDMA wants it");
  return warning(name, size + ": memory beyond that cannot be registered with the network, which locks it",
                 limit.hard == RLIM_INFINITY
                     ? "ulimit -l unlimited"
                     : "as root: echo '* - memlock unlimited' >> /etc/security/limits.conf, and log in again");
}

Diagnosis judge_shared_memory(std::optional<Room> room) {
  const auto name = "/dev/shm";
  if (!room)
    return warning(name, "it is not there; MPI wants it, Nessie does without",
                   "as root: mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
  const auto sentence = fmt::format("{} of {} are free", format_size(room->free_bytes), format_size(room->size_bytes));
  const std::string larger = "as root: mount -o remount,size=50% /dev/shm; of a container: docker run --shm-size=2g";
  if (room->size_bytes >= kLeastShm && room->free_bytes < kLeastShm)
    return problem(name, sentence + ": ranks of MPI that share memory there end with SIGBUS",
                   "nessie clean, then look for what else is there: ls -l /dev/shm");
  if (room->size_bytes < kLeastShm)
    return problem(name, sentence + ": ranks of MPI that share memory there end with SIGBUS", larger);
  if (room->size_bytes <= kSmallShm)
    return warning(name, sentence + ", which is little for MPI: some 4 MiB for each rank", larger);
  return ok(name, sentence + "; MPI keeps its shared memory there, Nessie's own needs no room in it");
}

Diagnosis judge_cross_memory_attach(const std::string &attempt, std::optional<int> scope) {
  const auto name = "cross-memory attach";
  if (attempt == "works") return ok(name, "servers can read the memory that a program owns");
  return warning(name, attempt + "; so a program's data are copied by itself, which takes longer",
                 scope.value_or(0) > 0 ? "as root: sysctl kernel.yama.ptrace_scope=0"
                                       : "of a container: docker run --cap-add SYS_PTRACE");
}

Diagnosis judge_proc(bool is_mounted) {
  if (is_mounted) return ok("/proc", "it is mounted");
  return problem("/proc", "it is not mounted, and staging servers open files by it: all files go native",
                 "as root: mount -t proc proc /proc");
}

Diagnosis judge_loopback(bool has_ip4, bool has_ip6) {
  const auto name = "loopback";
  if (!has_ip4)
    return problem(name, "nobody can connect to 127.0.0.1, which launchers of MPI do", "as root: ip link set lo up");
  return ok(name, has_ip6 ? "127.0.0.1 and ::1 can be connected to"
                          : "127.0.0.1 can be connected to; ::1 cannot, and nobody needs it");
}

Diagnosis judge_host_name(const std::string &name, const std::vector<std::string> &addresses) {
  const auto shown = printable(name);
  if (!addresses.empty()) return ok("host name", fmt::format("{} is {}", shown, fmt::join(addresses, ", ")));
  return warning("host name",
                 fmt::format("{} does not resolve to an address: launchers of MPI may wait for it, and fail", shown),
                 fmt::format("as root: echo '127.0.1.1 {}' >> /etc/hosts", shown));
}

std::string first_version_in(const std::string &text) {
  static const std::regex pattern(R"(\d+\.\d+(\.\d+)?)");
  std::smatch found;
  return std::regex_search(text, found, pattern) ? found.str() : std::string();
}

Diagnosis judge_launcher(const LauncherFound &mpiexec, const Mpi &built_for, bool has_srun) {
  const auto name = "mpiexec";
  if (mpiexec.path.empty() && has_srun)
    return warning(name, "none is in PATH, but srun is: start programs by that", "nessie run -- srun -n 8 ./sim");
  if (mpiexec.path.empty())
    return problem(name, "none is in PATH: programs of MPI cannot be started",
                   fmt::format("export PATH=FOLDER:$PATH, with the folder of {}'s mpiexec; or: module load openmpi",
                               name_of(built_for.flavour)));
  const auto sentence = fmt::format("{} is {}", printable(mpiexec.path), words_for(mpiexec.mpi));
  const auto built = words_for(built_for);
  if (mpiexec.mpi.flavour == MpiFlavour::kUnknown)
    return warning(name, fmt::format("{}; Nessie was built for {}", sentence, built),
                   fmt::format("{} --version", printable(mpiexec.path)));
  if (mpiexec.mpi.flavour != built_for.flavour)
    return problem(name,
                   fmt::format("{}, but Nessie was built for {}: files of its programs go native", sentence, built),
                   fmt::format("nessie run -- {} -n 8 ./sim", launcher_of(built_for.flavour)));
  if (!mpiexec.mpi.version.empty() && series_of(mpiexec.mpi.version) != series_of(built_for.version))
    return warning(name, fmt::format("{}, but Nessie was built for {}", sentence, built),
                   "build Nessie with this one: ./dev build");
  return ok(name, sentence + ", which Nessie was built for");
}

Diagnosis judge_pnetcdf(const LibraryFound &library) {
  const auto sentence = fmt::format("{} is version {}", printable(library.path), library.version);
  if (first_version_in(library.version) == first_version_in(library.built_for))
    return ok("PnetCDF", sentence + ", which Nessie was built for");
  return problem(
      "PnetCDF",
      fmt::format("{}, but Nessie was built for {}: files of its programs go native", sentence, library.built_for),
      "unset LD_LIBRARY_PATH, if it leads there; or build Nessie with this one: ./dev build");
}

Diagnosis judge_mpi_library(const LibraryFound &library) {
  const auto sentence = fmt::format("{} is {}", printable(library.path), library.version);
  if (series_of(first_version_in(library.version)) == series_of(first_version_in(library.built_for)))
    return ok("MPI", sentence + ", which Nessie was built for");
  return warning("MPI", fmt::format("{}, but Nessie was built for {}", sentence, library.built_for),
                 "unset LD_LIBRARY_PATH, if it leads there; or build Nessie with this one: ./dev build");
}

Diagnosis judge_root(bool is_root, MpiFlavour flavour, bool is_allowed) {
  const auto name = "root";
  if (!is_root) return ok(name, "this is not root");
  if (flavour != MpiFlavour::kOpenMpi) return ok(name, "this is root, which this MPI does not mind");
  if (is_allowed) return ok(name, "this is root, which Open MPI is told is meant");
  return problem(name, "this is root, as whom Open MPI's mpiexec starts nothing unless it is told that this is meant",
                 "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
}

Diagnosis judge_transports(const std::vector<nnti::TransportInfo> &transports, bool has_rdma) {
  const auto name = "transports";
  std::vector<std::string> available;
  for (const auto &each : transports)
    if (each.available) available.push_back(each.name);
  const auto is_available = [&](const char *transport) { return std::ranges::count(available, transport) > 0; };
  const auto sentence = fmt::format("{} are available", fmt::join(available, ", "));
  if (!is_available("shm"))
    return problem(name, sentence + ", but not shm, by which programs reach their servers", "nessie info --no-test");
  if (std::ranges::any_of(transports, has_more_than_tcp) && (has_rdma || is_available("tcp")))
    return ok(name, sentence + "; libfabric or UCX have a network with more than TCP");
  if (has_rdma)
    return warning(name, sentence + "; there is a network with RDMA, but libfabric and UCX find nothing but TCP",
                   "ls -l /dev/infiniband; fi_info -l; nessie info --no-test");
  return ok(name, sentence + (is_available("tcp") ? "; between nodes there is nothing but TCP"
                                                  : "; there is no network to other nodes"));
}

Diagnosis judge_slurm(const std::string &srun, const std::string &job) {
  const auto name = "Slurm";
  if (job.empty()) return ok(name, srun.empty() ? "it is not here" : "this is outside of an allocation");
  if (!srun.empty()) return ok(name, fmt::format("this is job {}", printable(job)));
  return warning(name, fmt::format("this is job {}, but srun is not in PATH", printable(job)),
                 "export PATH=FOLDER:$PATH, with the folder of srun; or: module load slurm");
}

Diagnosis judge_temporary_folder(const std::string &folder, int error) {
  const auto name = "temporary folder";
  const auto shown = printable(folder);
  const auto *mend =
      folder == "/tmp" ? "as root: chmod 1777 /tmp; or export TMPDIR=FOLDER, one of yours" : "export TMPDIR=/tmp";
  if (error != 0)
    return problem(
        name,
        fmt::format("MPI keeps sockets and files in {}, which cannot be written: {}", shown, std::strerror(error)),
        mend);
  if (folder.size() > kMaxBaseLength)
    return warning(name,
                   fmt::format("{} can be written, but its name is too long for the sockets that MPI makes there: "
                               "{} bytes; {} are safe",
                               shown, folder.size(), kMaxBaseLength),
                   mend);
  return ok(name, shown + " can be written");
}

Diagnosis judge_processors(int allowed, int all, std::optional<double> quota) {
  const auto name = "processors";
  const auto sentence = allowed < all ? fmt::format("{} of the machine's {} are for this process", allowed, all)
                                      : fmt::format("{}, all of the machine's", allowed);
  if (!quota || *quota >= allowed) return ok(name, sentence);
  return warning(name,
                 fmt::format("{}, but the control group gives the time of {:.3g}: with more ranks, all of them wait",
                             sentence, *quota),
                 fmt::format("mpiexec -n {} ...; of a container: docker run --cpus={}",
                             std::max(1, static_cast<int>(*quota)), allowed));
}

Diagnosis judge_memory(const Memory &memory) {
  const auto name = "memory";
  if (memory.within_limits_bytes < kLeastWithinLimits)
    return problem(name,
                   "the limits on address space, data or files leave no room for a staging server: files go native",
                   "ulimit -v unlimited; ulimit -d unlimited; ulimit -f unlimited");
  constexpr auto kNoLimit = std::uint64_t{1} << 60;  // what nobody reaches is none
  auto sentence = format_size(memory.available_bytes) + " are free";
  if (memory.group_bytes < kNoLimit)
    sentence += fmt::format(" (the control group has {} left)", format_size(memory.group_bytes));
  if (memory.allocated_bytes < kNoLimit)
    sentence += fmt::format(" (Slurm has allocated {})", format_size(memory.allocated_bytes));
  if (memory.available_bytes >= kLittleMemory) return ok(name, sentence);
  return warning(name, sentence + ", of which a staging server takes 64 MiB at least",
                 "nessie run --memory 32M ...; of a container: docker run --memory; of Slurm: sbatch --mem");
}

Diagnosis judge_installation(const Status &found) {
  if (found.ok()) return ok("installation", "nessied and the library for programs are there");
  return problem("installation", found.error().message, "./dev build");
}

Diagnosis judge_settings(const Status &loaded) {
  if (loaded.ok()) return ok("settings", "they can be read");
  return problem("settings", loaded.error().message, "unset NESSIE_CONFIG, or mend the file");
}

}  // namespace nessie::cli
