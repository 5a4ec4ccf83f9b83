// SPDX-License-Identifier: BSD-3-Clause
// nessied, the staging server: an MPI program for the sake of native PnetCDF, alone (a singleton) or under a launcher.
// This thread initialises MPI and does all native I/O; a second one makes progress; a third waits for the end.
#include "options.hpp"
#include "report_json.hpp"
#include "watcher.hpp"

#include <base/capabilities.hpp>
#include <base/descriptors.hpp>
#include <base/fence.hpp>
#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>
#include <mpi.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

namespace log = nessie::log;
using nessied::Options;

/// Open MPI looks for every device of the machine: reading the PCI bus costs a virtual machine a tenth of a second, and
/// the libraries of displays and graphics cards as much as all the rest of MPI. A server that is alone binds nothing.
void look_for_no_devices() {
  ::setenv("HWLOC_COMPONENTS", "-linuxio,-pci,-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero", 1);
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
}

/// Under Open MPI, ROMIO is several times faster below PnetCDF than the default. A server that is alone needs no
/// transport of MPI's, nor the shared memory that would stay behind if it were killed, nor a helper process.
void prepare_mpi() {
  for (const char *hints : {"PNETCDF_HINTS", "ROMIO_HINTS"}) ::unsetenv(hints);  // a file's are its program's
  const bool alone = std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMI_SIZE") == nullptr &&
                     std::getenv("PMIX_RANK") == nullptr;
  ::setenv("OMPI_MCA_io", "romio321", 0);
  if (!alone) return;
  look_for_no_devices();
  ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  ::setenv("OMPI_MCA_btl", "self", 0);
  ::setenv("OMPI_MCA_pml", "ob1", 0);
  ::setenv("OMPI_MCA_osc", "^ucx,rdma", 0);
}

/// What a program may not do must not be done with its data either: the kernel takes the setuid bit from a file that is
/// written, and keeps to quotas, unless the writer has capabilities. A server needs those by which it reaches what it
/// was given: files that it opens anew through their descriptors, memory of other processes, memory of its own that is
/// pinned.
bool give_up_rights() { return nessie::keep_only_capabilities({CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_IPC_LOCK}); }

std::string run_file(const Options &options, std::uint32_t index, const char *suffix) {
  return fmt::format("{}/server.{}.{}", options.run_directory, index, suffix);
}

/// Serves until the end. Returns the exit code: 0 if all data are in the files.
int serve(const Options &options, const staging::ServerOptions &server_options) {
  staging::IoQueue io;
  auto opened = staging::Server::open(server_options, io);
  if (!opened.ok()) return log::error("{}", opened.error().message), 2;
  auto &server = **opened;
  const auto url_file = run_file(options, server_options.index, "url");
  if (!nessie::write_file(url_file, server.url() + "\n")) return log::error("cannot write {}", url_file), 2;
  {
    nessied::Watcher watcher(options.parent_fd, [&server] { server.request_shutdown(); });
    std::thread progress([&] {
      server.run();
      io.stop();
    });
    io.run();
    progress.join();
  }
  const auto report = server.report();
  if (!nessie::write_file(run_file(options, server_options.index, "report"), nessied::to_json(report)))
    log::warning("cannot write the report");
  return report.failures.empty() ? 0 : 1;
}

int run(const Options &options) {
  auto server_options = nessied::server_options(options.config);
  if (!server_options.ok()) return log::error("{}", server_options.error().message), 2;
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  server_options->index = options.index.value_or(static_cast<std::uint32_t>(rank));
  server_options->servers = options.servers.value_or(static_cast<std::uint32_t>(size));
  server_options->ledger_path = run_file(options, server_options->index, "ledger");
  if (!options.board_directory.empty())
    server_options->board_path = fmt::format("{}/board.{}", options.board_directory, server_options->index);
  log::set_program(fmt::format("nessied.{}", server_options->index));
  return serve(options, *server_options);
}

}  // namespace

int main(int argc, char **argv) {
  nessie::occupy_closed_standard_streams();
  log::set_program("nessied");
  nessie::raise_descriptor_limit();
  nessie::raise_limits();
  if (!give_up_rights()) return log::error("cannot give up capabilities: {}", std::strerror(errno)), 2;
  auto options = nessied::parse_options(argc, argv);
  if (!options.ok()) return log::error("{}", options.error().message), 2;
  if (options->help) return std::fputs(nessied::kUsage, stdout), 0;
  nessied::prepare_signals();
  nessie::join_asymmetric_fences();  // before there are threads
  prepare_mpi();
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return log::error("cannot initialise MPI"), 2;
  nessied::prepare_signals();  // MPI may have installed handlers of its own
  const int code = run(*options);
  MPI_Finalize();
  return code;
}
