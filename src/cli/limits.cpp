// SPDX-License-Identifier: BSD-3-Clause
#include "limits.hpp"

#include <base/config.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace nessie::cli {

namespace {

std::string limit_text(rlim_t value, bool is_size) {
  if (value == RLIM_INFINITY) return "unlimited";
  return is_size ? format_size(value) : std::to_string(value);
}

nnti::Fact descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return {"open files", fmt::format("{} (ulimit -n; at most {}): each peer takes some",
                                    limit_text(limit.rlim_cur, false), limit_text(limit.rlim_max, false))};
}

nnti::Fact locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return {"locked memory", fmt::format("{} (ulimit -l; at most {}): networks with RDMA lock what is registered",
                                       limit_text(limit.rlim_cur, true), limit_text(limit.rlim_max, true))};
}

nnti::Fact shared_memory() {
  const int fd = memfd_create("nessie-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const int cause = errno;
  const bool sealed = fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  if (fd >= 0) close(fd);
  if (fd < 0) return {"memfd", fmt::format("does not work: {}; shm needs it", std::strerror(cause))};
  return {"memfd", sealed ? "works, with seals: shared memory is bounded by the memory there is, not by /dev/shm"
                          : "works, but without seals; shm needs them"};
}

nnti::Fact dev_shm() {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0) return {"/dev/shm", "is not there; Nessie does not need it, MPI does"};
  return {"/dev/shm", fmt::format("{} of {} free; Nessie does not need it, MPI does",
                                  format_size(std::uint64_t{space.f_bavail} * space.f_frsize),
                                  format_size(std::uint64_t{space.f_blocks} * space.f_frsize))};
}

nnti::Fact processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return {"processors", fmt::format("{} for this process", count)};
}

}  // namespace

std::optional<int> ptrace_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope) return scope;
  return std::nullopt;
}

// A sibling may be forbidden what a parent may do: so a child tries to read its parent's memory.
std::string try_cross_memory_attach() {
  static int value = 42;
  const pid_t child = fork();
  if (child == 0) {
    int copy = 0;
    iovec local{&copy, sizeof copy}, remote{&value, sizeof value};
    const bool read = process_vm_readv(getppid(), &local, 1, &remote, 1, 0) == sizeof copy;
    _exit(read ? 0 : errno);
  }
  int wait_status = 0;
  if (child < 0 || waitpid(child, &wait_status, 0) != child) return "unknown: cannot fork";
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return "works";
  const auto scope = ptrace_scope();
  return fmt::format("does not work: {}{}", std::strerror(WEXITSTATUS(wait_status)),
                     scope ? fmt::format(" (kernel.yama.ptrace_scope = {}; 0 allows it)", *scope) : std::string());
}

std::vector<nnti::Fact> limits_of_this_process() {
  return {processors(), descriptors(), locked_memory(), shared_memory(), dev_shm()};
}

}  // namespace nessie::cli
