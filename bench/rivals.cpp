// SPDX-License-Identifier: BSD-3-Clause
#include "rivals.hpp"

#include "child.hpp"
#include "machine.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace bench {
namespace {

using nessie::Result;
constexpr auto kLimit = std::chrono::seconds(300);

struct Description {
  const char *name, *program, *launcher, *packages;
};
constexpr Description kRivals[] = {
    {"openmpi", "nessie-bench-mpi", "mpiexec", "libopenmpi-dev openmpi-bin"},
    {"mpich", "nessie-bench-mpich", "mpiexec.mpich", "libmpich-dev mpich"},
    {"ucx", "nessie-bench-ucx", nullptr, "libucx-dev"},
    {"grpc", "nessie-bench-grpc", nullptr, "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc"},
    {"libtirpc", "nessie-bench-tirpc", nullptr, "libtirpc-dev"},
};
const Description &description(Library library) { return kRivals[static_cast<int>(library)]; }

bool is_here(Library library) {
  const auto &it = description(library);
  std::error_code error;
  return std::filesystem::exists(sibling(it.program), error) && (!it.launcher || on_path(it.launcher));
}

int processes_of(const Cast &cast) { return cast.one_target ? cast.leaders + 1 : 2 * cast.leaders; }

std::vector<std::string> mpich_command(const Cast &cast, std::vector<std::string> program) {
  std::vector<std::string> command{"mpiexec.mpich", "-bind-to", "none", "-n", std::to_string(processes_of(cast))};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

/// Nessie's library that splits jobs of an MPI; empty: it was not built.
std::string splitter_for(Library library) {
  const char *name = library == Library::kMpich ? "libcommsplitter_mpich.so" : "libcommsplitter.so";
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char *folder : {"../lib", "../../" NESSIE_LIBDIR})
    if (auto path = here / folder / name; std::filesystem::exists(path, error)) return path;
  return {};
}

/// The same beside a program that sleeps, with CommSplitter in both.
std::vector<std::string> beside_a_sleeper(std::vector<std::string> command, Library library) {
  const auto splitter = splitter_for(library);
  const auto preload = library == Library::kMpich ? std::vector<std::string>{"-env", "LD_PRELOAD", splitter}
                                                  : std::vector<std::string>{"-x", "LD_PRELOAD=" + splitter};
  command.insert(command.begin() + 1, preload.begin(), preload.end());
  command.emplace_back(":");
  command.insert(command.end(), preload.begin(), preload.end());
  command.insert(command.end(), {"-n", "1", sibling(description(library).program), "sleep"});
  return command;
}

bool carries_calls(Library library) { return library == Library::kGrpc || library == Library::kTirpc; }

std::vector<std::string> program_for(const Rival &rival, const Cast &cast) {
  std::vector<std::string> program{sibling(description(rival.library).program)};
  if (carries_calls(rival.library))
    program.insert(program.end(), {name_of(rival.network), cast.polls ? "polls" : "sleeps"});
  else
    program.emplace_back(cast.one_target ? "clients" : "pairs");
  if (rival.library == Library::kUcx || carries_calls(rival.library)) program.push_back(std::to_string(cast.leaders));
  return program;
}

std::vector<std::string> started(const Rival &rival, const Cast &cast, std::vector<std::string> program) {
  if (rival.library == Library::kOpenMpi)
    return mpiexec(processes_of(cast), std::move(program),
                   mpi_options(processes_of(cast), rival.network == Network::kTcp));
  if (rival.library == Library::kMpich) return mpich_command(cast, std::move(program));
  return program;
}

std::vector<std::string> command(const Rival &rival, const Cast &cast, const std::vector<Question> &questions) {
  auto program = program_for(rival, cast);
  for (const auto &question : questions) {
    program.push_back(question.what);
    for (auto size : question.sizes) program.push_back(std::to_string(size));
  }
  auto words = started(rival, cast, std::move(program));
  return cast.split ? beside_a_sleeper(std::move(words), rival.library) : words;
}

std::vector<std::string> environment(const Rival &rival) {
  if (rival.library == Library::kOpenMpi || carries_calls(rival.library)) return {};
  std::vector<std::string> settings{ucx_transports(rival.network)};
  if (rival.network == Network::kTcp) settings.emplace_back("MPIR_CVAR_NOLOCAL=1");
  return settings;
}

}  // namespace

Network network_of(const std::string &transport) {
  return transport == "tcp" || transport == "ofi" || transport == "ucx" ? Network::kTcp : Network::kSharedMemory;
}
const char *ucx_transports(Network network) {
  return network == Network::kTcp ? "UCX_TLS=self,tcp" : "UCX_TLS=self,sm";
}
const char *name_of(Library library) { return description(library).name; }
const char *name_of(Network network) {
  constexpr const char *kNames[] = {"shm", "tcp", "unix"};
  return kNames[static_cast<int>(network)];
}

std::string Rival::mode(const std::string &of_ours) const {
  return carries_calls(library) ? of_ours + '-' + name_of(network) : of_ours;
}

bool can_answer(Library library, const std::string &what) {
  if (library == Library::kUcx) return !what.starts_with("transfer");
  return library != Library::kGrpc || (what != "batched-per-s" && !what.ends_with("-encode"));
}

Result<Answers> ask(const Rival &rival, const Cast &cast, const std::vector<Question> &questions) {
  const auto result = run_program(command(rival, cast, questions), kLimit, environment(rival));
  if (!result) return result.error();
  Answers answers;
  std::istringstream lines(result->output);
  std::uint64_t size;
  for (std::string what; lines >> what >> size;) lines >> answers[what][size];
  for (const auto &question : questions)
    if (answers[question.what].size() != question.sizes.size())
      return nessie::Error{nessie::Code::kIo, fmt::format("{} did not answer '{}', but wrote: {}",
                                                          name_of(rival.library), question.what, result->output)};
  return answers;
}

std::vector<Rival> those_here(const std::vector<Library> &libraries, const std::vector<Network> &networks) {
  std::vector<Rival> here;
  for (auto library : libraries) {
    if (is_here(library))
      for (auto network : networks) here.push_back({library, network});
    else
      fmt::print(stderr, "nessie bench: {} is not measured: install {}, and build again\n", name_of(library),
                 description(library).packages);
  }
  return here;
}

bool can_be_split(Library library) { return !splitter_for(library).empty(); }

std::vector<Rival> rivals_here(Network network) {
  return those_here({Library::kOpenMpi, Library::kMpich, Library::kUcx}, {network});
}

std::vector<Rival> rpc_rivals_here(const std::vector<Library> &libraries) {
  return those_here(libraries, {Network::kTcp, Network::kUnixSocket});
}

}  // namespace bench
