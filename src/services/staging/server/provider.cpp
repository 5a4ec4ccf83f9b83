// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/provider.hpp>

#include <services/staging/report_json.hpp>

#include <base/config_reader.hpp>
#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <memory>

namespace staging {

using nessie::Code;
using nessie::Config;
using nessie::Error;

namespace {

constexpr auto kQuiet = std::chrono::milliseconds(2);  // writes that nobody waits for are put into pages between bursts
constexpr std::size_t kMaxFibers = 1 << 16;  // one may wait for another that comes later; clients bound their number

/// Open MPI looks for every device of the machine: reading the PCI bus costs a virtual machine a tenth of a second, and
/// the libraries of displays and graphics cards as much as all the rest of MPI. A server that is alone binds nothing.
void look_for_no_devices() {
  ::setenv("HWLOC_COMPONENTS", "-linuxio,-pci,-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero", 1);
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
}

bool is_alone() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMI_SIZE") == nullptr &&
         std::getenv("PMIX_RANK") == nullptr;
}

/// Under Open MPI, ROMIO is several times faster below PnetCDF than the default. A server that is alone needs no
/// transport of MPI's, nor the shared memory that would stay behind if it were killed, nor a helper process, nor
/// collective operations between processes.
void prepare_mpi() {
  for (const char *hints : {"PNETCDF_HINTS", "ROMIO_HINTS"}) ::unsetenv(hints);  // a file's are its program's
  ::setenv("OMPI_MCA_io", "romio321", 0);
  if (!is_alone()) return;
  look_for_no_devices();
  ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  ::setenv("OMPI_MCA_btl", "self", 0);
  ::setenv("OMPI_MCA_pml", "ob1", 0);
  ::setenv("OMPI_MCA_osc", "^ucx,rdma", 0);
  ::setenv("OMPI_MCA_coll", "self,basic,libnbc", 0);
}

/// Whether nobody misses MPI_Finalize(), for which Open MPI takes as long as for its start: of a job of one process,
/// whose files lie in the folder of who has started it, and go with that.
bool may_leave_mpi() { return is_alone() && std::getenv("OMPI_MCA_orte_tmpdir_base") != nullptr; }

/// MPI, from before there are other threads until after the server's end.
class Mpi {
 public:
  Mpi() {
    prepare_mpi();
    int provided = 0;
    is_there_ = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS;
    if (is_there_) MPI_Comm_rank(MPI_COMM_WORLD, &rank_), MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() {
    if (is_there_ && !may_leave_mpi()) MPI_Finalize();
  }
  Mpi(const Mpi &) = delete;
  bool is_there() const { return is_there_; }
  auto rank() const { return static_cast<std::uint32_t>(rank_); }
  auto size() const { return static_cast<std::uint32_t>(size_); }

 private:
  bool is_there_ = false;
  int rank_ = 0, size_ = 1;
};

Result<Mode> mode_of(const Config &config) {
  const auto text = config.get_or("staging.mode", "auto");
  if (text == "auto") return Mode::kAuto;
  if (text == "caching") return Mode::kCaching;
  if (text == "direct") return Mode::kDirect;
  return config.bad_value("staging.mode", "auto, caching or direct");
}

/// Of a server that is a process: where it is to find, and what it leaves, in files.
Result<ServerOptions> options_of_process(const Config &config, const Mpi &mpi) {
  auto made = server_options(config);
  if (!made.ok()) return made;
  auto &options = *made;
  options.index = mpi.rank(), options.servers = mpi.size();
  nessie::ConfigReader read(config);
  read.count("staging.index", options.index);
  read.count("staging.servers", options.servers);
  read.count("staging.restarts", options.restarts);
  if (!read.status().ok()) return read.status().error();
  const auto folder = config.get_or("staging.run_dir", ".");
  if (const auto logs = config.get_or("staging.log", ""); !logs.empty())
    options.log_path = fmt::format("{}/server.{}", logs, options.index);
  options.is_successor = config.get("nnti.listen_at").has_value();
  options.servers_at = nessie::split(config.get_or("staging.servers_at", ""), " ");
  options.url_path = fmt::format("{}/server.{}.url", folder, options.index);
  options.ledger_path = fmt::format("{}/server.{}.ledger", folder, options.index);
  options.on_end = [path = fmt::format("{}/server.{}.report", folder, options.index)](const ReportResult &report) {
    if (auto status = nessie::write_file(path, to_json(report).dump(1) + "\n"); !status.ok())
      nessie::log::warning("no report: {}", status.error().message);
  };
  if (const auto boards = config.get_or("staging.board_dir", ""); !boards.empty())
    options.board_path = fmt::format("{}/board.{}", boards, options.index);
  return made;
}

}  // namespace

Result<ServerOptions> server_options(const Config &config) {
  ServerOptions options;
  nessie::ConfigReader read(config);
  read.take(mode_of(config), options.mode);
  read.take(DurabilityRules::parse(config.get_or("durability", "")), options.durability);
  read.size("staging.memory", options.memory_bytes);
  read.duration("staging.timeout", options.client_timeout);
  read.duration("staging.patience", options.drain.patience);
  read.flag("staging.fail_fast", options.drain.fails_fast);
  read.flag("staging.read_back", options.drain.reads_back);
  read.flag("staging.checksums", options.drain.checks);
  options.drain.spill = config.get_or("staging.spill", "");
  if (!read.status().ok()) return read.status().error();
  return options;
}

void prepare_runtime(nssi::RuntimeOptions &options) {
  options.endpoint.config.set("nssi.reconnect", "0");  // what a lost client had in progress is over
  options.bulk_quiet = kQuiet;
  options.max_fibers = std::max(options.max_fibers, kMaxFibers);
}

nessie::ProviderType provider_type() {
  const auto mpi = std::make_shared<std::shared_ptr<Mpi>>();
  const auto prepare = [mpi](const Config &, nssi::RuntimeOptions &options) -> Status {
    *mpi = std::make_shared<Mpi>();
    if (!(*mpi)->is_there()) return Error{Code::kUnsupported, "cannot initialise MPI"};
    prepare_runtime(options);
    return {};
  };
  const auto start = [mpi](const nessie::ProviderContext &context) -> Result<std::unique_ptr<nessie::Provider>> {
    auto options = options_of_process(context.config, **mpi);
    if (!options.ok()) return options.error();
    nessie::log::set_program(fmt::format("nessied.{}", options->index));
    options->mpi = *mpi;
    return Server::start(context, *std::move(options));
  };
  return {.name = "staging", .prepare = prepare, .start = start, .is_single = true};
}

}  // namespace staging
