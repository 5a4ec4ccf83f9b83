// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench: `nessie bench` runs it. Without a workload's name it lists them.
#include "child.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "plot.hpp"

#ifdef NESSIE_BENCH_OVER_MPI
#include <nnti/mpi.hpp>
#endif

#include <fmt/format.h>

#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace {

using bench::Options;

struct Entry {
  std::string_view name;
  bench::Workload workload;
  std::string_view what, reproduces;
};

constexpr Entry kWorkloads[] = {
    {"rpc-latency", bench::rpc_latency,
     "round trip of a request: no-op, and 64 B to 4 KiB echoed, polling, blocking and as it comes; beside MPI's "
     "ping-pong, sockets, gRPC, libtirpc",
     "composable services (ANL/LANL 2016), figure 5: the no-op"},
    {"rpc-rate", bench::rpc_rate,
     "no-ops a second, 1 to 64 in flight from one client, and 16 from each of 1 to 16; beside gRPC and libtirpc",
     "composable services (ANL/LANL 2016), figure 5: the no-op, many at once"},
    {"rpc-size", bench::rpc_size,
     "a call with 8 B to 1 MiB as its argument, and with the same bytes as bulk data; beside gRPC and libtirpc",
     "Nessie (CUG 2012), section 3: small requests, and bulk data that the server moves"},
    {"rpc-memory", bench::rpc_memory,
     "memory of a client, in the service's process, of 1 to 1000 idle ones: connected, and after 1 and 16 calls at "
     "once",
     "uGNI network module for MPICH2 (CUG 2011), section 3, table 1: memory of mailboxes; of a client that calls"},
    {"rpc-statistics", bench::rpc_statistics,
     "what a no-op costs more where the runtimes count calls, trace one in 1000, or trace each",
     "composable services (ANL/LANL 2016), figure 5: the no-op; observed"},
#ifdef NESSIE_BENCH_PYTHON
    {"rpc-python", bench::rpc_python,
     "a no-op, and bulk data of 64 KiB to 16 MiB from and to a numpy array, called from Python; beside the same in C++",
     "composable services (ANL/LANL 2016), figure 5: the no-op; from another language"},
#endif
    {"access-latency", bench::access_latency,
     "a no-op, and reads and writes of 1 B to 16 MiB of a service's memory; beside MPI's and UCX's put and get",
     "composable services (ANL/LANL 2016), figure 5: access latency"},
    {"nnti-latency", bench::nnti_latency,
     "half round trip of messages of 8 B to 8 KiB, polling and blocking, and put and get of 8 B; beside MPI, UCX, "
     "sockets",
     "uGNI network module for MPICH2 (CUG 2011): the figure of latency by size"},
    {"nnti-message-rate", bench::nnti_message_rate,
     "messages of 8 B a second, 1 to 24 pairs of processes; beside MPI and UCX",
     "uGNI network module for MPICH2 (CUG 2011), figure 9: message rate"},
    {"nnti-multi-latency", bench::nnti_multi_latency,
     "half round trip of 8 B of 1 to 8 pairs of processes at once; beside MPI and UCX",
     "uGNI network module for MPICH2 (CUG 2011), figure 5: latency of several pairs"},
    {"nnti-bandwidth", bench::nnti_bandwidth,
     "put, get, and both ways at once, 4 KiB to 64 MiB; beside memcpy, process_vm_readv, MPI and UCX",
     "Nessie (CUG 2012), figures 7 to 10: transfers by RDMA, read and write, beside MPI"},
    {"nnti-pairs", bench::nnti_pairs,
     "put and get of 64 KiB and 1 MiB, 1 to 8 pairs of processes together; beside MPI and UCX",
     "uGNI network module for MPICH2 (CUG 2011), figure 8: bandwidth by the number of pairs"},
    {"nnti-clients", bench::nnti_clients,
     "64 clients that get 1 MiB from one server, together, and one of them alone; beside MPI and UCX",
     "Nessie (CUG 2012), section 5: many clients of one server"},
    {"nnti-protocols", bench::nnti_protocols,
     "messages of 1 KiB to 16 MiB by each protocol: eager, in pieces, read, written, both, registered anew or not; "
     "beside MPI",
     "uGNI network module for MPICH2 (CUG 2011), figure 7: bandwidth by protocol"},
    {"nnti-memory", bench::nnti_memory,
     "memory of a connected peer, on both sides, of 1 to 1000 peers, unused and used, by the size of the job; beside "
     "what is computed, also for 10,000 nodes",
     "uGNI network module for MPICH2 (CUG 2011), section 3, table 1: memory of mailboxes"},
    {"nnti-idle", bench::nnti_idle,
     "CPU time of waiting with 1 and 100 silent peers, and waking up from it; beside eventfd and futex",
     "Nessie (CUG 2012), section 4: waiting for events"},
    {"commsplitter", bench::commsplitter,
     "ping-pong, allreduce and put of 8 B in one of two programs that share a job and are split; beside the same "
     "program alone, without the library; Open MPI and MPICH",
     "Nessie (CUG 2012), section 4.2: the CommSplitter"},
    {"xdr", bench::xdr_arrays,
     "encoding and decoding arrays of structs, doubles and ints, 4 KiB to 16 MiB; beside memcpy and libtirpc",
     "Nessie (CUG 2012), section 3: requests and results are encoded with XDR"},
    {"xfer", bench::xfer,
     "the transfer service: arrays written and read, encoded and by RDMA, 1 KiB to 64 MiB, and 1 MiB of 1 to 64 "
     "clients; beside NNTI's own put and get, Open MPI, and libtirpc's codec and calls",
     "Nessie (CUG 2012), figures 7 to 10; PnetCDF staging (PDSW 2011), figure 3"},
    {"staging-s3d", bench::staging_s3d,
     "S3D's checkpoint of ten 32^3 arrays per process, 2 to 16 processes, and of 64^3 on 8; beside native PnetCDF",
     "PnetCDF staging (PDSW 2011), figure 5: the S3D I/O kernel, native, direct and caching"},
    {"staging-contiguous", bench::staging_contiguous,
     "IOR: 8 processes write 32 MiB each into one file, 1 MiB at a time, collectively and independently; beside native "
     "PnetCDF",
     "PnetCDF staging (PDSW 2011), figure 4: IOR, one shared file, native and staged"},
    {"staging-blocks", bench::staging_blocks,
     "BT-IO: records of 64^3 x 5 numbers in cells along diagonals, on 4 processes, a put or an iput a cell; beside "
     "native PnetCDF",
     "NAS Parallel Benchmarks, BT-IO: diagonal multi-partitioning"},
    {"staging-climate", bench::staging_climate,
     "E3SM: a history file of 1,100 variables, thousands of iput_varn of short runs on 8 processes, one wait_all; "
     "beside "
     "native PnetCDF",
     "E3SM's I/O kernel, F and I cases; PnetCDF staging (PDSW 2011), section 1: CESM"},
    {"staging-flash", bench::staging_flash,
     "FLASH-IO: checkpoints of 24 unknowns and plot files, out of memory with guard cells, 80 blocks on each of 8 "
     "processes; beside native PnetCDF",
     "Parallel netCDF (SC 2003): the FLASH I/O benchmark"},
    {"staging-restart", bench::staging_restart,
     "8 processes read their blocks of checkpoints, right after writing them and in another run; beside native PnetCDF",
     "PnetCDF staging (PDSW 2011), section 2: reads, which the paper leaves out"},
    {"staging-overlap", bench::staging_overlap,
     "S3D's checkpoint with as much computing between two of them as native PnetCDF takes for one, a core left free",
     "PnetCDF staging (PDSW 2011), section 3.2: bursts of I/O, absorbed while the program computes"},
    {"staging-durability", bench::staging_durability,
     "S3D's checkpoints of 64^3 on two processes, kept in the memory of one server, of two, in a log, or written "
     "through; beside `memory`, and the log's disk by itself",
     "Nessie (CUG 2012), section 7: the resilience of data services"},
    {"staging-streams", bench::staging_streams,
     "S3D's checkpoints of 64^3 on two processes under `nessie run --stream`: with nobody who looks, and all recorded; "
     "beside the same without",
     "PnetCDF staging (PDSW 2011), section 1: staging areas in which data are worked on while they wait"},
    {"staging-spill", bench::staging_spill,
     "output of a hundred times a server's memory, spilled to a disk; beside native PnetCDF and that disk by itself",
     "PnetCDF staging (PDSW 2011), section 3.2: bursts of I/O, larger than the servers' memory"},
    {"staging-recovery", bench::staging_recovery,
     "how long a program waits whose server is killed, and how fast the next one has what a log holds, or another "
     "server; beside the log's disk by itself, and memcpy",
     "Nessie (CUG 2012), section 7: the resilience of data services"},
    {"streams-pair", bench::streams_pair,
     "a step of 8 B to 16 MiB from one writer through a server to one reader, put, computed in place and lent, over "
     "shm "
     "and TCP; beside ADIOS2's SST, and a socket",
     "Nessie (CUG 2012), sections 1 and 2: coupling; DART (CUG 2007)"},
    {"streams-coupling", bench::streams_coupling,
     "256^3 doubles from 8 writers in blocks to 4 readers in slabs; beside MPI_Alltoallw, and PnetCDF through a file "
     "in "
     "memory",
     "Nessie (CUG 2012), section 2: programs that are coupled"},
    {"streams-dart", bench::streams_dart,
     "the share of its time that a simulation spends in sending 8.9 MB from each of 128 clients every 4.5 s; two "
     "clients "
     "that send as fast as they can, beside NNTI's own get; a server's memory at full load",
     "DART (CUG 2007): the overhead of streaming GTC's and XGC's data"},
    {"streams-logged", bench::streams_logged,
     "steps that are in a server's log before end_step returns; beside the log's disk by itself",
     "Nessie (CUG 2012), section 7: the resilience of data services"},
    {"streams-view", bench::streams_view,
     "a writer while a reader that views its stream is stopped; beside nobody reading",
     "DART (CUG 2007): readers that cannot hold up a simulation"},
    {"launch", bench::launch,
     "what `nessie run` adds to a program that does nothing, beside the program alone; what a program perceives whose "
     "server is on another host, beside TCP through the same cable; the first write of 256 processes with 16 servers, "
     "beside MPI's own start and native PnetCDF",
     "PnetCDF staging (PDSW 2011), section 3: servers that start with the program, on nodes of their own"},
};

constexpr const char *kUsage =
    "usage: nessie bench NAME [--json] [--quick | --once] [--transport NAME] [--set KEY=VALUE]\n"
    "                         [--processes N] [--servers N] [--plot FILE]\n\n"
    "  --json        one JSON object a line, as docs/benchmarks.md says\n"
    "  --quick       about a minute\n"
    "  --once        as small as it gets: only to see that it works\n"
    "  --transport   shm (the default), tcp, ofi, ucx, mpi, inproc: for all but staging-… and launch\n"
    "  --set         a setting of their endpoints, as nnti.ofi.provider=tcp\n"
    "  --plot        draws what was measured: a PNG, SVG or PDF file, by its suffix; needs python3-matplotlib\n"
    "  --processes   for staging-… and launch: this many, instead of its own\n"
    "  --servers     for launch: likewise\n\n";

void list() {
  fmt::print("{}", kUsage);
  for (const auto &entry : kWorkloads)
    fmt::print("{:<20}{}\n{:<20}after {}\n\n", entry.name, entry.what, "", entry.reproduces);
}

const Entry *find(std::string_view name) {
  for (const auto &entry : kWorkloads)
    if (entry.name == name) return &entry;
  return nullptr;
}

/// "nnti.channel=mailbox"
void set(Options &options, std::string_view setting) {
  auto equals = setting.find('=');
  options.settings[std::string(setting.substr(0, equals))] = setting.substr(equals + 1);
}

/// The sentence that says what is wrong with the arguments; nothing if they are right.
std::optional<std::string> parse(int argc, char **argv, Options &options) {
  for (int i = 2; i < argc; ++i) {
    std::string_view word = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--json")
      options.json = true;
    else if (word == "--quick")
      options.quick = true;
    else if (word == "--once")
      options.once = true;
    else if (word == "--transport" && value)
      options.transport = argv[++i];
    else if (word == "--plot" && value)
      options.plot = argv[++i];
    else if (word == "--set" && value && std::string_view(value).find('=') != std::string_view::npos)
      set(options, argv[++i]);
    else if (word == "--processes" && value && std::atoi(value) > 0)
      options.processes = std::atoi(argv[++i]);
    else if (word == "--servers" && value && std::atoi(value) > 0)
      options.servers = std::atoi(argv[++i]);
    else
      return fmt::format("cannot use '{}'; `nessie bench` alone lists the options", word);
  }
  return std::nullopt;
}

/// mpiexec refuses to run as root, as in a container, unless it is told that this is meant.
void allow_mpi_as_root() {
  if (geteuid() != 0) return;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

#ifdef NESSIE_BENCH_OVER_MPI

void link_mpi(Options &options, char **) { options.extra_transports = {&nnti::mpi::transport_kind()}; }

#else

/// Another program has it, so that this one stays without MPI.
void link_mpi(Options &, char **argv) {
  const auto program = bench::sibling("nessie-bench-over-mpi");
  execv(program.c_str(), argv);
  fmt::print(stderr, "nessie bench: {} cannot be started: {}\n", program, std::strerror(errno));
  _exit(1);
}

#endif

int run(const Entry &entry, const Options &options) {
  bench::Report report{std::string(entry.name)};
  fmt::print(options.json ? stderr : stdout, "{}: {}, transport {}\n", entry.name, bench::describe_machine(),
             options.transport);
  fflush(stdout);
  if (auto status = entry.workload(options, report); !status.ok()) {
    fmt::print(stderr, "nessie bench: {}: {}\n", entry.name, status.error().message);
    return 1;
  }
  if (options.json)
    fmt::print("{}", report.json());
  else
    fmt::print("\n{}", report.table());
  fflush(stdout);
  if (options.plot.empty()) return 0;
  auto status = bench::plot(report, options.plot);
  if (!status.ok()) fmt::print(stderr, "nessie bench: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "--help" || name == "-h") return list(), 0;
  const auto *entry = find(name);
  if (entry && argc > 2 && (std::string_view(argv[2]) == "--help" || std::string_view(argv[2]) == "-h"))
    return list(), 0;
  Options options;
  auto mistake = entry ? parse(argc, argv, options)
                       : fmt::format("there is no workload '{}'; `nessie bench` alone lists them", name);
  if (mistake) return fmt::print(stderr, "nessie bench: {}\n", *mistake), 2;
  allow_mpi_as_root();
  if (options.transport == "mpi") link_mpi(options, argv);
  return run(*entry, options);
}
