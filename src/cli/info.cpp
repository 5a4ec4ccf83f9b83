// SPDX-License-Identifier: BSD-3-Clause
#include "info.hpp"

#include "memory.hpp"
#include "probe.hpp"
#include "version.hpp"

#include <base/config.hpp>
#include <nnti/nnti.hpp>

#include <fmt/format.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace nessie::cli {

namespace {

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

void print_probe(const ProbeResult &probe, bool measured) {
  fmt::print("  {}\n", probe.explanation);
  if (!measured) return;
  fmt::print("  64-byte message, there and back: {:.2f} us\n", probe.round_trip_us);
  fmt::print("  16 MiB out of memory that Nessie allocated: {:.0f} MB/s; that the application allocated: {:.0f} MB/s\n",
             probe.get_allocated_MBps, probe.get_own_MBps);
}

void print_text(const InfoOptions &options, const std::vector<nnti::TransportInfo> &transports,
                const Result<ProbeResult> &probe, const std::string &attach) {
  fmt::print("Transports of this machine, in order of preference:\n");
  for (const auto &transport : transports) {
    fmt::print("  {:<8} {:<14} {}\n", transport.name, transport.available ? "available" : "not available",
               transport.explanation);
  }
  fmt::print("Cross-memory attach (reading memory that the application owns): {}\n", attach);
  const bool measured = options.url.empty();
  fmt::print("Between {}:\n", measured ? "two processes of this machine" : "this process and " + options.url);
  if (probe)
    print_probe(*probe, measured);
  else
    fmt::print("  no connection: {}\n", probe.error().message);
  fmt::print("Memory for staging, if nothing else is said: {}\n", default_memory_of_each(1));
  fmt::print("PnetCDF: {}\nMPI: {}\n", pnetcdf_version(), mpi_version());
}

nlohmann::json probe_json(const Result<ProbeResult> &probe) {
  if (!probe) return {{"error", probe.error().message}};
  return {{"transport", probe->transport},
          {"explanation", probe->explanation},
          {"round_trip_us", probe->round_trip_us},
          {"get_allocated_MBps", probe->get_allocated_MBps},
          {"get_own_MBps", probe->get_own_MBps}};
}

void print_json(const std::vector<nnti::TransportInfo> &transports, const Result<ProbeResult> &probe,
                const std::string &attach) {
  auto list = nlohmann::json::array();
  for (const auto &transport : transports) {
    list.push_back(
        {{"name", transport.name}, {"available", transport.available}, {"explanation", transport.explanation}});
  }
  const nlohmann::json all = {{"nessie", NESSIE_VERSION},     {"transports", list},
                              {"chosen", probe_json(probe)},  {"cross_memory_attach", attach},
                              {"pnetcdf", pnetcdf_version()}, {"mpi", mpi_version()}};
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

int info(const InfoOptions &options) {
  const auto config = Config::load();
  if (!config) {
    fmt::print(stderr, "nessie info: {}\n", config.error().message);
    return 1;
  }
  const auto attach = try_cross_memory_attach();
  const auto probe = options.url.empty() ? probe_two_processes(*config) : probe_url(*config, options.url);
  const auto transports = nnti::Endpoint::survey(*config);
  if (options.json)
    print_json(transports, probe, attach);
  else
    print_text(options, transports, probe, attach);
  return probe ? 0 : 1;
}

}  // namespace nessie::cli
