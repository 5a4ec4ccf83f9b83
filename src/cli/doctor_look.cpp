// SPDX-License-Identifier: BSD-3-Clause
// Reads what `nessie doctor` judges.
#include "doctor.hpp"

#include "control_groups.hpp"
#include "installation.hpp"
#include "limits.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "run_directory.hpp"
#include "version.hpp"

#include <base/clock.hpp>
#include <base/config.hpp>
#include <base/fd.hpp>
#include <base/host.hpp>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kVersionPatience{5};

LimitPair limit_of(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return {limit.rlim_cur, limit.rlim_max};
}

bool has_entries(const char *folder) {
  std::error_code error;
  return fs::directory_iterator(folder, error) != fs::directory_iterator();
}

bool has_rdma() { return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi"); }

std::optional<Room> room_in(const char *folder) {
  struct statvfs space {};
  if (::statvfs(folder, &space) != 0) return std::nullopt;
  return Room{std::uint64_t{space.f_blocks} * space.f_frsize, std::uint64_t{space.f_bavail} * space.f_frsize};
}

/// The address of this machine's own, at any port.
struct Loopback {
  sockaddr_storage address{};
  socklen_t size = 0;
};

Loopback loopback_of(int family) {
  Loopback loopback;
  if (family == AF_INET) {
    auto &address = reinterpret_cast<sockaddr_in &>(loopback.address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    loopback.size = sizeof address;
  } else {
    auto &address = reinterpret_cast<sockaddr_in6 &>(loopback.address);
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    loopback.size = sizeof address;
  }
  return loopback;
}

bool can_connect_within(int family) {
  auto loopback = loopback_of(family);
  auto *address = reinterpret_cast<sockaddr *>(&loopback.address);
  const Fd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      caller(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{1, 0};
  return listener && caller && ::bind(listener.get(), address, loopback.size) == 0 &&
         ::listen(listener.get(), 1) == 0 && ::getsockname(listener.get(), address, &loopback.size) == 0 &&
         ::setsockopt(caller.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
         ::connect(caller.get(), address, loopback.size) == 0;
}

std::vector<std::string> addresses_of(const std::string &name) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;  // each address once
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return {};
  std::vector<std::string> found;
  for (const auto *each = list; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      found.emplace_back(text.data());
  }
  ::freeaddrinfo(list);
  return found;
}

/// What `program --version` prints.
std::string version_text_of(const std::string &program) {
  SpawnOptions options;
  options.command = {program, "--version"};
  options.environment = Environment::current();
  options.own_process_group = true;
  const auto text = output_of(std::move(options), Deadline::in(kVersionPatience), nullptr);
  return text ? *text : std::string();
}

LauncherFound find_launcher_in(const Environment &environment) {
  LauncherFound found;
  found.path = find_program("mpiexec", environment);
  if (found.path.empty()) return found;
  found.mpi = {flavour_of_launcher("mpiexec", environment), first_version_in(version_text_of(found.path))};
  return found;
}

/// The file that has the function, of those that this process has loaded.
std::string file_with(const char *function) {
  Dl_info found{};
  const auto *address = ::dlsym(RTLD_DEFAULT, function);
  if (address == nullptr || ::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return "the library";
  std::error_code error;
  const auto path = fs::canonical(found.dli_fname, error);
  return error ? found.dli_fname : path.string();
}

bool is_told_that_root_is_meant(const Environment &environment) {
  for (const char *name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
    if (environment.get(name) != "1") return false;
  return true;
}

void look_at_mpi(const Environment &environment, std::vector<Diagnosis> &findings) {
  const auto mpiexec = find_launcher_in(environment);
  const auto srun = find_program("srun", environment);
  findings.push_back(judge_launcher(mpiexec, {mpi_flavour_built_for(), mpi_built_for()}, !srun.empty()));
  findings.push_back(judge_root(::geteuid() == 0, mpiexec.mpi.flavour, is_told_that_root_is_meant(environment)));
  findings.push_back(judge_slurm(srun, environment.get("SLURM_JOB_ID").value_or("")));
  const auto pnetcdf = pnetcdf_version(), mpi = mpi_version();  // "Open MPI v4.1.4, package: …"; both are loaded now
  findings.push_back(judge_mpi_library({file_with("MPI_Init"), mpi.substr(0, mpi.find(',')), mpi_built_for()}));
  findings.push_back(judge_pnetcdf({file_with("ncmpi_inq_libvers"), pnetcdf, pnetcdf_built_for()}));
}

void look_at_folders(const Environment &environment, std::vector<Diagnosis> &findings) {
  findings.push_back(judge_shared_memory(room_in("/dev/shm")));
  const auto folder = environment.get("TMPDIR").value_or("/tmp");
  const auto made = RunDirectory::make_in(folder);
  findings.push_back(judge_temporary_folder(folder, made.ok() ? 0 : made.error().cause));
  const auto installation = Installation::find();
  findings.push_back(judge_installation(installation.ok() ? Status() : installation.error()));
}

void look_at_processors_and_memory(std::vector<Diagnosis> &findings) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const int allowed = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : all;
  const auto membership = control_group_membership();
  findings.push_back(judge_processors(allowed, all, control_group_processors(membership, kControlGroups)));
  findings.push_back(judge_memory({available_memory_bytes(), control_group_available_bytes(membership, kControlGroups),
                                   memory_within_limits(), slurm_allocated_bytes(Environment::current())}));
}

void look_at_network(const Config &config, std::vector<Diagnosis> &findings) {
  findings.push_back(judge_loopback(can_connect_within(AF_INET), can_connect_within(AF_INET6)));
  findings.push_back(judge_host_name(host_name(), addresses_of(host_name())));
  findings.push_back(judge_transports(nnti::Endpoint::survey(config), has_rdma()));
}

}  // namespace

std::vector<Diagnosis> look_at_everything() {
  const auto environment = Environment::current();
  const auto config = Config::load();
  std::vector<Diagnosis> findings;
  findings.push_back(judge_settings(config.ok() ? Status() : config.error()));
  findings.push_back(judge_proc(::access("/proc/self/fd", X_OK) == 0));
  findings.push_back(judge_open_files(limit_of(RLIMIT_NOFILE)));
  findings.push_back(judge_locked_memory(limit_of(RLIMIT_MEMLOCK), has_rdma()));
  look_at_processors_and_memory(findings);
  findings.push_back(judge_cross_memory_attach(try_cross_memory_attach(), ptrace_scope()));
  look_at_folders(environment, findings);
  look_at_mpi(environment, findings);
  look_at_network(config.ok() ? *config : Config(), findings);  // after whatever forks
  return findings;
}

}  // namespace nessie::cli
